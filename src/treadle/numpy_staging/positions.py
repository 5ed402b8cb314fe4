"""NumPy's functions of positions, and those that put elements elsewhere, on tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import broadcast
from treadle.core.tensor import Tensor
from treadle.numpy_staging.choosing import argsort
from treadle.numpy_staging.dtypes import as_array, promoted, to
from treadle.numpy_staging.reductions import flat
from treadle.ops.axes import normalize_axis
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise import arithmetic, selection
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.gather import gathered
from treadle.ops.shaping import ranges
from treadle.ops.shaping.joining import concat, stack
from treadle.ops.shaping.reshaping import reshape, reshape_to
from treadle.ops.statistics import sorting


def argpartition(a: Any, kth: Any, axis: Any = -1) -> Tensor:
    """The positions of the sorted elements, which is one of the orders that NumPy may give."""
    return argsort(a, axis)


def lexsort(keys: Any, axis: int = -1) -> Tensor:
    """By the last of some vectors, where that is equal by the one before, and so on."""
    rows = [as_array(k) for k in keys]
    if any(r.ndim != 1 for r in rows):
        raise ValueError(f"np.lexsort takes vectors here{at(user_origin())}")
    order = sorting.argsort(rows[0], stable=True)
    for row in rows[1:]:
        order = gathered(order, sorting.argsort(gathered(row, order), stable=True))
    return cast(order, dtypes.int64)


def choose(a: Any, choices: Any, mode: str = "raise") -> Tensor:
    """Elements of `choices` by number; with ``mode="raise"`` a number out of range is an error
    when the function runs."""
    options = promoted([as_array(c) for c in choices])
    number = cast(as_array(a), dtypes.int64)
    dims = broadcast(number.dims, *(c.dims for c in options))
    count = len(options)
    if mode == "clip":
        number = arithmetic.minimum(arithmetic.maximum(number, 0), count - 1)
    elif mode == "wrap":
        number = arithmetic.mod(number, to(count, dtypes.int64))
    number = broadcast_dims(number, dims)
    rows = stack([flat(broadcast_dims(c, dims)) for c in options], 1)
    places = reshape_to(number, (rows.dims[0], 1))
    found = gathered(rows, places, axis=1, batch_dims=1)
    return reshape_to(found, dims)


def ix_(*args: Any) -> tuple[Tensor, ...]:
    rank = len(args)
    found = []
    for place, given in enumerate(args):
        x = as_array(given)
        x = reshape_to(selection.where(x), (-1,)) if x.dtype.is_bool else x
        dims = tuple(x.dims[0] if i == place else 1 for i in range(rank))
        found.append(reshape_to(x, dims))
    return tuple(found)


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Tensor:
    """At one position, which is known while the function is traced."""
    if not isinstance(obj, int | np.integer):
        raise TypeError(f"np.insert takes one known position{at(user_origin())}")
    x = as_array(arr)
    x = flat(x) if axis is None else x
    place = 0 if axis is None else normalize_axis(axis, x.ndim)
    new = cast(as_array(values), x.dtype)
    row = tuple(d for i, d in enumerate(x.dims) if i != place)
    if axis is None and new.ndim == 1:
        rows = new
    else:
        rows = broadcast_dims(new, row)
        rows = reshape_to(rows, (*row[:place], 1, *row[place:]))
    before = (slice(None),) * place
    return concat([x[(*before, slice(None, obj))], rows, x[(*before, slice(obj, None))]], place)


def resize(a: Any, new_shape: Any) -> Tensor:
    """The elements again and again until the shape is full."""
    x = flat(as_array(a))
    dims = tuple(new_shape) if isinstance(new_shape, tuple | list) else (new_shape,)
    count = math.prod(dims)
    places = arithmetic.mod(
        ranges.range(count, dtype=dtypes.int64), dims_tensor(x.dims[0], dtypes.int64)
    )
    return reshape(gathered(x, places), dims)


def ravel_multi_index(multi_index: Any, dims: Sequence[int], mode: str = "raise") -> Tensor:
    """A position out of range is not noticed with ``mode="raise"``; where it is used it is."""
    if isinstance(multi_index, Tensor):
        multi_index = [multi_index[i] for i in range(len(dims))]
    total = to(0, dtypes.int64)
    for given, size in zip(multi_index, dims, strict=True):
        place = cast(as_array(given), dtypes.int64)
        if mode == "clip":
            place = arithmetic.minimum(arithmetic.maximum(place, 0), size - 1)
        elif mode == "wrap":
            place = arithmetic.mod(place, to(size, dtypes.int64))
        total = total * to(size, dtypes.int64) + place
    return total


def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    rest, found = cast(as_array(indices), dtypes.int64), []
    for size in reversed(sizes[1:]):
        by = to(size, dtypes.int64) if isinstance(size, int) else cast(as_array(size), dtypes.int64)
        found.append(arithmetic.mod(rest, by))
        rest = arithmetic.floordiv(rest, by)
    return (rest, *found[::-1])
