"""Rebuilding kernel expressions with other buffers, indices and axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from treadle.core.shapes import Dim, SymbolicDim, substitute
from treadle.kernel.ir import (
    Affine,
    Apply,
    Axis,
    Buffer,
    Expr,
    Extent,
    Index,
    Iota,
    Kernel,
    Load,
    Reduce,
    Scan,
    Store,
    affine,
    postorder,
)  # fmt: skip

Place = Callable[[Buffer, Any], tuple[Buffer, Any]]


class Rewrite:
    """Rebuilds expressions; `place` gives the new buffer and index of every load.

    Args:
        axes: axes to replace.
        symbols: symbols to replace in dims.
    """

    def __init__(
        self, place: Place, axes: Mapping[Axis, Axis] | None = None,
        symbols: Mapping[str, SymbolicDim] | None = None,
    ) -> None:  # fmt: skip
        self.place = place
        self.axes = dict(axes or {})
        self.symbols = dict(symbols or {})
        self.memo: dict[Expr, Expr] = {}

    def __call__(self, expr: Expr) -> Expr:
        for item in postorder([expr]):
            if item not in self.memo:
                self.memo[item] = self._rebuild(item)
        return self.memo[expr]

    def index(self, index: Index) -> Index:
        if isinstance(index, Expr):
            return self.memo[index]
        if not self.axes and not self.symbols:
            return index
        terms = [(self.axes.get(a, a), self.dim(c)) for a, c in index.terms]
        return affine(terms, self.dim(index.offset))

    def store(self, store: Store) -> Store:
        """A store in another place; `place` gives its buffer and index, too."""
        for e in store.roots:
            self(e)
        buffer, index = self.place(store.buffer, tuple(map(self.index, store.index)))
        return replace(store, buffer=buffer, index=index, value=self.memo[store.value])

    def dim(self, dim: Dim) -> Dim:
        return substitute(dim, self.symbols) if self.symbols else dim

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
            case Scan():
                axis = self.axes.get(expr.axis, expr.axis)
                return replace(expr, axis=axis, value=self.memo[expr.value])
            case Iota():
                return Iota(self.axes.get(expr.axis, expr.axis), expr.of)
            case Extent():
                return Extent(self.dim(expr.dim), expr.of)
        return expr


def rebuilt(e: Expr, part: Callable[[Expr], Expr]) -> Expr:
    """`e` over other parts; `part` gives the new one of each of its children."""
    match e:
        case Load():
            index = tuple(part(i) if isinstance(i, Expr) else i for i in e.index)
            return Load(e.buffer, index, e.valid and part(e.valid), e.fill)
        case Apply():
            return Apply(e.fn, tuple(map(part, e.args)), e.of)
        case Reduce():
            return Reduce(e.op, e.over, part(e.value), e.of)
        case Scan():
            return replace(e, value=part(e.value))
    return e


def is_axis(index: Index, axis: Axis) -> bool:
    """Whether an index is the axis alone."""
    return isinstance(index, Affine) and index.terms == ((axis, 1),) and index.offset == 0


def canonical(kernel: Kernel) -> Kernel:
    """The kernel with axes, buffers and symbols named by number: equal structure, equal object."""
    symbols = {name: SymbolicDim.symbol(f"s{i}") for i, name in enumerate(kernel.symbols)}
    axes = {a: Axis(f"a{i}", substitute(a.extent, symbols)) for i, a in enumerate(kernel.axes)}
    buffers = {
        b: Buffer(f"b{i}", b.dtype, tuple(substitute(d, symbols) for d in b.shape))
        for i, b in enumerate(kernel.buffers)
    }
    rewrite = Rewrite(lambda buffer, index: (buffers[buffer], index), axes, symbols)
    stores = tuple(map(rewrite.store, kernel.stores))
    return replace(
        kernel, axes=tuple(axes.values()), buffers=tuple(buffers.values()), stores=stores
    )
