"""Losses: functions of (y_true, y_pred) that give one value per example, and their classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.keras import serialization
from treadle.names import missing_in

_EPSILON = 1e-7  # keeps logarithms of probabilities finite


# -- functions -------------------------------------------------------------------------------------


def _operands(y_true: Any, y_pred: Any) -> tuple[td.Tensor, td.Tensor]:
    """Both as tensors of the prediction's dtype, y_true with the prediction's rank."""
    pred = td.convert_to_tensor(y_pred)
    if not pred.dtype.is_floating:
        pred = td.cast(pred, td.float32)
    true = td.cast(td.convert_to_tensor(y_true), pred.dtype)
    if len(true.shape) == len(pred.shape) - 1 and pred.shape[-1] == 1:
        true = td.expand_dims(true, -1)
    elif len(true.shape) == len(pred.shape) + 1 and true.shape[-1] == 1:
        true = td.squeeze(true, -1)
    return true, pred


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, ignore_class: int | None = None,
    axis: int = -1,
) -> td.Tensor:  # fmt: skip
    """Cross-entropy against class numbers.

    Args:
        y_true: ints of y_pred's shape without its class axis (or with 1 there).
        y_pred: probabilities, or logits with `from_logits`.
        ignore_class: a class whose examples count as 0.
        axis: the class axis, which must be the last.
    """
    pred = td.convert_to_tensor(y_pred)
    true = td.convert_to_tensor(y_true)
    if axis not in (-1, len(pred.shape) - 1):
        raise ValueError("sparse_categorical_crossentropy: the class axis must be the last")
    if len(true.shape) == len(pred.shape) and true.shape[-1] == 1:
        true = td.squeeze(true, -1)
    if not true.dtype.is_integer:
        true = td.cast(true, td.int64)
    keep = None
    if ignore_class is not None:
        keep = true != ignore_class
        true = td.where(keep, true, td.zeros_like(true))
    if not from_logits:
        pred = td.math.log(td.clip_by_value(pred, _EPSILON, 1.0 - _EPSILON))
    loss = td.nn.sparse_softmax_cross_entropy_with_logits(labels=true, logits=pred)
    return loss if keep is None else td.where(keep, loss, td.zeros_like(loss))


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0,
    axis: int = -1,
) -> td.Tensor:  # fmt: skip
    """Cross-entropy against distributions, such as one-hot classes."""
    true, pred = _operands(y_true, y_pred)
    if label_smoothing:
        classes = pred.shape[axis]
        true = true * (1.0 - label_smoothing) + label_smoothing / classes
    if from_logits:
        return td.nn.softmax_cross_entropy_with_logits(labels=true, logits=pred, axis=axis)
    pred = pred / td.reduce_sum(pred, axis, keepdims=True)
    log = td.math.log(td.clip_by_value(pred, _EPSILON, 1.0 - _EPSILON))
    return -td.reduce_sum(true * log, axis)


def elementwise_binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0
) -> td.Tensor:
    """The cross-entropies of independent binary labels, one for each."""
    true, pred = _operands(y_true, y_pred)
    if label_smoothing:
        true = true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    if from_logits:
        return td.nn.sigmoid_cross_entropy_with_logits(labels=true, logits=pred)
    p = td.clip_by_value(pred, _EPSILON, 1.0 - _EPSILON)
    return -(true * td.math.log(p) + (1.0 - true) * td.math.log(1.0 - p))


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0,
    axis: int = -1,
) -> td.Tensor:  # fmt: skip
    """Mean over `axis` of the cross-entropies of independent binary labels."""
    return td.reduce_mean(
        elementwise_binary_crossentropy(y_true, y_pred, from_logits, label_smoothing), axis
    )


def mean_squared_error(y_true: Any, y_pred: Any) -> td.Tensor:
    """The mean of squared differences over the last axis."""
    true, pred = _operands(y_true, y_pred)
    return td.reduce_mean(td.squared_difference(pred, true), -1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> td.Tensor:
    """The mean of absolute differences over the last axis."""
    true, pred = _operands(y_true, y_pred)
    return td.reduce_mean(td.abs(pred - true), -1)


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> td.Tensor:
    """Squared error up to `delta`, linear beyond, averaged over the last axis."""
    true, pred = _operands(y_true, y_pred)
    error = td.abs(pred - true)
    return td.reduce_mean(
        td.where(error <= delta, 0.5 * td.square(error), delta * error - 0.5 * delta * delta), -1
    )


def log_cosh(y_true: Any, y_pred: Any) -> td.Tensor:
    """The mean of ``log(cosh(difference))`` over the last axis."""
    true, pred = _operands(y_true, y_pred)
    x = pred - true
    return td.reduce_mean(x + td.nn.softplus(-2.0 * x) - 0.6931471805599453, -1)


def kl_divergence(y_true: Any, y_pred: Any) -> td.Tensor:
    """``sum(y_true * log(y_true / y_pred))`` over the last axis."""
    true, pred = (td.clip_by_value(y, _EPSILON, 1.0) for y in _operands(y_true, y_pred))
    return td.reduce_sum(true * td.math.log(true / pred), -1)


def hinge(y_true: Any, y_pred: Any) -> td.Tensor:
    """The mean of ``max(1 - y_true * y_pred, 0)``; labels 0 and 1 become -1 and 1."""
    true, pred = _operands(y_true, y_pred)
    binary = td.reduce_all((true == 0) | (true == 1))
    signed = td.where(binary, 2.0 * true - 1.0, true)
    return td.reduce_mean(td.maximum(1.0 - signed * pred, 0.0), -1)


def squared_hinge(y_true: Any, y_pred: Any) -> td.Tensor:
    """Mean of the squared hinge losses of labels -1 and 1 (or 0 and 1)."""
    true, pred = _operands(y_true, y_pred)
    binary = td.reduce_all((true == 0) | (true == 1))
    signed = td.where(binary, 2.0 * true - 1.0, true)
    return td.reduce_mean(td.square(td.maximum(1.0 - signed * pred, 0.0)), -1)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> td.Tensor:
    """100 times the mean of |difference / y_true| along the last axis."""
    true, pred = _operands(y_true, y_pred)
    return 100.0 * td.reduce_mean(td.abs((true - pred) / td.maximum(td.abs(true), _EPSILON)), -1)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> td.Tensor:
    """Mean of the squared differences of log(1 + y) along the last axis."""
    true, pred = (td.math.log(td.maximum(y, _EPSILON) + 1.0) for y in _operands(y_true, y_pred))
    return td.reduce_mean(td.squared_difference(true, pred), -1)


def poisson(y_true: Any, y_pred: Any) -> td.Tensor:
    """Mean of ``y_pred - y_true * log(y_pred)`` along the last axis."""
    true, pred = _operands(y_true, y_pred)
    return td.reduce_mean(pred - true * td.math.log(pred + _EPSILON), -1)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> td.Tensor:
    """The cosine of the angle between labels and predictions; the loss is its negative."""
    true, pred = _operands(y_true, y_pred)
    product = td.nn.l2_normalize(true, axis=axis) * td.nn.l2_normalize(pred, axis=axis)
    return td.reduce_sum(product, axis)


mse, mae = mean_squared_error, mean_absolute_error
mape, msle = mean_absolute_percentage_error, mean_squared_logarithmic_error
MSE, MAE, MAPE, MSLE = mse, mae, mape, msle


# -- classes ---------------------------------------------------------------------------------------

REDUCTIONS = ("sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none", None)


class Loss:
    """Base: ``loss(y_true, y_pred)`` is `call` reduced over all examples.

    Args:
        name: the loss's name.
        reduction: "sum_over_batch_size" (the mean), "sum", "mean_with_sample_weight" or "none".
        dtype: of the result; the prediction's when omitted.
    """

    def __init__(
        self, name: str | None = None, reduction: str | None = "sum_over_batch_size",
        dtype: Any = None,
    ) -> None:  # fmt: skip
        if reduction == "auto":
            reduction = "sum_over_batch_size"
        if reduction not in REDUCTIONS:
            raise ValueError(f"Unknown reduction {reduction!r}; known: {REDUCTIONS}")
        self.name, self.reduction, self.dtype = name, reduction, dtype

    def call(self, y_true: Any, y_pred: Any) -> td.Tensor:
        """One value per example."""
        raise NotImplementedError(f"{type(self).__name__} must define call()")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> td.Tensor:
        losses = td.convert_to_tensor(self.call(y_true, y_pred))
        if self.dtype is not None:
            losses = td.cast(losses, self.dtype)
        return reduce_weighted(losses, sample_weight, self.reduction)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal loss."""
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Loss:
        """A loss from what `get_config` gave."""
        return cls(**{key: serialization.deserialize_keras_object(v) for key, v in config.items()})


