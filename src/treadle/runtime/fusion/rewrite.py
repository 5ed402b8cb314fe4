"""Rebuilding kernel expressions with other buffers, indices and axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from treadle.kernel.ir import (
    Affine, Apply, Axis, Buffer, Expr, Index, Iota, Load, Reduce, affine, postorder,
)  # fmt: skip

Place = Callable[[Buffer, Any], tuple[Buffer, Any]]


class Rewrite:
    """Rebuilds expressions; `place` gives the new buffer and index of every load."""

    def __init__(self, place: Place, axes: Mapping[Axis, Axis] | None = None) -> None:
        self.place = place
        self.axes = dict(axes or {})
        self.memo: dict[Expr, Expr] = {}

    def __call__(self, expr: Expr) -> Expr:
        for item in postorder([expr]):
            if item not in self.memo:
                self.memo[item] = self._rebuild(item)
        return self.memo[expr]

    def index(self, index: Index) -> Index:
        if isinstance(index, Expr):
            return self.memo[index]
        if not self.axes:
            return index
        return affine([(self.axes.get(a, a), c) for a, c in index.terms], index.offset)

    def _rebuild(self, expr: Expr) -> Expr:
        match expr:
            case Load():
                buffer, index = self.place(expr.buffer, tuple(map(self.index, expr.index)))
                valid = None if expr.valid is None else self.memo[expr.valid]
                return Load(buffer, index, valid, expr.fill)
            case Apply():
                return Apply(expr.fn, tuple(self.memo[a] for a in expr.args), expr.of)
            case Reduce():
                over = dict.fromkeys(self.axes.get(a, a) for a in expr.over)
                return Reduce(expr.op, tuple(over), self.memo[expr.value], expr.of)
            case Iota():
                return Iota(self.axes.get(expr.axis, expr.axis), expr.of)
        return expr


def is_axis(index: Index, axis: Axis) -> bool:
    """Whether an index is the axis alone."""
    return isinstance(index, Affine) and index.terms == ((axis, 1),) and index.offset == 0
