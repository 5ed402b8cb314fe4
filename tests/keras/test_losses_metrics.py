"""Interfaces of losses and metrics (values are in test_facts)."""

import numpy as np
import pytest

import treadle as td
from treadle import keras
from treadle.keras import losses, metrics


def test_names_and_classes():
    assert losses.get("mse") is losses.mean_squared_error
    assert isinstance(losses.get("Huber"), losses.Huber)
    assert losses.get(None) is None
    made = losses.BinaryCrossentropy(from_logits=True, reduction="sum")
    assert made.get_config()["from_logits"] is True and made.reduction == "sum"
    assert losses.MeanSquaredError().name == "mean_squared_error"
    with pytest.raises(ValueError, match="Unknown reduction 'avg'"):
        losses.MeanSquaredError(reduction="avg")


def test_shapes_are_aligned():
    x = np.array([[0.2], [0.9]], "f")
    value = losses.mean_squared_error(np.array([0.0, 1.0]), x)
    np.testing.assert_allclose(value, [0.04, 0.01], rtol=1e-5)
    scores = np.array([[5.0, 0.0]], "f")
    column = losses.SparseCategoricalCrossentropy(from_logits=True)(np.array([[0]]), scores)
    flat = losses.SparseCategoricalCrossentropy(from_logits=True)(np.array([0]), scores)
    assert float(column) == float(flat)
    floats = losses.SparseCategoricalCrossentropy(from_logits=True)(np.array([0.0]), scores)
    assert float(floats) == float(flat)


def test_a_loss_of_ones_own():
    class Cubed(losses.Loss):
        def call(self, y_true, y_pred):
            return td.reduce_mean(td.abs(y_true - y_pred) ** 3, -1)

    assert float(Cubed()(td.constant([[1.0]]), td.constant([[3.0]]))) == 8.0
    with pytest.raises(NotImplementedError, match="Loss must define call"):
        losses.Loss()(1.0, 2.0)


@pytest.mark.parametrize("name", sorted(metrics._CLASSES))
def test_traced_metrics_equal_eager_ones(name):
    def run(wrap):
        metric = metrics._CLASSES[name]()
        step = wrap(lambda t, p: metric.update_state(t, p))
        scores = np.array([[0.7, 0.3], [0.4, 0.6], [0.9, 0.1]], "f")
        true = np.array([0, 1, 1]) if name.startswith("Sparse") else np.eye(2, dtype="f")[[0, 1, 1]]
        for _ in range(2):
            if name in ("Mean", "Sum"):
                step(td.constant(scores), td.constant([1.0, 2.0, 3.0]))
            else:
                step(td.constant(true), td.constant(scores))
        return float(metric.result())

    traced = run(lambda f: td.function(f, autograph=False))
    np.testing.assert_allclose(traced, run(lambda f: f), rtol=1e-6)


def test_metric_life():
    mean = metrics.Mean(name="m")
    assert float(mean.result()) == 0.0
    assert float(mean([1.0, 3.0])) == 2.0 and float(mean(5.0)) == 3.0
    assert mean.name == "m" and len(mean.variables) == 2
    mean.reset_state()
    assert float(mean.result()) == 0.0
    assert isinstance(metrics.get("mae"), metrics.MeanAbsoluteError)
    wrapped = metrics.get(lambda t, p: td.abs(t - p))
    wrapped.update_state(td.constant([1.0]), td.constant([4.0]))
    assert float(wrapped.result()) == 3.0
    with pytest.raises(ValueError, match="Unknown metric 'f1'"):
        metrics.get("f1")


def test_unsupported_names_fail_with_one_line():
    with pytest.raises(AttributeError, match=r"td.keras has no 'applications'"):
        keras.applications
