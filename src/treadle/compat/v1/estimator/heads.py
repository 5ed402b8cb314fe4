"""What ready models give for their logits: predictions, losses and metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import treadle as td
from treadle.compat.v1 import functions, losses, metrics, nn
from treadle.compat.v1.estimator.base import EstimatorSpec, ModeKeys
from treadle.compat.v1.estimator.exporting import (
    ClassificationOutput,
    PredictOutput,
    RegressionOutput,
)
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.recording import in_graphs, recorded
from treadle.compat.v1.values import element, the_tensor
from treadle.core.origin import at, user_origin
from treadle.saved_model import DEFAULT_SERVING_SIGNATURE_DEF_KEY as DEFAULT


def _column(labels: Any, width: int) -> Any:
    """Labels as a column beside the logits."""
    labels = td.convert_to_tensor(labels)
    found = labels[..., None] if len(labels.shape) == 1 and width == 1 else labels
    if found.shape[-1] not in (None, width):
        raise ValueError(
            f"labels shape must be [batch_size, {width}], not {labels.shape}{at(user_origin())}"
        )
    return found


_as_column = recorded(_column, "labels", "Reshape")


def _positions(labels: Any, words: list[str]) -> Any:
    """The numbers of words."""
    same = td.convert_to_tensor(labels)[..., None] == td.constant(words)
    td.debugging.assert_equal(
        td.reduce_all(td.reduce_any(same, -1)), True, message="A label is not in the vocabulary"
    )
    return td.argmax(td.cast(same, td.int32), -1)


_numbers_of = recorded(_positions, "class_id_lookup", "LookupTableFindV2")


def _words(numbers: Any, words: list[str] | None) -> Any:
    return td.strings.as_string(numbers) if words is None else td.gather(words, numbers)


_words_of = recorded(_words, "str_classes", "AsString")


def _rows_of(values: Any, like: Any) -> Any:
    values = td.convert_to_tensor(values)
    return td.tile(values[None], [td.shape(like)[0], 1])


_all_of = recorded(_rows_of, "all_classes", "Tile")


def _in_range(labels: Any, classes: int) -> Any:
    td.debugging.assert_less(
        labels, td.cast(classes, labels.dtype), message=f"Labels must be <= {classes} - 1"
    )
    td.debugging.assert_non_negative(labels, message="Labels must be >= 0")
    return td.identity(labels)


_checked = recorded(_in_range, "assert_range", "Identity")


class Head:
    """What a model gives for its logits.

    Args:
        classes: how many classes there are; None for numbers.
        width: the size of the labels of an example, for numbers.
        weight_column: the feature, or column of numbers, that says how much examples count.
        label_vocabulary: the words that are labels, in the order of the classes.
        reduction: how the losses of a batch become one number.
    """

    def __init__(self, classes: int | None, width: int = 1, weight_column: Any = None,
                 label_vocabulary: Sequence[str] | None = None,
                 reduction: str = losses.Reduction.SUM) -> None:  # fmt: skip
        if classes is not None and classes < 2:
            raise ValueError(f"n_classes must be at least 2: {classes}{at(user_origin())}")
        losses.Reduction.validate(reduction)
        if reduction == losses.Reduction.NONE:
            raise ValueError(f"Invalid loss_reduction: {reduction}{at(user_origin())}")
        self.width = width if classes is None else 1 if classes == 2 else classes
        self._classes, self._weights, self._reduction = classes, weight_column, reduction
        self._words = None if label_vocabulary is None else list(label_vocabulary)

    def spec(self, features: Any, labels: Any, mode: str, logits: Any,
             train: Callable[[Any], Any]) -> EstimatorSpec:  # fmt: skip
        """What the model function gives.

        Args:
            train: gives the training operation of a loss.
        """
        predictions = self._predictions(logits)
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions, export_outputs=self._exports(predictions))
        if labels is None:
            raise ValueError(
                "You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: "
                f"Check that your input_fn gives labels{at(user_origin())}"
            )
        truth, each = self._losses(labels, logits)
        weights: Any = 1.0 if self._weights is None else self._weights_of(features)
        loss = losses.compute_weighted_loss(each, weights, reduction=self._reduction)
        if mode == ModeKeys.EVAL:
            found = self._metrics(truth, predictions, each, weights)
            return EstimatorSpec(mode, predictions, loss, eval_metric_ops=found)
        return EstimatorSpec(mode, predictions, loss, train(loss))

    def _weights_of(self, features: Mapping[str, Any]) -> Any:
        column = self._weights
        key = column if isinstance(column, str) else column.key
        found = functions.to_float(features[key])
        normalizer = getattr(column, "normalizer_fn", None)
        found = found if normalizer is None else normalizer(found)
        rank = the_tensor(found).shape.rank
        return functions.expand_dims(found, -1) if rank == 1 else found

    def _predictions(self, logits: Any) -> dict[str, Any]:
        if self._classes is None:
            return {"predictions": logits}
        found, both = {"logits": logits}, logits
        if self._classes == 2:
            found["logistic"] = graph_function(td.sigmoid)(logits, name="logistic")
            both = graph_function(td.concat)([functions.zeros_like(logits), logits], -1)
        found["probabilities"] = nn.softmax(both, name="probabilities")
        best = functions.expand_dims(functions.argmax(both, -1), -1)
        numbers = list(range(self._classes))
        found |= {
            "class_ids": best, "classes": _words_of(best, self._words),
            "all_class_ids": _all_of(numbers, logits),
            "all_classes": _all_of(self._words or [str(n) for n in numbers], logits),
        }  # fmt: skip
        return found

    def _exports(self, predictions: dict[str, Any]) -> dict[str, Any]:
        predict = PredictOutput(predictions)
        if self._classes is None:
            numbers = RegressionOutput(predictions["predictions"])
            return {DEFAULT: numbers, "regression": numbers, "predict": predict}
        scores = ClassificationOutput(predictions["probabilities"], predictions["all_classes"])
        found = {DEFAULT: scores, "classification": scores, "predict": predict}
        if self._classes == 2:
            found["regression"] = RegressionOutput(predictions["logistic"])
        return found

    def _losses(self, labels: Any, logits: Any) -> tuple[Any, Any]:
        """The labels as numbers, and the losses of the examples."""
        truth = _as_column(labels, self.width if self._classes is None else 1)
        if self._classes is None:
            truth = functions.to_float(truth)
            return truth, graph_function(td.math.squared_difference)(logits, truth)
        if self._words is not None:
            truth = _numbers_of(truth, self._words)
        if self._classes == 2:
            truth = _checked(functions.to_float(truth), 2)
            each = nn.sigmoid_cross_entropy_with_logits(labels=truth, logits=logits)
            return truth, each
        truth = _checked(functions.to_int64(truth), self._classes)
        each = losses.sparse_softmax_cross_entropy(
            truth, logits, reduction=losses.Reduction.NONE, loss_collection=None
        )
        return truth, functions.expand_dims(each, -1) if _rank(each) == 1 else each

    def _metrics(self, truth: Any, predictions: Any, each: Any, weights: Any) -> dict[str, Any]:
        weights = None if self._weights is None else weights
        found = {"average_loss": metrics.mean(each, weights)}
        if self._classes is None:
            return found | {
                "prediction/mean": metrics.mean(predictions["predictions"], weights),
                "label/mean": metrics.mean(truth, weights),
            }
        best = predictions["class_ids"]
        found["accuracy"] = metrics.accuracy(truth, best, weights)
        if self._classes > 2:
            return found
        share = predictions["logistic"]
        mean = metrics.mean(truth, weights)
        return found | {
            "precision": metrics.precision(truth, best, weights),
            "recall": metrics.recall(truth, best, weights),
            "prediction/mean": metrics.mean(share, weights), "label/mean": mean,
            "accuracy_baseline": tuple(_larger(m) for m in mean),
            "auc": metrics.auc(truth, share, weights),
            "auc_precision_recall": metrics.auc(truth, share, weights, curve="PR"),
        }  # fmt: skip


def _rank(value: Any) -> int | None:
    tensor = element(value)
    assert tensor is not None
    return tensor.shape.rank


def _larger(share: Any) -> Any:
    """How often the more frequent of two classes is there."""
    return graph_function(td.maximum)(share, 1.0 - share)


in_graphs(
    _column,
    _in_range,
    _positions,
    _rows_of,
    _words,
)
