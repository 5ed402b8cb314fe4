"""Passes over graphs, and how they are run: verified, dumped and reported.

A pass is a function ``pass(graph) -> bool`` that rewrites the graph in place and says whether it
changed anything.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from treadle.core.switches import disabled_names
from treadle.graph.ir import Graph
from treadle.ops.registry import Op


class Pass(NamedTuple):
    """A rewriting of graphs.

    Attributes:
        run: rewrites a graph in place; whether it changed anything.
        reason: what it does, and why it stands where it stands in the pipeline.
        last: it runs once, after all rounds of the others.
        rewrites: it leaves graphs alone that have none of these ops, and is not run on them; empty:
            it may change any graph.
    """

    name: str
    run: Callable[[Graph], bool]
    reason: str
    last: bool = False
    rewrites: tuple[Op, ...] = ()


class Report(NamedTuple):
    """One run of a pass: its time, and the number of nodes before and after."""

    name: str
    round: int
    changed: bool
    nodes_before: int
    nodes_after: int
    seconds: float


class Runs:
    """Runs of passes on one graph.

    Under TREADLE_VERIFY=1 the graph is verified before the first pass and after each.

    Args:
        made_by: what made the graph, for the error where it is wrong before any pass.
        dump: called with a label and the graph after every pass that changed it.

    Attributes:
        reports: of those so far.
        nodes: how many the graph has now, inner regions included.
        ops: those that it has.
    """

    def __init__(
        self, graph: Graph, made_by: str, dump: Callable[[str, Graph], None] | None = None
    ) -> None:
        self.graph, self.dump = graph, dump
        self.check = os.environ.get("TREADLE_VERIFY", "") not in ("", "0", "bounds")
        self.reports: list[Report] = []
        self._look()
        self._verify(made_by)

    def run(self, item: Pass, number: int) -> bool:
        """Run a pass in a round; whether it changed anything."""
        graph, before = self.graph, self.nodes
        if item.rewrites and self.ops.isdisjoint(item.rewrites):
            self.reports.append(Report(item.name, number, False, before, before, 0.0))
            return False
        start = time.perf_counter()
        changed = item.run(graph)
        seconds = time.perf_counter() - start
        self._verify(f"pass {item.name!r}")
        if changed:
            self._look()
            if self.dump is not None:
                self.dump(f"{item.name} (round {number + 1})", graph)
        self.reports.append(Report(item.name, number, changed, before, self.nodes, seconds))
        return changed

    def _look(self) -> None:
        """Find out what nodes the graph has now."""
        ops = [node.op for node in self.graph.walk()]
        self.nodes, self.ops = len(ops), frozenset(ops)

    def _verify(self, where: str) -> None:
        if self.check:
            from treadle.graph.verifier import verify

            verify(self.graph, where)


def switched_on(pipeline: Iterable[Pass]) -> list[Pass]:
    """The passes that are not switched off here."""
    off = disabled_names()
    return [p for p in pipeline if "all" not in off and p.name not in off]


def count_nodes(graph: Graph) -> int:
    """The number of nodes, inner regions included."""
    return sum(1 for _ in graph.walk())
