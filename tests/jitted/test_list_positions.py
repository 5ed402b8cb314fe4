"""Python's lists at positions that only the run knows, lists in lists, deques, and functions that
call themselves last."""

from __future__ import annotations

import copy
from collections import Counter, deque
from typing import Any

import numpy as np
import pytest

import treadle as td


def check(function: Any, *arguments: Any) -> Any:
    jitted = td.jit(function)
    for _ in range(2):
        given, own = copy.deepcopy(arguments), copy.deepcopy(arguments)
        assert jitted(*own) == function(*given), function.__name__
        assert all(a is b or np.array_equal(a, b) for a, b in zip(own, given, strict=True))
    return jitted


def a_row(k: Any) -> Any:
    rows = [[1, 2], [3, 4], [5, 6]]
    row = rows[k[0]]
    row[0] = 9
    return rows, row


def rows_in_a_loop(k: Any) -> Any:
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    for i in range(len(k)):
        rows[k[i]][0] += k[i] * 0.5
        row = rows[k[i]]
        row[1] = k[i] * 1.5
    return rows


def knapsack(k: Any) -> Any:
    best = [[0] * 20 for _ in range(len(k) + 1)]
    for i in range(1, len(k) + 1):
        for room in range(20):
            best[i][room] = best[i - 1][room]
            if k[i - 1] <= room and best[i - 1][room - k[i - 1]] + 1 > best[i][room]:
                best[i][room] = best[i - 1][room - k[i - 1]] + 1
    return best[len(k)][19]


def counted(k: Any) -> Any:
    found = [0] * 40
    for v in k:
        found[v] += 1
    return found, found[k[0] : 3]


@pytest.mark.parametrize("function", [a_row, rows_in_a_loop, knapsack, counted])
def test_items_at_positions_of_the_run(function: Any) -> None:
    check(function, np.array([2, 1, 2, 1] * 10))


def test_loops_over_lists_in_lists_stay_loops() -> None:
    jitted = check(knapsack, np.arange(1, 30))
    assert sum(1 for _ in jitted.concrete_functions[-1].executable.graph.walk()) < 200


def test_a_list_of_the_caller_at_positions_of_the_run() -> None:
    def sort(values: Any) -> Any:
        for i in range(1, len(values)):
            k = i
            while k > 0 and values[k] < values[k - 1]:
                values[k], values[k - 1] = values[k - 1], values[k]
                k -= 1
        return values

    for count in (5, 40):
        check(sort, [float(i * 7919 % 101) for i in range(count)])


def merged(values: Any) -> Any:
    """Lists that only the run knows, from which the first items are taken."""

    def merge(left: Any, right: Any) -> Any:
        found = []
        while left and right:
            found.append((left if left[0] <= right[0] else right).pop(0))
        found.extend(left)
        return found + right

    if len(values) < 2:
        return values
    half = len(values) // 2
    return merge(merged(values[:half]), merged(values[half:]))


def test_a_sort_by_merging() -> None:
    check(merged, [3.0, 1.0, 2.0, 5.0, 4.0])


def test_methods_of_lists_that_grow() -> None:
    def changed(x: Any) -> Any:
        found = []
        for v in x:
            if v > 1:
                found.append(v)
        found.insert(1, 10.0)
        found.insert(-1, 11.0)
        first = found.pop(0)
        found.remove(10.0)
        found.reverse()
        return found, first, found.index(5.0), found.count(11.0), found + [1.5]

    x = np.arange(7.0)
    check(changed, x)
    with pytest.raises(ValueError, match="not in the list"):
        td.jit(changed)(x * 0.5)

    def walk(x: Any) -> Any:
        queue, seen = deque([0]), 0
        while queue:
            u = queue.popleft()
            seen += 1
            if 2 * u + 2 < len(x) and x[u] > 0:
                queue.append(2 * u + 1)
                queue.append(2 * u + 2)
        return seen

    assert td.jit(walk)(np.ones(30)) == 29
    assert td.jit(lambda x: Counter([x, x, 2]))(1) == Counter({1: 2, 2: 1})


def divisor(a: Any, b: Any) -> Any:
    if b == 0:
        return a
    return divisor(b, a % b)


def place(x: Any, v: Any, low: Any, high: Any) -> Any:
    if low > high:
        return -1
    middle = (low + high) // 2
    if x[middle] == v:
        return middle
    return place(x, v, middle + 1, high) if x[middle] < v else place(x, v, low, middle - 1)


def numbers(n: Any) -> Any:
    return n if n < 2 else numbers(n - 1) + numbers(n - 2)


def test_functions_that_call_themselves() -> None:
    jitted = td.jit(divisor)
    assert [jitted(a, b) for a, b in ((12, 18), (35, 14), (100, 75))] == [6, 7, 25]
    jitted, x = td.jit(place), np.arange(20.0)
    assert [jitted(x, v, 0, 19) for v in (0.0, 19.0, 7.5)] == [0, 19, -1]
    assert td.jit(lambda x: numbers(int(x[0])))(np.array([8])) == 21


def in_a_branch_of_pythons(x: Any, flag: Any) -> Any:
    counts, steps, i = {}, [], 0
    if flag:
        steps.append(-1)
        for v in x:
            counts[v] = 1
    while i < 2:
        steps.append(i)
        i += 1
        name = "q" * i
        for v in x:
            counts[v] = counts.get(v, 0) + len(name)
    return counts, steps


def test_what_python_has_run_does_not_run_again() -> None:
    check(in_a_branch_of_pythons, np.arange(9) % 4, True)


def test_texts_that_are_made_before_they_are_raised() -> None:
    @td.jit
    def checked(x: Any) -> Any:
        for i in range(len(x)):
            if x[i] < 0:
                text = f"x[{i}] is {x[i]}"
                raise ValueError(text)
        return x.sum()

    assert checked(np.ones(3)) == 3.0
    with pytest.raises(ValueError, match=r"^x\[1\] is -2.0$"):
        checked(np.array([1.0, -2.0]))


def test_a_table_of_ints_takes_floats():
    def filled(x):
        n = len(x)
        table = [[0] * n for _ in range(n)]
        for i in range(1, n):
            for j in range(1, n):
                table[i][j] = table[i - 1][j] * 0.5 + x[i] * table[i][j - 1] + 1
        return table[n - 1][n - 1]

    x = np.linspace(0.0, 1.0, 20)
    np.testing.assert_allclose(td.jit(filled)(x), filled(x), rtol=1e-12)
