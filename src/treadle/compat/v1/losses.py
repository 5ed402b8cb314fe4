"""``td.compat.v1.losses``: losses, which the graph collects."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.compat.v1 import functions
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.recording import in_graphs, recorded, writes_into
from treadle.names import missing_in


class Reduction:
    """How the weighted losses become one number."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All ways."""
        return cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def validate(cls, key: str) -> None:
        """ValueError unless it is one of them."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


def check_weights(weights: Any, values: Any) -> None:
    """Weights are one number, or have as many axes as what they weight, each of its size or of 1.

    Raises:
        InvalidArgumentError: they do not.
    """
    rank = len(weights.shape)
    if not rank:
        return
    fits = rank == len(values.shape) and all(
        w is None or v is None or w in (1, v)
        for w, v in zip(weights.shape, values.shape, strict=True)
    )
    if not fits:
        raise td.errors.InvalidArgumentError(
            None, None,
            f"weights can not be broadcast to values. values.shape={values.shape}. "
            f"weights.shape={weights.shape}.",
        )  # fmt: skip
    for axis, (w, v) in enumerate(zip(weights.shape, values.shape, strict=True)):
        if w is None or (v is None and w != 1):
            size, whole = td.shape(weights)[axis], td.shape(values)[axis]
            td.debugging.Assert(
                td.logical_or(size == 1, size == whole),
                ["weights can not be broadcast to values", td.shape(weights), td.shape(values)],
            )


def _weighted(values: Any, weights: Any, reduction: str) -> Any:
    """The losses of examples, weighted and made one number."""
    values = td.convert_to_tensor(values)
    kind = values.dtype
    values, weights = td.cast(values, td.float32), td.cast(weights, td.float32)
    check_weights(weights, values)
    found = values * weights
    if reduction == Reduction.NONE:
        return td.cast(found, kind)
    total = td.reduce_sum(found)
    if reduction == Reduction.MEAN:
        total = td.math.divide_no_nan(total, td.reduce_sum(td.ones_like(values) * weights))
    elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
        present = td.where(weights == 0.0, 0.0, 1.0) * td.ones_like(values)
        total = td.math.divide_no_nan(total, td.reduce_sum(present))
    elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
        total = td.math.divide_no_nan(total, td.cast(td.size(values), td.float32))
    return td.cast(total, kind)


def _weights_of_rows(losses: Any, weights: Any) -> Any:
    """Weights [..., 1] as [...], where there are as many losses."""
    losses, weights = td.convert_to_tensor(losses), td.convert_to_tensor(weights)
    one = len(weights.shape) == len(losses.shape) + 1 and weights.shape[-1] in (1, None)
    return td.squeeze(weights, [-1]) if one else weights


_squeezed = recorded(_weights_of_rows, "Squeeze", "Squeeze")
_compute = recorded(_weighted, "value", "DivNoNan")


def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: str | None = None,
                          loss_collection: Any = GraphKeys.LOSSES,
                          reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS) -> Any:  # fmt: skip
    """The weighted losses as one number, which is added to a collection."""
    Reduction.validate(reduction)
    with functions.name_scope(scope, "weighted_loss", (losses, weights)):
        loss = _compute(losses, weights, reduction)
    add_loss(loss, loss_collection)
    return loss


def add_loss(loss: Any, loss_collection: Any = GraphKeys.LOSSES) -> None:
    """Add a loss to a collection."""
    if loss_collection and writes_into(loss) is not None:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: Any = GraphKeys.LOSSES) -> list[Any]:
    """The losses of a collection."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The losses of regularizers."""
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(
    scope: str | None = None, name: str = "total_regularization_loss"
) -> Any:
    """The sum of the losses of regularizers."""
    found = get_regularization_losses(scope)
    if not found:
        return graph_function(td.constant)(0.0)
    return graph_function(td.add_n)(found, name=name)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss",
                   scope: str | None = None) -> Any:  # fmt: skip
    """The sum of all losses."""
    found = get_losses(scope)
    if add_regularization_losses:
        found = found + get_regularization_losses(scope)
    return graph_function(td.add_n)(found, name=name)


def _required(**given: Any) -> None:
    for name, value in given.items():
        if value is None:
            raise ValueError(f"{name} must not be None.")


def _loss(label: str, function: Any) -> Any:
    """A loss of TensorFlow 1 from the function of each element's loss."""
    call = recorded(function, label, "Loss")

    def loss(first: Any, second: Any, weights: Any, scope: Any, collection: Any, reduction: str,
             *more: Any) -> Any:  # fmt: skip
        _required(labels=first, predictions=second)
        with functions.name_scope(scope, label, (first, second, weights)) as opened:
            found = call(first, second, *more)
            if function is _sparse_softmax:
                weights = _squeezed(found, weights)
            return compute_weighted_loss(found, weights, opened, collection, reduction)

    return loss


