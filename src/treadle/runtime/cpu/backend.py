"""The processor as a backend (`treadle.runtime.backend`): its parts, loaded when they are asked
for. A program that is found on disk needs neither the schedule nor what writes code."""

from __future__ import annotations

import functools
import importlib.util
import sys
from typing import TYPE_CHECKING

import numpy as np

from treadle.runtime.backend import Backend, ProgramMemory
from treadle.runtime.cpu import learning
from treadle.runtime.cpu.abi import layout
from treadle.runtime.cpu.host_memory import host_memory
from treadle.runtime.cpu.target import host, process_host
from treadle.runtime.cpu.thread_count import planned_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from treadle.graph.ir import Graph
    from treadle.ops.registry import Op
    from treadle.runtime.cpu.facts import CpuFacts
    from treadle.runtime.cpu.native import NativeExecutable
    from treadle.runtime.executable import Executable
    from treadle.runtime.planned import Planned

MOST_CONSTANT_BYTES = 4 << 20  # of literal arrays that a record on disk holds


class Cpu(Backend):
    """See `treadle.runtime.backend.Backend`."""

    @property
    def program_memory(self) -> ProgramMemory:
        return host_memory

    def expect_compilation(self) -> None:
        from treadle.runtime.cpu import compiled_ahead

        compiled_ahead.expect_compilation()

    def begin_compilation(self, graph: Graph) -> None:
        from treadle.runtime.cpu import compiled_ahead

        compiled_ahead.begin_compilation(graph)

    def facts(self) -> CpuFacts:
        from treadle.runtime.cpu.facts import CpuFacts

        return CpuFacts()

    def build(self, planned: Planned) -> NativeExecutable:
        from treadle.runtime.cpu.build_program import build_program

        learning.begin()
        return build_program(planned)

    @property
    def eager_elements(self) -> int | None:
        target = host()
        if _compiler() is None or target is not process_host():  # it could not run them
            return None
        return target.tuning.task_elements

    def compile_later(
        self, key: str, compile: Callable[[], None], graph: Graph | None = None
    ) -> None:
        from treadle.runtime.cpu import compiled_ahead

        compiled_ahead.compile_later(key, compile, graph)

    def by_routine(
        self, op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]
    ) -> tuple[Any, ...] | None:
        if _compiler() is None:
            return None
        from treadle.runtime.cpu.eager_routines import by_routine

        return by_routine(op, arrays, attrs)

    def key(self) -> str | None:
        made = _compiler()
        return made and "\n".join([host().full_key, made, str(planned_workers())])

    def record(self, executable: Executable, traced: Graph, planned: Planned) -> bytes | None:
        from treadle.runtime.cpu.build_program import record_of

        record = record_of(executable, traced, planned)
        if record is None or record.constant_bytes > MOST_CONSTANT_BYTES:
            return None
        return record.to_bytes()

    def load(
        self, data: bytes, graph: Graph, compile: Callable[[Graph], Executable]
    ) -> Executable | None:
        from treadle.runtime.cpu.stored_program import stored_program

        learning.begin()
        return stored_program(data, graph, compile)


@functools.cache
def _compiler() -> str | None:
    """The versions beside treadle that machine code depends on; None without a compiler."""
    if importlib.util.find_spec("llvmlite") is None:
        return None
    return "\n".join([sys.version, np.__version__, str(layout())])


cpu = Cpu()
