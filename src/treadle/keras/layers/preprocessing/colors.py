"""Layers that change the colours of images at random, and parts of them."""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras.config import epsilon
from treadle.keras.layers.preprocessing.augmentation import _Random, _range, each
from treadle.keras.layers.preprocessing.draws import Draws
from treadle.keras.layers.preprocessing.images import OfImages, Size


def _pair(value_range: Any, name: str) -> list[float]:
    """(least, greatest) value of pixels.

    Raises:
        ValueError: it is no pair.
    """
    if not isinstance(value_range, list | tuple) or len(value_range) != 2:
        raise ValueError(f"{name}: value_range is a pair of numbers, got {value_range!r}")
    return sorted(value_range)


def _stretched(x: td.Tensor, old: Any, new: Any) -> td.Tensor:
    """Pixels of one range of values in another one."""
    (low, high), (least, most) = old, new
    return x if [*old] == [*new] else (x - low) / (high - low) * (most - least) + least


def within(
    draws: Draws, shape: Any, axis: int, length: Any, part: td.Tensor
) -> tuple[td.Tensor, td.Tensor]:
    """Which places along an axis belong to drawn intervals, and which part of it these are.

    Args:
        shape: of what is drawn, one number for each image.
        axis: the axis of the result that the places are along.
        length: how many there are.
        part: how long the intervals are, as parts of that.
    """
    whole = td.cast(length, td.float32)
    inside = part * whole
    start = draws.uniform(shape, 0.0, 1.0) * (whole - inside)
    along = [1, 1, 1, 1]
    along[axis] = -1
    places = td.reshape(td.cast(td.range(length), td.float32), along)
    return (places >= start) & (places < start + inside), inside / whole


def _grey(images: td.Tensor) -> td.Tensor:
    weights = td.constant([[0.2989], [0.5870], [0.1140]], images.dtype)
    return td.tensordot(images, weights, [[-1], [0]])


