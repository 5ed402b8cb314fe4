"""The gradient of every differentiable op of the tables, against differences, eager and traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.cases import Case
from tests.ops.test_cases import ALL
from tests.ops.traced import check_lowering, run_traced
from treadle.core.tensor import from_array

# Cases whose values jump: rounding, masks; or whose differentiable form is another case.
CASES = [c for c in ALL if c.differentiable and {"float32", "float64"} & set(c.dtypes)]
STEP = 1e-5


def weighted(case: Case, weights: Any) -> Callable[..., Any]:
    """A scalar function: the op's result times fixed weights, summed."""
    return lambda *args: td.reduce_sum(case.fn(*args) * weights)


def arguments(case: Case) -> list[list[Any]]:
    """float64 arguments for each shape, none at a kink."""
    return [case.arrays(shapes, "float64") for shapes in case.shapes]


def weights_for(case: Case, arrays: list[Any]) -> Any:
    shape = tuple(case.fn(*map(from_array, arrays)).shape)
    return np.random.default_rng(5).uniform(0.5, 1.5, shape)


def differences(fn: Callable[..., Any], arrays: list[Any]) -> list[Any]:
    """The gradient by central differences."""
    grads = []
    for number, array in enumerate(arrays):
        grad = np.zeros(array.size)
        for position in range(array.size):
            values = []
            for step in (STEP, -STEP):
                moved = [a.copy() for a in arrays]
                moved[number].reshape(-1)[position] += step
                values.append(float(fn(*map(from_array, moved))))
            grad[position] = (values[0] - values[1]) / (2 * STEP)
        grads.append(grad.reshape(array.shape))
    return grads


def gradients(fn: Callable[..., Any], args: Any) -> Any:
    with td.GradientTape() as tape:
        for arg in args:
            tape.watch(arg)
        loss = fn(*args)
    found = tape.gradient(loss, list(args), unconnected_gradients="zero")
    return [td.convert_to_tensor(g) for g in found]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case: Case) -> None:
    for arrays in arguments(case):
        fn = weighted(case, weights_for(case, arrays))
        expected = differences(fn, arrays)
        found = gradients(fn, [from_array(a) for a in arrays])
        for grad, wanted, array in zip(found, expected, arrays, strict=True):
            assert grad.shape == array.shape
            np.testing.assert_allclose(grad.numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_traced_gradient_is_the_eager_one(case: Case) -> None:
    for arrays in arguments(case):
        fn = weighted(case, weights_for(case, arrays))
        expected = gradients(fn, [from_array(a) for a in arrays])
        for symbolic in (False, True) if case.symbolic else (False,):
            found = run_traced(lambda *args: gradients(fn, args), arrays, symbolic)
            for grad, wanted in zip(found, expected, strict=True):
                np.testing.assert_allclose(grad, wanted.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_lowered_gradient_is_the_eager_one(case: Case) -> None:
    """Rules that only gradients use (slices put back, padding folded) as kernels, too."""
    for arrays in arguments(case):
        fn = weighted(case, weights_for(case, arrays))
        for symbolic in (False, True) if case.symbolic else (False,):
            assert check_lowering(lambda *args: gradients(fn, args), arrays, symbolic, 1e-10)
