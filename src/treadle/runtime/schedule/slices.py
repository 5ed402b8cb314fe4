"""Parts of arrays whose bounds are data: Python's rules for ``start:stop:step``, and the kernels.

The program computes from the bounds where the part begins, its step and its size. These are dims of
the kernels, which read and store at affine positions.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.records import record
from treadle.core.shapes import Dim, product
from treadle.kernel.ir import Axis, Buffer, Expr, Kernel, affine, apply, const, load, store
from treadle.ops.lowering import dim_expr

NAMES = ("start", "stop", "step")  # of the rank-0 buffers that hold the bounds


@record(frozen=True)
class Bounds:
    """A part along an axis: the first position, how many there are, and the distance between them,
    None for neighbours."""

    axis: int
    begin: Dim
    count: Dim
    step: Dim | None


def step_of() -> Expr:
    """The step that is given; the least int64, which has no negative, as the number after it."""
    return apply("max", _given("step"), _number(1 - 2**63))


def begin_and_count(given: Sequence[bool], extent: Dim, step: Dim | None) -> tuple[Expr, Expr]:
    """Python's rules for a slice of an axis: where it begins and its size, from the bounds that are
    `given` and the step, if there is one."""
    one, zero, size = _number(1), _number(0), dim_expr(extent)
    low, high = zero, size  # the least and the greatest position of a bound
    first, last = zero, size  # where Python begins and ends by itself
    if step is not None:
        back = apply("lt", dim_expr(step), zero)
        low = apply("select", back, _number(-1), zero)
        high = apply("add", size, low)
        first, last = apply("select", back, high, zero), apply("select", back, _number(-1), size)
    begin, end = (
        _bounded(_given(name), size, low, high) if is_given else default
        for name, is_given, default in zip(NAMES, given, (first, last), strict=False)
    )
    span = apply("sub", end, begin)
    if step is None:
        return begin, apply("max", span, zero)
    span = apply("max", apply("select", back, apply("neg", span), span), zero)
    width = apply("max", apply("select", back, apply("neg", dim_expr(step)), dim_expr(step)), one)
    return begin, apply("add", apply("floordiv", apply("sub", span, one), width), one)


def _bounded(place: Expr, size: Expr, low: Expr, high: Expr) -> Expr:
    """A bound that counts from the end where it is negative, between the least and the greatest."""
    negative = apply("lt", place, _number(0))
    place = apply("select", negative, apply("add", place, size), place)
    return apply("min", apply("max", place, low), high)


def _given(name: str) -> Expr:
    return load(Buffer(name, dtypes.int64, ()))


def _number(value: int) -> Expr:
    return const(value, dtypes.int64)


def slice_kernel(
    whole: Sequence[Dim], part: Sequence[Dim], dtype: DType, bounds: Bounds, combine: str | None
) -> Kernel:
    """From an array to a part of it, or from the part to the array.

    Args:
        whole, part: their dims.
        combine: how the part is stored into the array; None: the part is read.
    """
    axis = bounds.axis
    outer, inner = product(part[:axis]), product(part[axis + 1 :])
    # For each axis: its extent in the part and in the array, how far apart elements are there and
    # where they begin.
    along: list[tuple[str, Dim, Dim, Dim, Dim]] = [("row", outer, outer, 1, 0)]
    if bounds.step is None:  # a row of the part is in one piece
        sizes = part[axis] * inner, whole[axis] * inner
        along.append(("place", *sizes, 1, bounds.begin * inner))
    else:
        along.append(("place", part[axis], whole[axis], bounds.step, bounds.begin))
        along.append(("column", inner, inner, 1, 0))
    along = [a for a in along if a[0] == "place" or a[1] != 1]
    axes = [Axis(name, extent) for name, extent, _, _, _ in along]
    array = Buffer("whole", dtype, tuple(extent for _, _, extent, _, _ in along))
    taken = Buffer("part", dtype, tuple(a.extent for a in axes))
    index = [affine([(a, step)], first) for a, (*_, step, first) in zip(axes, along, strict=True)]
    if combine is None:
        stored = store(taken, *axes, value=load(array, *index))
        return Kernel(tuple(axes), (array, taken), (stored,))
    stored = store(array, *index, value=load(taken, *axes), combine=combine, unique=True)
    return Kernel(tuple(axes), (taken, array), (stored,))


def zeros_kernel(dims: Sequence[Dim], dtype: DType) -> Kernel:
    """Zeros everywhere in an array."""
    place = Axis("place", product(dims))
    array = Buffer("whole", dtype, (place.extent,))
    return Kernel((place,), (array,), (store(array, place, value=const(0, dtype)),))
