"""Metrics of true and false positives and negatives at thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.keras import config
from treadle.keras.losses.base import masked_weight, same_rank
from treadle.keras.masks import mask_of
from treadle.keras.metrics.base import Metric, numbers

_LEAST = -1e10  # the score of classes that are not among the highest ones


class _Counts(NamedTuple):
    """The weights of the examples on each side of each threshold."""

    true_positives: td.Tensor
    false_positives: td.Tensor
    true_negatives: td.Tensor
    false_negatives: td.Tensor


class _Examples(NamedTuple):
    """Labels as bools, predictions and weights: vectors, or (examples, labels)."""

    positive: td.Tensor
    pred: td.Tensor
    weight: td.Tensor


def _at(examples: _Examples, thresholds: td.Tensor) -> _Counts:
    """The counts from a comparison of every prediction with every threshold."""
    positive, pred, weight = (td.expand_dims(x, 0) for x in examples)
    limits = td.reshape(thresholds, [-1] + [1] * (len(pred.shape) - 1))
    found = pred > limits

    def total(chosen: td.Tensor) -> td.Tensor:
        return td.reduce_sum(td.where(chosen, weight, td.zeros_like(weight)), 1)

    return _Counts(
        total(positive & found), total(~positive & found),
        total(~positive & ~found), total(positive & ~found),
    )  # fmt: skip


def _at_even(examples: _Examples, count: int, all_above_first: bool) -> _Counts:
    """The counts at `count` thresholds evenly spaced in [0, 1]: each prediction is between two of
    them, so that sums over the spaces, added up from the last one on, are the counts.

    Args:
        all_above_first: the first threshold lies below 0, so no prediction is at it.
    """
    positive, pred, weight = examples
    space = td.cast(td.math.ceil(td.clip_by_value(pred, 0.0, 1.0) * (count - 1)), td.int32) - 1
    if all_above_first:
        space = td.maximum(space, 0)
    labels = pred.shape[1] if len(pred.shape) == 2 else 1
    if labels != 1:
        space = space * labels + td.range(labels)

    def totals(weights: td.Tensor) -> tuple[td.Tensor, td.Tensor]:
        sums = td.math.unsorted_segment_sum(
            td.reshape(weights, [-1]), td.reshape(space, [-1]), count * labels
        )
        if len(pred.shape) == 2:
            sums = td.reshape(sums, [count, labels])
        return td.cumsum(sums, 0, reverse=True), td.reduce_sum(weights, 0)

    hits, positives = totals(td.where(positive, weight, td.zeros_like(weight)))
    alarms, negatives = totals(td.where(positive, td.zeros_like(weight), weight))
    return _Counts(hits, alarms, negatives - alarms, positives - hits)


class Confusion(Metric):
    """Base of metrics of counts at thresholds.

    Args:
        thresholds: the scores above which predictions are positive.
        counted: which of the fields of `_Counts` are kept, a variable each.
        top_k: only the k highest scores of an example can be positive.
        class_id: the only class that counts.
    """

    multi_label = False
    label_weights: Any = None

    def __init__(
        self, thresholds: Sequence[float], counted: Sequence[str], name: str | None, dtype: Any,
        top_k: int | None = None, class_id: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, name)
        self._kept_in = config.floatx()  # as in Keras, whichever the dtype
        self.thresholds, self.counted = [float(t) for t in thresholds], tuple(counted)
        self.top_k, self.class_id = top_k, class_id
        even = np.linspace(0.0, 1.0, len(self.thresholds))
        inner = np.clip(self.thresholds, 0.0, 1.0)
        self._even = len(even) >= 3 and np.allclose(inner, even, atol=config.epsilon())

    def _make(self, shape: tuple[int, ...]) -> None:
        for name in self.counted:
            setattr(self, name, self.add_variable(shape, name=name))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch.

        Args:
            y_true: labels 0 and 1 (or bools).
            y_pred: scores between 0 and 1, of the labels' shape.
            sample_weight: of the examples, or of all labels.
        """
        examples = self._examples(y_true, y_pred, sample_weight)
        if self._even:
            counts = _at_even(examples, len(self.thresholds), self.thresholds[0] < 0.0)
        else:
            counts = _at(examples, td.constant(self.thresholds, self._kept_in))
        for name in self.counted:
            getattr(self, name).assign_add(getattr(counts, name))

    def _examples(self, y_true: Any, y_pred: Any, sample_weight: Any) -> _Examples:
        weight = masked_weight(sample_weight, mask_of(y_pred), self._kept_in, "sum")
        pred, true = same_rank(numbers(y_pred, self._kept_in), numbers(y_true, self._kept_in))
        if not true.shape.is_compatible_with(pred.shape):
            raise ValueError(
                f"{type(self).__name__}: labels of shape {true.shape} and predictions of shape "
                f"{pred.shape}"
            )
        if weight is not None:
            _, weight = same_rank(true, td.expand_dims(weight, -1), expand_vectors=False)
        if self.top_k is not None:
            pred = _highest(pred, self.top_k)
        if self.class_id is not None:
            if len(pred.shape) == 1:
                raise ValueError("class_id: the predictions must have a class axis")
            true = true[..., self.class_id, None]
            pred = pred[..., self.class_id, None]
        weight = td.ones_like(pred) if weight is None else td.broadcast_to(weight, td.shape(pred))
        if self.label_weights is not None and not self.multi_label:
            weight = weight * self.label_weights
        shape = [-1] if not self.multi_label else [-1, pred.shape[-1]]
        positive = td.cast(true, td.bool)
        return _Examples(*(td.reshape(x, shape) for x in (positive, pred, weight)))

    def _value(self, name: str) -> td.Tensor:
        """The counts of a name."""
        value: td.Tensor = getattr(self, name).read_value()
        return value

    def _share(self, name: str, *others: str) -> td.Tensor:
        """A count over its sum with others, 0 where that is 0."""
        count = self._value(name)
        return td.math.divide_no_nan(count, td.add_n([count, *map(self._value, others)]))

    def _precisions(self) -> td.Tensor:
        return self._share("true_positives", "false_positives")

    def _recalls(self) -> td.Tensor:
        return self._share("true_positives", "false_negatives")

    def _specificities(self) -> td.Tensor:
        return self._share("true_negatives", "false_positives")