def reduce_weighted(values: td.Tensor, sample_weight: Any, reduction: str | None) -> td.Tensor:
    """`values` times the weights, reduced."""
    weights = None
    if sample_weight is not None:
        weights = td.cast(td.convert_to_tensor(sample_weight), values.dtype)
        while len(weights.shape) < len(values.shape):
            weights = td.expand_dims(weights, -1)
        if len(weights.shape) == len(values.shape) + 1 and weights.shape[-1] == 1:
            weights = td.squeeze(weights, -1)
        values = values * weights
    if reduction in (None, "none"):
        return values
    total = td.reduce_sum(values)
    if reduction == "sum":
        return total
    if reduction == "mean_with_sample_weight" and weights is not None:
        count = td.reduce_sum(td.broadcast_to(weights, td.shape(values)))
        return td.math.divide_no_nan(total, count)
    return td.reduce_mean(values)


class LossFunctionWrapper(Loss):
    """A function of (y_true, y_pred) as a Loss."""

    def __init__(
        self, fn: Callable[..., td.Tensor], reduction: str | None = "sum_over_batch_size",
        name: str | None = None, dtype: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name or getattr(fn, "__name__", None), reduction, dtype)
        self.fn, self._settings = fn, kwargs

    def call(self, y_true: Any, y_pred: Any) -> td.Tensor:
        return self.fn(y_true, y_pred, **self._settings)

    def get_config(self) -> dict[str, Any]:
        own = {"fn": self.fn} if type(self) is LossFunctionWrapper else {}
        return super().get_config() | own | self._settings


