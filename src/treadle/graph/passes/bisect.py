"""Which pass changed the result? Runs the pipeline step by step and checks after each one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from treadle.core.switches import disabled_names
from treadle.graph.ir import Graph
from treadle.graph.passes import MOST_ROUNDS, PIPELINE
from treadle.graph.pipeline import Pass
from treadle.graph.rewrite import clone_graph


class Culprit(NamedTuple):
    """The first run of a pass after which a graph was not good any more."""

    name: str
    round: int
    before: Graph
    after: Graph


def find_culprit(
    graph: Graph, is_good: Callable[[Graph], bool], pipeline: tuple[Pass, ...] = PIPELINE
) -> Culprit | None:
    """The first pass that makes ``is_good(graph)`` false; None where all passes keep it true.

    Args:
        graph: the graph before the passes; it stays as it is.
        is_good: for example, whether running the graph gives the expected numbers.

    Raises:
        ValueError: the graph is not good to begin with.
    """
    if not is_good(clone_graph(graph)):
        raise ValueError(f"the graph {graph.name!r} is not good before any pass")
    current, off = clone_graph(graph), disabled_names()
    for number in range(MOST_ROUNDS + 1):
        for item in pipeline:
            skipped = item.name in off or "all" in off
            if skipped or item.last != (number == MOST_ROUNDS):
                continue
            before = clone_graph(current)
            if item.run(current) and not is_good(clone_graph(current)):
                return Culprit(item.name, number, before, current)
    return None
