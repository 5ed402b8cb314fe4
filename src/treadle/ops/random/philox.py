"""Philox 4x32-10: the counter-based bit generator, in NumPy and as kernel expressions.

A state is three int64: the low and high halves of a 128-bit counter, and the key. Group g of a
request uses counter + g and gives four 32-bit words. Both forms below give the same bits, and
TensorFlow's ``Generator`` and stateless ops use the same layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.kernel.ir import Expr, apply, cast, const

Words = tuple[Any, Any, Any, Any]

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def counter_words(state: np.ndarray[Any, Any], groups: int) -> tuple[Words, tuple[int, int]]:
    """The counters of `groups` consecutive groups as four uint64 arrays of 32-bit values, and
    the two key words."""
    low, high, key = (int(s) & 0xFFFFFFFFFFFFFFFF for s in state)
    position = np.arange(groups, dtype=np.uint64)
    lows = position + np.uint64(low)
    highs = np.uint64(high) + (lows < position).astype(np.uint64)
    words = lows & _LOW, lows >> _HALF, highs & _LOW, highs >> _HALF
    return words, (key & 0xFFFFFFFF, key >> 32)


def philox(counter: Words, key: tuple[int, int]) -> Words:
    """The four output words (uint64 arrays holding 32-bit values) of each counter."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    m0, m1 = (np.uint64(m) for m in MULTIPLIERS)
    for _ in range(ROUNDS):
        p0, p1 = c0 * m0, c2 * m1
        c0, c1, c2, c3 = (
            (p1 >> _HALF) ^ c1 ^ np.uint64(k0),
            p1 & _LOW,
            (p0 >> _HALF) ^ c3 ^ np.uint64(k1),
            p0 & _LOW,
        )
        k0, k1 = (k0 + KEY_STEPS[0]) & 0xFFFFFFFF, (k1 + KEY_STEPS[1]) & 0xFFFFFFFF
    return c0, c1, c2, c3


def random_words(state: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """The first `count` uint32 words of the stream at `state`."""
    words = philox(*counter_words(state, -(-count // 4)))
    return np.stack(words, axis=-1).astype(np.uint32).reshape(-1)[:count]


# -- as kernel expressions -----------------------------------------------------------------------


def _u32(value: int) -> Expr:
    return const(value, dtypes.uint32)


def _u64(value: int) -> Expr:
    return const(value, dtypes.uint64)


def _halves(value: Expr) -> tuple[Expr, Expr]:
    """The low and high 32 bits of a uint64 expression."""
    return cast(value, dtypes.uint32), cast(apply("shr", value, _u64(32)), dtypes.uint32)


def _product(word: Expr, multiplier: int) -> tuple[Expr, Expr]:
    """The low and high words of a 32 by 32 bit product."""
    return _halves(apply("mul", cast(word, dtypes.uint64), _u64(multiplier)))


def philox_exprs(counter: Sequence[Expr], key: Sequence[Expr]) -> tuple[Expr, ...]:
    """The four output words of a counter given as four uint32 expressions."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        (low0, high0), (low1, high1) = _product(c0, MULTIPLIERS[0]), _product(c2, MULTIPLIERS[1])
        c0, c2 = (
            apply("xor", apply("xor", high1, c1), k0),
            apply("xor", apply("xor", high0, c3), k1),
        )
        c1, c3 = low1, low0
        k0, k1 = apply("add", k0, _u32(KEY_STEPS[0])), apply("add", k1, _u32(KEY_STEPS[1]))
    return c0, c1, c2, c3


def group_exprs(state: Sequence[Expr], group: Expr) -> tuple[Expr, ...]:
    """The four words of group number `group` (int64) at a state of three int64 expressions."""
    base, high, key = (cast(s, dtypes.uint64) for s in state)
    position = cast(group, dtypes.uint64)
    low = apply("add", base, position)
    carry = cast(apply("lt", low, position), dtypes.uint64)
    counter = (*_halves(low), *_halves(apply("add", high, carry)))
    return philox_exprs(counter, _halves(key))