class SparseCategoricalCrossentropy(LossFunctionWrapper):
    """Cross-entropy against class numbers."""

    def __init__(
        self, from_logits: bool = False, ignore_class: int | None = None,
        reduction: str | None = "sum_over_batch_size", axis: int = -1,
        name: str = "sparse_categorical_crossentropy", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            sparse_categorical_crossentropy, reduction, name, dtype,
            from_logits=from_logits, ignore_class=ignore_class, axis=axis,
        )  # fmt: skip

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> td.Tensor:
        ignored = self._settings["ignore_class"]
        if ignored is None or self.reduction != "sum_over_batch_size":
            return super().__call__(y_true, y_pred, sample_weight)
        # The mean is over the examples that count.
        losses = td.convert_to_tensor(self.call(y_true, y_pred))
        total = reduce_weighted(losses, sample_weight, "sum")
        labels = td.reshape(td.convert_to_tensor(y_true), td.shape(losses))
        return td.math.divide_no_nan(total, td.reduce_sum(td.cast(labels != ignored, losses.dtype)))


class CategoricalCrossentropy(LossFunctionWrapper):
    """Cross-entropy against distributions."""

    def __init__(
        self, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1,
        reduction: str | None = "sum_over_batch_size", name: str = "categorical_crossentropy",
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            categorical_crossentropy, reduction, name, dtype,
            from_logits=from_logits, label_smoothing=label_smoothing, axis=axis,
        )  # fmt: skip


class BinaryCrossentropy(LossFunctionWrapper):
    """Cross-entropy of independent binary labels."""

    def __init__(
        self, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1,
        reduction: str | None = "sum_over_batch_size", name: str = "binary_crossentropy",
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            binary_crossentropy, reduction, name, dtype,
            from_logits=from_logits, label_smoothing=label_smoothing, axis=axis,
        )  # fmt: skip


