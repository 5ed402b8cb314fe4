"""`keras.ops`: activation functions."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import treadle as td
from treadle.keras.ops.conversion import tensor
from treadle.keras.ops.operations import operation

_operation = functools.partial(operation, "nn")


def _number(value: float, x: td.Tensor) -> td.Tensor:
    return td.constant(value, x.dtype)


@_operation("x")
def relu(x: Any) -> Any:
    """x, but 0 below 0."""
    return td.nn.relu(tensor(x))


@_operation("x")
def relu6(x: Any) -> Any:
    """x, but 0 below 0 and 6 above 6."""
    return td.nn.relu6(tensor(x))


@_operation("x")
def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``."""
    return td.sigmoid(tensor(x))


@_operation("x")
def sparse_sigmoid(x: Any) -> Any:
    """``(x + 1) / 2`` between -1 and 1, 0 below and 1 above."""
    x = tensor(x)
    return td.clip_by_value((x + _number(1, x)) * _number(0.5, x), _number(0, x), _number(1, x))


@_operation("x")
def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``."""
    return td.nn.softplus(tensor(x))


@_operation("x")
def softsign(x: Any) -> Any:
    """``x / (1 + |x|)``."""
    return td.nn.softsign(tensor(x))


@_operation("x")
def soft_shrink(x: Any, threshold: float = 0.5) -> Any:
    """x moved towards 0 by the threshold; 0 where it is nearer."""
    x = tensor(x)
    edge = _number(threshold, x)
    return td.where(x > edge, x - edge, td.where(x < -edge, x + edge, td.zeros_like(x)))


@_operation("x")
def sparse_plus(x: Any) -> Any:
    """x above 1, 0 below -1, and ``(x + 1)^2 / 4`` between."""
    x = tensor(x)
    between = td.square(x + _number(1, x)) * _number(0.25, x)
    return td.where(x <= -1, td.zeros_like(x), td.where(x < 1, between, x))


@_operation("x")
def silu(x: Any) -> Any:
    """``x * sigmoid(x)``."""
    return td.nn.silu(tensor(x))


swish = silu


@_operation("x")
def squareplus(x: Any, b: float = 4) -> Any:
    """``(x + sqrt(x^2 + b)) / 2``."""
    x = tensor(x)
    return (x + td.sqrt(td.square(x) + _number(b, x))) * _number(0.5, x)


@_operation("x")
def log_sigmoid(x: Any) -> Any:
    """The logarithm of `sigmoid`."""
    return td.math.log_sigmoid(tensor(x))


@_operation("x")
def leaky_relu(x: Any, negative_slope: float = 0.2) -> Any:
    """x, but with another slope below 0."""
    return td.nn.leaky_relu(tensor(x), negative_slope)


@_operation("x")
def hard_sigmoid(x: Any) -> Any:
    """``x / 6 + 1 / 2`` between 0 and 1."""
    x = tensor(x)
    return td.nn.relu6(x + _number(3, x)) / _number(6, x)


@_operation("x")
def hard_silu(x: Any) -> Any:
    """``x * hard_sigmoid(x)``."""
    x = tensor(x)
    return x * (td.nn.relu6(x + _number(3, x)) / _number(6, x))


hard_swish = hard_silu


@_operation("x")
def elu(x: Any, alpha: float = 1.0) -> Any:
    """x, but ``alpha (exp(x) - 1)`` below 0."""
    x = tensor(x)
    found = td.nn.elu(x)
    return found if alpha == 1 else td.where(x > 0, found, _number(alpha, x) * found)


@_operation("x")
def selu(x: Any) -> Any:
    """`elu` with constants that keep mean and variance."""
    return td.nn.selu(tensor(x))


@_operation("x")
def gelu(x: Any, approximate: bool = True) -> Any:
    """x times the share of normal numbers that are less."""
    return td.nn.gelu(tensor(x), approximate)


@_operation("x")
def celu(x: Any, alpha: float = 1.0) -> Any:
    """x, but ``alpha (exp(x / alpha) - 1)`` below 0."""
    x = tensor(x)
    zero = td.zeros_like(x)
    return td.maximum(x, zero) + _number(alpha, x) * td.math.expm1(
        td.minimum(x, zero) / _number(alpha, x)
    )


@_operation("x")
def glu(x: Any, axis: int = -1) -> Any:
    """The first half along the axis, times the `sigmoid` of the second.

    Raises:
        ValueError: the axis has no halves.
    """
    x = tensor(x)
    size = x.shape[axis]
    if size is None or size % 2:
        raise ValueError(
            f"axis size must be divisible by 2. Received: x.shape={x.shape} with axis={axis}"
        )
    first, second = td.split(x, 2, axis)
    return first * td.sigmoid(second)


@_operation("x")
def tanh_shrink(x: Any) -> Any:
    """``x - tanh(x)``."""
    x = tensor(x)
    return x - td.tanh(x)


@_operation("x")
def hard_tanh(x: Any) -> Any:
    """x, but -1 below -1 and 1 above 1."""
    x = tensor(x)
    return td.clip_by_value(x, _number(-1, x), _number(1, x))


@_operation("x")
def hard_shrink(x: Any, threshold: float = 0.5) -> Any:
    """x, but 0 where it is no farther from 0 than the threshold."""
    x = tensor(x)
    return td.where(td.abs(x) > _number(threshold, x), x, td.zeros_like(x))


@_operation("x")
def threshold(x: Any, threshold: float, default_value: float) -> Any:
    """x above the threshold, else the default value."""
    x = tensor(x)
    return td.where(x > _number(threshold, x), x, _number(default_value, x))


@_operation("x")
def softmax(x: Any, axis: Any = -1) -> Any:
    """The exponentials along the axis, or axes, over their sum; along all where it is None."""
    return _along(td.nn.softmax, tensor(x), axis)


@_operation("x")
def log_softmax(x: Any, axis: Any = -1) -> Any:
    """The logarithm of `softmax`."""
    return _along(td.nn.log_softmax, tensor(x), axis)


def _along(function: Any, x: td.Tensor, axis: Any) -> td.Tensor:
    """A function along an axis, along several as if they were one, or along all."""
    if isinstance(axis, int):
        if x.shape[axis] == 1:
            _warn_of_one(function.__name__, x, axis)
        return function(x, axis=axis)
    rank = len(x.shape)
    inner = [*range(rank)] if axis is None else [a % rank for a in axis]
    order = [a for a in range(rank) if a not in inner] + inner
    turned = td.transpose(x, order)
    outer = td.shape(turned)[: rank - len(inner)]
    found = function(td.reshape(turned, td.concat([outer, [-1]], 0)), axis=-1)
    back = [order.index(a) for a in range(rank)]
    return td.transpose(td.reshape(found, td.shape(turned)), back)


def _warn_of_one(name: str, x: td.Tensor, axis: int) -> None:
    if name == "softmax":
        warnings.warn(
            f"You are using a softmax over axis {axis} of a tensor of shape {x.shape}. This axis "
            "has size 1. The softmax operation will always return the value 1, which is likely "
            "not what you intended. Did you mean to use a sigmoid instead?",
            stacklevel=5,
        )


@_operation("x")
def sparsemax(x: Any, axis: int = -1) -> Any:
    """Like `softmax`, but with zeros for numbers far below the others."""
    x = tensor(x)
    descending = td.sort(x, axis, "DESCENDING")
    sums = td.cumsum(descending, axis)
    shape = [1] * len(x.shape)
    shape[axis] = -1
    one = _number(1, x)
    ranks = td.reshape(td.cast(td.range(1, td.shape(x)[axis] + 1), x.dtype), shape)
    support = descending - (sums - one) / ranks > 0
    count = td.reduce_sum(td.cast(support, x.dtype), axis, keepdims=True)
    kept = td.where(support, descending, td.zeros_like(x))
    edge = (td.reduce_sum(kept, axis, keepdims=True) - one) / count
    return td.maximum(x - edge, td.zeros_like(x))
