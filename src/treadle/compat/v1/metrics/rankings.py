"""Metrics of the `k` best classes: how many of them are labels, and of the labels are among them.

An example's labels are a set: a row of numbers, or of a sparse tensor. So are its best classes.
"""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.compat.v1.metrics.streaming import metric
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.core.origin import at, user_origin


def _rows(labels: Any, rank: int) -> tuple[Any, Any]:
    """Labels as rows, and which of their elements there are."""
    if isinstance(labels, td.SparseTensor):
        ones = labels.with_values(td.ones_like(labels.values, td.bool))
        values = td.sparse.to_dense(labels.with_values(td.cast(labels.values, td.int64)))
        there = td.sparse.to_dense(ones)
    else:
        values = td.cast(labels, td.int64)
        there = td.ones_like(values, td.bool)
    if len(values.shape) == rank - 1:
        values, there = values[..., None], there[..., None]
    if len(values.shape) != rank:
        raise ValueError(
            f"Unexpected labels shape {values.shape}: their rank is that of the predictions, "
            f"{rank}, or one less{at(user_origin())}"
        )
    return values, there


def _once(values: Any, there: Any) -> Any:
    """Which elements of rows are there and stand for the first time."""
    same = (values[..., :, None] == values[..., None, :]) & there[..., None, :]
    count = td.shape(values)[-1]
    earlier = td.range(count)[None, :] < td.range(count)[:, None]
    return there & ~td.reduce_any(same & earlier, -1)


def _found(labels: Any, best: Any, class_id: Any, weights: Any) -> list[Any]:
    """How many of the best classes are labels and how many are not, and how many labels are not
    among them."""
    best = td.cast(best, td.int64)
    values, there = _rows(labels, len(best.shape))
    there, chosen = _once(values, there), _once(best, td.ones_like(best, td.bool))
    if class_id is not None:
        there, chosen = there & (values == class_id), chosen & (best == class_id)
    same = (values[..., :, None] == best[..., None, :]) & there[..., :, None]
    same = same & chosen[..., None, :]
    hit, found = td.reduce_any(same, -1), td.reduce_any(same, -2)
    sums = []
    for kind in (hit, chosen & ~found, there & ~hit):
        count = td.reduce_sum(td.cast(kind, td.float64), -1)
        sums.append(td.reduce_sum(count if weights is None else count * _weights(weights, count)))
    return sums


def _weights(weights: Any, like: Any) -> Any:
    given = td.cast(weights, td.float64)
    fits = not len(given.shape) or len(given.shape) == len(like.shape)
    if not fits:
        raise ValueError(
            f"weights can not be broadcast to values: weights.shape={given.shape} "
            f"values.shape={like.shape}{at(user_origin())}"
        )
    return given * td.ones_like(like)


def _name(what: str, k: int | None, class_id: int | None) -> str:
    number = f"_at_{k}" if k is not None else "_at_k"
    return what + number + (f"_class{class_id}" if class_id is not None else "")


def _share(a: Any, b: Any) -> Any:
    a = td.convert_to_tensor(a)
    return a / (a + b)


def _best(predictions: Any, k: int) -> Any:
    return graph_function(td.math.top_k)(predictions, k)[1]


def recall_at_top_k(labels: Any, predictions_idx: Any, k: int | None = None, class_id: Any = None,
                    weights: Any = None, metrics_collections: Any = None,
                    updates_collections: Any = None,
                    name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """How many of the labels are among the best classes, whose numbers are given.

    Args:
        class_id: only this class counts.
    """
    hits, _, missed = recorded(_found, "AtK")(labels, predictions_idx, class_id, weights)
    sums = {
        _name("true_positive", k, class_id): hits, _name("false_negative", k, class_id): missed
    }
    called = name or _name("recall", k, class_id)
    return metric(called, sums, _share, metrics_collections, updates_collections)


def recall_at_k(labels: Any, predictions: Any, k: int, class_id: Any = None, weights: Any = None,
                metrics_collections: Any = None, updates_collections: Any = None,
                name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """How many of the labels are among the `k` best classes of predictions."""
    best = _best(predictions, k)
    return recall_at_top_k(
        labels, best, k, class_id, weights, metrics_collections, updates_collections, name
    )


def precision_at_top_k(labels: Any, predictions_idx: Any, k: int | None = None,
                       class_id: Any = None, weights: Any = None, metrics_collections: Any = None,
                       updates_collections: Any = None,
                       name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """How many of the best classes, whose numbers are given, are labels.

    Args:
        class_id: only this class counts.
    """
    hits, wrong, _ = recorded(_found, "AtK")(labels, predictions_idx, class_id, weights)
    sums = {_name("true_positive", k, class_id): hits, _name("false_positive", k, class_id): wrong}
    called = name or _name("precision", k, class_id)
    return metric(called, sums, _share, metrics_collections, updates_collections)


def precision_at_k(labels: Any, predictions: Any, k: int, class_id: Any = None,
                   weights: Any = None, metrics_collections: Any = None,
                   updates_collections: Any = None,
                   name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """How many of the `k` best classes of predictions are labels."""
    best = _best(predictions, k)
    return precision_at_top_k(
        labels, best, k, class_id, weights, metrics_collections, updates_collections, name
    )


sparse_precision_at_k = precision_at_k


def _average(labels: Any, predictions: Any, k: int, weights: Any) -> list[Any]:
    predictions = td.convert_to_tensor(predictions)
    best = td.cast(td.math.top_k(predictions, k)[1], td.int64)
    values, there = _rows(labels, len(best.shape))
    classes = td.cast(td.shape(predictions)[-1], td.int64)
    values = td.where(values >= classes, td.cast(-1, td.int64), values)
    same = (best[..., :, None] == values[..., None, :]) & there[..., None, :]
    relevant = td.cast(td.reduce_any(same, -1), td.float64)
    precision = td.cumsum(relevant, -1) / td.cumsum(td.ones_like(relevant), -1)
    if isinstance(labels, td.SparseTensor):
        counted = _once(values, there)
    else:
        counted = values >= 0
    count = td.minimum(td.reduce_sum(td.cast(counted, td.float64), -1), float(k))
    average = td.reduce_sum(precision * relevant, -1) / count
    if weights is None:
        return [td.reduce_sum(average), td.cast(td.size(average), td.float64)]
    each = _weights(weights, average)
    return [td.reduce_sum(average * each), td.reduce_sum(each)]


def _ratio(total: Any, most: Any) -> Any:
    return td.math.divide_no_nan(td.convert_to_tensor(total), td.convert_to_tensor(most))


def average_precision_at_k(labels: Any, predictions: Any, k: int, weights: Any = None,
                           metrics_collections: Any = None, updates_collections: Any = None,
                           name: str | None = None) -> tuple[Any, Any]:  # fmt: skip
    """The mean of the precisions among the first, the first two and so on up to the `k` best
    classes, where the last of these is a label.

    Raises:
        ValueError: `k` is no positive number.
    """
    if k < 1:
        raise ValueError(f"Invalid k={k}. `k` should be >= 1.{at(user_origin())}")
    total, most = recorded(_average, "AveragePrecision")(labels, predictions, k, weights)
    return metric(
        name or f"average_precision_at_{k}", {"total": total, "max": most}, _ratio,
        metrics_collections, updates_collections,
    )  # fmt: skip


sparse_average_precision_at_k = average_precision_at_k

in_graphs(
    _average,
    _found,
    _ratio,
    _share,
)
