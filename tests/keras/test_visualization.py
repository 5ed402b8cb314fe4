"""Boxes and classes on images, and images side by side."""

import numpy as np
import pytest

import treadle as td

keras = td.keras
visualization = keras.visualization

IMAGES = np.full((2, 40, 60, 3), 10, "uint8")


def test_boxes_are_drawn_around_things():
    boxes = np.array([[[5, 6, 30, 20], [0, 0, 0, 0]]] * 2, "float32")
    given = {"boxes": boxes, "labels": np.array([[1, -1], [1, -1]])}
    found = visualization.draw_bounding_boxes(
        IMAGES, given, "xyxy", color=(200, 0, 0), line_thickness=1
    )
    assert found.shape == IMAGES.shape and found.dtype == np.uint8
    changed = (found != IMAGES).any(-1)[0]
    expected = np.zeros((40, 60), bool)
    expected[6, 5:31] = expected[20, 5:31] = True
    expected[6:21, 5] = expected[6:21, 30] = True
    np.testing.assert_array_equal(changed, expected)
    assert tuple(found[0, 6, 5]) == (200, 0, 0)
    # The format is another one, floats to 1 are taken as such, and channels may be first.
    relative = {"boxes": np.array([[[6 / 40, 5 / 60, 20 / 40, 30 / 60]]] * 2, "float32")}
    relative["labels"] = np.array([[1], [1]])
    first = (IMAGES / 255.0).astype("float32").transpose(0, 3, 1, 2)
    again = visualization.draw_bounding_boxes(
        first, {**relative, "boxes": relative["boxes"][..., [1, 0, 3, 2]]}, "rel_xyxy",
        color=(200, 0, 0), line_thickness=1, data_format="channels_first",
    )  # fmt: skip
    np.testing.assert_array_equal((again[0] == (200, 0, 0)).all(-1), expected)


def test_texts_say_what_things_are():
    given = {
        "boxes": td.constant([[[5.0, 25.0, 30.0, 38.0]]]), "labels": np.array([[3]]),
        "confidences": np.array([[0.5]]),
    }  # fmt: skip
    image = np.zeros((1, 40, 60, 3), "uint8")
    plain = visualization.draw_bounding_boxes(image, given, "xyxy", {4: "other"})
    named = visualization.draw_bounding_boxes(image, given, "xyxy", {3: "cat"}, font_scale=0.5)
    assert (named != plain).any()
    with pytest.raises(ValueError, match="batched 4D"):
        visualization.draw_bounding_boxes(image[0], given, "xyxy")
    with pytest.raises(TypeError, match="should be a dict"):
        visualization.draw_bounding_boxes(image, [1], "xyxy")
    with pytest.raises(ValueError, match="'boxes' and 'labels'"):
        visualization.draw_bounding_boxes(image, {"boxes": [1]}, "xyxy")


def test_pixels_have_the_colors_of_their_classes():
    classes = np.zeros((2, 40, 60, 1), "int32")
    classes[:, :10] = 1
    classes[:, 30:] = -1
    colors = {0: (0, 0, 0), 1: (250, 0, 100)}
    found = visualization.draw_segmentation_masks(IMAGES, classes, 2, colors, alpha=0.5)
    assert tuple(found[0, 0, 0]) == (130, 5, 55)
    assert tuple(found[0, 20, 0]) == (5, 5, 5)
    assert tuple(found[0, 35, 0]) == (10, 10, 10)
    plain = visualization.draw_segmentation_masks(IMAGES, classes[..., 0], 2, colors, blend=False)
    assert plain.dtype == np.float32 and tuple(plain[0, 0, 0]) == (250, 0, 100)
    with pytest.raises(TypeError, match="integer dtype"):
        visualization.draw_segmentation_masks(IMAGES, classes.astype("float32"))


def test_galleries(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    boxes = {"boxes": np.array([[[5, 6, 30, 20]]] * 2, "float32"), "labels": np.ones((2, 1))}
    classes = np.ones((2, 40, 60, 1), "int32")
    visualization.plot_image_gallery(
        IMAGES, y_true=[0, 1], y_pred=[1, 1], label_map={0: "a"}, path=tmp_path / "images.png"
    )
    visualization.plot_bounding_box_gallery(
        IMAGES, "xyxy", boxes, boxes, legend=True, path=tmp_path / "boxes.png"
    )
    visualization.plot_segmentation_mask_gallery(
        IMAGES, 2, y_true=classes, y_pred=classes, path=tmp_path / "masks.png"
    )
    for name in ("images", "boxes", "masks"):
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match="label_map"):
        visualization.plot_image_gallery(IMAGES, y_true=[0, 1])
