"""Means and variances of ragged tensors: of integers, far from zero, of rows without elements."""

import numpy as np
import pytest

import treadle as td


def statistics(x):
    """The mean, variance and standard deviation over all elements, and over each row."""
    return [
        f(x, axis=axis)
        for f in (td.math.reduce_mean, td.math.reduce_variance, td.math.reduce_std)
        for axis in (None, 1)
    ]


@pytest.mark.parametrize("way", [lambda f: f, td.function])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_means_and_variances(way, dtype):
    rows = [np.array(row, dtype) for row in ([3, 5, 8, 1], [], [4], [20_000, 20_001, 20_003])]
    x = td.RaggedTensor.from_row_lengths(np.concatenate(rows), [len(row) for row in rows])
    found = way(statistics)(x)
    wide = np.float64 if dtype is np.int32 else dtype
    expected = []
    with np.errstate(all="ignore"):
        for f in (np.mean, np.var, np.std):
            means = [f(row.astype(np.float64)) if len(row) else np.nan for row in rows]
            expected += [f(np.concatenate(rows).astype(np.float64)), means]
    # Of float32 the squares around the mean of all have seven digits.
    tolerance = {"rtol": 1e-5, "atol": 30.0} if dtype is np.float32 else {"rtol": 1e-6}
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one.dtype == wide
        near = {"rtol": 1e-6} if number < 2 else tolerance
        np.testing.assert_allclose(one, other, **near)


def test_variances_of_integers_are_exact():
    x = td.ragged.constant([[6, 3], [2, 4], [5], [6, 8]])
    assert td.math.reduce_variance(x, axis=1).numpy().tolist() == [2.25, 1.0, 0.0, 1.0]


def test_equal_elements_vary_by_nothing():
    x = td.ragged.constant([[[0.214441]] * 7, [[3.0], [3.0]]], ragged_rank=1)
    for f in (td.math.reduce_variance, td.math.reduce_std):
        np.testing.assert_allclose(f(x, axis=1), np.zeros((2, 1)), atol=1e-3)
        assert (f(td.ragged.constant([[0.214441] * 7]), axis=1).numpy() == 0).all()
    with pytest.raises(ValueError, match="complex"):
        td.math.reduce_variance(td.ragged.constant([[1 + 2j]]), axis=1)


def test_an_element_that_is_not_finite_counts_in_its_row_only():
    x = td.ragged.constant([[np.inf, 1.0], [np.nan], [1.0, 3.0]])
    found = td.math.reduce_variance(x, axis=1).numpy()
    assert np.isnan(found[:2]).all() and found[2] == 1.0


def test_gradients_of_variances():
    flat = td.constant([1.0, 2.0, 4.0, 10.0, 13.0], td.float64)
    x = td.RaggedTensor.from_row_lengths(flat, [3, 2])
    with td.GradientTape() as tape:
        tape.watch(flat)
        y = td.math.reduce_variance(x.with_flat_values(flat), axis=1)
    centred = np.array([1.0, 2.0, 4.0]) - 7 / 3, np.array([-1.5, 1.5])
    expected = np.concatenate([2 / 3 * centred[0], centred[1]])
    np.testing.assert_allclose(tape.gradient(y, flat), expected)
