"""Text in, text out: running one pass on a graph given as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from treadle.graph.ir import Graph
from treadle.graph.parser import parse_graph
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.printer import print_graph
from treadle.graph.verifier import verify
from treadle.ops import state  # noqa: F401  (registers the ops that the texts name)
from treadle.ops.collections import lists  # noqa: F401
from treadle.ops.control import io  # noqa: F401
from treadle.ops.elementwise import casting, complex_numbers, logic, selection, unary  # noqa: F401
from treadle.ops.indexing import gather, index  # noqa: F401
from treadle.ops.linalg import matrices  # noqa: F401
from treadle.ops.reductions import reduction  # noqa: F401
from treadle.ops.shaping import creation, joining, permuting, slicing  # noqa: F401

Run = Callable[[Graph], bool]


def graph_of(body: str) -> Graph:
    graph = parse_graph("graph f" + textwrap.dedent(body).strip())
    verify(graph)
    return graph


def text_of(graph: Graph) -> str:
    return print_graph(graph, origins=False)


def check(run: Run, before: str, after: str, clean: bool = True) -> None:
    """`run` turns one text into the other (dead nodes removed first, unless `clean` is false)."""
    graph = graph_of(before)
    assert run(graph) is (text_of(graph_of(before)) != text_of(graph))
    verify(graph)
    if clean:
        eliminate_dead_code(graph)
        verify(graph)
    assert text_of(graph) == text_of(graph_of(after))


def check_unchanged(run: Run, text: str) -> None:
    """`run` leaves the graph as it is and says so."""
    graph = graph_of(text)
    assert run(graph) is False
    assert text_of(graph) == text_of(graph_of(text))
