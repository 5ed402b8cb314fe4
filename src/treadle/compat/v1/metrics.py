"""``td.compat.v1.metrics``: pairs of a tensor with the value of a metric so far, and an operation
that takes a batch into it and gives the new value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.compat.v1 import functions, initializers, scopes
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.compat.v1.values import element
from treadle.compat.v1.variables import Variable, writing


def _local(name: str, shape: Any = (), dtype: Any = td.float32) -> Any:
    """A variable that a metric keeps."""
    return Variable(
        lambda: initializers.zeros_initializer()(list(shape), dtype), False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES], name=name, dtype=dtype,
    )  # fmt: skip


def _grown(variable: Any, amount: Any) -> Any:
    variable.assign_add(td.cast(amount, variable.dtype))
    return variable.read_value()


_grow = writing(_grown, "AssignAdd")


def _metric(
    name: str, sums: dict[str, Any], value: Callable[..., Any], collections: Any, updates: Any
) -> tuple[Any, Any]:
    """A metric of sums over batches: their value and the operation that adds a batch.

    Args:
        sums: what is added to the variable of each name.
        value: the metric of the sums.
    """
    with scopes.variable_scope(None, name):
        kept = [_local(n, element(x).shape.as_list()) for n, x in sums.items()]  # type: ignore[union-attr]
        call = recorded(value, "value", "DivNoNan")
        found = call(*kept)
        added = [_grow(v, x) for v, x in zip(kept, sums.values(), strict=True)]
        update = recorded(value, "update_op", "DivNoNan")(*added)
    graph = get_default_graph()
    if collections:
        graph.add_to_collections(collections, found)
    if updates:
        graph.add_to_collections(updates, update)
    return found, update


def _ratio(a: Any, b: Any) -> Any:
    return td.math.divide_no_nan(td.convert_to_tensor(a), td.convert_to_tensor(b))


def _root(a: Any, b: Any) -> Any:
    return td.sqrt(_ratio(a, b))


def _itself(a: Any) -> Any:
    return td.identity(a)


def _total(values: Any, weights: Any) -> list[Any]:
    """The weighted sum of values, and of the weights."""
    values = td.cast(values, td.float32)
    if weights is None:
        return [td.reduce_sum(values), td.cast(td.size(values), td.float32)]
    weights = td.cast(weights, td.float32)
    while len(weights.shape) and len(weights.shape) < len(values.shape):
        weights = td.expand_dims(weights, -1)
    weights = weights * td.ones_like(values)
    return [td.reduce_sum(values * weights), td.reduce_sum(weights)]


_sums = recorded(_total, "Sum", "Sum")


def _mean(name: str, values: Any, weights: Any, collections: Any, updates: Any,
          value: Callable[..., Any] = _ratio) -> tuple[Any, Any]:  # fmt: skip
    total, count = _sums(values, weights)
    return _metric(name, {"total": total, "count": count}, value, collections, updates)


def mean(values: Any, weights: Any = None, metrics_collections: Any = None,
         updates_collections: Any = None, name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The weighted mean."""
    return _mean(name or "mean", values, weights, metrics_collections, updates_collections)


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
    return _mean(name or "accuracy", same, weights, metrics_collections, updates_collections)


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
    return _mean(kind, errors, weights, metrics_collections, updates_collections)


