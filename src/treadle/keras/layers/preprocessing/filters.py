"""Layers that blur images, shake their colours, tilt them and bend them."""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.preprocessing.augmentation import (
    RandomBrightness,
    RandomContrast,
    _Random,
    _range,
    each,
)
from treadle.keras.layers.preprocessing.colors import (
    RandomHue,
    RandomSaturation,
    _pair,
    _Sometimes,
)
from treadle.keras.layers.preprocessing.draws import Draws
from treadle.keras.layers.preprocessing.images import Size
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

    _config_names: ClassVar[tuple[str, ...]] = ("factor", "kernel_size", "sigma", "value_range")

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

    def _drawn(self, size: Size, draws: Draws) -> Any:
        chosen = self._chosen(size, draws, *self.factor)
        widths = draws.uniform([2], *self.sigma, self.compute_dtype) + 1e-6
        return {"should_apply_blur": chosen, "blur_factor": widths}

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        widths = td.cast(drawn["blur_factor"], images.dtype)
        blurred = td.keras.ops.image.gaussian_blur(
            images, self.kernel_size, (widths[0], widths[1]), "channels_last"
        )
        found = td.where(each(drawn["should_apply_blur"], images), blurred, images)
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

    _config_names: ClassVar[tuple[str, ...]] = (
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

    def _drawn(self, size: Size, draws: Draws) -> Any:
        return [step._drawn(size, draws) for step in self._steps]

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        for step, drawn_for in zip(self._steps, drawn, strict=True):
            images = step.transform_images(images, drawn_for)
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

    _config_names: ClassVar[tuple[str, ...]] = ("factor", "scale", "interpolation", "fill_value")

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

    def _drawn(self, size: Size, draws: Draws) -> Any:
        chosen = self._chosen(size, draws, *self.factor)
        down, across = (td.cast(length, td.float32) - 1 for length in (size.height, size.width))
        zero = td.zeros([])
        corners = td.stack([
            td.stack([zero, zero]), td.stack([across, zero]), td.stack([zero, down]),
            td.stack([across, down]),
        ])  # fmt: skip
        start = td.tile(corners[None], td.stack([size.batch, 1, 1]))
        far = draws.uniform([size.batch, 4, 2], -0.5 * self.scale, 0.5 * self.scale)
        return {
            "apply_perspective": chosen, "start_points": start, "end_points": start + start * far,
            "input_shape": size.shape,
        }  # fmt: skip

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        return self._tilted(images, drawn, self.interpolation)

    def _changed_masks(self, masks: td.Tensor, drawn: Any) -> td.Tensor:
        return self._tilted(masks, drawn, "nearest")

    def _tilted(self, images: td.Tensor, drawn: Any, interpolation: str) -> td.Tensor:
        tilted = td.keras.ops.image.perspective_transform(
            images, drawn["start_points"], drawn["end_points"], interpolation, self.fill_value,
            "channels_last",
        )  # fmt: skip
        return td.where(each(drawn["apply_perspective"], images), tilted, images)

    def _changed_boxes(self, boxes: Any, drawn: Any) -> Any:
        if drawn is None:
            return boxes
        start, end = (
            td.cast(drawn[name], td.float32) for name in ("start_points", "end_points")
        )
        # Pixels are looked up by a matrix, so what is seen of an image moves by its inverse.
        rows = td.keras.ops.pictures.homography(start, end)
        rows = td.concat([rows, td.ones_like(rows[:, :1])], 1)
        inverse = td.linalg.inv(td.reshape(rows, [-1, 3, 3]))

        def tilted(parts: list[td.Tensor]) -> list[td.Tensor]:
            x1, y1, x2, y2 = parts
            x, y = td.concat([x1, x2, x1, x2], -1), td.concat([y1, y2, y2, y1], -1)
            across, down, far = (
                inverse[:, row, 0, None, None] * x + inverse[:, row, 1, None, None] * y
                + inverse[:, row, 2, None, None]
                for row in range(3)
            )  # fmt: skip
            corners = across / far, down / far
            least = [td.reduce_min(part, -1, keepdims=True) for part in corners]
            most = [td.reduce_max(part, -1, keepdims=True) for part in corners]
            chosen = each(drawn["apply_perspective"], least[0])
            return [td.where(chosen, a, b) for a, b in zip([*least, *most], parts, strict=True)]

        size = self._height_and_width(drawn["input_shape"])
        return self._moved(boxes, size, tilted)


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

    _config_names: ClassVar[tuple[str, ...]] = (
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

    def _drawn(self, size: Size, draws: Draws) -> Any:
        if not (self.scale[1] and self.factor[1]):
            return None
        return {
            "apply_transform": self._chosen(size, draws, *self.factor),
            "distortion_factor": draws.uniform([], *self.scale, self.compute_dtype),
            "seed": draws.uniform([2], 0, 2**31 - 1, td.int32),
        }  # fmt: skip

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        if drawn is None:
            return images
        found = self._bent(images, drawn, self.interpolation)
        return td.clip_by_value(found, float(self.value_range[0]), float(self.value_range[1]))

    def _changed_masks(self, masks: td.Tensor, drawn: Any) -> td.Tensor:
        return masks if drawn is None else self._bent(masks, drawn, "nearest")

    def _bent(self, images: td.Tensor, drawn: Any, interpolation: str) -> td.Tensor:
        sizes = [size_of(images, axis) for axis in (1, 2)]
        if not all(isinstance(size, int) for size in sizes):
            raise ValueError(
                f'Layer "{self.name}" (RandomElasticTransform) takes images of a known size, got '
                f"{images.shape}: Resizing makes them so"
            )
        far, smooth = 0.1 * max(sizes), 0.05 * min(sizes)
        much = td.cast(drawn["distortion_factor"], td.float32)
        seed = td.keras.random.draw_seed(drawn["seed"]) if isinstance(drawn["seed"], int) else (
            drawn["seed"]
        )  # fmt: skip
        bent = td.keras.ops.pictures.displaced(
            images, far * much, smooth * much, int(6 * int(smooth * self.scale[1])) | 1, seed,
            interpolation, self.fill_mode, self.fill_value,
        )  # fmt: skip
        chosen = each(drawn["apply_transform"], images)
        return td.where(chosen, td.cast(bent, images.dtype), images)

    def transform_bounding_boxes(
        self, bounding_boxes: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        raise NotImplementedError(
            "RandomElasticTransform does not change boxes, and neither does Keras's: leave "
            "\"bounding_boxes\" out"
        )
