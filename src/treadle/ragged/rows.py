"""Choosing rows and parts of rows: ``x[key]``, masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gather as gather_tensor
from treadle.ops.indexing.masks import boolean_mask as mask_tensor
from treadle.ops.indexing.subscripts import getitem as part_of_tensor
from treadle.ops.shaping.ranges import range as range_
from treadle.ragged import partitions
from treadle.ragged.partitions import clipped, lengths_of
from treadle.ragged.tensor import RaggedTensor


def getitem(x: RaggedTensor, key: Any) -> Any:
    """``x[key]``: integers, slices, None and Ellipsis; a tensor may be an integer.

    Raises:
        ValueError: an integer for an axis whose rows differ in length.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    return _rows(x, _without_ellipsis(keys, len(x.shape)))


def _without_ellipsis(keys: list[Any], rank: int) -> list[Any]:
    if not any(k is Ellipsis for k in keys):
        return keys
    at_ = next(i for i, k in enumerate(keys) if k is Ellipsis)
    others = sum(k is not None and k is not Ellipsis for k in keys)
    return [*keys[:at_], *[slice(None)] * (rank - others), *keys[at_ + 1 :]]


def _rows(x: Any, keys: list[Any]) -> Any:
    """Keys for all axes of x."""
    if not keys:
        return x
    if isinstance(x, Tensor):
        return part_of_tensor(x, tuple(keys))
    first, more = keys[0], keys[1:]
    if first is None:
        inner = _rows(x, more)
        count = partitions.count_of(inner, x.row_splits.dtype)
        size = inner.shape[0]
        return RaggedTensor(inner, range_(cast(2, count.dtype)) * count, size)
    if isinstance(first, slice):
        return _within(x if first == slice(None) else _sliced_rows(x, first), more)
    index = _integer(first, x)
    row = _sliced_values(x.values, x.row_splits[:-1][index], x.row_splits[1:][index])
    return _rows(row, more)


def _integer(key: Any, x: RaggedTensor) -> Any:
    index = convert_to_tensor(key)
    if not index.dtype.is_integer or index.ndim:
        raise TypeError(f"Unsupported key {key!r} of a ragged tensor{at(user_origin())}")
    if not isinstance(key, int | np.integer):
        return index
    rows = x.shape[0]
    if rows is not None and not -rows <= key < rows:
        text = f"Index {key} is out of bounds for {rows} rows{at(user_origin())}"
        raise InvalidArgumentError(None, None, text) if x.is_symbolic else IndexError(text)
    return int(key)


def _sliced_values(values: Any, start: Any, limit: Any) -> Any:
    """Neighbouring rows of values."""
    if isinstance(values, Tensor):
        return values[start:limit]
    splits = values.row_splits[start : limit + 1]
    inner = _sliced_values(values.values, splits[0], splits[-1])
    return RaggedTensor(inner, splits - splits[0], values._uniform)


def _sliced_rows(x: RaggedTensor, key: slice) -> RaggedTensor:
    """``x[key]``: every step-th row of some neighbours."""
    return rows_between(x.values, x.row_splits[:-1][key], x.row_splits[1:][key], x._uniform)


def rows_between(values: Any, starts: Tensor, limits: Tensor, uniform: Any = None) -> RaggedTensor:
    """The rows of values from starts to limits."""
    places, splits = partitions.joined_ranges(starts, limits - starts)
    return RaggedTensor(gather_rows(values, places), splits, uniform)


def _within(x: RaggedTensor, keys: list[Any]) -> Any:
    """Keys for the axes behind the first."""
    if not keys:
        return x
    first, more = keys[0], keys[1:]
    if first is None:
        return RaggedTensor(_within(x, more), range_(x.nrows() + 1), 1)
    if isinstance(first, slice):
        cut = x if first == slice(None) else _sliced_columns(x, first)
        values = cut.values
        if isinstance(values, RaggedTensor):
            return cut.with_values(_within(values, more))
        return cut.with_values(part_of_tensor(values, (slice(None), *more))) if more else cut
    if x._uniform is None:
        raise ValueError(f"Cannot index into an inner ragged dimension{at(user_origin())}")
    index = _integer(first, x)
    size = cast(x._uniform, x.row_splits.dtype)
    place = cast(index, size.dtype)
    chosen = gather_rows(x.values, x.row_splits[:-1] + where(place < 0, place + size, place))
    return _rows(chosen, [slice(None), *more])


