"""Layers that mix the images of a batch with one another, and what belongs to them as much."""

from __future__ import annotations

from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.preprocessing.augmentation import _Random, _range, each
from treadle.keras.layers.preprocessing.colors import within
from treadle.keras.layers.preprocessing.draws import Draws
from treadle.keras.layers.preprocessing.images import Size


class _Mixing(_Random):
    """Mixes each image of a batch with another one; a single image stays."""

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        if len(self._size(data).shape) == 3:
            return None
        return super().get_random_transformation(data, training, seed)

    def transform_images(
        self, images: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        return super().transform_images(images, transformation, training and bool(transformation))

    def transform_labels(
        self, labels: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        if not training or not transformation:
            return labels
        labels = td.cast(labels, self.compute_dtype)
        kept = td.reshape(td.cast(transformation["mix_weight"], labels.dtype), [-1, 1])
        return kept * labels + (1.0 - kept) * _others(labels, transformation)

    def transform_segmentation_masks(
        self, segmentation_masks: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        changes = training and bool(transformation)
        return super().transform_segmentation_masks(segmentation_masks, transformation, changes)

    def _changed_masks(self, masks: td.Tensor, drawn: Any) -> td.Tensor:
        return self._changed(td.cast(masks, self.compute_dtype), drawn)


def _others(parts: td.Tensor, drawn: Any) -> td.Tensor:
    """Those of the other images."""
    return td.gather(parts, td.convert_to_tensor(drawn["permutation_order"]))


def _beta(size: Size, draws: Draws, alpha: Any) -> td.Tensor:
    """Numbers of the beta distribution (alpha, alpha), one for each image."""
    one, other = (draws.gamma([size.batch], alpha) for _ in range(2))
    return one / (one + other + 1e-12)


class MixUp(_Mixing):
    """Means of two images, with weights that are drawn (https://arxiv.org/abs/1710.09412). An image
    gets the boxes of both.

    Args:
        alpha: of the beta distribution of the weights: larger ones mix more.
        data_format: "channels_last" or "channels_first".
        seed: makes the choices repeat.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("alpha",)

    def __init__(
        self, alpha: float = 0.2, data_format: str | None = None, seed: int | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        self.alpha = alpha

    def _drawn(self, size: Size, draws: Draws) -> Any:
        order = draws.order(size.batch)
        return {"mix_weight": _beta(size, draws, self.alpha), "permutation_order": order}

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        weight = each(drawn["mix_weight"], images)
        return weight * images + (1.0 - weight) * _others(images, drawn)

    def _changed_boxes(self, boxes: Any, drawn: Any) -> Any:
        if not drawn:
            return boxes
        found = dict(boxes)
        for name in ("boxes", "labels"):
            own = td.convert_to_tensor(found[name])
            found[name] = td.concat([own, _others(own, drawn)], min(1, len(own.shape) - 1))
        return found


class CutMix(_Mixing):
    """A rectangle of each image is that of another one (https://arxiv.org/abs/1905.04899).

    Args:
        factor: the parameter of the beta distribution of the areas, or (least, greatest).
        seed: makes the choices repeat.
        data_format: "channels_last" or "channels_first".
    """

    _config_names: ClassVar[tuple[str, ...]] = ("factor",)

    def __init__(
        self, factor: Any = 1.0, seed: int | None = None, data_format: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(seed, data_format=data_format, **kwargs)
        given = factor if isinstance(factor, tuple | list) else (max(-factor, 0), factor)
        self.factor = _range(given, "CutMix: factor", 0, 1)

    def _drawn(self, size: Size, draws: Draws) -> Any:
        order = draws.order(size.batch)
        alpha = draws.uniform([], *self.factor) + 1e-6
        shape = [size.batch, 1, 1, 1]
        part = td.reshape(td.sqrt(1.0 - _beta(size, draws, alpha)), [-1, 1, 1, 1])
        (down, tall), (across, wide) = (
            within(draws, shape, axis, length, part)
            for axis, length in ((1, size.height), (2, size.width))
        )
        return {
            "permutation_order": order, "batch_masks": self._own_format(down & across),
            "mix_weight": 1.0 - tall * wide,
        }  # fmt: skip

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        inside = self._channels_last(td.convert_to_tensor(drawn["batch_masks"]))
        return td.where(inside, _others(images, drawn), images)

    def transform_bounding_boxes(
        self, bounding_boxes: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        raise NotImplementedError(
            "CutMix does not change boxes, and neither does Keras's: leave \"bounding_boxes\" out"
        )
