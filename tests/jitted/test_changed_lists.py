"""Lists and dicts that branches and loops of jitted functions change, also by other names."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

X = np.arange(1.0, 31.0) / 50


def an_item_in_a_branch(a):
    found = [0, 1]
    if a[0] > 0:
        found[0] = 5
    return found


def two_names_in_a_branch(a):
    found = [0.5, 1.0]
    other = found
    if a[0] > 0:
        found[0] += a[1]
    return found, other, found is other


def appended_in_both_branches(a):
    found = []
    if a[0] > 1:
        found.append(a[1])
    else:
        found.append(a[2])
        found[0] *= 2
    return found


def a_dict_in_branches(a):
    found = {"x": a[1], "y": a}
    if a[0] > 1:
        found["x"] = a[3]
    else:
        found["y"] = a * 2
    return found["x"], found["y"]


def two_names_in_a_loop(a):
    found = [np.float64(0.0), a]
    other = found
    for v in a:
        found[0] += v
        found[1] = found[1] + v
    return found, other, found is other


def read_by_another_name_in_a_loop(a):
    sums = [np.float64(0.0)]
    seen, total = sums, 0.0
    for v in a:
        sums[0] += v
        total += seen[0]
    return total, seen


def another_list_in_each_iteration(a):
    sums = [np.float64(1.0), np.float64(2.0)]
    first = sums
    for v in a:
        sums = [sums[1], sums[0] + v]
    return sums, first


def nested_lists(a):
    table = [[0.0 * a[0], a[1]], [a[2], a[3]]]
    row = table[1]
    for v in a:
        if v > 0.3:
            table[1][0] += v
        else:
            table[0][1] -= v
    return table, row


ALL = [
    an_item_in_a_branch, two_names_in_a_branch, appended_in_both_branches, a_dict_in_branches,
    two_names_in_a_loop, read_by_another_name_in_a_loop, another_list_in_each_iteration,
    nested_lists,
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
@pytest.mark.parametrize("values", [X, X + 2], ids=["small", "large"])
def test_results_are_those_of_python(function, values):
    jitted = td.jit(function)
    for _ in range(2):
        assert_alike(jitted(values), function(values))


# -- arrays of the body, and views of them, after a loop ------------------------------------------


def a_view_of_a_new_array(a):
    x = a
    for _ in range(20):
        x = x + 1
        y = x[1:]
        y[0] = 100
    x[2] = 7
    return x, y


def a_changed_view_of_a_new_array(a):
    x = a
    for _ in range(20):
        x = x + 1
        y = x[::2]
    y[2] = 7
    return x, y


def a_second_name_of_a_new_array(a):
    x = a
    for _ in range(20):
        x = x + 1
        y = x
    x[2] = 7
    return x, y


def a_row_after_the_loop(a):
    table = a.reshape(5, 6)
    for i in range(5):
        row = table[i]
    row[1] = 100.0
    return table.sum(), row


@pytest.mark.parametrize(
    "function",
    [
        a_view_of_a_new_array,
        a_changed_view_of_a_new_array,
        a_second_name_of_a_new_array,
        a_row_after_the_loop,
    ],
)
def test_names_that_the_loop_gives_share_elements_after_it(function):
    mine, theirs = X.copy(), X.copy()
    assert_alike(td.jit(function)(mine), function(theirs))
    np.testing.assert_array_equal(mine, theirs)


def test_a_view_of_another_shape_than_before_the_loop_is_refused():
    def changes(a):
        x, y = a, a
        for _ in range(20):
            x = x + 1
            y = x[1:]
        y[2] = 7
        return x, y

    with pytest.raises(TypeError, match=r"copy\(\)"):
        td.jit(changes)(X)


# -- ints whose value tracing needs ---------------------------------------------------------------


def along(a, axis):
    return a.sum(axis=axis), np.argmax(a, axis), np.expand_dims(a, axis)


def rolled(a, axis, times):
    for _ in range(times):
        a = np.roll(a, 1, axis=axis) + 1
    return a


def test_an_axis_that_varies():
    jitted, table = td.jit(along), np.arange(24.0).reshape(4, 6)
    for axis in (0, 1, -1, 0, 1):
        assert_alike(jitted(table, axis), along(table, axis))
    assert jitted.experimental_get_tracing_count() == 3


def test_an_axis_that_varies_beside_a_number_of_iterations():
    jitted, table = td.jit(rolled), np.arange(24.0).reshape(4, 6)
    for axis, times in ((0, 1), (1, 2), (0, 3), (1, 5), (0, 9)):
        assert_alike(jitted(table, axis, times), rolled(table, axis, times))
    assert jitted.experimental_get_tracing_count() == 3


def test_an_axis_out_of_range_stays_an_error():
    jitted, table = td.jit(along), np.arange(24.0).reshape(4, 6)
    for axis in (0, 1, 5):
        if axis < 2:
            jitted(table, axis)
        else:
            with pytest.raises(ValueError, match="out of range"):
                jitted(table, axis)
    assert_alike(jitted(table, -1), along(table, -1))


# -- NumPy's scalars and Python's numbers ---------------------------------------------------------

ONE, SINGLE, SMALL = np.float64(2.0), np.float32(1.5), np.int32(3)


def with_scalars(c):
    return (
        ONE + c, c + ONE, ONE * c, c - ONE, SINGLE + c, c * SINGLE, SMALL + c, c * SMALL,
        np.exp(3) + c, np.sqrt(2) * c, ONE == c, np.add(c, SINGLE), np.maximum(SINGLE, 1) * c,
    )  # fmt: skip


def compared(c):
    return ONE < c, c < ONE, np.greater(c, SINGLE), np.greater(c * 2, X), np.less_equal(X, c)


@pytest.mark.parametrize("number", [1.1, 3, 2j, True])
def test_scalars_with_numbers(number):
    jitted = td.jit(with_scalars)
    for value in (number, number + 1):
        found, wanted = jitted(value), with_scalars(value)
        assert_alike(found, wanted)


@pytest.mark.parametrize("number", [1.1, 3])
def test_scalars_compared_with_numbers(number):
    assert_alike(td.jit(compared)(number), compared(number))


def python_reductions(a):
    return any(a), all(a), 3 in a, sum(a), max(a), min(a)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.float32])
def test_builtin_reductions_of_arrays_give_what_python_gives(dtype):
    values = (np.arange(20) % 5).astype(dtype)
    assert_alike(td.jit(python_reductions)(values), python_reductions(values))


def test_elements_assigned_in_a_branch_of_a_loop_beside_another_variable():
    def walk(x):
        values = [x[0], x[1], x[2], x[3]]
        place, going = 0, True
        while going:
            going = values[place] > 0
            if going:
                values[place] = values[place + 1] - 1
                place = place + 1
                going = place < 3
        values[place] = x[0]
        return values, place

    x = np.array([3, 2, 4, 1])
    jitted = td.jit(walk)
    for _ in range(2):
        assert jitted(x) == walk(x)
