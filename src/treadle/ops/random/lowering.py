"""The random ops as kernel expressions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.shapes import product
from treadle.kernel.ir import Affine, Expr, Index, apply, cast, const
from treadle.ops.lowering import LowerCall, dim_expr, index_expr
from treadle.ops.random.arrays import (
    COUNTERS_PER_NUMBER,
    ERFINV_32,
    ERFINV_64,
    MANTISSA_BITS,
    SEED_KEY,
    SMALLEST,
    TRUNCATION,
)  # fmt: skip
from treadle.ops.random.philox import group_exprs, philox_exprs
from treadle.ops.shaping.views import flatten_index


class _Draw:
    """One element of what a stream draws; the first axes of a state are those of its streams.

    Attributes:
        position: the row-major number of the element in its stream.
        stream: the index of the stream.
    """

    def __init__(self, call: LowerCall, index: Sequence[Index]) -> None:
        outer = call.specs[0].rank - 1
        self.call, self.stream = call, list(index[:outer])
        self.position = index_expr(flatten_index(call.out.dims[outer:], index[outer:]))

    def group(self, number: Expr) -> tuple[Expr, ...]:
        """The four words of a group."""
        state = [self.call.inputs[0]([*self.stream, Affine((), i)]) for i in range(3)]
        return group_exprs(state, number)

    def parameter(self, k: int) -> Expr:
        """Input `k`, a number of the stream."""
        return self.call.inputs[k](self.stream)


def _i64(value: int) -> Expr:
    return const(value, dtypes.int64)


def _is(value: Expr, other: int) -> Expr:
    return apply("eq", value, _i64(other))


def _four_words(draw: _Draw, per_number: int) -> tuple[tuple[Expr, ...], Expr]:
    """The group that the number belongs to and its place in it."""
    shift = {1: 2, 2: 1}[per_number]
    words = draw.group(apply("shr", draw.position, _i64(shift)))
    return words, apply("and", draw.position, _i64((1 << shift) - 1))


def _one_word(draw: _Draw) -> Expr:
    (w0, w1, w2, w3), lane = _four_words(draw, 1)
    even = apply("select", _is(lane, 0), w0, w2)
    odd = apply("select", _is(lane, 1), w1, w3)
    return apply("select", _is(apply("and", lane, _i64(1)), 0), even, odd)


def _two_words(draw: _Draw) -> tuple[Expr, Expr]:
    (w0, w1, w2, w3), lane = _four_words(draw, 2)
    first = _is(lane, 0)
    return apply("select", first, w0, w2), apply("select", first, w1, w3)


def _unit32(word: Expr, bits: int = 23) -> Expr:
    """A float32 in [0, 1) from the low bits of a word."""
    mantissa = apply("and", word, const((1 << bits) - 1, dtypes.uint32))
    value = cast(cast(mantissa, dtypes.int32), dtypes.float32)
    return apply("mul", value, const(2.0**-bits, dtypes.float32))


def _unit64(high: Expr, low: Expr) -> Expr:
    """A float64 in [0, 1) from two words."""
    top = apply("and", cast(high, dtypes.int64), _i64(0xFFFFF))
    mantissa = apply("or", apply("shl", top, _i64(32)), cast(low, dtypes.int64))
    return apply("mul", cast(mantissa, dtypes.float64), const(2.0**-52, dtypes.float64))


def bits_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    draw = _Draw(call, index)
    if call.out.dtype is dtypes.uint32:
        return _one_word(draw)
    low, high = (cast(w, dtypes.uint64) for w in _two_words(draw))
    return apply("or", low, apply("shl", high, const(32, dtypes.uint64)))


def _uniform_expr(draw: _Draw, dtype: DType) -> Expr:
    if dtype is dtypes.float64:
        return _unit64(*_two_words(draw))
    return _unit32(_one_word(draw), MANTISSA_BITS[dtype.name])


def uniform_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    value = _uniform_expr(_Draw(call, index), call.out.dtype)
    return cast(value, call.out.dtype)


def _wide(dtype: DType) -> DType:
    return dtypes.float64 if dtype is dtypes.float64 else dtypes.float32


def normal_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    draw, wide = _Draw(call, index), _wide(call.out.dtype)
    if wide is dtypes.float64:  # a pair of normals takes the four words of a group
        w0, w1, w2, w3 = draw.group(apply("shr", draw.position, _i64(1)))
        u, v = _unit64(w0, w1), _unit64(w2, w3)
    else:
        (w0, w1, w2, w3), lane = _four_words(draw, 1)
        first = apply("lt", lane, _i64(2))
        u = _unit32(apply("select", first, w0, w2))
        v = _unit32(apply("select", first, w1, w3))
    log = apply("log", apply("max", u, const(SMALLEST, wide)))
    radius = apply("sqrt", apply("mul", const(-2.0, wide), log))
    angle = apply("mul", const(2.0 * math.pi, wide), v)
    even = _is(apply("and", draw.position, _i64(1)), 0)
    direction = apply("select", even, apply("sin", angle), apply("cos", angle))
    return cast(apply("mul", direction, radius), call.out.dtype)


def truncated_normal_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    wide = _wide(call.out.dtype)
    center, coefficients = ERFINV_64 if wide is dtypes.float64 else ERFINV_32
    u = _uniform_expr(_Draw(call, index), wide)
    shifted = apply("sub", apply("add", u, u), const(1.0, wide))
    y = apply("mul", shifted, const(TRUNCATION, wide))
    log = apply("log", apply("sub", const(1.0, wide), apply("mul", y, y)))
    w = apply("sub", apply("neg", log), const(center, wide))
    p: Expr = const(coefficients[0], wide)
    for coefficient in coefficients[1:]:
        p = apply("add", apply("mul", p, w), const(coefficient, wide))
    z = apply("mul", apply("mul", p, y), const(math.sqrt(2.0), wide))
    clipped = apply("min", apply("max", z, const(-2.0, wide)), const(2.0, wide))
    return cast(clipped, call.out.dtype)


def uniform_int_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    draw = _Draw(call, index)
    low, high = draw.parameter(1), draw.parameter(2)
    if low.dtype.size == 8:
        first, second = (cast(w, dtypes.uint64) for w in _two_words(draw))
        word: Expr = apply("or", first, apply("shl", second, const(32, dtypes.uint64)))
    else:
        word = _one_word(draw)
    start = cast(low, word.dtype)
    span = apply("sub", cast(high, word.dtype), start)
    return cast(apply("add", start, apply("mod", word, span)), low.dtype)


def skip_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    used = product(call.attrs["shape"]) * COUNTERS_PER_NUMBER
    moved = apply("select", _is(index_expr(index[0]), 0), dim_expr(used), _i64(0))
    return apply("add", call.inputs[0](index), moved)


def scramble_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    counter = []
    *stream, place = index
    for i in range(2):
        seed = call.inputs[0]([*stream, Affine((), i)])
        seed = cast(cast(seed, dtypes.int64), dtypes.uint64)
        counter.append(cast(seed, dtypes.uint32))
        counter.append(cast(apply("shr", seed, const(32, dtypes.uint64)), dtypes.uint32))
    words = philox_exprs(counter, [const(k, dtypes.uint32) for k in SEED_KEY])
    w0, w1, w2, w3 = (cast(w, dtypes.int64) for w in words)
    high = apply("or", w2, apply("shl", w3, _i64(32)))
    key = apply("or", w0, apply("shl", w1, _i64(32)))
    which = index_expr(place)
    return apply("select", _is(which, 0), _i64(0), apply("select", _is(which, 1), high, key))
