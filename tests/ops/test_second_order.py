"""Gradient rules are made of ops: gradients of gradients, and of complex functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.cases import Case
from tests.ops.test_gradients import CASES, differences
from treadle.core.tensor import from_array

# Rules whose own gradient passes through ops with data-dependent positions are covered by the
# first order; here every case that is smooth twice, one argument set each.
SMOOTH = [c for c in CASES if "float64" in c.dtypes and c.shapes and c.twice]


def gradient_norm(case: Case) -> Any:
    """A scalar function that contains the case's gradient."""

    def norm(*args: Any) -> Any:
        with td.GradientTape() as tape:
            for arg in args:
                tape.watch(arg)
            loss = td.reduce_sum(case.fn(*args) ** 2)
        grads = tape.gradient(loss, list(args), unconnected_gradients="zero")
        return td.add_n([td.reduce_sum(g * g) for g in grads])

    return norm


@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_second_order(case: Case) -> None:
    fn = gradient_norm(case)
    arrays = case.arrays(case.shapes[-1], "float64")
    tensors = [from_array(a) for a in arrays]
    with td.GradientTape() as tape:
        for tensor in tensors:
            tape.watch(tensor)
        value = fn(*tensors)
    found = tape.gradient(value, tensors, unconnected_gradients="zero")
    for grad, wanted in zip(found, differences(fn, arrays), strict=True):
        np.testing.assert_allclose(grad.numpy(), wanted, rtol=2e-4, atol=2e-4)


HOLOMORPHIC = {
    "multiply": (lambda z: z * z * (1 + 2j), lambda z: 2 * z * (1 + 2j)),
    "divide": (lambda z: (2 - 1j) / z, lambda z: -(2 - 1j) / z**2),
    "exp": (td.exp, np.exp),
    "log": (td.math.log, lambda z: 1 / z),
    "sqrt": (td.sqrt, lambda z: 0.5 / np.sqrt(z)),
    "sin": (td.sin, np.cos),
    "tanh": (td.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "power": (lambda z: z**3, lambda z: 3 * z**2),
}


@pytest.mark.parametrize(("fn", "derivative"), HOLOMORPHIC.values(), ids=HOLOMORPHIC)
def test_holomorphic_gradients_are_conjugate_derivatives(fn: Any, derivative: Any) -> None:
    """TensorFlow's convention: the gradient of a holomorphic f is conj(f')."""
    z = np.array([0.5 + 1j, -1.2 - 0.3j])
    x = td.constant(z)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), np.conj(derivative(z)), rtol=1e-10)


def test_gradients_through_complex_parts() -> None:
    x = td.constant([3.0, -1.0], td.float64)
    with td.GradientTape() as tape:
        tape.watch(x)
        z = td.complex(x, x * x)
        loss = td.reduce_sum(td.abs(z) ** 2 + td.math.real(z) + 2 * td.math.imag(td.math.conj(z)))
    expected = 2 * x.numpy() + 4 * x.numpy() ** 3 + 1 - 4 * x.numpy()
    np.testing.assert_allclose(tape.gradient(loss, x).numpy(), expected)


ROOTS = {
    "sqrt": (td.sqrt, lambda x: 0.5 * x**-0.5),
    "rsqrt": (td.math.rsqrt, lambda x: -0.5 * x**-1.5),
    "reciprocal": (td.math.reciprocal, lambda x: -(x**-2.0)),
    "norm": (lambda x: td.norm(td.stack([x, x])), lambda x: 2**0.5),
}


@pytest.mark.parametrize("name", ROOTS)
def test_derivatives_where_the_gradient_of_the_result_is_zero(name):
    """At a minimum, and of a vector-Jacobian product of zeros, which forward mode starts from."""
    f, slope = ROOTS[name]
    x = td.constant(4.0, td.float64)

    @td.function
    def traced(x):
        least = td.stop_gradient(f(x))
        with td.GradientTape() as outer:
            outer.watch(x)
            with td.GradientTape() as inner:
                inner.watch(x)
                y = (f(x) - least) ** 2
            first = inner.gradient(y, x)
        with td.autodiff.ForwardAccumulator(x, td.constant(3.0, td.float64)) as forward:
            z = f(x)
        return first, outer.gradient(first, x), forward.jvp(z)

    for way in (traced, traced.python_function):
        wanted = [0.0, 2 * slope(4.0) ** 2, 3 * slope(4.0)]
        np.testing.assert_allclose([float(y) for y in way(x)], wanted)


@pytest.mark.parametrize("name", ["sqrt", "rsqrt", "reciprocal"])
def test_an_infinite_slope_stays_out_where_td_where_did_not_choose_it(name):
    x = td.constant([-1.0, 0.0, 4.0])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.where(x > 1, ROOTS[name][0](x), 0.0)
    np.testing.assert_allclose(tape.gradient(y, x), [0, 0, ROOTS[name][1](4.0)])