class _Colors(_Random):
    """A random change of colours, by a factor for each image."""

    _config_names: ClassVar[tuple[str, ...]] = ("factor", "value_range")
    _bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __init__(
        self, factor: Any, value_range: Any = (0, 255), data_format: str | None = None,
        seed: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        low, high = self._bounds
        given = factor if isinstance(factor, tuple | list) else (max(-factor, low), factor)
        self.factor = _range(given, f"{type(self).__name__}: factor", low, high)
        self.value_range = _pair(value_range, type(self).__name__)

    def _drawn(self, size: Size, draws: Draws) -> Any:
        return {"factor": draws.uniform([size.batch, 1, 1, 1], *self.factor)}

    def _in_range(self, images: td.Tensor) -> td.Tensor:
        low, high = (float(v) for v in self.value_range)
        return td.clip_by_value(images, low, high)


class RandomColorDegeneration(_Colors):
    """Draws colours towards grey.

    Args:
        factor: how far at most, either way: 1 is grey; or (least, greatest).
        value_range: the least and the greatest value of a pixel.
        data_format: "channels_last" or "channels_first".
        seed: makes the choices repeat.
    """

    _bounds = (-1.0, 1.0)

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        factor = each(drawn["factor"], images)
        return self._in_range(images + factor * (_grey(images) - images))


class RandomSharpness(_Colors):
    """Blurs images, or makes them sharper.

    Args:
        factor: 0 blurs, 0.5 changes nothing, 1 sharpens; or (least, greatest).
        value_range, data_format, seed: as for RandomColorDegeneration.
    """

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        a, b = 1.0 / 13.0, 5.0 / 13.0
        kernel = td.constant([[a, a, a], [a, b, a], [a, a, a]], images.dtype)[:, :, None, None]
        kernel = td.tile(kernel, [1, 1, images.shape[-1], 1])
        smooth = td.nn.depthwise_conv2d(images, kernel, [1, 1, 1, 1], "SAME")
        times = 1.0 - each(drawn["factor"], images) * 2
        return self._in_range(images + times * (smooth - images))


class RandomSaturation(_Colors):
    """Makes colours stronger or weaker.

    Args:
        factor: 0 is grey, 0.5 changes nothing, 1 are full colours: (least, greatest), or a
            number, which is the greatest, as its negative is the least.
        value_range, data_format, seed: as for RandomColorDegeneration.
    """

    _bounds = (-1.0, 1.0)

    def _drawn(self, size: Size, draws: Draws) -> Any:
        drawn = draws.uniform([size.batch], *self.factor)
        return {"factor": drawn / (1 - drawn + epsilon())}

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        times = each(drawn["factor"], images)[..., 0]
        hue, strength, value = td.unstack(td.image.rgb_to_hsv(images), axis=-1)
        low, high = (float(v) for v in self.value_range)
        strength = td.clip_by_value(strength * times, low, high)
        return td.image.hsv_to_rgb(td.stack([hue, strength, value], -1))


class RandomHue(_Colors):
    """Turns colours around the colour wheel.

    Args:
        factor: how far either way: 1 is half a turn; or (least, greatest).
        value_range, data_format, seed: as for RandomColorDegeneration.
    """

    def _drawn(self, size: Size, draws: Draws) -> Any:
        sign = draws.signs([size.batch])
        return {"factor": sign * draws.uniform([size.batch], *self.factor) * 0.5}

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        turn = each(drawn["factor"], images)[..., 0]
        colors = td.image.rgb_to_hsv(_stretched(images, self.value_range, (0, 1)))
        hue, strength, value = td.unstack(colors, axis=-1)
        hue = hue + turn
        hue = td.where(hue > 1.0, hue - 1.0, td.where(hue < 0.0, hue + 1.0, hue))
        found = td.image.hsv_to_rgb(td.stack([hue, strength, value], -1))
        found = td.clip_by_value(found, 0.0, 1.0)
        return _stretched(found, (0, 1), self.value_range)


class RandomPosterization(_Colors):
    """Leaves so many bits of each channel.

    Args:
        factor: how many at most, from 1 to 8, or (least, greatest).
        value_range, data_format, seed: as for RandomColorDegeneration.
    """

    _bounds = (1, 8)

    def _drawn(self, size: Size, draws: Draws) -> Any:
        low, high = (int(f) for f in self.factor)
        shape = [size.batch, 1, 1, 1]
        kept = td.fill(td.stack(shape), low) if low == high else (
            draws.uniform(shape, low, high, td.int32)
        )  # fmt: skip
        return {"shift_factor": 8 - td.cast(kept, td.int32)}

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        pixels = td.cast(_stretched(images, self.value_range, (0, 255)), td.int32)
        lost = each(drawn["shift_factor"], pixels)
        pixels = td.bitwise.left_shift(td.bitwise.right_shift(pixels, lost), lost)
        return _stretched(td.cast(pixels, images.dtype), (0, 255), self.value_range)


class _Sometimes(_Random):
    """A change of a part of the images."""

    @staticmethod
    def _chosen(size: Size, draws: Draws, least: float, most: float) -> td.Tensor:
        """Which images are changed, [batch]."""
        often = draws.uniform([size.batch], least, most)
        return draws.uniform([size.batch], 0.0, 1.0) < often


class RandomGrayscale(_Sometimes):
    """Makes a part of the images grey.

    Args:
        factor: the part.
        data_format: "channels_last" or "channels_first".
        seed: makes the choices repeat.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("factor",)
    _no_settings: ClassVar[tuple[str, ...]] = ("seed",)

    def __init__(
        self, factor: float = 0.5, data_format: str | None = None, seed: int | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        if not 0 <= factor <= 1:
            raise ValueError(f"`factor` should be between 0 and 1. Received: factor={factor}")
        self.factor = factor

    def _drawn(self, size: Size, draws: Draws) -> Any:
        return draws.uniform([size.batch, 1, 1, 1], 0.0, 1.0) < self.factor

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        return td.where(each(drawn, images), _grey(images), images)


class RandomInvert(_Sometimes):
    """Makes negatives of a part of the images.

    Args:
        factor: the part, or (least, greatest).
        value_range: the least and the greatest value of a pixel.
        seed: makes the choices repeat.
        data_format: "channels_last" or "channels_first".
    """

    _config_names: ClassVar[tuple[str, ...]] = ("factor", "value_range")

    def __init__(
        self, factor: Any = 1.0, value_range: Any = (0, 255), seed: int | None = None,
        data_format: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        given = factor if isinstance(factor, tuple | list) else (max(-factor, 0.0), factor)
        self.factor = _range(given, "RandomInvert: factor", 0, 1)
        self.value_range = _pair(value_range, "RandomInvert")

    def _drawn(self, size: Size, draws: Draws) -> Any:
        return {"apply_inversion": self._chosen(size, draws, *self.factor)}

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        chosen = each(drawn["apply_inversion"], images)
        return td.where(chosen, self.value_range[1] - images, images)


class RandomErasing(_Sometimes):
    """Fills a rectangle of a part of the images.

    Args:
        factor: the part, or (least, greatest).
        scale: the area of the rectangle, as a part of the image: (least, greatest).
        fill_value: what it is filled with; random numbers when omitted.
        value_range, seed, data_format: as for RandomInvert.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("factor", "scale", "fill_value", "value_range")

    def __init__(
        self, factor: Any = 1.0, scale: Any = (0.02, 0.33), fill_value: Any = None,
        value_range: Any = (0, 255), seed: int | None = None, data_format: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        given = factor if isinstance(factor, tuple | list) else (max(-factor, 0.0), factor)
        self.factor = _range(given, "RandomErasing: factor", 0, 1)
        given = scale if isinstance(scale, tuple | list) else (0.0, scale)
        self.scale = _range(given, "RandomErasing: scale", 0, 1)
        self.fill_value, self.value_range = fill_value, _pair(value_range, "RandomErasing")

    def _drawn(self, size: Size, draws: Draws) -> Any:
        each_image = [size.batch, 1, 1, 1]
        parts = [td.sqrt(draws.uniform(each_image, *self.scale)) for _ in range(2)]
        down, across = (
            within(draws, each_image, axis, length, part)[0]
            for axis, length, part in zip((1, 2), (size.height, size.width), parts, strict=True)
        )
        fill: Any = self.fill_value
        if fill is None:
            shape = [size.batch, size.height, size.width, size.channels]
            fill = self._own_format(draws.normal(shape) * self.value_range[1])
        return {
            "apply_erasing": self._chosen(size, draws, *self.factor),
            "batch_masks": self._own_format(down & across), "fill_value": fill,
        }  # fmt: skip

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        fill = td.cast(drawn["fill_value"], images.dtype)
        fill = self._channels_last(fill) if len(fill.shape) == 4 else fill
        inside = self._channels_last(td.convert_to_tensor(drawn["batch_masks"]))
        chosen = each(drawn["apply_erasing"], images)
        return td.where(inside & chosen, fill, images)


class Solarization(_Random):
    """Turns bright pixels into negatives.

    Args:
        addition_factor: added before, as a part of 255: the greatest, or (least, greatest).
        threshold_factor: from where on pixels are turned, as a part of 255.
        value_range: the least and the greatest value of a pixel.
        seed: makes the choices repeat.
    """

    _config_names: ClassVar[tuple[str, ...]] = (
        "addition_factor", "threshold_factor", "value_range",
    )

    def __init__(
        self, addition_factor: Any = 0.0, threshold_factor: Any = 0.0, value_range: Any = (0, 255),
        seed: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, **kwargs)
        pairs = [f if isinstance(f, tuple | list) else (0, f)
                 for f in (addition_factor, threshold_factor)]  # fmt: skip
        self.addition_factor = _range(pairs[0], "Solarization: addition_factor", 0, 1)
        self.threshold_factor = _range(pairs[1], "Solarization: threshold_factor", 0, 1)
        self.value_range = _pair(value_range, "Solarization")

    def _drawn(self, size: Size, draws: Draws) -> Any:
        more, edge = (
            draws.uniform([size.batch, 1, 1, 1], low, high * 255.0)
            for low, high in (self.addition_factor, self.threshold_factor)
        )
        return {"additions": more, "thresholds": edge}

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        more, edge = (each(drawn[name], images) for name in ("additions", "thresholds"))
        pixels = _stretched(images, self.value_range, (0, 255)) + more
        pixels = td.clip_by_value(pixels, 0.0, 255.0)
        return _stretched(td.where(pixels < edge, pixels, 255 - pixels), (0, 255), self.value_range)


class AutoContrast(OfImages):
    """Stretches the values of each channel over the whole range.

    Args:
        value_range: the least and the greatest value of a pixel.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("value_range",)

    def __init__(self, value_range: Any = (0, 255), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.value_range = _pair(value_range, "AutoContrast")

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        pixels = td.cast(images, self.compute_dtype)
        pixels = _stretched(pixels, self.value_range, (0, 255))
        low = td.reduce_min(pixels, [1, 2], keepdims=True)
        high = td.reduce_max(pixels, [1, 2], keepdims=True)
        scale = 255.0 / (high - low)
        found = td.clip_by_value(pixels * scale - low * scale, 0.0, 255.0)
        found = _stretched(found, (0, 255), self.value_range)
        return td.where(td.math.is_nan(found), td.cast(images, found.dtype), found)
