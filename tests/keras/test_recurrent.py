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
    keras.utils.set_random_seed(2)
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


def test_stacked_cells_keep_and_return_their_states() -> None:
    cells = [layers.LSTMCell(3), layers.GRUCell(2)]
    layer = layers.RNN(cells, return_state=True, stateful=True)
    _, lstm, gru = layer(X[:, :2])
    assert [s.shape for s in lstm] == [(2, 3), (2, 3)] and gru.shape == (2, 2)
    output, *_ = layer(X[:, 2:])
    layer.reset_states()
    np.testing.assert_allclose(layer(X)[0], output, rtol=1e-5)
    twin = layers.RNN.from_config(layer.get_config())
    twin(X)
    twin.set_weights(layer.get_weights())
    layer.reset_states()
    twin.reset_states()
    np.testing.assert_allclose(twin(X)[0], layer(X)[0], rtol=1e-6)
    assert len(layer.weights) == 6  # the states are none


def test_states_are_set_by_reset_states() -> None:
    layer = layers.SimpleRNN(3, stateful=True)
    layer(X)
    start = np.ones((2, 3), np.float32)
    layer.reset_states(states=[start])
    expected = layers.SimpleRNN(3)
    expected(X)
    expected.set_weights(layer.get_weights())
    np.testing.assert_allclose(layer(X), expected(X, initial_state=[start]), rtol=1e-6)
    with pytest.raises(ValueError, match="1 states, got 2"):
        layer.reset_states(states=[start, start])


@pytest.mark.parametrize("kind", ["ConvLSTM1D", "ConvLSTM2D"])
def test_images_drop_the_same_elements_at_every_step(kind: str) -> None:
    rank = int(kind[-2])
    shape = (2, 3, *(4,) * rank, 2)
    x = np.ones(shape, np.float32)
    layer = getattr(layers, kind)(2, 2, dropout=0.5, recurrent_dropout=0.3)
    still = np.asarray(layer(x))
    run = td.function(lambda x: layer(x, training=True), autograph=False)
    assert run(x).shape == still.shape == layer.compute_output_shape(shape)
    assert not np.allclose(run(x), run(x))
    assert layer.filters == 2 and layer.kernel_size == (2,) * rank
    with pytest.raises(AttributeError, match="no attribute 'window'"):
        layer.window


@pytest.mark.parametrize("kind", ["SimpleRNN", "GRU", "LSTM"])
def test_cells_drop_inputs_and_states_in_training(kind: str) -> None:
    cell = getattr(layers, f"{kind}Cell")(3, dropout=0.5, recurrent_dropout=0.5)
    states = [td.ones([2, 3])] * cell.states
    x = td.ones([2, 4])
    still = cell(x, states)[0]
    np.testing.assert_array_equal(cell(x, states)[0], still)
    drawn = [np.asarray(cell(x, states, training=True)[0]) for _ in range(4)]
    assert any(not np.allclose(one, still) for one in drawn)
