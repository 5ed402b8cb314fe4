"""Programs with critical sections: each run holds their locks from its beginning to its end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from treadle.graph.ir import Graph
from treadle.runtime.executable import AroundProgram, Executable


class ExclusiveProgram(AroundProgram):
    """A program that no thread runs while another one is in one of its sections."""

    def __init__(self, graph: Graph, program: Executable, locks: Sequence[Any]) -> None:
        super().__init__(graph, program)
        self._locks = locks

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        with ExitStack() as held:
            for lock in self._locks:
                held.enter_context(lock)
            return self.program.run(arrays)


def exclusive(graph: Graph, program: Executable) -> Executable:
    """The program of a graph, as one that holds the locks of its sections if it has any."""
    if "treadle.ops.control.critical_sections" not in sys.modules:  # nobody has made one
        return program
    from treadle.ops.control.critical_sections import CRITICAL

    locks = {node.attrs["lock"] for node in graph.walk() if node.op is CRITICAL}
    if not locks:
        return program
    return ExclusiveProgram(graph, program, sorted(locks, key=lambda lock: lock.number))
