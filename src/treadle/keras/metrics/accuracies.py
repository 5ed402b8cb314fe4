"""How often predictions are right."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras import config
from treadle.keras.losses.base import same_rank
from treadle.keras.metrics.reductions import MeanMetricWrapper, mean_of


def _matches(hits: td.Tensor) -> td.Tensor:
    return td.cast(hits, config.floatx())


def accuracy(y_true: Any, y_pred: Any) -> td.Tensor:
    """1 where the label equals the prediction."""
    true, pred = same_rank(td.convert_to_tensor(y_true), td.convert_to_tensor(y_pred))
    return _matches(td.cast(true, pred.dtype) == pred)


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> td.Tensor:
    """1 where the class number is that of the highest score."""
    true, pred = td.convert_to_tensor(y_true), td.convert_to_tensor(y_pred)
    if len(true.shape) == len(pred.shape) and true.shape[-1] == 1:
        true = td.squeeze(true, -1)
    return _matches(td.cast(true, td.int64) == td.argmax(pred, -1))


def categorical_accuracy(y_true: Any, y_pred: Any) -> td.Tensor:
    """1 where label and prediction are highest in the same class."""
    true, pred = td.convert_to_tensor(y_true), td.convert_to_tensor(y_pred)
    return _matches(td.argmax(true, -1) == td.argmax(pred, -1))


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> td.Tensor:
    """1 where the prediction is on the label's side of the threshold."""
    true, pred = same_rank(td.convert_to_tensor(y_true), td.convert_to_tensor(y_pred))
    if not pred.dtype.is_floating:
        pred = td.cast(pred, config.floatx())
    return _matches(td.cast(true, pred.dtype) == td.cast(pred > threshold, pred.dtype))


def sparse_top_k_categorical_accuracy(
    y_true: Any, y_pred: Any, k: int = 5, from_sorted_ids: bool = False
) -> td.Tensor:
    """1 where the class number is among the k highest scores.

    Args:
        from_sorted_ids: the predictions are numbers of classes, the best first.
    """
    true, pred = td.convert_to_tensor(y_true), td.convert_to_tensor(y_pred)
    if from_sorted_ids:
        first = td.cast(pred[..., :k], td.int64)
        labels = td.reshape(td.cast(true, td.int64), td.shape(pred)[:-1])
        return _matches(td.reduce_any(td.expand_dims(labels, -1) == first, -1))
    classes = pred.shape[-1]
    labels = td.reshape(td.cast(true, td.int32), [-1])
    found = td.math.in_top_k(labels, td.reshape(pred, [-1, classes]), k)
    return _matches(td.reshape(found, td.shape(pred)[:-1]))


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> td.Tensor:
    """1 where the one-hot class is among the k highest scores."""
    return sparse_top_k_categorical_accuracy(td.argmax(y_true, -1), y_pred, k)


Accuracy = mean_of(
    accuracy, "Accuracy", "accuracy", "How often predictions equal labels.", "up"
)
SparseCategoricalAccuracy = mean_of(
    sparse_categorical_accuracy, "SparseCategoricalAccuracy", "sparse_categorical_accuracy",
    "How often the highest score is the labelled class.", "up",
)  # fmt: skip
CategoricalAccuracy = mean_of(
    categorical_accuracy, "CategoricalAccuracy", "categorical_accuracy",
    "How often the highest score is the one-hot class.", "up",
)  # fmt: skip
BinaryAccuracy = mean_of(
    binary_accuracy, "BinaryAccuracy", "binary_accuracy",
    "How often predictions are on the label's side of the threshold.", "up",
)  # fmt: skip


class TopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the one-hot class is among the k highest scores."""

    _direction = "up"

    def __init__(
        self, k: int = 5, name: str | None = "top_k_categorical_accuracy", dtype: Any = None
    ) -> None:
        super().__init__(top_k_categorical_accuracy, name, dtype, k=k)
        self.k = k


class SparseTopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the labelled class is among the k highest scores."""

    _direction = "up"

    def __init__(
        self, k: int = 5, name: str | None = "sparse_top_k_categorical_accuracy",
        dtype: Any = None, from_sorted_ids: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            sparse_top_k_categorical_accuracy, name, dtype, k=k, from_sorted_ids=from_sorted_ids
        )
        self.k, self.from_sorted_ids = k, from_sorted_ids
