"""Training with products of floats of 8 bits gives what Keras gives."""

import json
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.keras.float8_facts.cases import CASES
from treadle import keras
from treadle.keras import dtype_policies, layers, optimizers

FACTS = json.loads((Path(__file__).parent / "float8_facts" / "facts.json").read_text())


def test_every_case_is_recorded():
    assert set(CASES) == set(FACTS) - {"tensorflow", "keras"}


@pytest.mark.parametrize("key", CASES)
def test_fact(key):
    found = CASES[key](keras)
    assert set(found) == set(FACTS[key])
    for name, known in FACTS[key].items():
        value = found[name]
        assert [list(value.shape), str(value.dtype)] == [known["shape"], known["dtype"]], name
        np.testing.assert_allclose(
            value.reshape(-1), known["numbers"], rtol=2e-5, atol=1e-6, err_msg=f"{key}: {name}"
        )


def test_all_floats_of_8_bits_stay_as_they_are():
    """And numbers between two of them become the nearer one: of all that there are."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("float8_e4m3fn", "float8_e5m2"):
        kind = np.dtype(getattr(ml_dtypes, name))
        all_of_them = np.arange(256, dtype=np.uint8).view(kind).astype(np.float32)
        finite = np.unique(all_of_them[np.isfinite(all_of_them)])
        between = np.concatenate([
            finite, (finite[1:] + finite[:-1]) / 2, finite[1:] * 0.3 + finite[:-1] * 0.7
        ])  # fmt: skip
        found = keras.quantizers.quantize_and_dequantize(between, 1.0, name, "float32")
        np.testing.assert_array_equal(found, between.astype(kind).astype(np.float32))


def model():
    made = keras.Sequential([keras.Input((6,)), layers.Dense(5, "relu"), layers.Dense(1)])
    made.quantize("float8")
    return made


def test_saved_and_loaded(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(2, 32, 6)).astype("f")
    one = model()
    one.compile("adam", "mse")
    one.fit(x, y[:, :1], epochs=2, verbose=0)
    one.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(x, verbose=0), one.predict(x, verbose=0))
    for own, other in zip(one.weights, again.weights, strict=True):
        np.testing.assert_array_equal(own, other)
    assert float(again.layers[0].inputs_amax_history[0]) == pytest.approx(np.abs(x).max(), rel=0.3)
    policy = again.layers[0].dtype_policy
    assert isinstance(policy, dtype_policies.QuantizedFloat8DTypePolicy)
    assert policy == one.layers[0].dtype_policy and policy.amax_history_length == 1024


def test_calls_that_do_not_train_change_nothing():
    one, x = model(), np.ones((2, 6), "f")
    before = [np.array(w) for w in one.weights]
    with td.GradientTape() as tape:
        loss = td.reduce_sum(one(x))
    found = tape.gradient(loss, one.layers[0].inputs_scale)
    assert found is None
    for own, known in zip(one.weights, before, strict=True):
        np.testing.assert_array_equal(own, known)


def test_scaled_losses_leave_the_scales_alone():
    optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(0.01))
    plain = model()
    twin = keras.models.clone_model(plain)
    twin.set_weights(plain.get_weights())
    x, y = np.random.default_rng(1).normal(size=(2, 16, 6)).astype("f")
    for one, rule in ((plain, optimizers.SGD(0.01)), (twin, optimizer)):
        one.compile(rule, "mse", jit_compile=False)
        for _ in range(3):
            one.train_on_batch(x, y[:, :1])
    own, other = (m.layers[0] for m in (plain, twin))
    np.testing.assert_allclose(own.inputs_scale, other.inputs_scale)
    np.testing.assert_allclose(own.kernel_amax_history, other.kernel_amax_history, rtol=1e-5)
    # The gradients themselves are larger by the factor, which their scale makes good for.
    assert float(other.outputs_grad_amax_history[0]) > 100 * float(own.outputs_grad_amax_history[0])


@pytest.mark.parametrize("more", [
    {"gradient_accumulation_steps": 2}, {"use_ema": True, "ema_overwrite_frequency": 2},
])  # fmt: skip
def test_added_gradients_and_averages(more):
    """Keras 3.15 fails here with TensorFlow. States are neither added up nor averaged."""
    x, y = np.random.default_rng(1).normal(size=(2, 16, 6)).astype("f")
    one = model()
    one.compile(optimizers.SGD(0.01, **more), "mse")
    for _ in range(4):
        one.train_on_batch(x, y[:, :1])
    history = one.layers[0].inputs_amax_history.numpy()
    np.testing.assert_allclose(history[0], np.abs(x).max())
    np.testing.assert_allclose(one.layers[0].inputs_scale, np.abs(x).max() / 448.0, rtol=1e-6)


def test_a_layer_of_a_program_may_have_such_weights():
    class Counted(layers.Layer):
        def build(self, shape):
            self.seen = self.add_weight((), "zeros", overwrite_with_gradient=True, autocast=False)

        def call(self, x):
            @td.custom_gradient
            def count(x, seen):
                return x * 2.0, lambda upstream: (upstream * 2.0, seen + 1.0)

            return count(x, self.seen.read_value())

    layer = Counted()
    trained = keras.Sequential([keras.Input((3,)), layer, layers.Dense(1)])
    trained.compile(optimizers.Adam(0.1, clipnorm=1e-3), "mse")
    trained.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=2, epochs=2, verbose=0)
    assert float(layer.seen) == 8.0
    assert layer.seen.overwrite_with_gradient


def test_errors():
    with pytest.raises(NotImplementedError, match="computes no product"):
        embedding = layers.Embedding(4, 3)
        embedding.build(None)
        embedding.quantize("float8")
    dense = layers.Dense(3)
    dense.build((None, 2))
    dense.quantize("float8")
    with pytest.raises(ValueError, match="already quantized"):
        dense.quantize("int8")
    dense.enable_lora(1)
    with pytest.raises(NotImplementedError, match="enable_lora"):
        dense(np.ones((1, 2)))
    with pytest.raises(ValueError, match="float8_e4m3fn, float8_e5m2"):
        keras.quantizers.quantize_and_dequantize(1.0, 1.0, "float8_e3m4", "float32")
    with pytest.raises(TypeError, match="amax_history_length"):
        dtype_policies.QuantizedFloat8DTypePolicy("float8", "float32", 1.5)