def _class_of(fn: Callable[..., td.Tensor], name: str, doc: str) -> Any:
    """The class of a loss function without settings."""

    def init(
        self: Any, reduction: str | None = "sum_over_batch_size", name: str = fn.__name__,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        LossFunctionWrapper.__init__(self, fn, reduction, name, dtype)

    return type(
        name, (LossFunctionWrapper,), {"__init__": init, "__doc__": doc, "__module__": __name__}
    )


MeanSquaredError = _class_of(mean_squared_error, "MeanSquaredError", "Mean of squared differences.")
MeanAbsoluteError = _class_of(
    mean_absolute_error, "MeanAbsoluteError", "Mean of absolute differences."
)
LogCosh = _class_of(log_cosh, "LogCosh", "Mean of log(cosh(difference)).")
KLDivergence = _class_of(kl_divergence, "KLDivergence", "Kullback-Leibler divergence.")
Hinge = _class_of(hinge, "Hinge", "Hinge loss of labels -1 and 1.")
SquaredHinge = _class_of(squared_hinge, "SquaredHinge", "Squared hinge loss of labels -1 and 1.")
MeanAbsolutePercentageError = _class_of(
    mean_absolute_percentage_error, "MeanAbsolutePercentageError", "Mean of percentages of error."
)
MeanSquaredLogarithmicError = _class_of(
    mean_squared_logarithmic_error, "MeanSquaredLogarithmicError",
    "Mean of squared differences of logarithms.",
)  # fmt: skip
Poisson = _class_of(poisson, "Poisson", "Poisson loss.")


class CosineSimilarity(LossFunctionWrapper):
    """The negative of the cosine of the angle between labels and predictions."""

    def __init__(
        self, axis: int = -1, reduction: str | None = "sum_over_batch_size",
        name: str = "cosine_similarity", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            lambda y_true, y_pred: -cosine_similarity(y_true, y_pred, axis), reduction, name, dtype
        )


class Reduction:
    """The names of the ways to reduce losses."""

    AUTO, NONE, SUM, SUM_OVER_BATCH_SIZE = "auto", "none", "sum", "sum_over_batch_size"


class Huber(LossFunctionWrapper):
    """Squared error up to `delta`, linear beyond."""

    def __init__(
        self, delta: float = 1.0, reduction: str | None = "sum_over_batch_size",
        name: str = "huber_loss", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(huber, reduction, name, dtype, delta=delta)


_FUNCTIONS = (
    sparse_categorical_crossentropy, categorical_crossentropy, binary_crossentropy,
    mean_squared_error, mean_absolute_error, huber, log_cosh, kl_divergence, hinge,
    squared_hinge, mean_absolute_percentage_error, mean_squared_logarithmic_error, poisson,
)  # fmt: skip
_CLASSES = (
    SparseCategoricalCrossentropy, CategoricalCrossentropy, BinaryCrossentropy, MeanSquaredError,
    MeanAbsoluteError, LogCosh, KLDivergence, Hinge, Huber, SquaredHinge,
    MeanAbsolutePercentageError, MeanSquaredLogarithmicError, Poisson, CosineSimilarity,
)  # fmt: skip
_BY_NAME: dict[str, Any] = (
    {f.__name__: f for f in _FUNCTIONS}
    | {c.__name__: c for c in _CLASSES}
    | {"mse": mse, "MSE": mse, "mae": mae, "MAE": mae, "mape": mape, "MAPE": mape}
    | {"msle": msle, "MSLE": msle, "cosine_similarity": CosineSimilarity}
)


def get(identifier: Any) -> Any:
    """A loss from its name, class or a function; None stays None."""
    if isinstance(identifier, type):
        return identifier()
    if identifier is None or callable(identifier):
        return identifier
    if isinstance(identifier, dict):
        return serialization.deserialize_keras_object(identifier)
    if identifier in _BY_NAME:
        return get(_BY_NAME[identifier])
    raise ValueError(f"Unknown loss {identifier!r}; known: {', '.join(sorted(_BY_NAME))}")


def as_loss(identifier: Any) -> Loss:
    """What `compile` was given, as a Loss."""
    found = get(identifier)
    return found if isinstance(found, Loss) else LossFunctionWrapper(found)


__getattr__ = missing_in(__name__)
