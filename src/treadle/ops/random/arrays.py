"""The random ops in NumPy. A state of several axes holds streams, of which each draws its own."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.tensor import NDArray
from treadle.ops.random.philox import philox, random_words

# A generator moves on by this many counters for each number it gives, as TensorFlow's does.
COUNTERS_PER_NUMBER = 256

MANTISSA_BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
SMALLEST = 1e-7  # uniform numbers below it would give infinite normals
TRUNCATION = math.erf(math.sqrt(2.0))  # P(|normal| < 2)

# erfinv(y) = y * P(-log(1 - y*y) - center) where that argument is below 2 * center (Giles, 2010),
# which holds for |y| <= P(|normal| < 2). Highest power first.
ERFINV_32 = (2.5, (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
))  # fmt: skip
ERFINV_64 = (3.125, (
    -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18,
    1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17,
    6.6376381343583238325e-15, -4.0545662729752068639e-14, -8.1519341976054721522e-14,
    2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
    1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08,
    4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05,
    0.0001867342080340571352, -0.00074070253416626697512, -0.0060336708714301490533,
    0.24015818242558961693, 1.6536545626831027356,
))  # fmt: skip


# The fixed key under which stateless seeds are scrambled into a key and a counter (TensorFlow's).
SEED_KEY = (0x3EC8F720, 0x02461E29)


def _numpy_dtype(dtype: str) -> np.dtype[Any]:
    return dtypes.as_dtype(dtype).np_dtype


def for_each_stream(draw: Callable[..., NDArray]) -> Callable[..., NDArray]:
    """`draw` for states ``[..., 3]``: each stream has its own parameters, too."""

    @functools.wraps(draw)
    def drawn(state: NDArray, *parameters: NDArray, **attrs: Any) -> NDArray:
        if state.ndim == 1:
            return draw(state, *parameters, **attrs)
        outer = state.shape[:-1]
        found = [
            draw(state[place], *(np.asarray(p[place]) for p in parameters), **attrs)
            for place in np.ndindex(*outer)
        ]
        if not found:
            nothing = [np.zeros(p.shape[len(outer) :], p.dtype) for p in parameters]
            one = draw(np.zeros(3, np.int64), *nothing, **attrs)
            return np.zeros((*outer, *one.shape), one.dtype)
        return np.stack(found).reshape(*outer, *found[0].shape)

    return drawn


@for_each_stream
def bits(state: NDArray, *, shape: tuple[int, ...], dtype: str) -> NDArray:
    count = math.prod(shape)
    if dtype == "uint32":
        return random_words(state, count).reshape(shape)
    words = random_words(state, 2 * count).astype(np.uint64)
    return (words[0::2] | words[1::2] << np.uint64(32)).reshape(shape)


@for_each_stream
def uniform(state: NDArray, *, shape: tuple[int, ...], dtype: str) -> NDArray:
    bits = MANTISSA_BITS[dtype]
    count = math.prod(shape)
    if dtype == "float64":
        words = random_words(state, 2 * count).astype(np.uint64)
        mantissa = (words[0::2] & np.uint64(0xFFFFF)) << np.uint64(32) | words[1::2]
    else:
        mantissa = random_words(state, count) & np.uint32((1 << bits) - 1)
    wide: Any = np.float64 if dtype == "float64" else np.float32
    numbers: NDArray = mantissa.astype(wide) * wide(2.0**-bits)
    return numbers.reshape(shape).astype(_numpy_dtype(dtype))


@for_each_stream
def normal(state: NDArray, *, shape: tuple[int, ...], dtype: str) -> NDArray:
    wide: Any = np.float64 if dtype == "float64" else np.float32
    count = math.prod(shape)
    even = count + count % 2
    u = uniform(state, shape=(even,), dtype=wide.__name__).reshape(-1, 2)
    radius = np.sqrt(wide(-2.0) * np.log(np.maximum(u[:, 0], wide(SMALLEST))))
    angle = wide(2.0 * math.pi) * u[:, 1]
    pairs = np.stack([np.sin(angle) * radius, np.cos(angle) * radius], axis=1)
    return pairs.reshape(-1)[:count].reshape(shape).astype(_numpy_dtype(dtype))


@for_each_stream
def truncated_normal(state: NDArray, *, shape: tuple[int, ...], dtype: str) -> NDArray:
    wide: Any = np.float64 if dtype == "float64" else np.float32
    center, coefficients = ERFINV_64 if dtype == "float64" else ERFINV_32
    u = uniform(state, shape=shape, dtype=wide.__name__)
    y = (u + u - wide(1.0)) * wide(TRUNCATION)
    w = -np.log(wide(1.0) - y * y) - wide(center)
    p = np.full_like(w, coefficients[0])
    for coefficient in coefficients[1:]:
        p = p * w + wide(coefficient)
    z: NDArray = np.clip(p * y * wide(math.sqrt(2.0)), wide(-2.0), wide(2.0))
    return z.astype(_numpy_dtype(dtype))


@for_each_stream
def uniform_int(state: NDArray, low: NDArray, high: NDArray, *, shape: tuple[int, ...]) -> NDArray:
    if low.dtype.itemsize < 4 or low.dtype != high.dtype or low.ndim or high.ndim:
        raise TypeError("the limits must be two scalars of one dtype")
    unsigned = np.dtype(f"u{low.dtype.name}" if low.dtype.kind == "i" else low.dtype.name)
    span = high.astype(unsigned) - low.astype(unsigned)
    if int(high) <= int(low):
        raise ValueError(f"minval must be below maxval, got {int(low)} and {int(high)}")
    words = bits(state, shape=shape, dtype=unsigned.name)
    numbers: NDArray = low.astype(unsigned) + words % span
    return numbers.astype(low.dtype)


def skip(state: NDArray, *, shape: tuple[int, ...]) -> NDArray:
    moved, count = state.copy(), math.prod(shape)
    if count >> 60:
        raise MemoryError(f"there is no memory for {count} random numbers")
    moved[0] += count * COUNTERS_PER_NUMBER
    return moved


def scramble(seed: NDArray) -> NDArray:
    if seed.shape[-1:] != (2,) or seed.dtype.kind != "i":
        raise TypeError("a stateless seed is two integers")
    words = np.moveaxis(seed.astype(np.int64), -1, 0).astype(np.uint64)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    c0, c1, c2, c3 = (w for s in words for w in (s & low, s >> half))
    w0, w1, w2, w3 = philox((c0, c1, c2, c3), SEED_KEY)
    state = np.stack([np.zeros_like(w0), w2 | w3 << half, w0 | w1 << half], axis=-1)
    return state.view(np.int64)
