"""Functions of ``td.keras.backend`` that `td` has under the same name with other arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle as td


def all(x: Any, axis: Any = None, keepdims: bool = False) -> td.Tensor:
    """Whether all elements along the axes are true; numbers are where they are not 0."""
    return td.reduce_all(td.cast(x, td.bool), axis, keepdims)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> td.Tensor:
    """Whether one element along the axes is true; numbers are where they are not 0."""
    return td.reduce_any(td.cast(x, td.bool), axis, keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> td.Tensor:
    """The largest element along the axes."""
    return td.reduce_max(x, axis, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> td.Tensor:
    """The smallest element along the axes."""
    return td.reduce_min(x, axis, keepdims)


def pow(x: Any, a: Any) -> td.Tensor:
    """x to the power of `a`."""
    return td.pow(x, a)


def clip(x: Any, min_value: Any, max_value: Any) -> td.Tensor:
    """The elements between two limits, either of which may be None. Where the upper number is below
    the lower one, all elements are the lower one."""
    if isinstance(min_value, int | float) and isinstance(max_value, int | float):
        max_value = min_value if max_value < min_value else max_value
    low = -np.inf if min_value is None else min_value
    return td.clip_by_value(x, low, np.inf if max_value is None else max_value)


def elu(x: Any, alpha: float = 1.0) -> td.Tensor:
    """The exponential linear unit, whose limit below is ``-alpha``."""
    x = td.convert_to_tensor(x)
    found = td.nn.elu(x)
    return found if alpha == 1 else td.where(x > 0, found, alpha * found)


def softplus(x: Any) -> td.Tensor:
    """``log(1 + exp(x))``."""
    return td.nn.softplus(x)


def softsign(x: Any) -> td.Tensor:
    """``x / (1 + abs(x))``."""
    return td.nn.softsign(x)


def relu(
    x: Any, alpha: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> td.Tensor:
    """The rectifier: 0 up to the threshold, with a slope `alpha` there, and a limit above."""
    x = td.convert_to_tensor(x)
    if alpha and max_value is None and not threshold:
        return td.nn.leaky_relu(x, alpha)
    above = x * td.cast(x > threshold, x.dtype) if threshold else td.nn.relu(x)
    if max_value is not None:
        above = td.clip_by_value(above, 0.0, max_value)
    return above - alpha * td.nn.relu(threshold - x) if alpha else above


def permute_dimensions(x: Any, pattern: Any) -> td.Tensor:
    """The axes in another order."""
    return td.transpose(x, pattern)


def transpose(x: Any) -> td.Tensor:
    """The axes in the reverse order."""
    return td.transpose(x)


def reshape(x: Any, shape: Any) -> td.Tensor:
    """The elements in another shape."""
    return td.reshape(x, shape)


def shape(x: Any) -> td.Tensor:
    """The sizes of the axes, as a tensor."""
    return td.shape(x)


def squeeze(x: Any, axis: int) -> td.Tensor:
    """Without an axis of size 1."""
    return td.squeeze(x, [axis])


def stack(x: Any, axis: int = 0) -> td.Tensor:
    """The tensors of a list as the parts of a new axis."""
    return td.stack(x, axis)


def tile(x: Any, n: Any) -> td.Tensor:
    """The elements repeated along each axis; for a vector `n` may be a number."""
    return td.tile(x, [n] if isinstance(n, int) else n)


def gather(reference: Any, indices: Any) -> td.Tensor:
    """The rows at some positions."""
    return td.gather(reference, indices)


def zeros_like(x: Any, dtype: Any = None, name: str | None = None) -> td.Tensor:
    """Zeros of the shape and, where no dtype is given, of the dtype of a tensor."""
    return td.zeros_like(x, dtype)


def ones_like(x: Any, dtype: Any = None, name: str | None = None) -> td.Tensor:
    """Ones of the shape and, where no dtype is given, of the dtype of a tensor."""
    return td.ones_like(x, dtype)


def stop_gradient(variables: Any) -> Any:
    """The values without gradients; of a list of tensors those of each."""
    if isinstance(variables, list | tuple):
        return [td.stop_gradient(v) for v in variables]
    return td.stop_gradient(variables)
