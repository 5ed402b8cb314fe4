"""Boxes and masks that change with their images, recorded from Keras and then expected of treadle.

A case takes ``keras`` of the module under test (`tensorflow` or `treadle`) and gives arrays by
names. Layers that draw are given what they would draw, or have ranges of one value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FORMATS = (
    "xyxy", "yxyx", "xywh", "center_xywh", "center_yxhw", "rel_xyxy", "rel_yxyx", "rel_xywh",
    "rel_center_xywh",
)  # fmt: skip
CORNERS = np.array([[2.0, 1.0, 6.5, 5.0], [-3.0, 4.0, 4.0, 30.0], [30.0, 2.0, 40.0, 6.0]], "f")
BATCH = np.stack([CORNERS, CORNERS[::-1] * 0.5 + 1.0])
INSIDE = np.array([[[2.0, 1.0, 6.5, 5.0], [0.0, 3.0, 7.0, 9.5]],
                   [[1.0, 1.0, 2.0, 8.0], [4.0, 0.5, 6.0, 3.0]]], "f")  # fmt: skip
ANCHORS = np.array([[1.0, 2.0, 5.0, 9.0], [0.0, 0.0, 3.0, 3.0], [4.0, 4.0, 20.0, 9.0]], "f")
HEIGHT, WIDTH = 10, 8


def _data(labels: bool = True, masks: bool = False) -> dict[str, Any]:
    size = (2, HEIGHT, WIDTH)
    found = {
        "images": np.arange(2 * HEIGHT * WIDTH * 3, dtype="f").reshape(*size, 3) % 251,
        "bounding_boxes": {
            "boxes": INSIDE.copy(), "labels": np.array([[1, 2], [3, 0]], "int32"),
        },
    }  # fmt: skip
    if labels:
        found["labels"] = np.array([[1.0, 0.0], [0.0, 1.0]], "f")
    if masks:
        found["segmentation_masks"] = (found["images"][..., :1] > 100).astype("uint8") * 3
    return found


def _in(keras: Any, data: dict[str, Any], form: str) -> dict[str, Any]:
    """The data with boxes of a format."""
    boxes = data["bounding_boxes"]["boxes"]
    boxes = keras.utils.bounding_boxes.convert_format(boxes, "xyxy", form, HEIGHT, WIDTH)
    data["bounding_boxes"]["boxes"] = np.asarray(boxes)
    return data


def _flat(found: Any) -> dict[str, Any]:
    parts = dict(found)
    boxes = parts.pop("bounding_boxes", {})
    return {name: np.asarray(value) for name, value in (parts | {
        f"boxes {name}" if name == "labels" else name: value for name, value in boxes.items()
    }).items()}  # fmt: skip


def _called(make: Any, form: str = "xyxy", **given: Any) -> Any:
    def case(keras: Any) -> dict[str, Any]:
        layer = make(keras.layers, form)
        return _flat(layer(_in(keras, _data(**given), form)))

    return case


def _moved(make: Any, drawn: Any, form: str = "xyxy") -> Any:
    def case(keras: Any) -> dict[str, Any]:
        layer = make(keras.layers, form)
        boxes = _in(keras, _data(), form)["bounding_boxes"]
        transformation = {name: np.asarray(value) for name, value in drawn.items()}
        transformation["input_shape"] = (2, HEIGHT, WIDTH, 3)
        return _flat(layer.transform_bounding_boxes(boxes, transformation, training=True))

    return case


def _of(function: str, *args: Any, **kwargs: Any) -> Any:
    def case(keras: Any) -> dict[str, Any]:
        found = getattr(keras.utils.bounding_boxes, function)(*args, **kwargs)
        return _flat(found) if isinstance(found, dict) else {"result": np.asarray(found)}

    return case


def _labelled(boxes: Any) -> dict[str, Any]:
    return {"boxes": boxes.copy(), "labels": np.array([5, 6, 7], "int32")}


_ANGLES = (
    np.array([30.0, -70.0], "f"), np.array([0.1, 0.0], "f"), np.array([-0.2, 0.3], "f"),
    np.array([1.0, 0.7], "f"), np.array([5.0, -10.0], "f"), np.array([0.0, 12.0], "f"),
)  # fmt: skip
_END = np.array([[[0.0, 0.0], [8.2, 0.0], [0.0, 12.7], [9.3, 10.5]],
                 [[0.0, 0.0], [4.2, 0.0], [0.0, 6.7], [4.3, 7.5]]], "f")  # fmt: skip
_START = np.array([[[0.0, 0.0], [7.0, 0.0], [0.0, 9.0], [7.0, 9.0]]] * 2, "f")

CASES: dict[str, Any] = {
    **{
        f"{source} to {target}": _of("convert_format", BATCH, source, target, HEIGHT, WIDTH)
        for source in FORMATS for target in FORMATS
    },
    "formats of ints": _of("convert_format", np.array([[1, 2, 5, 7]]), "XYXY", "xywh"),
    "clip": _of("clip_to_image_size", _labelled(CORNERS), HEIGHT, WIDTH),
    "clip relative": _of(
        "clip_to_image_size", _labelled(CORNERS / 8), bounding_box_format="rel_xyxy"
    ),
    "affine": _of("affine_transform", BATCH, *_ANGLES, HEIGHT, WIDTH),
    "affine elsewhere": _of("affine_transform", BATCH, *_ANGLES, 20, 12, 0.25, 0.9),
    "crop": _of("crop", BATCH, 2, 1, 4, 5),
    "pad": _of("pad", BATCH, 2, 1),
    "deltas": _of("encode_box_to_deltas", ANCHORS, BATCH, "xyxy", "xyxy"),
    "deltas of others": _of(
        "encode_box_to_deltas", ANCHORS, BATCH / 10, "yxyx", "rel_xywh",
        encoding_format="center_xywh", variance=[0.1, 0.1, 0.2, 0.2], image_shape=(10, 8, 3),
    ),
    "boxes of deltas": _of("decode_deltas_to_boxes", ANCHORS, BATCH / 20, "xyxy", "xyxy"),
    "boxes of deltas of levels": _of(
        "decode_deltas_to_boxes", {"a": ANCHORS, "b": ANCHORS * 2},
        {"a": BATCH / 9, "b": -BATCH / 9}, "xyxy", "rel_yxyx", encoded_format="center_xywh",
        variance=[0.1, 0.1, 0.2, 0.2], image_shape=(10, 8, 3),
    ),
    "iou": _of("compute_iou", CORNERS, ANCHORS, "xyxy"),
    "iou of batches": _of("compute_iou", BATCH, BATCH[::-1] + 0.5, "xywh"),
    "iou of a batch": _of("compute_iou", BATCH, ANCHORS, "rel_yxyx", image_shape=(10, 8, 3)),
    "iou masked": _of(
        "compute_iou", BATCH - 3.5, BATCH, "xyxy", use_masking=True, mask_val=-2
    ),
    "ciou": _of("compute_ciou", CORNERS, ANCHORS, "xyxy"),
    "ciou of centers": _of("compute_ciou", BATCH, BATCH[::-1] + 0.5, "center_xywh"),
    **{
        f"resizing {form}": _called(lambda k, f: k.Resizing(5, 6, bounding_box_format=f), form)
        for form in FORMATS
    },
    "resizing masks": _called(
        lambda k, f: k.Resizing(5, 6, bounding_box_format=f), masks=True
    ),
    "resizing padded": _called(
        lambda k, f: k.Resizing(6, 12, pad_to_aspect_ratio=True, bounding_box_format=f),
    ),
    "resizing cropped": _called(
        lambda k, f: k.Resizing(6, 12, crop_to_aspect_ratio=True, bounding_box_format=f),
        "rel_xywh",
    ),
    "center": _called(lambda k, f: k.CenterCrop(5, 6, bounding_box_format=f), "center_yxhw"),
    "center masks": _called(lambda k, f: k.CenterCrop(5, 6, bounding_box_format=f), masks=True),
    "center of small": _called(lambda k, f: k.CenterCrop(14, 6, bounding_box_format=f)),
    "most": _called(lambda k, f: k.MaxNumBoundingBoxes(4, bounding_box_format=f)),
    "fewer": _called(lambda k, f: k.MaxNumBoundingBoxes(1, bounding_box_format=f)),
    "flipped": _moved(
        lambda k, f: k.RandomFlip("horizontal", bounding_box_format=f),
        {"flips": np.array([True, False])[:, None, None, None]}, "rel_xywh",
    ),
    "flipped down": _moved(
        lambda k, f: k.RandomFlip("vertical", bounding_box_format=f),
        {"flips": np.array([True, True])[:, None, None, None]},
    ),
    "flipped both ways": _moved(
        lambda k, f: k.RandomFlip(bounding_box_format=f),
        {"flips": np.array([False, True])[:, None, None, None]}, "yxyx",
    ),
    "turned": _called(
        lambda k, f: k.RandomRotation((0.1, 0.1), bounding_box_format=f, fill_mode="constant"),
        masks=True,
    ),
    "zoomed in": _called(
        lambda k, f: k.RandomZoom((-0.4, -0.4), (-0.2, -0.2), bounding_box_format=f), "xywh",
        masks=True,
    ),
    "zoomed out": _called(lambda k, f: k.RandomZoom((0.5, 0.5), bounding_box_format=f)),
    "shifted": _called(
        lambda k, f: k.RandomTranslation((0.3, 0.3), (-0.4, -0.4), bounding_box_format=f),
        "center_xywh", masks=True,
    ),
    "slanted": _moved(
        lambda k, f: k.RandomShear(0.5, 0.5, bounding_box_format=f),
        {"shear_factor": np.array([[0.4, 0.2], [-0.3, -0.1]], "f")},
    ),
    "tilted": _moved(
        lambda k, f: k.RandomPerspective(bounding_box_format=f),
        {"apply_perspective": np.array([True, True]), "start_points": _START, "end_points": _END},
    ),
    "tilted one": _moved(
        lambda k, f: k.RandomPerspective(bounding_box_format=f),
        {"apply_perspective": np.array([False, True]), "start_points": _START, "end_points": _END},
    ),
    "brighter": _called(
        lambda k, f: k.RandomBrightness((0.2, 0.2), bounding_box_format=f), "rel_yxyx", masks=True
    ),
    "inverted": _called(
        lambda k, f: k.RandomInvert((1.0, 1.0), bounding_box_format=f), "rel_yxyx", labels=False
    ),
}  # fmt: skip
