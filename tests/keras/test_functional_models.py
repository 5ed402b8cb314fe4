"""Models of calls of layers: what they compute, train and refuse. Numbers are in the facts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle import keras
from treadle.keras import layers

X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)


def two_inputs() -> Any:
    a, b = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    return keras.Model([a, b], layers.Dense(1)(a * 2.0 + b))


def test_training_reaches_all_weights() -> None:
    start = keras.Input((3,))
    hidden = layers.Dense(4, activation="tanh")(start)
    model = keras.Model(start, layers.Dense(1)(hidden + layers.Dense(4)(hidden)))
    before = model.get_weights()
    model.compile("sgd", "mse")
    first, last = model.fit(X, X[:, :1], epochs=2, batch_size=4, verbose=0).history["loss"]
    assert last < first
    assert len(before) == 6
    assert all((a != b).any() for a, b in zip(before, model.get_weights(), strict=True))


def test_a_model_is_a_layer_of_another() -> None:
    start = keras.Input((3,))
    inner = keras.Model(start, layers.Dense(2)(start), name="inner")
    outer_start = keras.Input((3,))
    outer = keras.Model(outer_start, layers.ReLU()(inner(outer_start)))
    np.testing.assert_allclose(outer(X), np.maximum(np.asarray(inner(X)), 0.0))
    assert outer.get_layer("inner") is inner
    assert [w.name for w in outer.weights] == [w.name for w in inner.weights]


def test_inputs_by_name_and_in_order() -> None:
    model = two_inputs()
    expected = model([X, np.zeros_like(X)])
    np.testing.assert_allclose(model({"b": np.zeros_like(X), "a": X}), expected)
    with pytest.raises(ValueError, match=r"no input named \['a'\]"):
        model({"b": X})
    with pytest.raises(ValueError, match=r"expected 2 inputs \(a, b\), got 1"):
        model(X)


def test_inputs_take_the_dtype_and_rank_of_input() -> None:
    start = keras.Input((1,))
    model = keras.Model(start, layers.Lambda(lambda x: x + 0.5)(start))
    np.testing.assert_allclose(model(np.arange(3)), [[0.5], [1.5], [2.5]])
    images = keras.Sequential([layers.Conv2D(2, 3, input_shape=(5, 5, 1))])
    assert images.predict(np.ones((2, 5, 5, 1), np.uint8), verbose=0).dtype == np.float32
    with pytest.raises(ValueError, match='input "input_layer.*" has shape'):
        model(np.ones((2, 3), np.float32))


def test_training_and_losses_pass_through() -> None:
    class Noisy(layers.Layer):
        def call(self, x: Any, training: Any = False) -> Any:
            self.add_loss(td.reduce_sum(x))
            return x + 1.0 if training else x

    start = keras.Input((3,))
    model = keras.Model(start, Noisy()(start))
    assert model.losses == []  # nothing is left of what the trace added
    np.testing.assert_allclose(model(X, training=True), X + 1.0)
    np.testing.assert_allclose(model(X), X)
    assert [float(loss) for loss in model.losses] == [pytest.approx(float(X.sum()), abs=1e-5)]


def test_layers_of_several_arguments_and_results() -> None:
    class Both(layers.Layer):
        def call(self, x: Any, other: Any, scale: float = 1.0) -> Any:
            if td.reduce_sum(x) > 1e9:
                x = x * 0.0
            return x + other, (x - other) * scale

    a, b = keras.Input((3,)), keras.Input((3,))
    total, difference = Both()(a, other=b, scale=2.0)
    model = keras.Model([a, b], {"total": total, "difference": difference})
    result = model.predict([X, X[::-1].copy()], verbose=0)
    np.testing.assert_allclose(result["total"], X + X[::-1], atol=1e-6)
    np.testing.assert_allclose(result["difference"], 2 * (X - X[::-1]), atol=1e-6)


def test_a_sequential_has_inputs_and_outputs() -> None:
    model = keras.Sequential([layers.Dense(4), layers.Dense(2)])
    with pytest.raises(AttributeError, match="no inputs and outputs"):
        _ = model.input
    model(X)
    part = keras.Model(model.input, model.layers[0].output)
    np.testing.assert_allclose(part(X), model.layers[0](X), rtol=1e-6)
    assert model.output_shape == (None, 2) and model.input_shape == (None, 3)
    model.add(layers.Dense(1))
    assert keras.Model(model.inputs, model.outputs)(X).shape == (4, 1)


def test_a_layer_may_come_twice() -> None:
    dense = layers.Dense(3, kernel_initializer="identity")
    model = keras.Sequential([keras.Input((3,)), dense, layers.Lambda(lambda x: x * 2.0), dense])
    np.testing.assert_allclose(model(X), X * 2.0, rtol=1e-6)
    assert len(model.weights) == 2


def test_what_is_refused() -> None:
    start, other = keras.Input((3,), name="start"), keras.Input((3,), name="other")
    with pytest.raises(TypeError, match="no values.*Lambda"):
        td.reduce_sum(start)
    with pytest.raises(TypeError, match="cannot be a condition"):
        if start > 0:
            pass
    with pytest.raises(TypeError, match="iterated"):
        list(start)
    with pytest.raises(ValueError, match=r"depends on .*other.*not among the inputs \['start'\]"):
        keras.Model(start, start + other)
    with pytest.raises(TypeError, match="inputs must be what keras.Input"):
        keras.Model(X, start)
    with pytest.raises(TypeError, match="inputs and outputs, or neither"):
        keras.Model(start)
    with pytest.raises(ValueError, match="expected axis -1"):
        dense = layers.Dense(2)
        dense(start)
        dense(keras.Input((4,)))
    with pytest.raises(AttributeError, match="was not called on keras.Input"):
        _ = layers.Dense(2).output
    with pytest.raises(ValueError, match="shape of one example"):
        keras.Input()


def test_lambda_is_converted() -> None:
    def halved(x: Any) -> Any:
        while td.reduce_max(x) > 1.0:
            x = x / 2.0
        return x

    start = keras.Input((3,))
    model = keras.Model(start, layers.Lambda(halved)(start))
    np.testing.assert_allclose(model.predict(4.0 * X, verbose=0), X)


def test_names_of_outputs():
    x = keras.Input((3,))
    y, z = keras.layers.Dense(2, name="d")(x), keras.layers.Dense(2, name="e")(x)
    assert keras.Model(x, y).output_names == ["d"]
    assert keras.Model(x, {"q": z, "p": y}).output_names in (["d", "e"], ["e", "d"])
    assert not hasattr(keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]), "output_names")


def test_layers_keep_tensors_that_they_make_in_build() -> None:
    """`build` runs before the call on `keras.Input` is traced: what it keeps has values."""

    class Scale(td.keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.by = td.constant([2.0] * shape[-1])
            self.weight = self.add_weight(shape=(shape[-1],), initializer="ones")

        def call(self, x: Any) -> Any:
            return self.by * self.weight * x

    x = td.keras.Input((2,))
    layer = Scale()
    model = td.keras.Model(x, layer(x))
    assert layer.by.numpy().tolist() == [2.0, 2.0]
    assert model(td.constant([[1.0, 3.0]])).numpy().tolist() == [[2.0, 6.0]]
    model = td.keras.Sequential([x, Scale()])
    assert model.predict(np.ones((1, 2)), verbose=0).tolist() == [[2.0, 2.0]]


@td.keras.saving.register_keras_serializable("tests")
class Tripled(td.keras.layers.Layer):
    def __init__(self, by: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.by = by

    def call(self, x: Any) -> Any:
        return x * self.by

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "by": self.by}


@td.keras.saving.register_keras_serializable("tests")
class AllTripled(td.keras.Sequential):
    """Its constructor changes the layers that it is given: Keras gives it none when it reads."""

    def __init__(self, layers: Any = None, name: str | None = None, by: float = 1.0) -> None:
        super().__init__(layers, name=name)
        for layer in self.layers:
            layer.by = by


class Wrapping(td.keras.layers.Layer):
    """A layer that writes its parts in Keras 2's form, whose classes its reader is told of."""

    def __init__(self, part: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        legacy = td.keras.utils.legacy
        self.part = legacy.deserialize_keras_object(part, {"Part": Part}) if part else Part()

    def call(self, x: Any) -> Any:
        return self.part(x)

    def get_config(self) -> dict[str, Any]:
        part = td.keras.utils.legacy.serialize_keras_object(self.part)
        return {**super().get_config(), "part": part}


class Part(Tripled):
    pass


def test_parts_of_classes_that_their_reader_knows() -> None:
    x = td.keras.Input((2,))
    layer = Wrapping()
    layer.part.by = 4.0
    model = td.keras.Model(x, layer(x))
    again = td.keras.Model.from_config(model.get_config(), custom_objects={"Wrapping": Wrapping})
    assert again(td.ones((1, 2))).numpy().tolist() == [[4.0, 4.0]]
    again = td.keras.models.clone_model(model)  # its classes are not registered
    assert type(again.layers[1]) is Wrapping and again.layers[1].part.by == 4.0


def test_layers_of_a_sequential_that_is_read_keep_their_configurations(tmp_path: Any) -> None:
    model = AllTripled([td.keras.Input((2,)), Tripled()], by=5.0)
    model.save(tmp_path / "model.keras")
    again = td.keras.models.load_model(tmp_path / "model.keras")
    assert type(again) is AllTripled and again.layers[0].by == 5.0
    assert again.predict(np.ones((1, 2)), verbose=0).tolist() == [[5.0, 5.0]]
