"""Clipping by norm, and to what a dtype holds: clip_by_norm, clip_by_global_norm, saturate_cast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.arithmetic import add_n, divide, maximum, minimum, multiply
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import clip_by_value, is_finite, sqrt
from treadle.ops.reductions.reduction import reduce_sum


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """`t` scaled down where its Euclidean norm exceeds `clip_norm`.

    Args:
        axes: the axes that the norm is taken over; None for all.
    """
    x = convert_to_tensor(t)
    squares = reduce_sum(multiply(x, x), axes, keepdims=True)
    some = squares > 0  # the slope of sqrt has no value at 0
    norm = where(some, sqrt(where(some, squares, 1)), squares)
    limit = convert_to_tensor(clip_norm, x.dtype)
    return divide(multiply(x, limit), maximum(norm, limit))


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The Euclidean norm of all elements of all tensors; None among them counts as nothing.

    Raises:
        TypeError: `t_list` is not a list or tuple.
        ValueError: there is no tensor in it.
    """
    tensors = [convert_to_tensor(t) for t in _listed("global_norm", t_list) if t is not None]
    if not tensors:
        raise ValueError(f"global_norm: there is no tensor in the list{at(user_origin())}")
    return sqrt(add_n([reduce_sum(multiply(t, t)) for t in tensors]))


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Tensor | None], Tensor]:
    """All tensors scaled down by one factor if their common norm exceeds `clip_norm`.

    Args:
        t_list: tensors, and None for what has no gradient.
        use_norm: the common norm where it is known already.

    Returns:
        The list of scaled tensors, NaN where the norm is not finite; and the common norm.
    """
    values = _listed("clip_by_global_norm", t_list)
    norm = global_norm(values) if use_norm is None else convert_to_tensor(use_norm)
    limit = convert_to_tensor(clip_norm, norm.dtype)
    scale = multiply(limit, minimum(divide(1.0, norm), divide(1.0, limit)))
    scale = where(is_finite(norm), scale, np.nan)
    return [None if t is None else multiply(t, scale) for t in values], norm


def _listed(what: str, values: Any) -> list[Any]:
    if not isinstance(values, list | tuple):
        raise TypeError(f"{what}: give a list of tensors, not {values!r}{at(user_origin())}")
    return list(values)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`cast` that clamps values outside the target's range to its ends."""
    tensor, target = convert_to_tensor(value), dtypes.as_dtype(dtype)
    source = tensor.dtype
    if target.is_integer and source.is_integer:
        low, high = max(source.min, target.min), min(source.max, target.max)
        return cast(clip_by_value(tensor, int(low), int(high)), target)
    if target.is_floating and source.is_floating and target.size < source.size:
        return cast(clip_by_value(tensor, float(target.min), float(target.max)), target)
    return cast(tensor, target)
