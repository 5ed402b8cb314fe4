"""Positions that count are checked before the loop; errors and wrapped positions stay the same."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.test_scalar_loops import schedule_of


def gather_from(x, start, count):
    total = 0.0
    for i in range(count):
        total += x[start + i]
    return total


def backwards_from(x, start, count):
    total = 0.0
    for i in range(count):
        total = 0.5 * total + x[start - i]
    return total


def in_steps_of(x, step, count):
    for i in range(count):
        x[i * step] += 1.0
    return x


def only_some(x, start, count):
    total = 0.0
    for i in range(count):
        if i % 3 == 1:
            total += x[start + i]
    return total


X = np.arange(1.0, 21.0)


@pytest.mark.parametrize("program", [gather_from, backwards_from, only_some])
@pytest.mark.parametrize("start", [-25, -20, -7, -1, 0, 3, 12, 19, 20, 2**62])
@pytest.mark.parametrize("count", [0, 1, 8])
def test_positions_from_a_start(program, start, count):
    jitted = td.jit(program)
    _same(jitted, program, X, start, count)


@pytest.mark.parametrize("step", [0, 1, 3, 7, -1, -3, 20, 2**61, 2**62, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("count", [1, 3, 7, 9])
def test_positions_in_steps(step, count):
    if abs(step) * count >= 2**63:
        count = 1  # NumPy's numbers of 64 bits would wrap around where Python's do not
    _same(td.jit(in_steps_of), in_steps_of, X.copy(), step, count)


def _same(jitted, program, x, *numbers):
    try:
        want = program(x.copy(), *numbers)
    except IndexError:
        with pytest.raises(Exception, match="range|bounds"):
            jitted(x.copy(), *numbers)
        return
    np.testing.assert_allclose(jitted(x.copy(), *numbers), want, rtol=1e-12)


def test_steps_that_wrap_around_are_not_skipped():
    """First and last position lie inside, those between do not."""

    @td.function
    def fn(x, step, n):
        total = x[0]
        for i in td.range(n):
            total += x[i * step]
        return total

    x = td.constant(X)
    with pytest.raises(td.errors.InvalidArgumentError):
        fn(x, td.constant(2**62), td.constant(np.int64(5)))  # 4 * 2**62 is 0 again


def test_numbers_of_32_bits():
    @td.function
    def fn(x, start, n):
        total = x[0]
        for i in td.range(n):
            total += x[start + 2 * i]
        return total

    x, n = td.constant(X), td.constant(6)
    assert fn(x, td.constant(3), n) == 1.0 + X[3:15:2].sum()
    assert fn(x, td.constant(-12), n) == 1.0 + X[8::2].sum()
    with pytest.raises(td.errors.InvalidArgumentError):
        fn(x, td.constant(12), n)
    with pytest.raises(td.errors.InvalidArgumentError):
        fn(x, td.constant(2**31 - 5), n)


def test_what_was_written_before_an_error_is_numpys_too():
    def fill(x, start):
        for i in range(8):
            x[start + i] = -1.0

    found, expected = X.copy(), X.copy()
    td.jit(fill)(found, 12)
    fill(expected, 12)
    np.testing.assert_array_equal(found, expected)


def test_loops_with_both_versions_agree_on_long_runs():
    """More iterations than run between two polls: strips, each with a verdict of its own."""

    @td.function
    def fn(x, start, n):
        total = x[0]
        for i in td.range(n):
            total += x[start + i]
        return total

    x = np.random.default_rng(0).normal(size=100_000)
    n = td.constant(np.int64(60_000))
    for start in (10, -70_000, -20_000):
        at = np.arange(start, start + 60_000)
        want = x[0] + x[at].sum()
        np.testing.assert_allclose(fn(td.constant(x), td.constant(np.int64(start)), n), want)


def test_positions_asked_about_and_left_by_loops_are_proved():
    @td.function
    def insertion(x):
        x = td.identity(x)
        for i in td.range(1, 9):
            value = x[i]
            j = i - 1
            while j >= 0 and x[j] > value:
                x[j + 1] = x[j]
                j -= 1
            x[j + 1] = value
        return x

    @td.function
    def around(x):
        total = x[0]
        for i in td.range(9):
            total += x[(i - 3) % 9] * x[(i + 1) % 9]
        return total

    x = td.constant(np.random.default_rng(1).normal(size=9))
    assert "inside" not in schedule_of(insertion, x) + schedule_of(around, x)
    np.testing.assert_array_equal(insertion(x), np.sort(x))
    want = x[0] + np.sum(np.roll(x, 3) * np.roll(x, -1))
    np.testing.assert_allclose(around(x), want)
