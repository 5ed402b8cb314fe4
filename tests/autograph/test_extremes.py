"""``min`` and ``max`` of scalars take in a graph the number that Python takes eagerly."""

import itertools

import numpy as np
import pytest

import treadle as td

NUMBERS = (1.0, 2.0, np.nan, 0.0, -0.0, np.inf)


def largest_and_least(*values):
    return max(*values), min(*values)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_nan_and_signs_of_zeros(dtype):
    traced = td.function(largest_and_least)
    for pair in itertools.product(NUMBERS, repeat=2):
        values = [td.constant(number, dtype) for number in pair]
        for found, expected in zip(traced(*values), largest_and_least(*values), strict=True):
            assert found.numpy().tobytes() == expected.numpy().tobytes(), pair


def test_numbers_of_python_take_the_dtype_of_the_tensor():
    def run(x):
        return max(1, 2, x), min(7, x, np.float32(2)), max(x, 3.5)

    found = td.function(run)(td.constant(2.5))
    assert [t.dtype for t in found] == [td.float32] * 3
    assert [float(t) for t in found] == [2.5, 2.0, 3.5]
    assert int(td.function(lambda i: max(i, 3))(td.constant(5, td.int64))) == 5
    with pytest.raises(TypeError, match=r"2\.5"):
        td.function(lambda i: max(i, 2.5))(td.constant(5))


def test_the_gradient_goes_to_the_number_that_is_taken():
    x, y = td.Variable(2.0), td.Variable(2.0)

    def run():
        with td.GradientTape() as tape:
            largest = max(x * 1.0, y * 3.0 - 4.0)
        return tape.gradient(largest, [x, y], unconnected_gradients="zero")

    assert [float(g) for g in run()] == [float(g) for g in td.function(run)()] == [1.0, 0.0]


def test_in_a_loop():
    def largest_sum(x):
        here = best = x[0]
        for i in td.range(1, td.shape(x)[0]):
            here = max(here + x[i], x[i])
            best = max(best, here)
        return best

    for seed in range(5):
        x = td.constant(np.random.default_rng(seed).standard_normal(100))
        assert float(td.function(largest_sum)(x)) == float(largest_sum(x))
