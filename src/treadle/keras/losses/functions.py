"""The loss functions: (y_true, y_pred) to one value per example."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras.config import epsilon
from treadle.keras.logits import as_logits
from treadle.keras.losses.base import same_rank
from treadle.keras.masks import set_mask


def _operands(y_true: Any, y_pred: Any) -> tuple[td.Tensor, td.Tensor]:
    """Both as tensors of the prediction's dtype and of one rank."""
    pred = td.convert_to_tensor(y_pred)
    if not pred.dtype.is_floating:
        pred = td.cast(pred, td.float32)
    true = td.cast(td.convert_to_tensor(y_true), pred.dtype)
    return same_rank(true, pred)


def _alike(true: td.Tensor, pred: td.Tensor) -> tuple[td.Tensor, td.Tensor]:
    """Labels and predictions, which have one shape."""
    if len(true.shape) != len(pred.shape) or not true.shape.is_compatible_with(pred.shape):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. Received: "
            f"target.shape={true.shape}, output.shape={pred.shape}"
        )
    return true, pred


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, ignore_class: int | None = None,
    axis: int = -1,
) -> td.Tensor:  # fmt: skip
    """Cross-entropy against class numbers.

    Args:
        y_true: ints of y_pred's shape without its class axis (or with 1 there).
        y_pred: probabilities, or logits with `from_logits`.
        ignore_class: a class whose examples are 0, and do not count in means.
        axis: the class axis, which must be the last.
    """
    pred = td.convert_to_tensor(y_pred)
    true = td.convert_to_tensor(y_true)
    if axis not in (-1, len(pred.shape) - 1):
        raise ValueError(
            "sparse_categorical_crossentropy: the class axis must be the last. Only axis=-1 is "
            f"currently supported. Received: axis={axis}"
        )
    if ignore_class is None:  # else Keras changes the prediction, which has no logits then
        pred, from_logits = as_logits(
            pred, from_logits, "Softmax", "sparse_categorical_crossentropy"
        )
    if len(true.shape) == len(pred.shape) and true.shape[-1] == 1:
        true = td.squeeze(true, -1)
    if not true.dtype.is_integer:
        true = td.cast(true, td.int64)
    keep = None
    if ignore_class is not None:
        keep = true != ignore_class
        true = td.where(keep, true, td.zeros_like(true))
    if not from_logits:
        pred = td.math.log(td.clip_by_value(pred, epsilon(), 1.0 - epsilon()))
    loss = td.nn.sparse_softmax_cross_entropy_with_logits(labels=true, logits=pred)
    if keep is not None:
        loss = td.where(keep, loss, td.zeros_like(loss))
        set_mask(loss, keep)
    return loss


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0,
    axis: int = -1,
) -> td.Tensor:  # fmt: skip
    """Cross-entropy against distributions, such as one-hot classes.

    Raises:
        ValueError: labels and predictions have different shapes.
    """
    true, pred = _alike(*_operands(y_true, y_pred))
    if label_smoothing:
        # The last axis, whichever `axis` is, as in Keras.
        true = true * (1.0 - label_smoothing) + label_smoothing / pred.shape[-1]
    pred, from_logits = as_logits(pred, from_logits, "Softmax", "categorical_crossentropy")
    if from_logits:
        return td.nn.softmax_cross_entropy_with_logits(labels=true, logits=pred, axis=axis)
    pred = pred / td.reduce_sum(pred, axis, keepdims=True)
    log = td.math.log(td.clip_by_value(pred, epsilon(), 1.0 - epsilon()))
    return -td.reduce_sum(true * log, axis)


def elementwise_binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0
) -> td.Tensor:
    """The cross-entropies of independent binary labels, one for each.

    Raises:
        ValueError: labels and predictions have different shapes.
    """
    true, pred = _alike(*_operands(y_true, y_pred))
    if label_smoothing:
        true = true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    pred, from_logits = as_logits(pred, from_logits, "Sigmoid", "binary_crossentropy")
    if from_logits:
        return td.nn.sigmoid_cross_entropy_with_logits(labels=true, logits=pred)
    p = td.clip_by_value(pred, epsilon(), 1.0 - epsilon())
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
    true, pred = (td.clip_by_value(y, epsilon(), 1.0) for y in _operands(y_true, y_pred))
    return td.reduce_sum(true * td.math.log(true / pred), -1)


def _signed(true: td.Tensor) -> td.Tensor:
    """Labels -1 and 1, where all are 0 or 1; else as they are."""
    binary = td.reduce_all((true == 0) | (true == 1))
    return td.where(binary, 2.0 * true - 1.0, true)


