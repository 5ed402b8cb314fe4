"""Boxes and classes drawn on images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.keras import config
from treadle.keras.utils.bounding_boxes import convert_format

_TEXT_HEIGHT = 12  # pixels of a capital letter at `font_scale` 1


def check_images(images: Any) -> Any:
    """Images as an array [batch, ...] of four axes.

    Raises:
        ValueError: there is another number of axes.
    """
    array = as_array(images)
    if array.ndim != 4:
        raise ValueError(
            f"`images` must be batched 4D tensor. Received: images.shape={array.shape}"
        )
    return array


def as_array(value: Any) -> Any:
    """A tensor, a variable or an array as an array."""
    return np.asarray(value.numpy() if isinstance(value, td.Tensor | td.Variable) else value)


def channels_last(images: Any, data_format: str | None) -> Any:
    """Images with their channels as the last axis."""
    is_first = (data_format or config.image_data_format()) == "channels_first"
    return images.transpose(0, 2, 3, 1) if is_first else images


def _pillow(function: str) -> Any:
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise ImportError(
            f"{function} needs Pillow: pip install 'treadle[image]' brings it"
        ) from error
    return Image, ImageDraw, ImageFont


def draw_bounding_boxes(
    images: Any, bounding_boxes: Mapping[str, Any], bounding_box_format: str,
    class_mapping: Mapping[int, str] | None = None, color: Sequence[int] = (128, 128, 128),
    line_thickness: int = 2, text_thickness: int = 1, font_scale: float = 1.0,
    data_format: str | None = None,
) -> Any:  # fmt: skip
    """Images with boxes around things, and with what these are.

    Args:
        images: [batch, height, width, 1 or 3] (or channels first): numbers to 1 or to 255.
        bounding_boxes: "boxes" [batch, boxes, 4], "labels" [batch, boxes], of which -1 is no box,
            and perhaps "confidences" [batch, boxes].
        bounding_box_format: of the boxes, as in `keras.utils.bounding_boxes.convert_format`.
        class_mapping: names of labels; others have no text.
        color: red, green and blue of lines and texts, to 255.
        line_thickness: in pixels.
        text_thickness: in pixels, of the strokes of letters.
        font_scale: how large letters are; 1 is 12 pixels high.
        data_format: "channels_last" or "channels_first"; that of `keras.config` when omitted.

    Returns:
        A uint8 array [batch, height, width, channels].

    Raises:
        ValueError: the images have not four axes, or boxes or labels are missing.
        TypeError: the boxes are no dict.
        ImportError: Pillow is missing.
    """
    libraries = _pillow("draw_bounding_boxes")
    array = channels_last(check_images(images), data_format)
    if not isinstance(bounding_boxes, Mapping):
        raise TypeError(
            f"`bounding_boxes` should be a dict. Received: bounding_boxes={bounding_boxes} of type "
            f"{type(bounding_boxes)}"
        )
    if "boxes" not in bounding_boxes or "labels" not in bounding_boxes:
        raise ValueError(
            "`bounding_boxes` should be a dict containing 'boxes' and 'labels' keys. Received: "
            f"bounding_boxes={bounding_boxes}"
        )
    height, width = array.shape[1:3]
    corners = convert_format(
        bounding_boxes["boxes"], bounding_box_format, "xyxy", height, width
    )  # fmt: skip
    boxes, labels = as_array(corners).astype("int32"), as_array(bounding_boxes["labels"])
    confidences = bounding_boxes.get("confidences")
    sure = None if confidences is None else as_array(confidences)
    pen = _Pen(libraries, tuple(color), line_thickness, text_thickness, font_scale)
    drawn = []
    for number, image in enumerate(_as_bytes(array)):
        texts = [
            _text_of(int(label), class_mapping or {}, None if sure is None else sure[number][i])
            for i, label in enumerate(labels[number])
        ]
        kept = [i for i, label in enumerate(labels[number]) if int(label) != -1]
        drawn.append(pen.drawn(image, [(boxes[number][i].tolist(), texts[i]) for i in kept]))
    return np.stack(drawn) if drawn else _as_bytes(array)


def _as_bytes(images: Any) -> Any:
    """Images of numbers to 1 or to 255 as uint8."""
    if images.dtype.kind == "f" and images.size:
        images = images.clip(0, 1) * 255 if images.max() <= 1.0 else images.clip(0, 255)
    return images.astype("uint8")


def _text_of(label: int, names: Mapping[int, str], sure: Any) -> str | None:
    name = names.get(label)
    return name if name is None or sure is None else f"{name} | {sure:.2f}"


class _Pen:
    """Draws boxes with texts in one color."""

    def __init__(
        self, libraries: Any, color: tuple[int, ...], line: int, stroke: int, scale: float
    ) -> None:
        self.image, self.draw, fonts = libraries
        self.color, self.line, self.stroke = color, line, stroke or line
        self.high = int(scale * _TEXT_HEIGHT)
        self.font = fonts.load_default(size=max(1, round(scale * _TEXT_HEIGHT / 0.7)))

    def drawn(self, image: Any, boxes: list[tuple[list[int], str | None]]) -> Any:
        """An image [height, width, channels] with boxes (left, top, right, bottom)."""
        is_grey = image.shape[-1] == 1
        page = self.image.fromarray(image[..., 0] if is_grey else image)
        color = self.color[0] if is_grey else self.color[: image.shape[-1]]
        brush = self.draw.Draw(page)
        for (left, top, right, bottom), text in boxes:
            grown, shrunk = self.line // 2, (self.line - 1) // 2  # the line is around the edge
            xs, ys = sorted((left, right)), sorted((top, bottom))
            outer = (xs[0] - grown, ys[0] - grown, xs[1] + shrunk, ys[1] + shrunk)
            brush.rectangle(outer, outline=color, width=self.line)
            if text is not None:
                stroke = (self.stroke - 1) / 2
                place = self._text_place(left, top)
                brush.text(
                    place, text, fill=color, font=self.font, anchor="ls", stroke_width=stroke
                )
        found = np.asarray(page)
        return found[..., None] if is_grey else found

    def _text_place(self, left: int, top: int) -> tuple[int, int]:
        """Where the text's base line begins: above the box, or in it where no room is above."""
        if top - 8 - 2 * self.high > 0:
            return left, top - 8
        return left + 3, top + 2 * self.high + self.stroke + 3


