"""Layers that blur images, shake their colours, tilt them and bend them."""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.preprocessing.augmentation import (
    RandomBrightness,
    RandomContrast,
    _Random,
    _range,
)
from treadle.keras.layers.preprocessing.colors import (
    RandomHue,
    RandomSaturation,
    _pair,
    _Sometimes,
)
from treadle.keras.layers.preprocessing.projections import FILL_MODES, INTERPOLATIONS
from treadle.keras.layers.spatial import size_of


def _part(factor: Any, name: str) -> tuple[float, float]:
    """(least, greatest) in [0, 1], from a pair or the greatest."""
    given = factor if isinstance(factor, tuple | list) else (max(-factor, 0.0), factor)
    return _range(given, name, 0, 1)


class RandomGaussianBlur(_Sometimes):
    """Blurs a part of the images.

    Args:
        factor: the part, or (least, greatest).
        kernel_size: rows and columns of the neighbours that count, odd numbers, or one for both.
        sigma: how wide the bell of their weights is: the greatest, or (least, greatest).
        value_range: the least and the greatest value of a pixel.
        data_format: "channels_last" or "channels_first".
        seed: makes the choices repeat.
    """

    _settings: ClassVar[tuple[str, ...]] = ("factor", "kernel_size", "sigma", "value_range")

    def __init__(
        self, factor: Any = 1.0, kernel_size: Any = 3, sigma: Any = 1.0,
        value_range: Any = (0, 255), data_format: str | None = None, seed: int | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        self.factor = _part(factor, "RandomGaussianBlur: factor")
        self.sigma = _part(sigma, "RandomGaussianBlur: sigma")
        given = kernel_size if isinstance(kernel_size, tuple | list) else (kernel_size,) * 2
        if len(given) != 2 or any(size % 2 == 0 for size in given):
            raise ValueError(
                f"kernel_size must be an odd number. Received: kernel_size={kernel_size}"
            )
        self.kernel_size = tuple(given)
        self.value_range = _pair(value_range, "RandomGaussianBlur")

    def _changed(self, images: td.Tensor) -> td.Tensor:
        widths = td.random.uniform([2], *self.sigma, images.dtype, self.seed) + 1e-6
        blurred = td.keras.ops.image.gaussian_blur(
            images, self.kernel_size, (widths[0], widths[1]), "channels_last"
        )
        found = td.where(self._chosen(images, *self.factor), blurred, images)
        return td.clip_by_value(found, float(self.value_range[0]), float(self.value_range[1]))


class RandomColorJitter(_Random):
    """Changes brightness, contrast, saturation and hue, one after the other.

    Args:
        value_range: the least and the greatest value of a pixel.
        brightness_factor, contrast_factor, saturation_factor, hue_factor: of `RandomBrightness`,
            `RandomContrast`, `RandomSaturation` and `RandomHue`; None leaves it out.
        seed: makes the choices repeat.
        data_format: "channels_last" or "channels_first".
    """

    _settings: ClassVar[tuple[str, ...]] = (
        "value_range", "brightness_factor", "contrast_factor", "saturation_factor", "hue_factor",
    )  # fmt: skip
    _kinds: ClassVar[dict[str, Any]] = {
        "brightness_factor": RandomBrightness, "contrast_factor": RandomContrast,
        "saturation_factor": RandomSaturation, "hue_factor": RandomHue,
    }  # fmt: skip

    def __init__(
        self, value_range: Any = (0, 255), brightness_factor: Any = None,
        contrast_factor: Any = None, saturation_factor: Any = None, hue_factor: Any = None,
        seed: int | None = None, data_format: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        self.value_range = _pair(value_range, "RandomColorJitter")
        self.brightness_factor, self.contrast_factor = brightness_factor, contrast_factor
        self.saturation_factor, self.hue_factor = saturation_factor, hue_factor
        self._steps = [
            kind(getattr(self, name), value_range=value_range, seed=seed,
                 data_format="channels_last")
            for name, kind in self._kinds.items() if getattr(self, name) is not None
        ]  # fmt: skip

    def _changed(self, images: td.Tensor) -> td.Tensor:
        for step in self._steps:
            images = step(images, training=True)
        return images


class RandomPerspective(_Sometimes):
    """Tilts a part of the images, as if they were seen from the side.

    Args:
        factor: the part, or (least, greatest).
        scale: how far: 0 ... 1.
        interpolation: "bilinear" or "nearest".
        fill_value: of what is outside of the image.
        seed: makes the choices repeat.
        data_format: "channels_last" or "channels_first".
    """

    _settings: ClassVar[tuple[str, ...]] = ("factor", "scale", "interpolation", "fill_value")

    def __init__(
        self, factor: Any = 1.0, scale: float = 1.0, interpolation: str = "bilinear",
        fill_value: float = 0.0, seed: int | None = None, data_format: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        self.factor = _part(factor, "RandomPerspective: factor")
        if not 0 <= scale <= 1:
            raise ValueError(
                f"The `scale` argument should be a number in the range [0,1]. Received: {scale}"
            )
        if interpolation not in ("nearest", "bilinear"):
            raise NotImplementedError(
                f"Unknown `interpolation` {interpolation}. Expected of one ('nearest', 'bilinear')."
            )
        self.scale, self.interpolation, self.fill_value = scale, interpolation, fill_value

    def _changed(self, images: td.Tensor) -> td.Tensor:
        down, across = (td.cast(td.shape(images)[axis] - 1, images.dtype) for axis in (1, 2))
        zero = td.zeros([], images.dtype)
        corners = td.stack([
            td.stack([zero, zero]), td.stack([across, zero]), td.stack([zero, down]),
            td.stack([across, down]),
        ])  # fmt: skip
        start = td.tile(corners[None], td.stack([td.shape(images)[0], 1, 1]))
        end = start + start * self._drawn(images, -0.5 * self.scale, 0.5 * self.scale, 4, 2)
        tilted = td.keras.ops.image.perspective_transform(
            images, start, end, self.interpolation, self.fill_value, "channels_last"
        )
        return td.where(self._chosen(images, *self.factor), tilted, images)


class RandomElasticTransform(_Sometimes):
    """Bends a part of the images, as if they were of rubber.

    Args:
        factor: the part, or (least, greatest).
        scale: how far: the greatest, or (least, greatest).
        interpolation: "bilinear" or "nearest".
        fill_mode: what lies around an image: "constant", "nearest", "wrap", "mirror" or "reflect".
        fill_value: of what is outside of the image, for "constant".
        value_range: the least and the greatest value of a pixel.
        seed: makes the choices repeat.
        data_format: "channels_last" or "channels_first".
    """

    _settings: ClassVar[tuple[str, ...]] = (
        "factor", "scale", "interpolation", "fill_mode", "fill_value", "value_range",
    )  # fmt: skip

    def __init__(
        self, factor: Any = 1.0, scale: Any = 1.0, interpolation: str = "bilinear",
        fill_mode: str = "reflect", fill_value: float = 0.0, value_range: Any = (0, 255),
        seed: int | None = None, data_format: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        self.factor = _part(factor, "RandomElasticTransform: factor")
        self.scale = _part(scale, "RandomElasticTransform: scale")
        for name, given, known in (
            ("interpolation", interpolation, INTERPOLATIONS),
            ("fill_mode", fill_mode, FILL_MODES),
        ):
            if given not in known:
                raise NotImplementedError(f"Unknown `{name}` {given}. Expected of one {known}.")
        self.interpolation, self.fill_mode, self.fill_value = interpolation, fill_mode, fill_value
        self.value_range = _pair(value_range, "RandomElasticTransform")

    def _changed(self, images: td.Tensor) -> td.Tensor:
        if not (self.scale[1] and self.factor[1]):
            return images
        sizes = [size_of(images, axis) for axis in (1, 2)]
        if not all(isinstance(size, int) for size in sizes):
            raise ValueError(
                f'Layer "{self.name}" (RandomElasticTransform) takes images of a known size, got '
                f"{images.shape}: Resizing makes them so"
            )
        far, smooth = 0.1 * max(sizes), 0.05 * min(sizes)
        drawn = td.random.uniform([], *self.scale, images.dtype, self.seed)
        seed = td.random.uniform([2], 0, 2**31 - 1, td.int32, self.seed)
        bent = td.keras.ops.pictures.displaced(
            images, far * drawn, smooth * drawn, int(6 * int(smooth * self.scale[1])) | 1, seed,
            self.interpolation, self.fill_mode, self.fill_value,
        )  # fmt: skip
        found = td.where(self._chosen(images, *self.factor), bent, images)
        return td.clip_by_value(found, float(self.value_range[0]), float(self.value_range[1]))
