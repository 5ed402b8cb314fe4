"""Pieces of a loop in which comparisons of the position with constants are decided.

Concatenation, padding and rolling read one array here and another there. In each piece of the loop
it is known which, and the elements are read without masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from treadle.core import dtypes
from treadle.core.shapes import Dim
from treadle.kernel.ir import (
    Apply,
    Axis,
    Const,
    Expr,
    Iota,
    Load,
    Reduce,
    Store,
    const,
    postorder,
)  # fmt: skip
from treadle.kernel.rewrite import rebuilt

# The length of code, whatever runs it.
MOST_PIECES = 6
LEAST_EXTENT = 64  # positions: shorter loops would be all ends

Piece: TypeAlias = tuple[int, Dim, list[Store]]  # positions [first, last), and their stores


def pieces(stores: Sequence[Store], axis: Axis) -> list[Piece]:
    """The loop over `axis` in pieces; a single one where nothing changes along it."""
    extent, exprs = axis.extent, postorder([s.value for s in stores])
    if not isinstance(extent, int):
        return [(0, extent, list(stores))]
    found = {_changes_at(e, axis) for e in exprs}
    inner = sorted(p for p in found if p is not None and 0 < p < extent)
    known = any(p is not None for p in found)
    reduces = any(isinstance(e, Reduce) for e in exprs)
    if not known or reduces or extent < LEAST_EXTENT or len(inner) >= MOST_PIECES:
        return [(0, extent, list(stores))]
    ends = [0, *inner, extent]
    return [
        (first, last, [replace(s, value=_at(s.value, axis, first)) for s in stores])
        for first, last in zip(ends, ends[1:], strict=False)
    ]


def _changes_at(e: Expr, axis: Axis) -> int | None:
    """The first position with another result, if `e` compares the position with a constant."""
    if not isinstance(e, Apply) or e.fn not in ("lt", "le", "gt", "ge"):
        return None
    shift, limit = _shift(e.args[0], axis), e.args[1]
    if shift is None or not isinstance(limit, Const):
        return None
    return int(limit.value) - shift + (e.fn in ("le", "gt"))


def _shift(e: Expr, axis: Axis) -> int | None:
    """k in ``position + k``, computed without wrapping round."""
    if isinstance(e, Iota) and e.axis is axis and e.dtype is dtypes.int64:
        return 0
    if isinstance(e, Apply) and e.fn in ("add", "sub") and isinstance(e.args[1], Const):
        shift, step = _shift(e.args[0], axis), int(e.args[1].value)
        return None if shift is None else shift + (step if e.fn == "add" else -step)
    return None


def _at(root: Expr, axis: Axis, first: int) -> Expr:
    """The expression with the comparisons as they are from position `first` on."""
    memo: dict[Expr, Expr] = {}
    for e in postorder([root]):
        change = _changes_at(e, axis)
        if change is not None:
            assert isinstance(e, Apply)
            memo[e] = _truth((first >= change) == (e.fn in ("gt", "ge")))
        else:
            memo[e] = _simple(e, memo.__getitem__)
    return memo[root]


def _truth(value: bool) -> Const:
    return const(value, dtypes.bool)


def _simple(e: Expr, part: Callable[[Expr], Expr]) -> Expr:
    """`e` over other parts, some of them decided."""
    if isinstance(e, Apply):
        return _applied(e, [part(a) for a in e.args])
    if isinstance(e, Load) and e.valid is not None and isinstance(part(e.valid), Const):
        if part(e.valid) is _truth(True):
            return rebuilt(replace(e, valid=None, fill=None), part)
        assert e.fill is not None
        return e.fill
    return rebuilt(e, part)


def _applied(e: Apply, args: list[Expr]) -> Expr:
    yes, no = _truth(True), _truth(False)
    if e.fn == "select" and args[0] in (yes, no):
        return args[1] if args[0] is yes else args[2]
    if e.fn in ("and", "or") and e.dtype is dtypes.bool:
        neutral, final = (yes, no) if e.fn == "and" else (no, yes)
        if final in args:
            return final
        if neutral in args:
            return args[1] if args[0] is neutral else args[0]
    if e.fn == "not" and args[0] in (yes, no):
        return no if args[0] is yes else yes
    return replace(e, args=tuple(args))