def _sliced_columns(x: RaggedTensor, key: slice) -> RaggedTensor:
    """The same slice of every row."""
    dtype = x.row_splits.dtype
    step = 1 if key.step is None else key.step
    if not isinstance(step, int) or step == 0:
        raise ValueError(
            f"The step of a slice of rows must be an integer other than 0{at(user_origin())}"
        )
    lengths, starts = lengths_of(x.row_splits), x.row_splits[:-1]
    first, last = key.start, key.stop
    if step > 0:
        begin = 0 * lengths if first is None else clipped(_bound(first, dtype), lengths)
        end = lengths if last is None else clipped(_bound(last, dtype), lengths)
        count = (end - begin + (step - 1)) // step
    else:
        begin = lengths - 1 if first is None else _last(_bound(first, dtype), lengths)
        end = 0 * lengths - 1 if last is None else _last(_bound(last, dtype), lengths)
        count = (begin - end + (-step - 1)) // -step
    count = where(count < 0, cast(0, dtype), count)
    places, splits = partitions.joined_ranges(starts + begin, count, step)
    return RaggedTensor(gather_rows(x.values, places), splits)


def _bound(value: Any, dtype: Any) -> Tensor:
    return cast(convert_to_tensor(value), dtype)


def _last(index: Tensor, size: Tensor) -> Tensor:
    """An index of a slice that goes backwards: from -1, before the first element, to the last."""
    index = where(index < 0, index + size, index)
    return where(index < -1, cast(-1, size.dtype), where(index >= size, size - 1, index))


# -- by numbers ----------------------------------------------------------------------------------


def gather_rows(x: Any, indices: Tensor) -> Any:
    """The rows of a tensor or ragged tensor with the numbers of a vector."""
    if isinstance(x, Tensor):
        return gather_tensor(x, indices)
    starts, limits = (
        gather_tensor(x.row_splits[:-1], indices),
        gather_tensor(x.row_splits[1:], indices),
    )
    return rows_between(x.values, starts, limits, x._uniform)


# -- by masks ------------------------------------------------------------------------------------


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The elements where a mask is True, in the rows that they are in.

    Args:
        data: a tensor, or a ragged one.
        mask: bools of a shape that the shape of `data` begins with; its last axis is left out row
            by row, so the result of a mask with more than one axis is ragged.
    """
    data, mask = _either(data), _either(mask, dtypes.bool)
    if isinstance(mask, Tensor):
        if mask.ndim == 0:
            raise ValueError(f"boolean_mask: mask cannot be scalar{at(user_origin())}")
        if mask.ndim > 1:
            mask = RaggedTensor.from_tensor(mask, ragged_rank=mask.ndim - 1)
    elif mask.flat_values.ndim > 1:  # its inner axes leave elements out, too
        inner = mask.flat_values
        mask = mask.with_flat_values(RaggedTensor.from_tensor(inner, ragged_rank=inner.ndim - 1))
    if isinstance(mask, Tensor):
        if isinstance(data, Tensor):
            return mask_tensor(data, mask)
        kept = mask_tensor(range_(data.nrows()), mask)
        return gather_rows(data, kept)
    if isinstance(data, Tensor):
        data = RaggedTensor.from_tensor(
            data, ragged_rank=mask.ragged_rank, row_splits_dtype=mask.row_splits.dtype
        )
    partitions.same_splits(data.row_splits, mask.row_splits)
    values = boolean_mask(data.values, mask.values)
    if isinstance(mask.values, RaggedTensor):
        return RaggedTensor(values, data.row_splits)
    counts = row_sums(cast(mask.values, data.row_splits.dtype), mask.row_splits)
    return RaggedTensor(values, partitions.splits_of_lengths(counts))


def row_sums(values: Tensor, splits: Tensor) -> Tensor:
    """The sum of integers in each row, by their running sums."""
    running = partitions.splits_of_lengths(values)
    return gather_tensor(running, splits[1:]) - gather_tensor(running, splits[:-1])


def _either(value: Any, dtype: Any = None) -> Any:
    return value if isinstance(value, RaggedTensor) else convert_to_tensor(value, dtype)
