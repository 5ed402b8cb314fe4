"""NumPy arrays that a function would change in place: an error, or a warning, never silence."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import treadle as td


def set_item(x: Any) -> Any:
    x[0] = 1.0
    return x


def add_without_result(x: Any) -> None:
    x += 1


def through_a_view(x: Any) -> Any:
    r = x[0]
    r *= 2
    return x


def rows(x: Any) -> Any:
    for row in x:
        row += 1
    return x


def _add(v: Any, a: Any) -> None:
    v += a


def helper(x: Any) -> Any:
    _add(x, 1.0)
    return x


def another_name(x: Any) -> Any:
    y = x
    x += 1
    return y, x


def in_a_branch(x: Any) -> Any:
    if td.reduce_sum(x) > 0:
        x[0] = 0.0
    return x


CASES = [set_item, add_without_result, through_a_view, rows, helper, another_name, in_a_branch]


@pytest.mark.parametrize("fn", CASES, ids=lambda f: f.__name__)
def test_an_array_argument_is_named(fn: Any) -> None:
    compiled = td.function(fn)
    array = np.ones((2, 3))
    for _ in range(3):  # whether or not there is a trace, and a plan
        with pytest.raises(TypeError) as found:
            compiled(array)
        for part in ("argument 'x'", "td.jit", "test_changed_arrays.py", "in place"):
            assert part in str(found.value)
        np.testing.assert_array_equal(array, np.ones((2, 3)))


@pytest.mark.parametrize("fn", CASES, ids=lambda f: f.__name__)
def test_tensors_keep_the_meaning_of_tensorflow(fn: Any) -> None:
    compiled, x = td.function(fn), td.ones([2, 3])
    for _ in range(3):
        compiled(x)
    with pytest.raises(TypeError, match=r"td\.jit"):  # the trace and plans for tensors are there
        compiled(np.ones((2, 3), np.float32))


def test_where_the_function_goes_on_a_warning_says_so_once() -> None:
    @td.function
    def f(x: Any) -> Any:
        x += 1
        return x

    array = np.zeros(2)
    with pytest.warns(UserWarning, match=r"argument 'x'.*td\.jit"):
        np.testing.assert_array_equal(f(array), [1.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(array)
        f(td.constant(array))


def test_copies_may_change() -> None:
    @td.function
    def f(x: Any) -> Any:
        y, z = x.copy(), x + 0
        y += 1
        y[0] = 5.0
        z *= 2
        return y, z

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y, z = f(np.ones(2))
    np.testing.assert_array_equal(y, [5.0, 2.0])
    np.testing.assert_array_equal(z, [2.0, 2.0])


def test_an_array_of_the_function_that_has_two_names() -> None:
    @td.function
    def f(x: Any) -> Any:
        y = z = np.zeros(3)
        y += x
        return z

    with pytest.raises(TypeError, match=r"'z' holds too.*td\.jit"):
        f(td.ones([3], td.float64))


@pytest.mark.parametrize(
    ("fn", "hint"),
    [
        (lambda x: x.sort(), r"td\.sort"),
        (lambda x: x.fill(1), r"td\.fill"),
        (lambda x: np.add(x, 1, out=x), r"td\.jit"),
        (lambda x: setattr(x, "shape", (6,)), r"td\.reshape"),
    ],
)
def test_methods_that_change_arrays_are_refused(fn: Any, hint: str) -> None:
    with pytest.raises((TypeError, AttributeError), match=hint):
        td.function(fn)(np.ones((2, 3)))


def test_shifts() -> None:
    x = np.array([5, -6], np.int32)
    for f in (lambda x: (x << 2, x >> 1, 1 << (x * 0 + 3)),):
        for g in (f, td.function(f)):
            for a, b in zip(g(td.constant(x)), f(x), strict=True):
                np.testing.assert_array_equal(a, b)


def test_an_open_dim_as_the_end_of_a_range() -> None:
    @td.function(input_signature=[td.TensorSpec([None], td.float32)])
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i]
        return total

    with pytest.raises(TypeError, match=r"td\.range\(td\.shape\(x\)\[0\]\)"):
        f(td.ones([3]))