def _highest(scores: td.Tensor, k: int) -> td.Tensor:
    """The k highest scores of each example as they are, the others very low."""
    _, places = td.math.top_k(scores, k)
    chosen = td.reduce_any(td.one_hot(places, scores.shape[-1], True, False), -2)
    return td.where(chosen, scores, td.fill(td.shape(scores), td.cast(_LEAST, scores.dtype)))


def _listed(thresholds: Any, default: float) -> list[float]:
    found = default if thresholds is None else thresholds
    listed = list(found) if isinstance(found, list | tuple | np.ndarray) else [found]
    for threshold in listed if thresholds is not None else ():
        if threshold is None or not 0 <= threshold <= 1:
            raise ValueError(f"Thresholds must be in [0, 1], got {thresholds!r}")
    return listed


class _AtThresholds(Confusion):
    """Metrics with one result per threshold, a scalar for one threshold."""

    _direction: str | None = "up"

    keeps: tuple[str, ...]

    def __init__(
        self, thresholds: Any = None, top_k: int | None = None, class_id: int | None = None,
        name: str | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        default = 0.5 if top_k is None else _LEAST
        listed = _listed(thresholds, default)
        super().__init__(listed, self.keeps, name, dtype, top_k, class_id)
        self.init_thresholds = thresholds
        self._make((len(self.thresholds),))

    def _each(self) -> td.Tensor:
        raise NotImplementedError

    def result(self) -> td.Tensor:
        values = self._each()
        return values[0] if len(self.thresholds) == 1 else values

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "thresholds": self.init_thresholds, "top_k": self.top_k, "class_id": self.class_id,
        }  # fmt: skip


class Precision(_AtThresholds):
    """Of the predictions above the threshold, the fraction whose label is 1.

    Args:
        thresholds: a number or a list of numbers in [0, 1]; 0.5 when omitted.
        top_k: take the k highest scores of each example as positive instead.
        class_id: the only class that counts.
    """

    keeps = ("true_positives", "false_positives")

    def _each(self) -> td.Tensor:
        return self._precisions()


class Recall(_AtThresholds):
    """Of the labels that are 1, the fraction predicted above the threshold.

    Args:
        thresholds: a number or a list of numbers in [0, 1]; 0.5 when omitted.
        top_k: take the k highest scores of each example as positive instead.
        class_id: the only class that counts.
    """

    keeps = ("true_positives", "false_negatives")

    def _each(self) -> td.Tensor:
        return self._recalls()


class _Count(_AtThresholds):
    """One of the four counts."""

    _direction = None

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(thresholds, name=name, dtype=dtype)

    def _each(self) -> td.Tensor:
        return self._value(self.keeps[0])

    def get_config(self) -> dict[str, Any]:
        return Metric.get_config(self) | {"thresholds": self.init_thresholds}


class TruePositives(_Count):
    """How many labels 1 are predicted above the threshold."""

    keeps = ("true_positives",)


