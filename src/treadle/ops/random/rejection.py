"""Gamma, Poisson and binomial numbers by rejection, in NumPy, as TensorFlow's stateless ops give
them.

How often a number is tried again depends on the tries before it. So every number has a stream of
its own, which starts at a counter that its position decides; all numbers that are not accepted yet
are tried together.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treadle.core.arrays import broadcast_arrays
from treadle.core.tensor import NDArray
from treadle.ops.random.arrays import COUNTERS_PER_NUMBER, SMALLEST, for_each_stream
from treadle.ops.random.philox import philox
from treadle.ops.special.gamma import log_gamma

# The rate of Poisson numbers or the mean of binomial ones from which on they are made by Hörmann's
# transformed rejection, below one event after the other.
MANY = 10.0

# Where the mean is less, the streams of binomial numbers start closer together.
COUNTERS_PER_FEW = 42

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


class _Streams:
    """A Philox stream for each number, and the uniform and normal numbers (float64) drawn from it
    but not used yet: each group of words gives two of them, and the last one is used first."""

    def __init__(self, state: NDArray, starts: NDArray) -> None:
        """starts: the counter of each stream, counted from that of the state."""
        low, high, key = (int(s) & 0xFFFFFFFFFFFFFFFF for s in state)
        self.key = key & 0xFFFFFFFF, key >> 32
        self.low = starts.astype(np.uint64) + np.uint64(low)
        self.high = np.uint64(high) + (self.low < np.uint64(low)).astype(np.uint64)
        self._uniform = _Kept(len(starts))
        self._normal = _Kept(len(starts))

    def _units(self, which: NDArray) -> tuple[NDArray, NDArray]:
        """Two numbers in [0, 1) from the next group of words of some streams."""
        low, high = self.low[which], self.high[which]
        w0, w1, w2, w3 = philox((low & _LOW, low >> _HALF, high & _LOW, high >> _HALF), self.key)
        self.low[which] = low + np.uint64(1)
        self.high[which] = high + (self.low[which] == 0).astype(np.uint64)
        return _unit(w0, w1), _unit(w2, w3)

    def uniform(self, which: NDArray) -> NDArray:
        """The next uniform number of some streams."""
        empty = self._uniform.empty(which)
        self._uniform.fill(empty, *self._units(empty))
        return self._uniform.next(which)

    def normal(self, which: NDArray) -> NDArray:
        """The next normal number of some streams."""
        empty = self._normal.empty(which)
        u, v = self._units(empty)
        radius = np.sqrt(-2.0 * np.log(np.maximum(u, SMALLEST)))
        angle = 2.0 * math.pi * v
        self._normal.fill(empty, np.sin(angle) * radius, np.cos(angle) * radius)
        return self._normal.next(which)


def _unit(high: NDArray, low: NDArray) -> NDArray:
    mantissa = (high & np.uint64(0xFFFFF)) << _HALF | low
    unit: NDArray = mantissa.astype(np.float64) * 2.0**-52
    return unit


class _Kept:
    """Up to two numbers of each stream."""

    def __init__(self, streams: int) -> None:
        self.numbers = np.zeros((streams, 2))
        self.count = np.zeros(streams, np.int8)

    def empty(self, which: NDArray) -> NDArray:
        empty: NDArray = which[self.count[which] == 0]
        return empty

    def fill(self, which: NDArray, first: NDArray, second: NDArray) -> None:
        self.numbers[which, 0], self.numbers[which, 1] = first, second
        self.count[which] = 2

    def next(self, which: NDArray) -> NDArray:
        self.count[which] -= 1
        numbers: NDArray = self.numbers[which, self.count[which]]
        return numbers


def _positions(samples: int, members: int) -> NDArray:
    """The number of each element of [samples, members], counted member by member."""
    return (np.arange(members) * samples + np.arange(samples)[:, None]).reshape(-1)


@for_each_stream
def gamma(state: NDArray, alpha: NDArray, *, shape: tuple[int, ...]) -> NDArray:
    """Numbers of shape ``shape + alpha.shape``, by Marsaglia and Tsang's method."""
    samples = math.prod(shape)
    a = np.tile(alpha.astype(np.float64).reshape(-1), samples)
    streams = _Streams(state, _positions(samples, alpha.size) * COUNTERS_PER_NUMBER)
    result = np.full(a.shape, np.nan)
    ones, going = np.flatnonzero(a == 1.0), np.flatnonzero((a != 1.0) & (a >= 0.0))
    result[ones] = -np.log1p(-streams.uniform(ones))  # exponentially distributed
    small = a < 1.0  # the numbers of a + 1 are scaled down
    d = a + np.where(small, 2.0 / 3.0, -1.0 / 3.0)
    c = 1.0 / 3.0 / np.sqrt(np.maximum(d, 0.0))
    while going.size:
        x = streams.normal(going)
        v = 1.0 + c[going] * x
        tried, x, v = going[v > 0.0], x[v > 0.0], v[v > 0.0] ** 3
        u = streams.uniform(tried)
        limit = 0.5 * x * x + d[tried] * (1.0 - v + np.log(v))
        good = (u < 1.0 - 0.0331 * (x * x) * (x * x)) | (np.log(u) < limit)
        taken = tried[good]
        result[taken] = d[taken] * v[good]
        going = np.setdiff1d(going, taken, assume_unique=True)
        low = taken[small[taken]]
        result[low] *= streams.uniform(low) ** (1.0 / a[low])
    return result.reshape((*shape, *alpha.shape)).astype(alpha.dtype)


