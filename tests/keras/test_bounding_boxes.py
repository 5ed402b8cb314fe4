"""Boxes, masks and labels that change with their images: as in Keras, and as the pixels do."""

import json
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.keras.box_facts.cases import CASES
from treadle import keras
from treadle.keras import layers
from treadle.keras.utils import bounding_boxes

FACTS = json.loads((Path(__file__).parent / "box_facts" / "facts.json").read_text())


def test_every_case_is_recorded():
    assert set(CASES) == set(FACTS) - {"tensorflow", "keras"}


@pytest.mark.parametrize("key", CASES)
def test_fact(key):
    found = CASES[key](keras)
    assert set(found) == set(FACTS[key])
    for name, known in FACTS[key].items():
        value = found[name]
        assert [list(value.shape), str(value.dtype)] == [known["shape"], known["dtype"]], name
        np.testing.assert_allclose(
            value.reshape(-1), known["numbers"], rtol=1e-4, atol=2e-4, err_msg=f"{key}: {name}"
        )


# -- boxes follow the pixels -------------------------------------------------------------------

SIZE = (24, 40)


def pictures(count, seed=3, size=SIZE):
    """Dark images with one bright rectangle each, and the box around it in pixels."""
    draw = np.random.default_rng(seed)
    images, boxes = np.zeros((count, *size, 1), "float32"), []
    for image in images:
        top, left = draw.integers(2, size[0] // 2), draw.integers(2, size[1] // 2)
        bottom, right = top + draw.integers(4, 10), left + draw.integers(5, 16)
        image[top:bottom, left:right] = 100.0
        boxes.append([[left, top, right, bottom]])
    return images, np.array(boxes, "float32")


def around(image):
    """The box around the bright pixels of an image; None where there are none."""
    rows, columns = np.nonzero(np.asarray(image)[..., 0] > 50.0)
    if not len(rows):
        return None
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


MOVING = {
    "flip": (lambda f: layers.RandomFlip(seed=1, bounding_box_format=f), 0.01),
    "crop": (lambda f: layers.RandomCrop(16, 22, seed=1, bounding_box_format=f), 0.01),
    "crop of small ones": (lambda f: layers.RandomCrop(30, 44, bounding_box_format=f), 1.1),
    "center": (lambda f: layers.CenterCrop(18, 30, bounding_box_format=f), 0.01),
    "translation": (
        lambda f: layers.RandomTranslation(
            0.3, 0.3, "constant", seed=1, bounding_box_format=f
        ), 1.1
    ),
    "zoom": (
        lambda f: layers.RandomZoom(0.3, 0.2, "constant", seed=1, bounding_box_format=f), 1.6
    ),
    "rotation by quarters": (
        lambda f: layers.RandomRotation((0.5, 0.5), "constant", bounding_box_format=f), 1.1
    ),
    "resizing": (lambda f: layers.Resizing(48, 20, bounding_box_format=f), 1.1),
}  # fmt: skip


@pytest.mark.parametrize("form", ["xyxy", "rel_yxyx", pytest.param(
    "center_xywh", marks=pytest.mark.thorough)])  # fmt: skip
@pytest.mark.parametrize("kind", MOVING)
def test_boxes_stay_around_what_they_are_of(kind, form):
    """In every format; Keras 3.15 takes boxes of all formats for corners where it turns them, and
    exchanges x and y where it crops."""
    make, tolerance = MOVING[kind]
    layer = make(form)
    images, boxes = pictures(12)
    given = bounding_boxes.convert_format(boxes, "xyxy", form, *SIZE)
    labels = np.full((12, 1), 4, "int32")

    def call(x, b):
        return layer({"images": x, "bounding_boxes": {"boxes": b, "labels": labels}})

    for compute in (call, td.function(call)):
        found = compute(images, given)
        height, width = found["images"].shape[1:3]
        boxes_now = found["bounding_boxes"]
        corners = bounding_boxes.convert_format(boxes_now["boxes"], form, "xyxy", height, width)
        for image, box, label in zip(found["images"], corners, boxes_now["labels"], strict=True):
            known = around(image)
            if known is not None and int(label[0]) == 4:
                np.testing.assert_allclose(box[0], known, atol=tolerance)
            elif known is None:
                area = (box[0, 2] - box[0, 0]) * (box[0, 3] - box[0, 1])
                assert int(label[0]) == -1 or area < 3 * max(box[0])


@pytest.mark.parametrize("make", [
    lambda: layers.RandomFlip(seed=4), lambda: layers.RandomRotation(0.2, "constant", "nearest"),
    lambda: layers.RandomZoom(0.3, 0.3, "constant", "nearest"),
    lambda: layers.RandomShear(0.3, 0.3, "nearest", "constant"),
    lambda: layers.RandomPerspective(1.0, 0.6, "nearest"),
    lambda: layers.RandomElasticTransform(1.0, (0.9, 0.9), "nearest"),
    lambda: layers.RandomCrop(9, 11), lambda: layers.CutMix(), lambda: layers.MixUp(),
    lambda: layers.RandAugment((0, 100), num_ops=3, factor=0.4, interpolation="nearest"),
    lambda: layers.RandomHeight(0.3, "nearest"),
])  # fmt: skip
def test_masks_change_as_their_images_do(make):
    """Images that are masks, in 0 and 100, and the masks themselves. They have three channels: any
    of RandAugment's layers may be drawn, and one of them makes colours grey."""
    images = np.repeat(pictures(6, size=(24, 24))[0], 3, -1)
    layer = make()
    found = layer({"images": images, "segmentation_masks": images})
    where = np.asarray(found["images"]) > 50.0
    masks = np.asarray(found["segmentation_masks"])
    if isinstance(layer, layers.RandAugment):  # shades of masks stay, as they are classes
        assert masks.shape == where.shape and set(np.unique(masks)) <= {0.0, 100.0}
        return
    np.testing.assert_array_equal(masks > 50.0, where)
    same = layer({"images": images, "segmentation_masks": images}, training=False)
    np.testing.assert_array_equal(same["segmentation_masks"], images)


@pytest.mark.parametrize(
    "wrapped", [lambda layer: layer, pytest.param(td.function, marks=pytest.mark.thorough)]
)
def test_rand_augment_moves_boxes_with_images(wrapped):
    layer = layers.RandAugment((0, 100), num_ops=2, factor=0.2, bounding_box_format="xyxy")
    kinds = layers.RandomTranslation, layers.RandomRotation
    moving = [kind for kind in layer._kinds if isinstance(kind, kinds)]
    layer._kinds = moving  # the others change shades, which do not tell where a thing is
    for kind in moving:
        kind.fill_mode = "constant"
    images, boxes = pictures(8, size=(64, 64))
    data = {"images": images, "bounding_boxes": {"boxes": boxes, "labels": np.ones((8, 1), "i")}}
    found = wrapped(layer)(data)
    for image, box in zip(found["images"], found["bounding_boxes"]["boxes"], strict=True):
        known = around(image)
        if known is not None:  # boxes around turned boxes are larger than what is in them
            assert np.all(np.asarray(box[0, :2]) <= np.array(known[:2]) + 2.5)
            assert np.all(np.asarray(box[0, 2:]) >= np.array(known[2:]) - 2.5)


def test_mix_up_gives_the_boxes_of_both_images():
    images, boxes = pictures(4)
    labels = np.arange(4)[:, None]
    layer = layers.MixUp(alpha=1.0, seed=2, bounding_box_format="xyxy")
    found = layer({"images": images, "bounding_boxes": {"boxes": boxes, "labels": labels}})
    found = found["bounding_boxes"]
    assert found["boxes"].shape == (4, 2, 4) and found["labels"].shape == (4, 2)
    for own in range(4):
        assert int(found["labels"][own, 0]) == own
        np.testing.assert_array_equal(
            found["boxes"][own, 1], boxes[int(found["labels"][own, 1]), 0]
        )


def test_boxes_of_datasets_and_of_ragged_tensors():
    images, boxes = pictures(6)
    labels = np.arange(6, dtype="int32")[:, None]
    data = {"images": images, "bounding_boxes": {"boxes": boxes, "labels": labels}}
    chain = layers.Pipeline([
        layers.RandomFlip("horizontal", bounding_box_format="xyxy"),
        layers.Resizing(12, 20, bounding_box_format="xyxy"),
        layers.MaxNumBoundingBoxes(3, bounding_box_format="xyxy"),
    ])  # fmt: skip
    single = td.data.Dataset.from_tensor_slices(data).map(chain).batch(6)
    batched = td.data.Dataset.from_tensor_slices(data).batch(6).map(chain)
    for dataset in (single, batched):
        found = next(iter(dataset))
        assert found["bounding_boxes"]["boxes"].shape == (6, 3, 4)
        np.testing.assert_array_equal(
            found["bounding_boxes"]["labels"], np.pad(labels, [(0, 0), (0, 2)], constant_values=-1)
        )
        for image, box in zip(found["images"], found["bounding_boxes"]["boxes"], strict=True):
            np.testing.assert_allclose(box[0], around(image), atol=1.1)
    ragged = {
        "images": images[:2],
        "bounding_boxes": {
            "boxes": td.RaggedTensor.from_row_lengths(boxes[:3, 0], [2, 1]),
            "labels": td.RaggedTensor.from_row_lengths(np.array([5, 6, 7]), [2, 1]),
        },
    }
    found = layers.Resizing(48, 80, bounding_box_format="xyxy")(ragged)["bounding_boxes"]
    np.testing.assert_array_equal(found["labels"], [[5, 6], [7, -1]])
    np.testing.assert_allclose(found["boxes"][0], boxes[:2, 0] * 2)
    np.testing.assert_array_equal(found["boxes"][1, 1], np.zeros(4))


def test_transformations_can_be_drawn_and_used_again():
    images, _ = pictures(5)
    layer = layers.RandomFlip("vertical", seed=3)
    drawn = layer.get_random_transformation(images)
    once = layer.transform_images(images, drawn)
    np.testing.assert_array_equal(layer.transform_images(images, drawn), once)
    chosen = np.asarray(drawn["flips"]).reshape(-1)
    for image, flipped, own in zip(once, chosen, images, strict=True):
        np.testing.assert_array_equal(image, own[::-1] if flipped else own)
    assert layer.get_random_transformation(images, training=False) is None
    seed = td.constant([7, 9])
    again = [layer.get_random_transformation(images, seed=seed)["flips"] for _ in range(2)]
    np.testing.assert_array_equal(*again)
    one = layer.transform_single_image(images[0], {"flips": np.array([[[True]]])})
    np.testing.assert_array_equal(one, images[0][::-1])


def test_the_format_is_in_the_config():
    layer = layers.RandomFlip(bounding_box_format="xywh")
    assert layer.get_config()["bounding_box_format"] == "xywh"
    assert layers.RandomFlip.from_config(layer.get_config()).bounding_box_format == "xywh"
    assert "bounding_box_format" not in layers.RandomFlip().get_config()


def test_boxes_in_channels_first():
    images, boxes = pictures(4)
    first = np.transpose(images, [0, 3, 1, 2])
    layer = layers.RandomCrop(16, 22, data_format="channels_first", bounding_box_format="xyxy")
    data = {"images": first, "bounding_boxes": {"boxes": boxes, "labels": np.ones((4, 1), "i")}}
    found = layer(data)
    assert found["images"].shape == (4, 1, 16, 22)
    for image, box in zip(found["images"], found["bounding_boxes"]["boxes"], strict=True):
        known = around(np.transpose(image, [1, 2, 0]))
        if known is not None:
            np.testing.assert_allclose(box[0], known, atol=0.01)


def test_errors():
    images, boxes = pictures(2)
    data = {"images": images, "bounding_boxes": {"boxes": boxes, "labels": np.ones((2, 1), "i")}}
    with pytest.raises(ValueError, match="bounding_box_format='xyxy'"):
        layers.RandomFlip()(data)
    layer = layers.Resizing(4, 4, bounding_box_format="xyxy")
    with pytest.raises(ValueError, match="keys 'boxes' and 'labels'"):
        layer({"images": images, "bounding_boxes": {"boxes": boxes}})
    with pytest.raises(ValueError, match=r"boxes.shape"):
        layer({"images": images, "bounding_boxes": {"boxes": boxes, "labels": np.ones(2, "i")}})
    for kind in (layers.RandomElasticTransform, layers.CutMix, layers.RandomHeight):
        given = {"factor": 0.3} if kind is layers.RandomHeight else {}
        with pytest.raises(NotImplementedError, match="boxes"):
            kind(bounding_box_format="xyxy", **given)(data)
    with pytest.raises(ValueError, match="a format of boxes is one of xyxy"):
        bounding_boxes.convert_format(boxes, "xyxy", "corners")
    with pytest.raises(ValueError, match="`height` and `width`"):
        bounding_boxes.convert_format(boxes, "xyxy", "rel_xyxy")
    with pytest.raises(ValueError, match="last dimension of 4"):
        bounding_boxes.convert_format(np.zeros((2, 3)), "xyxy", "xywh")
    with pytest.raises(NotImplementedError, match="convert_format makes them so"):
        bounding_boxes.crop(boxes, 0, 0, 2, 2, bounding_box_format="xywh")
