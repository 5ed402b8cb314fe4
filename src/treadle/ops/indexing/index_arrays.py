"""``x[key]`` where entries of the key are arrays: positions on an axis, or masks over axes.

As in NumPy, the arrays (and ints beside them) are broadcast to one shape, and select one element
of the axes that they stand for at each of its positions. The axes of that shape come where the
arrays stand in the key, or first where something stands between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, broadcast
from treadle.core.tensor import Tensor
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.basic import expand, get_part, is_array
from treadle.ops.indexing.gather import gathered
from treadle.ops.indexing.scatter import gather_nd
from treadle.ops.shaping.joining import stack
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.reshaping import reshape_to


def getitem_arrays(x: Tensor, items: list[Any]) -> Tensor:
    """``x[items]`` with at least one array among the items.

    Raises:
        InvalidArgumentError: a position out of range, or arrays that do not broadcast.
        TypeError: an array of another dtype than integers or bools.
    """
    entries = [part for item in items for part in _positions(item)]
    key = expand(entries, x)
    advanced = [_selects(k) for k in key]
    basic = [slice(None) if chosen else k for k, chosen in zip(key, advanced, strict=True)]
    part = get_part(x, tuple(basic))
    axes = [n for n, chosen in enumerate(advanced) if chosen]
    arrays = [convert_to_tensor(key[n]) for n in axes]
    dims = broadcast(*(a.dims for a in arrays))
    arrays = [_wrapped(a, part.dims[n]) for a, n in zip(arrays, axes, strict=True)]
    if len(axes) == 1:
        return gathered(part, arrays[0], axis=axes[0])
    return _select(part, axes, arrays, dims)


def _positions(item: Any) -> list[Any]:
    """An entry as arrays of positions: one for every axis of a mask, else itself."""
    if not is_array(item):
        return [item]
    array = convert_to_tensor(np.zeros(np.shape(item), np.int64) if _is_empty(item) else item)
    if array.dtype.is_bool:
        found = where(array)
        return [reshape_to(found[:, k], (found.dims[0],)) for k in range(array.ndim)]
    if not array.dtype.is_integer:
        raise TypeError(
            f"an array of dtype {array.dtype.name} is no index: positions are integers, masks are "
            f"bools{at(user_origin())}"
        )
    return [array]


def _is_empty(item: Any) -> bool:
    return isinstance(item, list) and np.size(item) == 0


def _selects(entry: Any) -> bool:
    """Whether an entry counts as an array of positions: ints do, beside arrays."""
    return has_dtype(entry) or hasattr(entry, "__index__")


def _wrapped(positions: Tensor, size: Dim) -> Tensor:
    """Negative positions count from the end."""
    if positions.dtype.is_unsigned:
        return positions
    if not positions.is_symbolic:
        array = positions.numpy()
        if not array.size or array.min() >= 0:
            return positions
    wide = cast(positions, dtypes.int64)
    return where(wide < 0, wide + dims_tensor(size, dtypes.int64), wide)


def _select(part: Tensor, axes: list[int], arrays: list[Tensor], dims: tuple[Dim, ...]) -> Tensor:
    """The elements at the arrays' positions: their axes go first, and back where they belong."""
    rest = [n for n in range(part.ndim) if n not in axes]
    moved = permute(part, [*axes, *rest])
    columns = [broadcast_dims(cast(a, dtypes.int64), dims) for a in arrays]
    found = gather_nd(moved, stack(columns, -1))
    together = axes == list(range(axes[0], axes[0] + len(axes)))
    before = sum(1 for n in rest if n < axes[0]) if together else 0
    if not before:
        return found
    wide = len(dims)
    order = [*range(wide, wide + before), *range(wide), *range(wide + before, found.ndim)]
    return permute(found, order)
