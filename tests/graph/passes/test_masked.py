"""Assignments to what masks select, computed for whole arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.passes import disabled

RNG = np.random.default_rng(5)
COLLECTS = ("compress(", "nonzero(", "expand_masked(", "assert(")


def collects(jitted: Any, *arrays: Any) -> bool:
    """Whether the graph after the passes collects elements, puts them back or counts them."""
    graph = str(td.inspect.stages(jitted, *arrays)["graph after passes"])
    return any(name in graph for name in COLLECTS)


def check(function: Callable[..., Any], *arrays: Any) -> bool:
    """The arrays hold afterwards what NumPy leaves in them; see `collects` for the result."""
    expected, found, plain = ([a.copy() for a in arrays] for _ in range(3))
    function(*expected)
    jitted = td.jit(function)
    jitted(*found)
    with disabled("masked"):
        td.jit(function)(*plain)
    for array, same, other in zip(expected, found, plain, strict=True):
        np.testing.assert_allclose(same, array, rtol=1e-12)
        np.testing.assert_allclose(other, array, rtol=1e-12)
    return collects(jitted, *arrays)


def of_two_arrays(x: Any, y: Any) -> None:
    mask = x > 0
    x[mask] = np.sqrt(x[mask]) * 2 + y[mask]
    x[~mask] -= 1


def of_rows(x: Any, y: Any) -> None:
    mask = x.sum(1) > 0
    x[mask] = x[mask] * y[0] + y[mask]


def of_complex_numbers(x: Any, y: Any) -> None:
    for _ in range(5):
        mask = np.abs(x) < 3
        x[mask] = x[mask] ** 2 + y[mask]


def of_a_row_as_a_plane(x: Any, y: Any) -> None:
    """The mask had two axes, the array has one."""
    mask = y > 0
    x[mask.reshape(-1)] = x[mask.reshape(-1)] + 1


def of_an_unknown_size(x: Any, y: Any) -> None:
    for i in range(1, 4):
        part = x[:i]
        part[part > 0] = part[part > 0] * 2


@pytest.mark.parametrize("size", [(6, 7), (1, 3), (40, 50)])
@pytest.mark.parametrize("function", [of_two_arrays, of_rows])
def test_functions_of_selected_elements(function: Callable[..., Any], size: Any) -> None:
    assert not check(function, RNG.standard_normal(size), RNG.standard_normal(size))


def test_complex_numbers() -> None:
    x = RNG.standard_normal((6, 7)) + 1j * RNG.standard_normal((6, 7))
    assert not check(of_complex_numbers, x, x * 0.5)


def test_arrays_of_other_axes_than_the_mask_had() -> None:
    assert not check(of_a_row_as_a_plane, RNG.standard_normal(42), RNG.standard_normal((6, 7)))


def test_parts_of_sizes_that_a_loop_decides() -> None:
    check(of_an_unknown_size, RNG.standard_normal((6, 7)), np.zeros(1))


def reversed_elements(x: Any) -> None:
    x[x < 0] = x[x < 0][::-1]


def of_another_mask(x: Any) -> None:
    x[x < 0] = x[~(x >= 0)] * 2


def total(x: Any) -> None:
    x[x < 0] = x[x < 0].sum()


def quotients(k: Any) -> None:
    """Elements that the mask leaves out may not be divided by."""
    mask = k != 0
    k[mask] = 100 // k[mask]


@pytest.mark.parametrize("function", [reversed_elements, of_another_mask, total])
def test_what_is_no_function_of_single_elements_is_collected(function: Any) -> None:
    check(function, RNG.standard_normal((5, 8)))


def test_what_could_fail_elsewhere_is_collected() -> None:
    assert check(quotients, np.array([0, 3, -4, 0, 5]))


def given(x: Any, values: Any) -> None:
    x[x.real > 0] = values


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex128])
def test_values_of_the_callers(dtype: Any) -> None:
    x = np.array([1, -1, 0, 2, 5]).astype(dtype)
    assert check(given, x, np.array([7, 8, 9], dtype))


@pytest.mark.parametrize("count", [0, 2, 4])
def test_other_numbers_of_values_are_refused(count: int) -> None:
    x = np.array([1.0, -1, 0, 2, 5])
    with pytest.raises(td.errors.InvalidArgumentError, match="select as many elements"):
        td.jit(given)(x, np.ones(count))
    np.testing.assert_array_equal(x, [1, -1, 0, 2, 5])


def test_the_gradient_of_selected_elements() -> None:
    x = td.constant(RNG.standard_normal(30))

    @td.function
    def gradient(x: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(td.exp(td.boolean_mask(x, x > 0)))
        return tape.gradient(y, x)

    expected = np.where(x.numpy() > 0, np.exp(x.numpy()), 0)
    np.testing.assert_allclose(gradient(x).numpy(), expected, rtol=1e-12)
    assert not collects(gradient, x)
