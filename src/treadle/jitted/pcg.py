"""The numbers that `np.random.default_rng` draws, as functions of the generator's state.

The generator is PCG64 (O'Neill's XSL-RR 128/64): a linear congruential generator of 128 bits, of
which each step gives 64 bits. As in `twister`, the functions are written for arrays and numbers and
are traced where a jitted function draws: they give the numbers that NumPy gives, from the same
state, and leave the state as NumPy leaves it. Normal numbers differ from NumPy's in the last bits:
its table of strips was computed with less precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from treadle.jitted.twister import filled, permuted, shape_of, shuffled

# The factor of the congruential generator, and the bits that words are cut into.
_FACTOR_HIGH, _FACTOR_LOW = 2549297995355413924, 4865540595714422341
_HALF = 0xFFFFFFFF
_UNIT = 1.0 / 9007199254740992.0


class State(NamedTuple):
    """The state of a generator.

    Attributes:
        words: the lower and the upper half of the state, and of what each step adds; uint64.
        half: whether 32 bits of the last word are left, and these; uint32.
    """

    words: Any
    half: Any


def _product(a: Any, b: Any) -> Any:
    """The upper and the lower 64 bits of the product of two words."""
    low_a, high_a = a & _HALF, a >> 32
    low_b, high_b = b & _HALF, b >> 32
    low, first, second = low_a * low_b, low_a * high_b, high_a * low_b
    middle = (low >> 32) + (first & _HALF) + (second & _HALF)
    return high_a * high_b + (first >> 32) + (second >> 32) + (middle >> 32), a * b


def _word(state: Any) -> Any:
    """64 random bits."""
    words = state.words
    low, high = words[0], words[1]
    factor = np.uint64(_FACTOR_LOW)
    carried, lower = _product(low, factor)
    upper = carried + low * np.uint64(_FACTOR_HIGH) + high * factor + words[3]
    lower = lower + words[2]
    upper = upper + np.uint64(lower < words[2])
    words[0], words[1] = lower, upper
    turn, bits = upper >> 58, upper ^ lower
    return (bits >> turn) | (bits << ((64 - turn) & 63))


def _half_word(state: Any) -> Any:
    """32 random bits: the lower half of a word, and then its upper half."""
    half = state.half
    if half[0] != 0:
        found = np.uint64(half[1])
        half[0] = 0
    else:
        word = _word(state)
        found = word & _HALF
        half[0], half[1] = 1, word >> 32
    return found


def _double(state: Any) -> Any:
    """A number of [0, 1)."""
    return float(_word(state) >> 11) * _UNIT


def _single(state: Any) -> Any:
    return np.float32(_half_word(state) >> 8) * np.float32(1.0 / 16777216.0)


def _up_to(state: Any, most: Any) -> Any:
    """An int from 0 to `most`, by Lemire's method: the upper part of a product with `most + 1`."""
    found = 0
    if most >= _HALF:
        count = np.uint64(most) + np.uint64(1)
        upper, lower = _product(_word(state), count)
        least = (~count + np.uint64(1)) % count
        while lower < least:
            upper, lower = _product(_word(state), count)
        found = int(upper)
        if most == _HALF:
            raise OverflowError("ints of a range of 2**32 are not drawn in jitted functions")
    elif most > 0:
        count = np.uint64(most + 1)
        product = _half_word(state) * count
        least = np.uint64((_HALF - most) % (most + 1))
        while (product & _HALF) < least:
            product = _half_word(state) * count
        found = int(product >> 32)
    return found


def _up_to_by_mask(state: Any, most: Any) -> Any:
    """An int from 0 to `most`: as many bits as it has, until they are not more."""
    mask = most
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> shift
    value = int(_half_word(state)) & mask
    while value > most:
        value = int(_half_word(state)) & mask
    return value


class _Strips(NamedTuple):
    """The area under a density as 256 strips of one size.

    Attributes:
        widths: of each strip, for an integer that says how far into it a point is.
        limits: below which integers a point is under the density for certain.
        heights: the density at the end of each strip.
    """

    widths: Any
    limits: Any
    heights: Any


def _strips(
    density: Callable[[Decimal], Decimal], where: Callable[[Decimal], Decimal], last: str,
    area: str, bits: int,
) -> _Strips:  # fmt: skip
    """Marsaglia's and Tsang's ziggurat.

    Args:
        density, where: the density and its inverse.
        last: where the lowest strip ends and the tail begins.
        area: of a strip, with the tail in the lowest one.
        bits: of the integers.
    """
    with localcontext() as exact:
        exact.prec = 50
        ends, scale = [Decimal(0)] * 256, Decimal(2**bits)
        ends[255] = Decimal(last)
        for i in range(254, 0, -1):
            ends[i] = where(Decimal(area) / ends[i + 1] + density(ends[i + 1]))
        widths = [Decimal(area) / density(ends[255]), *ends[1:]]
        inner = [ends[255], Decimal(0), *ends[1:255]]
        limits = [int(a / b * scale) for a, b in zip(inner, widths, strict=True)]
        heights = [float(density(x)) for x in ends]
        return _Strips(
            np.array([float(w / scale) for w in widths]),
            np.array(limits, np.uint64), np.array(heights),
        )  # fmt: skip


