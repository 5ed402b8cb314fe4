"""`keras.preprocessing` of Keras 2 programs gives what Keras gives, drawn numbers included."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.keras.generator_facts.cases import CASES, IMAGES, LABELS, pictures, results
from treadle import keras
from treadle.keras.preprocessing import image, sequence, text

FACTS = np.load(Path(__file__).parent / "generator_facts" / "facts.npz")
DESCRIBED = json.loads(str(FACTS["described"]))["cases"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("pictures")
    pictures(place)
    return place


def test_every_case_is_recorded():
    assert set(CASES) == set(DESCRIBED)


@pytest.mark.parametrize("key", CASES)
def test_fact(key, folder):
    if "frame" in key:
        pytest.importorskip("pandas")
    found, known = results(key, keras.preprocessing, folder), DESCRIBED[key]
    assert len(found) == len(known)
    number = 0
    for value, expected in zip(found, known, strict=True):
        if expected is not None:
            assert (value if isinstance(value, str) else value.tolist()) == expected
            continue
        wanted = FACTS[f"{key}/{number}"]
        assert value.shape == wanted.shape
        np.testing.assert_allclose(value, wanted, rtol=2e-4, atol=2e-3, err_msg=f"{key} {number}")
        number += 1


def test_a_model_is_trained_on_generated_batches(folder):
    model = keras.Sequential([
        keras.Input((6, 5, 3)), keras.layers.Flatten(), keras.layers.Dense(2, "softmax"),
    ])  # fmt: skip
    model.compile("sgd", "sparse_categorical_crossentropy")
    generator = image.ImageDataGenerator(rescale=1 / 255, validation_split=0.3)
    flow = generator.flow(IMAGES, LABELS, batch_size=2, subset="training", seed=1)
    kept = generator.flow(IMAGES, LABELS, batch_size=2, subset="validation", seed=1)
    history = model.fit(flow, epochs=2, validation_data=kept, verbose=0).history
    assert len(history["loss"]) == len(history["val_loss"]) == 2
    assert model.predict(generator.flow(IMAGES, batch_size=4, shuffle=False), verbose=0).shape == (
        7, 2,
    )  # fmt: skip
    one = generator.flow_from_directory(folder, (6, 5), class_mode="sparse", classes=["a", "b"])
    assert model.evaluate(one, verbose=0) > 0


def test_what_is_wrong_is_said(folder, tmp_path):
    with pytest.raises(ValueError, match="rank 4"):
        image.ImageDataGenerator().flow(IMAGES[0])
    with pytest.raises(ValueError, match="same length"):
        image.ImageDataGenerator().flow(IMAGES, LABELS[:3])
    with pytest.raises(ValueError, match="different number of classes"):
        generator = image.ImageDataGenerator(validation_split=0.5)
        generator.flow(IMAGES, np.arange(7), subset="training")
    with pytest.raises(ValueError, match="zoom_range"):
        image.ImageDataGenerator(zoom_range="much")
    with pytest.raises(ValueError, match="class_mode"):
        image.ImageDataGenerator().flow_from_directory(folder, class_mode="raw")
    with pytest.raises(ValueError, match="color mode"):
        image.ImageDataGenerator().flow_from_directory(folder, color_mode="gray")
    with pytest.warns(UserWarning, match="hasn't been fit"):
        next(image.ImageDataGenerator(featurewise_center=True).flow(IMAGES))
    with pytest.warns(UserWarning, match="overrides"):
        image.ImageDataGenerator(zca_whitening=True)
    with pytest.raises(ValueError, match="distinct"):
        image.apply_affine_transform(IMAGES[0], 3, row_axis=1, col_axis=1)
    with pytest.raises(ValueError, match="no part of the sequence"):
        sequence.TimeseriesGenerator([1, 2], [1, 2], 3)
    with pytest.raises(TypeError, match="Unrecognized"):
        text.Tokenizer(words=3)
    with pytest.raises(ValueError, match="fit on some text"):
        text.Tokenizer().texts_to_matrix(["a"])


def test_images_are_written_as_they_are_given(tmp_path):
    generator = image.ImageDataGenerator(rotation_range=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        next(generator.flow(IMAGES, batch_size=3, save_to_dir=tmp_path, save_prefix="seen"))
    assert len(list(tmp_path.glob("seen_*.png"))) == 3
