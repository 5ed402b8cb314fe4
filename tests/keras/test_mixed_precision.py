"""Policies of dtypes: what layers compute in, losses that are scaled in fit."""

import json

import numpy as np
import pytest

import treadle as td
from treadle import keras
from treadle.keras import dtype_policies, layers, mixed_precision

HALVES = ["mixed_float16", "mixed_bfloat16"]


@pytest.fixture(autouse=True)
def global_policy():
    yield
    mixed_precision.set_global_policy("float32")


def test_policies():
    assert mixed_precision.global_policy().name == "float32"
    mixed = mixed_precision.Policy("mixed_float16")
    assert (mixed.compute_dtype, mixed.variable_dtype) == ("float16", "float32")
    assert mixed == keras.DTypePolicy("mixed_float16") and mixed != keras.DTypePolicy("float16")
    twin = dtype_policies.get(json.loads(json.dumps(dtype_policies.serialize(mixed))))
    assert twin == mixed and dtype_policies.get(td.bfloat16).compute_dtype == "bfloat16"
    mixed_precision.set_global_policy("mixed_bfloat16")
    assert keras.config.dtype_policy().compute_dtype == "bfloat16"
    assert layers.Dense(1).compute_dtype == "bfloat16"
    with pytest.raises(ValueError, match="mixed_int8"):
        mixed_precision.Policy("mixed_int8")


@pytest.mark.parametrize("policy", HALVES)
@pytest.mark.parametrize("wrap", [lambda f: f, td.function])
def test_layers_compute_in_16_bits_with_weights_of_32(policy, wrap):
    dense = layers.Dense(3, dtype=policy)
    x = np.linspace(-1, 1, 8, dtype="f").reshape(2, 4)
    y = wrap(dense)(x)
    assert y.dtype.name == dense.compute_dtype and dense.kernel.dtype.name == "float32"
    full = x @ dense.kernel.numpy()
    np.testing.assert_allclose(td.cast(y, td.float32), full, atol=2e-2)
    assert dense.kernel.value.dtype.name == "float32"  # outside of calls
    assert dense.get_config()["dtype"] == {
        "module": "keras", "class_name": "DTypePolicy", "config": {"name": policy},
        "registered_name": None,
    }  # fmt: skip
    assert layers.Dense.from_config(dense.get_config()).compute_dtype == dense.compute_dtype


def test_gradients_are_of_the_weights_dtype():
    dense = layers.Dense(1, dtype="mixed_float16", use_bias=False)
    with td.GradientTape() as tape:
        loss = td.reduce_sum(td.cast(dense(np.ones((2, 3), "f")), td.float32))
    grad = tape.gradient(loss, dense.kernel)
    assert grad.dtype == td.float32
    np.testing.assert_allclose(grad, np.full((3, 1), 2.0))


def test_normalizations_compute_in_32_bits():
    x = td.cast(1000.0 + np.arange(8, dtype="f").reshape(4, 2), td.float16)
    for kind in (layers.BatchNormalization, layers.LayerNormalization):
        layer = kind(dtype="mixed_float16")
        y = layer(x, training=True)
        exact = kind()(td.cast(x, td.float32), training=True)
        assert y.dtype == td.float16
        np.testing.assert_allclose(td.cast(y, td.float32), exact, atol=2e-3)


def test_weights_that_are_not_cast_and_assignments_in_calls():
    class Counting(layers.Layer):
        def build(self, shape):
            self.plain = self.add_weight((), "ones", autocast=False)
            self.total = self.add_weight((), "zeros", trainable=False)

        def call(self, x):
            assert self.plain.value.dtype == td.float32
            assert self.total.value.dtype == td.float16
            self.total.assign_add(td.reduce_sum(x))
            self.total.assign_sub(td.constant(1.0, td.float16))
            return x

    layer = Counting(dtype="mixed_float16")
    layer(np.ones((2, 2), "f"))
    assert float(layer.total) == 3.0 and layer.total.dtype == td.float32


def model_of(policy):
    mixed_precision.set_global_policy(policy)
    return keras.Sequential([
        keras.Input((8,)), layers.Dense(16, activation="relu"), layers.BatchNormalization(),
        layers.Dense(3), layers.Activation("softmax", dtype="float32"),
    ])  # fmt: skip