class FalsePositives(_Count):
    """How many labels 0 are predicted above the threshold."""

    keeps = ("false_positives",)


class TrueNegatives(_Count):
    """How many labels 0 are predicted at or below the threshold."""

    keeps = ("true_negatives",)


class FalseNegatives(_Count):
    """How many labels 1 are predicted at or below the threshold."""

    keeps = ("false_negatives",)


class _BestAt(Confusion):
    """The highest value of one share where another one is at least `value`."""

    _direction: str | None = "up"

    setting: str

    def __init__(
        self, value: float, num_thresholds: int, class_id: int | None, name: str | None, dtype: Any
    ) -> None:
        if not 0 <= value <= 1:
            raise ValueError(f"{type(self).__name__}: {self.setting} must be in [0, 1]: {value}")
        if num_thresholds <= 0:
            raise ValueError(f"num_thresholds must be positive, got {num_thresholds}")
        limits = [0.5] if num_thresholds == 1 else np.linspace(0.0, 1.0, num_thresholds).tolist()
        super().__init__(limits, _Counts._fields, name, dtype, class_id=class_id)
        self.value, self.num_thresholds = value, num_thresholds
        setattr(self, self.setting, value)
        self._make((num_thresholds,))

    def _best(self, required: td.Tensor, wanted: td.Tensor) -> td.Tensor:
        return td.reduce_max(td.where(required >= self.value, wanted, td.zeros_like(wanted)))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            self.setting: self.value, "num_thresholds": self.num_thresholds,
            "class_id": self.class_id,
        }  # fmt: skip


