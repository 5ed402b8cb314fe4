"""Joining neighbouring axes that are only ever walked together, in row-major order."""

from __future__ import annotations

from treadle.kernel.ir import (
    Affine,
    Axis,
    Buffer,
    Expr,
    Index,
    Iota,
    Kernel,
    Load,
    Reduce,
    Scan,
    index_axes,
)  # fmt: skip
from treadle.kernel.rewrite import Rewrite, is_axis

Access = tuple[Buffer, tuple[Index, ...]]


def collapse(kernel: Kernel, kept: int = 0) -> tuple[Kernel, bool]:
    """The kernel with as few axes as possible, and whether anything changed.

    kept: how many of the last axes are not joined with others.
    """
    changed = False
    position = 0
    while position + 1 < len(kernel.axes) - kept:
        joined = _join(kernel, kernel.axes[position], kernel.axes[position + 1])
        if joined is None:
            position += 1
        else:
            kernel, changed = joined, True
    return kernel, changed


def _join(kernel: Kernel, a: Axis, b: Axis) -> Kernel | None:
    """The kernel with axes a and b (next to each other, b inner) as one, where that is the same."""
    exprs = kernel.exprs
    if not all(_allows(e, a, b) for e in exprs):
        return None
    accesses: list[Access] = [(e.buffer, e.index) for e in exprs if isinstance(e, Load)]
    accesses += [(s.buffer, s.index) for s in kernel.stores]
    where: dict[Buffer, int | None] = {}
    for buffer, index in accesses:
        place = _place(buffer, index, a, b)
        if place == -1 or where.setdefault(buffer, place) != place:
            return None
    return _joined(kernel, a, b, where)


def _allows(expr: Expr, a: Axis, b: Axis) -> bool:
    match expr:
        case Iota():
            return expr.axis not in (a, b)
        case Reduce():
            if expr.op in ("argmax", "argmin"):
                return a not in expr.over and b not in expr.over
            return (a in expr.over) == (b in expr.over)
        case Scan():
            return expr.axis not in (a, b)
    return True


def _place(buffer: Buffer, index: tuple[Index, ...], a: Axis, b: Axis) -> int | None:
    """Where ``[..., a, b, ...]`` stands in the index; None where neither occurs, -1 otherwise."""
    used = [p for p, i in enumerate(index) if index_axes(i) & {a, b}]
    if not used:
        return None
    if len(used) != 2 or used[1] != used[0] + 1:
        return -1
    first = used[0]
    fits = is_axis(index[first], a) and is_axis(index[first + 1], b)
    whole = buffer.shape[first] == a.extent and buffer.shape[first + 1] == b.extent
    return first if fits and whole else -1


def _joined(kernel: Kernel, a: Axis, b: Axis, where: dict[Buffer, int | None]) -> Kernel:
    axis = Axis(f"{a.name}{b.name}", a.extent * b.extent)
    both = {a: axis, b: axis}
    buffers: dict[Buffer, Buffer] = {}
    for buffer in kernel.buffers:
        place, shape = where.get(buffer), list(buffer.shape)
        if place is not None:
            shape[place : place + 2] = [axis.extent]
        buffers[buffer] = Buffer(buffer.name, buffer.dtype, tuple(shape))

    def access(buffer: Buffer, index: tuple[Index, ...]) -> Access:
        place = where.get(buffer)
        if place is None:
            return buffers[buffer], index
        return buffers[buffer], (*index[:place], Affine(((axis, 1),)), *index[place + 2 :])

    stores = tuple(map(Rewrite(access, both).store, kernel.stores))
    axes = tuple(axis if x is a else x for x in kernel.axes if x is not b)
    return Kernel(
        axes, tuple(buffers[x] for x in kernel.buffers), stores, blocked=kernel.blocked
    )
