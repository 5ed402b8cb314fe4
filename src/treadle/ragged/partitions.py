"""How values are shared out among rows: offsets, lengths, and the row of each value.

A partition of n values into r rows is a vector of r + 1 offsets (`row_splits`): row i has the
values from ``splits[i]`` to ``splits[i + 1]``. Everything here is arithmetic on such vectors, so it
runs in programs as well.
"""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops import asserts
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gather
from treadle.ops.reductions.reduction import reduce_all
from treadle.ops.reductions.scan import cumsum
from treadle.ops.shaping.creation import zeros
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.ranges import range as range_
from treadle.ops.statistics.sorting import searchsorted


def as_offsets(value: Any, dtype: Any, what: str) -> Tensor:
    """A vector of int32 or int64; int64 where neither the value nor `dtype` says which."""
    tensor = value if isinstance(value, Tensor) else None
    if tensor is None:
        tensor = convert_to_tensor(value, dtype_hint=dtypes.int64)
    if dtype is None and isinstance(value, list | tuple):
        dtype = dtypes.int64  # whatever the tensors are that it may hold
    wanted = dtypes.as_dtype(dtype) if dtype is not None else tensor.dtype
    if wanted not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"{what} must be int32 or int64, not {wanted.name}{at(user_origin())}")
    if tensor.ndim != 1:
        raise ValueError(
            f"{what} must be a vector, not a tensor of shape {tensor.shape}{at(user_origin())}"
        )
    return cast(tensor, wanted)


def count_of(values: Any, dtype: DType) -> Tensor:
    """How many rows a tensor, or a ragged one, has."""
    if isinstance(values, Tensor):
        return dims_tensor(values.dims[0], dtype)
    return cast(values.nrows(), dtype)


def splits_of_lengths(lengths: Tensor) -> Tensor:
    return concat([zeros([1], lengths.dtype), cumsum(lengths)], 0)


def lengths_of(splits: Tensor) -> Tensor:
    return splits[1:] - splits[:-1]


def splits_of_row_ids(row_ids: Tensor, nrows: Tensor) -> Tensor:
    """The offsets where the row of each value is given, in order."""
    return cast(searchsorted(row_ids, range_(nrows + 1)), row_ids.dtype)


def row_ids(splits: Tensor, count: Tensor) -> Tensor:
    """The row of each of `count` values."""
    return cast(searchsorted(splits[1:], range_(count), side="right"), splits.dtype)


def positions(splits: Tensor, count: Tensor) -> Tensor:
    """The place of each value in its row."""
    return range_(count) - gather(splits, row_ids(splits, count))


def joined_ranges(starts: Tensor, lengths: Tensor, step: Any = 1) -> tuple[Tensor, Tensor]:
    """The numbers ``start, start + step, ...`` of all rows one after another, and their offsets."""
    splits = splits_of_lengths(lengths)
    count = splits[-1]
    rows = row_ids(splits, count)
    return gather(starts, rows) + (range_(count) - gather(splits, rows)) * step, splits


def clipped(index: Tensor, size: Tensor) -> Tensor:
    """An index of Python's slices into rows of `size`: negative ones count from the end."""
    index = where(index < 0, index + size, index)
    zero = zeros([], size.dtype)
    return where(index < zero, zero, where(index > size, size, index))


def require(holds: Tensor, message: str) -> None:
    """An InvalidArgumentError where a bool is false: now, or when the program runs."""
    if holds.is_symbolic:
        asserts.assert_equal(holds, True, message=message)
    elif not bool(holds):
        raise InvalidArgumentError(None, None, f"{message}{at(user_origin())}")


def check_splits(splits: Tensor, count: Tensor) -> None:
    """An error where offsets do not start at 0, decrease, or do not end at the number of values.

    Raises:
        InvalidArgumentError: that is so.
    """
    if splits.dims[0] == 0:
        raise InvalidArgumentError(
            None, None, f"row_splits needs at least one offset, the 0{at(user_origin())}"
        )
    require(equal(splits[0], 0), "Arguments to from_row_splits do not form a valid RaggedTensor: "
            "row_splits must start with 0")  # fmt: skip
    require(reduce_all(lengths_of(splits) >= 0), "Arguments to from_row_splits do not form a valid "
            "RaggedTensor: row_splits must not decrease")  # fmt: skip
    require(equal(splits[-1], count), "Arguments to from_row_splits do not form a valid "
            "RaggedTensor: row_splits must end with the number of values")  # fmt: skip


def same_splits(a: Tensor, b: Tensor) -> None:
    """An error where two partitions differ.

    Raises:
        InvalidArgumentError: they do.
    """
    if a is b:
        return
    message = "Inputs must have identical ragged splits"
    known = isinstance(a.dims[0], int) and isinstance(b.dims[0], int)
    if known and a.dims[0] != b.dims[0]:
        raise InvalidArgumentError(None, None, f"{message}{at(user_origin())}")
    if a.is_symbolic or b.is_symbolic:
        asserts.assert_equal(a, cast(b, a.dtype), message=message)
    else:
        require(reduce_all(equal(a, cast(b, a.dtype))), message)
