"""Loops that `break` and `return` leave: jitted they give what NumPy gives."""

import numpy as np
import pytest

import treadle as td
from treadle.core.switches import disabled


def first_above(x, bound):
    for i in range(x.shape[0]):
        if x[i] > bound:
            return i
    return -1


def sum_until(x, bound):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] > bound:
            break
        total += x[i]
    return total


def count_and_sum(x, bound):
    total, count = 0.0, 0
    for i in range(x.shape[0]):
        total += x[i]
        if total > bound:
            count += 1
            break
        if x[i] < -bound:
            count -= 5
            break
        count += 10
    return total, count


def mark(x, bound):
    marks = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        marks[i] = 1.0
        if x[i] > bound:
            marks[i] = 2.0
            break
        if x[i] < -bound:
            continue
        marks[i] = 3.0
    return marks


def rows(x, bound):
    hits = 0
    for i in range(4):
        place = 0.0
        for j in range(i, x.shape[0]):
            place += x[j]
            if place > bound:
                hits += j
                break
        if hits > 3 * x.shape[0] // 2:
            break
    return hits


def nested(x, bound):
    last = -1
    for i in range(x.shape[0]):
        last = i
        if x[i] > 0.0:
            if x[i] > bound:
                break
            last += 100
    return last


def forever(x, bound):
    i, value = 0, 1.0
    while True:
        value = value + abs(x[i % x.shape[0]])
        i += 1
        if value > bound:
            break
        if i >= 40_000:
            return -value
    return value + i


def previous_values(x, bound):
    a, b = 0.0, 1.0
    for i in range(x.shape[0]):
        a, b = b, a + x[i]
        if b > bound:
            a, b = b, a
            break
    return a, b


def flag_of_the_user(x, bound):
    found, place = False, -1
    for i in range(x.shape[0]):
        if found:
            break
        if x[i] > bound:
            found = True
            place = i
    return found, place


FUNCTIONS = [
    first_above, sum_until, count_and_sum, mark, rows, nested, forever, previous_values,
    flag_of_the_user,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_left_loops(function):
    numbers = np.random.default_rng(7)
    jitted = td.jit(function)
    for size in (1, 2, 50):
        x = numbers.normal(size=size)
        for bound in (-9.0, 0.5, 2.0, 900.0, 1e300):
            expected = function(x, bound)
            np.testing.assert_array_equal(jitted(x, bound), expected, strict=True)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_choice_of_numbers_changes_no_result(function):
    x = np.random.default_rng(3).normal(size=30)
    with disabled("choices"):
        other = td.jit(lambda x, bound: function(x, bound))(x, 1.5)
    np.testing.assert_array_equal(td.jit(function)(x, 1.5), other)


def test_a_loop_of_many_iterations_is_left():
    def last(x, bound):
        total, count = 0, 0
        for i in range(x.shape[0]):
            if x[i] == bound:
                count += 1
                break
            total += i
        return total, count, i

    x = np.arange(100_000)
    jitted = td.jit(last)
    for bound in (0, 255, 256, 257, 99_999, -1):
        assert tuple(map(int, jitted(x, bound))) == tuple(map(int, last(x, bound)))


def test_what_is_computed_on_the_way_out_is_a_branch():
    def hits(x, bound):
        place, count = 0.0, 0
        for i in range(x.shape[0]):
            place += x[i]
            if place > bound:
                count += 1
                break
        return count

    stages = td.inspect.stages(td.jit(hits), np.ones(9), 4.0)
    assert "cond(" in stages["graph after passes"]
    assert "label %leave" in stages["llvm"]
