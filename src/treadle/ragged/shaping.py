"""Ragged tensors joined, repeated and taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor, elements_of
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal
from treadle.ops.indexing.gather import gather
from treadle.ops.indexing.transposing import transpose
from treadle.ops.reductions.reduction import reduce_any
from treadle.ops.shaping import joining, reshaping
from treadle.ops.shaping.joining import concat as concat_tensors
from treadle.ops.shaping.ranges import range as range_
from treadle.ops.shaping.reshaping import reshape
from treadle.ragged import partitions
from treadle.ragged.partitions import lengths_of
from treadle.ragged.rows import gather_rows, rows_between
from treadle.ragged.tensor import RaggedTensor


def _axis(axis: Any, rank: int) -> int:
    number = int(axis)
    if not -rank <= number < rank:
        raise ValueError(f"axis={number} is out of bounds for a rank of {rank}{at(user_origin())}")
    return number % rank


def as_ragged(value: Any, ragged_rank: int, dtype: Any) -> RaggedTensor:
    """A value with a number of ragged axes."""
    if not isinstance(value, RaggedTensor):
        tensor = convert_to_tensor(value)
        return RaggedTensor.from_tensor(tensor, ragged_rank=ragged_rank, row_splits_dtype=dtype)
    ragged: RaggedTensor = value.with_row_splits_dtype(dtype)
    if ragged.ragged_rank == ragged_rank:
        return ragged
    deeper = as_ragged(ragged.values, ragged_rank - 1, dtype)
    return RaggedTensor(deeper, ragged.row_splits, ragged._uniform)


def _alike(values: Sequence[Any]) -> list[Any]:
    """Values with the ragged axes that any of them has, and offsets of one dtype."""
    ragged = [v for v in values if isinstance(v, RaggedTensor)]
    if not ragged:
        return [convert_to_tensor(v) for v in values]
    most = max(v.ragged_rank for v in ragged)
    wide = any(v.row_splits.dtype is dtypes.int64 for v in ragged)
    return [as_ragged(v, most, dtypes.int64 if wide else dtypes.int32) for v in values]


def concat(values: Any, axis: Any, name: str | None = None) -> Any:
    """Tensors, of which some are ragged, behind one another along an axis."""
    parts = _alike(values if isinstance(values, list | tuple) else [values])
    if len(parts) == 1:
        return parts[0]
    return _joined(parts, _axis(axis, len(parts[0].shape)))


def _joined(parts: Sequence[Any], axis: int) -> Any:
    if isinstance(parts[0], Tensor):
        return concat_tensors(list(parts), axis)
    if axis == 0:
        shifted, offset = [parts[0].row_splits], parts[0].row_splits[-1]
        for part in parts[1:]:
            shifted.append(part.row_splits[1:] + offset)
            offset = offset + part.row_splits[-1]
        return RaggedTensor(_joined([p.values for p in parts], 0), concat_tensors(shifted, 0))
    if axis == 1:
        return _side_by_side(parts)
    for part in parts[1:]:
        partitions.same_splits(parts[0].row_splits, part.row_splits)
    return parts[0].with_values(_joined([p.values for p in parts], axis - 1))


def _side_by_side(parts: Sequence[RaggedTensor]) -> RaggedTensor:
    """The rows with equal numbers behind one another."""
    count, rows = len(parts), parts[0].nrows()
    for part in parts[1:]:
        partitions.require(part.nrows() == rows, "concat: the numbers of rows differ")
    below = _joined(parts, 0)
    # Row r of part p is row p * rows + r below, and has to come at r * count + p.
    order = reshape(transpose(reshape(range_(rows * count), [count, -1])), [-1])
    mixed = gather_rows(below, order)
    return RaggedTensor(mixed.values, mixed.row_splits[::count])


def stack(values: Any, axis: Any = 0, name: str | None = None) -> Any:
    """Tensors, of which some are ragged or have sizes of their own, along a new axis."""
    given = [values] if isinstance(values, RaggedTensor) else values
    parts = [v if isinstance(v, RaggedTensor) else convert_to_tensor(v) for v in given]
    rank = len(parts[0].shape)
    where_ = _axis(axis, rank + 1)
    if rank == 0 or all(isinstance(p, Tensor) and len(p.shape) <= 1 and where_ == 0 for p in parts):
        return _stacked_vectors(parts)
    if where_ == 0:
        alike = _alike(parts) if _any_ragged(parts) else _rows_of_tensors(parts)
        lengths = [partitions.count_of(p, dtypes.int64) for p in alike]
        below = _joined(alike, 0)
        dtype = below.row_splits.dtype
        return RaggedTensor(
            below, cast(partitions.splits_of_lengths(joining.stack(lengths)), dtype)
        )
    return concat([expand_dims(p, where_) for p in parts], where_)


def _any_ragged(parts: Sequence[Any]) -> bool:
    return any(isinstance(p, RaggedTensor) for p in parts)


def _rows_of_tensors(parts: Sequence[Any]) -> list[RaggedTensor]:
    return [RaggedTensor.from_tensor(p, ragged_rank=len(p.shape) - 1) for p in parts]


def _stacked_vectors(parts: Sequence[Any]) -> Any:
    """Scalars as a vector, vectors of any lengths as the rows of a ragged tensor."""
    if not parts[0].ndim:
        return joining.stack(list(parts))
    lengths = joining.stack([dims_tensor(p.dims[0], dtypes.int32) for p in parts])
    return RaggedTensor(concat_tensors(list(parts), 0), partitions.splits_of_lengths(lengths))


def expand_dims(input: Any, axis: Any, name: str | None = None) -> Any:
    """A new axis of size 1."""
    if isinstance(input, Tensor):
        return reshaping.expand_dims(input, axis)
    x, rank = input, len(input.shape)
    number = int(axis)
    if not -rank - 1 <= number <= rank:
        raise ValueError(f"axis={number} is out of bounds for a rank of {rank}{at(user_origin())}")
    number %= rank + 1
    if number == 0:
        count = x.nrows()
        return RaggedTensor(x, range_(cast(2, count.dtype)) * count, x.shape[0])
    if number == 1:
        return RaggedTensor(x, range_(x.nrows() + 1), 1)
    return x.with_values(expand_dims(x.values, number - 1))


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Any:
    """Without axes of size 1."""
    if axis is None:
        raise ValueError(f"squeeze: Ragged.squeeze must have an axis argument{at(user_origin())}")
    axes = axis if isinstance(axis, list | tuple) else [axis]
    x = input
    for a in sorted({_axis(a, len(input.shape)) for a in axes}, reverse=True):
        x = _squeezed(x, a)
    return x


def _squeezed(x: Any, axis: int) -> Any:
    if isinstance(x, Tensor):
        return reshaping.squeeze(x, [axis])
    if axis == 0:
        partitions.require(x.nrows() == 1, "squeeze: the first axis has not size 1")
        return x.values
    if axis == 1:
        fits = reshape(lengths_of(x.row_splits), [-1]) == 1
        partitions.require(~reduce_any(~fits), "squeeze: the rows have not size 1")
        return x.values
    return x.with_values(_squeezed(x.values, axis - 1))


def tile(input: Any, multiples: Any, name: str | None = None) -> Any:
    """Copies along every axis."""
    counts = elements_of(multiples)
    return _tiled(input, [cast(c, input.row_splits.dtype) for c in counts])


def _tiled(x: Any, counts: Sequence[Tensor]) -> Any:
    if isinstance(x, Tensor):
        return reshaping.tile(x, joining.stack(list(counts)))
    dtype = x.row_splits.dtype
    inner = _tiled(x.values, [cast(1, dtype), *counts[2:]])
    rows = x.nrows()
    order = range_(rows * counts[0]) % maximum(rows, cast(1, dtype))
    tall = gather_rows(RaggedTensor(inner, x.row_splits, x._uniform), order)
    lengths = lengths_of(tall.row_splits)
    starts = partitions.row_ids(
        partitions.splits_of_lengths(lengths * 0 + counts[1]),
        partitions.count_of(tall, dtype) * counts[1],
    )
    wide = rows_between(
        tall.values, gather(tall.row_splits[:-1], starts), gather(tall.row_splits[1:], starts)
    )
    return RaggedTensor(wide.values, partitions.splits_of_lengths(lengths * counts[1]))


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Any:
    """The elements in reverse order along axes."""
    axes = axis if isinstance(axis, list | tuple) else [axis]
    x = tensor
    for a in axes:
        number = _axis(a, len(tensor.shape))
        x = x[(*[slice(None)] * number, slice(None, None, -1))]
    return x


def split(
    value: RaggedTensor, num_or_size_splits: Any, axis: Any = 0, num: int | None = None,
    name: str | None = None,
) -> list[Any]:  # fmt: skip
    """A ragged tensor cut along an axis that is not ragged: into a number of equal parts, or into
    parts of given sizes.

    Raises:
        ValueError: the axis is ragged, or the number of parts is not positive or not known.
        TypeError: sizes that are no integers, or no vector of them.
        InvalidArgumentError: the parts do not fit the axis, or a negative size.
    """
    number = _axis(axis, len(value.shape))
    given = convert_to_tensor(num_or_size_splits)
    if not given.dtype.is_integer or given.ndim > 1:
        raise TypeError(
            "split: num_or_size_splits must be an integer, or a vector of integers, not "
            f"{num_or_size_splits!r}{at(user_origin())}"
        )
    if not given.ndim and num_or_size_splits == 1:
        return [value]  # the rows of a ragged axis as well
    size = _size_of_axis(value, number)
    if given.ndim:
        count = given.shape[0] if num is None else num
        if count is None or given.shape[0] not in (None, count):
            raise ValueError(
                f"split: num={num} for sizes of shape {given.shape}: it must be their number"
                f"{at(user_origin())}"
            )
        if given.shape[0] is None:
            here = equal(dims_tensor(given.dims[0], dtypes.int64), count)
            partitions.require(here, f"split: there are not num={count} sizes")
        sizes = [given[i] for i in range(count)]
        partitions.require(~reduce_any(given < 0), "split: num_or_size_splits must be non-negative")
    else:
        count = int(num_or_size_splits)
        if count < 1:
            raise ValueError(
                f"split: num_or_size_splits must be at least 1, not {count}{at(user_origin())}"
            )
        sizes = [size // cast(count, size.dtype)] * count
    ends = [cast(0, size.dtype)]
    for part in sizes:
        ends.append(ends[-1] + cast(part, size.dtype))
    partitions.require(ends[-1] == size, f"split: the parts do not fill axis {number}")
    before = [slice(None)] * number
    return [value[(*before, slice(*place))] for place in zip(ends, ends[1:], strict=False)]


def _size_of_axis(x: Any, axis: int) -> Tensor:
    """The size of an axis that is not ragged; ValueError for others."""
    if isinstance(x, Tensor):
        return dims_tensor(x.dims[axis], dtypes.int64)
    if axis == 0:
        return cast(x.nrows(), dtypes.int64)
    if axis > 1:
        return _size_of_axis(x.values, axis - 1)
    if x.uniform_row_length is None:
        raise ValueError(f"split: the axis is ragged, its rows differ in length{at(user_origin())}")
    return cast(x.uniform_row_length, dtypes.int64)


def unstack(x: RaggedTensor) -> list[Any]:
    """The rows of an eager ragged tensor."""
    return [x[i] for i in range(int(x.nrows()))]
