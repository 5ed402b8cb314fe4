"""Interfaces of losses and metrics (values are in test_facts)."""

import gc
import json
import weakref
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.keras.facts.cases import METRICS
from tests.keras.training import cases as training
from treadle import keras
from treadle.keras import losses, metrics
from treadle.keras.masks import set_mask


def test_names_and_classes():
    assert losses.get("mse") is losses.mean_squared_error
    assert isinstance(losses.get("Huber"), losses.Huber)
    assert losses.get(None) is None
    made = losses.BinaryCrossentropy(from_logits=True, reduction="sum")
    assert made.get_config()["from_logits"] is True and made.reduction == "sum"
    assert losses.MeanSquaredError().name == "mean_squared_error"
    with pytest.raises(ValueError, match="Invalid value for argument `reduction`.*avg"):
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


@pytest.mark.parametrize("name", METRICS)
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


@pytest.mark.parametrize("name", training.METRICS)
def test_metrics_as_data(name):
    kind, settings, _ = training.METRICS[name]
    metric = getattr(metrics, kind)(**settings)
    data = json.loads(json.dumps(metrics.serialize(metric)))
    assert data["module"] == "keras.metrics" and data["class_name"] == kind
    twin = metrics.deserialize(data)
    assert type(twin) is type(metric) and twin.get_config() == metric.get_config()
    for key, value in settings.items():
        assert twin.get_config()[key] == value


@pytest.mark.parametrize("name", training.LOSSES)
def test_losses_as_data(name):
    kind, settings, _ = training.LOSSES[name]
    loss = getattr(losses, kind)(reduction="sum", **settings)
    data = json.loads(json.dumps(losses.serialize(loss)))
    assert data["module"] == "keras.losses" and data["class_name"] == kind
    twin = losses.get(data)
    assert type(twin) is type(loss) and twin.get_config() == loss.get_config()
    assert twin.reduction == "sum" and settings.items() <= twin.get_config().items()


def test_functions_as_data():
    assert losses.deserialize(losses.serialize(losses.mse)) is losses.mse
    assert losses.deserialize("mse") is losses.mse
    with pytest.warns(UserWarning, match="lambda"):
        data = losses.serialize(lambda t, p: t)
    with pytest.raises(ValueError, match="risk of arbitrary code execution"):
        losses.deserialize(data)
    with pytest.raises(ValueError, match="Could not find function 'own'"):
        losses.deserialize({"module": "builtins", "class_name": "function", "config": "own"})

    def own(y_true, y_pred):
        return y_pred

    data = losses.serialize(own)
    assert losses.deserialize(data, {"own": own}) is own
    with keras.utils.custom_object_scope({"own": own}):
        assert losses.deserialize(data) is own


def test_no_code_is_taken_from_data():
    for module in ("os", "keras.losses.os", "treadle.keras.losses", None):
        with pytest.raises(ValueError, match="Could not find 'system'"):
            keras.utils.deserialize_keras_object(
                {"module": module, "class_name": "system", "config": {"command": "true"}}
            )
    with pytest.raises(ValueError, match="risk of arbitrary code execution"):
        keras.utils.deserialize_keras_object({"class_name": "__lambda__", "config": {"value": ""}})


def test_registered_classes():
    @keras.utils.register_keras_serializable("mine")
    class Halved(losses.Loss):
        def call(self, y_true, y_pred):
            return y_pred / 2

    assert keras.utils.get_registered_name(Halved) == "mine>Halved"
    data = losses.serialize(Halved(name="h"))
    assert data["registered_name"] == "mine>Halved"
    assert type(losses.deserialize(data)) is Halved
    del keras.utils.get_custom_objects()["mine>Halved"]
    with pytest.raises(ValueError, match="Could not find 'Halved'"):
        losses.deserialize(data)
    with pytest.raises(ValueError, match="does not have a get_config"):
        keras.utils.register_keras_serializable()(type("Bare", (), {}))


def test_masks_count_in_losses_and_metrics():
    true, pred = td.zeros([2, 3]), td.constant([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])
    set_mask(pred, td.constant([True, False]))
    assert float(losses.MeanSquaredError()(true, pred)) == 7.0
    assert float(losses.MeanSquaredError(reduction="sum")(true, pred)) == 7.0
    metric = metrics.MeanSquaredError()
    metric.update_state(true, pred)
    assert float(metric.result()) == 7.0
    weight = td.constant([2.0, 5.0])
    assert float(losses.MeanSquaredError()(true, pred, weight)) == 14.0
    positives = metrics.FalsePositives()
    positives.update_state(true, pred)
    assert float(positives.result()) == 3.0


