"""Comprehensions of dicts and sets, and `Counter`, `dict`, `set` and `frozenset`, with keys that
only the run knows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import treadle as td


def dicts(x: Any) -> Any:
    by_value = {int(v): int(v) * 2 for v in x if v > 1}
    by_pair = {(int(v), 1): i for i, v in enumerate(x)}
    return by_value, by_pair


def sets(x: Any) -> Any:
    large = {v for v in x.tolist() if v > 1}
    return large, len({int(v) % 2 for v in x}), 5 in large, sum({int(v) for v in x})


def of_constants(x: Any) -> Any:
    found = dict.fromkeys(range(5), 0)
    squares = {i: i * i for i in range(5)}
    for i in range(5):
        found[i] += int(x[i]) * squares[i]
    named = {name: i for i, name in enumerate("abc")}
    return found, named


def counts(x: Any) -> Any:
    found = Counter(x.tolist())
    return found[1], found[99], len(found), Counter(int(v) for v in x).most_common(1)


def called(x: Any) -> Any:
    neighbours = set([(int(a), int(b)) for a, b in zip(x, x[1:], strict=False)])
    places = dict(zip(x.tolist(), range(len(x)), strict=True))
    return len(neighbours), places, len(frozenset(x.tolist()))


@pytest.mark.parametrize("function", [dicts, sets, of_constants, counts, called])
def test_as_python_makes_them(function):
    jitted = td.jit(function)
    for values in ([3, 1, 2, 5, 1], [1, 1, 1, 1, 2]):
        assert jitted(np.array(values)) == function(np.array(values))


def test_many_items():
    x = np.arange(40) % 7
    for function in (dicts, sets, counts):
        assert td.jit(function)(x) == function(x)
