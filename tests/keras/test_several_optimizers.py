"""MultiOptimizer: each weight is updated by its own optimizer, as if that were the only one."""

import copy
import pickle

import numpy as np
import pytest

import treadle as td

keras = td.keras
X = np.random.default_rng(3).normal(size=(32, 3)).astype(np.float32)
Y = X.sum(1, keepdims=True)


def several(**kwargs):
    rules = {".*one/.*": keras.optimizers.Adam(0.01, use_ema=True)}
    chosen = keras.optimizers.OptimizerMap(keras.optimizers.SGD(0.1, momentum=0.5), rules)
    return keras.optimizers.MultiOptimizer(chosen, **kwargs)


def model(optimizer):
    keras.utils.set_random_seed(1)
    made = keras.Sequential([
        keras.Input((3,)), keras.layers.Dense(4, name="one"), keras.layers.Dense(1, name="two")
    ])
    made.compile(optimizer, "mse")
    return made


def test_each_weight_is_updated_by_its_own():
    both, own = model(several()), model(None)
    both.fit(X, Y, epochs=3, verbose=0, shuffle=False)
    one, two = keras.optimizers.Adam(0.01), keras.optimizers.SGD(0.1, momentum=0.5)
    for _ in range(3):
        with td.GradientTape() as tape:
            loss = td.reduce_mean(td.square(own(X) - Y))
        weights = own.trainable_variables
        grads = tape.gradient(loss, weights)
        one.apply(grads[:2], weights[:2])
        two.apply(grads[2:], weights[2:])
    averages = dict(zip(map(id, both.trainable_variables), own.get_weights(), strict=True))
    for average in both.optimizer.averages():  # `fit` ends with them in place
        assert averages.pop(id(average[0])).shape == average[0].shape
    for weight in both.trainable_variables[2:]:
        np.testing.assert_allclose(weight, averages[id(weight)], rtol=1e-5, atol=1e-6)
    assert both.optimizer.iterations == 3 and [o.iterations for o in both.optimizer.optimizers] == [
        3, 3
    ]


def test_it_is_kept_by_files_checkpoints_copies_and_pickles(tmp_path):
    trained = model(several())
    trained.fit(X, Y, epochs=2, verbose=0)
    trained.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    place = td.train.Checkpoint(m=trained, o=trained.optimizer).save(str(tmp_path / "c"))
    other = model(several())
    other.fit(X, Y, verbose=0)
    td.train.Checkpoint(m=other, o=other.optimizer).restore(place).assert_consumed()
    kept = [v.numpy() for v in trained.optimizer.variables]
    for optimizer in (again.optimizer, other.optimizer, copy.deepcopy(trained.optimizer)):
        for value, variable in zip(kept, optimizer.variables, strict=True):
            np.testing.assert_array_equal(value, variable)
    a, b = (m.fit(X, Y, verbose=0, shuffle=False).history["loss"] for m in (trained, again))
    assert a == b
    assert pickle.loads(pickle.dumps(again.optimizer)).iterations == 3


def test_rates_and_scales_of_losses():
    rates = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5)
    optimizer = several(loss_scale_factor=8.0)
    optimizer.optimizers[0].name = optimizer.optimizers[1].name = "same"
    found = model(optimizer).fit(X, Y, epochs=2, verbose=0, callbacks=[rates]).history
    np.testing.assert_allclose(found["learning_rate_same"], [0.005, 0.0025])
    np.testing.assert_allclose(found["learning_rate_same_1"], [0.05, 0.025])
    scaled = model(keras.optimizers.LossScaleOptimizer(several(loss_scale_factor=5.0)))
    plain = model(several())
    for each in (scaled, plain):
        each.fit(X, Y, verbose=0, shuffle=False)
    assert scaled.optimizer.inner_optimizer.loss_scale_factor is None
    for a, b in zip(scaled.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_what_is_refused():
    sgd = keras.optimizers.SGD()
    chosen = keras.optimizers.OptimizerMap(sgd, {"a": sgd, ".*a": sgd, ".*aa": sgd})
    with pytest.raises(ValueError, match="Multiple optimizers"):
        chosen["baa"]
    with pytest.raises(ValueError, match="already exists"):
        chosen["a"] = sgd
    for bad in (keras.optimizers.LossScaleOptimizer(sgd), keras.optimizers.MultiOptimizer(chosen)):
        with pytest.raises(ValueError, match="optimizer cannot be"):
            chosen["b"] = bad
        with pytest.raises(ValueError, match="cannot be used inside"):
            keras.optimizers.MultiOptimizer(lambda variable, bad=bad: bad).build([td.Variable(1.0)])
    with pytest.raises(AttributeError, match="individual sub-optimizers"):
        keras.optimizers.MultiOptimizer(chosen).learning_rate = 1.0
    with pytest.raises(TypeError, match="default_optimizer"):
        keras.optimizers.OptimizerMap("sgd")