def test_tensors_and_relative_errors():
    mean = metrics.MeanTensor()
    mean.update_state([[1.0, 2.0]], sample_weight=[1.0])
    mean.update_state([[4.0, 6.0]], sample_weight=[2.0])
    np.testing.assert_allclose(mean.result(), [[3.0, 14 / 3]], rtol=1e-6)
    with pytest.raises(ValueError, match="have shape"):
        mean.update_state([1.0])
    with pytest.raises(ValueError, match="no values"):
        metrics.MeanTensor().result()
    relative = metrics.MeanRelativeError(normalizer=[1.0, 2.0, 0.0])
    relative.update_state([1.0, 4.0, 1.0], [2.0, 1.0, 9.0])
    np.testing.assert_allclose(relative.result(), (1 + 1.5 + 0) / 3, rtol=1e-6)


def test_metrics_in_metrics():
    class Both(metrics.Metric):
        def __init__(self, **settings):
            super().__init__(**settings)
            self.inner, self.own = metrics.Mean(), td.Variable(0.0)

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.inner.update_state(y_pred)
            self.own.assign_add(1.0)

        def result(self):
            return self.inner.result() + self.own

    both = Both(name="both")
    assert len(both.variables) == 3 and float(both(0.0, [1.0, 3.0])) == 3.0
    both.reset_state()
    assert [float(v) for v in both.variables] == [0.0] * 3


def test_arguments():
    with pytest.raises(ValueError, match=r"Thresholds must be in \[0, 1\]"):
        metrics.Precision(thresholds=1.5)
    with pytest.raises(TypeError, match="unsupported arguments: limit"):
        metrics.BinaryAccuracy(limit=0.5)
    with pytest.raises(ValueError, match="curve must be"):
        metrics.AUC(curve="XY")
    with pytest.raises(ValueError, match="class 3 is not among the 3 classes"):
        metrics.IoU(3, [3])
    with pytest.raises(ValueError, match="shape"):
        metrics.F1Score().update_state([1.0], [1.0])
    with pytest.raises(ValueError, match="Targets `y_true` are expected"):
        losses.CTC()([1], [[[0.5, 0.5]]])
    with pytest.raises(ValueError, match="Logits `y_pred` are expected"):
        losses.get("ctc")([[1]], [[0.5, 0.5]])


@pytest.mark.parametrize("name", ["auc", "AUC", "f1_score", "Precision", "kld", "r2_score"])
def test_metrics_by_name_in_fit(name):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, activation="softmax")])
    model.compile("sgd", "bce", metrics=[name])
    x, y = np.ones((4, 2), "f"), np.eye(2, dtype="f")[[0, 1, 1, 0]]
    assert name in model.fit(x, y, verbose=0).history


def test_unsupported_names_fail_with_one_line():
    with pytest.raises(AttributeError, match=r"td.keras has no 'premade_models'"):
        keras.premade_models


def test_a_loss_of_the_program_gets_sparse_labels() -> None:
    class OfPairs(td.keras.losses.Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return td.reduce_sum(td.square(td.sparse.to_dense(y_true) - y_pred), 1)

    labels = td.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])
    loss = OfPairs()(labels, td.ones([2, 2]))
    assert loss.numpy() == pytest.approx((1.0 + 2.0) / 2)


def test_means_over_weights_divide_by_the_sum_of_those_given():
    loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    ones, zeros = np.ones((2, 3, 4), np.float32), np.zeros((2, 3, 4), np.float32)
    for weight, value in ((np.float32(2), 6.0), ([[1.0], [3.0]], 3.0), (np.full((2, 3), 2.0), 1.0)):
        assert float(loss(zeros, ones, sample_weight=weight)) == pytest.approx(value)


def test_probabilities_said_to_be_logits_are_warned_of():
    p = td.keras.activations.softmax(td.constant([[1.0, 2.0]]))
    with pytest.warns(UserWarning, match="received `from_logits=True`, but the `output` argument"):
        td.keras.losses.categorical_crossentropy([[0.0, 1.0]], p, from_logits=True)


def test_logits_travel_with_probabilities_as_long_as_these_are_there():
    x = td.constant([[1.0, 2.0]])
    p = td.keras.layers.Activation("softmax")(x)
    assert p._keras_logits is x
    assert not hasattr(td.nn.softmax(x), "_keras_logits")
    logits, alive = weakref.ref(x), weakref.ref(p)
    del x
    assert logits() is not None
    del p
    gc.collect()
    assert alive() is None
    assert logits() is None