@for_each_stream
def poisson(state: NDArray, rate: NDArray, *, shape: tuple[int, ...]) -> NDArray:
    """Counts of shape ``shape + rate.shape``, float64."""
    samples = math.prod(shape)
    rates = np.tile(rate.astype(np.float64).reshape(-1), samples)
    streams = _Streams(state, _positions(samples, rate.size) * COUNTERS_PER_NUMBER)
    result = np.zeros(rates.shape)
    _arrivals(streams, rates, np.flatnonzero(rates < MANY), result)
    _many_arrivals(streams, rates, np.flatnonzero(rates >= MANY), result)
    return result.reshape((*shape, *rate.shape))


def _arrivals(streams: _Streams, rates: NDArray, going: NDArray, result: NDArray) -> None:
    """Knuth's method: how many factors keep a product of uniform numbers above exp(-rate)."""
    product, least = np.ones_like(rates), np.exp(-rates)
    while going.size:
        product[going] *= streams.uniform(going)
        going = going[product[going] > least[going]]
        result[going] += 1.0


def _many_arrivals(streams: _Streams, rates: NDArray, going: NDArray, result: NDArray) -> None:
    b = 0.931 + 2.53 * np.sqrt(rates)
    a = -0.059 + 0.02483 * b
    with np.errstate(divide="ignore"):
        inverse, box = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0)
    while going.size:
        u, v = streams.uniform(going) - 0.5, streams.uniform(going)
        s, t, rate = a[going], b[going], rates[going]
        side = 0.5 - np.abs(u)
        k = np.floor((2.0 * s / side + t) * u + rate + 0.43)
        inside = (side >= 0.07) & (v <= box[going])
        possible = (k >= 0.0) & ~((side < 0.013) & (v > side))
        count = np.maximum(k, 0.0)
        ratio = np.log(v * inverse[going] / (s / (side * side) + t))
        limit = -rate + count * np.log(rate) - log_gamma(count + 1.0)
        good = inside | (possible & (ratio <= limit))
        result[going[good]] = k[good]
        going = going[~good]


@for_each_stream
def binomial(
    state: NDArray, counts: NDArray, probs: NDArray, *, shape: tuple[int, ...]
) -> NDArray:
    """Numbers of successes, float64; the shape ends with that of counts and probs together."""
    n, p = broadcast_arrays(counts, probs)
    samples = math.prod(shape) // max(n.size, 1)
    narrow_n, narrow_p = (np.tile(part.reshape(-1), samples) for part in (n, p))
    flipped = narrow_p > 0.5
    q = np.where(flipped, narrow_p.dtype.type(1) - narrow_p, narrow_p)
    many = (narrow_n * q) >= MANY
    number, prob = narrow_n.astype(np.float64), q.astype(np.float64)
    positions = _positions(samples, n.size)
    result = np.where(prob == prob, 0.0, np.nan)
    usual = (number > 0.0) & (narrow_p > 0.0) & (narrow_p < 1.0)
    apart = np.where(many, COUNTERS_PER_NUMBER, COUNTERS_PER_FEW)
    streams = _Streams(state, positions * apart)
    _successes(streams, number, prob, np.flatnonzero(usual & ~many), result)
    _many_successes(streams, number, prob, np.flatnonzero(usual & many), result)
    every = (narrow_p >= 1.0) & (number > 0.0)
    result = np.where(usual & flipped, number - result, np.where(every, number, result))
    return result.reshape(shape)


def _successes(
    streams: _Streams, number: NDArray, prob: NDArray, going: NDArray, result: NDArray
) -> None:
    """How many geometric numbers, each the tries up to one success, fit into all tries."""
    tries, failing = np.zeros_like(number), np.log1p(-np.where(prob < 1.0, prob, 0.5))
    while going.size:
        tries[going] += np.ceil(np.log(streams.uniform(going)) / failing[going])
        going = going[tries[going] <= number[going]]
        result[going] += 1.0


def _many_successes(
    streams: _Streams, number: NDArray, prob: NDArray, going: NDArray, result: NDArray
) -> None:
    deviation = np.sqrt(np.maximum(number * prob * (1.0 - prob), 0.0))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    box = 0.92 - 4.2 / b
    scale = (2.83 + 5.1 / b) * deviation
    mode = np.floor((number + 1.0) * prob)
    while going.size:
        u, v = streams.uniform(going), streams.uniform(going)
        u = u - 0.5
        n, p, m, s, t = number[going], prob[going], mode[going], a[going], b[going]
        side = 0.5 - np.abs(u)
        k = np.floor((2.0 * s / side + t) * u + n * p + 0.5)
        inside = (side >= 0.07) & (v <= box[going])
        possible = (k >= 0.0) & (k <= n)
        x = np.clip(k, 0.0, n)
        odds = p / (1.0 - p)
        ratio = np.log(v * scale[going] / (s / (side * side) + t))
        limit = (
            (m + 0.5) * np.log((m + 1.0) / (odds * (n - m + 1.0)))
            + (n + 1.0) * np.log((n - m + 1.0) / (n - x + 1.0))
            + (x + 0.5) * np.log(odds * (n - x + 1.0) / (x + 1.0))
            + _stirling(m) + _stirling(n - m) - _stirling(x) - _stirling(n - x)
        )  # fmt: skip
        good = inside | (possible & (ratio <= limit))
        result[going[good]] = k[good]
        going = going[~good]


_STIRLING = np.array([
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287,
])  # fmt: skip


def _stirling(k: NDArray) -> NDArray:
    """What Stirling's formula leaves out of log(k!)."""
    near = _STIRLING[np.clip(k, 0, 9).astype(np.int64)]
    square = (k + 1.0) ** 2
    far = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
    found: Any = np.where(k <= 9.0, near, far)
    return found  # type: ignore[no-any-return]
