"""Layers that change images by other layers, which are drawn."""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.preprocessing.augmentation import (
    RandomBrightness,
    RandomContrast,
    RandomRotation,
    RandomShear,
    RandomTranslation,
    _Random,
    _range,
)
from treadle.keras.layers.preprocessing.colors import (
    AutoContrast,
    RandomColorDegeneration,
    RandomPosterization,
    RandomSharpness,
    Solarization,
    _pair,
)
from treadle.keras.layers.preprocessing.histograms import Equalization


class _Drawing(_Random):
    """A layer that changes images by others, of one strength."""

    _settings: ClassVar[tuple[str, ...]] = ("value_range", "factor", "interpolation")

    def __init__(
        self, value_range: Any, factor: Any, interpolation: str, seed: int | None,
        data_format: str | None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        given = factor if isinstance(factor, tuple | list) else (0.0, factor)
        self.factor = _range(given, f"{type(self).__name__}: factor", 0, 1)
        self.value_range = _pair(value_range, type(self).__name__)
        self.interpolation = interpolation

    def _layers(self, shades: bool = True) -> list[Any]:
        """The layers that there are, without those of shades where they are not wanted."""
        factor, seed = self.factor, self.seed
        common: dict[str, Any] = {"dtype": self.dtype_policy, "data_format": "channels_last"}
        moving = {"interpolation": self.interpolation, "seed": seed, **common}
        colours = {"value_range": self.value_range, **common}
        bits = max(1, int(8 * factor[1]))
        found = [
            RandomShear(factor, factor, **moving),
            RandomTranslation(factor, factor, **moving),
            RandomRotation(factor, **moving),
            RandomPosterization(bits, seed=seed, **colours),
            Solarization(factor, factor, seed=seed, **colours),
            AutoContrast(**colours),
            Equalization(**colours),
        ]
        kinds = (RandomBrightness, RandomColorDegeneration, RandomContrast, RandomSharpness)
        return found + [kind(factor, seed=seed, **colours) for kind in kinds if shades]

    def _one_of(self, layers: list[Any], images: td.Tensor) -> td.Tensor:
        """What one of the layers makes of the images; a None changes nothing."""

        def changed(layer: Any) -> td.Tensor:
            return td.cast(td.ensure_shape(layer(images), images.shape), images.dtype)

        def by(layer: Any) -> Any:
            return lambda: images if layer is None else changed(layer)

        number = td.random.uniform([], 0, len(layers), td.int32, self.seed)
        return td.switch_case(number, [by(layer) for layer in layers])  # type: ignore[no-any-return]


class RandAugment(_Drawing):
    """Changes each batch by a few layers that are drawn (https://arxiv.org/abs/1909.13719).

    Args:
        value_range: the least and the greatest value of a pixel.
        num_ops: how many layers change a batch.
        factor: how much, in 0 ... 1.
        interpolation: "bilinear" or "nearest".
        seed: makes the choices repeat.
        data_format: "channels_last" or "channels_first".
    """

    _settings: ClassVar[tuple[str, ...]] = ("num_ops",)

    def __init__(
        self, value_range: Any = (0, 255), num_ops: int = 2, factor: Any = 0.5,
        interpolation: str = "bilinear", seed: int | None = None, data_format: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(value_range, factor, interpolation, seed, data_format, **kwargs)
        self.num_ops = num_ops
        self._kinds = self._layers()

    def _changed(self, images: td.Tensor) -> td.Tensor:
        for _ in range(self.num_ops):
            images = self._one_of(self._kinds, images)
        return images


class AugMix(_Drawing):
    """Means of images and of what chains of drawn layers make of them
    (https://arxiv.org/abs/1912.02781).

    Args:
        value_range: the least and the greatest value of a pixel.
        num_chains: how many chains there are.
        chain_depth: how many layers are in one at most.
        factor: how much a layer changes, in 0 ... 1.
        alpha: of the distributions of the weights: larger ones make them more alike.
        all_ops: with the layers that change brightness, contrast, colours and sharpness.
        interpolation: "bilinear" or "nearest".
        seed: makes the choices repeat.
        data_format: "channels_last" or "channels_first".
    """

    _settings: ClassVar[tuple[str, ...]] = ("num_chains", "chain_depth", "alpha", "all_ops")

    def __init__(
        self, value_range: Any = (0, 255), num_chains: int = 3, chain_depth: int = 3,
        factor: Any = 0.3, alpha: float = 1.0, all_ops: bool = True,
        interpolation: str = "bilinear", seed: int | None = None, data_format: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(value_range, factor, interpolation, seed, data_format, **kwargs)
        self.num_chains, self.chain_depth = num_chains, chain_depth
        self.alpha, self.all_ops = alpha, all_ops
        self._kinds = [*self._layers(all_ops), None]

    def _gammas(self, images: td.Tensor, number: int) -> td.Tensor:
        return td.random.gamma([number], self.alpha, dtype=images.dtype, seed=self.seed)

    def _changed(self, images: td.Tensor) -> td.Tensor:
        weights = self._gammas(images, self.num_chains)
        mixed = td.zeros_like(images)
        for weight in td.unstack(weights / td.reduce_sum(weights)):
            chained = images
            for _ in range(self.chain_depth):
                chained = self._one_of(self._kinds, chained)
            mixed += weight * chained
        own, other = td.unstack(self._gammas(images, 2))
        kept = own / (own + other)
        found = kept * images + (1.0 - kept) * mixed
        return td.clip_by_value(found, float(self.value_range[0]), float(self.value_range[1]))
