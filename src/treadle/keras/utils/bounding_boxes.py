"""``td.keras.utils.bounding_boxes``: boxes around the things in images.

A box is four numbers; a format says which. ``"xyxy"`` is left, top, right and bottom, in pixels.
Formats that begin with ``rel_`` count in widths and heights of the image. Boxes are [..., N, 4].
Where a function takes boxes with the numbers of their classes, these are a dict of "boxes" and
"labels"; a label of -1 marks a box that is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import treadle as td
from treadle.keras.config import epsilon
from treadle.names import missing_in

_Parts = tuple[td.Tensor, td.Tensor, td.Tensor, td.Tensor]

# For each format: the corners (left, top, right, bottom) of its four numbers, and the way back.
_FORMATS: dict[str, tuple[Callable[..., _Parts], Callable[..., _Parts]]] = {
    "xyxy": (
        lambda left, top, right, bottom: (left, top, right, bottom),
        lambda left, top, right, bottom: (left, top, right, bottom),
    ),
    "yxyx": (
        lambda top, left, bottom, right: (left, top, right, bottom),
        lambda left, top, right, bottom: (top, left, bottom, right),
    ),
    "xywh": (
        lambda left, top, wide, high: (left, top, left + wide, top + high),
        lambda left, top, right, bottom: (left, top, right - left, bottom - top),
    ),
    "center_xywh": (
        lambda x, y, wide, high: (x - wide / 2.0, y - high / 2.0, x + wide / 2.0, y + high / 2.0),
        lambda left, top, right, bottom: (
            left + (right - left) / 2.0, top + (bottom - top) / 2.0, right - left, bottom - top
        ),
    ),
    "center_yxhw": (
        lambda y, x, high, wide: (x - wide / 2.0, y - high / 2.0, x + wide / 2.0, y + high / 2.0),
        lambda left, top, right, bottom: (
            top + (bottom - top) / 2.0, left + (right - left) / 2.0, bottom - top, right - left
        ),
    ),
}  # fmt: skip
_RELATIVE = "rel_"
SUPPORTED_FORMATS = (
    *_FORMATS, *(f"{_RELATIVE}{name}" for name in ("xyxy", "yxyx", "xywh", "center_xywh")),
)  # fmt: skip


def _numbers(boxes: Any) -> list[td.Tensor]:
    """The four numbers of boxes, each [..., 1]."""
    return list(td.split(boxes, 4, axis=-1))


def _joined(parts: Any) -> td.Tensor:
    return td.concat(list(parts), -1)


def _as_boxes(boxes: Any, dtype: Any) -> td.Tensor:
    found = td.cast(td.convert_to_tensor(boxes), dtype)
    if len(found.shape) == 0 or found.shape[-1] != 4:
        raise ValueError(
            "`boxes` must be a tensor with the last dimension of 4. Received: "
            f"boxes.shape={found.shape}"
        )
    return found


def _known(name: str) -> str:
    known = name.lower()
    if known not in SUPPORTED_FORMATS:
        raise ValueError(
            f"a format of boxes is one of {', '.join(SUPPORTED_FORMATS)}, got {name!r}"
        )
    return known


def _corners_only(bounding_box_format: str, function: str) -> None:
    if bounding_box_format != "xyxy":
        raise NotImplementedError(
            f"{function} takes boxes of the format 'xyxy', got {bounding_box_format!r}: "
            "convert_format makes them so"
        )


def convert_format(
    boxes: Any, source: str, target: str, height: Any = None, width: Any = None,
    dtype: Any = "float32",
) -> Any:  # fmt: skip
    """Boxes in another format.

    Args:
        boxes: [..., N, 4], or a dict whose entry "boxes" is that.
        source: the format they have: "xyxy", "yxyx", "xywh", "center_xywh", "center_yxhw",
            "rel_xyxy", "rel_yxyx", "rel_xywh" or "rel_center_xywh".
        target: the format of the result.
        height, width: of the image: numbers, or tensors that fit [..., N, 1]; where one format is
            relative.
        dtype: of the result.

    Returns:
        The boxes; for a dict a dict with the other entries as they were.

    Raises:
        ValueError: a format is unknown, a size is missing, or the last axis has not four numbers.
    """
    if isinstance(boxes, Mapping):
        found = convert_format(boxes["boxes"], source, target, height, width, dtype)
        return {**boxes, "boxes": found}
    boxes = _as_boxes(boxes, dtype)
    source, target = _known(source), _known(target)
    near, far = source.startswith(_RELATIVE), target.startswith(_RELATIVE)
    if (near or far) and (height is None or width is None):
        raise ValueError(
            "convert_format() must receive `height` and `width` transforming between relative and "
            f"absolute formats. It received source={source!r}, target={target!r}, height={height} "
            f"and width={width}."
        )
    if source == target:
        return boxes
    corners, _ = _FORMATS[source.removeprefix(_RELATIVE)]
    _, numbers = _FORMATS[target.removeprefix(_RELATIVE)]
    parts: Any = corners(*_numbers(boxes))
    if near != far:
        sizes = [td.cast(size, dtype) for size in (width, height, width, height)]
        pairs = zip(parts, sizes, strict=True)
        parts = tuple(p * size for p, size in pairs) if near else tuple(p / s for p, s in pairs)
    return _joined(numbers(*parts))


def _area(boxes: td.Tensor) -> td.Tensor:
    """The areas [...] of boxes that are corners."""
    left, top, right, bottom = td.unstack(boxes, axis=-1)
    area: td.Tensor = (right - left) * (bottom - top)
    return area


def clip_to_image_size(
    bounding_boxes: Mapping[str, Any], height: Any = None, width: Any = None,
    bounding_box_format: str = "xyxy",
) -> dict[str, Any]:  # fmt: skip
    """Boxes without what lies outside of the image; the labels of boxes of which nothing is left
    become -1.

    Args:
        bounding_boxes: "boxes" [..., N, 4] and, if there are any, "labels" [..., N].
        height, width: of the image, for "xyxy".
        bounding_box_format: "xyxy" or "rel_xyxy".

    Raises:
        NotImplementedError: the format is another one.
        ValueError: a size is missing.
    """
    if bounding_box_format not in ("xyxy", "rel_xyxy"):
        raise NotImplementedError(
            "clip_to_image_size takes boxes of the formats 'xyxy' and 'rel_xyxy', got "
            f"{bounding_box_format!r}: convert_format makes them so"
        )
    boxes = td.convert_to_tensor(bounding_boxes["boxes"])
    if bounding_box_format == "rel_xyxy":
        height = width = 1
    elif height is None or width is None:
        raise ValueError("`height` and `width` must be set if `format='xyxy'`.")
    zero = td.zeros([], boxes.dtype)
    sizes = [td.cast(size, boxes.dtype) for size in (width, height, width, height)]
    parts = [
        td.minimum(td.maximum(part, zero), size)
        for part, size in zip(_numbers(boxes), sizes, strict=True)
    ]
    found = {**bounding_boxes, "boxes": _joined(parts)}
    labels = bounding_boxes.get("labels")
    if labels is not None:
        labels = td.convert_to_tensor(labels)
        there = _area(found["boxes"]) > 0
        # One-hot labels [..., N, classes] have one more axis than their boxes have areas.
        there = there[..., None] if len(labels.shape) > len(there.shape) > 1 else there
        found["labels"] = td.where(there, labels, td.constant(-1, labels.dtype))
    return found


def affine_transform(
    boxes: Any, angle: Any, translate_x: Any, translate_y: Any, scale: Any, shear_x: Any,
    shear_y: Any, height: Any, width: Any, center_x: Any = None, center_y: Any = None,
    bounding_box_format: str = "xyxy",
) -> td.Tensor:  # fmt: skip
    """The boxes around boxes that are turned, moved, enlarged and slanted.

    Args:
        boxes: [batch, N, 4].
        angle: [batch]: how far, in degrees.
        translate_x, translate_y: [batch]: how far, as parts of the width and of the height.
        scale: [batch]: how many times as large.
        shear_x, shear_y: [batch]: how far, in degrees.
        height, width: of the image.
        center_x, center_y: what stays where it is, as parts of the width and of the height; the
            middle when omitted.
        bounding_box_format: "xyxy".

    Raises:
        NotImplementedError: the format is another one.
    """
    _corners_only(bounding_box_format, "affine_transform")
    angle = td.convert_to_tensor(angle)
    kind = angle.dtype
    wide, high, move_x, move_y, scale, shear_x, shear_y = (
        td.cast(value, kind)
        for value in (width, height, translate_x, translate_y, scale, shear_x, shear_y)
    )
    middle_x, middle_y = (0.5 if c is None else c for c in (center_x, center_y))
    x, y = td.cast(middle_x, kind) * (wide - 1), td.cast(middle_y, kind) * (high - 1)
    turn, slant_x, slant_y = (-a * (math.pi / 180.0) for a in (angle, shear_x, shear_y))
    from_x, from_y = x - move_x * (wide - 1), y - move_y * (high - 1)
    # The turned and slanted axes, and their inverse: the determinant is 1.
    a = td.cos(turn - slant_y) / td.cos(slant_y)
    b = a * td.tan(slant_x) + td.sin(turn)
    c = -td.sin(turn - slant_y) / td.cos(slant_y)
    d = td.cos(turn) - c * td.tan(slant_x)
    rows = [(d * scale, -b * scale, x), (-c * scale, a * scale, y)]
    left, top, right, bottom = _numbers(td.cast(td.convert_to_tensor(boxes), kind))
    corners = _joined([left, right, right, left]), _joined([top, top, bottom, bottom])
    moved = []
    for along, down, middle in rows:
        shift = middle - along * from_x - down * from_y
        along, down, shift = (
            td.reshape(part, [-1, 1, 1]) if len(part.shape) else part
            for part in (along, down, shift)
        )
        moved.append(along * corners[0] + down * corners[1] + shift)
    least = [td.reduce_min(part, -1, keepdims=True) for part in moved]
    most = [td.reduce_max(part, -1, keepdims=True) for part in moved]
    return _joined([*least, *most])


def crop(
    boxes: Any, top: Any, left: Any, height: Any, width: Any, bounding_box_format: str = "xyxy"
) -> td.Tensor:
    """The boxes in a part of the image, without what lies outside of it.

    Args:
        boxes: [..., N, 4].
        top, left: where the part begins.
        height, width: of the part.
        bounding_box_format: "xyxy".

    Raises:
        NotImplementedError: the format is another one.
    """
    _corners_only(bounding_box_format, "crop")
    moved = pad(boxes, -td.convert_to_tensor(top), -td.convert_to_tensor(left))
    found: td.Tensor = clip_to_image_size({"boxes": moved}, height, width)["boxes"]
    return found


def pad(
    boxes: Any, top: Any, left: Any, height: Any = None, width: Any = None,
    bounding_box_format: str = "xyxy",
) -> td.Tensor:  # fmt: skip
    """The boxes in an image that got margins.

    Args:
        boxes: [..., N, 4].
        top, left: how wide the margins above and to the left are.
        height, width: of the image, which do not matter.
        bounding_box_format: "xyxy".

    Raises:
        NotImplementedError: the format is another one.
    """
    _corners_only(bounding_box_format, "pad")
    boxes = td.convert_to_tensor(boxes)
    shifts = [td.cast(shift, boxes.dtype) for shift in (left, top, left, top)]
    return _joined(part + shift for part, shift in zip(_numbers(boxes), shifts, strict=True))


def _variance(given: Any) -> td.Tensor | None:
    if given is None:
        return None
    variance = td.cast(td.convert_to_tensor(given), td.float32)
    if variance.shape[-1] != 4:
        raise ValueError(f"`variance` must be length 4, got {given}")
    return variance


def _by_centers(name: str, what: str) -> None:
    if name not in ("center_xywh", "center_yxhw"):
        raise ValueError(f"`{what}` should be one of 'center_xywh' or 'center_yxhw', got {name}")


def _size_of(image_shape: Any) -> tuple[Any, Any]:
    return (None, None) if image_shape is None else (image_shape[0], image_shape[1])


def encode_box_to_deltas(
    anchors: Any, boxes: Any, anchor_format: str, box_format: str,
    encoding_format: str = "center_yxhw", variance: Any = None, image_shape: Any = None,
) -> td.Tensor:  # fmt: skip
    """How far boxes are from anchors, in sizes of the anchors, and the logarithms of how many times
    as large they are.

    Args:
        anchors: [N, 4].
        boxes: [N, 4] or [batch, N, 4].
        anchor_format, box_format: their formats, see `convert_format`.
        encoding_format: "center_yxhw" or "center_xywh": the order of the result.
        variance: four numbers that the result is divided by.
        image_shape: (height, width, channels), where a format is relative.

    Raises:
        ValueError: the variance has not four numbers, or the format is another one.
    """
    divisor = _variance(variance)
    _by_centers(encoding_format, "encoding_format")
    size = _size_of(image_shape)
    near = convert_format(anchors, anchor_format, encoding_format, *size)
    found = convert_format(boxes, box_format, encoding_format, *size)
    sizes, own = (td.maximum(part[..., 2:], epsilon()) for part in (near, found))
    places = (found[..., :2] - near[..., :2]) / sizes
    deltas: td.Tensor = td.concat([places, td.math.log(own / sizes)], -1)
    return deltas if divisor is None else deltas / divisor


def decode_deltas_to_boxes(
    anchors: Any, boxes_delta: Any, anchor_format: str, box_format: str,
    encoded_format: str = "center_yxhw", variance: Any = None, image_shape: Any = None,
) -> Any:  # fmt: skip
    """The boxes of what `encode_box_to_deltas` gave.

    Args:
        anchors: [N, 4]; or a dict of them by levels.
        boxes_delta: [N, 4] or [batch, N, 4]; or a dict of them by the same levels.
        anchor_format: the format of the anchors, see `convert_format`.
        box_format: that of the result.
        encoded_format: "center_yxhw" or "center_xywh": the order of the deltas.
        variance: four numbers that the deltas were divided by.
        image_shape: (height, width, channels), where a format is relative.

    Raises:
        ValueError: the variance has not four numbers, or the format is another one.
    """
    factor = _variance(variance)
    _by_centers(encoded_format, "encoded_format")
    if isinstance(anchors, Mapping) and isinstance(boxes_delta, Mapping):
        return {
            level: decode_deltas_to_boxes(
                anchor, boxes_delta[level], anchor_format, box_format, encoded_format, variance,
                image_shape,
            )
            for level, anchor in anchors.items()
        }  # fmt: skip
    size = _size_of(image_shape)
    near = convert_format(anchors, anchor_format, encoded_format, *size)
    deltas = td.convert_to_tensor(boxes_delta)
    deltas = deltas if factor is None else deltas * factor
    places = deltas[..., :2] * near[..., 2:] + near[..., :2]
    boxes = td.concat([places, td.exp(deltas[..., 2:]) * near[..., 2:]], -1)
    return convert_format(boxes, encoded_format, box_format, *size)


def compute_iou(
    boxes1: Any, boxes2: Any, bounding_box_format: str, use_masking: bool = False,
    mask_val: float = -1, image_shape: Any = None,
) -> td.Tensor:  # fmt: skip
    """How much of each two boxes is in both: the area of that over the area of what is in either.

    Args:
        boxes1: [N, 4] or [batch, N, 4].
        boxes2: [M, 4] or [batch, M, 4].
        bounding_box_format: of both, see `convert_format`.
        use_masking: whether pairs with a box whose numbers are all negative get `mask_val`.
        mask_val: what they get.
        image_shape: (height, width, channels), where the format is relative.

    Returns:
        [N, M], or [batch, N, M] where either has a batch.

    Raises:
        ValueError: the boxes have another rank, or the shape of the image is missing.
    """
    for name, given in (("boxes1", boxes1), ("boxes2", boxes2)):
        rank = len(td.convert_to_tensor(given).shape)
        if rank not in (2, 3):
            raise ValueError(
                f"compute_iou() expects {name} to be [N, 4] or [batch, N, 4], got rank {rank}"
            )
    if _RELATIVE in bounding_box_format and image_shape is None:
        raise ValueError(
            "When using relative bounding box formats (e.g. `rel_yxyx`) the `image_shape` argument "
            f"must be provided. Received `image_shape`: {image_shape}"
        )
    size = _size_of(image_shape)
    one = convert_format(boxes1, bounding_box_format, "xyxy", *size)
    other = convert_format(boxes2, bounding_box_format, "xyxy", *size)
    pairs = td.unstack(one[..., :, None, :], axis=-1), td.unstack(other[..., None, :, :], axis=-1)
    (left, top, right, bottom), (left2, top2, right2, bottom2) = pairs
    zero = td.zeros([], one.dtype)
    wide = td.maximum(zero, td.minimum(right, right2) - td.maximum(left, left2))
    high = td.maximum(zero, td.minimum(bottom, bottom2) - td.maximum(top, top2))
    both = wide * high
    either = _area(one)[..., :, None] + _area(other)[..., None, :] - both
    found: td.Tensor = both / (either + epsilon())
    if not use_masking:
        return found
    gone = [td.reduce_max(boxes, -1) < 0.0 for boxes in (one, other)]
    masked = gone[0][..., :, None] | gone[1][..., None, :]
    return td.where(masked, td.constant(mask_val, found.dtype), found)


def compute_ciou(
    boxes1: Any, boxes2: Any, bounding_box_format: str, image_shape: Any = None
) -> td.Tensor:
    """`compute_iou` of box by box, less for boxes whose middles are apart and whose proportions
    differ (https://arxiv.org/abs/1911.08287).

    Args:
        boxes1, boxes2: [..., 4].
        bounding_box_format: of both, see `convert_format`.
        image_shape: (height, width, channels), where the format is relative.

    Returns:
        [...].

    Raises:
        ValueError: the format is relative and the shape of the image is missing.
    """
    if _RELATIVE in bounding_box_format and image_shape is None:
        raise ValueError(
            "When using relative bounding box formats (e.g. `rel_yxyx`) the `image_shape` argument "
            f"must be provided. Received `image_shape`: {image_shape}"
        )
    size = _size_of(image_shape)
    one, other = (
        td.unstack(convert_format(boxes, bounding_box_format, "xyxy", *size), axis=-1)
        for boxes in (boxes1, boxes2)
    )
    (left, top, right, bottom), (left2, top2, right2, bottom2) = one, other
    small = epsilon()
    wide, wide2 = right - left, right2 - left2
    high, high2 = bottom - top + small, bottom2 - top2 + small
    zero = td.zeros([], left.dtype)
    both = td.maximum(td.minimum(right, right2) - td.maximum(left, left2), zero) * td.maximum(
        td.minimum(bottom, bottom2) - td.maximum(top, top2), zero
    )
    either = wide * high + wide2 * high2 - both + small
    iou = both / (either + small)
    around = td.maximum(right, right2) - td.minimum(left, left2)
    down = td.maximum(bottom, bottom2) - td.minimum(top, top2)
    diagonal = around**2 + down**2 + small
    apart = ((left + right) / 2 - (left2 + right2) / 2) ** 2
    apart += ((top + bottom) / 2 - (top2 + bottom2) / 2) ** 2
    shape = 4 / math.pi**2 * (td.atan(wide2 / high2) - td.atan(wide / high)) ** 2
    found: td.Tensor = iou - (apart / diagonal + shape * (shape / (shape - iou + (1 + small))))
    return found


__all__ = [
    "affine_transform", "clip_to_image_size", "compute_ciou", "compute_iou", "convert_format",
    "crop", "decode_deltas_to_boxes", "encode_box_to_deltas", "pad",
]  # fmt: skip

__getattr__ = missing_in(__name__)
