"""Comparisons of lists and tuples whose parts only the run knows, and of what may be None."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td


def parts(a: Any, b: Any, c: Any) -> Any:
    p, q = [a, b, c], [b, a, c]
    t, u = (a, c), (b, c)
    return (
        p == q, p != q, p < q, p <= q, p > q, p >= q,
        t == u, t != u, t < u, t <= u, t > u, t >= u, p == t,
    )  # fmt: skip


def of_two_lengths(n: Any, m: Any) -> Any:
    xs = [i * i % 7 for i in range(n)]
    ys = [i * i % 7 for i in range(m)]
    return xs == ys, xs != ys, xs < ys, xs <= ys, xs > ys, xs >= ys


def grown(n: Any) -> Any:
    a = []
    for i in range(n):
        if i % 2:
            a.append(i)
    b, c = list(range(1, n, 2)), [1, 3, 5]
    return a == b, a == c, c == a, c < a, a < c, a != c, [] == a, a > []


def of_many(n: Any) -> Any:
    a, b = [i % 5 for i in range(30)], list(range(30))
    a[3], b[3] = n, n
    return a == b, a < b, b > a, a[:4] == b[:4]


def largest(rows: Any) -> Any:
    best = [0, 0]
    for i in range(len(rows)):
        row = [rows[i, 0], rows[i, 1]]
        if row > best:
            best = row
    return best


def until_it_stays(xs: Any) -> Any:
    steps = 0
    while steps < 20:
        ys = [(xs[i] + xs[i - 1]) // 2 for i in range(len(xs))]
        if ys == xs:
            break
        xs = ys
        steps += 1
    return xs, steps


def maybe_none(x: Any) -> Any:
    y = z = None
    for i in range(len(x)):
        if x[i] > 0:
            y = i
        if x[i] > 1:
            z = i
    return y == z, y != z, z == 1, z != 1


CALLS: list[tuple[Any, tuple[Any, ...]]] = [
    *((parts, numbers) for numbers in [(1, 2, 3), (2, 2, 3), (3, 2, 0.5)]),
    *((of_two_lengths, sizes) for sizes in [(5, 5), (4, 6), (6, 4), (0, 4), (0, 0)]),
    *((grown, (n,)) for n in (6, 7, 0)),
    (of_many, (3,)),
    (largest, (np.array([[1, 2], [3, 1], [3, 0]]),)),
    (until_it_stays, ([5, 3, 9, 1],)),
    *((maybe_none, (np.array(x),)) for x in ([1.0, 2.0], [-1.0, -2.0], [1.0, 0.0])),
]


@pytest.mark.parametrize("function", dict.fromkeys(function for function, _ in CALLS))
def test_comparisons_are_pythons(function: Any) -> None:
    jitted = td.jit(function)
    for called, args in CALLS:
        if called is function:
            for _ in range(2):
                assert jitted(*args) == function(*args)


def test_arrays_are_compared_element_by_element() -> None:
    @td.jit
    def compared(x: Any, y: Any) -> Any:
        return x == y, x != y, x < y

    x, y = np.array([1.0, np.nan, 3.0]), np.array([1.0, np.nan, 4.0])
    for found, wanted in zip(compared(x, y), (x == y, x != y, x < y), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_objects_of_the_users_compare_themselves() -> None:
    class Version:
        def __init__(self, number: Any) -> None:
            self.number = number

        def __lt__(self, other: Any) -> Any:
            return self.number > other.number

        def __eq__(self, other: Any) -> Any:
            return self.number == other.number + 1

        __hash__ = None  # type: ignore[assignment]

    def compared(a: Any, b: Any) -> Any:
        first, second = Version(a), Version(b)
        return first < second, first == second

    assert td.jit(compared)(3, 2) == compared(3, 2) == (True, True)
