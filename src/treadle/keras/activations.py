"""Activation functions by Keras's names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import treadle as td
from treadle.keras import serialization
from treadle.keras.logits import with_logits
from treadle.names import missing_in

Activation = Callable[[Any], td.Tensor]
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _step_too(function: _Function) -> _Function:
    """The function, which is a step of a functional model where it is called on what `keras.Input`
    gives: such values have a method for it."""

    @functools.wraps(function)
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        step = getattr(type(x), "_step", None)
        return function(x, *args, **kwargs) if step is None else step(x, function, args, kwargs)

    return call  # type: ignore[return-value]


def _number(value: float, x: td.Tensor) -> td.Tensor:
    return td.constant(value, x.dtype)



@_step_too
def linear(x: Any) -> td.Tensor:
    """`x` unchanged."""
    return td.convert_to_tensor(x)


@_step_too
def relu(
    x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> td.Tensor:
    """The rectifier, optionally leaky, capped or with a threshold."""
    x = td.convert_to_tensor(x)
    if threshold == 0.0 and negative_slope == 0.0:
        if max_value == 6.0:
            return td.nn.relu6(x)
        y = td.nn.relu(x)
    else:
        y = td.where(x > threshold, x, negative_slope * (x - threshold))
    return y if max_value is None else td.minimum(y, max_value)


def _along(
    function: Callable[..., td.Tensor], x: Any, axis: int | Sequence[int] | None
) -> td.Tensor:
    """A function of the elements along an axis, or along several axes taken together; along all
    where it is None."""
    if axis is not None and not isinstance(axis, list | tuple):
        return function(x, axis=axis)
    x = td.convert_to_tensor(x)
    rank = len(x.shape)
    together = [*range(rank)] if axis is None else [a % rank for a in axis]
    order = [a for a in range(rank) if a not in together] + together
    moved = td.transpose(x, order)
    flat = td.reshape(moved, [*(td.shape(moved)[a] for a in range(rank - len(together))), -1])
    found = td.ensure_shape(td.reshape(function(flat, axis=-1), td.shape(moved)), moved.shape)
    return td.transpose(found, [order.index(a) for a in range(len(order))])


@_step_too
def softmax(x: Any, axis: int | Sequence[int] = -1) -> td.Tensor:
    """Softmax along an axis, or along several axes taken together.

    The result carries `x`, from which cross-entropies of it are computed (`keras.logits`).
    """
    return with_logits(_along(td.nn.softmax, x, axis), x)


@_step_too
def log_softmax(x: Any, axis: int | Sequence[int] = -1) -> td.Tensor:
    """Log-softmax along an axis, or along several axes taken together."""
    return _along(td.nn.log_softmax, x, axis)


@_step_too
def elu(x: Any, alpha: float = 1.0) -> td.Tensor:
    """The exponential linear unit."""
    return td.nn.elu(x, alpha=alpha)


@_step_too
def leaky_relu(x: Any, negative_slope: float = 0.2) -> td.Tensor:
    """The leaky rectifier."""
    return td.nn.leaky_relu(x, negative_slope)


@_step_too
def gelu(x: Any, approximate: bool = False) -> td.Tensor:
    """The Gaussian error linear unit."""
    return td.nn.gelu(x, approximate)


@_step_too
def hard_sigmoid(x: Any) -> td.Tensor:
    """``relu6(x + 3) / 6``."""
    return td.nn.relu6(td.convert_to_tensor(x) + 3.0) / 6.0


@_step_too
def hard_silu(x: Any) -> td.Tensor:
    """``x * hard_sigmoid(x)``."""
    return td.convert_to_tensor(x) * hard_sigmoid(x)


@_step_too
def mish(x: Any) -> td.Tensor:
    """``x * tanh(softplus(x))``."""
    return td.convert_to_tensor(x) * td.tanh(td.nn.softplus(x))


@_step_too
def exponential(x: Any) -> td.Tensor:
    """``exp(x)``."""
    return td.exp(x)


@_step_too
def sigmoid(x: Any) -> td.Tensor:
    """The logistic function.

    The result carries `x`, from which cross-entropies of it are computed (`keras.logits`).
    """
    return with_logits(td.sigmoid(x), x)


@_step_too
def tanh(x: Any) -> td.Tensor:
    """The hyperbolic tangent."""
    return td.tanh(x)


@_step_too
def silu(x: Any) -> td.Tensor:
    """``x * sigmoid(x)``."""
    return td.nn.silu(x)


@_step_too
def selu(x: Any) -> td.Tensor:
    """The scaled exponential linear unit."""
    return td.nn.selu(x)


@_step_too
def softplus(x: Any) -> td.Tensor:
    """``log(1 + exp(x))``."""
    return td.nn.softplus(x)


@_step_too
def softsign(x: Any) -> td.Tensor:
    """``x / (1 + abs(x))``."""
    return td.nn.softsign(x)


@_step_too
def relu6(x: Any) -> td.Tensor:
    """``min(max(x, 0), 6)``."""
    return td.nn.relu6(x)


@_step_too
def celu(x: Any, alpha: float = 1.0) -> td.Tensor:
    """x, but ``alpha (exp(x / alpha) - 1)`` below 0."""
    x = td.convert_to_tensor(x)
    zero, scale = td.zeros_like(x), _number(alpha, x)
    return td.maximum(x, zero) + scale * td.math.expm1(td.minimum(x, zero) / scale)


@_step_too
def glu(x: Any, axis: int = -1) -> td.Tensor:
    """The first half along the axis, times the `sigmoid` of the second.

    Raises:
        ValueError: the axis has no halves.
    """
    x = td.convert_to_tensor(x)
    size = x.shape[axis]
    if size is None or size % 2:
        raise ValueError(
            f"axis size must be divisible by 2. Received: x.shape={x.shape} with axis={axis}"
        )
    first, second = td.split(x, 2, axis)
    return first * td.sigmoid(second)


@_step_too
def hard_shrink(x: Any, threshold: float = 0.5) -> td.Tensor:
    """x, but 0 where it is no farther from 0 than the threshold."""
    x = td.convert_to_tensor(x)
    return td.where(td.abs(x) > _number(threshold, x), x, td.zeros_like(x))


@_step_too
def hard_tanh(x: Any) -> td.Tensor:
    """x, but -1 below -1 and 1 above 1."""
    x = td.convert_to_tensor(x)
    return td.clip_by_value(x, _number(-1, x), _number(1, x))


@_step_too
def log_sigmoid(x: Any) -> td.Tensor:
    """The logarithm of `sigmoid`."""
    return td.math.log_sigmoid(x)


@_step_too
def soft_shrink(x: Any, threshold: float = 0.5) -> td.Tensor:
    """x moved towards 0 by the threshold; 0 where it is nearer."""
    x = td.convert_to_tensor(x)
    edge = _number(threshold, x)
    return td.where(x > edge, x - edge, td.where(x < -edge, x + edge, td.zeros_like(x)))


@_step_too
def sparse_plus(x: Any) -> td.Tensor:
    """x above 1, 0 below -1, and ``(x + 1)^2 / 4`` between."""
    x = td.convert_to_tensor(x)
    between = td.square(x + _number(1, x)) * _number(0.25, x)
    return td.where(x <= -1, td.zeros_like(x), td.where(x < 1, between, x))


@_step_too
def sparse_sigmoid(x: Any) -> td.Tensor:
    """``(x + 1) / 2`` between -1 and 1, 0 below and 1 above."""
    x = td.convert_to_tensor(x)
    return td.clip_by_value((x + _number(1, x)) * _number(0.5, x), _number(0, x), _number(1, x))


@_step_too
def sparsemax(x: Any, axis: int = -1) -> td.Tensor:
    """Like `softmax`, but with zeros for numbers far below the others; the numbers are Keras's."""
    x = td.convert_to_tensor(x)
    descending = td.sort(x, axis, "DESCENDING")
    sums = td.cumsum(descending, axis)
    shape = [1] * len(x.shape)
    shape[axis] = -1
    one = _number(1, x)
    ranks = td.reshape(td.cast(td.range(1, td.shape(x)[axis] + 1), x.dtype), shape)
    support = descending - (sums - one) / ranks > 0
    count = td.reduce_sum(td.cast(support, x.dtype), axis, keepdims=True)
    kept = td.where(support, sums, td.zeros_like(x))  # as in Keras, which adds sums up
    edge = (td.reduce_sum(kept, axis, keepdims=True) - one) / count
    return td.maximum(x - edge, td.zeros_like(x))


