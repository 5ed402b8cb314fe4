"""Iterations that change an array element by element are done in one pass over it."""

import numpy as np
import pytest

import treadle as td
from treadle.core.switches import disabled
from treadle.runtime.passes import joined_iterations as joined


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
    """For each loop that was compiled: its iterations, and how many of them are joined."""
    found = []
    joined_of = joined.joined_of

    def noted(trips, operations):
        times = joined_of(trips, operations)
        if times > 1:
            found.append((trips, times))
        return times

    monkeypatch.setattr(joined, "joined_of", noted)
    return found


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", [7, 12, 16, 19, 37])
def test_joined_loops_have_the_same_bits(function, count, joins):
    numbers = np.random.default_rng(count)
    x, taps = numbers.normal(size=64), numbers.normal(size=count)
    found = td.jit(function)(x.copy(), taps)
    assert joins[0][0] == (7 if function is images else count)
    with disabled("joined_iterations"):
        expected = td.jit(lambda x, taps: function(x, taps))(x.copy(), taps)
    np.testing.assert_array_equal(found, expected, strict=True)
    np.testing.assert_allclose(found, function(x.copy(), taps), rtol=1e-12, atol=1e-12)


def test_how_many_are_joined():
    assert joined.joined_of(32, 2) == 16
    assert joined.joined_of(20, 2) == 10  # the largest divisor that is not small
    assert joined.joined_of(7, 14) == 2  # no divisor: one of them comes before the loop
    assert joined.joined_of(37, 2) == 13  # three passes need no more
    assert joined.joined_of(8, 20) == 1
    assert joined.joined_of(1, 2) == 1


def test_images_are_read_once_for_several_rows(joins):
    def rows(image, kernel):
        out = np.zeros((6, 8))
        for i in range(kernel.shape[0]):
            for j in range(kernel.shape[1]):
                out += kernel[i, j] * image[i : i + 6, j : j + 8]
        return out

    image = np.random.default_rng(0).normal(size=(12, 14))
    kernel = np.random.default_rng(1).normal(size=(7, 7))
    jitted = td.jit(rows)
    np.testing.assert_array_equal(jitted(image, kernel), rows(image, kernel))
    assert joins == [(7, 7), (7, 2)]
    schedule = td.inspect.stages(jitted, image, kernel)["schedule"]
    assert schedule.count("while") == 1
    assert len([line for line in schedule.splitlines() if "kernel " in line]) == 2


def test_rows_before_the_loop_count_on(joins):
    """Counters that arrays need as numbers, backwards and in steps, in whole and in part."""

    def f(x):
        for k in range(50, 12, -2):
            x = x * 0.5 + k
        for k in range(2, 80, 9):
            x = x - k
        return x

    x = np.linspace(0.5, 2.0, 20)
    np.testing.assert_array_equal(td.jit(f)(x), f(x))
    (trips, times), whole = joins
    assert trips == 19 and trips % times and whole == (9, 9)


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


@pytest.mark.parametrize("function", [stencil, sums, long_functions, reversed_array, elements])
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
    assert joins in ([], [(8, 8)])
