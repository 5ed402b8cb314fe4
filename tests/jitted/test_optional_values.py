"""Variables and results of jitted functions that are None in some runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td

V = np.array([3.0, 1.0, 4.0, 1.5, -2.0])


def found_or_none(v: Any, wanted: Any) -> Any:
    for i in range(len(v)):
        if v[i] == wanted:
            return i
    return None


def nothing_at_the_end(v: Any) -> Any:
    if v.sum() > 100.0:
        return v * 2.0
    if v.sum() > 5.0:
        return None


def a_pair_or_none(v: Any) -> Any:
    if v.max() > 10.0:
        return None
    return v.max(), int(v.argmax())


def least_above(v: Any, limit: Any) -> Any:
    best = None
    for x in v[: len(v)]:
        if x > limit and (best is None or x < best):
            best = x
    return best


def last_two(v: Any, limit: Any) -> Any:
    """Pairs, in a loop whose length the run tells."""
    pair = None
    i = 0
    while i < len(v) and v[i] != limit:
        if v[i] > 0:
            pair = (i, v[i])
        i += 1
    if pair is not None:
        where, value = pair
        return where + value
    return -1.0


def reset_in_the_loop(v: Any) -> Any:
    open_at, total = None, 0
    for i in range(len(v)):
        if v[i] < 2.0:
            if open_at is not None:
                total += i - open_at
            open_at = None
        elif open_at is None:
            open_at = i
    return total, open_at


def helper(v: Any) -> Any:
    if v[0] > 0:
        return v[0]
    return None


def asks_a_helper(v: Any) -> Any:
    found = helper(v)
    if not found:
        return "no" if v.size == 0 else -1
    return found + 1


def array_or_none(v: Any) -> Any:
    part = v[1:3] if v[0] > 0 else None
    if part is None:
        return 0.0
    part[0] = 7.0
    return part.sum()


def in_arithmetic(v: Any) -> Any:
    scale = None
    if v[0] > 0:
        scale = v[0]
    return 2.0 * scale - np.sqrt(scale) + v * scale


def default_argument(v: Any, w: Any = None, axis: Any = None) -> Any:
    if w is None:
        w = np.ones_like(v)
    return (v * w).sum() if axis is None else (v * w).sum(axis)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (found_or_none, [(V, 4.0), (V, 5.0), (V, 3.0)]),
        (nothing_at_the_end, [(V,), (V * 100.0,), (-V,)]),
        (a_pair_or_none, [(V,), (V * 10.0,)]),
        (least_above, [(V, 1.0), (V, 9.0), (V, -5.0)]),
        (last_two, [(V, 1.5), (V, 3.0), (V, 100.0)]),
        (reset_in_the_loop, [(V,), (-V,), (V[::-1],), (V[:1],)]),
        (asks_a_helper, [(V,), (-V,)]),
        (array_or_none, [(V,), (-V,)]),
        (default_argument, [(V,), (V, V), (V, None, 0)]),
    ],
)
def test_optional(function: Any, arguments: Any) -> None:
    jitted = td.jit(function)
    for _ in range(2):
        for given in arguments:
            ours, plain = ([np.array(x) if x is given[0] else x for x in given] for _ in range(2))
            wanted, found = function(*plain), jitted(*ours)
            assert (wanted is None) is (found is None)
            if isinstance(wanted, tuple):
                assert [x is None for x in wanted] == [x is None for x in found]
                assert [x for x in wanted if x is not None] == [x for x in found if x is not None]
            elif wanted is not None:
                np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(ours[0], plain[0])


def test_none_in_arithmetic_is_an_error_of_the_run() -> None:
    jitted = td.jit(in_arithmetic)
    np.testing.assert_allclose(jitted(V), in_arithmetic(V))
    with pytest.raises(TypeError, match="None is used where a value is needed"):
        jitted(-V)
    np.testing.assert_allclose(jitted(V), in_arithmetic(V))


def of_tuples(v: Any, x: Any) -> Any:
    pair, steps = (x, v[0]), 0
    while pair != (0.0, 3.0) and steps < 10:
        pair = (pair[0] - 1.0, pair[1])
        steps += 1
    nested = (x, (v[1], 1)) == (2.0, (1.0, 1))
    return steps, pair == (0.0, 3.0), nested, pair in [(0.0, 3.0), (x, x)]


def test_comparisons_of_tuples() -> None:
    jitted = td.jit(of_tuples)
    for x in (2.0, 4.0, 4.5):
        assert jitted(V, x) == of_tuples(V, x)


def test_is_true_is_decided_by_the_program():
    def count(x):
        n = 0
        for i in range(len(x)):
            large = int(x[i]) > 2
            if large is True:
                n += 1
            if large is not False:
                n += 10
            if True is (x[i] > 2):  # one of NumPy's is no bool of Python's
                n += 100
        return n

    x = np.arange(6)
    assert td.jit(count)(x) == count(x) == 33
