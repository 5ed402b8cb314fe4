"""Lists that grow in branches and loops of jitted functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td

X = np.random.default_rng(1).random(300)
SHORT = X[:30]


def selected(a):
    found = []
    for x in a:
        if x > 0.5:
            found.append(x)
    return np.array(found), len(found), found


def appended_in_a_branch(a):
    found = []
    if a[0] > 0.6:
        found.append(a[1])
    return found


def pairs(a):
    found = []
    for i in range(len(a)):
        found.append((i, a[i] * 2))
    total = 0.0
    for i, v in found:
        total += i * v
    return total, found[-1], found[3], len(found), found


def rows(a):
    found = []
    for i in range(len(a)):
        row = np.zeros(3)
        row[0] = a[i]
        row[1] = i
        found.append(row)
    return np.array(found), np.vstack(found), np.stack(found, 1), found


def one_array_many_times(a):
    found, row = [], np.zeros(3)
    for i in range(len(a)):
        row[0] = a[i]
        found.append(row)
    return np.array(found)


def begun_again(a):
    current = []
    for x in a:
        if x > 0.2:
            current.append(x)
        else:
            current = []
    return current


def history(a):
    found, x = [], a.sum()
    while abs(x) > 1e-3:
        x = x * 0.7
        found.append(x)
    return found, max(found), sum(found), found[0], x in found, sorted(found)[0]


def two_lists(a):
    large, small = [], []
    for i in range(len(a)):
        if a[i] > 0.5:
            large.append(i)
        elif a[i] < 0.2:
            small.append(i)
    return large, small, a[large].sum(), np.array(small)


def a_stack(a):
    stack, seen = [0], 0
    while len(stack) > 0:
        v = stack.pop()
        seen += v
        if v < min(a.sum(), 15):
            stack.append(v + 1)
            if v % 7 == 0:
                stack.append(v + 5)
    return seen


def a_stack_by_its_truth(a):
    stack, count = [3], 0
    while stack:
        depth = stack.pop()
        count += 1
        if depth > a[0]:
            stack.extend([depth - 1, depth - 2])
    return count


def replaced_items(a):
    best = [0.0 * a[0]]
    for x in a:
        if x > best[-1]:
            best[-1] = x
        elif x < 0.01:
            best.append(x)
    return best


def known_lengths(a):
    found = []
    for i in range(10):
        found.append(a[i])
    return np.array(found).reshape(2, 5)


def nested_loops(a):
    found = []
    for i in range(20):
        for j in range(i):
            if a[i] > a[j]:
                found.append((i, j))
    return found


ALL = [
    selected, appended_in_a_branch, pairs, rows, one_array_many_times, begun_again, history,
    two_lists, a_stack, a_stack_by_its_truth, replaced_items, known_lengths, nested_loops,
]  # fmt: skip


def assert_alike(found, wanted):
    assert type(found) is type(wanted)
    if isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for x, y in zip(found, wanted, strict=True):
            assert_alike(x, y)
        return
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("values", [X, SHORT], ids=["long", "short"])
def test_results_are_those_of_python(function, values):
    jitted = td.jit(function)
    for _ in range(2):
        assert_alike(jitted(values), function(values))


def primes(count):
    found, i = [2], 3
    while len(found) < count:
        is_prime = True
        for p in found:
            if i % p == 0:
                is_prime = False
                break
        if is_prime:
            found.append(i)
        i += 2
    return found


def test_a_list_that_its_own_loop_reads():
    jitted = td.jit(primes)
    for count in (20, 30, 1):
        assert jitted(count) == primes(count)


def test_loops_that_append_stay_loops():
    def size(n):
        graph = td.jit(selected).get_concrete_function(np.ones(n)).graph
        return len(list(graph.walk()))

    assert size(2000) == size(100)


def test_an_array_that_changes_after_it_was_added():
    def changes(a):
        found, row = [], np.zeros(3)
        for x in a:
            if x > 0.5:
                found.append(row)
        row[0] = 1.0
        return found[0]

    with pytest.raises(TypeError, match=r"add a copy of it"):
        td.jit(changes)(X)


def test_an_element_that_is_changed_through_the_list():
    def changes(a):
        found = []
        for x in a:
            if x > 0.5:
                found.append(np.zeros(3))
        found[0][0] = 1.0
        return found[0]

    with pytest.raises(TypeError, match=r"copy\(\)"):
        td.jit(changes)(X)


def test_another_name_of_a_list_that_grew():
    def reads(a):
        found = []
        other = found
        for x in a:
            if x > 0.5:
                found.append(x)
        return other[0], other[-1], other[1:]

    assert td.jit(reads)(X) == reads(X)


def test_lists_of_comprehensions_that_grow():
    def percolates(a):
        n = len(a)
        free, seen = a > 0.45, np.zeros(n)
        stack = [i for i in range(3) if free[i]]
        while stack:
            i = stack.pop()
            seen[i] = 1.0
            for j in (i - 2, i + 1, i + 3):
                if 0 <= j < n and free[j] and seen[j] == 0.0:
                    stack.append(j)
        return seen

    def in_order(a):
        queue, head = [i for i in range(len(a)) if a[i] > 0.9], 0
        while head < len(queue):
            u = queue[head]
            head += 1
            if u % 7 == 0:
                queue.append(u + 1)
        return queue, queue[-1], queue[head - len(queue) - 2]

    def all_taken(a):
        kept = [2.0 * x for x in a]
        while len(kept) > 1 and kept[-1] > 0.3:
            kept.pop()
        return kept

    def another_name(a):
        stack = [i for i in range(len(a)) if a[i] > 0.9]
        other = stack
        while stack:
            stack.pop()
        return len(other)

    for function in (percolates, in_order, all_taken):
        for _ in range(2):
            wanted, found = function(X), td.jit(function)(X)
            if isinstance(wanted, np.ndarray):
                np.testing.assert_array_equal(found, wanted)
            else:
                assert found == wanted
    with pytest.raises(Exception, match="grew in a loop or branch"):
        td.jit(another_name)(X)


def test_a_variable_that_only_the_first_iteration_gives_a_value():
    def recurrence(a):
        out = np.zeros_like(a)
        for i in range(len(a)):
            if i == 0:
                z = a[0]
            elif i == 1:
                z = z - 0.5 * a[1]
            else:
                z = 0.5 * z + 0.25 * out[i - 2]
            steps = 0
            while steps < 3 and z > 0.1:
                z -= 0.1
                steps += 1
            out[i] = z
        return out

    for a in (X, SHORT, np.tile(X, 10)):
        np.testing.assert_allclose(td.jit(recurrence)(a), recurrence(a), rtol=1e-12)


# -- lists and dicts as elements -------------------------------------------------------------------


def rows(x: Any) -> Any:
    found = []
    for v in x:
        if v > 0:
            found.append([int(v), 0])
    return found


def item_by_item(x: Any) -> Any:
    found = rows(x)
    found[0][1] = 7
    for i in range(len(found)):
        found[i][1] += i
    return found


def in_a_dict(x: Any) -> Any:
    found: dict[int, list[int]] = {}
    for v in x:
        found[int(v)] = [int(v), 0]
    found[3][1] = 9
    for v in x:
        found[int(v)][0] += 1
    return found


def popped_and_changed(x: Any) -> Any:
    found = rows(x)
    last = found.pop()
    last[0] = 50
    return found, last


@pytest.mark.parametrize("function", [item_by_item, in_a_dict, popped_and_changed])
def test_items_of_elements_change(function):
    x = np.array([3, 1, 2, 5, 1])
    assert td.jit(function)(x) == function(x)


def appended_to(x: Any) -> Any:
    found = rows(x)
    found[0].append(4)
    return found


def by_another_name(x: Any) -> Any:
    found = rows(x)
    row = found[1]
    row[0] = 50
    return found


def after_it_was_added(x: Any) -> Any:
    found, row = [], [0, 0]
    for v in x:
        if v > 0:
            found.append(row)
    row[0] = 50
    return found


def of_dicts(x: Any) -> Any:
    found = [{"a": 1}]
    for v in x:
        if v > 0:
            found.append({"a": int(v)})
    found[1]["a"] = 5
    return found


@pytest.mark.parametrize("function", [appended_to, by_another_name, after_it_was_added, of_dicts])
def test_changes_of_an_element_by_another_name_are_refused(function):
    with pytest.raises(TypeError, match="under a name of its own"):
        td.jit(function)(np.array([3, 1, 2, 5, 1]))


@pytest.mark.parametrize(
    "part", [(None, 2), (1, 3), (1, None), (-2, None), (2, 1), (None, None), (3, 9)]
)
def test_parts_of_a_list_that_grows_are_assigned(part):
    """By as many items, by fewer and by more; `part` says where."""
    start, stop = part

    def spliced(x):
        found = []
        for v in x:
            if v > 1.0:
                found.append(v)
        others = found[::-1]
        found[start:stop] = others
        found[start:stop] = [7.0]
        return found

    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert td.jit(spliced)(x) == spliced(x)
