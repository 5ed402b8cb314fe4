"""Costly functions of what a loop counts are computed before it, as vectors."""

import numpy as np
import pytest

import treadle as td
from treadle.autograph.operators import python_loops
from treadle.core.switches import disabled
from treadle.graph.passes import counter_functions


def decay(x):
    s = 0.0
    for i in range(x.shape[0]):
        s = s * 0.9 + np.exp(-0.001 * i * i) * x[i]
    return s


def nested(x):
    s = 0.0
    for k in range(5):
        for i in range(20):
            s = s * 0.5 + np.cos(0.1 * k * i) * x[i + k]
    return s


def of_elements(x):
    s = 0.0
    for i in range(x.shape[0] - 1):
        s = np.maximum(s * 0.5, np.log(x[i + 1] + 0.5)) + np.sin(np.exp(x[i]) * i)
    return s


def in_place(x):
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1] * 0.5 + np.sin(i) ** 3
    return x[-1]


def several(x):
    s = t = 1.0
    for i in range(x.shape[0]):
        a = np.tanh(i * 0.01)
        s, t = s * a + t, t * 0.5 + np.arctan2(a, s)
    return s + t


FUNCTIONS = [decay, nested, of_elements, in_place, several]


@pytest.fixture
def tables(monkeypatch):
    """How many functions of each loop are computed before it."""
    found = []
    search = counter_functions.counter_functions

    def noted(loop):
        result = search(loop)
        found.append(0 if result is None else len(result.functions))
        return result

    monkeypatch.setattr("treadle.graph.passes.independent_iterations.counter_functions", noted)
    return found


def check(function, x):
    """The bits of functions in the loop, and NumPy's values."""
    mine, single, theirs = x.copy(), x.copy(), x.copy()
    found = td.jit(function)(mine)
    with disabled("independent_iterations"):
        expected = td.jit(lambda x: function(x))(single)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(mine, single)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, function(theirs), 1e-12, 1e-12)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [40, 41, 100])
def test_bits_are_those_of_the_loop(function, size, tables):
    check(function, np.random.default_rng(size).uniform(0.1, 1, size))
    assert max(tables) == (2 if function is of_elements else 1)


def test_special_values():
    x = np.random.default_rng(0).uniform(0.1, 1, 30)
    x[3], x[7], x[9], x[29] = np.nan, np.inf, -0.5, -2.0
    check(of_elements, x)
    check(decay, x)


def test_the_loop_reads_a_table(tables):
    x = np.random.default_rng(0).uniform(0.1, 1, 50)
    schedule = td.inspect.stages(td.jit(decay), x)["schedule"]
    before, inside = schedule.split("loop")
    assert before.count("kernel") == 1 and "exp" not in inside


# -- what stays in the loop ----------------------------------------------------------------------


def no_iterations(x):
    s = 1.0
    for i in range(x.shape[0] - 40):
        s = s * np.exp(-0.1 * i)
    return s


def few_iterations(x):
    s = 1.0
    for i in range(8):
        s = s * 0.5 + np.exp(-0.1 * i)
    return s


def very_many_iterations(x):
    s = 1.0
    for i in range(100_000):
        s = s * 0.5 + np.exp(-0.1 * i)
    return s


def an_early_end(x):
    s = 1.0
    for i in range(x.shape[0]):
        s = s * 0.5 + np.exp(-0.1 * i)
        if s < x[i]:
            break
    return s


def as_long_as_data_say(x):
    s, i = 1.0, 0
    while i < x.shape[0] and s > x[i] * 0.5:
        s = s * 0.9 + np.exp(-0.1 * i) * 0.1
        i += 1
    return s


def of_carried_numbers(x):
    s = 1.0
    for i in range(x.shape[0]):
        s = np.exp(-s * i)
    return s


def of_changed_elements(x):
    for i in range(1, x.shape[0]):
        x[i] = np.exp(-x[i - 1] * i)
    return x[-1]


def divisions(x):
    s = 1.0
    for i in range(x.shape[0]):
        s = s * 0.5 + x[i] / (i + 1)
    return s


STAY = [
    no_iterations, few_iterations, very_many_iterations, an_early_end, as_long_as_data_say,
    of_carried_numbers, of_changed_elements, divisions,
]  # fmt: skip


@pytest.mark.parametrize("function", STAY, ids=lambda f: f.__name__)
def test_what_stays_in_the_loop(function, tables):
    check(function, np.random.default_rng(0).uniform(0.1, 1, 40))
    assert not any(tables)


def test_rolled_loops_have_the_bits_of_their_iterations(monkeypatch, tables):
    monkeypatch.setattr(python_loops, "FEWEST_OPERATIONS", 0)

    def f(x):
        s = x[0] * 0.0
        for i in range(30):
            s = s * 0.5 + td.exp(x[i] * -0.1) * x[i]
        return s

    x = td.constant(np.random.default_rng(0).normal(size=30))
    found = td.function(f)(x)
    assert max(tables) == 1
    with disabled("rolled_loops"):
        expected = td.function(lambda x: f(x))(x)
    np.testing.assert_array_equal(found, expected)
