"""Softmax and log-softmax."""

import numpy as np
import pytest
from scipy import special

import treadle as td
from tests.ops.gradcheck import check_gradients
from tests.ops.lowered import check_lowering

X = np.random.default_rng(1).normal(size=(3, 4, 5)) * 3


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_values(axis):
    np.testing.assert_allclose(td.nn.softmax(X, axis=axis), special.softmax(X, axis), rtol=1e-12)
    np.testing.assert_allclose(
        td.nn.log_softmax(X, axis=axis), special.log_softmax(X, axis), rtol=1e-10
    )


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_lowering(name, axis, dtype):
    check_lowering(name, X.astype(dtype), axis=axis, tolerance=2e-6 if dtype == "float32" else 4e-3)


@pytest.mark.parametrize("fn", [td.nn.softmax, td.nn.log_softmax])
@pytest.mark.parametrize("axis", [0, -1])
def test_gradients(fn, axis):
    check_gradients(lambda x: fn(x, axis=axis), X[:2, :2, 0])


def test_large_values_do_not_overflow():
    np.testing.assert_array_equal(td.nn.softmax([1000.0, 0.0, -1000.0]), [1, 0, 0])
    np.testing.assert_array_equal(td.nn.log_softmax([1000.0, 0.0]), [0, -1000])
    y = td.nn.softmax(np.array([60000.0, 60000.0], np.float16))
    np.testing.assert_array_equal(y, np.array([0.5, 0.5], np.float16))


def test_nan_and_empty_rows():
    assert np.isnan(td.nn.softmax([1.0, np.nan]).numpy()).all()
    assert td.nn.softmax(np.zeros((2, 0), "f")).shape == (2, 0)
    assert td.nn.softmax(np.zeros((0, 3), "f")).shape == (0, 3)


def test_wrong_arguments():
    with pytest.raises(td.errors.InvalidArgumentError, match=r"softmax.*axis 2 is outside"):
        td.nn.softmax([[1.0, 2.0]], axis=2)
    with pytest.raises(TypeError, match=r"softmax.*int32"):
        td.nn.softmax([1, 2])
