"""NumPy's functions that change shapes, on tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import SymbolicDim, broadcast
from treadle.core.tensor import Tensor
from treadle.numpy_staging.dtypes import as_array
from treadle.numpy_staging.reductions import flat
from treadle.ops.axes import normalize_axes, normalize_axis
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise import arithmetic
from treadle.ops.indexing import repeating, transposing
from treadle.ops.indexing.gather import gathered
from treadle.ops.shaping import padding, permuting, ranges, reshaping
from treadle.ops.shaping.reshaping import reshape_to


def shape(a: Any) -> tuple[Any, ...]:
    """Ints, and scalar tensors for dims that only a run can tell."""
    dims = as_array(a).dims
    return tuple(d if isinstance(d, int) else dims_tensor(d, dtypes.int32) for d in dims)


def size(a: Any, axis: Any = None) -> Any:
    x = as_array(a)
    dims = [x.dims[i] for i in normalize_axes(axis, x.ndim)]
    if any(isinstance(d, SymbolicDim) for d in dims):
        return dims_tensor(math.prod(dims), dtypes.int32)
    return math.prod(dims)


def ndim(a: Any) -> int:
    return as_array(a).ndim


def _is_by_columns(order: Any, orders: str) -> bool:
    """Whether an order of elements has the first axis change fastest.

    Raises:
        ValueError: it is none of NumPy's orders.
    """
    if order is None:
        return False
    if str(order).upper() not in tuple(orders):
        raise ValueError(f"order must be one of {', '.join(orders)}, not {order!r}")
    return str(order).upper() == "F"


def reshape(a: Any, shape: Any = None, order: str = "C", *, newshape: Any = None) -> Tensor:
    x, wanted = as_array(a), newshape if shape is None else shape
    if not _is_by_columns(order, "CFA"):
        return reshaping.reshape(x, wanted)
    sizes = list(wanted) if isinstance(wanted, list | tuple) else [wanted]
    return transposing.transpose(reshaping.reshape(transposing.transpose(x), sizes[::-1]))


def ravel(a: Any, order: str = "C") -> Tensor:
    x = as_array(a)
    return flat(transposing.transpose(x) if _is_by_columns(order, "CFAK") else x)


def transpose(a: Any, axes: Any = None) -> Tensor:
    return transposing.transpose(as_array(a), axes)


def swapaxes(a: Any, axis1: int, axis2: int) -> Tensor:
    x = as_array(a)
    order = list(range(x.ndim))
    i, j = normalize_axis(axis1, x.ndim), normalize_axis(axis2, x.ndim)
    order[i], order[j] = order[j], order[i]
    return transposing.transpose(x, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    x = as_array(a)
    taken = [normalize_axis(i, x.ndim) for i in np.atleast_1d(source)]
    places = [normalize_axis(i, x.ndim) for i in np.atleast_1d(destination)]
    order = [i for i in range(x.ndim) if i not in taken]
    for place, axis in sorted(zip(places, taken, strict=True)):
        order.insert(place, axis)
    return transposing.transpose(x, order)


def expand_dims(a: Any, axis: Any) -> Tensor:
    x = as_array(a)
    rank = x.ndim + np.size(axis)
    places = {normalize_axis(i, rank) for i in np.atleast_1d(axis)}
    dims = iter(x.dims)
    return reshape_to(x, tuple(1 if i in places else next(dims) for i in range(rank)))


def squeeze(a: Any, axis: Any = None) -> Tensor:
    return reshaping.squeeze(as_array(a), axis)


def atleast_1d(*arrays: Any) -> Any:
    return _each(arrays, lambda x: x if x.ndim else reshape_to(x, (1,)))


def atleast_2d(*arrays: Any) -> Any:
    return _each(arrays, lambda x: reshape_to(x, (1,) * (2 - x.ndim) + x.dims))


def atleast_3d(*arrays: Any) -> Any:
    def cube(x: Tensor) -> Tensor:
        dims = (1, *x.dims, 1) if x.ndim == 1 else x.dims + (1,) * (3 - x.ndim)
        return reshape_to(x, dims)

    return _each(arrays, cube)


def _each(arrays: Sequence[Any], fn: Any) -> Any:
    found = tuple(fn(as_array(x)) for x in arrays)
    return found[0] if len(found) == 1 else found


def broadcast_to(array: Any, shape: Any) -> Tensor:
    return reshaping.broadcast_to(as_array(array), shape)


def broadcast_arrays(*args: Any) -> tuple[Tensor, ...]:
    arrays = [as_array(x) for x in args]
    dims = broadcast(*(x.dims for x in arrays))
    return tuple(broadcast_dims(x, dims) for x in arrays)


def flip(m: Any, axis: Any = None) -> Tensor:
    x = as_array(m)
    return permuting.reverse(x, list(normalize_axes(axis, x.ndim)))


def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    x = as_array(a)
    if axis is None:
        return reshape_to(repeating.roll(flat(x), shift, 0), x.dims)
    shifts, axes = _listed(shift), _listed(axis)
    count = max(len(shifts), len(axes))
    for amount, one in zip(_times(shifts, count), _times(axes, count), strict=True):
        x = repeating.roll(x, amount, one)
    return x


def _listed(value: Any) -> list[Any]:
    return list(value) if np.ndim(value) or isinstance(value, list | tuple) else [value]


def _times(values: list[Any], count: int) -> list[Any]:
    """One value for all, or one for each."""
    return values * count if len(values) == 1 else values


def tile(A: Any, reps: Any) -> Tensor:
    x, counts = as_array(A), _listed(reps)
    rank = max(x.ndim, len(counts))
    wide = reshape_to(x, (1,) * (rank - x.ndim) + x.dims)
    return reshaping.tile(wide, [1] * (rank - len(counts)) + counts)


def repeat(a: Any, repeats: Any, axis: Any = None) -> Tensor:
    return repeating.repeat(as_array(a), repeats, axis)


def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    x = as_array(array)
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    if mode in ("edge", "wrap", "linear_ramp", "maximum", "mean", "median", "minimum", "empty"):
        return _pad_from(x, widths, mode)
    if np.ndim(constant_values):
        return _pad_sides(x, widths, np.broadcast_to(np.asarray(constant_values), (x.ndim, 2)))
    return padding.pad(x, widths, mode.upper(), constant_values)


def _pad_sides(x: Tensor, widths: list[Any], values: Any) -> Tensor:
    """Another constant for each side of each axis."""
    for axis, ((before, after), (low, high)) in enumerate(zip(widths, values, strict=True)):
        for side, value in (((before, 0), low), ((0, after), high)):
            pairs = [side if i == axis else (0, 0) for i in range(x.ndim)]
            x = padding.pad(x, pairs, "CONSTANT", value.item())
    return x


def _pad_from(x: Tensor, widths: list[Any], mode: str) -> Tensor:
    """Modes that take positions of the axis again."""
    if mode not in ("edge", "wrap"):
        raise ValueError(f"np.pad: mode {mode!r} cannot be staged{at(user_origin())}")
    for axis, (before, after) in enumerate(widths):
        size = dims_tensor(x.dims[axis], dtypes.int64)
        places = ranges.range(-before, size + after, dtype=dtypes.int64)
        if mode == "edge":
            places = arithmetic.minimum(arithmetic.maximum(places, 0), size - 1)
        else:
            places = arithmetic.mod(places, size)
        x = gathered(x, places, axis=axis)
    return x


def matrix_transpose(x: Any, /) -> Tensor:
    return swapaxes(x, -1, -2)


def rollaxis(a: Any, axis: int, start: int = 0) -> Tensor:
    x = as_array(a)
    place = normalize_axis(axis, x.ndim)
    to = start + x.ndim if start < 0 else start
    return moveaxis(x, place, to - 1 if place < to else to)