class SensitivityAtSpecificity(_BestAt):
    """The highest sensitivity (recall) at thresholds where the specificity suffices."""

    setting = "specificity"

    def __init__(
        self, specificity: float, num_thresholds: int = 200, class_id: int | None = None,
        name: str | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(specificity, num_thresholds, class_id, name, dtype)

    def result(self) -> td.Tensor:
        return self._best(self._specificities(), self._recalls())


class SpecificityAtSensitivity(_BestAt):
    """The highest specificity at thresholds where the sensitivity (recall) suffices."""

    setting = "sensitivity"

    def __init__(
        self, sensitivity: float, num_thresholds: int = 200, class_id: int | None = None,
        name: str | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(sensitivity, num_thresholds, class_id, name, dtype)

    def result(self) -> td.Tensor:
        return self._best(self._recalls(), self._specificities())


class PrecisionAtRecall(_BestAt):
    """The highest precision at thresholds where the recall suffices."""

    setting = "recall"

    def __init__(
        self, recall: float, num_thresholds: int = 200, class_id: int | None = None,
        name: str | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(recall, num_thresholds, class_id, name, dtype)

    def result(self) -> td.Tensor:
        return self._best(self._recalls(), self._precisions())


class RecallAtPrecision(_BestAt):
    """The highest recall at thresholds where the precision suffices."""

    setting = "precision"

    def __init__(
        self, precision: float, num_thresholds: int = 200, class_id: int | None = None,
        name: str | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(precision, num_thresholds, class_id, name, dtype)

    def result(self) -> td.Tensor:
        return self._best(self._precisions(), self._recalls())


class AUC(Confusion):
    """The area under a curve through the thresholds.

    Args:
        num_thresholds: how many there are, evenly spaced in [0, 1].
        curve: "ROC" (recall over the false positives' rate), "PR" (precision over recall) or
            "PRGAIN".
        summation_method: "interpolation", "minoring" or "majoring".
        thresholds: the thresholds between the first and the last instead.
        multi_label: a curve for each label, averaged.
        num_labels: with `multi_label` the number of labels; that of the first batch when omitted.
        label_weights: of the labels, in the mean or, without `multi_label`, of the examples.
        from_logits: the predictions are logits.
    """

    _direction: str | None = "up"

    def __init__(
        self, num_thresholds: int = 200, curve: str = "ROC",
        summation_method: str = "interpolation", name: str | None = None, dtype: Any = None,
        thresholds: Any = None, multi_label: bool = False, num_labels: int | None = None,
        label_weights: Any = None, from_logits: bool = False,
    ) -> None:  # fmt: skip
        curve, summation_method = curve.upper(), summation_method.lower()
        if curve not in ("ROC", "PR", "PRGAIN"):
            raise ValueError(f"AUC: curve must be ROC, PR or PRGAIN, not {curve!r}")
        if summation_method not in ("interpolation", "minoring", "majoring"):
            raise ValueError(
                "AUC: summation_method must be interpolation, minoring or majoring, not "
                f"{summation_method!r}"
            )
        if num_labels and not multi_label:
            raise ValueError("AUC: num_labels belongs to multi_label=True")
        self._inner = None if thresholds is None else sorted(thresholds)
        if thresholds is None and num_thresholds <= 1:
            raise ValueError(f"AUC: num_thresholds must be above 1, got {num_thresholds}")
        inner = self._inner
        if inner is None:
            inner = np.linspace(0.0, 1.0, num_thresholds)[1:-1].tolist()
        limits = [-config.epsilon(), *inner, 1.0 + config.epsilon()]
        super().__init__(limits, _Counts._fields, name, dtype)
        self.num_thresholds, self.curve = len(limits), curve
        self.summation_method, self.from_logits = summation_method, from_logits
        self.multi_label, self.num_labels = multi_label, num_labels
        self.label_weights = (
            None if label_weights is None else numbers(label_weights, self._kept_in)
        )
        if not multi_label:
            self._make((len(limits),))
        elif num_labels:
            self._make((len(limits), num_labels))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        pred = td.convert_to_tensor(y_pred)
        if not self._variables:
            if len(pred.shape) != 2 or pred.shape[1] is None:
                raise ValueError(
                    "AUC: with multi_label=True the predictions have shape (examples, labels), "
                    f"not {pred.shape}"
                )
            self._make((self.num_thresholds, pred.shape[1]))
        super().update_state(y_true, td.sigmoid(pred) if self.from_logits else pred, sample_weight)

    def result(self) -> td.Tensor:
        if self.curve == "PR" and self.summation_method == "interpolation":
            return self._summed(self._interpolated())
        x, y = self._points()
        first, last = y[:-1], y[1:]
        if self.summation_method == "interpolation":
            heights = (first + last) / 2.0
        else:
            choose = td.minimum if self.summation_method == "minoring" else td.maximum
            heights = choose(first, last)
        return self._summed((x[:-1] - x[1:]) * heights)

    def _points(self) -> tuple[td.Tensor, td.Tensor]:
        if self.curve == "ROC":
            return self._share("false_positives", "true_negatives"), self._recalls()
        if self.curve == "PR":
            return self._recalls(), self._precisions()
        hits, alarms, rejected, missed = map(self._value, _Counts._fields)
        ratio = td.math.divide_no_nan(hits + missed, rejected + alarms)
        recall_gain = 1.0 - ratio * td.math.divide_no_nan(missed, hits)
        precision_gain = 1.0 - ratio * td.math.divide_no_nan(alarms, hits)
        none = hits == 0.0
        recall_gain = td.where(none, td.zeros_like(hits), recall_gain)
        precision_gain = td.where(none, td.ones_like(hits), precision_gain)
        return td.maximum(recall_gain, 0.0), precision_gain

    def _interpolated(self) -> td.Tensor:
        """The areas under the precision-recall curve, between whose points the true positives
        grow in proportion to all positives (Davis and Goadrich, 2006)."""
        divide = td.math.divide_no_nan
        hits, positives = self._value("true_positives"), self._value("false_positives")
        positives = hits + positives
        gained, passed = hits[:-1] - hits[1:], positives[:-1] - positives[1:]
        slope = divide(gained, td.maximum(passed, 0.0))
        intercept = hits[1:] - slope * positives[1:]
        both = (positives[:-1] > 0.0) & (positives[1:] > 0.0)
        ratio = td.where(
            both, divide(positives[:-1], td.maximum(positives[1:], 0.0)),
            td.ones_like(positives[1:]),
        )  # fmt: skip
        labelled = td.maximum(hits[1:] + self._value("false_negatives")[1:], 0.0)
        return divide(slope * (gained + intercept * td.math.log(ratio)), labelled)

    def _summed(self, areas: td.Tensor) -> td.Tensor:
        if not self.multi_label:
            return td.reduce_sum(areas)
        each = td.reduce_sum(areas, 0)
        if self.label_weights is None:
            return td.reduce_mean(each)
        weights = self.label_weights
        return td.math.divide_no_nan(td.reduce_sum(each * weights), td.reduce_sum(weights))

    def get_config(self) -> dict[str, Any]:
        weights = self.label_weights
        given = {} if self._inner is None else {"thresholds": self._inner}
        return super().get_config() | given | {
            "num_thresholds": self.num_thresholds, "curve": self.curve,
            "summation_method": self.summation_method, "multi_label": self.multi_label,
            "num_labels": self.num_labels, "from_logits": self.from_logits,
            "label_weights": None if weights is None else weights.numpy().tolist(),
        }  # fmt: skip
