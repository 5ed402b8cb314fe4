"""RematScope: gradients are the same, and layers compute again where the mode says so."""

import numpy as np
import pytest

import treadle as td

keras = td.keras
X = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")


class Counted(keras.layers.Layer):
    """Counts its calls."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.calls = [0]
        self.inner = keras.layers.Dense(4, "tanh", kernel_initializer="ones")

    def call(self, x, training=False):
        self.calls[0] += 1
        return self.inner(x)


def calls_of_a_gradient(scope, **kwargs):
    """How often a layer is called for its result and gradient, and the gradient."""
    if scope is None:
        layer = Counted(**kwargs)
    else:
        with scope:
            layer = Counted(**kwargs)
    layer(X)
    layer.calls[0] = 0
    with td.GradientTape() as tape:
        loss = td.reduce_sum(layer(X) ** 2)
    (found,) = tape.gradient(loss, [layer.inner.kernel])
    return layer.calls[0], found.numpy()


@pytest.mark.parametrize(
    ("options", "again"),
    [
        ({}, True), ({"mode": None}, False), ({"mode": "larger_than"}, False),
        ({"mode": "larger_than", "output_size_threshold": 20}, True),
        ({"mode": "list_of_layers", "layer_names": ["mine"]}, True),
        ({"mode": "list_of_layers", "layer_names": ["other"]}, False),
        ({"mode": "activations"}, False),
    ],
)  # fmt: skip
def test_modes(options, again):
    _, expected = calls_of_a_gradient(None)
    calls, found = calls_of_a_gradient(keras.RematScope(**options), name="mine")
    assert calls == 1 + again
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_scopes_within_scopes():
    with keras.RematScope(), keras.RematScope(mode=None):
        plain = Counted()
    assert plain._remat is None and Counted()._remat is None


@pytest.mark.parametrize("mode", ["full", "activations"])
def test_models_train_alike(mode):
    def trained(make):
        keras.utils.set_random_seed(3)
        model = make()
        model.compile("sgd", "mse")
        model.fit(X, X[:, :1], epochs=3, verbose=0, shuffle=False)
        return model.get_weights()

    def model():
        first = keras.layers.Dense(8, "relu")
        rest = [keras.layers.Dropout(0.5, seed=4), keras.layers.BatchNormalization()]
        return keras.Sequential([keras.Input((4,)), first, *rest, keras.layers.Dense(1)])

    def again():
        with keras.RematScope(mode=mode):
            return model()

    for own, other in zip(trained(again), trained(model), strict=True):
        np.testing.assert_allclose(own, other, rtol=2e-5, atol=1e-6)


def test_a_mode_that_is_none():
    with pytest.raises(ValueError, match="Invalid mode 'all'"):
        keras.RematScope(mode="all")
