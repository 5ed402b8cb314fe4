"""Common subexpressions: equal pure computations of one region are done once.

%1 = tanh(%x)
%2 = tanh(%x)      ->  uses of %2 read %1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from treadle.core.spec import ListSpec
from treadle.graph.ir import Graph, Node, Region
from treadle.graph.literals import array_digest
from treadle.graph.rewrite import Replacement, Rewriter


def merge_common_subexpressions(graph: Graph) -> bool:
    """Replace a pure node by an earlier one with the same op, inputs and attributes."""
    return _Merger(graph).run()


class _Merger(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.scopes: list[dict[Any, Node]] = []

    def enter(self, region: Region) -> None:
        self.scopes.append({})

    def leave(self, region: Region) -> None:
        self.scopes.pop()

    def visit(self, node: Node) -> Replacement:
        if node.regions or not node.is_pure or not node.outputs:
            return None
        if any(isinstance(v.spec, ListSpec) for v in node.outputs):
            return None  # two lists that grow apart would have to be copied
        key = (node.op, tuple(map(id, node.inputs)), attrs_key(node.attrs))
        first = self.scopes[-1].setdefault(key, node)
        return None if first is node else first.outputs


def attrs_key(attrs: Mapping[str, Any]) -> Any:
    """A hashable key, equal exactly for attributes that mean the same (1, 1.0 and True differ)."""
    return tuple((name, _key(attrs[name])) for name in sorted(attrs))


def _key(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return array_digest(value)
    if isinstance(value, tuple | list):
        return (type(value), tuple(map(_key, value)))
    if isinstance(value, dict):
        return tuple((k, _key(v)) for k, v in value.items())
    if isinstance(value, float | complex):
        return (type(value), repr(value))  # tells -0.0 from 0.0
    try:
        hash(value)
    except TypeError:
        return (type(value), id(value))
    return (type(value), value)
