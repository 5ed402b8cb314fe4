"""Element shapes of lists: the elements of a list decide the spec of all its versions.

A TensorArray is made before the loop that writes it, when its element shape is not known yet.

    %0: list f32[*] = list_new()                %0: list f32[2] = list_new()
    %1: list f32[*] = while(%0, %x: f32[2])  ->  %1: list f32[2] = while(%0, %x: f32[2])
      ... list_set(%a, %i, %x) ...                ... list_set(%a, %i, %x) ...
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.shapes import ANY, Dim
from treadle.core.spec import ListSpec, has_element_shape
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.ops.collections.lists import LIST_NEW
from treadle.ops.control.control_flow import WHILE


def infer_element_shapes(graph: Graph) -> bool:
    """Give lists of unknown element shape the shape of the arrays that are stored in them."""
    groups = _Groups()
    groups.region(graph)
    return _learn(groups, graph)


def infer_element_shapes_of(node: Node, graph: Graph) -> bool:
    """The same for the lists of one control flow node of a graph that is being traced."""
    groups = _Groups()
    groups.node(node)
    for region in node.regions:
        groups.region(region)
    return _learn(groups, graph)


def _learn(groups: _Groups, graph: Graph) -> bool:
    known = frozenset().union(*(p.spec.symbols() for p in graph.params))
    fixed = {groups.find(v) for v in graph.params if isinstance(v.spec, ListSpec)}
    changed = False
    for root, values in groups.members().items():
        if root not in fixed and not all(has_element_shape(v.spec) for v in values):
            changed |= _unify(values, known)
    return changed


class _Groups:
    """Sets of list values that are versions of one another (union-find)."""

    def __init__(self) -> None:
        self.parents: dict[Value, Value] = {}

    def find(self, value: Value) -> Value:
        self.parents.setdefault(value, value)
        while self.parents[value] is not value:
            self.parents[value] = self.parents[self.parents[value]]
            value = self.parents[value]
        return value

    def join(self, first: Sequence[Value], second: Sequence[Value]) -> None:
        for a, b in zip(first, second, strict=False):
            if isinstance(a.spec, ListSpec) and isinstance(b.spec, ListSpec):
                self.parents[self.find(a)] = self.find(b)

    def members(self) -> dict[Value, list[Value]]:
        found: dict[Value, list[Value]] = {}
        for value in list(self.parents):
            found.setdefault(self.find(value), []).append(value)
        return found

    def region(self, region: Region) -> None:
        for node in region.nodes:
            self.node(node)
            for inner in node.regions:
                self.region(inner)

    def node(self, node: Node) -> None:
        for region in node.regions:
            self.join(node.region_inputs, region.params)
        if node.op is WHILE:
            body = node.regions[1]
            self.join(body.results, body.params)
            self.join(body.results, node.outputs)
        elif node.regions:
            for region in node.regions:
                self.join(region.results, node.outputs)
        else:
            lists = [v for v in (*node.inputs, *node.outputs) if isinstance(v.spec, ListSpec)]
            self.join(lists, lists[1:])


def _unify(values: list[Value], known: frozenset[str]) -> bool:
    """One spec for all values of a group, from those that have an element shape."""
    shapes = [v.spec.dims for v in values if has_element_shape(v.spec)]
    if not shapes or any(len(s) != len(shapes[0]) for s in shapes):
        return False
    dims = [_common(sizes, known) for sizes in zip(*shapes, strict=True)]
    spec = ListSpec(dims, values[0].spec.dtype)
    for value in values:
        value.spec = spec
        if value.node is not None and value.node.op is LIST_NEW:
            value.node.attrs["dims"] = spec.dims
    return True


def _common(sizes: Sequence[Dim], known: frozenset[str]) -> Dim:
    """The dim that all elements have; open when they differ or it is known in one place only."""
    first = sizes[0]
    if any(size != first for size in sizes):
        return ANY
    return first if isinstance(first, int) or first.symbols() <= known else ANY