@pytest.mark.parametrize("policy", HALVES)
def test_fit(policy):
    x = np.sin(np.arange(64 * 8)).reshape(64, 8).astype("f")
    y = np.argmax(x[:, :3], -1)
    keras.utils.set_random_seed(0)
    exact = model_of("float32")
    weights = exact.get_weights()
    model = model_of(policy)
    model.set_weights(weights)
    losses = []
    for trained in (exact, model):
        trained.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
        losses.append(trained.fit(x, y, epochs=4, shuffle=False, verbose=0).history["loss"])
    np.testing.assert_allclose(losses[1], losses[0], rtol=2e-2)
    assert losses[1][-1] < losses[1][0]
    scales = isinstance(model.optimizer, mixed_precision.LossScaleOptimizer)
    assert scales == (policy == "mixed_float16")
    assert model.predict(x[:2], verbose=0).dtype == np.float32
    assert {w.dtype.name for w in model.weights} == {"float32"}


def test_a_loss_too_large_for_half_precision_is_scaled_down():
    mixed_precision.set_global_policy("mixed_float16")
    model = keras.Sequential([keras.Input((2,)), layers.Dense(1, kernel_initializer="ones")])
    opt = mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.01), initial_scale=2.0**20)
    model.compile(opt, "mse")
    assert model.optimizer is opt
    before = model.get_weights()[0]
    model.train_on_batch(np.ones((4, 2), "f"), np.zeros((4, 1), "f"))
    np.testing.assert_allclose(model.get_weights()[0], before)  # 2**20 * 4 is no float16
    assert float(opt.dynamic_scale) == 2.0**19
    for _ in range(8):
        model.train_on_batch(np.ones((4, 2), "f"), np.zeros((4, 1), "f"))
    assert int(opt.iterations) > 0 and np.all(model.get_weights()[0] < before)


def test_unscaled_on_request():
    model = model_of("mixed_float16")
    model.compile("sgd", "mse", auto_scale_loss=False)
    assert isinstance(model.optimizer, keras.optimizers.SGD)


@pytest.mark.parametrize("wrap", [lambda f: f, td.function])
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16"])
def test_tensors_of_other_dtypes_with_weights(policy, wrap):
    """The dtypes that Keras 3.15 gives on TensorFlow 2.21: norms of text models scale so."""
    kind = policy.removeprefix("mixed_")
    found = {}

    class Scaled(keras.layers.Layer):
        def build(self, input_shape):
            self.scale = self.add_weight(shape=(4,), initializer="ones", name="scale")

        def call(self, inputs):
            single, double = td.cast(inputs, td.float32), td.cast(inputs, td.float64)
            scaled = single * self.scale
            results = (
                scaled, self.scale * single, single - self.scale, single / self.scale,
                single**self.scale, single // self.scale, keras.ops.multiply(single, self.scale),
                double * self.scale, self.scale * double, inputs * self.scale,
                td.cast(inputs, td.int32) * self.scale,
            )
            found["dtypes"] = [result.dtype.name for result in results]
            found["weight"] = keras.backend.standardize_dtype(self.scale.dtype)
            return td.cast(scaled, self.compute_dtype)

    layer = Scaled(dtype=policy)
    assert wrap(layer)(np.ones((2, 4), np.float32)).dtype.name == kind
    assert found["dtypes"] == ["float32"] * 7 + ["float64"] * 2 + [kind] * 2
    assert found["weight"] == kind
    stored = "float32" if policy.startswith("mixed") else kind
    assert keras.backend.standardize_dtype(layer.scale.dtype) == stored


def test_a_weight_is_assigned_in_a_call_of_16_bits():
    class Counted(keras.layers.Layer):
        def build(self, input_shape):
            self.last = self.add_weight(shape=(), initializer="zeros", name="last")

        def call(self, inputs):
            self.last.assign(td.reduce_sum(inputs))
            return inputs * self.last

    layer = Counted(dtype="mixed_float16")
    for wrap in (lambda f: f, td.function):
        np.testing.assert_array_equal(wrap(layer)(np.ones(3, np.float32)), [3.0] * 3)
    assert layer.last.numpy().dtype == np.float32
