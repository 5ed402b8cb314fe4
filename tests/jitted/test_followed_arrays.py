"""Loop variables that become arrays from outside of the loop, and changes by any of their names."""

import numpy as np
import pytest

import treadle as td


def becomes_another_argument(a, b, c, n):
    for i in range(n):
        a[i] += 0.1
        a = b


def becomes_a_row(a, b, c, n):
    for i in range(n):
        a[i] += 0.1
        a = c[1]
    return a


def changed_by_both_names(a, b, c, n):
    for i in range(n):
        a = b
        b[i] += 1
        a[i] *= 2
    return a


def changed_after_it_was_taken(a, b, c, n):
    t = 0.0
    for i in range(n):
        a[0] += 1
        t += a[1]
        a = b
        b[1] += 1
    return t, a


def handed_on(a, b, c, n):
    y = c[0]
    for i in range(n):
        a[i] += i
        y[i] -= i
        a, y = y, b
    return a, y


def by_a_condition(a, b, c, n):
    for i in range(n):
        a[i] += 1
        if b[i] > 20:
            a = b
        else:
            a[0] += 1
    a[3] = 100
    return a


def that_array_from_the_start(a, b, c, n):
    y = b
    for i in range(n):
        y[i] += 1
        y = b
    return y


def changed_by_its_own_name(a, b, c, n):
    y = b
    for i in range(n):
        y[i] += 1
        y = a
        a[2] += y[1]
    y[0] = 3
    return y


def two_names_one_after_the_other(a, b, c, n):
    y = a
    for i in range(n):
        a[i] += 1
        y[i] += 1
        a = b
        if i > 2:
            y = a
    return a, y


def in_two_loops(a, b, c, n):
    for i in range(n):
        for j in range(3):
            a[j] += i
            a = b
        b = c[0]
    return a, b


def in_two_loops_and_read(a, b, c, n):
    for i in range(n):
        for j in range(1, 7):
            a[1:] += a[:-1]
            a = b
        c[0] = np.array(b)
    return a, b


def until_a_value(a, b, c, n):
    i = 0
    while a[0] < 30 and i < n:
        a[0] += 4
        a = b
        i += 1
    return a


def sometimes_a_new_array(a, b, c, n):
    for i in range(n):
        a[i] += 1
        if i % 2:
            a = b
        else:
            a = b * 2
    return a


def parts_of_one_array(a, b, c, n):
    y, z = c[0], c[1]
    for i in range(n):
        y[i] -= i
        y = z
        z[2] *= 1.5
    return y


def handed_on_among_rows(a, b, c, n):
    y, z = c[0], c[1]
    for i in range(n):
        a[i] += i
        y[i] -= i
        a, y = z, b
        z[2] *= 1.5
    return a, y


def fewer_each_time(a, b, c, n):
    counts, left, place = np.zeros(7, np.int64), np.zeros(7, complex), np.arange(7)
    for i in range(n):
        if not len(left):
            break
        np.add(left, a * 1j, left)
        out = abs(left) > 6
        counts[place[out]] = i + 1
        np.logical_not(out, out)
        a, left, place = a[out], left[out], place[out]
    return counts, left.sum(), place


PROGRAMS = [
    becomes_another_argument, becomes_a_row, changed_by_both_names, changed_after_it_was_taken,
    handed_on, by_a_condition, that_array_from_the_start, changed_by_its_own_name,
    two_names_one_after_the_other, in_two_loops, in_two_loops_and_read, until_a_value,
    sometimes_a_new_array,
    parts_of_one_array, handed_on_among_rows, fewer_each_time,
]  # fmt: skip


def arguments():
    return [np.arange(7.0), np.arange(7.0) * 10, np.arange(14.0).reshape(2, 7) * 3]


@pytest.mark.filterwarnings("ignore:the graph of")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_followed_arrays(program):
    jitted = td.jit(program)
    for n in (3, 0, 1, 2, 7):  # a constant first, and then a number that varies
        wanted, found = arguments(), arguments()
        result, jitted_result = program(*wanted, n), jitted(*found, n)
        for x, y in zip([*wanted, result], [*found, jitted_result], strict=True):
            np.testing.assert_equal(y, x)
