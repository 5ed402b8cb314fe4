"""Whole models in HDF5 files as Keras 2 had them: those of real Keras (keras_files), and ours."""

import json

import h5py
import numpy as np
import pytest

import treadle as td
from tests.keras.saved_models import LEGACY
from tests.keras.test_saving import FILES, numbered

keras = td.keras
layers = keras.layers


def described(path):
    """The config of a file, its lists of names, and the shapes of its arrays by their places."""
    with h5py.File(path) as file:
        groups, lists = {}, {}
        for name, group in file["model_weights"].items():
            listed = group.attrs["weight_names"]
            shapes = [group[label].shape for label in listed]
            groups[name] = [*zip((str(label).split("/")[-1] for label in listed), shapes)]
        for name in ("layer_names", "keras_version", "backend"):
            lists[name] = np.asarray(file["model_weights"].attrs[name]).tolist()
        kept = file["optimizer_weights"]
        shapes = [kept[label].shape for label in kept.attrs["weight_names"]]
        configs = {n: json.loads(file.attrs[n]) for n in ("model_config", "training_config")}
        return configs, groups, lists, shapes, set(file.attrs)


@pytest.mark.parametrize("name", LEGACY)
def test_a_file_of_keras_gives_what_keras_gives(name):
    arrays = np.load(FILES / f"{name}.npz")
    model = keras.models.load_model(FILES / f"{name}.h5")
    outputs = td.nest.flatten(model.predict(numbered(arrays, "x"), verbose=0))
    for one, two in zip(outputs, numbered(arrays, "y"), strict=True):
        np.testing.assert_allclose(one, two, rtol=2e-5, atol=2e-6)
    state = numbered(arrays, "state")
    kept = model.optimizer._in_file(model.trainable_variables)
    for one, two in zip(kept, state, strict=True):
        np.testing.assert_array_equal(one, two)
    uncompiled = keras.models.load_model(FILES / f"{name}.h5", compile=False)
    assert model.compiled and not uncompiled.compiled


@pytest.mark.parametrize("name", LEGACY)
def test_a_file_is_as_keras_writes_it(name, tmp_path):
    """Real Keras 3.15 reads our files (checked by hand); of its own it does not read those whose
    models have calls of functions, which it writes without their modules, nor those with a loss
    called "mse"."""
    model = keras.models.load_model(FILES / f"{name}.h5")
    model.save(tmp_path / "a.h5", save_format="h5")
    configs, groups, lists, shapes, attributes = described(tmp_path / "a.h5")
    theirs = described(FILES / f"{name}.h5")
    assert (groups, lists, shapes, attributes) == theirs[1:]
    mine, real = configs["model_config"], theirs[0]["model_config"]
    assert mine["class_name"] == real["class_name"]
    for one, two in zip(mine["config"]["layers"], real["config"]["layers"], strict=True):
        assert one["class_name"] == two["class_name"]
        assert set(one["config"]) <= set(two["config"])
        assert one.get("name") == two.get("name")
    training, real = configs["training_config"], theirs[0]["training_config"]
    assert set(training) <= set(real)
    assert training["loss"] == "mean_squared_error" and real["loss"] == "mse"
    assert training["metrics"] == real["metrics"]
    assert training["optimizer_config"]["class_name"] == real["optimizer_config"]["class_name"]
    again = keras.models.load_model(tmp_path / "a.h5")
    for one, two in zip(
        [*model.weights, *model.optimizer.variables], [*again.weights, *again.optimizer.variables],
        strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(one, two)


class Times(keras.layers.Layer):
    def __init__(self, by=2.0, **kwargs):
        super().__init__(**kwargs)
        self.by = by

    def call(self, x):
        return x * self.by


def own_loss(y_true, y_pred):
    return td.reduce_mean(td.abs(y_true - y_pred), -1)


def custom():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), Times(3.0)])
    model.compile("nadam", own_loss, metrics=[own_loss, "mae"])
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    return model


