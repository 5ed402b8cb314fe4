"""Programs made from their records: machine code that is loaded, and called as the record says.

What is rarely needed (texts to inspect, the optimized graph, the Python side of a failed check) is
had by compiling the graph after all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import islice
from typing import Any

from treadle.core.origin import Origin
from treadle.core.plain_data import DamagedError
from treadle.core.shapes import Dim
from treadle.core.tensor import buffer_of
from treadle.core.texts import Texts
from treadle.graph.ir import Graph
from treadle.runtime.callbacks import Callbacks
from treadle.runtime.cpu.host_memory import host_memory
from treadle.runtime.cpu.jit import Code, jit
from treadle.runtime.cpu.native import NativeExecutable, Program
from treadle.runtime.cpu.program_record import Record
from treadle.runtime.cpu.program_state import StateTable
from treadle.runtime.cpu.state_words import StateWords
from treadle.runtime.cpu.target import host
from treadle.runtime.cpu.winners import are_current
from treadle.runtime.executable import Executable
from treadle.runtime.memory.use import MemoryUse

# What a record may make of names of functions and routines that do not exist.
_UNKNOWN = (LookupError, ValueError, ImportError, AttributeError)


def stored_program(
    data: bytes, graph: Graph, compile: Callable[[Graph], Executable]
) -> StoredExecutable | None:
    """See `treadle.runtime.backend.Backend.load`."""
    try:
        record = Record.from_bytes(data, graph)
        if not (record.choices == {} or are_current(record.choices, host())):
            return None
        codes = _codes(record)
        return None if codes is None else StoredExecutable(graph, record, codes, compile)
    except (DamagedError, *_UNKNOWN):
        return None


def _codes(record: Record) -> dict[str, Code] | None:
    """The machine code of a program and its kernels by key; None where some is missing."""
    codes = {}
    for name in {record.code, *(k[0] for kind, k in record.table if kind == "kernel")}:
        code = jit().load_known(name)
        if code is None:
            return None
        codes[name] = code
    return codes


def _native(compile: Callable[[Graph], Executable], graph: Graph) -> NativeExecutable:
    """What the graph of a stored program compiles to."""
    executable = compile(graph)
    assert isinstance(executable, NativeExecutable)
    return executable


class StoredExecutable(NativeExecutable):
    """A program made from its record."""

    def __init__(
        self, graph: Graph, record: Record, codes: dict[str, Code],
        compile: Callable[[Graph], Executable],
    ) -> None:  # fmt: skip
        self._compile = functools.cache(functools.partial(_native, compile, graph))
        memory = record.memory and record.memory.located(_lines(graph))
        callbacks = None
        if record.callbacks:
            callbacks = _StoredCallbacks(graph, record, memory or MemoryUse(), self._compile)
        constants = [
            buffer_of(graph.captures[c]) if isinstance(c, int) else c for c in record.constants
        ]
        code = codes[record.code]
        program = Program(
            signature=record.signature,
            table=StateTable(record.table),
            entry=code.address("entry") if record.by_object else 0,
            run=code.address("run"),
            words=StateWords(
                graph, constants, callbacks, record.workers, record.has_library,
                lambda key: codes[key[0]].address(key[1]),
            ),
            callbacks=callbacks,
            written=record.written,
            releases_gil=record.releases_gil,
            needs_frame=False,
            texts={},
            counters=record.counters | {"stored": 1},
            memory=memory,
            code=record.code,
            keep=[codes, callbacks, constants],
        )  # fmt: skip
        self._guards = record.guards
        super().__init__(graph, program, record.output_specs, self._make_timed)

    def _make_timed(self) -> NativeExecutable:
        made = self._compile()
        assert made.make_timed is not None
        return made.make_timed()

    @property
    def guards(self) -> list[tuple[Dim, Dim]]:
        return self._guards

    @property
    def graph(self) -> Graph:
        """The optimized graph, made when somebody asks."""
        return self._compile().graph

    @property
    def exact_graph(self) -> Graph:
        return self._compile().exact_graph

    @property
    def stages(self) -> Texts:
        return self._compile().stages


def _lines(traced: Graph) -> Callable[[Any], Origin | None]:
    """Gives the user's line by the number of a node of the traced graph."""

    def line(number: Any) -> Origin | None:
        node = next(islice(traced.walk(), number, None), None) if isinstance(number, int) else None
        return None if node is None else node.origin

    return line


class _StoredCallbacks(Callbacks):
    """Knows its steps when the first is called."""

    def __init__(
        self, graph: Graph, record: Record, memory: MemoryUse,
        compile: Callable[[], NativeExecutable],
    ) -> None:  # fmt: skip
        names = [s.name for s in record.signature.symbols]
        first = record.signature.words - len(names)
        super().__init__((), names, first, {}, graph, record.written, memory, host_memory)
        self._compile, self._code, self._makers = compile, record.code, record.makers
        self._lines = _lines(graph)

    def _call(self, number: int, words: int, frame: int) -> int:
        try:
            if number in self._makers:  # this is no time to compile
                found = self._makers[number]
                made_by = found and found.located(self._lines)
                self._exhausted(made_by, words, frame)
            self._complete()
        except BaseException as error:  # it goes to the caller of the program
            self.local.failure = error
            return 1
        return super()._call(number, words, frame)

    def _complete(self) -> None:
        if self.steps:
            return
        made = self._compile().program
        if made.callbacks is None or made.code != self._code:
            raise RuntimeError(
                "a program on disk is not what its graph compiles to. This is a fault of treadle; "
                "TREADLE_STORE_PROGRAMS=0 avoids it"
            )
        self.handles, self.graph = made.callbacks.handles, made.callbacks.graph
        self.steps = made.callbacks.steps
