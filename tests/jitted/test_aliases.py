"""Variables that are one array, or parts of one: what NumPy's references mean, jitted."""

import numpy as np
import pytest

import treadle as td
from tests.jitted.test_jit import agree

V = np.array([1.0, 2.0, 3.0, 4.0])
N = 7


def new_on_both_paths(c, a):
    if c > 0:
        x = a * 2
        y = x
    else:
        x = a + 1
        y = x
    x[0] = 5
    return x, y


def replaced_on_one_path(c, a):
    x = a * 3
    y = a * 4
    if c > 0:
        y = x
    x[0] = 5
    y[1] = 7
    return x, y


def one_array_on_one_path(c, a):
    if c > 0:
        x = a * 2
        y = x
    else:
        x = a + 1
        y = a * 7
    x[0] = 5
    y[1] = 7
    return x, y


def swaps_in_loops_after_a_swap(c, a):
    x = a * 1.0
    y = a * 2.0
    if c > 0:
        x, y = y, x
    for t in range(4):
        x[0] += 1
        y[1] += 2
        x, y = y, x
        if x[0] > 100:
            break
    x[1] = 9
    y[2] = 3
    for t in range(5):
        x[0] += 1
        y[1] += 2
        x, y = y, x
        if y[0] > 10:
            break
    return x, y


def replaced_in_a_branch_of_a_loop(c, a):
    x = a * 1.0
    y = x
    for t in range(4):
        x[0] += 1
        if x[1] > 3:
            y[1] += 2
        else:
            y = a * 3
    y[2] = 3
    return x, y


def parts_of_items(c, a):
    p = [a * 1.0, a * 2.0]
    q = p[0]
    for t in range(4):
        w = p[0][1:]
        w[0] += t
        q[1] += p[1][0]
    return p[0], q


def swapped_with_its_reverse(c, a):
    x = a * 1.0
    y = x[::-1]
    for t in range(4):
        x, y = y, x
        x[0] += 1
        if y[1] > 5:
            break
    return x, y


def reversed_in_a_loop(c, a):
    m = a
    for i in range(N):
        m[0] += 1
        m = m[::-1]
    return m


def swapped_with_a_reverse(c, a):
    x = a
    y = a * 2
    for i in range(N):
        x[0] += 1
        x, y = y[::-1], x
    return x, y


def one_array_after_each_iteration(c, a):
    x = a * 1.0
    y = a * 2.0
    for t in range(int(a.shape[0]) * 3):
        y[0] += 1
        x = a * 2 + x[0]
        y = x
    x[1] = 9
    y[2] = 3
    return x, y


def one_array_after_each_iteration_until_a_break(c, a):
    x = a * 1.0
    y = a * 2.0
    for t in range(N):
        y[0] += 1
        x = x * 2
        y = x
        if x[0] > 100:
            break
    x[1] = 9
    y[2] = 3
    return x, y


def both_become_one(c, a):
    p = a * 1.0
    q = a * 2.0
    x = p
    y = q
    for t in range(N):
        x[0] += 1
        y[1] += 1
        x = p
        y = p
    x[1] = 9
    return x, y, p, q


def one_array_after_a_loop(c, a):
    x = a * 1.0
    y = a * 2.0
    for t in range(N):
        x = x + 1
        y = x
    y[0] = 3
    return x, y


def part_of_a_new_array(c, a):
    x = a * 1.0
    y = a * 2.0
    if c > 0:
        x = a * 3
        y = x[1:]
    y[0] = 3
    return x, y


def a_new_array_and_its_part(c, a):
    x = a * 1.0
    y = a * 2.0
    if c > 0:
        y = a * 3
        x = y[1:]
    y[1] = 3
    return x, y


def two_loops_of_swaps(c, a):
    p = a * 1.0
    pn = a * 2.0
    if c > 0:
        p, pn = pn, p
    for t in range(N):
        pn[1:] = p[:-1] + 1
        p, pn = pn, p
    for t in range(N):
        pn[1:] = p[:-1] + 1
        p, pn = pn, p
    return p, pn


def two_names_swapped(c, a):
    w = a[:]
    x = a
    for t in range(N):
        x, w = w, x
        w[1:] += x[:-1]
        if w[3] > 100:
            break
    for t in range(N):
        x, w = w, x
        w[1:] += x[:-1]
        if w[3] > 100:
            break
    return x, w


def perhaps_one_array_swapped(c, a):
    x = a
    y = a * 2
    if c > 0:
        x = y
    for t in range(N):
        x[0] += 1
        y[0] += 1
        x, y = y, x
    return x, y