def root_mean_squared_error(labels: Any, predictions: Any, weights: Any = None,
                            metrics_collections: Any = None, updates_collections: Any = None,
                            name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The root of the mean of squared errors."""
    errors = recorded(_squared, "SquaredDifference")(labels, predictions)
    kind = name or "root_mean_squared_error"
    return _mean(kind, errors, weights, metrics_collections, updates_collections, _root)


def mean_absolute_error(labels: Any, predictions: Any, weights: Any = None,
                        metrics_collections: Any = None, updates_collections: Any = None,
                        name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The mean of absolute errors."""
    errors = recorded(_absolute, "Abs")(labels, predictions)
    kind = name or "mean_absolute_error"
    return _mean(kind, errors, weights, metrics_collections, updates_collections)


def mean_relative_error(labels: Any, predictions: Any, normalizer: Any, weights: Any = None,
                        metrics_collections: Any = None, updates_collections: Any = None,
                        name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The mean of absolute errors, each divided by a number."""
    errors = recorded(_relative, "RelativeError")(labels, predictions, normalizer)
    kind = name or "mean_relative_error"
    return _mean(kind, errors, weights, metrics_collections, updates_collections)


def _relative(labels: Any, predictions: Any, normalizer: Any) -> Any:
    return td.math.divide_no_nan(_absolute(labels, predictions), td.convert_to_tensor(normalizer))


def percentage_below(values: Any, threshold: Any, weights: Any = None,
                     metrics_collections: Any = None, updates_collections: Any = None,
                     name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """How many values are below a threshold."""
    below = functions.cast(recorded(td.less, "Less")(values, threshold), td.float32)
    kind = name or "percentage_below_threshold"
    return _mean(kind, below, weights, metrics_collections, updates_collections)


def _counted(labels: Any, predictions: Any, weights: Any) -> list[Any]:
    """How many true and false positives and negatives there are."""
    truth, found = td.cast(labels, td.bool), td.cast(predictions, td.bool)
    truth, found = td.reshape(truth, [-1]), td.reshape(found, [-1])
    weights = 1.0 if weights is None else td.reshape(
        td.cast(weights, td.float32) * td.ones(td.shape(labels)), [-1]
    )  # fmt: skip
    kinds = [(truth, found), (~truth, found), (~truth, ~found), (truth, ~found)]
    return [td.reduce_sum(td.cast(a & b, td.float32) * weights) for a, b in kinds]


_KINDS = ("true_positives", "false_positives", "true_negatives", "false_negatives")


def _counts(labels: Any, predictions: Any, weights: Any) -> dict[str, Any]:
    found = recorded(_counted, "Count")(labels, predictions, weights)
    return dict(zip(_KINDS, found, strict=True))


def _count(kind: str) -> Callable[..., Any]:
    def count(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
              updates_collections: Any = None, name: str | None = None) -> tuple[Any, Any]:
        found = _counts(labels, predictions, weights)[kind]
        collections = metrics_collections, updates_collections
        return _metric(name or kind, {"count": found}, _itself, *collections)

    count.__name__ = kind
    count.__doc__ = f"How many {kind.replace('_', ' ')} there are."
    return count


true_positives, false_positives, true_negatives, false_negatives = map(_count, _KINDS)


def _share(a: Any, b: Any) -> Any:
    a = td.convert_to_tensor(a)
    return td.math.divide_no_nan(a, a + b)


def precision(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
              updates_collections: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """The share of true positives among the positives that were found."""
    found = _counts(labels, predictions, weights)
    kept = {k: found[k] for k in ("true_positives", "false_positives")}
    return _metric(name or "precision", kept, _share, metrics_collections, updates_collections)


def recall(labels: Any, predictions: Any, weights: Any = None, metrics_collections: Any = None,
           updates_collections: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """The share of the positives that were found."""
    found = _counts(labels, predictions, weights)
    kept = {k: found[k] for k in ("true_positives", "false_negatives")}
    return _metric(name or "recall", kept, _share, metrics_collections, updates_collections)


def _at_thresholds(labels: Any, predictions: Any, weights: Any, count: int) -> list[Any]:
    step = 1.0 / (count - 1)
    thresholds = td.constant([-1e-7, *((i + 1) * step for i in range(count - 2)), 1.0 + 1e-7])
    truth = td.reshape(td.cast(labels, td.bool), [1, -1])
    found = td.reshape(td.cast(predictions, td.float32), [1, -1]) > thresholds[:, None]
    each: Any = 1.0
    if weights is not None:
        each = td.reshape(td.cast(weights, td.float32) * td.ones(td.shape(labels)), [1, -1])
    kinds = [(truth, found), (~truth, found), (~truth, ~found), (truth, ~found)]
    return [td.reduce_sum(td.cast(a & b, td.float32) * each, 1) for a, b in kinds]


def _area(counts: Any, roc: bool) -> Any:
    tp, fp, tn, fn = map(td.convert_to_tensor, counts)
    small = 1e-6
    rec = (tp + small) / (tp + fn + small)
    if roc:
        x, y = fp / (fp + tn + small), rec
    else:
        x, y = rec, (tp + small) / (tp + fp + small)
    return td.reduce_sum((x[:-1] - x[1:]) * (y[:-1] + y[1:]) / 2.0)


def _roc(*counts: Any) -> Any:
    return _area(counts, roc=True)


def _pr(*counts: Any) -> Any:
    return _area(counts, roc=False)


def auc(labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200,
        metrics_collections: Any = None, updates_collections: Any = None, curve: str = "ROC",
        name: str | None = None, summation_method: str = "trapezoidal",
        thresholds: Any = None) -> tuple[Any, Any]:  # fmt: skip
    """The area under the curve of rates of true and false positives (ROC), or of precision and
    recall (PR).

    Raises:
        ValueError: it is another curve.
    """
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    found = recorded(_at_thresholds, "AtThresholds")(labels, predictions, weights, num_thresholds)
    return _metric(
        name or "auc", dict(zip(_KINDS, found, strict=True)), _roc if curve == "ROC" else _pr,
        metrics_collections, updates_collections,
    )  # fmt: skip


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
        kept = _local("total_confusion_matrix", [num_classes, num_classes])
        value = recorded(_mean_iou, "mean_iou")(kept)
        update = _grow(kept, found)
    graph = get_default_graph()
    if metrics_collections:
        graph.add_to_collections(metrics_collections, value)
    if updates_collections:
        graph.add_to_collections(updates_collections, update)
    return value, update


def _by_class(labels: Any, predictions: Any, classes: int, weights: Any) -> list[Any]:
    labels = td.cast(td.reshape(labels, [-1]), td.int64)
    same = _equal(labels, td.reshape(predictions, [-1]))
    each = td.ones_like(same)
    if weights is not None:
        each = each * td.reshape(td.cast(weights, td.float32), [-1])
    rows = td.one_hot(labels, classes)
    return [td.reduce_sum(rows * each[:, None], 0), td.reduce_sum(rows * (same * each)[:, None], 0)]


def _mean_of_classes(total: Any, count: Any) -> Any:
    total, count = td.convert_to_tensor(total), td.convert_to_tensor(count)
    return td.reduce_mean(td.math.divide_no_nan(count, total))


def mean_per_class_accuracy(labels: Any, predictions: Any, num_classes: int, weights: Any = None,
                            metrics_collections: Any = None, updates_collections: Any = None,
                            name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The mean of the accuracies of classes."""
    total, count = recorded(_by_class, "ByClass")(labels, predictions, num_classes, weights)
    return _metric(
        name or "mean_accuracy", {"total": total, "count": count}, _mean_of_classes,
        metrics_collections, updates_collections,
    )  # fmt: skip


def _found_at(labels: Any, predictions: Any, k: int) -> Any:
    top = td.cast(td.math.top_k(predictions, k)[1], td.int64)
    labels = td.cast(labels, td.int64)
    if len(labels.shape) < len(top.shape):
        labels = labels[..., None]
    hits = td.reduce_any(labels[..., :, None] == top[..., None, :], -1)
    return td.reduce_mean(td.cast(hits, td.float32), -1)


def recall_at_k(labels: Any, predictions: Any, k: int, class_id: Any = None, weights: Any = None,
                metrics_collections: Any = None, updates_collections: Any = None,
                name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """How many of the labels are among the `k` best."""
    hits = recorded(_found_at, "RecallAtK")(labels, predictions, k)
    kind = name or f"recall_at_{k}"
    return _mean(kind, hits, weights, metrics_collections, updates_collections)

in_graphs(
    _absolute,
    _at_thresholds,
    _by_class,
    _confusion,
    _counted,
    _equal,
    _found_at,
    _mean_iou,
    _relative,
    _squared,
    _total,
)
