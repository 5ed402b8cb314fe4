"""Layers, metrics and models with values that stand for those of their variables.

The numbers are those of Keras 3.15 with TensorFlow's backend.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle import keras

X = np.linspace(-1, 1, 12).reshape(4, 3).astype(np.float32)


def network() -> tuple[Any, list[td.Tensor], list[td.Tensor]]:
    """A model, and values for its variables."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((3,)), layers.Dense(4, activation="relu"), layers.BatchNormalization(),
            layers.Dropout(0.5), layers.Dense(2),
        ]
    )  # fmt: skip
    trained = [td.fill(v.shape, 0.1 * (i + 1)) for i, v in enumerate(model.trainable_variables)]
    return model, trained, [v + 0 for v in model.non_trainable_variables]


def call(model: Any, trained: Any, kept: Any, x: Any) -> Any:
    with td.GradientTape() as tape:
        tape.watch(trained)
        out, updated = model.stateless_call(trained, kept, x, training=False)
        total = td.reduce_sum(out * out)
    return out, updated, tape.gradient(total, trained)


@pytest.mark.parametrize("staged", [False, True])
def test_a_call_follows_the_values(staged: bool) -> None:
    model, trained, kept = network()
    before = [v.numpy() for v in model.variables]
    run = td.function(call) if staged else call
    out, updated, grads = run(model, trained, kept, X)
    expected = [1.4, 1.4708737, 1.5690064, 1.6671392]
    np.testing.assert_allclose(out, np.stack([expected] * 2, 1), rtol=1e-5)
    sums = [td.reduce_sum(g).numpy() for g in grads]
    np.testing.assert_allclose(
        sums, [10.009, 11.291, 10.864, 48.856, 45.603, 24.428], atol=1e-3
    )
    for old, new in zip(kept, updated, strict=True):
        np.testing.assert_array_equal(old, new)
    for old, variable in zip(before, model.variables, strict=True):
        np.testing.assert_array_equal(old, variable.numpy())


def test_what_a_call_would_assign() -> None:
    model, trained, kept = network()
    _, updated = model.stateless_call(trained, kept, X, training=True)
    np.testing.assert_allclose([td.reduce_sum(v) for v in updated[:2]], [0.0085, 3.9611], atol=1e-4)
    seeds = [v for v in updated if v.shape == [2]]
    assert len(seeds) == 1 and not np.array_equal(seeds[0], kept[2])  # dropout has drawn
    assert [float(td.reduce_sum(v)) for v in model.non_trainable_variables[:2]] == [0.0, 4.0]
    assert model.stateless_call(trained, kept, X, return_losses=True)[2] == []


def test_values_that_do_not_fit() -> None:
    model, trained, kept = network()
    with pytest.raises(ValueError, match="`trainable_variables` must be .* length 1.* 6 variables"):
        model.stateless_call(trained[:1], kept, X)
    with pytest.raises(ValueError, match="`non_trainable_variables` must be"):
        model.stateless_call(trained, [], X)
    with pytest.raises(ValueError, match="shape that matches"):
        model.stateless_call([*trained[:-1], td.ones([7])], kept, X)
    with pytest.raises(ValueError, match="must be built"):
        keras.layers.Dense(2).stateless_call([], [], X)
    with pytest.raises(ValueError, match="stateless_apply is not supported with the TensorFlow"):
        keras.optimizers.SGD().stateless_apply([], [], [])


@pytest.mark.parametrize("staged", [False, True])
def test_metrics(staged: bool) -> None:
    metric = keras.metrics.SparseCategoricalAccuracy()
    labels, found = np.array([0, 1, 1, 0]), np.eye(2)[[0, 1, 0, 0]].astype(np.float32)

    def steps(state: Any) -> Any:
        state = metric.stateless_update_state(state, labels, found)
        return state, metric.stateless_result(state)

    state, result = (td.function(steps) if staged else steps)([td.zeros([]), td.zeros([])])
    assert [float(v) for v in state] == [3.0, 4.0] and float(result) == 0.75
    assert float(metric.result()) == 0.0
    metric.update_state(labels, found)
    assert [float(v) for v in metric.stateless_reset_state()] == [0.0, 0.0]
    assert float(metric.result()) == 0.75
    with pytest.raises(ValueError, match="`metric_variables` must be .* 2 variables"):
        metric.stateless_update_state([], labels, found)


def test_scopes() -> None:
    v, other = keras.Variable(1.0), keras.Variable(2.0)
    product = td.function(lambda: v * other)
    assert float(product()) == 2.0
    with keras.StatelessScope(state_mapping=[(v, 5.0)]) as scope:
        first = v + 1.0
        v.assign(7.0)
        v.assign_add(1.0)
        # A function that was compiled before follows the scope.
        assert (float(first), float(v + 0.0), float(product())) == (6.0, 8.0, 16.0)
        with pytest.raises(ValueError, match="shape"):
            v.assign([1.0, 2.0])
    assert float(scope.get_current_value(v)) == 8.0 and scope.get_current_value(other) is None
    assert (float(v), float(product())) == (1.0, 2.0)
    with pytest.raises(ValueError, match="Variable instances"):
        keras.StatelessScope([(1.0, 2.0)])


def test_losses_of_models() -> None:
    model, trained, kept = network()
    model.compile("sgd", "mse")
    model.evaluate(X, np.zeros((4, 2)), verbose=0)
    state = [v + 0 for v in model.metrics_variables]
    y = np.ones((4, 2), np.float32)
    loss, (a, b, c) = model.stateless_compute_loss(trained, kept, state, X, y, y + 1.0)
    assert float(loss) == 1.0 and [len(g) for g in (a, b, c)] == [6, 3, len(state)]
    np.testing.assert_array_equal(a[0], trained[0])
