"""Layers that prepare data give what Keras gives, eagerly, in functions and in datasets."""

import json
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.keras.preprocessing_facts.cases import CASES, TEXTS, WORDS, described, plain, wave
from treadle.keras import layers

FACTS = json.loads((Path(__file__).parent / "preprocessing_facts" / "facts.json").read_text())
UNKNOWN = {"sparse", "encoding"}  # taken, not shown by all layers


def check(actual, expected, key):
    if expected and isinstance(expected[0], str):
        assert actual == expected, key
    else:
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5, err_msg=key)


def test_every_case_is_recorded():
    assert set(CASES) == set(FACTS) - {"tensorflow"}


@pytest.mark.parametrize("key", CASES)
def test_fact(key):
    known = FACTS[key]
    layer, inputs = CASES[key](layers)
    found = described(layer, layer(inputs))
    for name in ("shape", "dtype", "vocabulary"):
        assert found[name] == known[name], name
    assert set(found["config"]) - UNKNOWN == set(known["config"]) - UNKNOWN
    check(found["result"], known["result"], key)
    compiled = td.function(layer, autograph=False)
    check(plain(compiled(inputs)), known["result"], key)
    json.dumps(layer.get_config())
    twin = type(layer).from_config(layer.get_config())
    assert twin.get_config() == layer.get_config()


def test_flips_mirror_some_images():
    images = wave(40, 3, 4, 2)
    for mode, axes in (("horizontal", 2), ("vertical", 1), ("horizontal_and_vertical", (1, 2))):
        found = np.asarray(layers.RandomFlip(mode, seed=3)(images))
        turned = [np.array_equal(f, np.flip(x[None], axes)[0]) for f, x in zip(found, images)]
        kept = [np.array_equal(f, x) for f, x in zip(found, images)]
        assert all(t != k for t, k in zip(turned, kept)) and 5 < sum(turned) < 35
    with pytest.raises(ValueError, match="mode is one of"):
        layers.RandomFlip("sideways")


def test_augmentation_happens_while_training_only():
    model = td.keras.Sequential([
        layers.RandomFlip("horizontal"), layers.RandomRotation(0.3), layers.RandomZoom(0.2),
        layers.RandomTranslation(0.1, 0.1), layers.RandomBrightness(0.3, value_range=(-1, 1)),
        layers.RandomContrast(0.5, value_range=(-1, 1)),
    ])  # fmt: skip
    images = wave(3, 6, 5, 2)
    np.testing.assert_array_equal(model(images, training=False), images)
    assert not np.allclose(model(images), images)  # where nobody says, as in Keras
    run = td.function(lambda x: model(x, training=True), autograph=False)
    first, second = np.asarray(run(images)), np.asarray(run(images))
    assert first.shape == images.shape and not np.allclose(first, second)
    assert first.min() >= -1 and first.max() <= 1
    np.testing.assert_array_equal(model.predict(images, verbose=0), images)


def test_crops_are_parts_of_the_images():
    images = wave(2, 6, 8, 1)
    parts = [images[:, i : i + 3, j : j + 4] for i in range(4) for j in range(5)]
    layer = layers.RandomCrop(3, 4)
    seen = set()
    for _ in range(30):
        found = np.asarray(layer(images))
        (place,) = [n for n, part in enumerate(parts) if np.array_equal(part, found)]
        seen.add(place)
    assert len(seen) > 5


def test_contrast_keeps_means():
    images = 0.2 * wave(20, 4, 5, 1)
    layer = layers.RandomContrast((0.3, 0.6), value_range=(-1, 1))
    found = np.asarray(layer(images))
    spread = found.std((1, 2, 3)) / images.std((1, 2, 3))
    np.testing.assert_allclose(found.mean((1, 2, 3)), images.mean((1, 2, 3)), atol=1e-6)
    assert 0.7 <= spread.min() < 0.95 and 1.1 < spread.max() <= 1.6