def _pair(labels: Any, predictions: Any) -> tuple[Any, Any]:
    return _alike(labels, td.cast(predictions, td.float32))


def _alike(labels: Any, predictions: Any) -> tuple[Any, Any]:
    """The labels in the dtype of the predictions, whose shape they have, and these."""
    predictions = td.convert_to_tensor(predictions)
    labels = td.cast(labels, predictions.dtype)
    if not labels.shape.is_compatible_with(predictions.shape):
        raise ValueError(f"Shapes {predictions.shape} and {labels.shape} are incompatible")
    return labels, predictions


def _squared(labels: Any, predictions: Any) -> Any:
    labels, predictions = _pair(labels, predictions)
    return td.math.squared_difference(predictions, labels)


def _absolute(labels: Any, predictions: Any) -> Any:
    labels, predictions = _pair(labels, predictions)
    return td.abs(predictions - labels)


def _log(labels: Any, predictions: Any, epsilon: float) -> Any:
    labels, predictions = _pair(labels, predictions)
    return (-labels * td.math.log(predictions + epsilon)
            - (1 - labels) * td.math.log(1 - predictions + epsilon))  # fmt: skip


def _hinge(labels: Any, logits: Any) -> Any:
    labels, logits = _pair(labels, logits)
    return td.nn.relu(1.0 - (2 * labels - 1) * logits)


def _huber(labels: Any, predictions: Any, delta: float) -> Any:
    labels, predictions = _pair(labels, predictions)
    error = td.abs(predictions - labels)
    quadratic = td.minimum(error, delta)
    return 0.5 * quadratic * quadratic + delta * (error - quadratic)


def _cosine(labels: Any, predictions: Any, axis: int) -> Any:
    labels, predictions = _pair(labels, predictions)
    return 1 - td.reduce_sum(predictions * labels, axis, keepdims=True)


def _sigmoid(labels: Any, logits: Any, smoothing: float) -> Any:
    labels, logits = _alike(labels, logits)
    if smoothing:
        labels = labels * (1 - smoothing) + 0.5 * smoothing
    return td.nn.sigmoid_cross_entropy_with_logits(labels, logits)


def _softmax(labels: Any, logits: Any, smoothing: float) -> Any:
    labels, logits = _alike(labels, logits)
    if smoothing:
        labels = labels * (1 - smoothing) + smoothing / td.cast(td.shape(labels)[1], labels.dtype)
    return td.nn.softmax_cross_entropy_with_logits(td.stop_gradient(labels), logits)


def _sparse_softmax(labels: Any, logits: Any) -> Any:
    labels, logits = td.convert_to_tensor(labels), td.convert_to_tensor(logits)
    if len(labels.shape) == len(logits.shape):
        labels = td.squeeze(labels, [-1])
    return td.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


_mean_squared, _difference = _loss("mean_squared_error", _squared), _loss(
    "absolute_difference", _absolute
)
_log_loss, _hinge_loss = _loss("log_loss", _log), _loss("hinge_loss", _hinge)
_huber_loss, _cosine_distance = _loss("huber_loss", _huber), _loss("cosine_distance_loss", _cosine)
_sigmoid_loss = _loss("sigmoid_cross_entropy_loss", _sigmoid)
_softmax_loss = _loss("softmax_cross_entropy_loss", _softmax)
_sparse_loss = _loss("sparse_softmax_cross_entropy_loss", _sparse_softmax)
_BY_NONZERO = Reduction.SUM_BY_NONZERO_WEIGHTS


def mean_squared_error(labels: Any, predictions: Any, weights: Any = 1.0, scope: Any = None,
                       loss_collection: Any = GraphKeys.LOSSES,
                       reduction: str = _BY_NONZERO) -> Any:
    """``(predictions - labels) ** 2``."""
    return _mean_squared(labels, predictions, weights, scope, loss_collection, reduction)


def absolute_difference(labels: Any, predictions: Any, weights: Any = 1.0, scope: Any = None,
                        loss_collection: Any = GraphKeys.LOSSES,
                        reduction: str = _BY_NONZERO) -> Any:
    """``abs(predictions - labels)``."""
    return _difference(labels, predictions, weights, scope, loss_collection, reduction)


def log_loss(labels: Any, predictions: Any, weights: Any = 1.0, epsilon: float = 1e-7,
             scope: Any = None, loss_collection: Any = GraphKeys.LOSSES,
             reduction: str = _BY_NONZERO) -> Any:  # fmt: skip
    """The cross-entropy of probabilities of two classes."""
    return _log_loss(labels, predictions, weights, scope, loss_collection, reduction, epsilon)


