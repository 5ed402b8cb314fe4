"""``td.keras.backend``: functions that `td` has under the same name with other arguments."""

import inspect

import numpy as np
import pytest

import treadle as td

K = td.keras.backend
X = np.array([[-2.0, -0.5, 0.0], [1.0, 3.0, 8.0]], np.float32)


def test_arguments_have_the_names_of_keras():
    """As Keras 3 has them for programs that were written for Keras 2."""
    wanted = {
        "all": "x axis keepdims", "any": "x axis keepdims", "max": "x axis keepdims",
        "min": "x axis keepdims", "clip": "x min_value max_value", "elu": "x alpha",
        "gather": "reference indices", "ones_like": "x dtype name", "zeros_like": "x dtype name",
        "permute_dimensions": "x pattern", "pow": "x a", "reshape": "x shape", "shape": "x",
        "relu": "x alpha max_value threshold", "softplus": "x", "softsign": "x",
        "squeeze": "x axis", "stack": "x axis", "stop_gradient": "variables", "tile": "x n",
        "transpose": "x",
        "sparse_categorical_crossentropy": "target output from_logits axis ignore_class",
    }  # fmt: skip
    for name, arguments in wanted.items():
        assert list(inspect.signature(getattr(K, name)).parameters) == arguments.split(), name


@pytest.mark.parametrize("alpha", [0.0, 0.25])
@pytest.mark.parametrize("limit", [None, 2.0, 6])
@pytest.mark.parametrize("threshold", [0.0, 0.75])
def test_rectifiers(alpha, limit, threshold):
    found = K.relu(X, alpha, limit, threshold)
    above = np.where(X > threshold, X, 0.0)
    wanted = above if limit is None else np.minimum(above, limit)
    below = np.where(X > threshold, 0.0, alpha * (X - threshold))
    np.testing.assert_allclose(found, wanted + below, rtol=1e-6)
    compiled = td.function(lambda x: K.relu(x, alpha, limit, threshold))(X)
    np.testing.assert_allclose(compiled, found, rtol=1e-6)


def test_values():
    np.testing.assert_allclose(
        K.elu(X, 0.5), np.where(X > 0, X, 0.5 * np.expm1(np.minimum(X, 0))), rtol=1e-6
    )
    np.testing.assert_array_equal(K.clip(X, None, 1.0), np.minimum(X, 1.0))
    np.testing.assert_array_equal(K.clip(X, 0.0, None), np.maximum(X, 0.0))
    np.testing.assert_array_equal(K.clip(X, 1.0, -1.0), np.ones_like(X))
    assert K.all([1, 2]).numpy() and not K.all([1, 0]).numpy()
    np.testing.assert_array_equal(K.any(X, axis=0, keepdims=True), [[True, True, True]])
    np.testing.assert_array_equal(K.tile(td.constant([1, 2]), 2), [1, 2, 1, 2])
    np.testing.assert_array_equal(K.permute_dimensions(X, pattern=(1, 0)), X.T)
    np.testing.assert_array_equal(K.squeeze(X[:1], 0), X[0])
    np.testing.assert_array_equal(K.gather(reference=X, indices=[1]), X[1:])


def test_values_without_gradients():
    x = td.Variable(3.0)
    with td.GradientTape() as tape:
        first, second = K.stop_gradient([x * 2.0, x])
        y = first * second * x
    assert tape.gradient(y, x).numpy() == 18.0


def test_classes_that_do_not_count():
    probabilities = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]], np.float32)
    found = K.sparse_categorical_crossentropy(np.array([0, 2]), probabilities, ignore_class=2)
    np.testing.assert_allclose(found, [np.log(2.0), 0.0], rtol=1e-6)


def test_sparse_tensors():
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]], np.float32)
    sparse = td.sparse.from_dense(dense)
    assert K.is_sparse(sparse) and not K.is_sparse(dense) and not K.is_sparse(td.constant(dense))
    assert K.is_sparse(td.Variable(1.0)) is False

    def used(x):
        assert K.is_sparse(x)  # so for the value of a trace, too
        both = K.concatenate([x, x])
        assert K.is_sparse(both) and not K.is_sparse(K.concatenate([x, dense], axis=0))
        joined = K.concatenate([x, dense], axis=0)
        return K.to_dense(x), K.dot(x, X.T), K.to_dense(both), joined, K.to_dense(X)

    for function in (used, td.function(used)):
        found = function(sparse)
        twice, below = np.concatenate([dense] * 2, 1), np.concatenate([dense] * 2, 0)
        for one, wanted in zip(found, (dense, dense @ X.T, twice, below, X), strict=True):
            np.testing.assert_allclose(one, wanted, rtol=1e-6)


def test_binary_crossentropies():
    """As Keras's functions for version 2 compute them: not as its losses do."""
    y, p = np.array([[0.0, 1.0, 1.0]]), np.array([[[0.0, 0.0, 0.75]], [[1.0, 0.5, 1.0]]])
    little = 1e-7
    q = np.clip(p, little, 1 - little)
    wanted = -(y * np.log(q + little) + (1 - y) * np.log(1 - q + little))
    right = y * p + (1 - y) * (1 - p)
    for wrapped in (lambda function: function, td.function):
        found, focal = wrapped(
            lambda y, p: (K.binary_crossentropy(y, p), K.binary_focal_crossentropy(y, p))
        )(td.constant(y), td.constant(p))
        np.testing.assert_allclose(found, wanted, rtol=1e-9)  # labels broadcast
        np.testing.assert_allclose(focal, (1 - right) ** 2 * wanted, rtol=1e-9)
    assert round(float(K.binary_crossentropy(1.0, 0.0)), 3) == 15.425
    logits = np.array([[-3.0, 0.0, 40.0]])
    found = K.binary_crossentropy(y, logits, from_logits=True)
    np.testing.assert_allclose(found, np.log1p(np.exp(-np.abs(logits))) + [[0, 0, 0]], atol=1e-15)


def test_functions_between_layers():
    """Values as Keras 2's functions gave them, which Keras 3 has no more."""
    x = K.placeholder(ndim=2)
    assert tuple(x.shape) == (None, None) and x.dtype == "float32"
    assert tuple(K.placeholder((None, 3), dtype="int32").shape) == (None, 3)
    double = K.function([x], [x * 2])
    np.testing.assert_array_equal(double([X])[0], 2 * X)
    np.testing.assert_array_equal(double(X.astype(np.int64))[0], 2 * X.astype(np.int64))
    one, both = K.function(x, x + 1), K.function([x], [x, td.keras.ops.sum(x, axis=1)])
    assert isinstance(one(X), np.ndarray)
    np.testing.assert_array_equal(both([X])[1], X.sum(1))
    model = td.keras.Sequential([td.keras.Input((3,)), td.keras.layers.ReLU()])
    inner = K.function(model.inputs, [layer.output for layer in model.layers])
    np.testing.assert_array_equal(inner([X])[0], np.maximum(X, 0))
    with pytest.raises(ValueError, match="updates"):
        K.function([x], [x], updates=[(x, x)])
