"""Recurrent layers beyond the facts: graphs of open length, states, dropout, users' cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle import keras
from treadle.keras import layers

X = np.sin(np.arange(40, dtype=np.float32)).reshape(2, 5, 4)


@pytest.mark.parametrize("kind", ["SimpleRNN", "GRU", "LSTM"])
def test_one_trace_for_all_lengths(kind: str) -> None:
    layer = getattr(layers, kind)(3)
    layer(X)
    traces = []

    @td.function(input_signature=[td.TensorSpec([None, None, 4])])
    def run(x: Any) -> Any:
        traces.append(x.shape)
        return layer(x)

    for length in (1, 2, 5):
        np.testing.assert_allclose(run(X[:, :length]), layer(X[:, :length]), rtol=1e-5)
    assert len(traces) == 1


@pytest.mark.parametrize("kind", ["SimpleRNN", "GRU", "LSTM"])
def test_a_call_may_go_on_from_the_states_of_another(kind: str) -> None:
    layer = getattr(layers, kind)(3, return_state=True)
    whole, *_ = layer(X)
    _, *states = layer(X[:, :2])
    np.testing.assert_allclose(layer(X[:, 2:], initial_state=states)[0], whole, rtol=1e-5)


def test_stateful_layers_keep_their_states() -> None:
    layer = layers.GRU(3, stateful=True)
    first = np.asarray(layer(X[:, :2]))
    after = np.asarray(layer(X[:, 2:]))
    np.testing.assert_allclose(layers.GRU.from_config(layer.get_config())(X).shape, after.shape)
    layer.reset_states()
    np.testing.assert_allclose(layer(X[:, :2]), first, rtol=1e-6)
    layer.reset_states()
    np.testing.assert_allclose(layer(X), after, rtol=1e-5)
    with pytest.raises(ValueError, match="known batch size"):
        layers.GRU(3, stateful=True)(keras.Input((5, 4)))


def test_users_cells() -> None:
    class Sum(layers.Layer):
        state_size = output_size = 4

        def call(self, inputs: Any, states: Any) -> Any:
            total = states[0] + inputs
            if td.reduce_max(total) > 1e9:
                total = total * 0.0
            return total, [total]

    layer = layers.RNN(Sum(), return_sequences=True)
    expected = np.cumsum(X, 1)
    np.testing.assert_allclose(layer(X), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(td.function(layer)(X), expected, rtol=1e-5, atol=1e-6)


def test_one_sequence_drops_the_same_inputs_at_every_step() -> None:
    cell = layers.SimpleRNNCell(4, activation="linear", dropout=0.5)
    layer = layers.RNN(cell, return_sequences=True)
    ones = np.ones((3, 4, 4), np.float32)
    layer(ones)
    layer.set_weights([np.eye(4, dtype="f"), np.zeros((4, 4), "f"), np.zeros(4, "f")])
    for run in (layer, td.function(layer)):
        found = np.asarray(run(ones, training=True))
        assert set(np.unique(found)) == {0.0, 2.0}
        assert (found == found[:, :1]).all()
        np.testing.assert_array_equal(run(ones), ones)


def test_sequences_are_trained() -> None:
    model = keras.Sequential([
        layers.Embedding(10, 4), layers.Bidirectional(layers.LSTM(4)), layers.Dense(1),
    ])  # fmt: skip
    model.compile("adam", "mse")
    words = np.arange(24).reshape(4, 6) % 10
    losses = model.fit(words, np.ones(4), epochs=4, verbose=0).history["loss"]
    assert losses == sorted(losses, reverse=True)
