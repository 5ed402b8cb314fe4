"""Models saved and loaded: treadle's own files, and those of real Keras (keras_files)."""

import io
import json
import os
import sys
import warnings
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest

import treadle as td
from tests.keras.saved_models import calls, models, subclassed

FILES = Path(__file__).parent / "keras_files"
NAMES = ("dense", "activations", "shapes", "images", "sequences", "recurrent", "calls", "masks")
keras = td.keras


def numbered(arrays, letter):
    found = [arrays[name] for name in arrays if name.rstrip("0123456789") == letter]
    return found[0] if len(found) == 1 and letter == "x" else found


def contents(path):
    """The config of an archive, and the names, shapes and dtypes of its arrays."""
    with zipfile.ZipFile(path) as zipped:
        config = json.loads(zipped.read("config.json"))
        with h5py.File(io.BytesIO(zipped.read("model.weights.h5"))) as file:
            return config, tree(file)


def tree(file):
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = item.shape, item.dtype
        elif name.endswith("vars"):
            found[name] = None

    file.visititems(visit)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_of_keras_gives_what_keras_gives(name):
    arrays = np.load(FILES / f"{name}.npz")
    model = keras.models.load_model(FILES / f"{name}.keras")
    outputs = td.nest.flatten(model.predict(numbered(arrays, "x")))
    expected = numbered(arrays, "y")
    assert len(outputs) == len(expected)
    for one, two in zip(outputs, expected):
        np.testing.assert_allclose(one, two, rtol=2e-5, atol=2e-6)
    state = numbered(arrays, "state")
    assert len(model.optimizer.variables) == len(state)
    for one, two in zip(model.optimizer._in_file(model.trainable_variables), state):
        np.testing.assert_array_equal(one, two)
    assert [m.name for m in model.metrics][1:] == ([] if name in ("calls", "masks") else ["mae"])


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_is_as_keras_writes_it(name, tmp_path):
    """Real Keras reads such files (checked by hand, as it is not among the tests' packages): their
    configs name no argument that Keras does not write, and their weights lie where Keras's do."""
    model = keras.models.load_model(FILES / f"{name}.keras")
    model.save(tmp_path / "a.keras")
    config, arrays = contents(tmp_path / "a.keras")
    theirs, places = contents(FILES / f"{name}.keras")
    assert arrays == places
    for part in ("module", "class_name"):
        assert config[part] == theirs[part]
    mine = {layer["config"]["name"]: layer for layer in config["config"]["layers"]}
    assert list(mine) == [layer["config"]["name"] for layer in theirs["config"]["layers"]]
    for layer in theirs["config"]["layers"]:
        own = mine[layer["config"]["name"]]
        assert (own["module"], own["class_name"]) == (layer["module"], layer["class_name"])
        assert set(own["config"]) <= set(layer["config"]), own["class_name"]
        assert own.get("inbound_nodes") == layer.get("inbound_nodes") or _same_calls(own, layer)
    for part in ("input_layers", "output_layers"):
        assert config["config"].get(part) == theirs["config"].get(part)
    assert set(config["compile_config"]) <= set(theirs["compile_config"])
    assert set(config["compile_config"]["optimizer"]["config"]) <= set(
        theirs["compile_config"]["optimizer"]["config"]
    )


def _same_calls(mine, theirs):
    """Whether layers are called on the same; Keras notes defaults of arguments, too."""
    return [call["args"] for call in mine["inbound_nodes"]] == [
        call["args"] for call in theirs["inbound_nodes"]
    ]


@pytest.mark.parametrize("suffix", [".keras", ".safetensors"])
@pytest.mark.parametrize("name", NAMES)
def test_a_model_comes_back(name, suffix, tmp_path):
    arrays = np.load(FILES / f"{name}.npz")
    x = numbered(arrays, "x")
    model = dict(models(keras))[name]
    path = tmp_path / f"model{suffix}"
    model.save(path)
    again = keras.models.load_model(path)
    assert os.listdir(tmp_path) == [path.name]
    assert again.get_config() == model.get_config()
    for one, two in zip(td.nest.flatten(model.predict(x)), td.nest.flatten(again.predict(x))):
        np.testing.assert_array_equal(one, two)
    assert again.optimizer.get_config().keys() == model.optimizer.get_config().keys()


