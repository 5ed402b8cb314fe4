"""What compiled programs check at run time: the ops that passes write for it.

Users have no functions for these ops: eager execution checks in the NumPy implementations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray
from treadle.kernel.ir import Expr, Index, Reduce, apply, as_index, cast, const
from treadle.ops.lowering import (
    Compute,
    LowerCall,
    dim_expr,
    divide_index,
    elementwise_rule,
    index_expr,
    scale_index,
    sum_index,
)
from treadle.ops.registry import Op, register


def _is_bad(call: LowerCall, x: Expr, *more: Expr) -> Expr:
    zero = const(0, x.dtype)
    match call.attrs["kind"]:
        case "zero":
            return apply("eq", x, zero)
        case "negative":
            return apply("lt", x, zero)
        case "empty":
            return apply("ge", x, more[0])
    size, wide = dim_expr(call.attrs["size"]), cast(x, dtypes.int64)
    if call.attrs["kind"] == "wrapping":  # the position as the op then computes it
        back = apply("lt", wide, const(0, dtypes.int64))
        wide = apply("select", back, apply("add", wide, size), wide)
    return _outside(wide, const(0, dtypes.int64), size)


def _outside(x: Expr, low: Expr, size: Expr) -> Expr:
    wide = cast(x, dtypes.int64)
    return apply("or", apply("lt", wide, low), apply("ge", wide, size))


def _is_bad_row(call: LowerCall, index: Sequence[Index]) -> Expr:
    """Rows of positions: the size depends on the place in the row, which is short."""
    sizes: Sequence[Dim] = call.attrs["size"]
    size = dim_expr(sizes[-1]) if sizes else const(0, dtypes.int64)
    for place in range(len(sizes) - 2, -1, -1):
        here = apply("eq", index_expr(index[-1]), const(place, dtypes.int64))
        size = apply("select", here, dim_expr(sizes[place]), size)
    return _outside(call.inputs[0](index), const(0, dtypes.int64), size)


def _any(call: LowerCall, index: Sequence[Index]) -> Expr:
    axes = tuple(call.axis(d) for d in call.specs[0].dims)
    return Reduce("any", axes, call.inputs[0]([as_index(a) for a in axes]))


def _not(call: LowerCall, x: Expr) -> Expr:
    return apply("not", x)


def _nothing_bad(x: NDArray, *_: Any, **__: Any) -> NDArray:
    """In a loop that the interpreter runs: the NumPy implementations check for themselves."""
    return np.zeros(x.shape, np.bool_)


BAD = register(
    Op(
        "is_bad",
        lambda x, *_, **__: TensorSpec(x.dims, dtypes.bool),
        _nothing_bad,
        lower=elementwise_rule(_is_bad),
    )
)
BAD_ROW = register(
    Op(
        "is_bad_row",
        lambda x, **_: TensorSpec(x.dims, dtypes.bool),
        _nothing_bad,
        lower=Compute(_is_bad_row, "elementwise"),
    )
)
ANY = register(
    Op(
        "any_bad",
        lambda x: TensorSpec((), dtypes.bool),
        lambda x: x.any(),
        lower=Compute(_any, "reduce"),
    )
)
GOOD = register(
    Op(
        "none_bad",
        lambda x: TensorSpec((), dtypes.bool),
        np.logical_not,
        lower=elementwise_rule(_not),
    )
)
# Inputs: (good, those of attrs["of"]).
CHECK = register(
    Op("check", lambda *_, **__: (), lambda *_, **__: (), effect="io", tags=frozenset({"quiet"}))
)


def _first(call: LowerCall, index: Sequence[Index]) -> Expr:
    dims = call.specs[0].dims
    axes = tuple(call.axis(d) for d in dims)
    place: Index = as_index(0)
    for axis, dim in zip(axes, dims, strict=True):
        place = sum_index(scale_index(place, dim), as_index(axis))
    bad = call.inputs[0]([as_index(a) for a in axes])
    return Reduce("min", axes, apply("select", bad, index_expr(place), dim_expr(product(dims))))


def _eager_first(bad: NDArray) -> NDArray:
    found = np.flatnonzero(bad)
    return np.asarray(found[0] if found.size else bad.size, np.int64)


# The position of the first bad element among all in row-major order; their number where none is.
FIRST = register(
    Op(
        "first_bad",
        lambda bad: TensorSpec((), dtypes.int64),
        _eager_first,
        lower=Compute(_first, "reduce"),
    )
)


def _element_at(call: LowerCall, index: Sequence[Index]) -> Expr:
    dims = call.specs[0].dims
    position = call.inputs[1](())
    inside = apply("lt", position, dim_expr(product(dims)))
    rest: Index = position
    places: list[Index] = []
    for dim in reversed(dims):
        rest, place = divide_index(rest, dim)
        places.append(place)
    return call.inputs[0](places[::-1], inside, 0)


def _eager_element_at(x: NDArray, position: NDArray) -> NDArray:
    return np.asarray(x.reshape(-1)[position] if position < x.size else x.dtype.type(0))


# The element at a position in row-major order; 0 at the position behind the last.
ELEMENT_AT = register(
    Op(
        "element_at",
        lambda x, _: TensorSpec((), x.dtype),
        _eager_element_at,
        lower=Compute(_element_at, "gather"),
    )
)
# A check whose failure the program notes and goes on (`treadle.runtime.schedule.status`). Inputs:
# (good, and for each of attrs["numbers"], inputs of attrs["of"], what is bad in it: itself, or the
# position of its first bad element and that element).
NOTE = register(
    Op("note", lambda *_, **__: (), lambda *_, **__: (), effect="io", tags=frozenset({"quiet"}))
)


def _from_start(position: NDArray, *_: Any, size: Dim, **__: Any) -> NDArray:
    """In a loop that the interpreter runs: what is outside stays so, for the node to refuse."""
    assert isinstance(size, int)
    return np.asarray(position + size if position < 0 else position).astype(np.uint64)


# A position along an axis of attrs["size"], counted from its beginning; attrs["wraps"]: it may be
# negative. Inputs: (position, those of attrs["of"], which refuses what lies outside).
PLACE = register(
    Op(
        "checked_position",
        lambda *_, **__: TensorSpec((), dtypes.uint64),
        _from_start,
        effect="io",
        tags=frozenset({"quiet"}),
    )
)


def _is_set(call: LowerCall, x: Expr) -> Expr:
    return apply("ne", x, const(0, x.dtype))


SET = register(
    Op(
        "is_set",
        lambda x: TensorSpec(x.dims, dtypes.bool),
        lambda x: x != 0,
        lower=elementwise_rule(_is_set),
    )
)
