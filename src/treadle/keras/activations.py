"""Activation functions by Keras's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.names import missing_in

Activation = Callable[[Any], td.Tensor]


def linear(x: Any) -> td.Tensor:
    """`x` unchanged."""
    return td.convert_to_tensor(x)


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
        y = td.where(x >= threshold, x, negative_slope * (x - threshold))
    return y if max_value is None else td.minimum(y, max_value)


def softmax(x: Any, axis: int = -1) -> td.Tensor:
    """Softmax along `axis`."""
    return td.nn.softmax(x, axis=axis)


def log_softmax(x: Any, axis: int = -1) -> td.Tensor:
    """Log-softmax along `axis`."""
    return td.nn.log_softmax(x, axis=axis)


def elu(x: Any, alpha: float = 1.0) -> td.Tensor:
    """The exponential linear unit."""
    return td.nn.elu(x, alpha=alpha)


def leaky_relu(x: Any, negative_slope: float = 0.2) -> td.Tensor:
    """The leaky rectifier."""
    return td.nn.leaky_relu(x, negative_slope)


def gelu(x: Any, approximate: bool = False) -> td.Tensor:
    """The Gaussian error linear unit."""
    return td.nn.gelu(x, approximate)


def hard_sigmoid(x: Any) -> td.Tensor:
    """``relu6(x + 3) / 6``."""
    return td.nn.relu6(td.convert_to_tensor(x) + 3.0) / 6.0


def hard_silu(x: Any) -> td.Tensor:
    """``x * hard_sigmoid(x)``."""
    return td.convert_to_tensor(x) * hard_sigmoid(x)


def mish(x: Any) -> td.Tensor:
    """``x * tanh(softplus(x))``."""
    return td.convert_to_tensor(x) * td.tanh(td.nn.softplus(x))


def exponential(x: Any) -> td.Tensor:
    """``exp(x)``."""
    return td.exp(x)


def sigmoid(x: Any) -> td.Tensor:
    """The logistic function."""
    return td.sigmoid(x)


def tanh(x: Any) -> td.Tensor:
    """The hyperbolic tangent."""
    return td.tanh(x)


def silu(x: Any) -> td.Tensor:
    """``x * sigmoid(x)``."""
    return td.nn.silu(x)


def selu(x: Any) -> td.Tensor:
    """The scaled exponential linear unit."""
    return td.nn.selu(x)


def softplus(x: Any) -> td.Tensor:
    """``log(1 + exp(x))``."""
    return td.nn.softplus(x)


def softsign(x: Any) -> td.Tensor:
    """``x / (1 + abs(x))``."""
    return td.nn.softsign(x)


def relu6(x: Any) -> td.Tensor:
    """``min(max(x, 0), 6)``."""
    return td.nn.relu6(x)


swish, hard_swish = silu, hard_silu

_BY_NAME: dict[str, Activation] = {
    f.__name__: f
    for f in (
        linear, relu, softmax, log_softmax, elu, leaky_relu, gelu, hard_sigmoid, hard_silu, mish,
        exponential, sigmoid, tanh, silu, selu, softplus, softsign, relu6,
    )
} | {"swish": silu, "hard_swish": hard_silu}  # fmt: skip


def get(identifier: Any) -> Activation:
    """An activation from its name or a function; None is linear."""
    if identifier is None:
        return linear
    if callable(identifier):
        return identifier  # type: ignore[no-any-return]
    if identifier in _BY_NAME:
        return _BY_NAME[identifier]
    raise ValueError(f"Unknown activation {identifier!r}; known: {', '.join(sorted(_BY_NAME))}")


def serialize(activation: Activation) -> str:
    """The name by which `get` finds it."""
    return getattr(activation, "__name__", str(activation))


__getattr__ = missing_in(__name__)