@pytest.mark.parametrize("ending", [".h5", ".hdf5"])
def test_classes_and_functions_of_the_program_are_found(ending, tmp_path):
    model, path = custom(), tmp_path / f"a{ending}"
    keras.models.save_model(model, path, save_format="h5")
    known = {"Times": Times, "own_loss": own_loss}
    again = keras.models.load_model(path, custom_objects=known)
    x, y = np.ones((2, 3)), np.zeros((2, 2))
    assert again.evaluate(x, y, verbose=0) == model.evaluate(x, y, verbose=0)
    assert again.layers[-1].by == 3.0
    with pytest.raises(ValueError, match="Could not find 'Times'"):
        keras.models.load_model(path)
    with pytest.raises(ValueError, match="Unknown (loss|metric) 'own_loss'"):
        keras.models.load_model(path, custom_objects={"Times": Times})


def test_the_optimizer_may_be_left_out(tmp_path):
    custom().save(tmp_path / "a.h5", include_optimizer=False)
    with h5py.File(tmp_path / "a.h5") as file:
        assert "training_config" not in file.attrs and "optimizer_weights" not in file
    with pytest.warns(UserWarning, match="not compiled"):
        keras.models.load_model(tmp_path / "a.h5", custom_objects={"Times": Times})


def test_checkpoints_of_fit_may_be_such_files(tmp_path):
    model = custom()
    saved = keras.callbacks.ModelCheckpoint(tmp_path / "at_{epoch}.h5")
    model.fit(np.ones((4, 3)), np.ones((4, 2)), epochs=2, verbose=0, callbacks=[saved])
    known = {"Times": Times, "own_loss": own_loss}
    again = keras.models.load_model(tmp_path / "at_2.h5", custom_objects=known)
    np.testing.assert_array_equal(again.get_weights()[0], model.get_weights()[0])
    assert (tmp_path / "at_1.h5").exists()


