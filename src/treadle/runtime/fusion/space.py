"""Iteration spaces: which loops a node runs over, and where its output stands in them."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.records import record
from treadle.core.shapes import Dim
from treadle.graph.ir import Node, Value
from treadle.kernel.ir import Affine, Axis, Expr, Index, Load, Reduce, as_index, postorder
from treadle.runtime.fusion.expressions import ZERO, Expressions
from treadle.runtime.roles import kind_of

Space = tuple[Dim, ...]


@record(frozen=True)
class Placement:
    """How a node runs in a space.

    out: for every output dim the position in the space that it runs along; None for dims of 1.
    reduced: the positions that the rule's reduction axes run along, in the order it asks for
        them; None where that is not a whole dim of the space.
    """

    space: Space
    out: tuple[int | None, ...]
    reduced: tuple[int | None, ...] = ()


def placement_of(node: Node) -> Placement:
    """The space that a node needs when it starts a kernel of its own."""
    dims = node.outputs[0].spec.dims
    own = Placement(dims, tuple(None if d == 1 else p for p, d in enumerate(dims)))
    if kind_of(node) != "reduce":
        return own
    return _reduction(node, own) or own


def axes_for(space: Space) -> tuple[Axis, ...]:
    """The kernel axes of a space, one for each position."""
    return tuple(Axis(f"i{p}", d) for p, d in enumerate(space))


def index_at(space: Space, positions: Sequence[int | None]) -> tuple[Index, ...]:
    axes = axes_for(space)
    return tuple(ZERO if p is None or space[p] == 1 else as_index(axes[p]) for p in positions)


def _reduction(node: Node, own: Placement) -> Placement | None:
    """The space of a reduction: the dims of the operand that its reduction axes run along.

    The rule is run on plain loads to see through which index it reads the operand.
    """
    asked: list[Axis] = []

    class Recorder(Expressions):
        def new_axis(self, extent: Dim) -> Axis:
            asked.append(Axis(f"r{len(asked)}", extent))
            return asked[-1]

    build = Recorder(lambda value, index: value in node.outputs, lambda _: ())
    out = index_at(own.space, own.out)
    expr = build.element(node.outputs[0], out)
    order = postorder([expr])
    if not asked:  # reduces along its own output axes, as softmax does
        return own if _reduces_alone(order) else None
    for load in (e for e in order if isinstance(e, Load)):
        found = _from_operand(load, asked, own)
        if found is not None:
            return found if _no_capture(order, asked, found) else None
    return None


def _from_operand(load: Load, asked: Sequence[Axis], own: Placement) -> Placement | None:
    """The placement in the space of `load`'s buffer, when every index there is a plain axis."""
    outer = axes_for(own.space)
    place: dict[Axis, int] = {}
    for position, index in enumerate(load.index):
        if load.buffer.shape[position] == 1 and index is ZERO:
            continue
        axis = _plain_axis(index)
        if axis is None or axis in place:
            return None
        place[axis] = position
    if not any(a in place for a in asked):
        return None
    space = load.buffer.shape
    positions = [None if p is None else place.get(outer[p]) for p in own.out]
    missing = [p for p, q in zip(own.out, positions, strict=True) if p is not None and q is None]
    if missing:  # an output dim that the operand does not have
        return None
    if any(a not in place and a.extent != 1 for a in asked):
        return None
    return Placement(space, tuple(positions), tuple(place.get(a) for a in asked))


def _plain_axis(index: Index) -> Axis | None:
    if not isinstance(index, Affine) or index.offset != 0 or len(index.terms) != 1:
        return None
    axis, coefficient = index.terms[0]
    return axis if coefficient == 1 else None


def _no_capture(order: Sequence[Expr], asked: Sequence[Axis], found: Placement) -> bool:
    """Whether renaming the axes to axes of the space makes no two of them one."""
    used = [p for p in (*found.out, *found.reduced) if p is not None]
    return len(set(used)) == len(used) and len(asked) == len(found.reduced)


def _reduces_alone(order: Sequence[Expr]) -> bool:
    return any(isinstance(e, Reduce) for e in order)


def place_in(space: Space, node: Node) -> Placement | None:
    """How an elementwise node runs in a given space: over all of it, or over its leading dims."""
    dims = node.outputs[0].spec.dims
    if dims == space:
        return Placement(space, tuple(None if d == 1 else p for p, d in enumerate(dims)))
    leading = len(dims)
    while leading and dims[leading - 1] == 1:
        leading -= 1
    rank_fits = len(dims) == len(space) or leading == len(dims) < len(space)
    if rank_fits and dims[:leading] == space[:leading]:
        return Placement(space, tuple(None if d == 1 else p for p, d in enumerate(dims)))
    return None


def canonical_index(value: Value, placement: Placement) -> tuple[Index, ...]:
    """The index of a value at a point of the space."""
    return index_at(placement.space, placement.out)
