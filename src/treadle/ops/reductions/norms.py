"""Euclidean norms, and tensors scaled down to one: clip_by_norm, clip_by_global_norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.arithmetic import add_n, divide, maximum, minimum, multiply
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import abs as magnitude
from treadle.ops.elementwise.unary import is_finite, sqrt
from treadle.ops.indexed_slices import IndexedSlices, on_values, values_of
from treadle.ops.reductions.reduction import reduce_sum


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squared magnitudes over the given axes, all by default.

    The result has the dtype of `input_tensor`; for integers it is rounded towards zero.
    """
    x = convert_to_tensor(input_tensor)
    y = cast(x, dtypes.float64) if x.dtype.is_integer else magnitude(x)
    return cast(sqrt(reduce_sum(multiply(y, y), axis, keepdims)), x.dtype)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """`t` scaled down where its Euclidean norm exceeds `clip_norm`.

    Args:
        t: a tensor, or `IndexedSlices`, whose norm is that of their rows.
        clip_norm: a number below 0 counts as 0.
        axes: the axes that the norm is taken over; None for all.
    """
    if isinstance(t, IndexedSlices):
        return t.with_values(clip_by_norm(t.values, clip_norm, axes))  # type: ignore[return-value]
    x = convert_to_tensor(t)
    squares = reduce_sum(multiply(x, x), axes, keepdims=True)
    some = squares > 0  # the slope of sqrt has no value at 0
    norm = where(some, sqrt(where(some, squares, 1)), squares)
    limit = maximum(convert_to_tensor(clip_norm, x.dtype), 0)
    return divide(multiply(x, limit), maximum(norm, limit))


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The Euclidean norm of all elements of all tensors; None among them counts as nothing, and
    `IndexedSlices` as their rows. Of no tensors it is 0.

    Raises:
        TypeError: `t_list` is not a list or tuple, or a tensor is complex.
    """
    values = [values_of(t) for t in _listed("global_norm", t_list) if t is not None]
    tensors = [convert_to_tensor(t) for t in values]
    if not tensors:
        return convert_to_tensor(0.0)
    for t in tensors:
        if not t.dtype.is_floating:
            text = f"global_norm takes floats, not {t.dtype.name}{at(user_origin())}"
            raise errors.DtypeError(None, None, text)
    return sqrt(add_n([reduce_sum(multiply(t, t)) for t in tensors]))


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """All tensors scaled down by one factor if their common norm exceeds `clip_norm`.

    Args:
        t_list: tensors, `IndexedSlices`, and None for what has no gradient.
        use_norm: the common norm where it is known already.

    Returns:
        The list of scaled tensors, NaN where the norm is not finite; and the common norm.
    """
    values = [
        t if t is None or isinstance(t, IndexedSlices) else convert_to_tensor(t)
        for t in _listed("clip_by_global_norm", t_list)
    ]
    norm = global_norm(values) if use_norm is None else convert_to_tensor(use_norm)
    limit = convert_to_tensor(clip_norm, norm.dtype)
    scale = multiply(limit, minimum(divide(1.0, norm), divide(1.0, limit)))
    scale = where(is_finite(norm), scale, np.nan)

    def clipped(x: Tensor) -> Tensor:
        return multiply(x, cast(scale, x.dtype))

    return [None if t is None else on_values(clipped, t) for t in values], norm


def _listed(what: str, values: Any) -> list[Any]:
    if not isinstance(values, list | tuple):
        raise TypeError(f"{what}: give a list of tensors, not {values!r}{at(user_origin())}")
    return list(values)
