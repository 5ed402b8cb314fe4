"""Elements repeated, and shifted in a circle: repeat, roll."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.ops.axes import listed_axes, normalize_axis
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import convert_to_tensor, has_dtype, is_symbolic, to_array
from treadle.ops.dims import dims_tensor, elements_of, size_of
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.gather import gathered, unsorted_segment_sum
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.reductions.scan import cumsum
from treadle.ops.scalars import number
from treadle.ops.shaping.creation import ones_like
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.ranges import range as numbers
from treadle.ops.shaping.reshaping import reshape, reshape_to, with_dim
from treadle.ops.shaping.slicing import part_of


def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Every element (along `axis`; of the flattened input without one) repeated.

    Args:
        repeats: how often, for all or for each; a number below 0 counts as 0.

    Raises:
        InvalidArgumentError: `repeats` is no scalar and has not one number for each element.
    """
    x = convert_to_tensor(input)
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    position = normalize_axis(axis, x.ndim)
    counts = convert_to_tensor(repeats)
    if product(counts.dims) == 1:
        times = size_of(maximum(reshape_to(counts, ()), 0), "repeat: repeats")
        dims = x.dims
        spread = (*dims[: position + 1], times, *dims[position + 1 :])
        wide = reshape_to(x, (*dims[: position + 1], 1, *dims[position + 1 :]))
        final = (*dims[:position], dims[position] * times, *dims[position + 1 :])
        return reshape_to(broadcast_dims(wide, spread), final)
    return gathered(x, _repeated_positions(with_dim(counts, 0, x.dims[position])), axis=position)


def _repeated_positions(counts: Tensor) -> Tensor:
    """The position of each element as often as its count says: a mark where the elements of each
    begin, summed up."""
    times = maximum(cast(counts, dtypes.int64), 0)
    starts = cumsum(times, exclusive=True)
    total = size_of(reduce_sum(times), "repeat: the number of elements")
    marks = unsorted_segment_sum(ones_like(starts), starts, total + 1)
    return cumsum(marks[:-1]) - 1


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """`input` shifted along axes; what leaves at one end enters at the other.

    Args:
        shift: one number for each axis; several for one axis add up.
    """
    x = convert_to_tensor(input)
    axes = listed_axes(convert_to_tensor(axis) if has_dtype(axis) else axis, x.ndim)
    amounts = convert_to_tensor(shift) if has_dtype(shift) else to_array(shift)
    if amounts.ndim > 1:
        text = f"roll: shift must be a scalar or a vector, not of shape {tuple(amounts.shape)}"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    parts = elements_of(amounts) if is_symbolic(amounts) else np.asarray(amounts).reshape(-1)
    shifts = [number("roll: shift", s, "iu") for s in parts]
    if len(shifts) != len(axes):
        raise errors.InvalidArgumentError(
            None, None, f"roll: {len(shifts)} shifts for {len(axes)} axes{at(user_origin())}"
        )
    for amount, position in zip(shifts, axes, strict=True):
        x = _rolled(x, amount, position)
    return x


def _rolled(x: Tensor, amount: Any, axis: int) -> Tensor:
    dim = x.dims[axis]
    if dim == 0:
        return x
    if is_symbolic(amount):
        size = dims_tensor(dim, dtypes.int64)
        places = numbers(size) - cast(amount, dtypes.int64)
        return gathered(x, places % maximum(size, 1), axis=axis)
    first = amount % dim
    if first == 0:
        return x
    return concat([part_of(x, axis, dim - first, first), part_of(x, axis, 0, dim - first)], axis)
