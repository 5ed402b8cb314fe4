"""Vocabularies in archives: what layers learned from data comes back, from Keras's files too."""

import io
import zipfile

import numpy as np
import pytest

import treadle as td

keras = td.keras

TEXTS = ["the cat sat", "a dog sat", "the dog and the cat"]


def loaded(model, tmp_path, **options):
    place = tmp_path / ("folder" if options else "model.keras")
    model.save(place, **options)
    return keras.models.load_model(place)


@pytest.mark.parametrize("options", [{}, {"zipped": False}])
@pytest.mark.parametrize("mode", ["int", "multi_hot", "tf_idf"])
def test_what_adapt_learned_is_in_the_file(tmp_path, mode, options):
    layer = keras.layers.TextVectorization(output_mode=mode)
    layer.adapt(TEXTS)
    model = keras.Sequential([keras.Input((), dtype="string"), layer])
    again = loaded(model, tmp_path, **options)
    assert again.layers[0].get_vocabulary() == layer.get_vocabulary()
    data = td.constant(["the dog", "what cat"])
    np.testing.assert_allclose(again(data).numpy(), model(data).numpy())


@pytest.mark.parametrize("pad", [False, True])
def test_lookups_of_ints_and_their_weights(tmp_path, pad):
    options = {"max_tokens": 8, "pad_to_max_tokens": True} if pad else {}
    layer = keras.layers.IntegerLookup(output_mode="tf_idf", **options)
    layer.adapt(np.array([[3, 5], [5, 7], [3, 3]]))
    model = keras.Sequential([keras.Input((2,), dtype="int64"), layer])
    again = loaded(model, tmp_path)
    data = np.array([[3, 9], [7, 5]])
    np.testing.assert_allclose(again(data).numpy(), model(data).numpy())


def test_layers_behind_fit_the_vocabulary(tmp_path):
    words = keras.layers.TextVectorization(output_mode="multi_hot")
    words.adapt(TEXTS)
    text = keras.Input((), dtype="string")
    model = keras.Model(text, keras.layers.Dense(3)(words(text)))
    again = loaded(model, tmp_path)
    data = td.constant(TEXTS)
    np.testing.assert_allclose(again(data).numpy(), model(data).numpy(), rtol=1e-6)


def test_the_names_of_assets_are_those_of_keras(tmp_path):
    layer = keras.layers.StringLookup(name="words")
    layer.adapt(["a", "b", "b"])
    model = keras.Sequential([keras.Input((1,), dtype="string"), layer])
    model.save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras") as archive:
        text = archive.read("assets/layers/string_lookup/vocabulary.txt")
    assert text.decode().split() == layer.get_vocabulary()


class Own(keras.layers.Layer):
    """Keeps a text in a folder of its assets."""

    text = ""

    def call(self, x):
        return x

    def save_assets(self, place):
        import pathlib

        (pathlib.Path(place) / "inner").mkdir()
        (pathlib.Path(place) / "inner" / "text.txt").write_text(self.text)

    def load_assets(self, place):
        import pathlib

        self.text = (pathlib.Path(place) / "inner" / "text.txt").read_text()


def test_layers_of_programs_have_assets(tmp_path):
    model = keras.Sequential([keras.Input((2,)), Own(), Own()])
    model.layers[0].text, model.layers[1].text = "first", "second"
    model.save(tmp_path / "own.keras")
    again = keras.models.load_model(tmp_path / "own.keras", custom_objects={"Own": Own})
    assert [layer.text for layer in again.layers] == ["first", "second"]


def test_names_outside_the_folder_are_not_read(tmp_path):
    model = keras.Sequential([keras.Input((2,)), Own()])
    model.layers[0].text = "first"
    content = io.BytesIO()
    model.save(content)
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr("assets/layers/own/../../../outside.txt", "x")
    (tmp_path / "own.keras").write_bytes(content.getvalue())
    again = keras.models.load_model(tmp_path / "own.keras", custom_objects={"Own": Own})
    assert again.layers[0].text == "first"
