"""Classes of users: what they define and set on layers and models in their own way."""

from __future__ import annotations

import numpy as np

from treadle import keras

X = np.random.default_rng(0).standard_normal((4, 6, 5)).astype(np.float32)


def test_ready_layers_make_their_weights_by_add_weight():
    """A class derived from a ready layer sees each weight that this makes, as with Keras."""
    seen = []

    class Halved(keras.layers.Dense):
        def add_weight(self, name=None, shape=None, initializer=None, **given):
            seen.append((name, tuple(shape), sorted(given)))
            variable = super().add_weight(name=name, shape=shape, initializer="one", **given)
            return variable if name == "bias" else variable * 0.5

    layer = Halved(3, kernel_regularizer="l2")
    found = layer(X[:, 0])
    assert [part[:2] for part in seen] == [("kernel", (5, 3)), ("bias", (3,))]
    assert all({"regularizer", "constraint"} <= set(given) for *_, given in seen)
    wanted = np.repeat(X[:, 0].sum(1, keepdims=True) * 0.5 + 1.0, 3, 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_layers_with_a_rank_of_their_own():
    """As of an ensemble whose weights have few dimensions: edward2's."""

    class Ranked(keras.layers.Conv1D):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.rank = 7

    own, plain = (
        kind(3, 2, kernel_initializer="ones", padding="same")
        for kind in (Ranked, keras.layers.Conv1D)
    )
    np.testing.assert_array_equal(own(X), plain(X))
    assert own.rank == 7 and own.compute_output_shape((4, 6, 5)) == (4, 6, 3)


def test_initializers_by_their_short_names():
    layer = keras.layers.Dense(2, kernel_initializer="one", bias_initializer="zero")
    np.testing.assert_allclose(layer(X[:, 0]), np.repeat(X[:, 0].sum(1, keepdims=True), 2, 1), 1e-5)
    assert isinstance(keras.initializers.get("zero"), keras.initializers.Zeros)
