"""Models and optimizers survive pickle and copy.deepcopy."""

import copy
import pickle

import numpy as np
import pytest

from treadle import keras


class Doubled(keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, shape):
        self.w = self.add_weight((shape[-1], self.units), name="w")

    def call(self, x):
        return x @ self.w * 2.0


def trained():
    model = keras.Sequential([keras.Input((4,)), Doubled(3), keras.layers.Dense(2)])
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(np.ones((4, 4)), np.ones((4, 2)), epochs=2, verbose=0)
    return model


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_models_go_on_as_they_would(copied):
    model = trained()
    twin = copied(model)
    x = np.sin(np.arange(8.0)).reshape(2, 4)
    np.testing.assert_array_equal(twin.predict(x, verbose=0), model.predict(x, verbose=0))
    for each in (model, twin):
        each.fit(np.ones((4, 4)), np.zeros((4, 2)), verbose=0, shuffle=False)
    for one, two in zip(model.weights, twin.weights, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6)


def test_optimizers():
    optimizer = keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 10), momentum=0.9)
    twin = pickle.loads(pickle.dumps(optimizer))
    assert twin.get_config() == optimizer.get_config()
    rate = keras.optimizers.Adam(0.5)
    rate.learning_rate = 0.25
    assert float(pickle.loads(pickle.dumps(rate)).learning_rate) == 0.25
    slots = trained().optimizer
    assert len(copy.deepcopy(slots).variables) == len(slots.variables) == 2 + 2 * 3


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_metrics_keep_what_they_have_seen(copied):
    for metric in (keras.metrics.MeanSquaredError(name="own"), keras.metrics.AUC(num_thresholds=5),
                   keras.metrics.Recall()):  # fmt: skip
        metric.update_state([[0.0, 1.0]], [[0.2, 0.4]])
        twin = copied(metric)
        assert twin.name == metric.name and float(twin.result()) == float(metric.result())
        twin.update_state([[1.0, 1.0]], [[0.9, 0.1]])
        assert float(twin.result()) != float(metric.result())
