"""Gather: slices by their numbers, of tensors and ragged tensors, by either.

All cases become one: numbers of rows of `values`, in a tensor or ragged tensor whose shape the
result begins with (`_at`). Numbers that count within rows are moved by where the rows begin.
"""

from __future__ import annotations

from typing import Any

from treadle.core.origin import at, user_origin
from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gather as gather_tensor
from treadle.ops.reductions.reduction import reduce_all
from treadle.ops.shaping.ranges import range as range_
from treadle.ops.shaping.reshaping import reshape
from treadle.ragged import partitions
from treadle.ragged.rows import gather_rows
from treadle.ragged.tensor import RaggedTensor


def gather(params: Any, indices: Any, axis: int | None = None, batch_dims: int = 0) -> Any:
    """Slices of a tensor by their numbers; either may be ragged.

    Args:
        params: a tensor or ragged tensor.
        indices: integers; the result has their shape in place of the axis.
        axis: along which slices are taken; None: the first one behind the leading axes.
        batch_dims: leading axes that both have.

    Raises:
        ValueError: the axis is one of the leading ones, or either has too few axes.
        InvalidArgumentError: a number is out of range, or the leading axes differ.
    """
    params = params if isinstance(params, RaggedTensor) else convert_to_tensor(params)
    if not isinstance(indices, RaggedTensor):
        indices = convert_to_tensor(indices)
    if batch_dims < 0:
        batch_dims += len(indices.shape)
    axis = batch_dims if axis is None else axis
    if axis < 0:
        axis += len(params.shape)
    if not 0 <= batch_dims <= min(axis, len(indices.shape)) or axis >= len(params.shape):
        raise ValueError(
            f"gather: axis {axis} and batch_dims {batch_dims} for params of {len(params.shape)} "
            f"axes and indices of {len(indices.shape)}{at(user_origin())}"
        )
    return _gathered(params, indices, axis, batch_dims)


def _gathered(params: Any, indices: Any, axis: int, batch_dims: int) -> Any:
    if isinstance(params, Tensor) and isinstance(indices, Tensor):
        return gather_tensor(params, indices, axis=axis, batch_dims=batch_dims)
    if batch_dims == 0 and axis == 0:
        return _at(params, indices)
    if isinstance(params, Tensor):
        params = RaggedTensor.from_tensor(params)
    if batch_dims == 0:
        if axis == 1:
            return _at(params.values, _in_each_row(params, indices))
        return params.with_values(_gathered(params.values, indices, axis - 1, 0))
    if axis > batch_dims or batch_dims > 1:
        return _in_rows(params, indices, axis, batch_dims)
    return _at(params.values, _in_own_row(params, indices))


def _at(params: Any, indices: Any) -> Any:
    """The rows of `params` with the numbers `indices`, of any shape."""
    if isinstance(params, Tensor) and isinstance(indices, Tensor):
        return gather_tensor(params, indices)
    if isinstance(indices, RaggedTensor):
        return indices.with_values(_at(params, indices.values))
    if indices.ndim == 0:
        return gather_rows(params, reshape(indices, [1])).values
    found, dtype = gather_rows(params, reshape(indices, [-1])), params.row_splits.dtype
    for axis in range(indices.ndim - 1, 0, -1):
        rows = dims_tensor(product(indices.dims[:axis]), dtype)
        found = RaggedTensor(found, range_(rows + 1) * dims_tensor(indices.dims[axis], dtype))
    return found


def _moved(numbers: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
    """Numbers within rows as those of values; -1, which is none, for one that is not in its row."""
    numbers = cast(numbers, starts.dtype)
    inside = (numbers >= 0) & (numbers < lengths)
    if not inside.is_symbolic:
        partitions.require(reduce_all(inside), "gather: a number is out of range in its row")
    return where(inside, numbers + starts, cast(-1, starts.dtype))


def _in_each_row(params: RaggedTensor, indices: Any) -> Any:
    """The numbers that all rows of `params` are asked for, as numbers of its values: one more axis,
    of the rows."""
    splits, lengths = params.row_splits, partitions.lengths_of(params.row_splits)
    nrows, dtype = params.nrows(), splits.dtype
    if isinstance(indices, Tensor):
        column = [dims_tensor(splits.dims[0], dtype) - 1, *[1] * indices.ndim]
        starts, sizes = reshape(splits[:-1], column), reshape(lengths, column)
        return _moved(reshape(indices, [1, *_dims(indices, dtype)]), starts, sizes)
    count = partitions.count_of(indices, dtype)
    again = gather_rows(indices, range_(nrows * count) % where(count > 0, count, cast(1, dtype)))
    each = RaggedTensor(again, range_(nrows + 1) * count)
    return _in_own_row(params, each)


def _dims(x: Tensor, dtype: Any) -> list[Any]:
    return [dims_tensor(d, dtype) for d in x.dims]


def _in_own_row(params: RaggedTensor, indices: Any) -> Any:
    """The numbers that each row of `params` is asked for, as numbers of its values."""
    splits, lengths = params.row_splits, partitions.lengths_of(params.row_splits)
    count = partitions.count_of(indices, splits.dtype)
    partitions.require(
        equal(count, params.nrows()), "gather: params and indices have other numbers of rows"
    )
    if isinstance(indices, Tensor):
        column = [count, *[1] * (indices.ndim - 1)]
        return _moved(indices, reshape(splits[:-1], column), reshape(lengths, column))
    ends, flat = cast(indices.row_splits, splits.dtype), indices.values
    while isinstance(flat, RaggedTensor):
        ends, flat = gather_tensor(cast(flat.row_splits, splits.dtype), ends), flat.values
    rows = partitions.row_ids(ends, partitions.count_of(flat, splits.dtype))
    column = [partitions.count_of(flat, splits.dtype), *[1] * (flat.ndim - 1)]
    starts, sizes = (
        reshape(gather_tensor(x, rows), column) for x in (splits[:-1], lengths)
    )
    return indices.with_flat_values(_moved(flat, starts, sizes))


def _in_rows(params: RaggedTensor, indices: Any, axis: int, batch_dims: int) -> Any:
    """The values of `params` with what their rows are asked for."""
    if batch_dims > 1:
        if isinstance(indices, Tensor):
            indices = RaggedTensor.from_tensor(indices)
        partitions.same_splits(params.row_splits, indices.row_splits)
        inner = _gathered(params.values, indices.values, axis - 1, batch_dims - 1)
        return params.with_values(inner)
    count = partitions.count_of(indices, params.row_splits.dtype)
    partitions.require(
        equal(count, params.nrows()), "gather: params and indices have other numbers of rows"
    )
    spread = gather_rows(indices, params.value_rowids())
    return params.with_values(_gathered(params.values, spread, axis - 1, 1))
