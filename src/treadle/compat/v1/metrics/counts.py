"""Metrics of errors, of how often something is so, and of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.compat.v1 import functions, scopes
from treadle.compat.v1.metrics.streaming import (
    grow,
    in_collections,
    itself,
    kept_variable,
    metric,
    ratio,
    root,
    weighted_mean,
)
from treadle.compat.v1.recording import in_graphs, recorded


def mean(values: Any, weights: Any = None, metrics_collections: Any = None,
         updates_collections: Any = None, name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The weighted mean."""
    return weighted_mean(name or "mean", values, weights, metrics_collections, updates_collections)


def _equal(labels: Any, predictions: Any) -> Any:
    labels, predictions = td.convert_to_tensor(labels), td.convert_to_tensor(predictions)
    if len(predictions.shape) == len(labels.shape) + 1:
        predictions = td.squeeze(predictions, [-1])
    elif len(labels.shape) == len(predictions.shape) + 1:
        labels = td.squeeze(labels, [-1])
    return td.cast(td.equal(td.cast(predictions, labels.dtype), labels), td.float32)


def accuracy(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
             updates_collections: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """How often predictions are labels."""
    same = recorded(_equal, "Equal", "Equal")(labels, predictions)
    kind = name or "accuracy"
    return weighted_mean(kind, same, weights, metrics_collections, updates_collections)


def _squared(labels: Any, predictions: Any) -> Any:
    return td.math.squared_difference(predictions, labels)


def _absolute(labels: Any, predictions: Any) -> Any:
    return td.abs(td.convert_to_tensor(predictions) - labels)


def mean_squared_error(labels: Any, predictions: Any, weights: Any = None,
                       metrics_collections: Any = None, updates_collections: Any = None,
                       name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The mean of squared errors."""
    errors = recorded(_squared, "SquaredDifference")(labels, predictions)
    kind = name or "mean_squared_error"
    return weighted_mean(kind, errors, weights, metrics_collections, updates_collections)


def root_mean_squared_error(labels: Any, predictions: Any, weights: Any = None,
                            metrics_collections: Any = None, updates_collections: Any = None,
                            name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The root of the mean of squared errors."""
    errors = recorded(_squared, "SquaredDifference")(labels, predictions)
    kind = name or "root_mean_squared_error"
    return weighted_mean(kind, errors, weights, metrics_collections, updates_collections, root)


def mean_absolute_error(labels: Any, predictions: Any, weights: Any = None,
                        metrics_collections: Any = None, updates_collections: Any = None,
                        name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The mean of absolute errors."""
    errors = recorded(_absolute, "Abs")(labels, predictions)
    kind = name or "mean_absolute_error"
    return weighted_mean(kind, errors, weights, metrics_collections, updates_collections)


def mean_relative_error(labels: Any, predictions: Any, normalizer: Any, weights: Any = None,
                        metrics_collections: Any = None, updates_collections: Any = None,
                        name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The mean of absolute errors, each divided by a number."""
    errors = recorded(_relative, "RelativeError")(labels, predictions, normalizer)
    kind = name or "mean_relative_error"
    return weighted_mean(kind, errors, weights, metrics_collections, updates_collections)


def _relative(labels: Any, predictions: Any, normalizer: Any) -> Any:
    return td.math.divide_no_nan(_absolute(labels, predictions), td.convert_to_tensor(normalizer))


def percentage_below(values: Any, threshold: Any, weights: Any = None,
                     metrics_collections: Any = None, updates_collections: Any = None,
                     name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """How many values are below a threshold."""
    below = functions.cast(recorded(td.less, "Less")(values, threshold), td.float32)
    kind = name or "percentage_below_threshold"
    return weighted_mean(kind, below, weights, metrics_collections, updates_collections)


def _counted(labels: Any, predictions: Any, weights: Any) -> list[Any]:
    """How many true and false positives and negatives there are."""
    truth, found = td.cast(labels, td.bool), td.cast(predictions, td.bool)
    truth, found = td.reshape(truth, [-1]), td.reshape(found, [-1])
    weights = 1.0 if weights is None else td.reshape(
        td.cast(weights, td.float32) * td.ones(td.shape(labels)), [-1]
    )  # fmt: skip
    kinds = [(truth, found), (~truth, found), (~truth, ~found), (truth, ~found)]
    return [td.reduce_sum(td.cast(a & b, td.float32) * weights) for a, b in kinds]


KINDS = ("true_positives", "false_positives", "true_negatives", "false_negatives")


def _counts(labels: Any, predictions: Any, weights: Any) -> dict[str, Any]:
    found = recorded(_counted, "Count")(labels, predictions, weights)
    return dict(zip(KINDS, found, strict=True))


def _count(kind: str) -> Callable[..., Any]:
    def count(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
              updates_collections: Any = None, name: str | None = None) -> tuple[Any, Any]:
        found = _counts(labels, predictions, weights)[kind]
        collections = metrics_collections, updates_collections
        return metric(name or kind, {"count": found}, itself, *collections)

    count.__name__ = kind
    count.__doc__ = f"How many {kind.replace('_', ' ')} there are."
    return count


true_positives, false_positives, true_negatives, false_negatives = map(_count, KINDS)


def _share(a: Any, b: Any) -> Any:
    a = td.convert_to_tensor(a)
    return td.math.divide_no_nan(a, a + b)


def precision(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
              updates_collections: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """The share of true positives among the positives that were found."""
    found = _counts(labels, predictions, weights)
    kept = {k: found[k] for k in ("true_positives", "false_positives")}
    return metric(name or "precision", kept, _share, metrics_collections, updates_collections)


def recall(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
           updates_collections: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """The share of the positives that were found."""
    found = _counts(labels, predictions, weights)
    kept = {k: found[k] for k in ("true_positives", "false_negatives")}
    return metric(name or "recall", kept, _share, metrics_collections, updates_collections)


def _confusion(labels: Any, predictions: Any, classes: int, weights: Any) -> Any:
    labels, predictions = (td.reshape(x, [-1]) for x in (labels, predictions))
    if weights is not None:
        weights = td.reshape(td.cast(weights, td.float32), [-1])
    return td.math.confusion_matrix(labels, predictions, classes, weights, td.float32)


def _mean_iou(matrix: Any) -> Any:
    matrix = td.convert_to_tensor(matrix)
    hit = td.linalg.diag_part(matrix)
    union = td.reduce_sum(matrix, 0) + td.reduce_sum(matrix, 1) - hit
    present = td.reduce_sum(td.cast(union != 0.0, td.float32))
    return td.math.divide_no_nan(td.reduce_sum(td.math.divide_no_nan(hit, union)), present)


def mean_iou(labels: Any, predictions: Any, num_classes: int, weights: Any = None,
             metrics_collections: Any = None, updates_collections: Any = None,
             name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The mean of what labels and predictions of each class have in common."""
    found = recorded(_confusion, "ConfusionMatrix")(labels, predictions, num_classes, weights)
    with scopes.variable_scope(None, name or "mean_iou"):
        kept = kept_variable("total_confusion_matrix", [num_classes, num_classes])
        value = recorded(_mean_iou, "mean_iou")(kept)
        update = grow(kept, found)
    return in_collections(value, metrics_collections, update, updates_collections)


def _by_class(labels: Any, predictions: Any, classes: int, weights: Any) -> list[Any]:
    labels = td.cast(td.reshape(labels, [-1]), td.int64)
    same = _equal(labels, td.reshape(predictions, [-1]))
    each = td.ones_like(same)
    if weights is not None:
        each = each * td.reshape(td.cast(weights, td.float32), [-1])
    rows = td.one_hot(labels, classes)
    return [td.reduce_sum(rows * each[:, None], 0), td.reduce_sum(rows * (same * each)[:, None], 0)]


def _of_classes(total: Any, count: Any) -> Any:
    return ratio(count, total)


def _mean_of_classes(total: Any, count: Any) -> Any:
    return td.reduce_mean(ratio(count, total))


def mean_per_class_accuracy(labels: Any, predictions: Any, num_classes: int, weights: Any = None,
                            metrics_collections: Any = None, updates_collections: Any = None,
                            name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The mean of the accuracies of classes; the operation gives the accuracy of each."""
    total, count = recorded(_by_class, "ByClass")(labels, predictions, num_classes, weights)
    return metric(
        name or "mean_accuracy", {"total": total, "count": count}, _mean_of_classes,
        metrics_collections, updates_collections, _of_classes,
    )  # fmt: skip


def _similar(labels: Any, predictions: Any, dim: int) -> Any:
    return td.reduce_sum(td.multiply(predictions, labels), [dim], keepdims=True)


def _cosine_distance(total: Any, count: Any) -> Any:
    return 1.0 - ratio(total, count)


def mean_cosine_distance(labels: Any, predictions: Any, dim: int, weights: Any = None,
                         metrics_collections: Any = None, updates_collections: Any = None,
                         name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The mean of one minus the product of two vectors, which have the length 1.

    Args:
        dim: the axis of the vectors.
    """
    products = recorded(_similar, "Sum")(labels, predictions, dim)
    kind = name or "mean_cosine_distance"
    return weighted_mean(
        kind, products, weights, metrics_collections, updates_collections, _cosine_distance
    )


def _of_elements(values: Any, weights: Any) -> list[Any]:
    values = td.cast(values, td.float32)
    each = td.ones_like(values)
    if weights is not None:
        given = td.cast(weights, td.float32)
        each *= given[..., None] if len(given.shape) == len(values.shape) - 1 else given
    return [values * each, each]


def mean_tensor(values: Any, weights: Any = None, metrics_collections: Any = None,
                updates_collections: Any = None,
                name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The weighted mean of each element of tensors of one shape."""
    total, count = recorded(_of_elements, "Mul")(values, weights)
    return metric(
        name or "mean", {"total_tensor": total, "count_tensor": count}, ratio, metrics_collections,
        updates_collections,
    )  # fmt: skip


in_graphs(
    _absolute,
    _by_class,
    _confusion,
    _counted,
    _equal,
    _mean_iou,
    _of_elements,
    _relative,
    _similar,
    _squared,
)
