"""Functions that call themselves, not only last, as often as only the run knows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.jitted.errors import NotStaged


def fibonacci(n: Any) -> Any:
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def factorial(n: Any) -> Any:
    return 1 if n <= 1 else n * factorial(n - 1)


def ackermann(m: Any, n: Any) -> Any:
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def halves(x: Any, depth: Any = 0) -> Any:
    """Keywords, defaults, tuples as results, a walrus and an augmented assignment."""
    if x < 1.0:
        return x, depth
    total, deepest = halves(x / 2, depth=depth + 1)
    total += halves(x=x / 3, depth=depth + 1)[0]
    return total, deepest


def routes(n: Any, m: Any, seen: Any) -> Any:
    seen[n, m] += 1
    found = 0
    for step in (1, 2):
        if n >= step:
            found += routes(n - step, m, seen)
        if m < step:
            continue
        found += routes(n, m - step, seen)
        if found > 50:
            break
    else:
        found += 1
    return found


def search(n: Any, rest: Any) -> Any:
    """Operands that are calls, one of which may not be done."""
    if rest == 0:
        return True
    if n == 0 or rest < 0:
        return False
    return search(n - 1, rest) or search(n - 1, rest - n * n)


def counted(n: Any, depth: Any) -> Any:
    """In a while loop."""
    total, i = 0, 0
    while i < n:
        if depth > 0:
            total += counted(i, depth - 1)
        i += 1
    return total + 1


def powers(x: Any, n: Any) -> Any:
    """An inner function."""

    def power(k: Any) -> Any:
        if k == 0:
            return 1.0
        half = power(k // 2)
        return half * half * (x if k % 2 else 1.0)

    return power(n)


@pytest.mark.parametrize("n", [1, 7, 12])
@pytest.mark.parametrize("function", [fibonacci, factorial])
def test_of_one_int(function: Any, n: int) -> None:
    jitted = td.jit(function)
    for k in (3, n):
        assert jitted(k) == function(k) and type(jitted(k)) is int


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (ackermann, [(1, 1), (2, 2), (2, 3)]),
        (halves, [(3.0,), (20.0,), (0.5,)]),
        (search, [(3, 14), (5, 39), (5, 47)]),
        (counted, [(2, 1), (4, 2), (5, 3)]),
        (powers, [(1.5, 3), (1.1, 10), (2.0, 0)]),
    ],
)
def test_functions(function: Any, calls: Any) -> None:
    jitted = td.jit(function)
    for args in calls:
        assert jitted(*args) == function(*args)


def test_loops_with_an_array_that_all_calls_change() -> None:
    jitted = td.jit(routes)
    for n, m in ((1, 2), (2, 3), (3, 3)):
        seen, expected = np.zeros((5, 5), int), np.zeros((5, 5), int)
        assert jitted(n, m, seen) == routes(n, m, expected)
        np.testing.assert_array_equal(seen, expected)


def quicksort(a: Any, low: Any, high: Any) -> None:
    if low < high:
        last, i = a[high], low
        for j in range(low, high):
            if a[j] <= last:
                a[i], a[j] = a[j], a[i]
                i += 1
        a[i], a[high] = a[high], a[i]
        quicksort(a, low, i - 1)
        quicksort(a, i + 1, high)


def test_a_procedure() -> None:
    jitted = td.jit(quicksort)
    for n in (3, 40, 41):
        a = np.random.default_rng(n).permutation(n).astype(float)
        assert jitted(a, 0, n - 1) is None
        np.testing.assert_array_equal(a, np.arange(n))


@functools.lru_cache
def kept(n: Any) -> Any:
    return n if n < 2 else kept(n - 1) + kept(n - 2)


def longest_common(x: Any, y: Any) -> Any:
    @functools.cache
    def of(i: Any, j: Any) -> Any:
        if i == len(x) or j == len(y):
            return 0
        if x[i] == y[j]:
            return 1 + of(i + 1, j + 1)
        return max(of(i + 1, j), of(i, j + 1))

    return of(0, 0)


def test_results_that_functools_keeps() -> None:
    jitted = td.jit(lambda n: kept(n) + 1)
    for n in (3, 10, 80):  # without a dict the last one would never end
        assert jitted(n) == kept(n) + 1
    x, y = np.random.default_rng(0).integers(0, 4, (2, 40))
    assert td.jit(longest_common)(x, y) == longest_common(x, y)


def test_functions_that_python_would_trace_to_the_end_stay_as_they_are() -> None:
    def nested(rows: Any) -> Any:
        return sum(nested(r) for r in rows) if isinstance(rows, list) else rows

    assert td.jit(nested)([1.0, [2.0, [3.0, 4.0]]]) == 10.0


def keeps(x: Any) -> Any:
    found = [x, 1.0]
    if x > 0:
        found[1] = keeps(x - 1.0)[1]
    return found


def test_what_no_stack_holds_is_refused() -> None:
    with pytest.raises(NotStaged, match="keeps a list or dict"):
        td.jit(keeps)(3.0)


def test_a_branch_that_only_later_calls_reach() -> None:
    def best(depth: Any, place: Any, is_max: Any, scores: Any) -> Any:
        if depth == 3:
            return scores[place]
        if is_max:
            return max(best(depth + 1, 2 * place, False, scores),
                       best(depth + 1, 2 * place + 1, False, scores))  # fmt: skip
        return min(best(depth + 1, 2 * place, True, scores),
                   best(depth + 1, 2 * place + 1, True, scores))  # fmt: skip

    jitted, scores = td.jit(best), [90, 23, 6, 33, 21, 65, 123, 4]
    for depth, place in ((0, 0), (1, 1), (2, 3)):
        assert jitted(depth, place, True, scores) == best(depth, place, True, scores)
def test_texts_of_one_character_are_kept(capsys: Any) -> None:
    def move(height: Any, source: Any, target: Any, other: Any) -> None:
        if height >= 1:
            move(height - 1, source, other, target)
            print(height, source, "to", target)
            move(height - 1, other, target, source)

    jitted = td.jit(move)
    for height in (2, 3, 4):
        jitted(height, "A", "B", "C")
        found = capsys.readouterr().out
        move(height, "A", "B", "C")
        assert found == capsys.readouterr().out


