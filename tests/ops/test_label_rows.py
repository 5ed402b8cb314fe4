"""Rows of labels, isotonic regression and averages of losses: gradients, open sizes, errors."""

import warnings

import numpy as np
import pytest

import treadle as td
from tests.ops.gradcheck import check_gradients

RNG = np.random.default_rng(9)


def nearest_falling(x):
    """The falling numbers nearest to x, by their formula with least upper means."""
    n = len(x)
    return np.array([
        max(min(x[j : k + 1].mean() for j in range(i + 1)) for k in range(i, n)) for i in range(n)
    ])  # fmt: skip


def test_isotonic_regression():
    x = RNG.normal(size=(6, 9))
    y, runs = td.nn.isotonic_regression(x)
    np.testing.assert_allclose(y, [nearest_falling(row) for row in x], rtol=1e-12)
    np.testing.assert_array_equal(np.diff(runs.numpy()), np.diff(y.numpy()) != 0)
    up, _ = td.nn.isotonic_regression(x, decreasing=False, axis=0)
    np.testing.assert_allclose(
        np.transpose(up), [-nearest_falling(-column) for column in x.T], rtol=1e-12
    )
    for shape in ((0, 3), (2, 0)):
        assert td.nn.isotonic_regression(np.zeros(shape))[0].shape == shape


def test_gradients_of_isotonic_regression():
    x = RNG.normal(size=(2, 3, 5))
    for axis in (-1, 1):
        check_gradients(lambda x, a=axis: td.nn.isotonic_regression(x, axis=a)[0] ** 2, x)


def test_isotonic_regression_of_open_sizes_and_batches():
    traced = td.function(
        lambda x: td.nn.isotonic_regression(x),
        input_signature=[td.TensorSpec([None, None], td.float64)],
    )
    x = RNG.normal(size=(3, 6))
    for found, expected in zip(traced(x), td.nn.isotonic_regression(x), strict=True):
        np.testing.assert_array_equal(found, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = td.vectorized_map(lambda r: td.nn.isotonic_regression(r)[0], td.constant(x))
    np.testing.assert_array_equal(rows, td.nn.isotonic_regression(x)[0])


def collapsed(row, count):
    kept = [v for k, v in enumerate(row[:count]) if not k or v != row[k - 1]]
    return kept


def test_collapsed_and_unique_labels_of_open_sizes():
    spec = td.TensorSpec([None, None], td.int32)
    merge = td.function(
        td.nn.collapse_repeated, input_signature=[spec, td.TensorSpec([None], td.int32)]
    )
    unique = td.function(td.nn.ctc_unique_labels, input_signature=[spec])
    for batch, size in ((4, 7), (1, 1), (3, 2)):
        labels = RNG.integers(0, 3, (batch, size)).astype(np.int32)
        lengths = RNG.integers(0, size + 1, batch).astype(np.int32)
        found, counts = merge(labels, lengths)
        expected = [collapsed(row, n) for row, n in zip(labels.tolist(), lengths, strict=True)]
        assert counts.numpy().tolist() == [len(row) for row in expected]
        assert found.shape == (batch, max(map(len, expected)))
        for row, wanted in zip(found.numpy().tolist(), expected, strict=True):
            assert row == wanted + [0] * (len(row) - len(wanted))
        names, places = unique(labels)
        np.testing.assert_array_equal(
            np.take_along_axis(names.numpy(), places.numpy().astype(int), 1), labels
        )


def test_what_does_not_fit():
    n = td.nn
    with pytest.raises(td.errors.InvalidArgumentError, match="batch, time"):
        n.ctc_unique_labels([1, 2])
    with pytest.raises(td.errors.InvalidArgumentError, match="batch, time"):
        n.collapse_repeated([1, 2], [1])
    with pytest.raises(ValueError, match="not a scalar"):
        n.compute_average_loss(2.0)
    with pytest.raises((TypeError, ValueError)):
        n.isotonic_regression(1.0)
    with pytest.raises(AttributeError, match="se td"):
        n.RNNCellDeviceWrapper
