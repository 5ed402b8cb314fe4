"""Patterns: graphs with symbolic dims, and the proof that a graph is one with ints for symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from treadle.core.shapes import symbol_name
from treadle.graph.families.constants import DimConstant
from treadle.graph.families.correspondence import Correspondence, same_capture
from treadle.graph.ir import Graph, Node


class Mismatch(Exception):
    """A graph is not what a pattern is for any ints in place of its symbols."""


@dataclass(frozen=True)
class SymbolOrigin:
    """A symbol is dim `axis` of the parameter called `argument`."""

    name: str
    argument: str
    axis: int

    def __str__(self) -> str:
        return f"{self.name} = dim {self.axis} of {self.argument}"


class Pattern:
    """What a family of graphs has in common.

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

    def match(self, graph: Graph) -> dict[str, int]:
        """What the symbols are in `graph`.

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
        sizes = {s.name: found.dims[s.name] for s in self.symbols}
        ints = {name: size for name, size in sizes.items() if isinstance(size, int)}
        if len(ints) != len(sizes):
            raise Mismatch("its dims are symbols themselves")
        return ints


def _origins(graph: Graph) -> list[SymbolOrigin]:
    found: dict[str, SymbolOrigin] = {}
    for param in graph.params:
        for axis, dim in enumerate(param.spec.dims):
            name = symbol_name(dim)
            if name is not None:
                found.setdefault(name, SymbolOrigin(name, param.name, axis))
    return list(found.values())
