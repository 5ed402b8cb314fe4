"""Weights in several files: what Keras 3.15 wrote and reads, sizes, and damaged files."""

import json
import shutil
import warnings

import numpy as np
import pytest

import treadle as td

keras = td.keras
pytest.importorskip("h5py")


def trained():
    inputs = keras.Input((8,))
    x = keras.layers.Dense(300, name="a")(inputs)
    x = keras.layers.BatchNormalization(name="bn")(x)
    x = keras.layers.Dense(300, name="b")(x)
    model = keras.Model(inputs, keras.layers.Dense(2, name="c")(x))
    model.compile("adam", "mse")
    return model


X = np.linspace(-1, 1, 32).reshape(4, 8).astype(np.float32)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder, model = tmp_path_factory.mktemp("shards"), trained()
    model.fit(X, np.ones((4, 2), np.float32), epochs=2, verbose=0)
    model.save_weights(folder / "w.weights.json", max_shard_size=0.0004)
    return folder, model


def test_weights_in_several_files_come_back(written):
    folder, model = written
    names = {path.name for path in folder.iterdir()}
    assert "w.weights.json" in names and len(names) > 3
    again = trained()
    again.load_weights(folder / "w.weights.json")
    np.testing.assert_array_equal(again.predict(X, verbose=0), model.predict(X, verbose=0))
    assert int(again.optimizer.iterations.numpy()) == 2
    assert [v.numpy().tolist() for v in again.optimizer.variables] == [
        v.numpy().tolist() for v in model.optimizer.variables
    ]


def test_the_index_is_as_keras_has_it(written):
    index = json.loads((written[0] / "w.weights.json").read_text())
    places = index["weight_map"]
    assert set(places) == {
        "/layers/dense/vars", "/layers/dense_1/vars", "/layers/dense_2/vars",
        "/layers/batch_normalization/vars", "/optimizer/vars",
    }  # fmt: skip
    assert index["metadata"]["total_size"] > 3 * 4 * (8 * 300 + 300 * 300)
    assert isinstance(places["/optimizer/vars"], list)  # in several files
    assert places["/layers/dense/vars"] == "w_00000.weights.h5"


def test_names_and_sizes_that_do_not_go_together(tmp_path):
    model = trained()
    with pytest.raises(ValueError, match="goes with max_shard_size"):
        model.save_weights(tmp_path / "w.weights.json")
    with pytest.raises(ValueError, match="goes with max_shard_size"):
        model.save_weights(tmp_path / "w", max_shard_size=1)
    with pytest.raises(ValueError, match="more than the 1073 of max_shard_size"):
        model.save_weights(tmp_path / "w.weights.json", max_shard_size=1e-6)
    assert list(tmp_path.iterdir()) == []  # nothing half written
    model.save_weights(tmp_path / "w.weights.h5", max_shard_size=1)
    assert {path.name for path in tmp_path.iterdir()} == {"w.weights.json", "w_00000.weights.h5"}


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda f: (f / "w.weights.json").write_text("{"), td.errors.DataLossError),
        (lambda f: (f / "w.weights.json").unlink(), td.errors.NotFoundError),
        (lambda f: (f / "w_00001.weights.h5").unlink(), td.errors.NotFoundError),
        (lambda f: (f / "w_00001.weights.h5").write_bytes(b"no"), td.errors.DataLossError),
        (
            lambda f: (f / "w.weights.json").write_text('{"weight_map": {"/a/vars": "../x"}}'),
            td.errors.DataLossError,
        ),
    ],
    ids=["no JSON", "no index", "a file missing", "a file damaged", "another folder"],
)
def test_damaged_files_are_named(written, tmp_path, damage, error):
    shutil.copytree(written[0], tmp_path, dirs_exist_ok=True)
    damage(tmp_path)
    model = trained()
    before = model.get_weights()
    with pytest.raises(error, match=r"w\.weights\.json|w_00001"):
        model.load_weights(tmp_path / "w.weights.json")
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


class OnlyStep(keras.Model):
    def train_step(self, data):
        return {"loss": td.constant(0.0)}


class PassesOn(keras.Model):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


class OwnCompile(keras.Model):
    def compile(self, own, **kwargs):
        super().compile("sgd", "mse")
        self.own = own


@pytest.mark.parametrize("kind", [OnlyStep, PassesOn])
@pytest.mark.parametrize("ending", [".keras", ".h5", ".safetensors"])
def test_models_of_calls_of_a_class_of_a_program_keep_their_layers(tmp_path, kind, ending):
    inputs = keras.Input((8,))
    model = kind(inputs, keras.layers.Dense(2)(inputs))
    path = tmp_path / f"m{ending}"
    model.save(path)
    again = keras.models.load_model(path, custom_objects={kind.__name__: kind})
    assert type(again) is kind
    np.testing.assert_array_equal(again.predict(X, verbose=0), model.predict(X, verbose=0))
    described = keras.saving.serialize_keras_object(model)
    assert described["registered_name"] == kind.__name__  # Keras finds it by this name


def test_a_compile_of_a_program_is_not_called(tmp_path):
    inputs = keras.Input((8,))
    model = OwnCompile(inputs, keras.layers.Dense(2)(inputs))
    model.compile(own=3)
    model.save(tmp_path / "m.keras")
    with pytest.warns(UserWarning, match="was not called as part of model loading"):
        again = keras.models.load_model(
            tmp_path / "m.keras", custom_objects={"OwnCompile": OwnCompile}
        )
    assert not again.compiled


def test_a_reversible_embedding_with_two_tables_in_8_bits(tmp_path):
    def made():
        model = keras.Sequential(
            [keras.layers.ReversibleEmbedding(10, 16, tie_weights=False, name="e")]
        )
        model.build((None, 3))
        return model

    model, vectors = made(), np.linspace(-1, 1, 32).reshape(2, 16).astype(np.float32)
    layer = model.layers[0]
    exact = np.asarray(layer(vectors, reverse=True))
    layer.quantize("int8")
    found = np.asarray(layer(vectors, reverse=True))
    np.testing.assert_allclose(found, exact, atol=2e-2)
    assert layer.reverse_embeddings.dtype == td.int8 and len(layer.trainable_weights) == 0
    assert [v.path.split("/")[-1] for v in layer.non_trainable_weights] == [
        "embeddings", "embeddings_scale", "reverse_embeddings", "reverse_embeddings_scale",
    ]  # fmt: skip
    model.save_weights(tmp_path / "e.weights.h5")
    again = made()
    again.layers[0].quantize("int8")
    again.load_weights(tmp_path / "e.weights.h5")
    np.testing.assert_array_equal(np.asarray(again.layers[0](vectors, reverse=True)), found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.save(tmp_path / "e.keras")
        whole = keras.models.load_model(tmp_path / "e.keras")
    np.testing.assert_array_equal(np.asarray(whole.layers[0](vectors, reverse=True)), found)


def test_layers_that_were_built_before_their_model(tmp_path):
    table = keras.layers.Embedding(7, 3)
    table.build()
    model = keras.Sequential([table])  # of no known input
    numbers = np.array([[1, 2], [3, 6]])
    expected = np.asarray(table(numbers))
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(again.predict(numbers, verbose=0), expected)