def hinge_loss(labels: Any, logits: Any, weights: Any = 1.0, scope: Any = None,
               loss_collection: Any = GraphKeys.LOSSES, reduction: str = _BY_NONZERO) -> Any:
    """``max(0, 1 - (2 * labels - 1) * logits)``."""
    return _hinge_loss(labels, logits, weights, scope, loss_collection, reduction)


def huber_loss(labels: Any, predictions: Any, weights: Any = 1.0, delta: float = 1.0,
               scope: Any = None, loss_collection: Any = GraphKeys.LOSSES,
               reduction: str = _BY_NONZERO) -> Any:  # fmt: skip
    """Quadratic within `delta`, linear beyond."""
    return _huber_loss(labels, predictions, weights, scope, loss_collection, reduction, delta)


def cosine_distance(labels: Any, predictions: Any, axis: Any = None, weights: Any = 1.0,
                    scope: Any = None, loss_collection: Any = GraphKeys.LOSSES,
                    reduction: str = _BY_NONZERO, dim: Any = None) -> Any:  # fmt: skip
    """``1 - sum(labels * predictions)`` along an axis.

    Raises:
        ValueError: there is no axis.
    """
    axis = functions.renamed(axis, "axis", dim, "dim")
    if axis is None:
        raise ValueError("You must specify argument `axis`.")
    return _cosine_distance(labels, predictions, weights, scope, loss_collection, reduction, axis)


def sigmoid_cross_entropy(multi_class_labels: Any, logits: Any, weights: Any = 1.0,
                          label_smoothing: float = 0, scope: Any = None,
                          loss_collection: Any = GraphKeys.LOSSES,
                          reduction: str = _BY_NONZERO) -> Any:  # fmt: skip
    """See `nn.sigmoid_cross_entropy_with_logits`."""
    given = multi_class_labels
    return _sigmoid_loss(given, logits, weights, scope, loss_collection, reduction, label_smoothing)


def softmax_cross_entropy(onehot_labels: Any, logits: Any, weights: Any = 1.0,
                          label_smoothing: float = 0, scope: Any = None,
                          loss_collection: Any = GraphKeys.LOSSES,
                          reduction: str = _BY_NONZERO) -> Any:  # fmt: skip
    """See `nn.softmax_cross_entropy_with_logits`."""
    given = onehot_labels
    return _softmax_loss(given, logits, weights, scope, loss_collection, reduction, label_smoothing)


def sparse_softmax_cross_entropy(labels: Any, logits: Any, weights: Any = 1.0, scope: Any = None,
                                 loss_collection: Any = GraphKeys.LOSSES,
                                 reduction: str = _BY_NONZERO) -> Any:  # fmt: skip
    """See `nn.sparse_softmax_cross_entropy_with_logits`."""
    return _sparse_loss(labels, logits, weights, scope, loss_collection, reduction)


def _pairwise(labels: Any, predictions: Any, weights: Any) -> Any:
    labels, predictions = _pair(labels, predictions)
    rank = len(labels.shape)
    axes = list(range(1, rank))
    difference = predictions - labels
    weights = td.cast(weights, td.float32)
    check_weights(weights, labels)
    count = td.reduce_sum(td.ones_like(difference), axes, keepdims=True)
    squares = td.reduce_sum(difference * difference, axes, keepdims=True)
    total = td.reduce_sum(difference, axes, keepdims=True)
    first = 2.0 * td.math.divide_no_nan(squares, count - 1)
    second = 2.0 * td.math.divide_no_nan(total * total, count * (count - 1))
    found = (first - second) * weights
    present = td.reduce_sum(td.where(weights == 0.0, 0.0, 1.0) * td.ones_like(squares))
    return td.where(present > 0, td.reduce_sum(found), 0.0)


_pairs = recorded(_pairwise, "mean_pairwise_squared_error", "Select")


def mean_pairwise_squared_error(labels: Any, predictions: Any, weights: Any = 1.0,
                                scope: Any = None, loss_collection: Any = GraphKeys.LOSSES) -> Any:
    """The squared differences of the differences between pairs of elements."""
    _required(labels=labels, predictions=predictions)
    with functions.name_scope(scope, "mean_pairwise_squared_error", (labels, predictions)):
        loss = _pairs(labels, predictions, weights)
    add_loss(loss, loss_collection)
    return loss

in_graphs(
    _pairwise,
    _weighted,
    _weights_of_rows,
)

__getattr__ = missing_in(__name__)
