"""``ufunc.at`` and assignment along an axis: values combined at positions that may repeat."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import broadcast
from treadle.jitted.arrays import Array, element_of, index_items, unwrapped
from treadle.ops import creation
from treadle.ops.axes import normalize_axis
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.gather import tensor_scatter_nd_add
from treadle.ops.numpy_dtypes import as_array
from treadle.ops.shaping import reshape_to
from treadle.ops.updates_by_position import columns_of


def combined_at(ufunc: Any, target: Any, indices: Any, values: Any) -> None:
    """``ufunc.at(target, indices, values)`` for addition and subtraction.

    Raises:
        TypeError: another ufunc, or an index with slices.
    """
    if ufunc not in (np.add, np.subtract) or not isinstance(target, Array):
        raise TypeError(
            f"np.{ufunc.__name__}.at is not supported in jitted functions; np.add.at and "
            f"np.subtract.at are{at(user_origin())}"
        )
    items = index_items(indices)
    if any(isinstance(i, slice) or i is None or i is Ellipsis for i in items):
        raise TypeError(f"np.{ufunc.__name__}.at takes positions, no slices{at(user_origin())}")
    old = target.tensor
    positions = [as_array(i) for i in items]
    if len(positions) == 1 and positions[0].dtype.is_bool:
        target[items] = target[items] + values if ufunc is np.add else target[items] - values
        return
    dims = broadcast(*(p.dims for p in positions))
    rest = old.dims[len(positions) :]
    added = broadcast_dims(element_of(values, old.dtype), (*dims, *rest))
    columns = columns_of(positions, old.dims, dims)
    if not dims:
        columns, added = columns[None], added[None]
    target.write(tensor_scatter_nd_add(old, columns, added if ufunc is np.add else -added))


def positions_along(array: Array, indices: Any, axis: int) -> tuple[Any, ...]:
    """The index that ``np.put_along_axis`` assigns to."""
    found = as_array(unwrapped(indices))
    place = normalize_axis(axis, array.ndim)
    index: list[Any] = []
    for i, dim in enumerate(found.dims):
        if i == place:
            index.append(found)
            continue
        steps = creation.range(dim, dtype=dtypes.int64)
        index.append(reshape_to(steps, tuple(dim if j == i else 1 for j in range(found.ndim))))
    return tuple(index)