def draw_segmentation_masks(
    images: Any, segmentation_masks: Any, num_classes: int | None = None,
    color_mapping: Mapping[int, Sequence[int]] | None = None, alpha: float = 0.8,
    blend: bool = True, ignore_index: int = -1, data_format: str | None = None,
) -> Any:  # fmt: skip
    """Images with each pixel in the color of its class.

    Args:
        images: [batch, height, width, channels] (or channels first), numbers to 255.
        segmentation_masks: ints [batch, height, width, 1] or [batch, height, width]: classes.
        num_classes: how many there are; the largest class when omitted, which then has no color.
        color_mapping: the colors of classes below `num_classes`.
        alpha: how much of a pixel is the color, from 0 to 1.
        blend: False: pixels are the colors, as float32.
        ignore_index: the class whose pixels stay as they are.
        data_format: "channels_last" or "channels_first"; that of `keras.config` when omitted.

    Returns:
        An array [batch, height, width, channels].

    Raises:
        ValueError: the images have not four axes.
        TypeError: the classes are no ints.
    """
    array = channels_last(check_images(images), data_format).astype("float32")
    classes = as_array(segmentation_masks)
    if classes.dtype.kind not in "iu":
        raise TypeError(
            "`segmentation_masks` must be in integer dtype. Received: segmentation_masks.dtype="
            f"{classes.dtype}"
        )
    if classes.ndim == 4:
        classes = channels_last(classes, data_format)[..., 0]
    count = int(classes.max()) if num_classes is None else num_classes
    given = _colors(count) if color_mapping is None else [color_mapping[i] for i in range(count)]
    colored = array.copy()
    for number, color in enumerate(given):
        colored[classes == number] = np.asarray(color, "float32")
    if not blend:
        return colored
    mixed = array * (1 - np.float32(alpha)) + colored * np.float32(alpha)
    return np.where((classes != ignore_index)[..., None], mixed, array).astype("uint8")


def _colors(count: int) -> list[list[int]]:
    """Colors that differ well, black first."""
    steps = np.array([2**25 - 1, 2**15 - 1, 2**21 - 1])
    return [((number * steps) % 255).tolist() for number in range(count)]
