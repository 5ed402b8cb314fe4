"""Scores of classes and regressions that are not means over examples."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras import config
from treadle.keras.losses.base import masked_weight, same_rank
from treadle.keras.masks import mask_of
from treadle.keras.metrics.base import Metric, numbers
from treadle.keras.metrics.reductions import MeanMetricWrapper


def _columns(metric: Metric, true: td.Tensor, pred: td.Tensor) -> int:
    """The number of columns of labels and predictions (examples, columns)."""
    if len(true.shape) != 2 or len(pred.shape) != 2 or pred.shape[1] is None:
        raise ValueError(
            f"{type(metric).__name__}: labels and predictions have shape (examples, outputs), got "
            f"{true.shape} and {pred.shape}"
        )
    return int(pred.shape[1])


class FBetaScore(Metric):
    """``(1 + beta**2) * precision * recall / (beta**2 * precision + recall)`` of one-hot or
    multi-hot labels.

    Args:
        average: None for one score per class, "micro" for all labels together, "macro" for the
            mean, "weighted" for the mean weighted by how often classes are labelled.
        beta: how much more recall weighs than precision.
        threshold: scores above it are positive; the highest one is when omitted.
    """

    _direction = "up"

    def __init__(
        self, average: str | None = None, beta: float = 1.0, threshold: float | None = None,
        name: str | None = "fbeta_score", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, name)
        if average not in (None, "micro", "macro", "weighted"):
            raise ValueError(f"average must be None, micro, macro or weighted, not {average!r}")
        if not isinstance(beta, float) or beta <= 0.0:
            raise ValueError(f"beta must be a float above 0, got {beta!r}")
        if threshold is not None and not (isinstance(threshold, float) and 0.0 < threshold <= 1.0):
            raise ValueError(f"threshold must be a float in (0, 1], got {threshold!r}")
        self.average, self.beta, self.threshold = average, beta, threshold

    def _make(self, classes: int) -> None:
        shape = () if self.average == "micro" else (classes,)
        self.true_positives, self.false_positives, self.false_negatives, self.labelled = (
            self.add_variable(shape, name=name, dtype=self.dtype)
            for name in (
                "true_positives", "false_positives", "false_negatives", "intermediate_weights",
            )
        )  # fmt: skip

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        weight = masked_weight(sample_weight, mask_of(y_pred), self.dtype, "sum")
        true, scores = numbers(y_true, self.dtype), numbers(y_pred, self.dtype)
        classes = _columns(self, true, scores)
        if not self._variables:
            self._make(classes)
        if self.threshold is None:
            highest = td.reduce_max(scores, -1, keepdims=True)
            found = (scores >= highest) & (td.abs(scores) > 1e-9)
        else:
            found = scores > self.threshold
        pred = td.cast(found, self.dtype)

        def total(values: td.Tensor) -> td.Tensor:
            weighted = values if weight is None else values * td.reshape(weight, [-1, 1])
            return td.reduce_sum(weighted, None if self.average == "micro" else 0)

        self.true_positives.assign_add(total(pred * true))
        self.false_positives.assign_add(total(pred * (1.0 - true)))
        self.false_negatives.assign_add(total((1.0 - pred) * true))
        self.labelled.assign_add(total(true))

    def result(self) -> td.Tensor:
        small, hits = config.epsilon(), self.true_positives.read_value()
        precision = hits / (hits + self.false_positives.read_value() + small)
        recall = hits / (hits + self.false_negatives.read_value() + small)
        squared = self.beta * self.beta
        score = precision * recall / (squared * precision + recall + small) * (1.0 + squared)
        if self.average == "weighted":
            labelled = self.labelled.read_value()
            return td.reduce_sum(score * (labelled / (td.reduce_sum(labelled) + small)))
        return score if self.average is None else td.reduce_mean(score)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "average": self.average, "beta": self.beta, "threshold": self.threshold,
        }  # fmt: skip


class F1Score(FBetaScore):
    """`FBetaScore` with ``beta=1``."""

    def __init__(
        self, average: str | None = None, threshold: float | None = None,
        name: str | None = "f1_score", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(average, 1.0, threshold, name, dtype)

    def get_config(self) -> dict[str, Any]:
        settings = super().get_config()
        del settings["beta"]
        return settings


class R2Score(Metric):
    """1 minus the squared errors over the labels' squared distances from their mean.

    Args:
        class_aggregation: "uniform_average", "variance_weighted_average", or None for one score
            per output.
        num_regressors: for the adjusted score; not adjusted where there are too few examples.
    """

    _direction = "up"

    def __init__(
        self, class_aggregation: str | None = "uniform_average", num_regressors: int = 0,
        name: str | None = "r2_score", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, name)
        self._kept_in = config.floatx()  # as in Keras, whichever the dtype
        if class_aggregation not in (None, "uniform_average", "variance_weighted_average"):
            raise ValueError(
                "R2Score: class_aggregation must be uniform_average, variance_weighted_average or "
                f"None, not {class_aggregation!r}"
            )
        if num_regressors < 0:
            raise ValueError(f"R2Score: num_regressors must not be negative: {num_regressors}")
        self.class_aggregation, self.num_regressors = class_aggregation, num_regressors
        self.num_samples = self.add_variable(name="num_samples")
        self._built = False

    def _make(self, outputs: int) -> None:
        self._built = True
        self.squared_sum = self.add_variable((outputs,), name="squared_sum")
        self.sum = self.add_variable((outputs,), name="sum")
        self.total_mse = self.add_variable((outputs,), name="residual")
        self.count = self.add_variable((outputs,), name="count")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        weight = masked_weight(sample_weight, mask_of(y_pred), self.dtype, "sum")
        true, pred = same_rank(numbers(y_true, self.dtype), numbers(y_pred, self.dtype))
        outputs = _columns(self, true, pred)
        if not self._built:
            self._make(outputs)
        if weight is None:
            weight = td.ones([], self.dtype)
        if len(weight.shape) == 1:
            weight = td.expand_dims(weight, 1)
        weight = td.broadcast_to(weight, td.shape(true))
        weighted = true * weight
        for variable, added in (
            (self.sum, weighted), (self.squared_sum, true * weighted),
            (self.total_mse, td.square(true - pred) * weight), (self.count, weight),
        ):  # fmt: skip
            variable.assign_add(td.cast(td.reduce_sum(added, 0), self._kept_in))
        self.num_samples.assign_add(td.cast(td.size(true), self._kept_in))

    def result(self) -> td.Tensor:
        if not self._built:
            return td.zeros([], self._kept_in)
        sums = self.sum.read_value()
        total = self.squared_sum.read_value() - sums * (sums / self.count.read_value())
        scores = 1.0 - self.total_mse.read_value() / total
        scores = td.where(td.math.is_inf(scores), td.zeros_like(scores), scores)
        if self.class_aggregation == "uniform_average":
            scores = td.reduce_mean(scores)
        elif self.class_aggregation is not None:
            scores = td.reduce_sum(total * scores) / td.reduce_sum(total)
        if not self.num_regressors:
            return scores
        free = self.num_samples.read_value() - 1.0
        left = free - self.num_regressors
        adjusted = 1.0 - (1.0 - scores) * free / left
        return td.where(left > 0.0, adjusted, scores)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "class_aggregation": self.class_aggregation, "num_regressors": self.num_regressors,
        }  # fmt: skip


def _centred(y_true: Any, y_pred: Any, axis: int) -> tuple[td.Tensor, ...]:
    pred = td.convert_to_tensor(y_pred)
    true, pred = same_rank(numbers(y_true, pred.dtype), pred)
    means = [td.reduce_mean(y, axis, keepdims=True) for y in (true, pred)]
    return true - means[0], pred - means[1], means[0], means[1]


def pearson_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> td.Tensor:
    """The correlation of labels and predictions along the axis."""
    true, pred, _, _ = _centred(y_true, y_pred, axis)
    spread = td.math.reduce_std(true, axis, True) * td.math.reduce_std(pred, axis, True)
    return td.reduce_mean(true * pred / spread, axis)


def concordance_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> td.Tensor:
    """The correlation along the axis, lowered by differences of means and spreads."""
    true, pred, mean, other = _centred(y_true, y_pred, axis)
    spread = td.math.reduce_variance(true, axis, True) + td.math.reduce_variance(pred, axis, True)
    both = (true + mean - other) * pred
    norm = spread + td.square(mean - other) + config.epsilon()
    return td.reduce_mean(2.0 * both / norm, axis)


class PearsonCorrelation(MeanMetricWrapper):
    """Mean correlation of labels and predictions."""

    _direction = "up"

    def __init__(
        self, name: str | None = "pearson_correlation", dtype: Any = None, axis: int = -1
    ) -> None:
        super().__init__(pearson_correlation, name, dtype, axis=axis)


class ConcordanceCorrelation(MeanMetricWrapper):
    """Mean concordance of labels and predictions."""

    _direction = "up"

    def __init__(
        self, name: str | None = "concordance_correlation", dtype: Any = None, axis: int = -1
    ) -> None:
        super().__init__(concordance_correlation, name, dtype, axis=axis)
