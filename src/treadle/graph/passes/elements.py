"""Chains of views that end in one element become a read or an update of that element.

    %1 = index(%x, %i)                     %2 = element(%x, %i, %j)
    %2 = index(%1, %j)               ->
    %3 = index_update(%1, %j, %v)          %4 = element_update(%x, %i, %j, %v)
    %4 = index_update(%x, %i, %3)

Without this each element of ``x[i, j]`` costs a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.broadcasting import OF_SIZE
from treadle.ops.conversion import CONST
from treadle.ops.indexing.elements import ELEMENT, ELEMENT_UPDATE
from treadle.ops.indexing.index import INDEX
from treadle.ops.indexing.updates import INDEX_UPDATE, SLICE_UPDATE
from treadle.ops.shaping.reshaping import ENSURE_SHAPE, RESHAPE
from treadle.ops.shaping.slicing import STRIDED_SLICE

# How a view is taken: ("index", axis, position), ("slice", begin, size, strides) or
# ("dims", dims); an update of that view has the same cut.
Cut: TypeAlias = tuple[object, ...]
Position: TypeAlias = "Value | int"


def write_elements(graph: Graph) -> bool:
    """Replace reads and updates of single elements."""
    return _Elements(graph).run()


class _Elements(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.depth = 0  # of regions inside the graph

    def enter(self, region: Region) -> None:
        self.depth += 1

    def leave(self, region: Region) -> None:
        self.depth -= 1

    def visit(self, node: Node) -> Replacement:
        if node.op in (INDEX, RESHAPE) and node.outputs[0].spec.rank == 0:
            return self._read(node)
        if node.op in (INDEX_UPDATE, SLICE_UPDATE):
            return self._update(node)
        return None

    def _read(self, node: Node) -> Replacement:
        for root, cuts in reversed(list(_views(node.outputs[0]))):
            positions = _positions(root, cuts)
            if positions is not None and len(positions) > 1 and _vary(positions):
                return [self.emit(ELEMENT, [root, *map(self._position, positions)], {})]
        return None

    def _update(self, node: Node) -> Replacement:
        x = node.inputs[0]
        found = _updated_element(node)
        if found is None:
            return None
        positions, value = found
        if not _vary(positions) and self.depth < 2:  # known parts fuse with the nodes around them
            return None
        places = [self._position(p) for p in positions]
        if len(places) > 1:
            return [self.emit(ELEMENT_UPDATE, [x, *places, value], {})]
        if node.op is INDEX_UPDATE:
            return None
        return [self.emit(INDEX_UPDATE, [x, *places, value], {"axis": 0})]

    def _position(self, position: Position) -> Value:
        return position if isinstance(position, Value) else self.constant(np.int64(position))


def _vary(positions: Sequence[Position]) -> bool:
    """Whether a position is known only when the program runs."""
    return any(isinstance(p, Value) for p in positions)


def _views(value: Value) -> Iterator[tuple[Value, list[Cut]]]:
    """The arrays that a value is a view of, nearest first, each with the cuts down to the value."""
    cuts: list[Cut] = []
    while value.node is not None:
        cut = _cut(value.node)
        same = "as_is" in value.node.op.tags or value.node.op in (ENSURE_SHAPE, OF_SIZE)
        if cut is None and not same:
            return
        if cut is not None:
            cuts = [cut, *cuts]
        value = value.node.inputs[0]
        yield value, cuts


def _cut(node: Node) -> Cut | None:
    """How a node takes a view of its first input."""
    attrs = node.attrs
    if node.op is INDEX:
        return "index", attrs["axis"], node.inputs[1]
    if node.op is STRIDED_SLICE:
        return "slice", tuple(attrs["begin"]), tuple(attrs["size"]), tuple(attrs["strides"])
    return ("dims", node.outputs[0].spec.dims) if node.op is RESHAPE else None


class _Axes:
    """Where the axes of a view lie in an array: each axis of the array is whole, or fixed at a
    position; an axis of the view of size 1 is none of the array's."""

    def __init__(self, root: Value) -> None:
        self.dims = root.spec.dims
        self.fixed: dict[int, Position] = {a: 0 for a, d in enumerate(self.dims) if d == 1}
        self.axes = [None if d == 1 else a for a, d in enumerate(self.dims)]

    def take(self, cut: Cut) -> bool:
        """Follow a cut; False where the view is no element, row or slice of the array."""
        match cut:
            case ("index", int(axis), Value() as position):
                at = self.axes.pop(axis)
                if at is not None:
                    self.fixed[at] = position
                return at is not None
            case ("slice", tuple(begin), tuple(size), tuple(strides)):
                return self._slice(begin, size, strides)
            case ("dims", tuple(dims)):
                whole = iter([a for a in self.axes if a is not None])
                self.axes = [None if d == 1 else next(whole, None) for d in dims]
                sizes = tuple(1 if a is None else self.dims[a] for a in self.axes)
                return sizes == dims and next(whole, None) is None
            case ("element", tuple(positions)):
                return self._element(positions)
        return False

    def _element(self, positions: Sequence[Value]) -> bool:
        for axis, position in zip(self.axes, positions, strict=True):
            if axis is None and not _is_zero(position):
                return False
            if axis is not None:
                self.fixed[axis] = position
        return True

    def _slice(
        self, begin: Sequence[object], size: Sequence[object], strides: Sequence[object]
    ) -> bool:
        cuts = zip(list(self.axes), begin, size, strides, strict=True)
        for number, (axis, first, count, step) in enumerate(cuts):
            if axis is None:
                if first != 0 or count != 1:
                    return False
            elif count == 1 and isinstance(first, int):
                self.fixed[axis], self.axes[number] = first, None
            elif first != 0 or step != 1 or count != self.dims[axis]:
                return False
        return True

    @property
    def positions(self) -> list[Position] | None:
        """The position along every axis of the array; None where the view has more elements."""
        if len(self.fixed) < len(self.dims):
            return None
        return [self.fixed[a] for a in range(len(self.dims))]


