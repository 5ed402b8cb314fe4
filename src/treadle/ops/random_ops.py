"""The random ops: pure functions of a Philox state (three int64, see `treadle.ops.philox`).

The numbers are those of TensorFlow's ``Generator`` with the same state. Uniform numbers and
integers are the same bits in every implementation; normals agree to the accuracy of log and sin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray
from treadle.kernel.ir import Affine, Expr, Extent, Index, apply, cast, const
from treadle.ops.lowering import Compute, LowerCall, Rule, index_expr, scale_index, sum_index
from treadle.ops.philox import counter_words, group_exprs, philox, philox_exprs, random_words
from treadle.ops.registry import Op, register

STATE = TensorSpec((3,), dtypes.int64)
# A generator moves on by this many counters for each number it gives, as TensorFlow's does.
COUNTERS_PER_NUMBER = 256

_MANTISSA_BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
_SMALLEST = 1e-7  # uniform numbers below it would give infinite normals
_TRUNCATION = math.erf(math.sqrt(2.0))  # P(|normal| < 2)


def _check_state(state: Any) -> None:
    if state.dtype is not dtypes.int64 or state.dims != (3,):
        raise TypeError(f"the state of a generator is int64[3], got {state}")


def _infer_float(state: Any, *, shape: tuple[Dim, ...], dtype: str) -> TensorSpec:
    _check_state(state)
    if dtype not in _MANTISSA_BITS:
        raise TypeError(f"random floats are float16, bfloat16, float32 or float64, not {dtype}")
    return TensorSpec(shape, dtype)


def _infer_bits(state: Any, *, shape: tuple[Dim, ...], dtype: str) -> TensorSpec:
    _check_state(state)
    if dtype not in ("uint32", "uint64"):
        raise TypeError(f"random bits are uint32 or uint64, not {dtype}")
    return TensorSpec(shape, dtype)


# -- NumPy -----------------------------------------------------------------------------------------


def _numpy_dtype(dtype: str) -> np.dtype[Any]:
    return dtypes.as_dtype(dtype).np_dtype


def _bits(state: NDArray, *, shape: tuple[int, ...], dtype: str) -> NDArray:
    count = math.prod(shape)
    if dtype == "uint32":
        return random_words(state, count).reshape(shape)
    words = random_words(state, 2 * count).astype(np.uint64)
    return (words[0::2] | words[1::2] << np.uint64(32)).reshape(shape)


def _uniform(state: NDArray, *, shape: tuple[int, ...], dtype: str) -> NDArray:
    bits = _MANTISSA_BITS[dtype]
    count = math.prod(shape)
    if dtype == "float64":
        words = random_words(state, 2 * count).astype(np.uint64)
        mantissa = (words[0::2] & np.uint64(0xFFFFF)) << np.uint64(32) | words[1::2]
    else:
        mantissa = random_words(state, count) & np.uint32((1 << bits) - 1)
    wide: Any = np.float64 if dtype == "float64" else np.float32
    numbers: NDArray = mantissa.astype(wide) * wide(2.0**-bits)
    return numbers.reshape(shape).astype(_numpy_dtype(dtype))


def _normal(state: NDArray, *, shape: tuple[int, ...], dtype: str) -> NDArray:
    wide: Any = np.float64 if dtype == "float64" else np.float32
    count = math.prod(shape)
    even = count + count % 2
    u = _uniform(state, shape=(even,), dtype=wide.__name__).reshape(-1, 2)
    radius = np.sqrt(wide(-2.0) * np.log(np.maximum(u[:, 0], wide(_SMALLEST))))
    angle = wide(2.0 * math.pi) * u[:, 1]
    pairs = np.stack([np.sin(angle) * radius, np.cos(angle) * radius], axis=1)
    return pairs.reshape(-1)[:count].reshape(shape).astype(_numpy_dtype(dtype))


# erfinv(y) = y * P(-log(1 - y*y) - center) where that argument is below 2 * center (Giles, 2010),
# which holds for |y| <= P(|normal| < 2). Highest power first.
_ERFINV_32 = (2.5, (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
))  # fmt: skip
_ERFINV_64 = (3.125, (
    -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18,
    1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17,
    6.6376381343583238325e-15, -4.0545662729752068639e-14, -8.1519341976054721522e-14,
    2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
    1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08,
    4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05,
    0.0001867342080340571352, -0.00074070253416626697512, -0.0060336708714301490533,
    0.24015818242558961693, 1.6536545626831027356,
))  # fmt: skip


def _truncated_normal(state: NDArray, *, shape: tuple[int, ...], dtype: str) -> NDArray:
    wide: Any = np.float64 if dtype == "float64" else np.float32
    center, coefficients = _ERFINV_64 if dtype == "float64" else _ERFINV_32
    u = _uniform(state, shape=shape, dtype=wide.__name__)
    y = (u + u - wide(1.0)) * wide(_TRUNCATION)
    w = -np.log(wide(1.0) - y * y) - wide(center)
    p = np.full_like(w, coefficients[0])
    for coefficient in coefficients[1:]:
        p = p * w + wide(coefficient)
    z: NDArray = np.clip(p * y * wide(math.sqrt(2.0)), wide(-2.0), wide(2.0))
    return z.astype(_numpy_dtype(dtype))


def _uniform_int(state: NDArray, low: NDArray, high: NDArray, *, shape: tuple[int, ...]) -> NDArray:
    if low.dtype.itemsize < 4 or low.dtype != high.dtype or low.ndim or high.ndim:
        raise TypeError("the limits must be two scalars of one dtype")
    unsigned = np.dtype(f"u{low.dtype.name}" if low.dtype.kind == "i" else low.dtype.name)
    span = high.astype(unsigned) - low.astype(unsigned)
    if int(high) <= int(low):
        raise ValueError(f"minval must be below maxval, got {int(low)} and {int(high)}")
    words = _bits(state, shape=shape, dtype=unsigned.name)
    numbers: NDArray = low.astype(unsigned) + words % span
    return numbers.astype(low.dtype)


# -- as kernel expressions -------------------------------------------------------------------------


def _position(call: LowerCall, index: Sequence[Index]) -> Expr:
    """The row-major number of the output element."""
    total: Index = Affine((), 0)
    stride: Dim = 1
    for dim, i in zip(reversed(call.out.dims), reversed(index), strict=True):
        total = sum_index(total, scale_index(i, stride))
        stride = stride * dim
    return index_expr(total)


def _state_exprs(call: LowerCall) -> list[Expr]:
    return [call.inputs[0]([Affine((), i)]) for i in range(3)]


def _i64(value: int) -> Expr:
    return const(value, dtypes.int64)


def _is(value: Expr, other: int) -> Expr:
    return apply("eq", value, _i64(other))


def _four_words(call: LowerCall, position: Expr, per_number: int) -> tuple[tuple[Expr, ...], Expr]:
    """The group that number `position` belongs to and its place in it."""
    shift = {1: 2, 2: 1}[per_number]
    words = group_exprs(_state_exprs(call), apply("shr", position, _i64(shift)))
    return words, apply("and", position, _i64((1 << shift) - 1))


def _one_word(call: LowerCall, position: Expr) -> Expr:
    (w0, w1, w2, w3), lane = _four_words(call, position, 1)
    even = apply("select", _is(lane, 0), w0, w2)
    odd = apply("select", _is(lane, 1), w1, w3)
    return apply("select", _is(apply("and", lane, _i64(1)), 0), even, odd)


def _two_words(call: LowerCall, position: Expr) -> tuple[Expr, Expr]:
    (w0, w1, w2, w3), lane = _four_words(call, position, 2)
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


def _bits_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    position = _position(call, index)
    if call.out.dtype is dtypes.uint32:
        return _one_word(call, position)
    low, high = (cast(w, dtypes.uint64) for w in _two_words(call, position))
    return apply("or", low, apply("shl", high, const(32, dtypes.uint64)))


def _uniform_expr(call: LowerCall, position: Expr, dtype: DType) -> Expr:
    if dtype is dtypes.float64:
        return _unit64(*_two_words(call, position))
    return _unit32(_one_word(call, position), _MANTISSA_BITS[dtype.name])


def _uniform_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    value = _uniform_expr(call, _position(call, index), call.out.dtype)
    return cast(value, call.out.dtype)


def _wide(dtype: DType) -> DType:
    return dtypes.float64 if dtype is dtypes.float64 else dtypes.float32


def _normal_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    position, wide = _position(call, index), _wide(call.out.dtype)
    if wide is dtypes.float64:  # a pair of normals takes the four words of a group
        w0, w1, w2, w3 = group_exprs(_state_exprs(call), apply("shr", position, _i64(1)))
        u, v = _unit64(w0, w1), _unit64(w2, w3)
    else:
        (w0, w1, w2, w3), lane = _four_words(call, position, 1)
        first = apply("lt", lane, _i64(2))
        u = _unit32(apply("select", first, w0, w2))
        v = _unit32(apply("select", first, w1, w3))
    log = apply("log", apply("max", u, const(_SMALLEST, wide)))
    radius = apply("sqrt", apply("mul", const(-2.0, wide), log))
    angle = apply("mul", const(2.0 * math.pi, wide), v)
    even = _is(apply("and", position, _i64(1)), 0)
    direction = apply("select", even, apply("sin", angle), apply("cos", angle))
    return cast(apply("mul", direction, radius), call.out.dtype)


def _truncated_normal_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    wide = _wide(call.out.dtype)
    center, coefficients = _ERFINV_64 if wide is dtypes.float64 else _ERFINV_32
    u = _uniform_expr(call, _position(call, index), wide)
    shifted = apply("sub", apply("add", u, u), const(1.0, wide))
    y = apply("mul", shifted, const(_TRUNCATION, wide))
    log = apply("log", apply("sub", const(1.0, wide), apply("mul", y, y)))
    w = apply("sub", apply("neg", log), const(center, wide))
    p: Expr = const(coefficients[0], wide)
    for coefficient in coefficients[1:]:
        p = apply("add", apply("mul", p, w), const(coefficient, wide))
    z = apply("mul", apply("mul", p, y), const(math.sqrt(2.0), wide))
    clipped = apply("min", apply("max", z, const(-2.0, wide)), const(2.0, wide))
    return cast(clipped, call.out.dtype)


def _uniform_int_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    low, high = call.inputs[1]([]), call.inputs[2]([])
    position = _position(call, index)
    if low.dtype.size == 8:
        first, second = (cast(w, dtypes.uint64) for w in _two_words(call, position))
        word: Expr = apply("or", first, apply("shl", second, const(32, dtypes.uint64)))
    else:
        word = _one_word(call, position)
    start = cast(low, word.dtype)
    span = apply("sub", cast(high, word.dtype), start)
    return cast(apply("add", start, apply("mod", word, span)), low.dtype)


def _elementwise(rule: Rule) -> Compute:
    return Compute(rule, "elementwise")


UNIFORM = register(Op("random_uniform", _infer_float, _uniform, lower=_elementwise(_uniform_rule)))
NORMAL = register(Op("random_normal", _infer_float, _normal, lower=_elementwise(_normal_rule)))
TRUNCATED_NORMAL = register(
    Op(
        "random_truncated_normal", _infer_float, _truncated_normal,
        lower=_elementwise(_truncated_normal_rule),
    )
)  # fmt: skip
BITS = register(Op("random_bits", _infer_bits, _bits, lower=_elementwise(_bits_rule)))


def _infer_uniform_int(state: Any, low: Any, high: Any, *, shape: tuple[Dim, ...]) -> TensorSpec:
    _check_state(state)
    if low.dtype is not high.dtype or low.dtype not in (
        dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64,
    ):  # fmt: skip
        raise TypeError(
            "minval and maxval must both be int32, int64, uint32 or uint64, got "
            f"{low.dtype.name} and {high.dtype.name}"
        )
    if low.rank or high.rank:
        raise ValueError(f"minval and maxval must be scalars, got shapes {low.shape}, {high.shape}")
    return TensorSpec(shape, low.dtype)


UNIFORM_INT = register(
    Op(
        "random_uniform_int", _infer_uniform_int, _uniform_int,
        lower=_elementwise(_uniform_int_rule),
    )
)  # fmt: skip


# -- states ----------------------------------------------------------------------------------------


def _infer_skip(state: Any, *, shape: tuple[Dim, ...]) -> TensorSpec:
    _check_state(state)
    return STATE


def _skip(state: NDArray, *, shape: tuple[int, ...]) -> NDArray:
    moved = state.copy()
    moved[0] += math.prod(shape) * COUNTERS_PER_NUMBER
    return moved


def _skip_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    used = product(call.attrs["shape"]) * COUNTERS_PER_NUMBER
    step = const(used, dtypes.int64) if isinstance(used, int) else Extent(used)
    moved = apply("select", _is(index_expr(index[0]), 0), step, _i64(0))
    return apply("add", call.inputs[0](index), moved)


SKIP = register(Op("random_skip", _infer_skip, _skip, lower=_elementwise(_skip_rule)))

# The fixed key under which stateless seeds are scrambled into a key and a counter (TensorFlow's).
_SEED_KEY = (0x3EC8F720, 0x02461E29)


def _infer_scramble(seed: Any) -> TensorSpec:
    if seed.dims != (2,) or seed.dtype not in (dtypes.int32, dtypes.int64):
        raise TypeError("a stateless seed is a tensor of two int32 or int64 numbers")
    return STATE


def _scramble(seed: NDArray) -> NDArray:
    if seed.shape != (2,) or seed.dtype.kind != "i":
        raise TypeError("a stateless seed is two integers")
    words = [int(s) & 0xFFFFFFFFFFFFFFFF for s in seed.astype(np.int64)]
    counter = [np.array([w], np.uint64) for s in words for w in (s & 0xFFFFFFFF, s >> 32)]
    w0, w1, w2, w3 = philox((counter[0], counter[1], counter[2], counter[3]), _SEED_KEY)
    half = np.uint64(32)
    state = np.stack([np.zeros(1, np.uint64), w2 | w3 << half, w0 | w1 << half])
    return state.reshape(3).view(np.int64)


def _scramble_rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    counter = []
    for i in range(2):
        seed = cast(cast(call.inputs[0]([Affine((), i)]), dtypes.int64), dtypes.uint64)
        counter.append(cast(seed, dtypes.uint32))
        counter.append(cast(apply("shr", seed, const(32, dtypes.uint64)), dtypes.uint32))
    words = philox_exprs(counter, [const(k, dtypes.uint32) for k in _SEED_KEY])
    w0, w1, w2, w3 = (cast(w, dtypes.int64) for w in words)
    high = apply("or", w2, apply("shl", w3, _i64(32)))
    key = apply("or", w0, apply("shl", w1, _i64(32)))
    which = index_expr(index[0])
    return apply("select", _is(which, 0), _i64(0), apply("select", _is(which, 1), high, key))


SCRAMBLE = register(
    Op("random_seed_state", _infer_scramble, _scramble, lower=_elementwise(_scramble_rule))
)
