"""Keras: optional inputs, frozen layers, LoRA, states of models as trees, own variables of layers
in files, and configurations."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

X = np.sin(np.arange(6.0)).reshape(2, 3).astype("float32")


def seeded(tf):
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(3)
    return tf.keras.layers


def optional_model(tf):
    class Added(tf.keras.layers.Layer):
        def call(self, x, more=None):
            return x if more is None else x + more

        def compute_output_shape(self, x_shape):
            return x_shape

    x = tf.keras.Input((3,), name="x")
    more = tf.keras.Input((3,), name="more", optional=True)
    return tf.keras.Model({"more": more, "x": x}, tf.keras.layers.Dense(2)(Added()(x, more)))


@program
def optional_inputs(tf):
    seeded(tf)
    model = optional_model(tf)
    model.compile("sgd", "mse")
    y = np.ones((2, 2), "float32")
    history = [
        model.fit({"x": X, "more": more}, y, verbose=0).history["loss"] for more in (None, X)
    ]
    config = model.get_config()["layers"]
    return [
        model({"x": X, "more": None}), model({"x": X, "more": X}), history,
        model.evaluate({"x": X, "more": None}, y, verbose=0),
        model.predict({"x": X, "more": None}, verbose=0),
        raised(model, {"x": None, "more": X}),
        [(c["config"]["name"], c["config"]["optional"]) for c in config
         if c["class_name"] == "InputLayer"],
    ]  # fmt: skip


@program
def shapes_of_inputs(tf):
    layers = seeded(tf)
    tensor = tf.keras.KerasTensor((2, 3))
    make = layers.InputLayer
    return [
        make((3,), 2).batch_shape, make(batch_shape=(2, 3)).batch_shape,
        make(input_tensor=tensor).batch_shape,
        raised(make), raised(make, (3,), batch_shape=(2, 3)),
        raised(make, batch_size=2, batch_shape=(2, 3)), raised(make, (4,), input_tensor=tensor),
        raised(make, batch_size=5, input_tensor=tensor),
        raised(make, dtype="float16", input_tensor=tensor), raised(make, input_tensor=X),
        raised(tf.keras.Input),
    ]  # fmt: skip


@program
def frozen_layers(tf):
    layers = seeded(tf)

    class Own(layers.Layer):
        def __init__(self):
            super().__init__()
            self.count = self.add_weight(name="count", trainable=False)
            self.scale = self.add_weight(name="scale", initializer="ones")
            self.inner = layers.Dense(2)

        def call(self, x):
            return self.inner(x) * self.scale

    def state(layer):
        return [
            [v.name for v in layer.weights], [v.trainable for v in layer.weights],
            [v.name for v in layer.trainable_weights], layer.trainable, layer.inner.trainable,
        ]  # fmt: skip

    layer = Own()
    layer(X)
    found = [state(layer)]
    layer.trainable = False
    found.append(state(layer))
    layer.inner.trainable = True
    found.append(state(layer))
    layer.trainable = True
    found.append(state(layer))
    dense = layers.Dense(2, kernel_regularizer="l2")
    dense(X)
    found.append(len(dense.losses))
    dense.trainable = False
    found.append(len(dense.losses))
    return found


@program
def lora(tf):
    layers, found = seeded(tf), []
    token = np.array([[0, 2], [1, 1]])
    for layer, x in (
        (layers.Dense(2), X), (layers.Embedding(3, 4), token),
        (layers.EinsumDense("ab,bcd->acd", (2, 3), bias_axes="cd"), X),
        (layers.Conv1D(2, 2, kernel_regularizer="l2"), X[..., None]),
    ):  # fmt: skip
        before = layer(x)
        layer.enable_lora(2, lora_alpha=3.0)
        same = layer(x)
        table = "embeddings" if hasattr(layer, "embeddings") else "kernel"
        a, b = (getattr(layer, f"lora_{table}_{part}") for part in "ab")
        rise = [np.arange(np.prod(v.shape)).reshape(v.shape) / 10 for v in (a, b)]
        a.assign(rise[0])
        b.assign(rise[1])
        found.append([
            before, same, layer(x), np.asarray(getattr(layer, table)),
            [v.name for v in layer.trainable_weights], [v.name for v in layer.weights],
            [tuple(v.shape) for v in layer.weights], len(layer.losses),
            layer.get_config()["lora_rank"], layer.get_config()["lora_alpha"],
            raised(layer.enable_lora, 2),
        ])  # fmt: skip
    return [
        found, raised(layers.Dense(2).enable_lora, 2),
        [v.name for v in outcome(built, layers.Dense(2, lora_rank=2), X).weights],
    ]  # fmt: skip


def built(layer, x):
    layer(x)
    return layer


@program
def lora_in_files(tf):
    layers = seeded(tf)
    model = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(2, name="dense")])
    model.layers[0].enable_lora(2)
    model.layers[0].lora_kernel_b.assign(np.ones((2, 2)))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "m.keras")
        model.save(path)
        again = tf.keras.models.load_model(path)
    dense = again.layers[0]
    return [
        model(X), again(X), dense.lora_enabled, np.asarray(dense.lora_kernel_b),
        np.asarray(dense.kernel), [v.name for v in again.trainable_weights],
    ]  # fmt: skip


@program
def states_as_trees(tf):
    layers = seeded(tf)
    model = tf.keras.Sequential(
        [tf.keras.Input((3,)), layers.Dense(2, name="one"), layers.BatchNormalization(name="two")],
        name="model",
    )
    model.compile("adam", "mse")
    model.fit(X, np.ones((2, 2)), verbose=0)
    tree = model.get_state_tree(value_format="numpy_array")
    model.set_state_tree({"trainable_variables": {"model": {"one": {"bias": np.ones(2)}}}})
    return [
        tree, np.asarray(model.layers[0].bias), raised(model.get_state_tree, "list"),
        raised(model.set_state_tree, {"others": {}}),
    ]  # fmt: skip


@program
def configurations_name_policies(tf):
    layers = seeded(tf)
    again = layers.Dense.from_config(layers.Dense(2, dtype="mixed_float16").get_config())
    return [
        layers.Dense(2).get_config()["dtype"], layers.Flatten(dtype="mixed_float16").get_config(),
        layers.InputLayer((3,)).get_config(), again.dtype_policy.name,
        tf.keras.dtype_policies.serialize(tf.keras.DTypePolicy("float16")),
        tf.keras.dtype_policies.deserialize(
            tf.keras.dtype_policies.serialize(tf.keras.DTypePolicy("mixed_bfloat16"))
        ).name,
    ]  # fmt: skip


@program
def own_variables_in_files(tf):
    layers = seeded(tf)

    class Own(layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(name="scale", shape=(shape[-1],), initializer="ones")

        def call(self, x):
            return x * self.scale

        def save_own_variables(self, store):
            store["twice"] = np.asarray(self.scale) * 2

        def load_own_variables(self, store):
            self.scale.assign(np.asarray(store["twice"]) + 1)

    store = {}
    dense = built(layers.Dense(2, bias_initializer="ones"), X)
    dense.save_own_variables(store)
    other = built(layers.Dense(2), X)
    other.load_own_variables(store)
    model = tf.keras.Sequential([tf.keras.Input((3,)), Own()])
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "own.weights.h5")
        model.save_weights(path)
        model.load_weights(path)
    return [
        sorted(store), other(X), dense(X), np.asarray(model.layers[0].scale),
        raised(other.load_own_variables, {"0": np.ones((3, 2))}),
        raised(other.load_own_variables, {"0": np.ones((3, 3)), "1": np.ones(2)}),
    ]  # fmt: skip


@program
def models_in_other_places(tf):
    layers = seeded(tf)
    model = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(2), layers.Dense(2)])
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        model.save(str(root / "folder"), zipped=False)
        names = sorted(p.name for p in (root / "folder").glob("*.*"))
        again = tf.keras.models.load_model(str(root / "folder"))
        weights = str(root / "a.weights.h5")
        model.save_weights(weights)
        fresh = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(2), layers.Dense(2)])
        before = np.asarray(fresh.layers[0].kernel)
        fresh.load_weights(weights, objects_to_skip=[fresh.layers[0]])
        lazy = tf.keras.Sequential([layers.Dense(2)])
        lazy.save(str(root / "lazy.keras"))
        unbuilt = tf.keras.models.load_model(str(root / "lazy.keras"))
        return [
            names, model(X), again(X), np.array_equal(before, fresh.layers[0].kernel),
            np.array_equal(model.layers[1].kernel, fresh.layers[1].kernel), unbuilt.built,
            raised(tf.keras.models.load_model, str(root / "none.keras")),
            raised(tf.keras.models.load_model, str(root / "none.pkl")),
            raised(model.save, str(root / "a.keras"), random_argument=1),
        ]  # fmt: skip


@program
def mistakes_with_sequential_models(tf):
    layers = seeded(tf)
    model = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(2, name="dense")])
    empty = tf.keras.Sequential()
    inner = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(2)])
    outer = tf.keras.Sequential([inner, layers.Dense(1)])
    return [
        raised(model.add, tf.keras.Input((3,))), raised(model.add, layers.Dense(2, name="dense")),
        raised(model.add, {}), raised(model.add, layers.Dense), raised(empty, X),
        raised(model.build, (3, 4)),
        [hasattr(empty, name) for name in ("input_shape", "output_shape", "inputs", "outputs")],
        outer.built, len(outer.layers), tuple(outer.output_shape), outer(X),
    ]  # fmt: skip


@program
def plain_variables_in_layers(tf):
    """What is a weight of a layer, of variables in its attributes."""
    layers = seeded(tf)

    class Scaled(layers.Layer):
        def __init__(self):
            super().__init__()
            self.plain = tf.Variable(2.0)
            self.several = [tf.Variable(1.0), tf.Variable(1.0, trainable=False)]
            self.own = tf.keras.Variable(3.0)
            self.kept = {"a": tf.keras.Variable(0.5, trainable=False)}

        def build(self, shape):
            self.late = tf.Variable(5.0)
            self.added = self.add_weight(shape=(), initializer="ones")

        def call(self, x):
            return x * self.plain * self.late * self.added * self.own * self.several[0]

    layer = Scaled()
    model = tf.keras.Sequential([tf.keras.Input((3,)), layer])
    found = [
        [np.asarray(v) for v in listed]
        for listed in (model.weights, model.trainable_weights, model.non_trainable_variables)
    ]
    model.compile("sgd", "mse")
    model.fit(X, X, verbose=0)
    layer.trainable = False
    parts = (layer.plain, layer.late, layer.added, layer.own, *layer.several)
    return [
        found, layer.count_params(), [np.asarray(v) for v in parts],
        layer.plain.trainable, len(layer.trainable_variables), len(model.get_weights()),
    ]  # fmt: skip


@program
def what_constructors_are_given_from_configurations(tf):
    k, seen = tf.keras, []
    serialized = k.utils.serialize_keras_object

    def note(*values):
        seen.append([type(value).__name__ for value in values])

    class Around(k.layers.Layer):
        def __init__(self, inner, init="zeros", several=(), **kwargs):
            super().__init__(**kwargs)
            note(inner, init, *several)
            self.inner = k.layers.deserialize(inner) if isinstance(inner, dict) else inner
            self.init, self.several = k.initializers.get(init), several

        def get_config(self):
            several = [serialized(one) for one in self.several]
            own = {"inner": serialized(self.inner), "init": serialized(self.init)}
            return super().get_config() | own | {"several": several}

        def call(self, x):
            return self.inner(x)

    class Wrapped(k.layers.Wrapper):
        def __init__(self, layer, other=None, **kwargs):
            super().__init__(layer, **kwargs)
            note(layer, other)
            self.other = other

        def get_config(self):
            return super().get_config() | {"other": serialized(self.other)}

        def call(self, x):
            return self.layer(x)

    class Full(k.layers.Dense):
        def __init__(self, units, kernel_initializer="ones", other=None, **kwargs):
            super().__init__(units, kernel_initializer=kernel_initializer, **kwargs)
            note(kernel_initializer, other)
            self.other = other

        def get_config(self):
            return super().get_config() | {"other": serialized(self.other)}

    class Loss(k.losses.Loss):
        def __init__(self, inner, **kwargs):
            super().__init__(**kwargs)
            note(inner)
            self.inner = k.losses.get(inner)

        def get_config(self):
            return super().get_config() | {"inner": serialized(self.inner)}

    class Metric(k.metrics.Metric):
        def __init__(self, inner, **kwargs):
            super().__init__(**kwargs)
            note(inner)
            self.inner = k.metrics.get(inner)

        def get_config(self):
            return super().get_config() | {"inner": serialized(self.inner)}

    class Descent(k.optimizers.SGD):
        def __init__(self, learning_rate=0.1, penalty=None, **kwargs):
            super().__init__(learning_rate, **kwargs)
            note(learning_rate, penalty)
            self.penalty = penalty

        def get_config(self):
            return super().get_config() | {"penalty": serialized(self.penalty)}

    layers = k.layers
    rate = k.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    made = [
        Around(layers.Dense(2), k.initializers.Ones(), [layers.ReLU()]),
        Wrapped(layers.Dense(2), layers.ReLU()),
        Full(2, k.initializers.Ones(), layers.ReLU(), bias_regularizer=k.regularizers.L2(0.1)),
        Loss(k.losses.MeanSquaredError()), Metric(k.metrics.Mean()),
        Descent(rate, k.regularizers.L2(0.1)),
    ]  # fmt: skip
    for one in made:
        again = type(one).from_config(one.get_config())
        with k.utils.custom_object_scope({type(one).__name__: type(one)}):
            k.utils.deserialize_keras_object(serialized(one))
        if isinstance(one, layers.Layer):
            seen.append(again(X).shape)
    return seen