def test_long_lists_of_names_are_split(tmp_path):
    """Attributes of HDF5 have less than 64 KiB."""
    stack = [keras.layers.Activation("relu", name=f"{'long' * 100}_{n}") for n in range(200)]
    model = keras.Sequential([keras.Input((2,)), *stack, keras.layers.Dense(1)])
    model.save(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert "layer_names" not in file["model_weights"].attrs
        assert "layer_names1" in file["model_weights"].attrs
    again = keras.models.load_model(tmp_path / "a.h5", compile=False)
    np.testing.assert_array_equal(again.get_weights()[0], model.get_weights()[0])


def test_a_functional_model_that_keras_2_wrote(tmp_path):
    """Its calls are lists of tensors, its shapes and axes have other names."""

    def layer(kind, name, calls, **config):
        return {
            "class_name": kind, "name": name, "config": {"name": name} | config,
            "inbound_nodes": calls,
        }  # fmt: skip

    dense = {
        "trainable": True, "dtype": "float32", "activation": "relu", "use_bias": True,
        "kernel_initializer": {"class_name": "GlorotUniform", "config": {"seed": None}},
        "bias_initializer": {"class_name": "Zeros", "config": {}}, "kernel_regularizer": None,
    }  # fmt: skip
    start = {"dtype": "float32", "sparse": False, "ragged": False}
    layers = [
        layer("InputLayer", "a", [], batch_input_shape=[None, 3], **start),
        layer("InputLayer", "b", [], batch_input_shape=[None, 2], **start),
        layer("Dense", "dense", [[["a", 0, 0, {}]]], units=2, **dense),
        layer("Concatenate", "joined", [[["dense", 0, 0, {}], ["b", 0, 0, {}]]], axis=-1),
        layer(
            "BatchNormalization", "normal", [[["joined", 0, 0, {"training": False}]]], axis=[1],
            momentum=0.99, epsilon=0.001,
        ),
    ]  # fmt: skip
    config = {
        "name": "old", "layers": layers, "input_layers": [["a", 0, 0], ["b", 0, 0]],
        "output_layers": [["normal", 0, 0]],
    }  # fmt: skip
    training = {
        "loss": "mse", "metrics": [["mae"]], "weighted_metrics": None, "loss_weights": None,
        "optimizer_config": {"class_name": "Adam", "config": {
            "name": "Adam", "learning_rate": 0.01, "decay": 0.0, "beta_1": 0.9, "beta_2": 0.999,
            "epsilon": 1e-7, "amsgrad": False,
        }},
    }  # fmt: skip
    random = np.random.default_rng(0)
    weights = {
        "dense": {"dense/kernel:0": random.normal(size=(3, 2)), "dense/bias:0": np.ones(2)},
        "normal": {
            f"normal/{n}:0": random.uniform(0.5, 2.0, 4)
            for n in ("gamma", "beta", "moving_mean", "moving_variance")
        },
    }  # fmt: skip
    with h5py.File(tmp_path / "old.h5", "w") as file:
        file.attrs["keras_version"] = b"2.10.0"
        file.attrs["model_config"] = json.dumps({"class_name": "Functional", "config": config})
        file.attrs["training_config"] = json.dumps(training)
        group = file.create_group("model_weights")
        group.attrs["layer_names"] = np.array(["a", "b", "dense", "joined", "normal"], "S")
        for name in ("a", "b", "dense", "joined", "normal"):
            inner = group.create_group(name)
            inner.attrs["weight_names"] = np.array([*weights.get(name, {})], "S")
            for label, value in weights.get(name, {}).items():
                inner[label] = value
    model = keras.models.load_model(tmp_path / "old.h5")
    a, b = random.normal(size=(4, 3)), random.normal(size=(4, 2))
    kernel, bias = weights["dense"].values()
    gamma, beta, mean, variance = weights["normal"].values()
    joined = np.concatenate([np.maximum(a @ kernel + bias, 0), b], -1)
    expected = (joined - mean) / np.sqrt(variance + 0.001) * gamma + beta
    np.testing.assert_allclose(model.predict([a, b], verbose=0), expected, rtol=1e-4, atol=1e-5)
    assert float(model.optimizer.learning_rate.numpy()) == np.float32(0.01)
    model.fit([a, b], expected, verbose=0)


def test_other_files_are_errors(tmp_path):
    custom().save_weights(tmp_path / "a.weights.h5")
    with pytest.raises(ValueError, match="No model config found"):
        keras.models.load_model(tmp_path / "a.weights.h5")
    with pytest.raises(ValueError, match="File not found"):
        keras.models.load_model(tmp_path / "b.h5")
    (tmp_path / "c.h5").write_bytes(b"nothing")
    with pytest.raises(td.errors.DataLossError):
        keras.models.load_model(tmp_path / "c.h5")


def test_layers_that_are_called_as_functions_are_found_again(tmp_path):
    inputs = td.keras.Input((2,))
    product = td.keras.layers.Multiply()([inputs, inputs])
    model = td.keras.Model(inputs, td.keras.ops.multiply(product, inputs))
    model.save(tmp_path / "model.h5")
    found = td.keras.models.load_model(tmp_path / "model.h5")
    assert np.array_equal(found(np.full((1, 2), 3.0, "f")), [[27.0, 27.0]])
    assert type(found.layers[1]) is td.keras.layers.Multiply


def test_operations_with_arguments_are_read_by_their_names(tmp_path):
    start = keras.Input((3,))
    model = keras.Model(start, layers.Dense(2)(keras.ops.cast(start > 0, "float32")))
    path = tmp_path / "m.h5"
    model.save(path)
    with h5py.File(path, "r+") as file:
        config = json.loads(file.attrs["model_config"])
        for layer in config["config"]["layers"]:
            layer.pop("module", None)  # Keras writes none
        assert any(layer["class_name"] == "Cast" for layer in config["config"]["layers"])
        file.attrs["model_config"] = json.dumps(config)
    x = np.array([[1.0, -1.0, 2.0]], np.float32)
    again = keras.models.load_model(path)
    np.testing.assert_array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))


def test_layers_of_keras_module_of_old_names_are_known():
    config = keras.saving.serialize_keras_object(layers.AlphaDropout(0.2))
    config["module"] = "keras._legacy.layers"  # where Keras says that it is
    assert keras.saving.deserialize_keras_object(config).rate == 0.2
