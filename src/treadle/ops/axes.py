"""Axis arguments: normalised to tuples of non-negative ints, and dims without some axes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.refusals import NotYetKnown
from treadle.core.shapes import Dim
from treadle.core.tensor import SymbolicTensor, Tensor
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.dims import as_dim_value, elements_of
from treadle.ops.known_values import known_value


def normalize_axis(axis: Any, rank: int) -> int:
    """One axis as an int in [0, rank)."""
    number = known_axis(axis)
    if not -rank <= number < rank:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"axis {number} is out of range for rank {rank}: [{-rank}, {rank}){at(user_origin())}",
        )
    return number % rank


def known_axis(axis: Any) -> int:
    """An axis as an int, for which bools count: a tensor must be known while tracing.

    Raises:
        ValueError: only a run can tell; the axes of the result depend on it.
    """
    if has_dtype(axis):  # a variable's value, too
        axis = convert_to_tensor(axis)
    if not isinstance(axis, Tensor) or not axis.is_symbolic:
        try:
            return operator.index(axis.item() if isinstance(axis, np.bool_) else axis)
        except TypeError:
            text = f"An axis is an integer, not {axis!r}{at(user_origin())}"
            raise errors.DtypeError(None, None, text) from None
    found = as_dim_value(axis, "axis")
    if not isinstance(found, int):
        raise NotYetKnown(
            f"An axis must be known while tracing, because the axes of the result depend on it: "
            f"{axis!r} is known only when the function runs; pass a Python int{at(user_origin())}",
            axis=axis,
        )
    return found


def _elements(axes: Tensor) -> list[Any]:
    """The elements of a vector, or the one of a scalar: ints where constants tell them."""
    found = known_value(axes.value, {}) if isinstance(axes, SymbolicTensor) else axes.numpy()
    if found is None:
        return list(elements_of(axes))
    return list(np.atleast_1d(found).tolist())


def normalize_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Sorted axes from None (all), an int, a sequence of ints or a constant tensor."""
    if axis is None:
        return tuple(range(rank))
    axes = sorted(listed_axes(axis, rank))
    if len(set(axes)) != len(axes):
        raise errors.InvalidArgumentError(
            None, None, f"axes {axis} name one axis twice{at(user_origin())}"
        )
    return tuple(axes)


def listed_axes(axis: Any, rank: int) -> list[int]:
    """The axes of an int, a sequence of ints or a tensor, in their order and as often as they are
    there."""
    if isinstance(axis, Tensor):
        if axis.ndim > 1 or not axis.dtype.is_integer:
            text = f"An axis is an integer, not {axis!r}{at(user_origin())}"
            raise errors.DtypeError(None, None, text)
        axis = [known_axis(a) for a in _elements(axis)]
    entries = axis if isinstance(axis, Iterable) and _rank_of(axis) else [axis]
    return [normalize_axis(a, rank) for a in entries]


def _rank_of(value: Any) -> int:
    return int(getattr(value, "ndim", 1))


def reduced_dims(dims: Sequence[Dim], axes: Sequence[int], keepdims: bool) -> tuple[Dim, ...]:
    """The dims that are left when `axes` are reduced."""
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(dims))
    return tuple(d for i, d in enumerate(dims) if i not in axes)
