"""How far the steps that are no kernels reach into their arrays: library calls and updates.

As for kernels (`bounds`), an access that is not proved to stay inside becomes a condition on sizes,
which the program compares before it runs the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from treadle.core.inequalities import is_at_least
from treadle.core.shapes import Dim, compound, product
from treadle.graph.ir import Node, Value
from treadle.kernel.ir import Affine, Axis, Buffer, Store, affine, const
from treadle.ops.properties import PartKind
from treadle.runtime.bounds import BoundsError, Sizes, Unproved, stored_outside
from treadle.runtime.fusion.strided import View


@dataclass(frozen=True)
class Reach:
    """The elements of an array that a step touches: those at ``first + sum(position * stride)``.

    Attributes:
        levels: (extent, stride): positions go from 0 to the extent, strides count elements.
        first: the element at which all positions are 0.
    """

    levels: tuple[tuple[Dim, Dim], ...]
    first: Dim = 0

    def from_element(self, first: Dim) -> Reach:
        """The same in an array that begins so many elements earlier."""
        return Reach(self.levels, self.first + first)

    def excess(self, elements: Dim, sizes: Sizes) -> Dim:
        """By how much it leaves an array of so many elements; 0 where it is proved not to.

        Raises:
            BoundsError: it is not known in which direction a stride leads.
        """
        extents = [extent for extent, _ in self.levels]
        if any(sizes.canonical(e) == 0 for e in extents):
            return 0
        low, high = self._ends()
        beyond: Dim = 0
        for room in (elements - 1 - high, low):
            if not _is_proved(room, extents, sizes):
                beyond = beyond + compound("max", -room, 0)
        return beyond * product(compound("min", e, 1) for e in extents if not isinstance(e, int))

    def _ends(self) -> tuple[Dim, Dim]:
        """The least and the greatest element."""
        low = high = self.first
        for extent, stride in self.levels:
            span = (extent - 1) * stride
            if is_at_least(stride, 0):
                high = high + span
            elif is_at_least(0, stride):
                low = low + span
            else:
                raise BoundsError(f"the sign of a stride of {stride} is not known")
        return low, high


def whole(dims: Sequence[Dim]) -> Reach:
    """All elements of an array."""
    return Reach(((product(dims), 1),))


def _is_proved(room: Dim, extents: Sequence[Dim], sizes: Sizes) -> bool:
    """Whether there is room, where no extent is 0."""
    room = sizes.canonical(room)
    own = [sizes.canonical(e) for e in extents if not isinstance(e, int)]
    some = [e - 1 for e in own]
    return is_at_least(room, 0, some) or is_at_least(
        room, 0, [*some, *sizes.facts([room, *own], own)]
    )


# -- library calls ---------------------------------------------------------------------------------


def routine_conditions(
    node: Node, reaches: Sequence[Reach | None], views: Sequence[View], sizes: Sizes
) -> list[Unproved]:
    """The conditions on sizes under which a routine stays inside its arrays.

    Args:
        reaches: of its operands, then of its results.
        views: how its operands lie in other arrays; none where they have memory of their own.

    Raises:
        BoundsError: it is not known in which direction a stride leads.
    """
    found: list[Unproved] = []
    values = [*node.inputs, *node.outputs]
    for number, (value, reach) in enumerate(zip(values, reaches, strict=False)):
        if reach is None:
            continue
        array: Value = value
        first: Dim = 0
        if number < len(views):
            array, first = views[number].base, views[number].offset
        excess = reach.from_element(first).excess(product(array.spec.dims), sizes)
        if excess != 0:
            found.append(Unproved(str(array), excess))
    return found


# -- updates ---------------------------------------------------------------------------------------


def update_conditions(node: Node, sizes: Sizes) -> list[Unproved]:
    """The conditions on sizes for the part that an update writes, but for positions in data.

    Raises:
        BoundsError: something can be neither proved nor written as a condition on sizes.
    """
    return [c for store in _stores(node) for c in stored_outside(store, sizes)]


def is_checked_before(node: Node) -> bool:
    """Whether the positions of an update are known, or were checked by a node before it."""
    return node.op.part is not None and node.op.part.kind.is_checked_before


def _stores(node: Node) -> Iterator[Store]:
    """An update as a store of one element of its part, over the axes whose positions are known."""
    array, part = node.inputs[0].spec, node.inputs[-1].spec
    assert node.op.part is not None
    pairs = _AXES[node.op.part.kind](node)
    if not pairs:
        return
    axes = [Axis(f"p{k}", extent) for k, (_, extent, _, _) in enumerate(pairs)]
    index: list[Affine] = []
    for axis, (_, _, begin, stride) in zip(axes, pairs, strict=True):
        index.append(affine([(axis, stride)], begin))
    shape = tuple(dim for dim, _, _, _ in pairs)
    target = Buffer(str(node.inputs[0]), array.dtype, shape)
    yield Store(target, tuple(index), const(0, part.dtype))


# For an axis of an updated array: its extent, the part's extent, beginning and step.
_Along = tuple[Dim, Dim, Dim, Dim]


def _of_slice(node: Node) -> list[_Along]:
    array, part = (v.spec.dims for v in node.inputs)
    return list(zip(array, part, node.attrs["begin"], node.attrs["strides"], strict=True))


def _but_one(node: Node) -> list[_Along]:
    """All axes but that whose positions are data, which the part may lack."""
    axis, array, part = node.attrs["axis"], node.inputs[0].spec.dims, node.inputs[-1].spec.dims
    rest = [*array[:axis], *array[axis + 1 :]]
    own = part if len(part) < len(array) else (*part[:axis], *part[axis + 1 :])
    return _aligned(rest, own)


def _of_rows(node: Node) -> list[_Along]:
    """The axes behind those that a row of positions names."""
    array, positions, part = (v.spec.dims for v in node.inputs)
    depth = positions[-1]
    assert isinstance(depth, int)
    return _aligned(array[depth:], part[len(positions) - 1 :])


def _of_segments(node: Node) -> list[_Along]:
    array, data, ids = (v.spec.dims for v in node.inputs)
    return _aligned(array[1:], data[len(ids) :])


def _aligned(array: Sequence[Dim], part: Sequence[Dim]) -> list[_Along]:
    return [(dim, extent, 0, 1) for dim, extent in zip(array, part, strict=True)]


_AXES: dict[PartKind, Callable[[Node], list[_Along]]] = {
    PartKind.ELEMENT: lambda node: [],
    PartKind.INDEX: _but_one,
    PartKind.SLICE: _of_slice,
    PartKind.DYNAMIC_SLICE: _but_one,
    PartKind.ROWS: _of_rows,
    PartKind.SEGMENTS: _of_segments,
}
