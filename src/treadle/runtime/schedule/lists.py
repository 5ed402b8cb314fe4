"""Which lists a program can hold natively: those whose elements all have one known shape.

A list made without an element shape gets it from what is stored in it, wherever the list goes:
values that may be the same list at run time form a class, and share what any of them tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from treadle.core.shapes import Dim, dim_symbols
from treadle.core.spec import ListSpec
from treadle.graph.ir import Node, Region, Value
from treadle.ops.lists import has_element_shape

Dims = tuple[Dim, ...]

NATIVE_LIST_OPS = frozenset(
    {"list_new", "list_push", "list_get", "list_set", "list_length", "list_truncate",
     "list_extend", "list_stack", "list_unstack"}
)  # fmt: skip


def element_dims(graph: Region, symbols: AbstractSet[str]) -> dict[Value, Dims] | None:
    """The element shape of every list in the graph; None where a list must be a Python object.

    Args:
        symbols: those whose values are known when the program starts.
    """
    classes = _Classes()
    shapes: list[tuple[Value, Sequence[Dim]]] = []
    for node in graph.walk():
        touched = [v for v in (*node.inputs, *node.outputs) if isinstance(v.spec, ListSpec)]
        if touched and not node.regions and node.op.name not in NATIVE_LIST_OPS:
            return None
        for value in touched:
            classes.add(value)
        for a, b in _same_list(node):
            classes.join(a, b)
        shapes += _stored(node)
    return classes.resolve(shapes, symbols)


def _same_list(node: Node) -> Iterator[tuple[Value, Value]]:
    """Pairs of values that may be one list."""
    pairs: list[tuple[Value, Value]] = []
    if node.op.name == "cond":
        for region in node.regions:
            pairs += zip(region.params, node.inputs[1:], strict=True)
            pairs += zip(region.results, node.outputs, strict=True)
    elif node.op.name == "while":
        condition, body = node.regions
        pairs += zip(condition.params, node.inputs, strict=True)
        pairs += zip(body.params, node.inputs, strict=True)
        pairs += zip(body.results, body.params, strict=False)
        pairs += zip(node.outputs, body.params, strict=False)
    elif node.inputs and node.outputs:
        pairs.append((node.inputs[0], node.outputs[0]))
    for a, b in pairs:
        if isinstance(a.spec, ListSpec) and isinstance(b.spec, ListSpec):
            yield a, b


def _stored(node: Node) -> Iterator[tuple[Value, Sequence[Dim]]]:
    """(list, element shape) for what a node puts into a list."""
    if node.op.name in ("list_push", "list_set"):
        yield node.inputs[0], node.inputs[-1].spec.dims
    elif node.op.name == "list_unstack":
        yield node.outputs[0], node.inputs[0].spec.dims[1:]


class _Classes:
    """Values in classes, by union."""

    def __init__(self) -> None:
        self.above: dict[Value, Value] = {}

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
    ) -> dict[Value, Dims] | None:
        """Every value's element shape; None where one is open or two disagree."""
        known: dict[Value, Dims] = {}
        for value, dims in stored:
            shape = tuple(dims)
            told = all(dim_symbols(d) <= symbols for d in dims)
            if not told or known.setdefault(self.root(value), shape) != shape:
                return None
        for value in list(self.above):
            dims = value.spec.dims
            told = has_element_shape(value.spec) and all(dim_symbols(d) <= symbols for d in dims)
            if told and known.setdefault(self.root(value), dims) != dims:
                return None
        if any(self.root(v) not in known for v in self.above):
            return None
        return {v: known[self.root(v)] for v in self.above}
