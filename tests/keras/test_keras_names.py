"""What Keras programs rely on: what the steps are handed, class weights, building, hooks.

The numbers are those of Keras 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle import keras

X = np.ones((4, 2), np.float32)
Y = np.ones((4, 1), np.float32)


class Watching(keras.Model):
    """Notes what its steps are handed."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
        self.seen: list[Any] = []

    def call(self, x: Any) -> Any:
        return self.dense(x)

    def note(self, data: Any) -> Any:
        self.seen.append(type(data).__name__ + (str(len(data)) if type(data) is tuple else ""))
        return {"loss": td.constant(0.0)}

    train_step = test_step = note

    def predict_step(self, data: Any) -> Any:
        self.note(data)
        return self(data)


def test_steps_are_handed_what_a_dataset_has() -> None:
    model = Watching()
    model.compile("sgd", "mse", run_eagerly=True)
    model.fit(X, verbose=0)
    model.fit(X, Y, verbose=0)
    model.fit(td.data.Dataset.from_tensor_slices(X).batch(2), verbose=0)
    model.fit({"a": X}, verbose=0)
    model.evaluate(X, verbose=0)
    model.predict(X, verbose=0)
    model.predict_on_batch(X)
    model.train_on_batch(X)
    fit = ["Tensor", "tuple2", "Tensor", "Tensor", "dict"]
    assert model.seen == [*fit, "Tensor", "Tensor", "Tensor", "Tensor"]


class Custom(keras.layers.Layer):
    def build(self, shape: Any) -> None:
        self.w = self.add_weight(shape=(shape[-1], 3), initializer="ones", name="w")

    def call(self, x: Any) -> Any:
        if td.reduce_sum(x) > 1e9:
            x = x * 0.0
        return x @ self.w


def test_sequential_is_built_through_custom_layers() -> None:
    layers = [keras.Input((2,)), keras.layers.Dense(4), Custom(), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    assert model.built
    assert [tuple(w.shape) for w in model.weights] == [(2, 4), (4,), (4, 3), (3, 1), (1,)]
    model.set_weights([np.full(w.shape, 0.5, np.float32) for w in model.get_weights()])
    np.testing.assert_allclose(model.predict(X[:1], verbose=0), [[5.0]])


def _linear() -> Any:
    dense = keras.layers.Dense(2, kernel_initializer="ones")
    return keras.Sequential([keras.Input((2,)), dense])


CLASSES = np.array([0, 1, 1, 0])


@pytest.mark.parametrize("one_hot", [False, True])
@pytest.mark.parametrize("dataset", [False, True])
def test_class_weights(one_hot: bool, dataset: bool) -> None:
    model = _linear()
    kind = "CategoricalCrossentropy" if one_hot else "SparseCategoricalCrossentropy"
    model.compile("sgd", getattr(keras.losses, kind)(from_logits=True))
    labels = np.eye(2, dtype=np.float32)[CLASSES] if one_hot else CLASSES
    data: Any = (X, labels)
    if dataset:
        data = (td.data.Dataset.from_tensor_slices((X, labels)).batch(4),)
    history = model.fit(*data, class_weight={0: 1.0, 1: 5.0}, shuffle=False, verbose=0)
    np.testing.assert_allclose(history.history["loss"], [2.0794], rtol=1e-4)


def test_class_weights_and_sample_weights_are_refused_together() -> None:
    model = _linear()
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="class_weight or sample_weight"):
        model.fit(X, X, sample_weight=np.ones(4), class_weight={0: 1.0}, verbose=0)


def test_loss_weights_and_weighted_metrics() -> None:
    labels = np.array([[0, 1], [1, 0], [2, 3], [0, 0]], np.float32)
    for given, expected in ((2.0, 4.75), ([2.0], 4.75), (None, 2.375)):
        model = _linear()
        model.compile("sgd", "mse", loss_weights=given)
        history = model.fit(X, labels, verbose=0, shuffle=False)
        np.testing.assert_allclose(history.history["loss"], [expected], rtol=1e-5)
    model = _linear()
    model.compile("sgd", "mse", loss_weights=[1.0, 2.0])  # Keras, too, complains in `fit`
    with pytest.raises(ValueError, match="`loss_weights` must match the number of losses"):
        model.fit(X, labels, verbose=0)
    model = _linear()
    model.compile("sgd", "mse", metrics=["mae"], weighted_metrics=["mse"])
    weight = np.array([1.0, 2.0, 0.0, 1.0])
    logs = model.evaluate(X, labels, sample_weight=weight, verbose=0, return_dict=True)
    errors = np.abs(2.0 - labels)
    np.testing.assert_allclose(logs["mae"], errors.mean(), rtol=1e-5)
    wanted = np.average((errors**2).mean(-1), weights=weight)
    np.testing.assert_allclose(logs["mse"], wanted, rtol=1e-5)


def test_cosine_decay_warms_up() -> None:
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 100, warmup_target=0.5, warmup_steps=10)
    found = [float(schedule(step)) for step in (0, 5, 10, 11, 60, 110)]
    np.testing.assert_allclose(found, [0.1, 0.3, 0.5, 0.49988, 0.25, 0.0], atol=1e-5)


class Own(Watching):
    """A training step of the user's that calls the hooks by keywords."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with td.GradientTape() as tape:
            pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=pred)
        self.optimizer.apply(
            tape.gradient(loss, self.trainable_variables), self.trainable_variables
        )
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, pred)
        return {m.name: m.result() for m in self.metrics}


def test_compute_loss_without_x() -> None:
    model = Own()
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(X, Y, verbose=0).history
    assert history == {"loss": [1.0], "mae": [1.0]}


def test_compute_loss_is_the_users() -> None:
    class Hook(Watching):
        train_step = keras.Model.train_step
        test_step = keras.Model.test_step

        def compute_loss(self, y: Any, x: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            return 3.0 * td.reduce_mean(td.abs(y - y_pred))

    model = Hook()
    model.compile("sgd")
    assert model.fit(X, Y, verbose=0).history["loss"] == [3.0]
