"""Random calls of a few functions: arguments that overlap, are strided, read-only, scalars ..."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import treadle as td

LENGTH = 4


def move(x: Any, y: Any, n: Any, k: Any) -> Any:
    x[1:] = y[:-1] * k + n
    return x, y.sum()


def both(x: Any, y: Any, n: Any, k: Any) -> Any:
    x += y
    y *= k
    return x[0] + n, y[::-1], x is y


def read(x: Any, y: Any, n: Any, k: Any) -> Any:
    return [x * k - y, x[:2], x[:n].sum(), n + 1, k * 2, x is y]


def scan(x: Any, y: Any, n: Any, k: Any) -> Any:
    total = k
    for i in range(n):
        y[i] = x[i] + total
        total += y[i]
    return total


def arguments(rng: random.Random) -> tuple[Any, ...]:
    """Two arrays in one memory or in two, an int and a float."""
    memory = np.arange(1.0, 33.0)

    def array() -> Any:
        start = rng.choice([0, 1, 4, 8, 12, 28])
        made = {
            "plain": lambda: memory[start : start + LENGTH],
            "own": lambda: np.arange(1.0, 1.0 + LENGTH),
            "strided": lambda: memory[start % 16 : start % 16 + 2 * LENGTH : 2],
            "backwards": lambda: memory[start : start + LENGTH][::-1],
            "column": lambda: memory.reshape(8, 4)[:LENGTH, start % 4],
        }[rng.choice(["plain"] * 6 + ["own"] * 3 + ["strided", "backwards", "column"])]()
        if rng.random() < 0.05:
            made.flags.writeable = False
        return made

    x = array()
    y = x if rng.random() < 0.15 else array()
    n = rng.choice([2, 2, 3, np.int64(2), True]) if rng.random() < 0.3 else 2
    k = rng.choice([0.5, -0.0, 2, np.float64(1.5)]) if rng.random() < 0.5 else rng.uniform(-1, 1)
    return memory, x, y, n, k


def outcome(function: Any, seed: int) -> Any:
    """What a call gives, and what the memory of its arguments holds afterwards."""
    memory, x, y, n, k = arguments(random.Random(seed))
    try:
        result = function(x, y, n, k)
    except (ValueError, TypeError) as error:
        return type(error)
    flat = result if isinstance(result, tuple | list) else [result]
    shared = [isinstance(v, np.ndarray) and np.shares_memory(v, x) for v in flat]
    return type(result), flat, shared, [memory, x, y]


@pytest.mark.parametrize("function", [move, both, read, scan])
def test_random_calls(function: Any) -> None:
    jitted = td.jit(function)
    for seed in range(600):
        wanted, found = outcome(function, seed), outcome(jitted, seed)
        if isinstance(wanted, type):
            assert found is wanted, seed
            continue
        assert found[0] is wanted[0] and found[2] == wanted[2], seed
        for a, b in zip([*wanted[1], *wanted[3]], [*found[1], *found[3]], strict=True):
            assert type(a) is type(b), (seed, a, b)
            np.testing.assert_allclose(b, a, rtol=1e-12, err_msg=str(seed))
    calls = jitted._plans.native
    assert calls is None or sum(plan.hits for plan in calls.plans) > 100
