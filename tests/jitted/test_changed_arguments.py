"""Lists and dicts among the arguments of jitted functions: the caller sees what they hold."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import treadle as td


def assigned(n: Any, a: Any, d: Any, rows: Any) -> Any:
    a[0] = a[1] * 2.0
    d["k"] += n
    d["new"] = a[0]
    rows[0][1] = n
    for i in range(n):
        a[2] += i
    return a


def longer(n: Any, a: Any, d: Any, rows: Any) -> Any:
    for i in range(3):
        a.append(i * d["k"])
    rows.pop()
    rows[0] += [n]
    return len(rows)


def with_arrays(n: Any, a: Any, d: Any, rows: Any) -> Any:
    x = np.ones(3) * n
    d["x"] = x
    if a[0] > 0.5:
        a[1] = float(x.sum())
    rows[0], rows[1] = rows[1], [n, n]


@pytest.mark.parametrize("function", [assigned, longer, with_arrays])
def test_the_caller_sees_changes(function: Any) -> None:
    jitted = td.jit(function)
    given = ([1.0, 2.0, 3.0], {"k": 1.5}, [[1, 2], [3, 4]])
    ours, plain = copy.deepcopy(given), copy.deepcopy(given)
    held = ours[2][1]
    for n in (3, 5, 5, 7):
        if function is longer:  # each call changes the lengths
            ours, plain = copy.deepcopy(given), copy.deepcopy(given)
        assert repr(jitted(n, *ours)) == repr(function(n, *plain))
        assert repr(ours) == repr(plain)
    assert function is not assigned or ours[2][1] is held


def test_calls_in_functions_and_under_tapes() -> None:
    @td.jit
    def change(values: Any, x: Any) -> Any:
        values[0] = x * 2.0
        return x + values[1]

    @td.jit
    def outer(x: Any) -> Any:
        values = [x, 1.0]
        y = change(values, x)
        return y + values[0]

    assert np.array_equal(outer(np.arange(3.0)), np.arange(3.0) * 3.0 + 1.0)

    @td.function
    def traced(x: Any) -> Any:
        values = [x, 1.0]
        y = change(values, x)
        return y + values[0]

    assert np.array_equal(traced(td.range(3.0)), np.arange(3.0) * 3.0 + 1.0)
    values, x = [td.range(3.0), 1.0], td.range(3.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = change(values, x)
    assert np.array_equal(y, np.arange(3.0) + 1.0) and np.array_equal(values[0], x * 2.0)


def test_lists_dicts_and_sets_that_only_the_run_knows_are_the_callers() -> None:
    def grow(values: Any, counts: Any, seen: Any, x: Any) -> Any:
        other = values
        for v in x:
            if v > 2:
                values.append(v * 0.5)
            counts[v] = counts.get(v, 0.0) + 1.0
            seen.add(v)
        counts.pop(x[0])
        return len(other), other

    given = [([1.0], {7: 1.0}, {3, 5}, np.arange(n) % 6) for n in (8, 300)]
    jitted = td.jit(grow)
    for one in given:
        own = copy.deepcopy(one)
        assert jitted(*own) == grow(*one)
        assert own[:3] == one[:3]


def test_two_names_of_a_list_that_grows_are_one_list_or_refused() -> None:
    def names(values: Any, x: Any) -> None:
        other = values
        for v in x:
            if v > 2:
                values.append(v)
                other.append(0)

    def rebound(values: Any, x: Any) -> Any:
        for i in range(len(x)):
            if x[i] > 2:
                values = [v * 2 for v in values]
            values.append(x[i])
        return values

    def own(values: Any, x: Any) -> Any:
        values = list(values)
        return rebound(values, x)

    with pytest.raises(TypeError, match="two names"):
        td.jit(names)([0], np.arange(300))
    assert td.jit(own)([1], np.arange(5)) == rebound([1], np.arange(5))
    with pytest.raises(UnboundLocalError, match="may be one that append"):  # which does it miss?
        td.jit(rebound)([1], np.arange(5))


def test_branches_change_what_they_find_by_name() -> None:
    def largest(x: Any) -> Any:
        found = [0, -1]

        def see(i: Any) -> None:
            if x[i] > found[0]:
                found[0] = x[i]
                found[1] = i

        for i in range(len(x)):
            see(i)
        return found

    def united(x: Any) -> Any:
        parent = [0, 1, 2, 3, 4, 5, 6, 7]

        def find(v: Any) -> Any:
            while parent[v] != v:
                parent[v] = parent[parent[v]]
                v = parent[v]
            return v

        for i in range(len(x) - 1):
            a, b = find(x[i]), find(x[i + 1])
            if a != b:
                parent[a] = b
        return parent

    def keep(x: Any) -> Any:
        kept: Any = []

        def see(v: Any) -> None:
            if v > 2:
                kept.append(v)

        for v in x:
            see(v)
        return len(kept)

    x = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    assert td.jit(largest)(x) == largest(x)
    x = np.random.default_rng(0).integers(0, 8, 100)
    assert td.jit(united)(x) == united(x)
    assert td.jit(keep)(np.arange(5)) == keep(np.arange(5))


def sieve(n: Any) -> Any:
    is_prime, primes = [True] * n, []
    for i, prime in enumerate(is_prime):
        if prime:
            primes.append(i)
            for k in range(2 * i + 2, n, i + 1):
                is_prime[k] = False
    return primes


def test_items_are_read_when_their_iteration_begins() -> None:
    assert td.jit(sieve)(100) == sieve(100)


def assigned_another(a: Any, b: Any, x: Any) -> Any:
    if x[0] > 0:
        a = b
    a[0] = 5
    return a[0] + b[0]


def appended_to_another(a: Any, b: Any, x: Any) -> Any:
    if x[0] > 0:
        a = b
    a.append(7)
    return len(a) + len(b)


def another_of_its_own(a: Any, b: Any, x: Any) -> Any:
    if x[0] > 0:
        a = [9, 9, 9]
    a[1] = b[1]
    return a[1]


def rows_of_an_argument(a: Any, b: Any, x: Any) -> Any:
    rows = (a, b)
    for i in range(len(x)):
        if x[i] > 0:
            row = rows[0]
        else:
            row = rows[1]
        row[0] += x[i]
    return a[0] - b[0]


@pytest.mark.parametrize("program", [assigned_another, another_of_its_own, rows_of_an_argument])
def test_changes_of_lists_that_may_be_the_callers(program: Any) -> None:
    jitted = td.jit(program)
    for x in ([1.0, -1.0], [-1.0, 1.0]):
        given = [1, 2, 3], [4, 5, 6], np.array(x)
        own = copy.deepcopy(given)
        assert jitted(*own) == program(*given)
        assert own[:2] == given[:2]


def test_a_list_that_may_be_the_callers_does_not_grow() -> None:
    with pytest.raises(UnboundLocalError, match="may be one that append.. changed"):
        td.jit(appended_to_another)([1, 2, 3], [4, 5, 6], np.array([1.0, -1.0]))


def copied_before(a: Any, b: Any, x: Any) -> Any:
    if x[0] > 0:
        a = b
    a = list(a)
    a[0] = 5
    return a[0] + b[0] + a[1]


def read_only(a: Any, b: Any, x: Any) -> Any:
    if x[0] > 0:
        a = b
    b[2] = 8
    return a[0] + a[1]


def changed_in_the_branch(a: Any, b: Any, x: Any) -> Any:
    if x[0] > 0:
        a[0] = 5
    else:
        b[0] = 6
    return a[0] + b[0]


@pytest.mark.parametrize("program", [copied_before, read_only, changed_in_the_branch])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_lists_that_may_be_the_callers_are_read_and_copied(program: Any, sign: float) -> None:
    given = [[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [4, 5, 6]]
    wanted = program(*given[0], np.array([sign]))
    assert td.jit(program)(*given[1], np.array([sign])) == wanted
    assert given[0] == given[1]


def test_sets_whose_elements_are_known_are_the_callers() -> None:
    def visit(graph: Any, node: Any, seen: Any) -> Any:
        seen.add(node)
        for other in graph[node]:
            if other not in seen:
                visit(graph, other, seen)
        return len(seen)

    jitted, graph = td.jit(visit), {0: [1, 2], 1: [2], 2: [0], 3: [0]}
    for node, expected in ((0, {0, 1, 2}), (3, {0, 1, 2, 3})):
        seen: set[Any] = set()
        assert jitted(graph, node, seen) == len(expected)
        assert seen == expected


def test_a_trace_that_is_given_up_has_not_changed_a_set() -> None:
    def paths(grid: Any, row: Any, column: Any, seen: Any) -> Any:
        outside = min(row, column) < 0 or row == len(grid) or column == len(grid[0])
        if outside or (row, column) in seen or grid[row][column] == 1:
            return 0
        if row == len(grid) - 1 and column == len(grid[0]) - 1:
            return 1
        seen.add((row, column))
        found = paths(grid, row + 1, column, seen) + paths(grid, row, column + 1, seen)
        seen.remove((row, column))
        return found

    jitted = td.jit(paths)
    for grid in ([[0, 1, 0], [1, 0, 0]], [[0, 0, 0], [0, 1, 0]], [[0, 0, 0], [0, 0, 0]]):
        assert jitted(grid, 0, 0, set()) == paths(grid, 0, 0, set())


def test_a_set_that_is_returned_is_the_callers_own() -> None:
    jitted = td.jit(lambda x: ({1, 2}, x))
    jitted(1.0)[0].add(3)
    assert jitted(2.0)[0] == {1, 2}