def fitted(model, steps):
    random = np.random.default_rng(3)
    x, y = random.normal(size=(8, 4)), random.normal(size=(8, 2))
    for _ in range(steps):
        model.train_on_batch(x, y)
    return x


@pytest.mark.parametrize(
    "optimizer",
    [
        keras.optimizers.SGD(momentum=0.9), keras.optimizers.Adam(amsgrad=True),
        keras.optimizers.AdamW(), keras.optimizers.RMSprop(momentum=0.5, centered=True),
        keras.optimizers.Adagrad(), keras.optimizers.Adadelta(), keras.optimizers.Adamax(),
        keras.optimizers.Nadam(),
        keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 10)),
    ],
    ids=lambda optimizer: type(optimizer).__name__,
)  # fmt: skip
@pytest.mark.parametrize("suffix", [".keras", ".safetensors"])
def test_training_goes_on_after_loading(optimizer, suffix, tmp_path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, "tanh")])
    model.compile(type(optimizer).from_config(optimizer.get_config()), "mse", ["mae"])
    fitted(model, 3)
    model.save(tmp_path / f"model{suffix}")
    again = keras.models.load_model(tmp_path / f"model{suffix}")
    for one in (model, again):
        fitted(one, 2)
    assert again.optimizer.iterations.numpy() == 5
    for one, two in zip(
        [*model.weights, *model.optimizer.variables], [*again.weights, *again.optimizer.variables]
    ):
        np.testing.assert_array_equal(one, two)


def test_weights_of_a_class_of_the_user_are_read_from_keras(tmp_path):
    arrays = np.load(FILES / "subclassed.npz")
    model = subclassed(keras)
    with pytest.raises(ValueError, match='"own.*" has no weights yet'):
        model.load_weights(FILES / "subclassed.weights.h5")
    model(arrays["x0"])
    model.load_weights(FILES / "subclassed.weights.h5")
    np.testing.assert_allclose(model.predict(arrays["x0"]), arrays["y0"], rtol=2e-5, atol=2e-6)
    model.save_weights(tmp_path / "a.weights.h5")
    with h5py.File(tmp_path / "a.weights.h5") as one, h5py.File(
        FILES / "subclassed.weights.h5"
    ) as two:
        assert tree(one) == tree(two)


def test_weights_of_keras_2_are_read():
    arrays, layers = np.load(FILES / "keras2.npz"), keras.layers

    def made(units):
        return keras.Sequential([
            keras.Input((3,)), layers.Dense(units), layers.Dropout(0.1),
            layers.BatchNormalization(), keras.Sequential([layers.Dense(2)]),
        ])  # fmt: skip

    model = made(4)
    model.load_weights(FILES / "keras2.h5")
    np.testing.assert_allclose(model.predict(arrays["x0"]), arrays["y0"], rtol=2e-5, atol=2e-6)
    other = made(5)
    other.layers[0]._name = other.layers[0].name + "_other"
    other.load_weights(FILES / "keras2.h5", by_name=True)
    with pytest.raises(ValueError, match="by_name is for files of Keras 2"):
        model.load_weights("a.weights.h5", by_name=True)
    with pytest.raises(ValueError, match=r"keras2\.h5: layer .*kernel.* \(3, 5\).*\(3, 4\)"):
        made(5).load_weights(FILES / "keras2.h5")
    with pytest.raises(ValueError, match="the file has 3 layers with weights, .* has 2"):
        small().load_weights(FILES / "keras2.h5")
    with pytest.warns(UserWarning, match=r"keras2\.h5: no training configuration found"):
        whole = keras.models.load_model(FILES / "keras2.h5")
    np.testing.assert_allclose(whole.predict(arrays["x0"]), arrays["y0"], rtol=2e-5, atol=2e-6)
    assert not whole.compiled


def small(units=2, name="first"):
    return keras.Sequential([
        keras.Input((3,)), keras.layers.Dense(4, name=name), keras.layers.Dense(units),
    ])  # fmt: skip


@pytest.mark.parametrize("file", ["a.weights.h5", "ck", "ck.safetensors"])
def test_weights_are_saved_and_loaded(file, tmp_path):
    model, again = small(), small(name="other")
    model.save_weights(tmp_path / file)
    again.load_weights(tmp_path / file)
    for one, two in zip(model.weights, again.weights):
        np.testing.assert_array_equal(one, two)
    with pytest.raises(FileExistsError):
        model.save_weights(tmp_path / file, overwrite=False)


