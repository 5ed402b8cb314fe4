"""Patterns: graphs with symbolic dims, and the proof that a graph is one with ints for symbols."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.core.records import record
from treadle.core.shapes import Dim, symbol_name
from treadle.graph.families.constants import DimConstant
from treadle.graph.families.correspondence import Correspondence, same_capture
from treadle.graph.ir import Graph, Node
from treadle.graph.printer import has_automatic_name


class Mismatch(Exception):
    """A graph cannot be had from a pattern by putting ints in place of its symbols."""


@record(frozen=True)
class SymbolOrigin:
    """A symbol is dim `axis` of the parameter called `argument`."""

    name: str
    argument: str
    axis: int

    def __str__(self) -> str:
        return f"{self.name} = dim {self.axis} of {self.argument}"


class Pattern:
    """A graph with symbolic dims that stands for a family of graphs.

    Attributes:
        graph: with symbols for the dims in which the graphs differ.
        symbols: where the symbols come from.
    """

    def __init__(self, graph: Graph, inserted: Mapping[Node, DimConstant | None]) -> None:
        self.graph = graph
        self.symbols = _origins(graph)
        # Nodes that no graph of the family has: they compute constants made of dims. The last
        # node of each such computation stands for the constant.
        self._inserted = dict(inserted)

    def match(self, graph: Graph) -> dict[str, Dim]:
        """The values of the symbols in `graph`: ints, or symbols where its own dims are open.

        Raises:
            Mismatch: the graph differs from the pattern in more than the values of symbols.
        """
        mine, theirs = self.graph, graph
        if len(mine.captures) != len(theirs.captures) or not all(
            map(same_capture, mine.captures, theirs.captures)
        ):
            raise Mismatch("it captures other tensors or variables")
        found = Correspondence(self._inserted)
        if not found.same_region(mine, theirs):
            raise Mismatch(found.difference())
        return {s.name: found.dims[s.name] for s in self.symbols}


def _origins(graph: Graph) -> list[SymbolOrigin]:
    found: dict[str, SymbolOrigin] = {}
    for param in graph.params:
        for axis, dim in enumerate(param.spec.dims):
            name = symbol_name(dim)
            if name is not None:
                own = f"parameter {param.index}" if has_automatic_name(param) else param.name
                found.setdefault(name, SymbolOrigin(name, own, axis))
    return list(found.values())