@_step_too
def squareplus(x: Any, b: float = 4) -> td.Tensor:
    """``(x + sqrt(x^2 + b)) / 2``."""
    x = td.convert_to_tensor(x)
    return td.multiply(x + td.sqrt(td.square(x) + _number(b, x)), _number(0.5, x))


@_step_too
def tanh_shrink(x: Any) -> td.Tensor:
    """``x - tanh(x)``."""
    x = td.convert_to_tensor(x)
    return td.subtract(x, td.tanh(x))


@_step_too
def threshold(x: Any, threshold: float, default_value: float) -> td.Tensor:
    """x above the threshold, else the default value."""
    x = td.convert_to_tensor(x)
    return td.where(x > _number(threshold, x), x, _number(default_value, x))


swish, hard_swish = silu, hard_silu

_BY_NAME: dict[str, Activation] = {
    f.__name__: f
    for f in (
        linear, relu, softmax, log_softmax, elu, leaky_relu, gelu, hard_sigmoid, hard_silu, mish,
        exponential, sigmoid, tanh, silu, selu, softplus, softsign, relu6, celu, glu, hard_shrink,
        hard_tanh, log_sigmoid, soft_shrink, sparse_plus, sparse_sigmoid, sparsemax, squareplus,
        tanh_shrink, threshold,
    )
} | {"swish": silu, "hard_swish": hard_silu}  # fmt: skip


def get(identifier: Any) -> Activation:
    """An activation from its name, its configuration or a function; None is linear."""
    identifier = serialization.custom(identifier)
    if identifier is None:
        return linear
    if isinstance(identifier, Mapping):
        return deserialize(identifier)  # type: ignore[no-any-return]
    if callable(identifier):
        return identifier  # type: ignore[no-any-return]
    if identifier in _BY_NAME:
        return _BY_NAME[identifier]
    raise ValueError(f"Unknown activation {identifier!r}; known: {', '.join(sorted(_BY_NAME))}")


def serialize(activation: Any) -> Any:
    """The name of one of these functions; other functions and objects as their configurations."""
    if inspect.isfunction(activation) and activation.__name__ in _BY_NAME:
        return activation.__name__
    return serialization.serialize_keras_object(activation)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The activation that `serialize` described: the program's, or one of these."""
    return serialization.deserialize_keras_object(config, custom_objects, module_objects=_BY_NAME)


__getattr__ = missing_in(__name__)