@pytest.mark.parametrize("file", ["a.weights.h5", "ck"])
def test_other_weights_are_an_error_and_change_nothing(file, tmp_path):
    small().save_weights(tmp_path / file)
    other = small(units=3)
    before = other.get_weights()
    with pytest.raises(ValueError, match=r"(?s)\(4, 2\).*\(4, 3\)|\(4, 3\).*\(4, 2\)") as caught:
        other.load_weights(tmp_path / file)
    assert file in str(caught.value) and "kernel" in str(caught.value)
    for one, two in zip(other.get_weights(), before):
        np.testing.assert_array_equal(one, two)
    if file == "a.weights.h5":
        other.load_weights(tmp_path / file, skip_mismatch=True)
        assert not np.array_equal(other.get_weights()[0], before[0])
        assert np.array_equal(other.get_weights()[2], before[2])
    deeper = keras.Sequential([keras.Input((3,)), *(keras.layers.Dense(4) for _ in range(3))])
    with pytest.raises(ValueError):
        deeper.load_weights(tmp_path / file)


def test_weights_wait_for_layers(tmp_path):
    model = small()
    model.save_weights(tmp_path / "ck")
    late = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(2)])
    late.load_weights(tmp_path / "ck")
    x = np.ones((1, 3), np.float32)
    np.testing.assert_array_equal(late(x), model(x))