def _is_zero(position: Value) -> bool:
    made = position.node
    return made is not None and made.op is CONST and not made.attrs["value"].any()


def _positions(root: Value, cuts: Sequence[Cut]) -> list[Position] | None:
    axes = _Axes(root)
    return axes.positions if all(map(axes.take, cuts)) else None


def _updated_element(node: Node) -> tuple[list[Position], Value] | None:
    """The positions and the new value, where an update changes one element."""
    x, cuts = node.inputs[0], list[Cut]()
    axes = _Axes(x)
    while True:
        cut = _update_cut(node)
        if cut is None or not axes.take(cut):
            return None
        cuts.append(cut)
        part = node.inputs[-1]
        while part.node is not None and part.node.op is RESHAPE and part.spec.rank:
            part = part.node.inputs[0]
            if part.spec.rank:
                cuts.append(("dims", part.spec.dims))
                if not axes.take(cuts[-1]):
                    return None
        if part.spec.rank == 0:
            positions = axes.positions
            return None if positions is None else (positions, part)
        inner = part.node
        if inner is None or not inner.inputs or (x, cuts) not in list(_views(inner.inputs[0])):
            return None
        if inner.op is ELEMENT_UPDATE:  # of the view, written when that was visited
            *places, value = inner.inputs[1:]
            positions = axes.positions if axes.take(("element", tuple(places))) else None
            return None if positions is None else (positions, value)
        node = inner


def _update_cut(node: Node) -> Cut | None:
    """The view that an update changes."""
    attrs = node.attrs
    if node.op is INDEX_UPDATE:
        return "index", attrs["axis"], node.inputs[1]
    if node.op is SLICE_UPDATE:
        size = node.inputs[1].spec.dims
        return "slice", tuple(attrs["begin"]), size, tuple(attrs["strides"])
    return None
