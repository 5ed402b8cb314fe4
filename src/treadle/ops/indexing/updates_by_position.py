"""Assignment to the parts that a mask or arrays of positions select."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, broadcast, product
from treadle.core.tensor import Tensor
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.control.io import Assert
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.assigned import as_element, fit
from treadle.ops.indexing.basic import is_array
from treadle.ops.indexing.masks import EXPAND
from treadle.ops.indexing.scatter import SCATTER_UPDATE
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.registry import run
from treadle.ops.shaping.joining import stack
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.reshaping import reshape_to


def set_at_arrays(x: Tensor, items: list[Any], value: Any) -> Tensor:
    """``x[key] = value`` where entries of the key are a mask or arrays of positions.

    The selected axes are moved to the front, updated, and moved back.
    """
    first, arrays = _arrays_of(x, items)
    mask = arrays[0] if len(arrays) == 1 and arrays[0].dtype.is_bool else None
    count = mask.ndim if mask is not None else len(arrays)
    perm = [*range(first, first + count), *range(first), *range(first + count, x.ndim)]
    moved = permute(x, perm) if first else x
    element = as_element(value, x.dtype)
    rest = moved.dims[count:]
    if mask is not None:
        result = _set_masked(moved, mask, element, first, rest)
    else:
        result = _set_positions(moved, arrays, element, first, rest)
    back = [perm.index(i) for i in range(x.ndim)]
    return permute(result, back) if first else result


def _arrays_of(x: Tensor, items: list[Any]) -> tuple[int, list[Tensor]]:
    """The first axis that arrays select, and the arrays; the other entries must be whole axes."""
    arrays = [
        i for i, item in enumerate(items)
        if is_array(item) or isinstance(item, int) or (has_dtype(item) and item.dtype.is_integer)
    ]  # fmt: skip
    tensors = [convert_to_tensor(items[i]) for i in arrays]
    others = [item for i, item in enumerate(items) if i not in arrays]
    whole = all(o is Ellipsis or (isinstance(o, slice) and o == slice(None)) for o in others)
    masks = [t for t in tensors if t.dtype.is_bool]
    adjacent = arrays[-1] - arrays[0] == len(arrays) - 1
    if not whole or not adjacent or (masks and len(tensors) > 1):
        raise TypeError(
            "assignment takes one mask, or neighbouring arrays of positions, and `:` for the "
            "other axes; assign in steps, or use td.tensor_scatter_nd_update"
            f"{at(user_origin())}"
        )
    for tensor in tensors:
        if not tensor.dtype.is_integer and not tensor.dtype.is_bool:
            raise TypeError(f"{tensor.dtype.name} arrays are not positions{at(user_origin())}")
    covered = masks[0].ndim if masks else len(tensors)
    after = len([o for o in items[arrays[-1] + 1 :] if o is not Ellipsis])
    first = arrays[0] if Ellipsis not in items[: arrays[0]] else x.ndim - covered - after
    if first + covered > x.ndim or (masks and not _fits(masks[0], x.dims[first:])):
        shapes = ", ".join(str(t.shape) for t in tensors)
        raise errors.InvalidArgumentError(
            None, None,
            f"positions of shape {shapes} do not fit shape {x.shape} at axis {first}"
            f"{at(user_origin())}",
        )  # fmt: skip
    return first, tensors


def _fits(mask: Tensor, dims: Sequence[Dim]) -> bool:
    known = zip(mask.dims, dims, strict=False)
    return all(a == b for a, b in known if isinstance(a, int) and isinstance(b, int))


def _in_front(value: Tensor, lead: int, count: int, rank: int) -> Tensor:
    """A value for axes [lead..., selected..., rest...] with the `count` selected ones in front."""
    if value.ndim > rank:
        value = fit(value, value.dims[value.ndim - rank :])
    full = reshape_to(value, (1,) * (rank - value.ndim) + value.dims)
    order = [*range(lead, lead + count), *range(lead), *range(lead + count, rank)]
    return permute(full, order) if lead else full


def _set_masked(x: Tensor, mask: Tensor, value: Tensor, lead: int, rest: tuple[Dim, ...]) -> Tensor:
    """The value's elements go to the true positions in order; one element goes to all."""
    front = _in_front(value, lead, 1, 1 + len(rest))
    chosen = reshape_to(mask, mask.dims + (1,) * len(rest))
    if front.dims[0] == 1:
        return where(chosen, fit(reshape_to(front, front.dims[1:]), rest), x)
    return where(chosen, _spread(mask, broadcast_dims(front, (front.dims[0], *rest))), x)


def _spread(mask: Tensor, values: Tensor) -> Tensor:
    """``values[k]`` at the k-th true position of the mask, zeros at the others."""
    flat = reshape_to(mask, (product(mask.dims),))
    given = dims_tensor(values.dims[0], dtypes.int64)
    Assert(
        reduce_sum(cast(flat, dtypes.int64)) == given,
        ["the mask must select as many elements as are assigned to it; assigned:", given],
    )
    found = run(EXPAND, values, flat)
    return reshape_to(found, (*mask.dims, *values.dims[1:]))


def _set_positions(
    x: Tensor, arrays: Sequence[Tensor], value: Tensor, lead: int, rest: tuple[Dim, ...]
) -> Tensor:
    dims = broadcast(*(a.dims for a in arrays))
    front = _in_front(value, lead, len(dims), len(dims) + len(rest))
    updates = fit(front, (*dims, *rest))
    columns = columns_of(arrays, x.dims, dims)
    return run(SCATTER_UPDATE, x, columns, updates)  # type: ignore[no-any-return]


def columns_of(arrays: Sequence[Tensor], sizes: Sequence[Dim], dims: tuple[Dim, ...]) -> Tensor:
    """The positions on each axis side by side, for gather_nd and scatter."""
    pairs = zip(arrays, sizes, strict=False)
    return stack([broadcast_dims(_wrapped(a, size), dims) for a, size in pairs], -1)


def _wrapped(positions: Tensor, size: Dim) -> Tensor:
    """Negative positions count from the end."""
    wide = cast(positions, dtypes.int64)
    return where(wide < 0, wide + dims_tensor(size, dtypes.int64), wide)
