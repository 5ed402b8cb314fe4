"""Whole programs on disk: a process that meets a known graph neither optimizes nor fuses it.

A record is named by the key of the graph, the compiler's own source, the backend's key for the
device and its compiler, and the switches: together they decide which program a graph becomes. The
backend writes and reads the record itself (`treadle.runtime.cpu.program_record`).
"""

from __future__ import annotations

import os
from collections.abc import Callable

from treadle.core.digests import digest
from treadle.core.object_cache import default_cache, stores_programs
from treadle.core.sources import sources
from treadle.core.switches import disabled_names
from treadle.graph.ir import Graph
from treadle.runtime.devices import backend
from treadle.runtime.executable import Executable
from treadle.runtime.graph_key import graph_key
from treadle.runtime.options import Options

KIND = "program"  # of objects on disk
_NEUTRAL = {
    "TREADLE_CACHE_DIR", "TREADLE_EAGER_PROGRAMS", "TREADLE_KEEP_BYTES", "TREADLE_MAX_TRACES",
    "TREADLE_STRICT",
    "TREADLE_TUNE",  # what it changes is in the record of the machine
}  # fmt: skip


def program_key(graph: Graph, options: Options) -> str | None:
    """Names the program of a graph as it would be compiled now; None where none is stored."""
    if options != Options() or not stores_programs():
        return None
    found = graph_key(graph)
    made_for = None if found is None else backend(graph.device).key()
    if found is None or made_for is None:
        return None
    words = [found, made_for, sources("runtime"), str(sorted(disabled_names())), *_switches()]
    return digest("\n".join(words))


def _switches() -> list[str]:
    names = sorted(n for n in os.environ if n.startswith("TREADLE_") and n not in _NEUTRAL)
    return [f"{name}={os.environ[name]}" for name in names]


def store(key: str, record: bytes) -> None:
    """Keep a program."""
    default_cache().store(KIND, key, record)


def stored_program(
    graph: Graph, options: Options, compile: Callable[[Graph], Executable]
) -> Executable | None:
    """The stored program of a graph, or None where there is none with all its code.

    Args:
        compile: makes the program of the graph anew, for what a record lacks: texts for `inspect`
            and the steps of callbacks.
    """
    key = program_key(graph, options)
    data = None if key is None else default_cache().load(KIND, key)
    return None if data is None else backend(graph.device).load(data, graph, compile)
