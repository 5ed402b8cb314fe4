"""Parts of arrays that move from one iteration of a loop to the next.

Counters, and positions made of them, are written as dims of the number of the iteration: a row
``x[2 * i + 1]`` for i = 0, 1, ... is at 1 and moves by 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from treadle.core.shapes import Dim, dim_symbols, fresh_symbol, substitute
from treadle.graph.integers import Integers
from treadle.graph.ir import Node, Value
from treadle.ops.indexing.elements import ELEMENT, ELEMENT_UPDATE
from treadle.ops.indexing.index import INDEX
from treadle.ops.indexing.updates import INDEX_UPDATE, SLICE_UPDATE
from treadle.ops.registry import Op
from treadle.ops.shaping.slicing import STRIDED_SLICE


class Dependent(Exception):
    """The iterations of a loop are not done at once."""


def refuse() -> NoReturn:
    raise Dependent


class Part(NamedTuple):
    """Where an access finds its elements, along every axis of an array."""

    begin: tuple[Dim, ...]
    size: tuple[Dim, ...]
    strides: tuple[int, ...]


class Place(NamedTuple):
    """Where an iteration finds its elements along one axis of an array.

    Attributes:
        first: the position of the first iteration.
        step: the number that an iteration adds to it; 0: all iterations have the same elements.
        size: how many positions from there, up to the last.
    """

    axis: int
    first: Dim
    step: int
    size: Dim


class MovingParts:
    """The parts of arrays that a loop reads and writes.

    Methods raise `Dependent` for values that are no such part, or not known outside the loop.

    Args:
        has_value: whether a symbol has a value before the loop.
        mentioned: takes the symbols that dims mention outside the loop.

    Attributes:
        counters: symbol of a counter -> its value in an iteration.
        trips: the number of iterations, once it is known.
    """

    def __init__(
        self, integers: Integers, has_value: Callable[[str], bool], mentioned: set[str]
    ) -> None:
        self.integers, self.has_value, self.mentioned = integers, has_value, mentioned
        self.counters: dict[str, Dim] = {}
        self.trips: Dim = 0
        self.number = fresh_symbol("k")  # of an iteration

    # -- dims ------------------------------------------------------------------------------------

    def count(self, name: str, first: Dim, step: int) -> None:
        """Note a counter: its symbol, its first value, and the number that an iteration adds."""
        self.counters[name] = self.outside(first) + self.number * step

    def turn(self) -> None:
        """Number the iterations from the last one, which is first in memory."""
        turned = {str(self.number): self.trips - 1 - self.number}
        self.counters = {name: substitute(dim, turned) for name, dim in self.counters.items()}

    def moves(self, value: Value) -> tuple[Dim, int] | None:
        """The value of a scalar in the first iteration, and the number that each one adds to it."""
        dim = self.integers.dim(value)
        found = None if dim is None else self._moves(dim)
        return found if found is not None and self.is_outside(found[0]) else None

    def _moves(self, dim: Dim) -> tuple[Dim, int] | None:
        dim, name = substitute(dim, self.counters), str(self.number)
        step = substitute(dim, {name: self.number + 1}) - dim
        return (substitute(dim, {name: 0}), step) if isinstance(step, int) else None

    def outside(self, *dims: Dim) -> Dim:
        """The first dim; all symbols of all given dims must have values before the loop."""
        if not all(map(self.is_outside, dims)):
            refuse()
        self.mentioned.update(s for d in dims for s in dim_symbols(d))
        return dims[0] if dims else 0

    def is_outside(self, dim: Dim) -> bool:
        """Whether all symbols of a dim have values before the loop."""
        return all(map(self.has_value, dim_symbols(dim)))

    # -- parts -----------------------------------------------------------------------------------

    def places(self, part: Part) -> list[Place]:
        """Where the elements are along each axis."""
        found: list[Place] = []
        for axis, (begin, size, stride) in enumerate(zip(*part, strict=True)):
            first, step = self._moves(begin) or refuse()
            self.outside(first, size)
            if stride < 0:
                refuse()
            found.append(Place(axis, first, step, (size - 1) * stride + 1))
        return found

    def together(
        self, array: Value, part: Part, places: list[Place]
    ) -> tuple[Place, dict[str, Any]]:
        """The one place that moves, and as attributes of a slice the part that all iterations have
        together."""
        moving = [p for p in places if p.step]
        place = moving[0] if len(moving) == 1 else refuse()
        begin, size, strides = list(part.begin), list(part.size), list(part.strides)
        axis = place.axis
        if size[axis] != 1 or place.step < 0:
            refuse()
        begin[axis], size[axis], strides[axis] = place.first, self.trips, place.step
        return place, self.inside(array, Part(tuple(begin), tuple(size), tuple(strides)))

    def inside(self, array: Value, part: Part) -> dict[str, Any]:
        """The attributes of a slice that lies inside, also where the loop runs zero times."""
        ranges = self.integers.ranges
        for begin, size, stride, dim in zip(*part, array.spec.dims, strict=True):
            self.outside(begin, size)
            end = begin + (size - 1) * stride + 1
            if not (ranges.is_non_negative(begin) and ranges.is_less_equal(end, dim)):
                refuse()
        return part._asdict()

    def never_meet(self, a: list[Place], b: list[Place]) -> bool:
        """Whether no two iterations find the same element, one at `a`, the other at `b`: along some
        axis both places move alike, or one ends before the other begins."""
        if [p for p in a if p.step] == [p for p in b if p.step]:
            return any(p.step for p in a)
        ends_before = self.integers.ranges.is_less_equal
        return any(
            ends_before(self._end(p), q.first) or ends_before(self._end(q), p.first)
            for p, q in zip(a, b, strict=True)
        )

    def _end(self, place: Place) -> Dim:
        """The position after the last one of the last iteration."""
        return place.first + (self.trips - 1) * place.step + place.size

    # -- accesses --------------------------------------------------------------------------------

    def slice(self, node: Node) -> Part:
        """The part of a slice with known bounds."""
        attrs = node.attrs
        size = attrs.get("size") or node.inputs[-1].spec.dims
        return Part(tuple(attrs["begin"]), tuple(size), tuple(attrs["strides"]))

    def index(self, node: Node) -> Part:
        """The part of a row."""
        return self._at(node, {node.attrs["axis"]: node.inputs[1]})

    def element(self, node: Node) -> Part:
        """The part of an element."""
        rank = node.inputs[0].spec.rank
        return self._at(node, dict(enumerate(node.inputs[1 : 1 + rank])))

    def _at(self, node: Node, positions: Mapping[int, Value]) -> Part:
        dims = node.inputs[0].spec.dims
        begin: list[Dim] = [0] * len(dims)
        size = list(dims)
        for axis, position in positions.items():
            place = self.integers.dim(position)
            if place is None or not self.integers.lies_inside(position, 0, dims[axis]):
                refuse()
            begin[axis], size[axis] = place, 1
        return Part(tuple(begin), tuple(size), (1,) * len(dims))


READS: dict[Op, Callable[[MovingParts, Node], Part]] = {
    STRIDED_SLICE: MovingParts.slice,
    INDEX: MovingParts.index,
    ELEMENT: MovingParts.element,
}
UPDATES: dict[Op, Callable[[MovingParts, Node], Part]] = {
    SLICE_UPDATE: MovingParts.slice,
    INDEX_UPDATE: MovingParts.index,
    ELEMENT_UPDATE: MovingParts.element,
}
