"""What layers that change images at random may do: their choices, weights and shapes, and files.

Results that nothing is random in are in the facts of preprocessing.
"""

import numpy as np
import pytest

import treadle as td
from tests.keras.preprocessing_facts.cases import pixels
from treadle import keras
from treadle.keras import layers

pytestmark = pytest.mark.thorough

SHAPE = (6, 8, 10, 3)


def test_mix_up_mixes_images_and_labels_alike():
    images, labels = np.eye(6, dtype="float32")[:, :, None, None], np.eye(6, dtype="float32")
    images = images * np.ones((6, 6, 4, 3), "float32")
    layer = layers.MixUp(alpha=1.0, seed=4)
    for compute in (layer, td.function(layer)):
        found = compute({"images": images, "labels": labels})
        np.testing.assert_allclose(found["images"][:, :, 2, 1], found["labels"], atol=1e-6)
        np.testing.assert_allclose(np.sum(found["labels"], 1), 1, rtol=1e-5)
        own = np.diag(found["labels"])
        assert len({round(float(v), 4) for v in own}) > 2  # each image has a weight of its own
    same = layer({"images": images, "labels": labels}, training=False)
    np.testing.assert_array_equal(same["images"], images)


def test_weights_of_mix_up_are_of_the_beta_distribution():
    images = np.arange(2000, dtype="float32")[:, None, None, None]
    labels = np.eye(2000, dtype="float32")
    own = np.diag(layers.MixUp(alpha=2.0, seed=1)({"images": images, "labels": labels})["labels"])
    assert abs(own.mean() - 0.5) < 0.03 and abs(own.var() - 1 / 20) < 0.01  # of beta(2, 2)


def test_cut_mix_puts_rectangles_of_other_images():
    images = np.ones((6, 20, 30, 1), "float32") * np.arange(6)[:, None, None, None]
    labels = np.eye(6, dtype="float32")
    found = layers.CutMix(factor=1.0, seed=3)({"images": images, "labels": labels})
    changed = 0
    for image, label, own in zip(found["images"].numpy(), found["labels"].numpy(), range(6),
                                 strict=True):  # fmt: skip
        foreign = image[..., 0] != own
        if not foreign.any():
            continue
        changed += 1
        rows, columns = foreign.any(1), foreign.any(0)
        assert foreign[np.ix_(rows, columns)].all()  # one rectangle
        assert len(np.unique(image[foreign])) == 1
        assert abs(label[own] - (1 - foreign.mean())) < 0.1
        assert abs(label[int(image[foreign][0, 0])] - foreign.mean()) < 0.1
    assert changed > 1


@pytest.mark.parametrize(
    "wrapped", [lambda layer: layer, pytest.param(td.function, marks=pytest.mark.thorough)]
)
def test_rand_augment_takes_one_layer_for_the_whole_batch(wrapped):
    """Of strength 0 most layers change nothing; what the others do is known."""
    images = pixels(*SHAPE) * 0.5 + 20
    known = {
        "nothing": images,
        "auto contrast": layers.AutoContrast()(images),
        "equalization": layers.Equalization()(images),
        "solarization": layers.Solarization(0.0, 0.0)(images),
        "posterization": layers.RandomPosterization((1, 1))(images),
        "sharpness": layers.RandomSharpness((0.0, 0.0))(images),
    }
    layer = layers.RandAugment(num_ops=1, factor=0.0, seed=7)
    compute, seen = wrapped(layer), set()
    for _ in range(24):
        found = compute(images)
        same = [k for k, v in known.items() if np.allclose(found, v, atol=1e-2)]
        assert len(same) == 1, same
        seen.update(same)
    assert len(seen) >= 4
    np.testing.assert_array_equal(layer(images, training=False), images)


@pytest.mark.parametrize(
    "wrapped", [lambda layer: layer, pytest.param(td.function, marks=pytest.mark.thorough)]
)
def test_chains_stay_in_the_range_and_differ(wrapped):
    images = pixels(*SHAPE)
    compute = wrapped(layers.AugMix(num_chains=2, chain_depth=1, seed=2))
    found = [np.asarray(compute(images)) for _ in range(3)]
    assert all(f.shape == SHAPE and 0 <= f.min() and f.max() <= 255 for f in found)
    assert not np.allclose(found[0], found[1]) or not np.allclose(found[0], found[2])


def test_a_part_of_the_images_is_changed():
    images = np.repeat(pixels(1, 12, 12, 3), 60, 0)
    for layer in (
        layers.RandomGaussianBlur((0.5, 0.5), seed=1, sigma=(1.0, 1.0)),
        layers.RandomPerspective((0.5, 0.5), scale=0.5, seed=1),
        layers.RandomElasticTransform((0.5, 0.5), scale=(1.0, 1.0), seed=1),
    ):
        found = np.asarray(layer(images))
        changed = [not np.allclose(f, image, atol=1e-3)
                   for f, image in zip(found, images, strict=True)]  # fmt: skip
        assert 15 < sum(changed) < 45, layer.name