def test_weights_of_a_checkpoint_of_tensorflow(tmp_path):
    folder = Path(__file__).parent.parent / "train" / "tf_checkpoints"
    facts = json.loads((folder / "functional.json").read_text())
    start = keras.Input((4,))
    hidden = keras.layers.Dense(6, activation="tanh")(start)
    model = keras.Model(start, keras.layers.LSTM(3)(keras.layers.Reshape((2, 3))(hidden)))
    model.load_weights(folder / "functional")
    x = np.array(facts["x"], np.float32)
    np.testing.assert_allclose(model.predict(x), facts["outputs"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("suffix", [".keras", ".safetensors", ".weights.h5"])
def test_damaged_files_are_found(suffix, tmp_path):
    model = small()
    path = tmp_path / f"m{suffix}"
    load = keras.models.load_model
    if suffix == ".weights.h5":
        load = model.load_weights
        model.save_weights(path)
    else:
        model.save(path)
    good = path.read_bytes()
    for size in (0, 100, len(good) // 2, len(good) - 30):
        path.write_bytes(good[:size])
        with pytest.raises(td.errors.DataLossError, match=r"m\..*is damaged"):
            load(path)
    missing = td.errors.NotFoundError if suffix == ".weights.h5" else ValueError
    with pytest.raises(missing, match="none"):
        load(tmp_path / f"none{suffix}")


def test_a_full_disk_costs_no_model(tmp_path, monkeypatch):
    model = small()
    model.save(tmp_path / "m.keras")
    good = (tmp_path / "m.keras").read_bytes()

    def full(file, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("treadle.train.atomic.os.write", full)
    with pytest.raises(td.errors.ResourceExhaustedError, match=r"model .*m\.keras"):
        model.save(tmp_path / "m.keras")
    assert (tmp_path / "m.keras").read_bytes() == good and len(os.listdir(tmp_path)) == 1


@keras.saving.register_keras_serializable("tests")
class Scaled(keras.layers.Layer):
    """A layer of the user's, whose config is its arguments."""

    def __init__(self, factor, function=None, **kwargs):
        super().__init__(**kwargs)
        self.factor, self.function = factor, function

    def build(self, shape):
        self.offset = self.add_weight(shape=(shape[-1],), name="offset")

    def call(self, x):
        y = x * self.factor + self.offset
        return y if self.function is None else self.function(y)


@keras.saving.register_keras_serializable("tests")
def halved(x):
    return x / 2.0


class Unknown(keras.layers.Layer):
    def call(self, x):
        return x + 1.0


@pytest.mark.parametrize("suffix", [".keras", ".safetensors"])
def test_classes_of_the_user(suffix, tmp_path):
    x = np.ones((1, 3), np.float32)
    model = keras.Sequential([keras.Input((3,)), Scaled(3.0, halved, name="mine")])
    assert model.layers[0].get_config()["factor"] == 3.0
    path = tmp_path / f"m{suffix}"
    model.save(path)
    again = keras.models.load_model(path)
    assert type(again.layers[0]) is Scaled and again.layers[0].name == "mine"
    np.testing.assert_array_equal(again(x), model(x))
    keras.Sequential([keras.Input((3,)), Unknown()]).save(path)
    with pytest.raises(ValueError, match="Could not find 'Unknown'.*custom_objects"):
        keras.models.load_model(path)
    found = keras.models.load_model(path, custom_objects={"Unknown": Unknown})
    np.testing.assert_array_equal(found(x), x + 1.0)
    with keras.saving.custom_object_scope({"Unknown": Unknown}):
        keras.models.load_model(path)


def test_code_of_lambdas_is_run_where_it_is_asked_for_only(tmp_path):
    factor = 3.0
    model = keras.Sequential([
        keras.Input((3,)), keras.layers.Lambda(lambda x, more=1.0: x * factor + more),
        keras.layers.Lambda(lambda x: td.square(x), output_shape=(3,)),
    ])  # fmt: skip
    path = tmp_path / "m.keras"
    best = keras.callbacks.ModelCheckpoint(path, monitor="loss", save_best_only=True)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    wanted = (x * 3 + 1) ** 2
    clone = keras.models.clone_model(keras.Sequential([keras.Input((3,)), model.layers[0]]))
    np.testing.assert_allclose(clone(x), x * 3 + 1)
    model.compile("sgd", "mse")
    best.set_model(model)
    best.on_epoch_end(0, {"loss": 1.0})
    load = keras.models.load_model
    with pytest.raises(ValueError, match="arbitrary code execution"):
        load(path)
    np.testing.assert_allclose(load(path, safe_mode=False)(x), wanted)
    keras.config.enable_unsafe_deserialization()
    np.testing.assert_allclose(load(path)(x), wanted)
    keras.utils.clear_session()
    with pytest.raises(ValueError, match="safe_mode=False"):
        load(path)
    config = model.layers[0].get_config()
    with pytest.raises(ValueError, match="Lambda"):
        keras.layers.Lambda.from_config(config)
    again = keras.layers.Lambda.from_config(config, safe_mode=False)
    np.testing.assert_allclose(again(x), x * 3 + 1)
    config["function"]["config"]["python"] = "00"
    with pytest.raises(ValueError, match="another version of Python"):
        keras.layers.Lambda.from_config(config, safe_mode=False)
    with pytest.warns(UserWarning, match="includes a `lambda`"):
        described = keras.saving.serialize_keras_object(lambda x: x + factor)
    assert keras.saving.deserialize_keras_object(described, safe_mode=False)(1.0) == 4.0
    assert model.layers[1].compute_output_shape((5, 3)) == (5, 3)


def test_code_is_not_run(tmp_path):
    config = {"class_name": "__lambda__", "config": {"value": "4wEAAAA="}}
    with pytest.raises(ValueError, match="arbitrary code execution"):
        keras.saving.deserialize_keras_object(config)
    with pytest.raises(ValueError, match="another version of Python, or damaged"):
        keras.saving.deserialize_keras_object(config, safe_mode=False)
    for name in ("os", "system", "eval", "Callable", "Any", "td", "np"):
        with pytest.raises(ValueError, match="Could not find"):
            keras.saving.deserialize_keras_object(
                {"module": "keras.layers", "class_name": name, "config": {}}
            )


def test_what_is_not_supported_is_named():
    config = keras.layers.Dense(2).get_config() | {"quantization_config": None}
    described = {"module": "keras.layers", "class_name": "Dense", "config": config}
    assert keras.saving.deserialize_keras_object(described).units == 2
    config["quantization_config"] = {"mode": "int8"}
    with pytest.raises(ValueError, match="`config` must be an instance of `QuantizationConfig`"):
        keras.saving.deserialize_keras_object(described)
    other = {"module": "keras.quantizers", "class_name": "GPTQConfig", "config": {}}
    config["quantization_config"] = other
    with pytest.raises(ValueError, match="Could not find 'GPTQConfig'"):
        keras.saving.deserialize_keras_object(described)
    config |= {"quantization_config": None, "sparsity": 0.5}
    with pytest.raises(ValueError, match="Dense: sparsity=.* is not supported"):
        keras.saving.deserialize_keras_object(described)


def test_without_h5py(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match="pip install h5py.* without .h5 or .keras"):
        small().save(tmp_path / "m.keras")
    small().save(tmp_path / "m.safetensors")
    keras.models.load_model(tmp_path / "m.safetensors")
    assert os.listdir(tmp_path) == ["m.safetensors"]


def test_models_as_text():
    model = calls(keras)
    again = keras.models.model_from_json(model.to_json())
    assert again.get_config() == model.get_config()
    assert again.optimizer.momentum == 0.9 and again.optimizer._schedule.decay_rate == 0.9
    clone = keras.models.clone_model(model)
    assert [w.shape for w in clone.weights] == [w.shape for w in model.weights]
    assert clone.get_layer("shared").kernel is not model.get_layer("shared").kernel


def test_wrong_endings_and_unbuilt_models(tmp_path):
    with pytest.raises(ValueError, match=r"should end with \.keras"):
        small().save(tmp_path / "model")
    with pytest.raises(ValueError, match="must end in `.weights.h5`"):
        small().save_weights(tmp_path / "model.h5")
    unbuilt = keras.Sequential([keras.layers.Dense(2)])
    with pytest.warns(UserWarning, match="not yet been built"):
        unbuilt.save(tmp_path / "m.keras")
    assert not keras.models.load_model(tmp_path / "m.keras").built
    with pytest.raises(ValueError, match="has no weights yet"):
        unbuilt.save(tmp_path / "m.h5")
    small().save_weights(tmp_path / "m")
    with pytest.raises(ValueError, match="has values and no model"):
        keras.models.load_model(tmp_path / "m.safetensors")


DATA = np.random.default_rng(1).normal(size=(12, 3)), np.zeros((12, 2))


def compiled():
    model = small()
    model.compile("adam", "mse", ["mae"])
    return model


def test_checkpoints_while_fitting(tmp_path):
    model = compiled()
    hook = keras.callbacks.ModelCheckpoint(tmp_path / "{epoch:02d}-{loss:.1f}.keras", "loss")
    history = model.fit(*DATA, epochs=3, verbose=0, callbacks=[hook]).history["loss"]
    names = [f"{i + 1:02d}-{loss:.1f}.keras" for i, loss in enumerate(history)]
    assert sorted(os.listdir(tmp_path)) == names
    last = keras.models.load_model(tmp_path / names[-1])
    np.testing.assert_array_equal(last.predict(DATA[0]), model.predict(DATA[0]))
    with pytest.raises(KeyError, match="'nothing'"):
        hook = keras.callbacks.ModelCheckpoint(tmp_path / "{nothing}.keras")
        model.fit(*DATA, verbose=0, callbacks=[hook])


def test_classes_derived_from_checkpoints_have_its_path_and_its_saving(tmp_path):
    class Noted(keras.callbacks.ModelCheckpoint):
        noted = []

        def _save_model(self, epoch, batch, logs):
            super()._save_model(epoch, batch, logs)
            path = self._get_file_path(epoch=epoch, logs=logs, batch=batch)
            self.noted.append((path, os.path.exists(path)))

    hook = Noted(tmp_path / "{epoch:02d}.weights.h5", save_weights_only=True)
    compiled().fit(*DATA, epochs=2, verbose=0, callbacks=[hook])
    paths = [str(tmp_path / name) for name in ("01.weights.h5", "02.weights.h5")]
    assert hook.noted == [(path, True) for path in paths]


def test_only_the_best_model_is_kept(tmp_path):
    saved = []

    class Given(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs["score"] = [3.0, 5.0, 4.0, 5.0, 6.0][epoch]

    hook = keras.callbacks.ModelCheckpoint(
        tmp_path / "best.weights.h5", "score", save_best_only=True, save_weights_only=True,
        mode="max", initial_value_threshold=4.5,
    )  # fmt: skip
    model = compiled()
    model.save_weights = lambda path, overwrite: saved.append(hook._epoch)
    model.fit(*DATA, epochs=5, verbose=0, callbacks=[Given(), hook])
    assert saved == [1, 4] and hook.best == 6.0
    hook = keras.callbacks.ModelCheckpoint(tmp_path / "m.keras", "none", save_best_only=True)
    with pytest.warns(UserWarning, match="no 'none' among"):
        compiled().fit(*DATA, verbose=0, callbacks=[hook])
    with pytest.raises(ValueError, match="save_freq.*it is 'epoch' or a number"):
        keras.callbacks.ModelCheckpoint("m.keras", save_freq=0.5)


def test_checkpoints_after_batches(tmp_path):
    hook = keras.callbacks.ModelCheckpoint(tmp_path / "{epoch}-{batch}.keras", save_freq=4)
    compiled().fit(*DATA, batch_size=4, epochs=4, verbose=0, callbacks=[hook])  # 3 an epoch
    assert sorted(os.listdir(tmp_path)) == ["2-1.keras", "3-2.keras", "4-3.keras"]


class Stop(keras.callbacks.Callback):
    """Interrupts training at the beginning of an epoch."""

    def __init__(self, epoch):
        self.epoch = epoch

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == self.epoch:
            raise KeyboardInterrupt


def test_fit_goes_on_where_it_was_interrupted(tmp_path):
    whole, first = compiled(), compiled()
    start = whole.get_weights()
    first.set_weights(start)
    options = {"epochs": 5, "verbose": 0, "shuffle": False}
    expected = whole.fit(*DATA, **options)
    with pytest.raises(KeyboardInterrupt):
        first.fit(
            *DATA, **options, callbacks=[keras.callbacks.BackupAndRestore(tmp_path), Stop(3)]
        )
    assert os.listdir(tmp_path) == ["latest.safetensors"]
    second = compiled()
    hook = keras.callbacks.BackupAndRestore(tmp_path)
    history = second.fit(*DATA, **options, callbacks=[hook])
    assert history.epoch == [3, 4] and not tmp_path.exists()
    np.testing.assert_allclose(history.history["loss"], expected.history["loss"][3:], rtol=1e-6)
    for one, two in zip(second.weights, whole.weights):
        np.testing.assert_array_equal(one, two)
    assert second.fit(*DATA, epochs=1, verbose=0).epoch == [0]
    with pytest.raises(ValueError, match="Empty `backup_dir`"):
        keras.callbacks.BackupAndRestore("")


@pytest.mark.parametrize(
    ("units", "optimizer", "told"),
    [
        ([4, 2, 2], "sgd", ValueError), ([4, 3], "sgd", ValueError), ([4], "sgd", None),
        ([4, 2], "adam", UserWarning), ([4, 2], "sgd", None),
    ],
)  # fmt: skip
def test_backups_of_other_models_are_told(tmp_path, units, optimizer, told):
    def made(units, optimizer):
        layers = [keras.layers.Dense(number) for number in units]
        model = keras.Sequential([keras.Input((3,)), *layers])
        model.compile(optimizer, "mse")
        return model, np.ones((2, 3)), np.ones((2, units[-1]))

    model, *data = made([4, 2], "sgd")
    with pytest.raises(KeyboardInterrupt):
        hooks = [keras.callbacks.BackupAndRestore(tmp_path), Stop(1)]
        model.fit(*data, epochs=2, verbose=0, callbacks=hooks)
    other, *data = made(units, optimizer)
    hooks = [keras.callbacks.BackupAndRestore(tmp_path)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if told is ValueError:
            with pytest.raises(ValueError, match="latest"):
                other.fit(*data, epochs=2, verbose=0, callbacks=hooks)
        else:
            assert other.fit(*data, epochs=2, verbose=0, callbacks=hooks).epoch == [1]
    assert ["another optimizer" in str(w.message) for w in caught] == [True] * (told is UserWarning)


def test_an_optimizer_that_made_no_step(tmp_path):
    model = compiled()
    model.save(tmp_path / "m.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = keras.models.load_model(tmp_path / "m.keras")
    assert again.optimizer.iterations.numpy() == 0


class Flexible(keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, shape):
        self.w = keras.Variable(td.random.normal([shape[-1], self.units]), name="w")

    def call(self, x):
        return td.matmul(x, self.w)


class Lazy(keras.Model):
    def __init__(self, name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        self.first, self.second = Flexible(3), Flexible(2)

    def call(self, x):
        return self.second(self.first(x))


def test_a_model_whose_layers_make_their_weights_late_is_built_when_it_is_loaded(tmp_path):
    model, x = Lazy(), td.constant([[2.0, 3.0, 4.0]])
    expected = model(x)
    model.save(tmp_path / "a.keras")
    config, _ = contents(tmp_path / "a.keras")
    assert config["build_config"] == {"input_shape": [1, 3]}
    again = keras.models.load_model(tmp_path / "a.keras", {"Lazy": Lazy, "Flexible": Flexible})
    np.testing.assert_array_equal(again(x), expected)
