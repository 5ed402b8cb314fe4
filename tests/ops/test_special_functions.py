"""Special functions: accuracy where it is hard, and refusals. Values: tests/ops/cases_special.py
and the facts of tests/facts_tf/programs/special_functions.py."""

import math

import numpy as np
import pytest

import treadle as td


def test_lgamma_beside_its_zeros():
    # mpmath.loggamma at these float64 numbers, to 17 digits.
    found = td.math.lgamma(np.array([1 + 2.0**-30, 1 - 2.0**-30, 2 + 2.0**-30, 2 - 2.0**-30]))
    wanted = [
        -5.3757397843110445e-10, 5.3757397985785732e-10, 3.937485957506932e-10,
        -3.9374859519130207e-10,
    ]  # fmt: skip
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-15)


def test_tails():
    # mpmath, from the complementary error function.
    found = td.math.ndtri(np.array([1e-300, 1e-100, 1e-20]))
    wanted = [-37.0470962993612, -21.2734535609653, -9.26234008979841]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-14)
    tail = td.math.igammac(np.array([3.0]), np.array([200.0])).numpy()
    np.testing.assert_allclose(tail, [math.exp(-200) * (1 + 200 + 200**2 / 2)], rtol=1e-13)
    assert td.math.bessel_i0(np.array([712.0])).numpy() < np.inf


@pytest.mark.parametrize("function", [td.math.lgamma, td.math.erfinv, td.math.bessel_i1])
def test_kernels_are_native_and_agree(function):
    traced = td.function(function)
    x = np.linspace(-0.99, 0.99, 1001)
    np.testing.assert_allclose(traced(x).numpy(), function(td.constant(x)).numpy(), rtol=1e-13)
    assert traced.get_concrete_function(x).executable.counters.get("callbacks", 0) == 0


@pytest.mark.parametrize("function", [td.math.igamma, td.math.igammac])
def test_what_cannot_be_differentiated_twice_says_so(function):
    a, x = td.constant([2.0]), td.constant([1.5])
    with td.GradientTape() as outer:
        outer.watch(a)
        with td.GradientTape() as inner:
            inner.watch(a)
            y = function(a, x)
        slope = inner.gradient(y, a)
    with pytest.raises(td.errors.UnimplementedError, match=r"(?s)igamma .* a .*in test_what"):
        outer.gradient(slope, a)


def test_broadcasting_and_empty_arrays():
    assert td.math.betainc(np.ones((2, 1)), np.ones(3), 0.5).shape == (2, 3)
    assert td.math.zeta(np.ones((0, 1)), np.ones(3)).shape == (0, 3)
    assert td.math.polygamma(1.0, np.float32(2.0)).shape == ()
