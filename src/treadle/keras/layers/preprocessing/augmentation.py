"""Layers that change images at random while training."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import treadle as td
from treadle.keras import random
from treadle.keras.layers.preprocessing.images import OfImages, middle, resized
from treadle.keras.layers.preprocessing.projections import FILL_MODES, INTERPOLATIONS, projected
from treadle.keras.layers.spatial import size_of


class _Random(OfImages):
    """A layer that changes images while training, and where no caller says whether it trains."""

    _settings: ClassVar[tuple[str, ...]] = ("seed",)

    def __init__(self, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seed = seed
        if seed is None:
            random.default_seed()  # as Keras draws one here: later layers get the same seeds

    def call(self, inputs: Any, training: Any = True) -> Any:
        if isinstance(training, td.Tensor):
            raise TypeError(
                f'Layer "{self.name}" ({type(self).__name__}): training must be a Python bool'
            )
        return self._of(inputs, self._augmented if training else self._as_floats)

    def _as_floats(self, images: td.Tensor) -> td.Tensor:
        return td.cast(images, self.compute_dtype)

    def _augmented(self, images: td.Tensor) -> td.Tensor:
        return self._changed(self._as_floats(images))

    def _drawn(self, images: td.Tensor, low: float, high: float, *shape: int) -> td.Tensor:
        """A random number for each image."""
        sizes = td.stack([td.shape(images)[0], *shape])
        return td.random.uniform(sizes, low, high, images.dtype, self.seed)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return tuple(input_shape)


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

    _settings: ClassVar[tuple[str, ...]] = ("mode",)
    _modes: ClassVar[dict[str, list[int]]] = {
        "horizontal": [2], "vertical": [1], "horizontal_and_vertical": [1, 2],
    }  # fmt: skip

    def __init__(
        self, mode: str = "horizontal_and_vertical", seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(seed, **kwargs)
        if mode not in self._modes:
            raise ValueError(f"RandomFlip: mode is one of {list(self._modes)}, got {mode!r}")
        self.mode = mode

    def _changed(self, images: td.Tensor) -> td.Tensor:
        chosen = self._drawn(images, 0.0, 1.0, 1, 1, 1) <= 0.5
        return td.where(chosen, td.reverse(images, self._modes[self.mode]), images)


class _Moving(_Random):
    """A layer whose images are looked up at other places.

    Args:
        fill_mode: what lies around an image: its mirror image ("reflect"), the image again
            ("wrap"), its border ("nearest") or `fill_value` ("constant").
        interpolation: "bilinear" or "nearest".
        seed: makes the choices repeat.
    """

    _settings: ClassVar[tuple[str, ...]] = ("fill_mode", "interpolation", "fill_value")

    def __init__(
        self, fill_mode: str = "reflect", interpolation: str = "bilinear",
        seed: int | None = None, fill_value: float = 0.0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, **kwargs)
        if fill_mode not in FILL_MODES or interpolation not in INTERPOLATIONS:
            raise ValueError(
                f"{type(self).__name__}: fill_mode is one of {FILL_MODES} and interpolation one of "
                f"{INTERPOLATIONS}, got {fill_mode!r} and {interpolation!r}"
            )
        self.fill_mode, self.interpolation, self.fill_value = fill_mode, interpolation, fill_value

    def _changed(self, images: td.Tensor) -> td.Tensor:
        height, width = (td.cast(size_of(images, axis), images.dtype) for axis in (1, 2))
        zero = td.zeros(td.shape(images)[:1], images.dtype)
        rows = td.stack([part + zero for part in self._matrix(images, height, width)], 1)
        return projected(images, rows, self.interpolation, self.fill_mode, self.fill_value)

    def _matrix(self, images: td.Tensor, height: td.Tensor, width: td.Tensor) -> list[Any]:
        """The rows (a, b, c) and (d, e, f) of a matrix for each image: the pixel at (x, y) of the
        result is that at ``(a x + b y + c, d x + e y + f)``."""
        raise NotImplementedError


class RandomRotation(_Moving):
    """Turns images.

    Args:
        factor: the greatest turn to either side, or (least, greatest), as parts of a whole turn.
        fill_mode, interpolation, seed, fill_value: as for RandomZoom.
    """

    _settings: ClassVar[tuple[str, ...]] = ("factor",)

    def __init__(self, factor: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.factor = _range(factor, "RandomRotation: factor", -1, 1)

    def _matrix(self, images: td.Tensor, height: td.Tensor, width: td.Tensor) -> list[Any]:
        low, high = (360.0 * f for f in self.factor)
        angle = self._drawn(images, low, high) * (math.pi / 180.0)
        x, y, cos, sin = (width - 1) * 0.5, (height - 1) * 0.5, td.cos(angle), td.sin(angle)
        return [cos, -sin, x - x * cos + y * sin, sin, cos, y - x * sin - y * cos]


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

    _settings: ClassVar[tuple[str, ...]] = ("height_factor", "width_factor")

    def __init__(
        self, height_factor: Any, width_factor: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._heights = _range(height_factor, "RandomZoom: height_factor", -1, 1)
        self._widths: tuple[float, float] | None = None
        if width_factor is not None:
            self._widths = _range(width_factor, "RandomZoom: width_factor", -1, 1)

    def _matrix(self, images: td.Tensor, height: td.Tensor, width: td.Tensor) -> list[Any]:
        tall = 1.0 + self._drawn(images, *self._heights)
        wide = tall if self._widths is None else 1.0 + self._drawn(images, *self._widths)
        left, top = (width - 1) / 2 * (1 - wide), (height - 1) / 2 * (1 - tall)
        return [wide, 0.0, left, 0.0, tall, top]


class RandomTranslation(_Moving):
    """Shifts images.

    Args:
        height_factor, width_factor: the greatest shift either way, or (least, greatest), as parts
            of the height and of the width.
        fill_mode, interpolation, seed, fill_value: as for RandomZoom.
    """

    _settings: ClassVar[tuple[str, ...]] = ("height_factor", "width_factor")

    def __init__(self, height_factor: Any, width_factor: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._heights = _range(height_factor, "RandomTranslation: height_factor", -1, 1)
        self._widths = _range(width_factor, "RandomTranslation: width_factor", -1, 1)

    def _matrix(self, images: td.Tensor, height: td.Tensor, width: td.Tensor) -> list[Any]:
        down = self._drawn(images, *self._heights) * height
        right = self._drawn(images, *self._widths) * width
        return [1.0, 0.0, -right, 0.0, 1.0, -down]


class RandomShear(_Moving):
    """Slants images.

    Args:
        x_factor, y_factor: how far rows and columns are moved at most, as parts of the height and
            of the width, either way; or (least, greatest).
        interpolation, fill_mode, fill_value, seed: as for RandomZoom.
        data_format: "channels_last" or "channels_first".
    """

    _settings: ClassVar[tuple[str, ...]] = ("x_factor", "y_factor")

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

    def _matrix(self, images: td.Tensor, height: td.Tensor, width: td.Tensor) -> list[Any]:
        sign = td.where(self._drawn(images, 0.0, 1.0) > 0.5, -1.0, 1.0)
        across, down = (
            self._drawn(images, *factor) * td.cast(sign, images.dtype)
            for factor in (self.x_factor, self.y_factor)
        )
        return [1.0, across, 0.0, down, 1.0, 0.0]


class RandomCrop(_Random):
    """Cuts a part out of a batch of images; smaller ones are cut in the middle and resized.

    Args:
        height, width: the size of the part.
        seed: makes the choices repeat.
        data_format: "channels_last" or "channels_first".
    """

    _settings: ClassVar[tuple[str, ...]] = ("height", "width")

    def __init__(
        self, height: int, width: int, seed: int | None = None, data_format: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        self.height, self.width = height, width

    def _changed(self, images: td.Tensor) -> td.Tensor:
        rows, columns = images.shape[1], images.shape[2]
        if rows is None or columns is None:
            raise ValueError(
                f'Layer "{self.name}" (RandomCrop) needs a known height and width, got images of '
                f"shape {images.shape}"
            )
        if rows > self.height and columns > self.width:
            top, left = (
                td.random.uniform([], 0, size, td.int32, self.seed)
                for size in (rows - self.height + 1, columns - self.width + 1)
            )
            part = images[:, top : top + self.height, left : left + self.width]
            shape = [images.shape[0], self.height, self.width, images.shape[3]]
            return td.ensure_shape(part, shape)
        top, left, _, _ = middle(images, self.height, self.width)
        part = images[:, top : top + self.height, left : left + self.width]
        return resized(part, self.height, self.width)


class _Coloring(_Random):
    _settings: ClassVar[tuple[str, ...]] = ("factor", "value_range")
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

    def _changed(self, images: td.Tensor) -> td.Tensor:
        low, high = self.value_range
        return self._in_range(images + self._drawn(images, *self.factor, 1, 1, 1) * (high - low))


class RandomContrast(_Coloring):
    """Draws the pixels of images away from their mean, or towards it.

    Args:
        factor: the greatest increase of the distance, or (decrease, increase), as a part of it.
        value_range: the least and the greatest value of a pixel.
        seed: makes the choices repeat.
    """

    _lowest = 0.0

    def _changed(self, images: td.Tensor) -> td.Tensor:
        mean = td.reduce_mean(images, [1, 2], keepdims=True)
        times = self._drawn(images, 1.0 - self.factor[0], 1.0 + self.factor[1], 1, 1, 1)
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

    _settings: ClassVar[tuple[str, ...]] = ("factor", "interpolation")
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

    def _changed(self, images: td.Tensor) -> td.Tensor:
        sizes = list(td.unstack(td.shape(images)[1:3]))
        least, greatest = (1.0 + f for f in self._factors)
        times = td.random.uniform([], least, greatest, seed=self.seed)
        number = self._axis - 1
        sizes[number] = td.cast(times * td.cast(sizes[number], td.float32), td.int32)
        found = td.image.resize(images, td.stack(sizes), self.interpolation)
        return td.cast(found, images.dtype)

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
