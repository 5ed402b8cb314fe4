"""Deques that have at most so many elements."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.jitted.errors import NotStaged

X = np.array([1.0, 5.0, 2.0, 7.0, 3.0])


def means(x: Any) -> Any:
    last: deque[Any] = deque(maxlen=3)
    best, firsts = -1e9, []
    for value in x:
        last.append(value)
        if len(last) == 3:
            best = max(best, sum(last) / 3)
        firsts.append(last[0])
    return best, list(last), firsts


def at_both_ends(x: Any) -> Any:
    held: deque[Any] = deque([1.0, 2.0, 3.0, 4.0], maxlen=3)
    held.append(x[0])
    held.appendleft(x[1])
    first, last = held.popleft(), held.pop()
    return first, last, len(held), list(held)


def begun_with(x: Any) -> Any:
    held = deque(x, maxlen=4)
    return max(held), min(held), 3.0 in held, list(held), held.maxlen


def extended(x: Any) -> Any:
    held = deque([0.0], maxlen=3)
    held.extend([v for v in x if v > 2.0])
    return list(held)


def that_hold_nothing(x: Any) -> Any:
    held: deque[Any] = deque(maxlen=0)
    for value in x:
        held.append(value)
        held.appendleft(value)
    return len(held)


@pytest.mark.parametrize("function", [extended, that_hold_nothing])
def test_deques_with_maxlen(function: Any) -> None:
    jitted = td.jit(function)
    for x in (X, X[::-1].copy()):
        assert jitted(x) == function(x)


@pytest.mark.thorough
@pytest.mark.parametrize("function", [means, at_both_ends, begun_with, extended])
def test_deques_with_maxlen_of_several_sizes(function: Any) -> None:
    jitted = td.jit(function)
    for x in (X, X[:2], X[::-1].copy()):
        assert jitted(x) == function(x)


def test_a_maxlen_of_the_run_is_refused() -> None:
    def held(x: Any) -> Any:
        return len(deque([1.0, 2.0], maxlen=int(x[0])))

    with pytest.raises(NotStaged, match="maxlen only the run knows"):
        td.jit(held)(X)