_NORMAL_END, _EXPONENTIAL_END = 3.6541528853610088, 7.69711747013104972


@cache
def _of_normals() -> _Strips:
    return _strips(
        lambda x: (-x * x / 2).exp(), lambda y: (-2 * y.ln()).sqrt(),
        "3.6541528853610087716454297203995", "0.0049286732339746553473617754023360", 52,
    )  # fmt: skip


@cache
def _of_exponentials() -> _Strips:
    return _strips(
        lambda x: (-x).exp(), lambda y: -y.ln(),
        "7.6971174701310497140446280480152", "0.0039496598225815572199775719568149", 53,
    )  # fmt: skip


def _normal(state: Any) -> Any:
    """A number of the standard normal distribution."""
    strips = _of_normals()
    widths, limits, heights = map(np.array, strips)
    found, done = 0.0, False
    while not done:
        bits = _word(state)
        strip, bits = int(bits & 0xFF), bits >> 8
        far = (bits >> 1) & 0xFFFFFFFFFFFFF
        found = float(far) * float(widths[strip])
        if bits & 1 != 0:
            found = -found
        if far < limits[strip]:
            done = True
        elif strip == 0:
            x, y = 0.0, 0.0
            while not done:
                x = -math.log1p(-_double(state)) / _NORMAL_END
                y = -math.log1p(-_double(state))
                done = y + y > x * x
            found = -(_NORMAL_END + x) if (far >> 8) & 1 != 0 else _NORMAL_END + x
        else:
            below = float(heights[strip])
            height = (float(heights[strip - 1]) - below) * _double(state) + below
            done = height < math.exp(-0.5 * found * found)
    return found


def _exponential(state: Any) -> Any:
    strips = _of_exponentials()
    widths, limits, heights = map(np.array, strips)
    found, done = 0.0, False
    while not done:
        bits = _word(state) >> 3
        strip, far = int(bits & 0xFF), bits >> 8
        found = float(far) * float(widths[strip])
        if far < limits[strip]:
            done = True
        elif strip == 0:
            found, done = _EXPONENTIAL_END - math.log1p(-_double(state)), True
        else:
            below = float(heights[strip])
            height = (float(heights[strip - 1]) - below) * _double(state) + below
            done = height < math.exp(-found)
    return found


# -- the generator's methods -----------------------------------------------------------------------


def random(state: Any, size: Any = None, dtype: Any = np.float64) -> Any:
    if np.dtype(dtype) == np.float64:
        return filled(state, _double, size)
    made = filled(state, _single, (1,) if size is None else size, np.float32)
    return float(made[0]) if size is None else made


def uniform(state: Any, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    return low + (high - low) * filled(state, _double, shape_of(size, low, high))


def standard_normal(state: Any, size: Any = None) -> Any:
    return filled(state, _normal, size)


def normal(state: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    return loc + scale * filled(state, _normal, shape_of(size, loc, scale))


def lognormal(state: Any, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
    found = normal(state, mean, sigma, size)
    return np.exp(found) if np.ndim(found) else math.exp(found)


def standard_exponential(state: Any, size: Any = None) -> Any:
    return filled(state, _exponential, size)


def exponential(state: Any, scale: Any = 1.0, size: Any = None) -> Any:
    return scale * filled(state, _exponential, shape_of(size, scale))


def integers(
    state: Any, low: Any, high: Any = None, size: Any = None, *, endpoint: Any = False
) -> Any:
    if high is None:
        low, high = 0, low
    low, most = int(low), int(high) - int(low) - (0 if endpoint else 1)
    if most < 0:
        raise ValueError("low > high" if endpoint else "low >= high")
    if size is None:
        return np.int64(low + _up_to(state, most))
    made = np.empty(size, np.int64)
    flat = made.reshape(-1)
    for i in range(len(flat)):
        flat[i] = low + _up_to(state, most)
    return made


def shuffle(state: Any, x: Any) -> None:
    shuffled(state, x, _up_to_by_mask)


def permutation(state: Any, x: Any) -> Any:
    return permuted(state, x, _up_to_by_mask)


def choice(state: Any, a: Any, size: Any = None, *, p: Any = None) -> Any:
    count = len(a) if np.ndim(a) else a
    if p is None and size is None:
        places = _up_to(state, count - 1)
    elif p is None:
        places = integers(state, 0, count, size)
    else:
        shares = np.cumsum(np.asarray(p))
        places = np.searchsorted(shares / shares[-1], filled(state, _double, size), side="right")
        places = int(places) if size is None else places
    return np.asarray(a)[places] if np.ndim(a) else places


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "random": random, "uniform": uniform, "standard_normal": standard_normal, "normal": normal,
    "lognormal": lognormal, "standard_exponential": standard_exponential,
    "exponential": exponential, "integers": integers, "shuffle": shuffle,
    "permutation": permutation, "choice": choice,
}  # fmt: skip
