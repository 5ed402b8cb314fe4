"""Layers that change images at random while training."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import treadle as td
from treadle.keras import random
from treadle.keras.layers.preprocessing.draws import Draws
from treadle.keras.layers.preprocessing.images import OfImages, Size, in_window, middle, resized
from treadle.keras.layers.preprocessing.projections import FILL_MODES, INTERPOLATIONS, projected
from treadle.keras.layers.spatial import size_of
from treadle.keras.utils.bounding_boxes import affine_transform


class _Random(OfImages):
    """A layer that changes images while training, and where no caller says whether it trains."""

    _config_names: ClassVar[tuple[str, ...]] = ("seed",)
    _while_training: ClassVar[bool] = True

    def __init__(self, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seed = seed
        if seed is None:
            random.default_seed()  # as Keras draws one here: later layers get the same seeds

    def compute_output_shape(self, input_shape: Any) -> Any:
        return tuple(input_shape)


def each(values: Any, like: td.Tensor) -> td.Tensor:
    """A number for each image, with as many axes as `like`."""
    flat = td.reshape(td.convert_to_tensor(values), [-1] + [1] * (len(like.shape) - 1))
    return flat if flat.dtype.is_bool else td.cast(flat, like.dtype)


def _range(factor: Any, name: str, low: float, high: float) -> tuple[float, float]:
    """(least, greatest) from a pair, or from a number and its negative."""
    if not isinstance(factor, tuple | list | int | float):
        raise ValueError(f"{name} is a number or a pair of them, got {factor!r}")
    given = factor if isinstance(factor, tuple | list) else (-abs(factor), abs(factor))
    if len(given) != 2 or any(not low <= f <= high for f in given):
        raise ValueError(f"{name} is a number or a pair in [{low}, {high}], got {factor!r}")
    least, greatest = sorted(given)
    return least, greatest


class RandomFlip(_Random):
    """Mirrors half of the images.

    Args:
        mode: "horizontal", "vertical" or "horizontal_and_vertical".
        seed: makes the choices repeat.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("mode",)
    _modes: ClassVar[dict[str, list[int]]] = {
        "horizontal": [2], "vertical": [1], "horizontal_and_vertical": [1, 2],
    }  # fmt: skip

    def __init__(
        self, mode: str = "horizontal_and_vertical", seed: int | None = None,
        data_format: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        if mode not in self._modes:
            raise ValueError(f"RandomFlip: mode is one of {list(self._modes)}, got {mode!r}")
        self.mode = mode

    def _drawn(self, size: Size, draws: Draws) -> Any:
        flips = draws.uniform([size.batch, 1, 1, 1], 0.0, 1.0) <= 0.5
        return {"flips": flips, "input_shape": size.shape}

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        chosen = each(drawn["flips"], images)
        return td.where(chosen, td.reverse(images, self._modes[self.mode]), images)

    def _changed_masks(self, masks: td.Tensor, drawn: Any) -> td.Tensor:
        return self._changed(td.cast(masks, self.compute_dtype), drawn)

    def _changed_boxes(self, boxes: Any, drawn: Any) -> Any:
        axes = self._modes[self.mode]

        def mirrored(parts: list[td.Tensor]) -> list[td.Tensor]:
            chosen = each(drawn["flips"], parts[0])
            x1, y1, x2, y2 = parts
            new_x = (1 - x2, 1 - x1) if 2 in axes else (x1, x2)
            new_y = (1 - y2, 1 - y1) if 1 in axes else (y1, y2)
            new = (new_x[0], new_y[0], new_x[1], new_y[1])
            return [td.where(chosen, a, b) for a, b in zip(new, parts, strict=True)]

        size = self._height_and_width(drawn["input_shape"])
        return self._moved(boxes, size, mirrored, "rel_xyxy")


class _Moving(_Random):
    """A layer whose images are looked up at other places.

    Args:
        fill_mode: what lies around an image: its mirror image ("reflect"), the image again
            ("wrap"), its border ("nearest") or `fill_value` ("constant").
        interpolation: "bilinear" or "nearest".
        seed: makes the choices repeat.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("fill_mode", "interpolation", "fill_value")

    def __init__(
        self, fill_mode: str = "reflect", interpolation: str = "bilinear",
        seed: int | None = None, fill_value: float = 0.0, data_format: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        if fill_mode not in FILL_MODES or interpolation not in INTERPOLATIONS:
            raise ValueError(
                f"{type(self).__name__}: fill_mode is one of {FILL_MODES} and interpolation one of "
                f"{INTERPOLATIONS}, got {fill_mode!r} and {interpolation!r}"
            )
        self.fill_mode, self.interpolation, self.fill_value = fill_mode, interpolation, fill_value

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        return self._looked_up(images, drawn, self.interpolation)

    def _changed_masks(self, masks: td.Tensor, drawn: Any) -> td.Tensor:
        return self._looked_up(masks, drawn, "nearest")

    def _looked_up(self, images: td.Tensor, drawn: Any, interpolation: str) -> td.Tensor:
        height, width = (td.cast(size_of(images, axis), td.float32) for axis in (1, 2))
        rows = _stacked(self._matrix(drawn, height, width))
        return projected(images, rows, interpolation, self.fill_mode, self.fill_value)

    def _matrix(self, drawn: Any, height: td.Tensor, width: td.Tensor) -> list[Any]:
        """The rows (a, b, c) and (d, e, f) of a matrix for each image: the pixel at (x, y) of the
        result is that at ``(a x + b y + c, d x + e y + f)``."""
        raise NotImplementedError


def _stacked(parts: list[Any]) -> td.Tensor:
    """The parts of matrices, numbers or one for each image, as [batch, parts]."""
    count = next(td.shape(part)[:1] for part in parts if isinstance(part, td.Tensor))
    return td.stack([part + td.zeros(count) for part in parts], 1)


def _flat(drawn: Any) -> td.Tensor:
    """What was drawn, a number for each image."""
    return td.reshape(td.cast(drawn, td.float32), [-1])


class RandomRotation(_Moving):
    """Turns images.

    Args:
        factor: the greatest turn to either side, or (least, greatest), as parts of a whole turn.
        fill_mode, interpolation, seed, fill_value: as for RandomZoom.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("factor",)

    def __init__(self, factor: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.factor = _range(factor, "RandomRotation: factor", -1, 1)

    def _drawn(self, size: Size, draws: Draws) -> Any:
        low, high = (360.0 * f for f in self.factor)
        angle = draws.uniform([size.batch], low, high)
        return {
            "angle": angle, "image_height": size.height, "image_width": size.width,
            "batch_size": size.batch,
        }  # fmt: skip

    def _matrix(self, drawn: Any, height: td.Tensor, width: td.Tensor) -> list[Any]:
        angle = _flat(drawn["angle"]) * (math.pi / 180.0)
        x, y, cos, sin = (width - 1) * 0.5, (height - 1) * 0.5, td.cos(angle), td.sin(angle)
        return [cos, -sin, x - x * cos + y * sin, sin, cos, y - x * sin - y * cos]

    def _changed_boxes(self, boxes: Any, drawn: Any) -> Any:
        size = drawn["image_height"], drawn["image_width"]
        angle = _flat(drawn["angle"])
        none, same = td.zeros_like(angle), td.ones_like(angle)

        def turned(parts: list[td.Tensor]) -> list[td.Tensor]:
            corners = td.concat(parts, -1)
            return [affine_transform(corners, angle, none, none, same, none, none, *size)]

        return self._moved(boxes, size, turned)


class RandomZoom(_Moving):
    """Enlarges images, by negative factors, or makes them smaller.

    Args:
        height_factor: the greatest change either way, or (least, greatest), as a part of the
            height.
        width_factor: the same for the width; when omitted the images keep their proportions.
        fill_mode: what lies around an image: its mirror image ("reflect"), the image again
            ("wrap"), its border ("nearest") or `fill_value` ("constant").
        interpolation: "bilinear" or "nearest".
        seed: makes the choices repeat.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("height_factor", "width_factor")

    def __init__(
        self, height_factor: Any, width_factor: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._heights = _range(height_factor, "RandomZoom: height_factor", -1, 1)
        self._widths: tuple[float, float] | None = None
        if width_factor is not None:
            self._widths = _range(width_factor, "RandomZoom: width_factor", -1, 1)

    def _drawn(self, size: Size, draws: Draws) -> Any:
        tall = 1.0 + draws.uniform([size.batch, 1], *self._heights)
        wide = tall
        if self._widths is not None:
            wide = 1.0 + draws.uniform([size.batch, 1], *self._widths)
        return {"height_zoom": tall, "width_zoom": wide, "input_shape": size.shape}

    def _matrix(self, drawn: Any, height: td.Tensor, width: td.Tensor) -> list[Any]:
        tall, wide = _flat(drawn["height_zoom"]), _flat(drawn["width_zoom"])
        left, top = (width - 1) / 2 * (1 - wide), (height - 1) / 2 * (1 - tall)
        return [wide, 0.0, left, 0.0, tall, top]

    def _changed_boxes(self, boxes: Any, drawn: Any) -> Any:
        size = self._height_and_width(drawn["input_shape"])
        height, width = (td.cast(part, td.float32) for part in size)
        # The part of the image that is seen begins where the matrix takes the first pixel from.
        wide, _, left, _, tall, top = (
            part[:, None, None] if isinstance(part, td.Tensor) else part
            for part in self._matrix(drawn, height, width)
        )
        window = top, left, tall * height, wide * width

        def seen(parts: list[td.Tensor]) -> list[td.Tensor]:
            return in_window(parts, window, height, width)

        return self._moved(boxes, size, seen)


class RandomTranslation(_Moving):
    """Shifts images.

    Args:
        height_factor, width_factor: the greatest shift either way, or (least, greatest), as parts
            of the height and of the width.
        fill_mode, interpolation, seed, fill_value: as for RandomZoom.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("height_factor", "width_factor")

    def __init__(self, height_factor: Any, width_factor: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._heights = _range(height_factor, "RandomTranslation: height_factor", -1, 1)
        self._widths = _range(width_factor, "RandomTranslation: width_factor", -1, 1)

    def _drawn(self, size: Size, draws: Draws) -> Any:
        down = draws.uniform([size.batch, 1], *self._heights) * td.cast(size.height, td.float32)
        right = draws.uniform([size.batch, 1], *self._widths) * td.cast(size.width, td.float32)
        return {"translations": td.concat([right, down], 1), "input_shape": size.shape}

    def _shifts(self, drawn: Any) -> list[td.Tensor]:
        """How far each image is moved to the right and down."""
        shifts = td.cast(drawn["translations"], td.float32)
        return [shifts[:, 0], shifts[:, 1]]

    def _matrix(self, drawn: Any, height: td.Tensor, width: td.Tensor) -> list[Any]:
        right, down = self._shifts(drawn)
        return [1.0, 0.0, -right, 0.0, 1.0, -down]

    def _changed_boxes(self, boxes: Any, drawn: Any) -> Any:

        def shifted(parts: list[td.Tensor]) -> list[td.Tensor]:
            right, down = (each(shift, parts[0]) for shift in self._shifts(drawn))
            return [part + by for part, by in zip(parts, (right, down, right, down), strict=True)]

        size = self._height_and_width(drawn["input_shape"])
        return self._moved(boxes, size, shifted)


class RandomShear(_Moving):
    """Slants images.

    Args:
        x_factor, y_factor: how far rows and columns are moved at most, as parts of the height and
            of the width, either way; or (least, greatest).
        interpolation, fill_mode, fill_value, seed: as for RandomZoom.
        data_format: "channels_last" or "channels_first".
    """

    _config_names: ClassVar[tuple[str, ...]] = ("x_factor", "y_factor")

    def __init__(
        self, x_factor: Any = 0.0, y_factor: Any = 0.0, interpolation: str = "bilinear",
        fill_mode: str = "reflect", fill_value: float = 0.0, data_format: str | None = None,
        seed: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            fill_mode, interpolation, seed, fill_value, data_format=data_format, **kwargs
        )
        self.x_factor = _range(x_factor, "RandomShear: x_factor", -1, 1)
        self.y_factor = _range(y_factor, "RandomShear: y_factor", -1, 1)

    def _drawn(self, size: Size, draws: Draws) -> Any:
        sign = draws.signs([size.batch, 1])
        across, down = (
            draws.uniform([size.batch, 1], *factor) for factor in (self.x_factor, self.y_factor)
        )
        return {"shear_factor": td.concat([across, down], 1) * sign, "input_shape": size.shape}

    def _matrix(self, drawn: Any, height: td.Tensor, width: td.Tensor) -> list[Any]:
        factors = td.cast(drawn["shear_factor"], td.float32)
        return [1.0, factors[:, 0], 0.0, factors[:, 1], 1.0, 0.0]

    def _changed_boxes(self, boxes: Any, drawn: Any) -> Any:
        factors = td.cast(drawn["shear_factor"], td.float32)
        across, down = factors[:, 0, None, None], factors[:, 1, None, None]

        def slanted(parts: list[td.Tensor]) -> list[td.Tensor]:
            x1, y1, x2, y2 = parts
            to_right, to_bottom = across < 0, down > 0
            x1, x2 = (
                x1 - across * td.where(to_right, y1, y2), x2 - across * td.where(to_right, y2, y1)
            )  # fmt: skip
            y1, y2 = (
                y1 - down * td.where(to_bottom, x2, x1), y2 - down * td.where(to_bottom, x1, x2)
            )  # fmt: skip
            return [x1, y1, x2, y2]

        size = self._height_and_width(drawn["input_shape"])
        return self._moved(boxes, size, slanted, "rel_xyxy")


class RandomCrop(_Random):
    """Cuts a part out of a batch of images; smaller ones are cut in the middle and resized.

    Args:
        height, width: the size of the part.
        seed: makes the choices repeat.
        data_format: "channels_last" or "channels_first".
    """

    _config_names: ClassVar[tuple[str, ...]] = ("height", "width")

    def __init__(
        self, height: int, width: int, seed: int | None = None, data_format: str | None = None,
        name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, name=name, **kwargs)
        self.height, self.width = height, width

    def _drawn(self, size: Size, draws: Draws) -> Any:
        rows, columns = size.height, size.width
        if not isinstance(rows, int) or not isinstance(columns, int):
            raise ValueError(
                f'Layer "{self.name}" (RandomCrop) needs a known height and width, got images of '
                f"shape {size.shape}"
            )
        if self._is_cut(rows, columns):
            top, left = (
                draws.uniform([], 0, more + 1, td.int32)
                for more in (rows - self.height, columns - self.width)
            )
        else:
            top, left, _, _ = middle(rows, columns, self.height, self.width)
        return {"top": top, "left": left, "input_shape": size.shape}

    def _is_cut(self, rows: int, columns: int) -> bool:
        """Whether images are large enough for the part; else they are resized."""
        return rows > self.height and columns > self.width

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        top, left = drawn["top"], drawn["left"]
        part = images[:, top : top + self.height, left : left + self.width]
        if not self._is_cut(images.shape[1], images.shape[2]):
            return resized(part, self.height, self.width)
        shape = [images.shape[0], self.height, self.width, images.shape[3]]
        return td.ensure_shape(part, shape)

    def _changed_masks(self, masks: td.Tensor, drawn: Any) -> td.Tensor:
        return self._changed(td.cast(masks, self.compute_dtype), drawn)

    def _changed_boxes(self, boxes: Any, drawn: Any) -> Any:
        top, left = drawn["top"], drawn["left"]
        rows, columns = size = self._height_and_width(drawn["input_shape"])
        target = self.height, self.width
        tall, wide = target
        if not self._is_cut(rows, columns):
            tall, wide = min(tall, rows - top), min(wide, columns - left)
        window = top, left, tall, wide
        return self._moved(
            boxes, size, lambda parts: in_window(parts, window, *target), new_size=target
        )


class _Coloring(_Random):
    _config_names: ClassVar[tuple[str, ...]] = ("factor", "value_range")
    _lowest: ClassVar[float]

    def __init__(
        self, factor: Any, value_range: Any = (0, 255), seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, **kwargs)
        if not isinstance(value_range, list | tuple) or len(value_range) != 2:
            raise ValueError(
                f"{type(self).__name__}: value_range is a pair of numbers, got {value_range!r}"
            )
        self.value_range = sorted(value_range)
        if not isinstance(factor, tuple | list):
            factor = (max(-abs(factor), self._lowest), abs(factor))
        self.factor = _range(factor, f"{type(self).__name__}: factor", self._lowest, 1)

    def _in_range(self, images: td.Tensor) -> td.Tensor:
        low, high = (float(v) for v in self.value_range)
        return td.clip_by_value(images, low, high)


class RandomBrightness(_Coloring):
    """Makes images brighter or darker.

    Args:
        factor: the greatest change either way, or (least, greatest), as a part of the value range.
        value_range: the least and the greatest value of a pixel.
        seed: makes the choices repeat.
    """

    _lowest = -1.0

    def _drawn(self, size: Size, draws: Draws) -> Any:
        low, high = self.value_range
        return {"rgb_delta": draws.uniform([size.batch, 1, 1, 1], *self.factor) * (high - low)}

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        return self._in_range(images + each(drawn["rgb_delta"], images))


class RandomContrast(_Coloring):
    """Draws the pixels of images away from their mean, or towards it.

    Args:
        factor: the greatest increase of the distance, or (decrease, increase), as a part of it.
        value_range: the least and the greatest value of a pixel.
        seed: makes the choices repeat.
    """

    _lowest = 0.0

    def _drawn(self, size: Size, draws: Draws) -> Any:
        least, greatest = 1.0 - self.factor[0], 1.0 + self.factor[1]
        factor = draws.uniform([size.batch, 1, 1, 1], least, greatest, self.compute_dtype)
        return {"contrast_factor": factor}

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        mean = td.reduce_mean(images, [1, 2], keepdims=True)
        times = each(drawn["contrast_factor"], images)
        return self._in_range((images - mean) * times + mean)


class _OfASize(_Random):
    """Keras 2's layers that stretch all images of a batch alike, along one axis.

    Args:
        factor: how much larger or smaller at most, or (least, greatest), as a part of the size.
        interpolation: "bilinear", "nearest" or another method of `td.image.resize`.
        seed: makes the choices repeat.

    Raises:
        ValueError: the factors are not in rising order, or less than -1.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("factor", "interpolation")
    _no_settings: ClassVar[tuple[str, ...]] = ("data_format",)
    _axis: ClassVar[int]

    def __init__(
        self, factor: Any, interpolation: str = "bilinear", seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, **kwargs)
        least, greatest = factor if isinstance(factor, tuple | list) else (-factor, factor)
        if not -1.0 <= least <= greatest:
            raise ValueError(
                f"`factor` argument must have values larger than -1 in rising order. Received: "
                f"factor={factor}"
            )
        self.factor, self.interpolation, self._factors = factor, interpolation, (least, greatest)

    def _drawn(self, size: Size, draws: Draws) -> Any:
        least, greatest = (1.0 + f for f in self._factors)
        return draws.uniform([], least, greatest)

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        return self._stretched(images, drawn, self.interpolation)

    def _changed_masks(self, masks: td.Tensor, drawn: Any) -> td.Tensor:
        return self._stretched(masks, drawn, "nearest")

    def _stretched(self, images: td.Tensor, times: Any, interpolation: str) -> td.Tensor:
        sizes = list(td.unstack(td.shape(images)[1:3]))
        number = self._axis - 1
        sizes[number] = td.cast(times * td.cast(sizes[number], td.float32), td.int32)
        found = td.image.resize(images, td.stack(sizes), interpolation)
        return td.cast(found, images.dtype)

    def transform_bounding_boxes(
        self, bounding_boxes: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__}, a layer of Keras 2, does not change boxes: leave "
            "\"bounding_boxes\" out, or use RandomZoom"
        )

    def compute_output_shape(self, input_shape: Any) -> Any:
        shape = list(input_shape)
        shape[self._axis - 4] = None
        return tuple(shape)


class RandomHeight(_OfASize):
    __doc__ = _OfASize.__doc__
    _axis = 1


class RandomWidth(_OfASize):
    __doc__ = _OfASize.__doc__
    _axis = 2
