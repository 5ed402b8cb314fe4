"""Callbacks that watch a value: what better means, and what happens where there is no value."""

import numpy as np
import pytest

from treadle import keras
from treadle.keras.callbacks.monitoring import MonitorCallback

DATA = np.ones((4, 2)), np.ones((4, 1))


def compiled(optimizer="sgd", **options):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(optimizer, "mse", **options)
    return model


@pytest.mark.parametrize(
    ("monitor", "rises"),
    [("val_loss", False), ("loss", False), ("mse", False), ("val_mae", False), ("hinge", False),
     ("f1_score", True), ("val_accuracy", True), ("auc", True), ("r2_score", True)],
)  # fmt: skip
def test_metrics_say_what_is_better(monitor, rises):
    metrics = ["mse", "mae", "accuracy", keras.metrics.F1Score(), keras.metrics.AUC(name="auc")]
    model = compiled(metrics=[*metrics, keras.metrics.R2Score(), "hinge"])
    model.fit(*DATA, verbose=0)
    callback = MonitorCallback(monitor)
    callback.set_model(model)
    assert callback._is_improvement(2.0, 1.0) is rises
    assert callback._is_improvement(0.0, 1.0) is not rises


def test_metrics_that_do_not_say_it_need_a_mode():
    model = compiled(metrics=[keras.metrics.FalsePositives(name="wrong")])
    hook = keras.callbacks.EarlyStopping("wrong")
    with pytest.raises(ValueError, match="pass mode='max' or mode='min'"):
        model.fit(*DATA, epochs=2, verbose=0, callbacks=[hook])
    hook = keras.callbacks.EarlyStopping("wrong", mode="min")
    assert len(model.fit(*DATA, epochs=4, verbose=0, callbacks=[hook]).epoch) == 2


def test_unknown_modes_are_taken_for_auto():
    with pytest.warns(UserWarning, match="unknown, fallback to auto"):
        keras.callbacks.ModelCheckpoint("m.keras", mode="highest")


@pytest.mark.parametrize("kind", [keras.callbacks.EarlyStopping, keras.callbacks.ReduceLROnPlateau])
def test_a_value_that_is_not_there_is_warned_of(kind):
    with pytest.warns(UserWarning, match="`val_loss` which is not available"):
        history = compiled().fit(*DATA, epochs=2, verbose=0, callbacks=[kind()])
    assert len(history.epoch) == 2


def test_states_begin_anew_with_each_fit():
    stop = keras.callbacks.EarlyStopping("loss", patience=1)
    lower = keras.callbacks.ReduceLROnPlateau("loss")
    compiled().fit(*DATA, verbose=0, callbacks=[stop, lower])
    assert stop.best is not None and lower.best is not None
    for hook in (stop, lower):
        hook.on_train_begin()
        assert hook.best is None


def test_a_rate_that_is_a_schedule_is_not_set():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    hook = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    with pytest.raises(TypeError, match="not settable"):
        compiled(keras.optimizers.SGD(schedule)).fit(*DATA, verbose=0, callbacks=[hook])
    with pytest.raises(ValueError, match="should be a float"):
        hook = keras.callbacks.LearningRateScheduler(lambda epoch: "fast")
        compiled().fit(*DATA, verbose=0, callbacks=[hook])


def test_losses_that_are_no_numbers_may_raise():
    ended = []
    last = keras.callbacks.LambdaCallback(on_train_end=lambda logs: ended.append(1), kept=3)
    assert last.kept == 3
    data = np.full((4, 2), np.inf), np.ones((4, 1))
    stop = keras.callbacks.TerminateOnNaN()
    compiled().fit(*data, epochs=3, verbose=0, callbacks=[stop, last])
    assert ended == [1]
    stop = keras.callbacks.TerminateOnNaN(raise_error=True)
    with pytest.raises(RuntimeError, match="NaN or Inf loss encountered at batch 0"):
        compiled().fit(*data, verbose=0, callbacks=[stop, last])
    assert ended == [1]


def test_models_without_weights_are_fitted():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Rescaling(2.0)])
    model.compile("adam", "mse")
    with pytest.warns(UserWarning, match="does not have any trainable weights"):
        history = model.fit(np.ones((4, 2)), np.ones((4, 2)), verbose=0)
    assert history.history["loss"] == [1.0]
