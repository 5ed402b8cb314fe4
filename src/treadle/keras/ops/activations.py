"""`keras.ops`: activation functions."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import treadle as td
from treadle.keras import activations
from treadle.keras.logits import with_logits
from treadle.keras.ops.conversion import axes_of, tensor
from treadle.keras.ops.operations import operation

_operation = functools.partial(operation, "nn")
_of_x = _operation("x")

celu, elu, glu = _of_x(activations.celu), _of_x(activations.elu), _of_x(activations.glu)
hard_shrink, soft_shrink = _of_x(activations.hard_shrink), _of_x(activations.soft_shrink)
hard_sigmoid, sigmoid = _of_x(activations.hard_sigmoid), _of_x(activations.sigmoid)
hard_silu, silu = _of_x(activations.hard_silu), _of_x(activations.silu)
hard_tanh, tanh_shrink = _of_x(activations.hard_tanh), _of_x(activations.tanh_shrink)
leaky_relu, relu6 = _of_x(activations.leaky_relu), _of_x(activations.relu6)
log_sigmoid, selu = _of_x(activations.log_sigmoid), _of_x(activations.selu)
softplus, softsign = _of_x(activations.softplus), _of_x(activations.softsign)
sparse_plus, sparse_sigmoid = _of_x(activations.sparse_plus), _of_x(activations.sparse_sigmoid)
sparsemax, squareplus = _of_x(activations.sparsemax), _of_x(activations.squareplus)
threshold = _of_x(activations.threshold)
swish, hard_swish = silu, hard_silu


@_operation("x")
def relu(x: Any) -> Any:
    """x, but 0 below 0."""
    return td.nn.relu(tensor(x))


@_operation("x")
def gelu(x: Any, approximate: bool = True) -> Any:
    """x times the share of normal numbers that are less."""
    return td.nn.gelu(tensor(x), approximate)


@_operation("x")
def softmax(x: Any, axis: Any = -1) -> Any:
    """The exponentials along the axis, or axes, over their sum; along all where it is None."""
    return with_logits(_along_axes(td.nn.softmax, tensor(x), axis), x)


@_operation("x")
def log_softmax(x: Any, axis: Any = -1) -> Any:
    """The logarithm of `softmax`."""
    return _along_axes(td.nn.log_softmax, tensor(x), axis)


def _along_axes(function: Any, x: td.Tensor, axis: Any) -> Any:
    """A function along an axis, along several as if they were one, or along all. Keras warns where
    an axis has one element."""
    if isinstance(axis, int):
        (axis,) = axes_of(axis, len(x.shape))
        if x.shape[axis] == 1:
            _warn_of_one(function.__name__, x, axis)
    return activations._along(function, x, axis)


def _warn_of_one(name: str, x: td.Tensor, axis: int) -> None:
    if name == "softmax":
        warnings.warn(
            f"You are using a softmax over axis {axis} of a tensor of shape {x.shape}. This axis "
            "has size 1. The softmax operation will always return the value 1, which is likely "
            "not what you intended. Did you mean to use a sigmoid instead?",
            stacklevel=5,
        )


_in_keras = functools.partial(operation, "activations.activations", "x")
# The steps that functions of `keras.activations` are which have no function here of their own.
STEPS = {
    "relu": _in_keras(name="ReLU")(activations.relu), "mish": _in_keras()(activations.mish),
}  # fmt: skip
