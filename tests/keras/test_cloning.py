"""clone_model: equal layers, or others in their places, called as those were."""

import numpy as np
import pytest

from treadle import keras
from treadle.keras import layers

X = np.sin(np.arange(12.0)).reshape(3, 4).astype("float32")


def functional():
    inputs = keras.Input((4,), name="x")
    hidden = layers.Dense(4, name="hidden")(inputs)
    shared = layers.Dense(4, name="shared")
    return keras.Model(inputs, layers.Add()([shared(hidden), shared(inputs)]) * 2.0, name="whole")


def sequential():
    return keras.Sequential([keras.Input((4,)), layers.Dense(3, name="one"), layers.Dropout(0.5)])


@pytest.mark.parametrize("make", [functional, sequential])
def test_clones_compute_the_same_with_equal_weights(make):
    model = make()
    for options in (
        {}, {"input_tensors": keras.Input((4,))},
        {"clone_function": lambda layer: type(layer).from_config(layer.get_config())},
    ):  # fmt: skip
        clone = keras.models.clone_model(model, **options)
        assert clone.name == model.name and type(clone) is type(model)
        assert not {id(w) for w in clone.weights} & {id(w) for w in model.weights}
        clone.set_weights(model.get_weights())
        np.testing.assert_allclose(clone(X), model(X), rtol=1e-6)


def test_other_layers_in_their_places():
    def wider(layer):
        config = layer.get_config()
        return layers.Dense(7, name=config["name"]) if layer.name == "one" else (
            type(layer).from_config(config)
        )

    clone = keras.models.clone_model(sequential(), clone_function=wider)
    assert clone(X).shape == (3, 7)


def test_calls_of_the_clones():
    def doubled(layer, *args, **kwargs):
        result = layer(*args, **kwargs)
        return result * 2.0 if layer.name == "hidden" else result

    model = functional()
    clone = keras.models.clone_model(model, call_function=doubled)
    clone.set_weights(model.get_weights())
    kernels = {w.path.split("/")[0]: w for w in model.weights if w.name == "kernel"}
    hidden, shared = (kernels[name].numpy() for name in ("hidden", "shared"))
    expected = 2 * ((2 * X @ hidden) @ shared + X @ shared)
    np.testing.assert_allclose(clone(X), expected, rtol=1e-4, atol=1e-5)
    assert set(model.layers) <= set(model.operations)


def test_models_in_models():
    inner = sequential()
    inputs = keras.Input((4,))
    outer = keras.Model(inputs, inner(inputs))
    met = []

    def note(layer):
        met.append(layer.name)
        return type(layer).from_config(layer.get_config())

    keras.models.clone_model(outer, clone_function=note, recursive=True)
    assert "one" in met and inner.name not in met
    met.clear()
    keras.models.clone_model(outer, clone_function=note)
    assert inner.name in met and "one" not in met


def test_what_cannot_be_cloned_so():
    class Own(keras.Model):
        def call(self, x):
            return x

    with pytest.raises(ValueError, match="Sequential and functional"):
        keras.models.clone_model(Own(), clone_function=lambda layer: layer)
    with pytest.raises(ValueError, match="call_function"):
        keras.models.clone_model(sequential(), call_function=lambda layer, x: layer(x))
    with pytest.raises(ValueError, match="1 inputs"):
        keras.models.clone_model(functional(), [keras.Input((4,)), keras.Input((4,))])