def test_dicts_of_images_and_labels():
    given = {"images": wave(2, 4, 4, 1), "labels": np.array([0, 1])}
    found = layers.Resizing(2, 2)(given)
    assert found["images"].shape == (2, 2, 2, 1) and list(found["labels"]) == [0, 1]
    boxes = {"boxes": np.zeros((2, 1, 4)), "labels": np.zeros((2, 1))}
    with pytest.raises(ValueError, match="bounding_box_format"):
        layers.Resizing(2, 2)({**given, "bounding_boxes": boxes})


def test_datasets_are_adapted_to_and_mapped():
    data = td.data.Dataset.from_tensor_slices(wave(6, 3)).batch(4)
    whole, parts = layers.Normalization(), layers.Normalization()
    whole.adapt(wave(6, 3))
    parts.adapt(data)
    np.testing.assert_allclose(parts(wave(2, 3)), whole(wave(2, 3)), rtol=1e-5)
    mapped = next(iter(data.map(parts)))
    np.testing.assert_allclose(mapped, whole(wave(6, 3)[:4]), rtol=1e-5)
    texts = layers.TextVectorization(output_sequence_length=4)
    texts.adapt(td.data.Dataset.from_tensor_slices(TEXTS).batch(2))
    twin = layers.TextVectorization(output_sequence_length=4)
    twin.adapt(TEXTS)
    assert texts.get_vocabulary() == twin.get_vocabulary()
    found = next(iter(td.data.Dataset.from_tensor_slices(TEXTS).batch(3).map(texts)))
    np.testing.assert_array_equal(found, twin(TEXTS))


def test_vocabularies_go_to_files_and_back(tmp_path):
    layer = layers.StringLookup(mask_token="")
    layer.adapt(WORDS)
    layer.save_assets(tmp_path)
    again = layers.StringLookup(mask_token="")
    again.load_assets(tmp_path)
    assert again.get_vocabulary() == layer.get_vocabulary()
    path = tmp_path / "words.txt"
    path.write_text("b\na\n")
    named = layers.StringLookup(vocabulary=str(path))
    np.testing.assert_array_equal(named(["a", "b", "c"]), [2, 1, 0])


def test_models_begin_with_strings_and_ints():
    inputs = td.keras.Input((1,), dtype="string")
    vectors = layers.TextVectorization(vocabulary=["cat", "dog"], output_sequence_length=3)
    outputs = layers.Embedding(5, 2, mask_zero=True)(vectors(inputs))
    model = td.keras.Model(inputs, layers.GlobalAveragePooling1D()(outputs))
    found = model(np.array([["the cat"], ["dog"]]))
    table = model.layers[2].get_weights()[0]
    np.testing.assert_allclose(found, [(table[1] + table[2]) / 2, table[3]], rtol=1e-5)


def test_unknown_tokens_without_a_place_are_refused():
    layer = layers.IntegerLookup(vocabulary=[1, 2], num_oov_indices=0)
    np.testing.assert_array_equal(layer([2, 1]), [1, 0])
    with pytest.raises(td.errors.InvalidArgumentError, match="must be in the vocabulary"):
        layer([3])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.StringLookup(vocabulary=["a", "a"]), "more than once"),
        (lambda: layers.StringLookup(2, vocabulary=["a", "b"]), "larger than max_tokens"),
        (lambda: layers.StringLookup(output_mode="twice"), "output_mode is one of"),
        (lambda: layers.StringLookup(sparse=True), "sparse=True"),
        (lambda: layers.TextVectorization(ragged=True, output_mode="count"), "ragged=True"),
        (lambda: layers.Discretization(), "bin_boundaries or num_bins"),
        (lambda: layers.CategoryEncoding(), "num_tokens"),
        (lambda: layers.Hashing(0), "num_bins"),
        (lambda: layers.Normalization(axis=0), "batch axis"),
        (lambda: layers.Normalization(mean=1.0), "both `mean` and `variance`"),
        (lambda: layers.Resizing(2, 2, interpolation="area"), "interpolation is one of"),
        (lambda: layers.RandomRotation(2.0), "factor is a number or a pair"),
    ],
)  # fmt: skip
def test_wrong_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()
