"""Loss: a value per example, weighted, masked and reduced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.keras import dtype_policies, naming, replicas, serialization
from treadle.keras.masks import mask_of
from treadle.modes import generation

REDUCTIONS = ("sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none", None)


class Loss:
    """Base: ``loss(y_true, y_pred)`` is `call` reduced over all examples.

    Args:
        name: the loss's name.
        reduction: "sum_over_batch_size" or "mean" (the mean), "sum", "mean_with_sample_weight"
            (the sum over the sum of the weights) or "none".
        dtype: of the labels, predictions and result; `keras.config.floatx()` when omitted.
    """

    def __init__(
        self, name: str | None = None, reduction: str | None = "sum_over_batch_size",
        dtype: Any = None,
    ) -> None:  # fmt: skip
        if reduction == "auto":  # Keras 2
            reduction = "sum_over_batch_size"
        if reduction not in REDUCTIONS:
            raise ValueError(
                f"Invalid value for argument `reduction`. Expected one of {REDUCTIONS}. Received: "
                f"reduction={reduction}"
            )
        self.name = name or naming.unique_name(type(self).__name__)
        self.reduction = reduction
        self._dtype = dtype_policies.computed_in(dtype)

    @property
    def dtype(self) -> str:
        """What the loss computes in."""
        return self._dtype

    def call(self, y_true: Any, y_pred: Any) -> td.Tensor:
        """One value per example."""
        raise NotImplementedError(f"{type(self).__name__} must define call()")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> td.Tensor:
        true, pred = (td.nest.map_structure(self._converted, y) for y in (y_true, y_pred))
        values = td.convert_to_tensor(self.call(true, pred))
        masks = [m for m in (mask_of(y_pred), mask_of(values)) if m is not None]
        mask = masks[0] if len(masks) == 1 else masks[0] & masks[1] if masks else None
        found = reduce_weighted(self._values(values), sample_weight, self.reduction, mask)
        return found if self.reduction in ("sum", "none", None) else replicas.scaled(found)

    def _converted(self, value: Any) -> Any:
        """What `call` gets for labels or predictions: a tensor of the dtype of the loss."""
        if self._keeps_dtypes:
            return value
        if not isinstance(value, td.SparseTensor | td.RaggedTensor):
            value = td.convert_to_tensor(value)
        return td.cast(value, self.dtype)

    def _values(self, values: td.Tensor) -> td.Tensor:
        """What `call` gave, in the dtype of the loss."""
        keeps = self._keeps_dtypes and values.dtype.is_floating
        return values if keeps else td.cast(values, self.dtype)

    @property
    def _keeps_dtypes(self) -> bool:
        """Whether labels and values stay as they are: in Keras 2 those of a program's own loss."""
        own = getattr(self, "fn", type(self))
        return generation.is_2 and not str(getattr(own, "__module__", "")).startswith("treadle.")

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal loss."""
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Loss:
        """A loss from what `get_config` gave."""
        return cls(**serialization.arguments_from(cls, config))


def same_rank(
    x: td.Tensor, y: td.Tensor, expand_vectors: bool = True
) -> tuple[td.Tensor, td.Tensor]:
    """Both with one rank, where one has a last axis of size 1 more than the other.

    A vector beside such a tensor gets that axis, unless `expand_vectors` is False; otherwise the
    axis is taken away.
    """
    if len(x.shape) == len(y.shape) + 1:
        y, x = same_rank(y, x, expand_vectors)
    elif len(y.shape) == len(x.shape) + 1 and y.shape[-1] == 1:
        if len(x.shape) == 1 and expand_vectors:
            x = td.expand_dims(x, -1)
        else:
            y = td.squeeze(y, -1)
    return x, y


def masked_weight(sample_weight: Any, mask: Any, dtype: Any, reduction: str | None) -> Any:
    """The sample weights, 0 where the mask is False; None where there is neither.

    Means are over what counts: its weights are multiplied by the number of all values over that
    of those that count.
    """
    if sample_weight is not None:
        sample_weight = td.cast(td.convert_to_tensor(sample_weight), dtype)
    if mask is None:
        return sample_weight
    weight = td.cast(mask, dtype)
    if reduction in ("mean", "sum_over_batch_size"):
        total = td.cast(td.size(weight), dtype)
        weight = weight * td.math.divide_no_nan(total, td.reduce_sum(weight))
    if sample_weight is None:
        return weight
    weight, sample_weight = same_rank(weight, sample_weight)
    return aligned(sample_weight, weight) * aligned(weight, sample_weight)


def aligned(weight: td.Tensor, values: td.Tensor) -> td.Tensor:
    """Weights of the first axes of `values`, with axes of size 1 for the others."""
    while len(weight.shape) < len(values.shape):
        weight = td.expand_dims(weight, -1)
    return weight


def reduce_weighted(
    values: td.Tensor, sample_weight: Any, reduction: str | None, mask: Any = None
) -> td.Tensor:
    """`values` times the weights, reduced."""
    weight = masked_weight(sample_weight, mask, values.dtype, reduction)
    if weight is not None:
        values, weight = same_rank(values, weight)
        weight = aligned(weight, values)
        values = values * weight
    if reduction in (None, "none") or not len(values.shape):
        return values
    if reduction == "sum":
        return td.reduce_sum(values)
    if reduction == "mean_with_sample_weight" and weight is not None:
        # As in Keras the sum of the weights that were given: one for all values counts once.
        return td.math.divide_no_nan(td.reduce_sum(values), td.reduce_sum(weight))
    return _mean(values)


def _mean(values: td.Tensor) -> td.Tensor:
    """The mean; of no values, which a replica may have, 0."""
    if replicas.count() == 1:
        return td.reduce_mean(values)
    return td.math.divide_no_nan(td.reduce_sum(values), td.cast(td.size(values), values.dtype))


class LossFunctionWrapper(Loss):
    """A function of (y_true, y_pred) as a Loss; further arguments are the function's."""

    def __init__(
        self, fn: Callable[..., td.Tensor], reduction: str | None = "sum_over_batch_size",
        name: str | None = None, dtype: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            name=name or getattr(fn, "__name__", None), reduction=reduction, dtype=dtype
        )
        self.fn, self._settings = fn, kwargs

    def call(self, y_true: Any, y_pred: Any) -> td.Tensor:
        if isinstance(y_true, td.Tensor) and isinstance(y_pred, td.Tensor):
            y_true, y_pred = same_rank(y_true, y_pred)
        return self.fn(y_true, y_pred, **self._settings)

    def get_config(self) -> dict[str, Any]:
        fn = {"fn": self.fn} if type(self) is LossFunctionWrapper else {}
        return super().get_config() | fn | self._settings
