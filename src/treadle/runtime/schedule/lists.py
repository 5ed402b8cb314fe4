"""The shapes of the elements of lists: one shape for all elements, or only their rank.

A list made without an element shape gets it from the elements that are stored in it, wherever the
list goes: values that may be the same list at run time form a class, and a shape that is found for
one of them holds for the class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeAlias

from treadle.core.shapes import Dim, dim_symbols
from treadle.core.spec import (
    ListSpec,
    has_element_shape,
)
from treadle.graph.ir import Node, Region, Value
from treadle.ops.collections.lists import (
    LIST_EXTEND,
    LIST_NEW,
    LIST_SPLIT,
    LIST_UNSTACK,
)
from treadle.ops.collections.ragged_lists import LIST_UNPACK
from treadle.ops.control.control_flow import COND, WHILE
from treadle.ops.lowering import ListForm

Dims = tuple[Dim, ...]


class Ragged(NamedTuple):
    """The elements of a list may differ in shape.

    Attributes:
        rank: of every element; holes: whether some may not have been written.
    """

    rank: int
    holes: bool


# The shape of all elements of a list, or that they have several shapes.
ElementDims: TypeAlias = "Dims | Ragged"


def element_dims(graph: Region, symbols: AbstractSet[str]) -> dict[Value, ElementDims] | None:
    """The shapes of the elements of every list in the graph; None where a list must be a Python
    object.

    Args:
        symbols: those whose values are known when the program starts.
    """
    classes = _Classes()
    shapes: list[tuple[Value, Sequence[Dim]]] = []
    for node in graph.walk():
        touched = [v for v in (*node.inputs, *node.outputs) if isinstance(v.spec, ListSpec)]
        form = list_form(node)
        if touched and not node.regions and (form is None or not form.native):
            return None
        for value in touched:
            classes.add(value)
            if form is not None and form.ragged:
                classes.ragged.append(value)
            if _leaves_holes(node):
                classes.with_holes.append(value)
        for a, b in _same_list(node):
            classes.join(a, b)
        shapes += _stored(node)
    return classes.resolve(shapes, symbols)


def _same_list(node: Node) -> Iterator[tuple[Value, Value]]:
    """Pairs of values that may be one list."""
    pairs: list[tuple[Value, Value]] = []
    for region in node.regions:
        pairs += zip(region.params, node.region_inputs, strict=True)
    if node.op is COND:
        for region in node.regions:
            pairs += zip(region.results, node.outputs, strict=True)
    elif node.op is WHILE:
        body = node.regions[1]
        pairs += zip(body.results, body.params, strict=False)
        pairs += zip(node.outputs, body.params, strict=False)
    elif node.inputs and node.outputs:
        pairs += [(value, node.outputs[0]) for value in node.inputs]
    for a, b in pairs:
        if isinstance(a.spec, ListSpec) and isinstance(b.spec, ListSpec):
            yield a, b


def _stored(node: Node) -> Iterator[tuple[Value, Sequence[Dim]]]:
    """(list, element shape) for every element that a node puts into a list."""
    form = list_form(node)
    if form is not None and form.puts:
        yield node.inputs[0], node.inputs[-1].spec.dims
    elif node.op is LIST_UNSTACK:
        yield node.outputs[0], node.inputs[0].spec.dims[1:]
    elif node.op is LIST_SPLIT:
        yield node.outputs[0], node.inputs[0].spec.dims


def _leaves_holes(node: Node) -> bool:
    """Whether a node may give a list elements that nobody has written."""
    made = node.op is LIST_NEW and bool(node.inputs)
    return made or node.op in (LIST_EXTEND, LIST_UNPACK) or bool(node.attrs.get("grow"))


def list_form(node: Node) -> ListForm | None:
    """The record of the op of a node on lists; None for other nodes."""
    return node.op.lower if isinstance(node.op.lower, ListForm) else None


def changes_list(node: Node) -> bool:
    """Whether a node gives its first operand, a list, back changed."""
    form = list_form(node)
    return form is not None and form.result == "changed"


def puts_element(node: Node) -> bool:
    """Whether a node stores its last operand in a list."""
    form = list_form(node)
    return form is not None and form.puts


class _Classes:
    """Values in classes, by union.

    Attributes:
        ragged: values of lists that are used as only lists of arrays of several shapes can be.
        with_holes: values of lists of which some elements may not have been written.
    """

    def __init__(self) -> None:
        self.above: dict[Value, Value] = {}
        self.ragged: list[Value] = []
        self.with_holes: list[Value] = []

    def add(self, value: Value) -> None:
        self.above.setdefault(value, value)

    def root(self, value: Value) -> Value:
        self.add(value)
        while self.above[value] is not value:
            value = self.above[value]
        return value

    def join(self, a: Value, b: Value) -> None:
        self.above[self.root(a)] = self.root(b)

    def resolve(
        self, stored: list[tuple[Value, Sequence[Dim]]], symbols: AbstractSet[str]
    ) -> dict[Value, ElementDims] | None:
        """The shapes of the elements of every value; None where not even a rank is known."""
        known: dict[Value, Dims] = {}
        ragged = {self.root(v) for v in self.ragged}
        ranks: dict[Value, set[int]] = {}
        named = [(v, v.spec.dims) for v in self.above if has_element_shape(v.spec)]
        for value, dims in (*stored, *named):
            root, shape = self.root(value), tuple(dims)
            ranks.setdefault(root, set()).add(len(shape))
            told = all(dim_symbols(d) <= symbols for d in shape)
            if told and known.setdefault(root, shape) != shape:
                ragged.add(root)
        for value, dims in stored:
            if not all(dim_symbols(d) <= symbols for d in dims):
                ragged.add(self.root(value))
        roots = {v: self.root(v) for v in self.above}
        if any(len(ranks.get(root, ())) != 1 for root in roots.values()):
            return None
        ragged |= {root for root in roots.values() if root not in known}
        holes = {self.root(v) for v in self.with_holes}
        found: dict[Value, ElementDims] = {}
        for value, root in roots.items():
            (rank,) = ranks[root]
            found[value] = Ragged(rank, root in holes) if root in ragged else known[root]
        return found
