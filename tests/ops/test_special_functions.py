"""Special functions: accuracy where it is hard, and refusals. Values: tests/ops/cases_special.py
and the facts of tests/facts_tf/programs/special_functions.py."""

import math

import numpy as np
import pytest
from scipy import special

import treadle as td
from treadle.ops.registry import OPS, run


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


SERIES = [
    "igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "zeta", "polygamma", "betainc",
]  # fmt: skip
ENDS = [np.nan, -1.0, 0.0, np.inf, 1.0, 2.0, -2.5, 0.5, 1e-10, 300.0]


@pytest.mark.parametrize("name", SERIES)
def test_routines_are_numpys_series(name):
    """Where NumPy's loops have lost digits, by 1 - 1 or large logarithms, they are not alike."""
    rng, op = np.random.default_rng(1), OPS[name]
    a, b = (x.reshape(-1) for x in np.meshgrid(ENDS, ENDS))
    a = np.concatenate([a, rng.uniform(0.01, 30, 900), rng.integers(0, 6, 100)])
    b = np.concatenate([b, rng.uniform(0.01, 60, 1000)])
    c = np.concatenate([rng.choice([0.0, 1.0, -0.1, 0.5, np.nan], 100), rng.random(1000)])
    given = [a, b, c][: 3 if name == "betainc" else 2]
    for dtype, close in ((np.float64, 2e-13), (np.float32, 3e-7)):
        arrays = [x.astype(dtype) for x in given]
        found = run(op, *map(td.constant, arrays)).numpy()
        with np.errstate(all="ignore"):
            wanted = op.eager(*arrays)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=close, atol=1e-14)
        compiled = td.function(lambda *xs: run(op, *xs))
        np.testing.assert_array_equal(compiled(*map(td.constant, arrays)), found)
        assert not compiled.concrete_functions[0].executable.counters.get("callbacks", 0)


@pytest.mark.parametrize("wrap", [lambda f: f, td.function])
def test_series_of_single_numbers_and_broadcasts(wrap):
    x = np.linspace(0.1, 9.0, 12).reshape(3, 4)
    row = np.array([0.5, 2.0, 7.0, 0.1])
    for a in (np.float64(2.5), np.array([[2.5]]), row, row[:, None][:3]):
        found = wrap(td.math.igamma)(td.constant(a), td.constant(x))
        np.testing.assert_allclose(found, special.gammainc(a, x), rtol=1e-13)
    found = wrap(td.math.betainc)(td.constant(2.0, td.float64), td.constant(x), 0.3)
    np.testing.assert_allclose(found, special.betainc(2.0, x, 0.3), rtol=1e-12)


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
