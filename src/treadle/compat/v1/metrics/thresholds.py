"""Metrics of predictions between 0 and 1, which thresholds divide into positive and negative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import treadle as td
from treadle.compat.v1.metrics.counts import KINDS
from treadle.compat.v1.metrics.streaming import itself, metric
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.core.origin import at, user_origin

_BEYOND = 1e-7  # the first threshold is so far below 0, the last one above 1
_SMALL = 1e-6


def _at_thresholds(labels: Any, predictions: Any, weights: Any, thresholds: list[float]) -> Any:
    found = td.convert_to_tensor(predictions)
    td.debugging.assert_non_negative(found, message="predictions must be in [0, 1]")
    td.debugging.assert_less_equal(
        found, td.ones([], found.dtype), message="predictions must be in [0, 1]"
    )
    bounds = td.constant(thresholds, td.float32)[:, None]
    positive = td.reshape(td.cast(found, td.float32), [1, -1]) > bounds
    truth = td.reshape(td.cast(labels, td.bool), [1, -1])
    each: Any = 1.0
    if weights is not None:
        given = td.cast(weights, td.float32)
        while len(given.shape) and len(given.shape) < len(found.shape):
            given = td.expand_dims(given, -1)
        each = td.reshape(given * td.ones(td.shape(found)), [1, -1])
    kinds = [(truth, positive), (~truth, positive), (~truth, ~positive), (truth, ~positive)]
    return [td.reduce_sum(td.cast(a & b, td.float32) * each, 1) for a, b in kinds]


def _counts(labels: Any, predictions: Any, weights: Any, thresholds: Sequence[float]) -> Any:
    """How many true and false positives and negatives there are, for each threshold."""
    call = recorded(_at_thresholds, "AtThresholds")
    found = call(labels, predictions, weights, [float(t) for t in thresholds])
    return dict(zip(KINDS, found, strict=True))


def _even(count: int, last: float = 1.0 + _BEYOND) -> list[float]:
    """Thresholds from 0 to 1."""
    return [-_BEYOND, *((i + 1) / (count - 1) for i in range(count - 2)), last]


# -- areas ---------------------------------------------------------------------------------------

_HEIGHTS: dict[str, Callable[[Any, Any], Any]] = {
    "trapezoidal": lambda a, b: (a + b) / 2.0,
    "careful_interpolation": lambda a, b: (a + b) / 2.0,
    "minoring": td.minimum,
    "majoring": td.maximum,
}


def _area(tp: Any, fp: Any, tn: Any, fn: Any, curve: str, method: str) -> Any:
    tp, fp, tn, fn = map(td.convert_to_tensor, (tp, fp, tn, fn))
    if curve == "PR" and method == "careful_interpolation":
        return _interpolated(tp, fp, fn)
    share = (tp + _SMALL) / (tp + fn + _SMALL)
    if curve == "ROC":
        x, y = fp / (fp + tn + _SMALL), share
    else:
        x, y = share, (tp + _SMALL) / (tp + fp + _SMALL)
    return td.reduce_sum((x[:-1] - x[1:]) * _HEIGHTS[method](y[:-1], y[1:]))


def _interpolated(tp: Any, fp: Any, fn: Any) -> Any:
    """The area below precision and recall, where the counts go evenly from threshold to
    threshold (Davis and Goadrich, 2006)."""
    found, hits = tp + fp, tp[:-1] - tp[1:]
    slope = td.math.divide_no_nan(hits, td.maximum(found[:-1] - found[1:], 0.0))
    start = tp[1:] - slope * found[1:]
    both = (found[:-1] > 0.0) & (found[1:] > 0.0)
    growth = td.where(both, td.math.divide_no_nan(found[:-1], found[1:]), 1.0)
    parts = slope * (hits + start * td.math.log(growth))
    return td.reduce_sum(td.math.divide_no_nan(parts, td.maximum(tp[1:] + fn[1:], 0.0)))


def auc(labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200,
        metrics_collections: Any = None, updates_collections: Any = None, curve: str = "ROC",
        name: str | None = None, summation_method: str = "trapezoidal",
        thresholds: Any = None) -> tuple[Any, Any]:  # fmt: skip
    """The area under the curve of rates of true and false positives (ROC), or of precision and
    recall (PR).

    Args:
        summation_method: what a part between two thresholds counts: ``trapezoidal``, the lower or
            upper of its ends (``minoring``, ``majoring``), or ``careful_interpolation``.
        thresholds: numbers between 0 and 1 instead of `num_thresholds` even ones.

    Raises:
        ValueError: it is another curve or method.
    """
    if curve not in ("ROC", "PR"):
        raise ValueError(
            f"Curve must be either ROC or PR. Curve {curve} is unknown.{at(user_origin())}"
        )
    if summation_method not in _HEIGHTS:
        raise ValueError(
            f"Invalid summation_method: {summation_method} summation_method should be "
            f"'trapezoidal', 'careful_interpolation', 'minoring', or 'majoring'{at(user_origin())}"
        )
    chosen = _even(num_thresholds)
    if thresholds is not None:
        chosen = [-_BEYOND, *sorted(thresholds), 1.0 + _BEYOND]
    found = _counts(labels, predictions, weights, chosen)
    return metric(
        name or "auc", found, _area, metrics_collections, updates_collections,
        more=(curve, summation_method),
    )  # fmt: skip


# -- each threshold ------------------------------------------------------------------------------


def _counted(kind: str) -> Callable[..., Any]:
    def count(labels: Any, predictions: Any, thresholds: Any, weights: Any = None,
              metrics_collections: Any = None, updates_collections: Any = None,
              name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
        found = _counts(labels, predictions, weights, thresholds)[kind]
        collections = metrics_collections, updates_collections
        return metric(name or kind, {kind: found}, itself, *collections)

    count.__name__ = f"{kind}_at_thresholds"
    count.__doc__ = f"How many {kind.replace('_', ' ')} there are, for each threshold."
    return count


(true_positives_at_thresholds, false_positives_at_thresholds, true_negatives_at_thresholds,
 false_negatives_at_thresholds) = map(_counted, KINDS)  # fmt: skip


def _share(a: Any, b: Any) -> Any:
    a = td.convert_to_tensor(a)
    return a / (_BEYOND + a + b)


def _shares(name: str, others: str, what: str) -> Callable[..., Any]:
    def share(labels: Any, predictions: Any, thresholds: Any, weights: Any = None,
              metrics_collections: Any = None, updates_collections: Any = None,
              name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
        found = _counts(labels, predictions, weights, thresholds)
        kept = {k: found[k] for k in ("true_positives", others)}
        return metric(name or called, kept, _share, metrics_collections, updates_collections)

    called = share.__name__ = name
    share.__doc__ = f"{what}, for each threshold."
    return share


precision_at_thresholds = _shares(
    "precision_at_thresholds", "false_positives",
    "The share of true positives among the positives that were found",
)  # fmt: skip
recall_at_thresholds = _shares(
    "recall_at_thresholds", "false_negatives", "The share of the positives that were found"
)


# -- the best threshold --------------------------------------------------------------------------


def _sensitivity(tp: Any, fp: Any, tn: Any, fn: Any, specificity: float) -> Any:
    tp, fp, tn, fn = map(td.convert_to_tensor, (tp, fp, tn, fn))
    best = td.argmin(td.abs(tn / (tn + fp + _BEYOND) - specificity), 0)
    return tp[best] / (tp[best] + fn[best] + _BEYOND)


def _specificity(tp: Any, fp: Any, tn: Any, fn: Any, sensitivity: float) -> Any:
    tp, fp, tn, fn = map(td.convert_to_tensor, (tp, fp, tn, fn))
    far = td.abs(tp / (tp + fn + _BEYOND) - sensitivity)
    # The largest threshold of those that are nearest.
    best = td.argmax(td.cumsum(td.cast(far == td.reduce_min(far), td.int64)), 0)
    return tn[best] / (tn[best] + fp[best] + _BEYOND)


def _checked(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(
            f"`{name}` must be in the range [0, 1]. Currently, `{name}` is {value}."
            f"{at(user_origin())}"
        )
    return float(value)


def sensitivity_at_specificity(labels: Any, predictions: Any, specificity: float,
                               weights: Any = None, num_thresholds: int = 200,
                               metrics_collections: Any = None, updates_collections: Any = None,
                               name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The share of the positives that are found, at the threshold where the share of the
    negatives is nearest to `specificity`.

    Raises:
        ValueError: that is not in [0, 1].
    """
    wanted = _checked("specificity", specificity)
    found = _counts(labels, predictions, weights, _even(num_thresholds))
    return metric(
        name or "sensitivity_at_specificity", found, _sensitivity, metrics_collections,
        updates_collections, more=(wanted,),
    )  # fmt: skip


def specificity_at_sensitivity(labels: Any, predictions: Any, sensitivity: float,
                               weights: Any = None, num_thresholds: int = 200,
                               metrics_collections: Any = None, updates_collections: Any = None,
                               name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The share of the negatives that are found, at the threshold where the share of the
    positives is nearest to `sensitivity`.

    Raises:
        ValueError: that is not in [0, 1].
    """
    wanted = _checked("sensitivity", sensitivity)
    found = _counts(labels, predictions, weights, _even(num_thresholds, 1.0 - _BEYOND))
    return metric(
        name or "specificity_at_sensitivity", found, _specificity, metrics_collections,
        updates_collections, more=(wanted,),
    )  # fmt: skip


in_graphs(
    _area,
    _at_thresholds,
    _sensitivity,
    _share,
    _specificity,
)
