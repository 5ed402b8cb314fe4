"""What `build` of layers of programs makes: tensors have values, also inside of RNN and other
wrappers, and weights have the layer's dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td

keras = td.keras


@keras.utils.register_keras_serializable("wrapped_builds")
class Halving(keras.layers.Layer):
    """A cell, or a layer, that keeps a tensor which its `build` makes."""

    state_size = 3

    def build(self, input_shape: Any) -> None:
        assert not isinstance(td.constant(1.0), td.keras.KerasTensor)
        self.half = td.fill([input_shape[-1]], 0.5)
        self.kernel = self.add_weight(shape=(input_shape[-1], 3), initializer="ones")

    def call(self, inputs: Any, states: Any = None) -> Any:
        out = (inputs * self.half) @ self.kernel
        return out if states is None else (out + states[0], [out + states[0]])


def _models() -> list[Any]:
    layers = keras.layers
    return [
        layers.RNN(Halving(), return_sequences=True),
        layers.RNN([Halving(), Halving()], return_sequences=True),
        layers.Bidirectional(layers.RNN(Halving(), return_sequences=True), merge_mode="sum"),
        layers.TimeDistributed(Halving()),
    ]


@pytest.mark.parametrize("number", range(4))
def test_tensors_of_wrapped_layers(number: int) -> None:
    model = keras.Sequential([keras.Input((4, 2)), _models()[number]])
    x = np.arange(16, dtype=np.float32).reshape(2, 4, 2)
    assert float(model.layers[0].trainable_weights[0].numpy()[0, 0]) == 1.0
    steps = x.sum(-1, keepdims=True) * 0.5 * np.ones(3, np.float32)
    summed = np.cumsum(steps, 1)
    back = np.cumsum(steps[:, ::-1], 1)[:, ::-1]
    wanted = [summed, np.cumsum(summed * 1.5, 1), summed + back, steps][number]
    np.testing.assert_allclose(model(x), wanted, rtol=1e-5)
    np.testing.assert_allclose(model.predict(x, verbose=0), wanted, rtol=1e-5)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_initializers_that_do_not_look_at_the_dtype(policy: str) -> None:
    layer = keras.layers.Layer(dtype=policy)
    arrays = [np.ones((2, 2), np.int32), np.ones((2, 2)), [[1, 2], [3, 4]], np.ones((2, 2), bool)]
    for array in arrays:
        weight = layer.add_weight(shape=(2, 2), initializer=lambda *args, a=array, **_: a)
        assert td.as_dtype(weight.dtype) is td.float32, array
        np.testing.assert_array_equal(weight.numpy(), np.asarray(array, np.float32))
    for wrong in (td.int32, td.float64):  # tensors are not cast, as in TensorFlow
        with pytest.raises((TypeError, ValueError), match="float32"):
            layer.add_weight(shape=(2,), initializer=lambda *args, d=wrong, **_: td.ones([2], d))
