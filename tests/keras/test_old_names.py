"""What programs written for Keras 2 call: the backend, weights by name first, `lr`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle import keras
from treadle.keras import dtype_policies, layers

X = np.ones((4, 2), np.float32)


@pytest.fixture
def float64(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Layers have the dtype that floatx says: no earlier test has set a policy."""
    monkeypatch.setattr(dtype_policies, "_global", None)
    keras.backend.set_floatx("float64")
    yield
    keras.backend.set_floatx("float32")


@pytest.mark.usefixtures("float64")
def test_the_dtype_of_all_layers() -> None:
    model = keras.Sequential([layers.Dense(3), layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(X.astype(np.float64), np.ones(4), verbose=0)
    assert {w.dtype.name for w in model.weights} == {"float64"}
    assert model.predict(X, verbose=0).dtype == np.float64
    assert keras.Input((2,)).dtype == td.float64
    assert keras.initializers.GlorotUniform()((2, 2)).dtype == td.float64
    with pytest.raises(ValueError, match="floating"):
        keras.backend.set_floatx("int32")


def test_weights_whose_name_comes_first() -> None:
    class Old(layers.Layer):
        def build(self, shape: Any) -> None:
            self.a = self.add_weight("a", shape=[int(shape[-1]), 3], initializer="ones")
            self.b = self.add_variable("b", [3])
            self.c = self.add_weight("c", (2, 3), "float64", "zeros", trainable=False)
            self.d = self.add_weight(shape=(3), initializer="zeros", name="d")

        def call(self, x: Any) -> Any:
            return x @ self.a + self.b

    layer = Old(name="old")
    layer(X)
    assert [w.name for w in layer.weights] == ["a", "b", "d", "c"]
    assert [tuple(w.shape) for w in layer.weights] == [(2, 3), (3,), (3,), (2, 3)]
    assert layer.c.dtype == td.float64

    class Total(keras.metrics.Metric):
        def __init__(self) -> None:
            super().__init__()
            self.total = self.add_weight("total", initializer="zeros")

    assert Total().total.shape == ()


def test_rates() -> None:
    assert float(keras.optimizers.SGD(lr=0.5).learning_rate) == 0.5
    assert float(keras.optimizers.Adam(lr=0.25).lr) == 0.25
    with pytest.warns(UserWarning, match="decay is ignored"):
        keras.optimizers.SGD(0.1, decay=1e-3)
    with pytest.raises(TypeError, match="unsupported arguments: rate"):
        keras.optimizers.SGD(rate=0.1)


def test_values_of_variables() -> None:
    k = keras.backend
    optimizer = keras.optimizers.SGD(0.5)
    k.set_value(optimizer.learning_rate, 0.125)
    assert k.get_value(optimizer.lr) == 0.125
    assert k.int_shape(keras.Input((2, None))) == (None, 2, None)
    assert k.epsilon() == 1e-7 and k.image_data_format() == "channels_last"


def test_initializers_of_tensorflow() -> None:
    made = td.random_normal_initializer(stddev=0.1)(shape=[1000], dtype="float32")
    assert 0.08 < float(np.std(made)) < 0.12
    assert td.constant_initializer(2.0)([2]).numpy().tolist() == [2.0, 2.0]
    assert td.zeros_initializer()([2]).numpy().tolist() == [0.0, 0.0]


def test_callbacks_set_the_rate() -> None:
    model = keras.Sequential([keras.Input((2,)), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(1.0), "mse")
    halved = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    logs = model.fit(X, X[:, :1], epochs=3, verbose=0, callbacks=[halved]).history
    assert logs["learning_rate"] == [0.5, 0.25, 0.125]
    by_epoch = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 * (epoch + 1))
    logs = model.fit(X, X[:, :1], epochs=2, verbose=0, callbacks=by_epoch).history
    np.testing.assert_allclose(logs["learning_rate"], [0.1, 0.2])
    model.compile(keras.optimizers.SGD(1.0), lambda y, p: p * 0.0 + 1.0)
    plateau = keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=2, min_lr=0.3)
    logs = model.fit(X, X[:, :1], epochs=7, verbose=0, callbacks=[plateau]).history
    assert logs["learning_rate"] == [
        1.0,
        1.0,
        1.0,
        0.5,
        0.5,
        pytest.approx(0.3),
        pytest.approx(0.3),
    ]


def test_constraints_hold_after_updates() -> None:
    dense = layers.Dense(3, kernel_constraint=keras.constraints.max_norm(0.5))
    model = keras.Sequential([keras.Input((2,)), dense])
    model.compile("sgd", "mse")
    model.fit(X, 100 * np.ones((4, 3)), verbose=0)
    assert np.linalg.norm(model.get_weights()[0], axis=0).max() <= 0.5 + 1e-6


def test_functions_that_draw_numbers_are_initializers() -> None:
    dense = layers.Dense(3, kernel_initializer=td.random.normal)
    dense(X)
    assert dense.kernel.dtype == td.float32 and np.asarray(dense.kernel).std() > 0


def test_sizes_of_inputs_in_layers() -> None:
    model = keras.Sequential([layers.Dense(3, input_dim=2), layers.Dense(1)])
    assert [tuple(w.shape) for w in model.weights] == [(2, 3), (3,), (3, 1), (1,)]
    words = keras.Sequential([layers.Embedding(10, 4, input_length=6), layers.Flatten()])
    assert words.output_shape == (None, 24)


def test_hooks_that_need_logs() -> None:
    seen: list[Any] = []

    class Notes(keras.callbacks.Callback):
        def on_train_begin(self, logs: Any) -> None:
            seen.append(("train", logs))

        def on_epoch_begin(self, epoch: Any, logs: Any) -> None:
            seen.append((epoch, logs))

        def on_batch_end(self, batch: Any, logs: Any) -> None:
            seen.append((batch, sorted(logs)))

    model = keras.Sequential([keras.Input((2,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, X[:, :1], verbose=0, callbacks=[Notes()])
    assert seen == [("train", {}), (0, {}), (0, ["loss"])]


@pytest.mark.parametrize(
    ("rate", "baseline", "epochs"),
    [(0.01, None, 8), (0.01, 0.0, 8), (0.0, None, 4), (0.0, 0.0, 3)],
)
def test_stopping_where_a_baseline_is_not_reached(
    rate: float, baseline: float | None, epochs: int
) -> None:
    """The numbers of epochs are those of Keras 3.15."""
    model = keras.Sequential([keras.Input((2,)), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(rate), "mse")
    stop = keras.callbacks.EarlyStopping("loss", patience=3, verbose=0, baseline=baseline)
    y = 9.0 + X[:, :1]
    logs = model.fit(X, y, epochs=8, shuffle=False, verbose=0, callbacks=[stop]).history
    assert len(logs["loss"]) == epochs


def test_parts_are_subtracted() -> None:
    found = td.tensor_scatter_nd_sub(td.constant([5, 6, 7]), [[0], [2], [2]], [1, 2, 3])
    assert found.numpy().tolist() == [4, 6, 2]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MeanAbsolutePercentageError", 100 * (0.5 + 0.25) / 2),
        ("MeanSquaredLogarithmicError", np.mean([np.log(1.5) ** 2, np.log(6 / 5) ** 2])),
        ("KLDivergence", np.log(2.0)),
        ("CosineSimilarity", 1.0),
    ],
)
def test_metrics_of_functions(name: str, expected: float) -> None:
    true, pred = {
        "MeanSquaredLogarithmicError": ([[1.0], [4.0]], [[2.0], [5.0]]),
        "KLDivergence": ([[1.0]], [[0.5]]),
    }.get(name, ([[2.0], [4.0]], [[1.0], [5.0]]))
    metric = getattr(keras.metrics, name)()
    metric.update_state(np.float32(true), np.float32(pred))
    np.testing.assert_allclose(metric.result(), expected, rtol=1e-4)


def test_layers_that_nobody_tells_train_as_the_learning_phase_says() -> None:
    class Telling(layers.Layer):
        def call(self, x: Any) -> Any:
            phases.append(keras.backend.learning_phase())
            return self.dropout(x)

        dropout = layers.Dropout(0.5)

    phases: list[Any] = []
    layer, x = Telling(), np.ones((1, 64), np.float32)
    assert keras.backend.learning_phase() == 0
    try:
        np.testing.assert_array_equal(layer(x), x)
        assert set(np.unique(layer(x, training=True))) == {0.0, 2.0}
        keras.backend.set_learning_phase(1)
        assert keras.backend.learning_phase() == 1
        assert set(np.unique(layer(x))) == {0.0, 2.0}
        np.testing.assert_array_equal(layer(x, training=False), x)
        with pytest.raises(ValueError, match="0 or 1"):
            keras.backend.set_learning_phase(2)
    finally:
        keras.backend.clear_session()
    assert phases == [0, 1, 1, 0] and keras.backend.learning_phase() == 0
    np.testing.assert_array_equal(layer(x), x)


class Scale:
    """An object of a library, with another and a function among its arguments."""

    def __init__(self, start: Any, activation: Any, name: str = "relu", factor: float = 2.0):
        self.start, self.activation, self.name, self.factor = start, activation, name, factor

    def get_config(self) -> dict[str, Any]:
        return {k: getattr(self, k) for k in ("start", "activation", "name", "factor")}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(**config)


def relu(x: Any) -> Any:
    return x


def test_objects_as_data_in_the_form_of_keras_2() -> None:
    legacy = keras.utils.legacy
    assert keras.legacy.saving.serialize_keras_object is legacy.serialize_keras_object
    data = legacy.serialize_keras_object(Scale(keras.initializers.Constant(3.0), relu))
    assert data == {
        "class_name": "Scale",
        "config": {
            "start": {
                "class_name": "Constant", "config": {"value": 3.0},
                "__passive_serialization__": True,
            },
            "activation": "relu", "name": "relu", "factor": 2.0,
        },
    }  # fmt: skip
    known = {"Scale": Scale, "relu": relu} | vars(keras.initializers)
    again = legacy.deserialize_keras_object(data, module_objects=known)
    assert type(again) is Scale and again.activation is relu and again.name == "relu"
    assert isinstance(again.start, keras.initializers.Constant) and again.factor == 2.0
    assert legacy.serialize_keras_object(None) is None
    assert legacy.deserialize_keras_object("relu", known) is relu
    assert isinstance(legacy.deserialize_keras_object("Zeros", known), keras.initializers.Zeros)
    with keras.utils.custom_object_scope({"Own": relu}):
        assert legacy.deserialize_keras_object("Own") is relu
    for wrong, message in [
        (lambda: legacy.serialize_keras_object(3), "get_config"),
        (lambda: legacy.deserialize_keras_object("none", known, None, "scale"), "Unknown scale"),
        (lambda: legacy.deserialize_keras_object({"class_name": "Scale"}), "Improper config"),
        (lambda: legacy.deserialize_keras_object(3, known), "Could not interpret"),
    ]:
        with pytest.raises(ValueError, match=message):
            wrong()


def test_activations_as_data():
    """As Keras 3.15 has them: names of its own functions, configurations of others."""
    K = td.keras.activations

    def double(x):
        return 2 * x

    assert K.serialize(K.relu) == "relu" and K.deserialize("relu") is K.relu
    data = K.serialize(double)
    assert (data["class_name"], data["config"]) == ("function", "double")
    with td.keras.utils.custom_object_scope({"double": double, "tanh": abs}):
        assert K.deserialize(K.serialize(double)) is double is K.deserialize("double")
        assert K.deserialize("tanh") is abs
    data = K.serialize(td.keras.layers.ReLU(2.0))
    assert data["class_name"] == "ReLU" and K.deserialize(data).max_value == 2.0
    assert K.deserialize("no such name") == "no such name"


def test_objects_of_a_library_by_name():
    """`module_objects`, which Keras 3 takes as Keras 2 did."""
    read = td.keras.utils.deserialize_keras_object

    class Scale:
        def __init__(self, by=2.0):
            self.by = by

        @classmethod
        def from_config(cls, config):
            return cls(**config)

    def half(x):
        return x / 2

    own = {"Scale": Scale, "half": half}
    arguments = {"module_objects": own, "printable_module_name": "scale"}
    assert read("half", **arguments) is half
    assert read("Scale", **arguments).by == 2.0
    assert read({"class_name": "Scale", "config": {"by": 3.0}}, **arguments).by == 3.0
    assert read("half", custom_objects={"half": abs}, **arguments) is abs
    assert read("another", **arguments) == "another"


def test_orders_of_keras_3_and_of_keras_2() -> None:
    """Arguments by position mean what they mean in Keras 3; metrics in the place that they had in
    Keras 2 are known by what they are."""
    y, weights = np.zeros((4, 1), np.float32), np.array([1.0, 2.0, 0.0, 1.0], np.float32)
    results = []
    for third in ([["mae"], [2.0]], [[2.0], ["mae"]]):
        model = keras.Sequential(
            [keras.Input((2,)), layers.Dense(1, kernel_initializer="ones")], False, "named"
        )
        assert model.name == "named" and not model.trainable
        model.compile("sgd", "mse", *third)
        fitted = model.fit(X, y, 4, 1, 0, None, 0.0, None, False, None, weights)
        results.append(fitted.history)
    assert results[0] == results[1] == {"loss": [8.0], "mae": [2.0]}
    with pytest.raises(ValueError, match="loss_weights are numbers"):
        model.compile("sgd", "mse", loss_weights=["mae"])
    with pytest.raises(TypeError, match="multiple values"):
        model.compile("sgd", "mse", ["mae"], metrics=["mae"])
    model.fit(X, y, 4, 1, 0, None, 0.0, None, False, {0: 0.5})
    model.add(layers.Dense(3), False)
    assert len(model.layers) == 2 and not model.layers[1].built
    assert model.pop(False).units == 3

    class Own(layers.Dense):
        def call(self, inputs: Any, training: Any = None) -> Any:
            return super().call(inputs, training=training)

    assert Own(3)(X).shape == (4, 3)
    assert keras.regularizers.l1_l2().get_config() == {"l1": 0.0, "l2": 0.0}


def test_operations_of_ints_and_of_ends_that_broadcast() -> None:
    real, imaginary = keras.ops.rfft([1, 2, 3])
    np.testing.assert_allclose(real, [6.0, -1.5], rtol=1e-6)
    np.testing.assert_allclose(imaginary, [0.0, 0.8660254], rtol=1e-6)
    np.testing.assert_array_equal(keras.ops.linspace([1.0, 2.0], 3, 3), [[1, 2], [2, 2.5], [3, 3]])