def test_constant_images_stay_constant():
    flat = np.full(SHAPE, 90.0, "float32")
    for layer in (
        layers.RandomElasticTransform(1.0, (0.8, 0.8)),
        layers.ContrastLimitedAdaptiveHistogramEqualization(tile_grid_size=(2, 2)),
        layers.RandomColorJitter(contrast_factor=0.9, saturation_factor=0.6),
    ):
        found = np.asarray(layer(flat))
        assert np.ptp(found) < 1e-2, layer.name


def test_sizes_are_drawn_for_the_batch():
    images, heights, widths = np.zeros((2, 20, 30, 1), "float32"), set(), set()
    tall, wide = layers.RandomHeight(0.3, seed=1), layers.RandomWidth((-0.2, 0.4), seed=1)
    for _ in range(20):
        heights.add(tall(images).shape[1])
        widths.add(wide(images[0]).shape[1])
    assert 14 <= min(heights) < max(heights) <= 26
    assert 24 <= min(widths) < max(widths) <= 42
    assert tall(images, training=False).shape == (2, 20, 30, 1)
    assert tall.compute_output_shape((None, 20, 30, 3)) == (None, None, 30, 3)


def test_crossing_of_strings_in_models(tmp_path):
    one = keras.Input((1,), dtype="string", name="one")
    other = keras.Input((1,), dtype="int64", name="other")
    crossed = layers.HashedCrossing(9, output_mode="one_hot")([one, other])
    model = keras.Model([one, other], crossed)
    given = [np.array([["a"], ["b"]]), np.array([[3], [-4]])]
    known = layers.HashedCrossing(9)([x[:, 0] for x in given])
    np.testing.assert_array_equal(np.argmax(model(given), -1), known)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(given), model(given))


IMAGE_LAYERS = {
    "AugMix": {"num_chains": 2, "factor": 0.2, "all_ops": False},
    "ContrastLimitedAdaptiveHistogramEqualization": {"clip_limit": 2.0, "tile_grid_size": (2, 2)},
    "CutMix": {"factor": 0.4},
    "Equalization": {"bins": 64},
    "MixUp": {"alpha": 0.4},
    "RandAugment": {"num_ops": 1, "factor": (0.1, 0.2)},
    "RandomColorJitter": {"hue_factor": 0.3, "brightness_factor": 0.2},
    "RandomElasticTransform": {"scale": 0.5, "fill_mode": "nearest"},
    "RandomGaussianBlur": {"kernel_size": (5, 3), "sigma": 0.3},
    "RandomHeight": {"factor": 0.1},
    "RandomPerspective": {"scale": 0.2, "interpolation": "nearest"},
    "RandomWidth": {"factor": 0.2, "interpolation": "nearest"},
    "ThresholdedReLU": {"theta": 90.0},
}


def test_layers_come_back_from_archives(tmp_path):
    images = pixels(2, 8, 10, 3)
    for name, settings in IMAGE_LAYERS.items():
        model = keras.Sequential([keras.Input((8, 10, 3)), getattr(layers, name)(**settings)])
        model.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        assert again.layers[-1].get_config() == model.layers[-1].get_config(), name
        np.testing.assert_array_equal(again(images, training=False), model(images, training=False))


def test_layers_change_the_images_of_datasets():
    images, labels = pixels(4, 8, 10, 3), np.eye(4, dtype="float32")
    data = td.data.Dataset.from_tensor_slices({"images": images, "labels": labels}).batch(2)
    for layer in (layers.CutMix(), layers.RandAugment(num_ops=1)):
        for batch in data.map(layer):
            assert batch["images"].shape == (2, 8, 10, 3), layer.name
            assert batch["labels"].shape == (2, 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.RandomGaussianBlur(kernel_size=4), "odd number"),
        (lambda: layers.RandomPerspective(scale=2.0), "range \\[0,1\\]"),
        (lambda: layers.RandomElasticTransform(fill_mode="mirror image"), "fill_mode"),
        (lambda: layers.RandAugment(factor=2.0), "factor"),
        (lambda: layers.RandomHeight((0.5, 0.1)), "rising order"),
        (lambda: layers.ThresholdedReLU(-1.0), ">=0"),
        (lambda: layers.HashedCrossing(5, "count"), "output_mode"),
        (lambda: layers.HashedCrossing(5)(np.array([1, 2])), "two inputs"),
        (lambda: layers.HashedCrossing(5)([np.array([1]), np.array([1.0])]), "ints and strings"),
        (lambda: layers.HashedCrossing(5)([np.array([1]), np.array([1, 2])]), "one shape"),
        (
            lambda: layers.RandomElasticTransform()(keras.Input((None, 5, 3))), "known size"
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(make, message):
    with pytest.raises((ValueError, NotImplementedError), match=message):
        make()
