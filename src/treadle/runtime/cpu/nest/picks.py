"""Sums that pick one element: ``sum[j](select(j == k, v[j], 0))`` is ``v[k]``, read directly."""

from __future__ import annotations

from dataclasses import replace

from treadle.core import dtypes
from treadle.core.inequalities import is_at_least
from treadle.kernel.ir import (
    Apply,
    Axis,
    Const,
    Expr,
    Extent,
    Index,
    Iota,
    Kernel,
    Load,
    Reduce,
    Store,
    apply,
    cast,
    const,
    index_axes,
    postorder,
)  # fmt: skip
from treadle.kernel.rewrite import is_axis, rebuilt


def without_picks(kernel: Kernel) -> Kernel:
    """The kernel with the element in place of each sum that picks one."""
    exprs = kernel.exprs
    if not any(isinstance(e, Reduce) and e.op == "sum" for e in exprs):
        return kernel
    memo: dict[Expr, Expr] = {}
    for e in exprs:
        same = rebuilt(e, memo.__getitem__)
        memo[e] = _picked(same) or same
    stores = tuple(_stored(s, memo) for s in kernel.stores)
    return replace(kernel, axes=_axes(kernel, stores), stores=stores)


def _stored(s: Store, memo: dict[Expr, Expr]) -> Store:
    index = tuple(memo[i] if isinstance(i, Expr) else i for i in s.index)
    return replace(s, index=index, value=memo[s.value])


def _axes(kernel: Kernel, stores: tuple[Store, ...]) -> tuple[Axis, ...]:
    """The axes that are still in use. Symbolic ones stay: they order the kernel's symbols."""
    exprs = postorder([e for s in stores for e in s.roots])
    used = {a for e in exprs if isinstance(e, Reduce) for a in e.over}
    used.update(*(s.axes for s in stores))
    return tuple(a for a in kernel.axes if a in used or not isinstance(a.extent, int))


def _picked(e: Expr) -> Expr | None:
    """The element that a sum picks, 0 where there is none; None for other expressions."""
    if not isinstance(e, Reduce) or e.op != "sum" or len(e.over) != 1:
        return None
    (axis,), chosen = e.over, e.value
    if not isinstance(chosen, Apply) or chosen.fn != "select":
        return None
    hit, value, other = chosen.args
    zero = isinstance(other, Const) and not any(other.bits)
    place = _place(hit, axis) if zero else None
    found = None if place is None else _at(value, axis, place)
    if place is None or found is None:
        return None
    first = apply("ge", place, const(0, place.dtype))
    inside = apply("and", first, apply("lt", place, Extent(axis.extent, place.dtype)))
    # A sum that starts from 0 never gives -0.
    return apply("add", apply("select", inside, found, other), other)


def _place(hit: Expr, axis: Axis) -> Expr | None:
    """k in ``j == k`` for the position j along the axis."""
    if not isinstance(hit, Apply) or hit.fn != "eq":
        return None
    for j, k in (hit.args, hit.args[::-1]):
        wide = j.dtype in (dtypes.int32, dtypes.int64)
        if isinstance(j, Iota) and j.axis is axis and axis not in k.axes and wide:
            return k
    return None


def _fill(load: Load, valid: Expr | None) -> Const | None:
    return None if valid is None else const(0, load.dtype)


def _at(e: Expr, axis: Axis, place: Expr) -> Expr | None:
    """`e` where the axis has the position `place`; None where that is not expressible."""
    if axis not in e.axes:
        return e
    if isinstance(e, Iota):
        return cast(place, e.dtype)
    parts = {c: _at(c, axis, place) for c in e.children}
    if any(p is None for p in parts.values()):
        return None
    if isinstance(e, Load):
        index: list[Index] = []
        for i in e.index:
            if isinstance(i, Expr):
                index.append(parts[i])  # type: ignore[arg-type]
            elif axis not in index_axes(i):
                index.append(i)
            elif is_axis(i, axis):
                index.append(place)
            else:
                return None
        valid = e.valid and parts[e.valid]
        if not is_at_least(axis.extent, 1):  # a sum over nothing reads nothing
            some = apply("gt", Extent(axis.extent), const(0, dtypes.int64))
            valid = some if valid is None else apply("and", valid, some)
        return Load(e.buffer, tuple(index), valid, e.fill if e.valid else _fill(e, valid))
    return rebuilt(e, parts.__getitem__)  # type: ignore[arg-type]
