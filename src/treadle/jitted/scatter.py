"""``ufunc.at`` and assignment along an axis: values combined at positions that may repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import broadcast, product
from treadle.core.tensor import Tensor
from treadle.jitted.arrays import Array, element_of, index_items, unwrapped, wrapped
from treadle.numpy_staging import ufuncs
from treadle.numpy_staging.dtypes import as_array, is_weak, to
from treadle.numpy_staging.staging import unsupported
from treadle.ops.axes import normalize_axis
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.control.control_flow import while_loop
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.extremes import SCATTER_MAX, SCATTER_MIN
from treadle.ops.indexing.scatter import tensor_scatter_nd_add, tensor_scatter_nd_sub
from treadle.ops.indexing.subscripts import getitem
from treadle.ops.indexing.updates import set_item
from treadle.ops.indexing.updates_by_position import columns_of
from treadle.ops.registry import run
from treadle.ops.shaping import creation, ranges
from treadle.ops.shaping.reshaping import reshape_to


def combined_at(ufunc: Any, target: Any, indices: Any, values: Any) -> None:
    """``ufunc.at(target, indices, values)``: a position named again sees its new value.

    Raises:
        TypeError: an index with slices, or a result that the array's dtype does not take.
    """
    name = ufunc.__name__
    if not isinstance(target, Array):
        raise TypeError(f"np.{name}.at changes an array, not {target!r}{at(user_origin())}")
    items = index_items(indices)
    if any(isinstance(i, slice) or i is None or i is Ellipsis for i in items):
        raise TypeError(f"np.{name}.at takes positions, no slices{at(user_origin())}")
    old = target.tensor
    positions = [as_array(i) for i in items]
    given = () if ufunc.nin == 1 else (unwrapped(values),)
    if ufunc not in ufuncs.UFUNCS:
        raise unsupported(f"{name}.at")
    one = [v if is_weak(v) else creation.zeros((), as_array(v).dtype) for v in (old, *given)]
    made = ufuncs.call(ufunc, tuple(one)).dtype
    if not np.can_cast(made.np_dtype, old.dtype.np_dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast ufunc {name!r} output from {made.name} to {old.dtype.name} with casting "
            f"rule 'same_kind'{at(user_origin())}"
        )
    if len(positions) == 1 and positions[0].dtype.is_bool:
        part = getitem(old, (positions[0],))
        target[items] = wrapped(cast(ufuncs.call(ufunc, (part, *given)), old.dtype))
        return
    dims = broadcast(*(p.dims for p in positions))
    rest = old.dims[len(positions) :]
    scatter = _scatter_of(ufunc, old, made)
    if scatter is not None:
        added = broadcast_dims(element_of(values, old.dtype), (*dims, *rest))
        columns = columns_of(positions, old.dims, dims)
        if not dims:
            columns, added = columns[None], added[None]
        target.write(scatter(old, columns, added))
        return
    target.write(_one_by_one(ufunc, old, positions, given, dims))


def _scatter_of(ufunc: Any, old: Tensor, made: DType) -> Callable[..., Tensor] | None:
    """The scatter that combines elements as a ufunc does whose result has dtype `made`."""
    if ufunc in (np.add, np.subtract):
        return tensor_scatter_nd_add if ufunc is np.add else tensor_scatter_nd_sub
    # Values may be rounded to the array's dtype before they are compared, but not wrapped.
    if old.dtype.is_floating or (old.dtype.is_integer and made is old.dtype):
        found = {np.maximum: SCATTER_MAX, np.minimum: SCATTER_MIN}.get(ufunc)
        return None if found is None else partial(run, found)
    return None


def _one_by_one(
    ufunc: Any, old: Tensor, positions: Sequence[Tensor], given: Sequence[Any], dims: Any
) -> Tensor:
    """A loop of the graph over the positions."""
    count = product(dims)
    places = [reshape_to(broadcast_dims(p, dims), (count,)) for p in positions]
    rest = old.dims[len(positions) :]
    weak = [v for v in given if is_weak(v)]
    rows = [
        reshape_to(broadcast_dims(as_array(v), (*dims, *rest)), (count, *rest))
        for v in given
        if not is_weak(v)
    ]
    last = dims_tensor(count, dtypes.int64)

    def one(k: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        key = tuple(p[k] for p in places)
        new = ufuncs.call(ufunc, (getitem(x, key), *weak, *(r[k] for r in rows)))
        return k + 1, set_item(x, key, cast(new, x.dtype))

    start = (to(0, dtypes.int64), old)
    found: Tensor = while_loop(lambda k, _: k < last, one, start)[1]
    return found


def positions_along(array: Array, indices: Any, axis: int) -> tuple[Any, ...]:
    """The index that ``np.put_along_axis`` assigns to."""
    found = as_array(unwrapped(indices))
    place = normalize_axis(axis, array.ndim)
    index: list[Any] = []
    for i, dim in enumerate(found.dims):
        if i == place:
            index.append(found)
            continue
        steps = ranges.range(dim, dtype=dtypes.int64)
        index.append(reshape_to(steps, tuple(dim if j == i else 1 for j in range(found.ndim))))
    return tuple(index)
