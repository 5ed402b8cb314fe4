"""Layers that mix the images of a batch with one another, and their labels as much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.preprocessing.augmentation import _Random, _range
from treadle.keras.layers.spatial import size_of


class _Mixing(_Random):
    """Mixes each image of a batch with another one; a dict of "images" and "labels", too."""

    def call(self, inputs: Any, training: Any = True) -> Any:
        if not training or len(self._images_of(inputs).shape) == 3:
            return super().call(inputs, training=False)
        mixed: list[Any] = []

        def change(images: td.Tensor) -> td.Tensor:
            order = td.random.shuffle(td.range(td.shape(images)[0]), seed=self.seed)
            found, kept = self._mixed(images, td.gather(images, order), order)
            mixed.extend((order, kept))
            return found

        found = self._of(inputs, lambda images: change(self._as_floats(images)))
        if not isinstance(found, Mapping) or "labels" not in found:
            return found
        labels = td.cast(found["labels"], self.compute_dtype)
        order, kept = mixed
        kept = td.reshape(td.cast(kept, labels.dtype), [-1, 1])
        return {**found, "labels": kept * labels + (1.0 - kept) * td.gather(labels, order)}

    @staticmethod
    def _images_of(inputs: Any) -> Any:
        return inputs["images"] if isinstance(inputs, Mapping) else inputs

    def _beta(self, images: td.Tensor, alpha: Any) -> td.Tensor:
        """Numbers of the beta distribution (alpha, alpha), one for each image."""
        shape = td.stack([td.shape(images)[0]])
        one, other = (td.random.gamma(shape, alpha, dtype=images.dtype, seed=self.seed)
                      for _ in range(2))  # fmt: skip
        return one / (one + other + 1e-12)

    def _mixed(
        self, images: td.Tensor, others: td.Tensor, order: td.Tensor
    ) -> tuple[td.Tensor, td.Tensor]:
        """The mixed images, and how much of each is its own."""
        raise NotImplementedError


class MixUp(_Mixing):
    """Means of two images, with weights that are drawn (https://arxiv.org/abs/1710.09412).

    Args:
        alpha: of the beta distribution of the weights: larger ones mix more.
        data_format: "channels_last" or "channels_first".
        seed: makes the choices repeat.
    """

    _settings: ClassVar[tuple[str, ...]] = ("alpha",)

    def __init__(
        self, alpha: float = 0.2, data_format: str | None = None, seed: int | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        self.alpha = alpha

    def _mixed(
        self, images: td.Tensor, others: td.Tensor, order: td.Tensor
    ) -> tuple[td.Tensor, td.Tensor]:
        kept = self._beta(images, self.alpha)
        weight = td.reshape(kept, [-1, 1, 1, 1])
        return weight * images + (1.0 - weight) * others, kept


class CutMix(_Mixing):
    """A rectangle of each image is that of another one (https://arxiv.org/abs/1905.04899).

    Args:
        factor: the parameter of the beta distribution of the areas, or (least, greatest).
        seed: makes the choices repeat.
        data_format: "channels_last" or "channels_first".
    """

    _settings: ClassVar[tuple[str, ...]] = ("factor",)

    def __init__(
        self, factor: Any = 1.0, seed: int | None = None, data_format: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        given = factor if isinstance(factor, tuple | list) else (max(-factor, 0), factor)
        self.factor = _range(given, "CutMix: factor", 0, 1)

    def _within(self, images: td.Tensor, axis: int, part: td.Tensor) -> tuple[Any, Any]:
        """Which places along an axis belong to the rectangles, and how long those are."""
        size = td.cast(size_of(images, axis), images.dtype)
        length = part * size
        start = self._drawn(images, 0.0, 1.0, 1, 1, 1) * (size - length)
        shape = [1, 1, 1, 1]
        shape[axis] = -1
        places = td.reshape(td.cast(td.range(size_of(images, axis)), images.dtype), shape)
        return (places >= start) & (places < start + length), length / size

    def _mixed(
        self, images: td.Tensor, others: td.Tensor, order: td.Tensor
    ) -> tuple[td.Tensor, td.Tensor]:
        low, high = self.factor
        alpha = td.random.uniform([], low, high, images.dtype, self.seed) + 1e-6
        part = td.reshape(td.sqrt(1.0 - self._beta(images, alpha)), [-1, 1, 1, 1])
        (down, tall), (across, wide) = (self._within(images, axis, part) for axis in (1, 2))
        return td.where(down & across, others, images), td.reshape(1.0 - tall * wide, [-1])
