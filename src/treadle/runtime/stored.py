"""Whole programs on disk: a process that meets a known graph neither optimizes nor fuses it.

A record tells how the program is called and what stands in its state table; the machine code is
in the object cache, under keys of its own. The graph's key names the record, together with all
that decides what the compiler makes of a graph: its source, the target, the versions beside it,
the number of threads, switches. What is rarely needed (texts to inspect, the optimized graph, the
Python side of a failed check) is had by compiling the graph after all.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from treadle.core import processors
from treadle.core.object_cache import default_cache, stores_programs
from treadle.core.origin import Origin
from treadle.core.plain_data import DamagedError
from treadle.core.shapes import Dim
from treadle.core.sources import sources
from treadle.core.switches import disabled_names
from treadle.core.texts import Texts
from treadle.graph.ir import Graph
from treadle.runtime.abi import layout
from treadle.runtime.callbacks import Callbacks
from treadle.runtime.cpu.jit import Code, jit
from treadle.runtime.cpu.program_state import StateTable
from treadle.runtime.cpu.state_words import StateWords
from treadle.runtime.cpu.target import host
from treadle.runtime.cpu.thread_count import threads
from treadle.runtime.graph_key import graph_key
from treadle.runtime.memory.use import MemoryUse
from treadle.runtime.native import NativeExecutable, Program
from treadle.runtime.options import Options
from treadle.runtime.program_record import Record

KIND = "program"  # of objects on disk
MOST_CONSTANT_BYTES = 4 << 20  # of literal arrays that a record holds
# What a record may make of names of functions and routines that do not exist.
_UNKNOWN = (LookupError, ValueError, ImportError, AttributeError)
_NEUTRAL = {"TREADLE_CACHE_DIR", "TREADLE_KEEP_BYTES", "TREADLE_STRICT", "TREADLE_MAX_TRACES"}


def program_key(graph: Graph, options: Options) -> str | None:
    """Names the program of a graph as it would be compiled now; None where none is stored."""
    if options != Options() or not stores_programs():
        return None
    found = graph_key(graph)
    if found is None or _surroundings() is None:
        return None
    off = sorted(disabled_names())
    machine = host().full_key
    words = [
        found, machine, *(_surroundings() or ()), str(planned_workers()), str(off), *_switches()
    ]  # fmt: skip
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:40]


@functools.cache
def _surroundings() -> list[str] | None:
    """What every program depends on, besides the machine; None without a compiler."""
    if importlib.util.find_spec("llvmlite") is None:
        return None
    versions = [sys.version, np.__version__, str(layout())]
    return [sources(), *versions]


def _switches() -> list[str]:
    names = sorted(n for n in os.environ if n.startswith("TREADLE_") and n not in _NEUTRAL)
    return [f"{name}={os.environ[name]}" for name in names]


def planned_workers() -> int:
    """The most threads that a program made now can use: as many as there are processors, so that
    the setting may go up to these later."""
    return max(processors.usable(), threads())


def store(key: str, record: Record) -> None:
    """Keep a program, unless its constants are large."""
    size = sum(c.nbytes for c in record.constants if isinstance(c, np.ndarray))
    if size <= MOST_CONSTANT_BYTES:
        default_cache().store(KIND, key, record.to_bytes())


def stored_program(graph: Graph, options: Options | None = None) -> StoredExecutable | None:
    """The stored program of a graph, or None where there is none with all its code."""
    key = program_key(graph, options or Options())
    data = None if key is None else default_cache().load(KIND, key)
    if data is None:
        return None
    try:
        record = Record.from_bytes(data, graph)
        codes = _codes(record)
        return None if codes is None else StoredExecutable(graph, record, codes)
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


def _compiled(graph: Graph) -> NativeExecutable:
    """What the graph of a stored program compiles to."""
    from treadle.runtime.compiler import compile_native

    executable = compile_native(graph)
    assert isinstance(executable, NativeExecutable)
    return executable


class StoredExecutable(NativeExecutable):
    """A program made from its record."""

    def __init__(self, graph: Graph, record: Record, codes: dict[str, Code]) -> None:
        self._compile = functools.cache(functools.partial(_compiled, graph))
        memory = record.memory and record.memory.located(_lines(graph))
        callbacks = None
        if record.callbacks:
            callbacks = _StoredCallbacks(graph, record, memory or MemoryUse(), self._compile)
        constants = [
            graph.captures[c]._array if isinstance(c, int) else c for c in record.constants
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
        super().__init__(graph, program, record.output_specs)

    @property
    def guards(self) -> list[tuple[Dim, Dim]]:
        return self._guards

    @property
    def graph(self) -> Graph:
        """The optimized graph, made when somebody asks."""
        return self._compile().graph

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
        super().__init__((), names, first, {}, graph, record.written, memory)
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