def hinge(y_true: Any, y_pred: Any) -> td.Tensor:
    """The mean of ``max(1 - y_true * y_pred, 0)``; labels 0 and 1 become -1 and 1."""
    true, pred = _operands(y_true, y_pred)
    return td.reduce_mean(td.maximum(1.0 - _signed(true) * pred, 0.0), -1)


def squared_hinge(y_true: Any, y_pred: Any) -> td.Tensor:
    """Mean of the squared hinge losses of labels -1 and 1 (or 0 and 1)."""
    true, pred = _operands(y_true, y_pred)
    return td.reduce_mean(td.square(td.maximum(1.0 - _signed(true) * pred, 0.0)), -1)


def categorical_hinge(y_true: Any, y_pred: Any) -> td.Tensor:
    """``max(1 + the highest score of another class - the score of the class, 0)``."""
    true, pred = _operands(y_true, y_pred)
    own = td.reduce_sum(true * pred, -1)
    return td.maximum(td.reduce_max((1.0 - true) * pred, -1) - own + 1.0, 0.0)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> td.Tensor:
    """100 times the mean of |difference / y_true| along the last axis."""
    true, pred = _operands(y_true, y_pred)
    return 100.0 * td.reduce_mean(td.abs((true - pred) / td.maximum(td.abs(true), epsilon())), -1)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> td.Tensor:
    """Mean of the squared differences of log(1 + y) along the last axis."""
    true, pred = (td.math.log(td.maximum(y, epsilon()) + 1.0) for y in _operands(y_true, y_pred))
    return td.reduce_mean(td.squared_difference(true, pred), -1)


def poisson(y_true: Any, y_pred: Any) -> td.Tensor:
    """Mean of ``y_pred - y_true * log(y_pred)`` along the last axis."""
    true, pred = _operands(y_true, y_pred)
    return td.reduce_mean(pred - true * td.math.log(pred + epsilon()), -1)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> td.Tensor:
    """The negative of the cosine of the angle between labels and predictions."""
    true, pred = _operands(y_true, y_pred)
    product = td.nn.l2_normalize(true, axis=axis) * td.nn.l2_normalize(pred, axis=axis)
    return -td.reduce_sum(product, axis)


def binary_focal_crossentropy(
    y_true: Any, y_pred: Any, apply_class_balancing: bool = False, alpha: float = 0.25,
    gamma: float = 2.0, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1,
) -> td.Tensor:  # fmt: skip
    """Cross-entropy of binary labels times ``(1 - probability of the label) ** gamma``.

    Args:
        apply_class_balancing: weigh the labels 1 by `alpha` and the labels 0 by ``1 - alpha``.
    """
    true, pred = _operands(y_true, y_pred)
    if label_smoothing:
        true = true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    if from_logits:
        pred = td.sigmoid(pred)
    right = true * pred + (1.0 - true) * (1.0 - pred)
    loss = td.pow(1.0 - right, gamma) * elementwise_binary_crossentropy(true, pred)
    if apply_class_balancing:
        loss = loss * (true * alpha + (1.0 - true) * (1.0 - alpha))
    return td.reduce_mean(loss, axis)


def categorical_focal_crossentropy(
    y_true: Any, y_pred: Any, alpha: float = 0.25, gamma: float = 2.0, from_logits: bool = False,
    label_smoothing: float = 0.0, axis: int = -1,
) -> td.Tensor:  # fmt: skip
    """Cross-entropy against distributions, whose terms are times
    ``alpha * (1 - probability) ** gamma``."""
    true, pred = _operands(y_true, y_pred)
    if label_smoothing:
        true = true * (1.0 - label_smoothing) + label_smoothing / pred.shape[-1]
    if from_logits:
        pred = td.nn.softmax(pred, axis=axis)
    pred = pred / td.reduce_sum(pred, axis, keepdims=True)
    pred = td.clip_by_value(pred, epsilon(), 1.0 - epsilon())
    factor = alpha * td.pow(1.0 - pred, gamma)
    return td.reduce_sum(-factor * true * td.math.log(pred), axis)


def dice(y_true: Any, y_pred: Any, axis: Any = None) -> td.Tensor:
    """1 minus twice the overlap of labels and predictions over the sum of both.

    Args:
        axis: the axes that are summed over; all when omitted, which gives a scalar.
    """
    true, pred = _operands(y_true, y_pred)
    both = td.reduce_sum(true * pred, axis)
    sizes = td.reduce_sum(true, axis) + td.reduce_sum(pred, axis)
    return 1.0 - 2.0 * both / (sizes + epsilon())


