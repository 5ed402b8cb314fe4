"""Resizing and cropping of images, and what layers of images share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.base import Layer
from treadle.keras.layers.spatial import format_name, size_of


class OfImages(Layer):
    """A layer of images [batch, height, width, channels], of one image, or with the channels first.

    A dict of "images" and "labels" is given back with other images.
    """

    has_shape_rule: ClassVar[bool] = False
    _settings: ClassVar[tuple[str, ...]] = ("data_format",)

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = format_name(data_format)
        self._build_at_init()

    def call(self, inputs: Any) -> Any:
        return self._of(inputs, self._changed)

    def _of(self, inputs: Any, change: Any) -> Any:
        """What `change` makes of batches of images with the channels last."""
        if isinstance(inputs, Mapping):
            if "images" not in inputs or set(inputs) - {"images", "labels"}:
                raise ValueError(
                    f'Layer "{self.name}" ({type(self).__name__}) takes a dict of images and '
                    f"labels, got {sorted(inputs)}"
                )
            return {**inputs, "images": self._of(inputs["images"], change)}
        rank = len(inputs.shape)
        if rank not in (3, 4):
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}) takes an image or a batch of them, '
                f"got inputs of shape {inputs.shape}"
            )
        images = inputs if rank == 4 else inputs[None]
        last = self.data_format == "channels_last"
        changed = change(images if last else td.transpose(images, [0, 2, 3, 1]))
        changed = changed if last else td.transpose(changed, [0, 3, 1, 2])
        return changed if rank == 4 else changed[0]

    def _changed(self, images: td.Tensor) -> td.Tensor:
        raise NotImplementedError


class _ToSize(OfImages):
    """A layer that gives images of one size."""

    _settings: ClassVar[tuple[str, ...]] = ("height", "width")

    def __init__(self, height: int, width: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.height, self.width = height, width

    def compute_output_shape(self, input_shape: Any) -> Any:
        shape = list(input_shape)
        first = -3 if self.data_format == "channels_last" else -2
        shape[first : first + 2 or None] = [self.height, self.width]
        return tuple(shape)


def _share(size: Any, times: int, parts: int) -> Any:
    """``size * times / parts`` without its fraction, of an int or a tensor."""
    if isinstance(size, int):
        return int(float(size * times) / parts)
    return td.cast(td.cast(size * times, td.float32) / parts, td.int32)


def _least(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else td.minimum(a, b)


def _most(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else td.maximum(a, b)


def middle(images: td.Tensor, height: int, width: int) -> tuple[Any, Any, Any, Any]:
    """The largest part in the middle of images that has the aspect ratio of height and width: where
    its rows begin, where its columns begin, and its size."""
    rows, columns = size_of(images, 1), size_of(images, 2)
    tall = _most(_least(rows, _share(columns, height, width)), 1)
    wide = _most(_least(columns, _share(rows, width, height)), 1)
    return (rows - tall) // 2, (columns - wide) // 2, tall, wide


def cropped_to_aspect(images: td.Tensor, height: int, width: int) -> td.Tensor:
    """The part that `middle` describes."""
    top, left, tall, wide = middle(images, height, width)
    return images[:, top : top + tall, left : left + wide]


def padded_to_aspect(images: td.Tensor, height: int, width: int, value: float) -> td.Tensor:
    """Images with margins of `value`, so that they have the aspect ratio of height and width."""
    rows, columns = size_of(images, 1), size_of(images, 2)
    top = (_most(rows, _share(columns, height, width)) - rows) // 2
    left = (_most(columns, _share(rows, width, height)) - columns) // 2
    return td.pad(images, [[0, 0], [top, top], [left, left], [0, 0]], constant_values=value)


def resized(
    images: td.Tensor, height: int, width: int, interpolation: str = "bilinear",
    antialias: bool = False,
) -> td.Tensor:  # fmt: skip
    """Images of another size and the same dtype; ints are rounded."""
    result = td.image.resize(images, [height, width], interpolation, antialias=antialias)
    if result.dtype == images.dtype:
        return result
    if images.dtype.is_integer:
        result = td.round(result)
    return td.saturate_cast(result, images.dtype)


_INTERPOLATIONS = ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5")


class Resizing(_ToSize):
    """Images of another size.

    Args:
        height, width: the size.
        interpolation: "bilinear", "nearest", "bicubic", "lanczos3" or "lanczos5".
        crop_to_aspect_ratio: cut margins off instead of distorting the images.
        pad_to_aspect_ratio: add margins of `fill_value` instead of distorting the images.
        fill_mode: "constant".
        antialias: average where images become smaller.
        data_format: "channels_last" or "channels_first".
    """

    _settings: ClassVar[tuple[str, ...]] = (
        "interpolation", "crop_to_aspect_ratio", "pad_to_aspect_ratio", "fill_mode", "fill_value",
        "antialias",
    )  # fmt: skip

    def __init__(
        self, height: int, width: int, interpolation: str = "bilinear",
        crop_to_aspect_ratio: bool = False, pad_to_aspect_ratio: bool = False,
        fill_mode: str = "constant", fill_value: float = 0.0, antialias: bool = False,
        data_format: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(height, width, data_format=data_format, **kwargs)
        if interpolation not in _INTERPOLATIONS:
            raise ValueError(
                f"Resizing: interpolation is one of {_INTERPOLATIONS}, got {interpolation!r}"
            )
        if crop_to_aspect_ratio and pad_to_aspect_ratio:
            raise ValueError("Resizing: crop_to_aspect_ratio or pad_to_aspect_ratio, not both")
        if fill_mode != "constant":
            raise ValueError(f'Resizing: fill_mode is "constant", got {fill_mode!r}')
        self.interpolation = interpolation
        self.crop_to_aspect_ratio = crop_to_aspect_ratio
        self.pad_to_aspect_ratio = pad_to_aspect_ratio
        self.fill_mode, self.fill_value, self.antialias = fill_mode, fill_value, bool(antialias)

    def _changed(self, images: td.Tensor) -> td.Tensor:
        size = self.height, self.width
        if self.crop_to_aspect_ratio:
            images = cropped_to_aspect(images, *size)
        elif self.pad_to_aspect_ratio:
            images = padded_to_aspect(images, *size, self.fill_value)
        return resized(images, *size, self.interpolation, self.antialias)


class CenterCrop(_ToSize):
    """The middle of images; smaller ones are cut to the aspect ratio and resized.

    Args:
        height, width: the size.
        data_format: "channels_last" or "channels_first".
    """

    def __init__(
        self, height: int, width: int, data_format: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(height, width, data_format=data_format, **kwargs)

    def _changed(self, images: td.Tensor) -> td.Tensor:
        images = td.cast(images, self.compute_dtype)
        more = [size_of(images, 1) - self.height, size_of(images, 2) - self.width]
        shape = [images.shape[0], self.height, self.width, images.shape[3]]

        def cut_and_resized() -> td.Tensor:
            part = cropped_to_aspect(images, self.height, self.width)
            return td.ensure_shape(resized(part, self.height, self.width), shape)

        def middle_of() -> td.Tensor:
            top, left = (m // 2 for m in more)
            part = images[:, top : top + self.height, left : left + self.width]
            return td.ensure_shape(part, shape)

        if any(isinstance(m, int) and m < 0 for m in more):
            return cut_and_resized()
        unknown = [m for m in more if not isinstance(m, int)]
        if not unknown:
            return middle_of()
        small = td.reduce_any(td.stack(unknown) < 0)
        found: td.Tensor = td.cond(small, cut_and_resized, middle_of)
        return found
