"""Iterations that change an array element by element are done in one pass over it."""

import numpy as np
import pytest

import treadle as td
from treadle.core.switches import disabled
from treadle.graph.passes import joined_iterations as joined


def filtered(x, taps):
    y = np.zeros(x.shape[0] - taps.shape[0] + 1)
    for k in range(taps.shape[0]):
        y += taps[k] * x[k : k + y.shape[0]]
    return y


def backwards(x, taps):
    n, m = x.shape[0], taps.shape[0]
    y = np.zeros(n - m + 1)
    for k in range(m - 1, -1, -1):
        y = 0.5 * y - x[k : k + n - m + 1] * taps[k]
    return y


def two_arrays(x, taps):
    a, b = np.zeros_like(x), np.ones_like(x)
    for k in range(taps.shape[0]):
        a, b = a + b * taps[k], np.maximum(b, x) - a * (k + 1)
    return a, b


def in_place(x, taps):
    for k in range(taps.shape[0]):
        x *= 0.75
        x += taps[k]
    return x


def images(x, taps):
    image = x.reshape(8, 8)
    out = np.zeros((2, 2))
    for i in range(7):
        for j in range(7):
            out += taps[i] * image[i : i + out.shape[0], j : j + out.shape[1]]
    return out


def integers(x, taps):
    y = (x * 100).astype(np.int32)
    for k in range(taps.shape[0]):
        y = y * 31 + k
    return y


FUNCTIONS = [filtered, backwards, two_arrays, in_place, images, integers]


@pytest.fixture
def joins(monkeypatch):
    """How many iterations the loops that were compiled join."""
    found = []
    join = joined._join

    def noted(loop, times, moves):
        found.append(times)
        join(loop, times, moves)

    monkeypatch.setattr(joined, "_join", noted)
    return found


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", [7, 12, 16])
def test_joined_loops_have_the_same_bits(function, count, joins):
    numbers = np.random.default_rng(count)
    x, taps = numbers.normal(size=64), numbers.normal(size=count)
    found = td.jit(function)(x.copy(), taps)
    assert joins == [7 if function is images else {7: 7, 12: 6, 16: 8}[count]]
    with disabled("joined_iterations"):
        expected = td.jit(lambda x, taps: function(x, taps))(x.copy(), taps)
    np.testing.assert_array_equal(found, expected, strict=True)
    np.testing.assert_allclose(found, function(x.copy(), taps), rtol=1e-12, atol=1e-12)


def stencil(x):
    for _ in range(8):
        x[1:-1] = x[1:-1] + 0.5 * (x[2:] - x[:-2])
    return x


def sums(x):
    for _ in range(8):
        x = x / np.sum(x)
    return x


def long_functions(x):
    for _ in range(8):
        x = np.tanh(x)
    return x


def reversed_array(x):
    for _ in range(8):
        x = x[::-1] + 1.0
    return x


def elements(x):
    for i in range(8):
        x[i] = x[i] + 1.0
    return x


def primes(x):
    for _ in range(11):
        x = x + 0.1
    return x


@pytest.mark.parametrize(
    "function", [stencil, sums, long_functions, reversed_array, elements, primes]
)
def test_others_stay(function, joins):
    x = np.linspace(0.5, 2.0, 20)
    np.testing.assert_allclose(td.jit(function)(x.copy()), function(x.copy()), rtol=1e-12)
    assert not joins


def test_narrow_floats_are_rounded_in_every_iteration(joins):
    def f(x):
        for _ in range(8):
            x = x * np.float16(1.1)
        return x

    x = np.linspace(1, 2, 9).astype(np.float16)
    np.testing.assert_array_equal(td.jit(f)(x), f(x), strict=True)
    assert not joins


def test_a_position_out_of_range_is_an_error(joins):
    def f(x, order):
        y = np.zeros(4)
        for k in range(8):
            y += x[order[k]]
        return y

    x, order = np.ones((3, 4)), np.array([0, 1, 2, 0, 1, 2, 0, 1])
    jitted = td.jit(f)
    np.testing.assert_array_equal(jitted(x, order), f(x, order))
    with pytest.raises(td.errors.InvalidArgumentError, match="out of range"):
        jitted(x, order + 2)
    assert joins in ([], [8])