def tversky(
    y_true: Any, y_pred: Any, alpha: float = 0.5, beta: float = 0.5, axis: Any = None
) -> td.Tensor:
    """1 minus the overlap over ``overlap + alpha * missed + beta * too much``.

    Args:
        axis: the axes that are summed over; all when omitted, which gives a scalar.
    """
    true, pred = _operands(y_true, y_pred)
    both = td.reduce_sum(true * pred, axis)
    missed = td.reduce_sum((1.0 - pred) * true, axis)
    extra = td.reduce_sum(pred * (1.0 - true), axis)
    return 1.0 - both / (both + missed * alpha + extra * beta + epsilon())


def categorical_generalized_cross_entropy(y_true: Any, y_pred: Any, q: float) -> td.Tensor:
    """``(1 - p ** q) / q`` for the probability p of the labelled class, given by its number."""
    pred = td.convert_to_tensor(y_pred)
    labels = td.cast(td.convert_to_tensor(y_true), td.int64)
    if len(labels.shape) == len(pred.shape):
        labels = td.squeeze(labels, -1)
    own = td.reduce_sum(pred * td.one_hot(labels, pred.shape[-1], dtype=pred.dtype), -1)
    return (1.0 - td.pow(own, q)) / q


mse, mae = mean_squared_error, mean_absolute_error
mape, msle = mean_absolute_percentage_error, mean_squared_logarithmic_error
MSE, MAE, MAPE, MSLE = mse, mae, mape, msle
kld = KLD = kullback_leibler_divergence = kl_divergence
bce = BCE = binary_crossentropy
logcosh = log_cosh


def ctc(y_true: Any, y_pred: Any) -> td.Tensor:
    """The loss of connectionist temporal classification.

    Args:
        y_true: labels [batch, labels]; 0 is the blank, and fills rows.
        y_pred: logits [batch, time, classes].

    Raises:
        ValueError: other ranks.
    """
    true, pred = td.convert_to_tensor(y_true), td.convert_to_tensor(y_pred)
    if len(true.shape) != 2:
        raise ValueError(
            "Targets `y_true` are expected to be a tensor of shape `(batch_size, max_length)` in "
            f"integer format. Received: y_true.shape={true.shape}"
        )
    if len(pred.shape) != 3:
        raise ValueError(
            "Logits `y_pred` are expected to be a tensor of shape `(batch_size, max_length, "
            f"num_classes)`. Received: y_pred.shape={pred.shape}"
        )
    labels = td.reduce_sum(td.cast(td.not_equal(true, 0), td.int32), -1)
    steps = td.fill(td.shape(pred)[:1], td.shape(pred)[1])
    return td.nn.ctc_loss(
        td.cast(true, td.int32), pred, labels, steps, logits_time_major=False, blank_index=0
    )


def circle(
    y_true: Any, y_pred: Any, ref_labels: Any = None, ref_embeddings: Any = None,
    remove_diagonal: bool = True, gamma: float = 80, margin: float = 0.4,
) -> td.Tensor:  # fmt: skip
    """Draws embeddings of one class together and those of others apart.

    Args:
        y_true: class numbers.
        y_pred: embeddings of norm 1, a row each.
        ref_labels, ref_embeddings: what they are compared with; each other when omitted.
        remove_diagonal: an embedding is not compared with itself.
        gamma: scales the loss.
        margin: how far apart classes may be.
    """
    pred, true = td.convert_to_tensor(y_pred), td.cast(y_true, td.int32)
    others = pred if ref_embeddings is None else td.cast(ref_embeddings, pred.dtype)
    labels = true if ref_labels is None else td.cast(ref_labels, td.int32)
    apart = td.nn.relu(1 - td.matmul(pred, others, transpose_b=True))
    same = td.equal(td.reshape(true, [-1, 1]), td.reshape(labels, [1, -1]))
    different = ~same
    if remove_diagonal:
        rows, columns = td.range(td.size(true)), td.range(td.size(labels))
        same = same & td.not_equal(rows[:, None], columns[None, :])
    near = -gamma * td.nn.relu(margin + apart) * (margin - apart)
    far = gamma * td.nn.relu(1 + margin - apart) * (1 - margin - apart)
    nothing = td.constant(float("-inf"), pred.dtype)
    sums = [td.reduce_logsumexp(td.where(chosen, distances, nothing), 1)
            for chosen, distances in ((same, near), (different, far))]  # fmt: skip
    loss = td.nn.softplus(sums[0] + sums[1])
    set_mask(loss, loss > 0)
    return loss
