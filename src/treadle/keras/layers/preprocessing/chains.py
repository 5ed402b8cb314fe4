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
from treadle.keras.layers.preprocessing.draws import Draws
from treadle.keras.layers.preprocessing.histograms import Equalization
from treadle.keras.layers.preprocessing.images import Size


class _Drawing(_Random):
    """A layer that changes images by others, of one strength.

    It draws which ones, and two ints for each, from which that one draws: so images, masks and
    boxes are changed alike, and only the chosen layers compute.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("value_range", "factor", "interpolation")

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
        common: dict[str, Any] = {
            "dtype": self.dtype_policy, "data_format": "channels_last",
            "bounding_box_format": self.bounding_box_format,
        }  # fmt: skip
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

    def _by_one(self, layers: list[Any], drawn: Any, of: Any, change: Any) -> Any:
        """What one of the layers makes of a part of the data; a None changes nothing.

        Args:
            drawn: the number of the layer, and two ints that decide what it draws.
            of: the part.
            change: a function of a layer, of what it draws for these images and of the part.
        """
        number, seed, size = drawn

        def by(layer: Any) -> Any:
            if layer is None:
                return lambda: of
            return lambda: change(layer, layer._drawn(size, Draws(seed)), of)

        return td.switch_case(number, [by(layer) for layer in layers])

    def _changed_by_one(self, layers: list[Any], drawn: Any, images: td.Tensor) -> td.Tensor:
        def change(layer: Any, of_layer: Any, x: td.Tensor) -> td.Tensor:
            found = layer.transform_images(x, of_layer)
            return td.cast(td.ensure_shape(found, x.shape), x.dtype)

        return self._by_one(layers, drawn, images, change)  # type: ignore[no-any-return]

    def _masks_by_one(self, layers: list[Any], drawn: Any, masks: td.Tensor) -> td.Tensor:
        def change(layer: Any, of_layer: Any, x: td.Tensor) -> td.Tensor:
            found = layer.transform_segmentation_masks(x, of_layer)
            return td.cast(td.ensure_shape(found, x.shape), x.dtype)

        return self._by_one(layers, drawn, masks, change)  # type: ignore[no-any-return]


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

    _config_names: ClassVar[tuple[str, ...]] = ("num_ops",)

    def __init__(
        self, value_range: Any = (0, 255), num_ops: int = 2, factor: Any = 0.5,
        interpolation: str = "bilinear", seed: int | None = None, data_format: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(value_range, factor, interpolation, seed, data_format, **kwargs)
        self.num_ops = num_ops
        self._kinds = self._layers()

    def _drawn(self, size: Size, draws: Draws) -> Any:
        return {
            "layer_idxes": draws.uniform([self.num_ops], 0, len(self._kinds), td.int32),
            "seeds": draws.uniform([self.num_ops, 2], 0, 2**31 - 1, td.int32),
            "input_shape": size.shape,
        }  # fmt: skip

    def _steps(self, drawn: Any) -> list[Any]:
        """The number of each layer, what decides what it draws, and the size of the images."""
        size = self._size_of_shape(drawn["input_shape"])
        number, seeds = td.unstack(drawn["layer_idxes"]), td.unstack(drawn["seeds"])
        return [(n, seed, size) for n, seed in zip(number, seeds, strict=True)]

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        for step in self._steps(drawn):
            images = self._changed_by_one(self._kinds, step, images)
        return images

    def _changed_masks(self, masks: td.Tensor, drawn: Any) -> td.Tensor:
        for step in self._steps(drawn):
            masks = self._masks_by_one(self._kinds, step, masks)
        return masks

    def _changed_boxes(self, boxes: Any, drawn: Any) -> Any:
        labels = td.convert_to_tensor(boxes["labels"])
        found = td.cast(boxes["boxes"], td.float32), labels

        def change(layer: Any, of_layer: Any, parts: Any) -> Any:
            given = dict(zip(("boxes", "labels"), parts, strict=True))
            made = layer.transform_bounding_boxes(given, of_layer)
            return made["boxes"], made["labels"]

        for step in self._steps(drawn):
            found = self._by_one(self._kinds, step, found, change)
        return {**boxes, "boxes": found[0], "labels": found[1]}


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

    _config_names: ClassVar[tuple[str, ...]] = ("num_chains", "chain_depth", "alpha", "all_ops")

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

    def _drawn(self, size: Size, draws: Draws) -> Any:
        shape = [self.num_chains, self.chain_depth]
        weights = draws.gamma([self.num_chains], self.alpha)
        own, other = td.unstack(draws.gamma([2], self.alpha))
        return {
            "chain_mixing_weights": weights / td.reduce_sum(weights),
            "weight_sample": own / (own + other),
            "layer_idxes": draws.uniform(shape, 0, len(self._kinds), td.int32),
            "seeds": draws.uniform([*shape, 2], 0, 2**31 - 1, td.int32),
            "input_shape": size.shape,
        }  # fmt: skip

    def _mixed(self, images: td.Tensor, drawn: Any, by_one: Any) -> td.Tensor:
        """The mean of images and of what chains of layers make of them."""
        size = self._size_of_shape(drawn["input_shape"])
        mixed = td.zeros_like(images)
        chains = (drawn[name] for name in ("chain_mixing_weights", "layer_idxes", "seeds"))
        for weight, numbers, seeds in zip(*map(td.unstack, chains), strict=True):
            chained = images
            for number, seed in zip(td.unstack(numbers), td.unstack(seeds), strict=True):
                chained = by_one(self._kinds, (number, seed, size), chained)
            mixed += td.cast(weight, images.dtype) * chained
        kept = td.cast(drawn["weight_sample"], images.dtype)
        return kept * images + (1.0 - kept) * mixed

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        found = self._mixed(images, drawn, self._changed_by_one)
        return td.clip_by_value(found, float(self.value_range[0]), float(self.value_range[1]))

    def _changed_masks(self, masks: td.Tensor, drawn: Any) -> td.Tensor:
        return self._mixed(td.cast(masks, self.compute_dtype), drawn, self._masks_by_one)