def perhaps_one_array_changed(c, a):
    x = a
    y = a * 2
    if c > 0:
        x = y
    for t in range(N):
        x[0] += 1
        y[0] += 1
    return x, y


def the_best_so_far(c, a):
    best = a * 0
    x = a * 1
    for t in range(N):
        x = x * 1.5
        if x[0] < 4:
            best = x
    x[0] = 0
    return best, x


def part_by_a_bound_of_a_branch(c, a):
    row = a[1:3]
    if c > 0:
        k = int(a[0])
        row = a[k : k + 2]
    row[0] = 9
    return row


def part_after_a_loop(c, a):
    m = np.outer(a, a)
    row = a
    for i in range(N):
        row = m[i % 4]
    row[1] = c
    m[2, 3] = 8
    return row, m


def parts_of_two_arrays(c, a):
    m = np.outer(a, a)
    x = a
    for i in range(N):
        w = m.T[-1 - i % 3]
        if a[1] > c + i:
            w, x = x, w
    x[0] = 7
    m[:, 1] = 5
    return x, m


def reversed_again_and_again(c, a):
    x = a
    w = a * 2
    for i in range(N):
        for _ in range(i):
            w = x[::-1]
        x, w = w, x
    x[1:3] = 6
    return x, w


def changed_or_replaced(c, a):
    x = a * 1.0
    for i in range(N):
        if x[0] * c > 4 + i:
            x = x * 0.5
        x += a[i % 4]
    return x


PROGRAMS = [f for f in list(globals().values()) if getattr(f, "__module__", "") == __name__]


@pytest.mark.parametrize("c", [1.0, -1.0])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore:the graph of")
def test_references(program, c):
    agree(program, c, V, calls=1)


def part_of_the_last_array(c, a):
    x = a * 1.0
    y = a * 2.0
    while x[0] < 30 * c:
        x = x + 1
        y = x[1:]
    y[0] = 3
    return x, y


@pytest.mark.parametrize("program", [part_of_the_last_array])
def test_parts_that_the_program_cannot_name_are_refused(program):
    with pytest.raises(TypeError, match="take the part again, or make it a copy"):
        td.jit(program)(1.0, V.copy())


def test_a_break_in_an_iteration_that_is_written_out_ends_the_loop():
    def f(x, a):
        for _ in range(2):
            w = x[::-1]
            for _ in range(6):
                x += a
                x, w = w, x
                if a > 5.0:
                    break
                a += 0.5
        return x, w

    agree(f, V, 4.8, calls=1)


# In later iterations `b` is `a`, an array from outside, which the loop changes.


def becomes_one_from_outside(a, b):
    for _ in range(50):
        b[0:2] += 2.0
        b = a
    return a, b


def becomes_one_before_a_nested_loop(a, b):
    for i in range(50):
        for j in range(i, 50):
            b[0:2] += a[2] * j
        b = a
    b *= 0.5
    return a, b


def becomes_one_or_another(a, b, c):
    i = 0
    while i < 40:
        b[0:2] += 2.0
        b = a if i % 3 else c
        i += 1
    return a, b, c


def becomes_one_through_another_variable(a, b, c):
    for i in range(50):
        c[1] += i
        c = b
        b = a
    return a, b, c


def beside_one_that_changes(a, b, c):
    for i in range(50):
        c[1] += i + b[0]
        b = a
    return a, b, c


@pytest.mark.parametrize("python", [
    becomes_one_from_outside, becomes_one_before_a_nested_loop, becomes_one_or_another,
    becomes_one_through_another_variable, beside_one_that_changes,
])  # fmt: skip
def test_a_loop_changes_arrays_that_its_variables_become(python):
    count = python.__code__.co_argcount
    agree(python, *(V * 10**k for k in range(count)))


# An array that a variable hands to another one changes there, and is dropped an iteration later.


def handed_on_and_changed_before(y, z):
    for i in range(9):
        z += 1.0
        y, z = z, y + i
    return y, z


def handed_on_and_changed_after(y, z):
    for i in range(9):
        y = z
        z = y + i
        y += 10.0
    return y, z


def handed_on_twice(w, y, z):
    for i in range(9):
        z += 1.0
        w, y, z = y, z, w + i
    return w, y, z


def handed_on_while(y, z):
    i = 0
    while z[0] < 100 and i < 7:
        z += 1.0
        y, z = z, y + i
        i += 1
    return y, z


@pytest.mark.parametrize("python", [
    handed_on_and_changed_before, handed_on_and_changed_after, handed_on_twice, handed_on_while,
])  # fmt: skip
def test_arrays_that_are_handed_on_and_dropped_hold_their_changes(python):
    count = python.__code__.co_argcount
    agree(python, *(V * 10**k for k in range(count)))
