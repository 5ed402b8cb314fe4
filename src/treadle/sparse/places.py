"""The places of sparse elements: as single numbers, in order, moved and chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops import asserts
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor, elements_of, resolve
from treadle.ops.elementwise.arithmetic import maximum, minimum
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.gather import gather, unsorted_segment_sum
from treadle.ops.indexing.masks import boolean_mask
from treadle.ops.indexing.segments import unsorted_segment_max
from treadle.ops.reductions.reduction import reduce_all, reduce_min, reduce_prod
from treadle.ops.reductions.scan import cumsum
from treadle.ops.shaping.creation import fill, zeros
from treadle.ops.shaping.joining import concat as concat_tensors
from treadle.ops.shaping.joining import stack
from treadle.ops.shaping.ranges import range as range_
from treadle.ops.statistics.sorting import argsort
from treadle.sparse.tensor import SparseTensor


def invalid(text: str) -> InvalidArgumentError:
    """The error for arguments that do not fit, with the user's line."""
    return InvalidArgumentError(None, None, f"{text}{at(user_origin())}")


def as_sparse(value: Any) -> SparseTensor:
    """A sparse tensor; TypeError for anything else but its arrays."""
    if isinstance(value, SparseTensor):
        return value
    if isinstance(value, tuple) and len(value) == 3:
        return SparseTensor(*value)
    raise TypeError(f"Input must be a SparseTensor, not {type(value).__name__}{at(user_origin())}")


def rank_of(x: SparseTensor) -> int:
    """How many axes there are; ValueError where that is not known."""
    size: int | None = x.dense_shape.shape[0]
    if size is None:
        raise ValueError(f"The rank of the sparse tensor is not known{at(user_origin())}")
    return size


def axis_of(axis: Any, rank: int) -> int:
    number = int(axis)
    if not -rank <= number < rank:
        raise invalid(f"axis={number} is out of bounds for a rank of {rank}")
    return number % rank


def sizes_of(x: SparseTensor) -> list[Tensor]:
    """The size of each axis: as constants where they are known."""
    known = x.shape
    return [
        x.dense_shape[i] if known.rank is None or known.exact[i] is None or known[i] is None
        else cast(convert_to_tensor(known[i]), dtypes.int64)
        for i in range(rank_of(x))
    ]  # fmt: skip


def numbered(indices: Tensor, sizes: Sequence[Tensor]) -> Tensor:
    """Each place as one number, in the order of the rows."""
    number = zeros([dims_tensor(indices.dims[0], dtypes.int64)], dtypes.int64)
    for axis, size in enumerate(sizes):
        number = number * size + indices[:, axis]
    return number


def places_of(numbers: Tensor, sizes: Sequence[Tensor]) -> Tensor:
    """The places with these numbers."""
    columns: list[Tensor] = []
    for size in reversed(sizes):
        divisor = maximum(size, cast(1, dtypes.int64))
        columns.append(numbers % divisor)
        numbers = numbers // divisor
    if not columns:
        return zeros([dims_tensor(numbers.dims[0], dtypes.int64), 0], dtypes.int64)
    return stack(columns[::-1], 1)


def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The elements in the order of the rows."""
    x = as_sparse(sp_input)
    return _sorted_by(x, numbered(x.indices, sizes_of(x)))


def _sorted_by(x: SparseTensor, numbers: Tensor) -> SparseTensor:
    """The elements in the order of their numbers; those of one number in the order that they
    have."""
    order = argsort(numbers, stable=True)
    indices, values = gather(x.indices, order), gather(x.values, order)
    return SparseTensor(indices, values, x.dense_shape)._shaped_like(x)


def retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The elements where a vector of bools is True."""
    x, kept = as_sparse(sp_input), convert_to_tensor(to_retain, dtypes.bool)
    indices, values = boolean_mask(x.indices, kept), boolean_mask(x.values, kept)
    return SparseTensor(indices, values, x.dense_shape)._shaped_like(x)


def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """The axes in another order, reversed without `perm`; the elements in the order of the rows."""
    x = as_sparse(sp_input)
    rank = rank_of(x)
    order = list(range(rank))[::-1] if perm is None else [int(a) for a in _numbers(perm)]
    sizes = sizes_of(x)
    indices = stack([x.indices[:, a] for a in order], 1)
    return reorder(
        _shaped(indices, x.values, [sizes[a] for a in order], [x.shape[a] for a in order])
    )


def _numbers(value: Any) -> list[Any]:
    return value.numpy().tolist() if isinstance(value, Tensor) else list(value)


def _shaped(
    indices: Tensor, values: Tensor, sizes: Sequence[Tensor], known: Sequence[Any] | None = None
) -> SparseTensor:
    """A sparse tensor of a shape given as single sizes, of which some may be known."""
    shape = stack(list(sizes)) if sizes else zeros([0], dtypes.int64)
    found = SparseTensor(indices, values, shape)
    if known is not None:
        found.set_shape(list(known))
    return found


def _known_size(size: Tensor) -> int | None:
    """A size, where the trace knows it."""
    found = resolve(size)
    value = None if found is None else found[()]
    return int(value) if isinstance(value, int | np.integer) else None


def reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The same elements in another shape, of which one size may be -1.

    Raises:
        InvalidArgumentError: the shape has another number of elements, or 0 beside -1.
    """
    x = as_sparse(sp_input)
    old = sizes_of(x)
    new = [cast(size, dtypes.int64) for size in elements_of(shape)]
    known = [_known_size(s) for s in new]
    total = reduce_prod(stack(old)) if old else cast(1, dtypes.int64)
    if -1 in known:
        others = [s for s, k in zip(new, known, strict=True) if k != -1]
        rest = reduce_prod(stack(others)) if others else cast(1, dtypes.int64)
        if None in known or 0 in known:
            checked(rest > 0, "Cannot tell the size -1 of a sparse tensor beside a size of 0")
        new[known.index(-1)] = total // maximum(rest, cast(1, dtypes.int64))
    numbers = numbered(x.indices, old)
    static = [None if k == -1 else k for k in known]
    inside: list[Any] = list(x.shape)
    if known.count(-1) == 1 and None not in (*known, *inside) and 0 not in known:
        static[known.index(-1)] = math.prod(inside) // -math.prod(d or 0 for d in known)
    whole = reduce_prod(stack(new)) if new else cast(1, dtypes.int64)
    checked(total == whole, "Cannot reshape a sparse tensor to a shape of another size")
    return _shaped(places_of(numbers, new), x.values, new, static)


def expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """A new axis of size 1, the last one without `axis`."""
    x = as_sparse(sp_input)
    rank = rank_of(x)
    place = axis_of(-1 if axis is None else axis, rank + 1)
    column = zeros([dims_tensor(x.indices.dims[0], dtypes.int64), 1], dtypes.int64)
    indices = concat_tensors([x.indices[:, :place], column, x.indices[:, place:]], 1)
    sizes, known = sizes_of(x), list(x.shape)
    sizes.insert(place, cast(1, dtypes.int64))
    known.insert(place, 1)
    return _shaped(indices, x.values, sizes, known)


def slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The part that begins at `start` and has at most the given sizes.

    Raises:
        InvalidArgumentError: a size is negative.
        ValueError: there are other numbers of positions and sizes than axes.
    """
    x = as_sparse(sp_input)
    first = [cast(s, dtypes.int64) for s in elements_of(start)]
    count = [cast(s, dtypes.int64) for s in elements_of(size)]
    if count:
        checked(reduce_min(stack(count)) >= 0, "A size of a part of a sparse tensor is negative")
    return _part(x, first, count)


def _part(x: SparseTensor, first: list[Tensor], count: list[Tensor]) -> SparseTensor:
    """See `slice`."""
    kept: Any = None
    sizes = []
    for axis, (begin, length, whole) in enumerate(zip(first, count, sizes_of(x), strict=True)):
        column = x.indices[:, axis]
        inside = (column >= begin) & (column < begin + length)
        kept = inside if kept is None else kept & inside
        sizes.append(maximum(minimum(length, whole - begin), cast(0, dtypes.int64)))
    chosen = retain(x, kept)
    return _shaped(chosen.indices - stack(first), chosen.values, sizes)


def concat(
    axis: Any, sp_inputs: Any, expand_nonconcat_dims: bool = False, name: str | None = None
) -> SparseTensor:
    """Sparse tensors behind one another along an axis.

    Args:
        expand_nonconcat_dims: other axes may differ in size and get the largest one.

    Raises:
        InvalidArgumentError: other axes differ in size, and that is known.
    """
    parts = [as_sparse(x) for x in sp_inputs]
    rank = rank_of(parts[0])
    place = axis_of(axis, rank)
    if len(parts) == 1:
        return parts[0]
    sizes = sizes_of(parts[0])
    offset, moved = sizes[place], [parts[0].indices]
    for part in parts[1:]:
        own = sizes_of(part)
        column = [cast(0, dtypes.int64)] * rank
        column[place] = offset
        moved.append(part.indices + stack(column))
        offset = offset + own[place]
        for a in range(rank):
            if a != place and expand_nonconcat_dims:
                sizes[a] = maximum(sizes[a], own[a])
            elif a != place:
                checked(
                    sizes[a] == own[a],
                    f"concat: the sizes of axis {a} differ; expand_nonconcat_dims makes them equal",
                )
    sizes[place] = offset
    values = concat_tensors([p.values for p in parts], 0)
    return reorder(_shaped(concat_tensors(moved, 0), values, sizes))


def split(
    sp_input: Any = None, num_split: Any = None, axis: Any = None, name: str | None = None
) -> list[SparseTensor]:
    """Parts along an axis, of equal sizes; the first ones have one more where that does not go.

    Raises:
        InvalidArgumentError: there are more parts than the axis has places, or none.
    """
    x, count = as_sparse(sp_input), int(num_split)
    place = axis_of(axis, rank_of(x))
    sizes = sizes_of(x)
    if count < 1:
        raise invalid(f"a sparse tensor has no {count} parts")
    checked(sizes[place] >= count, f"an axis of a sparse tensor is too short for {count} parts")
    each, more = sizes[place] // count, sizes[place] % count
    begin = cast(0, dtypes.int64)
    found = []
    for i in range(count):
        length = each + cast(more > i, dtypes.int64)
        starts = [cast(0, dtypes.int64)] * len(sizes)
        lengths = list(sizes)
        starts[place], lengths[place] = begin, length
        found.append(_part(x, starts, lengths))
        begin = begin + length
    return found


def reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same elements in a larger whole; without `new_shape` in the smallest one.

    Raises:
        InvalidArgumentError: the new shape does not hold all elements.
    """
    x = as_sparse(sp_input)
    if new_shape is None:
        smallest = unsorted_segment_max(
            concat_tensors([x.indices, zeros([1, rank_of(x)], dtypes.int64) - 1], 0),
            zeros([dims_tensor(x.indices.dims[0], dtypes.int64) + 1], dtypes.int64), 1,
        )  # fmt: skip
        return SparseTensor(x.indices, x.values, smallest[0] + 1)
    sizes = cast(convert_to_tensor(new_shape), dtypes.int64)
    checked(reduce_all(sizes >= x.dense_shape), "reset_shape: the new shape is smaller")
    return SparseTensor(x.indices, x.values, new_shape)


def checked(holds: Tensor, message: str) -> None:
    """An InvalidArgumentError where a bool is false: now, or when the program runs."""
    if holds.is_symbolic:
        asserts.assert_equal(holds, True, message=message)
    elif not bool(holds):
        raise invalid(message)


def summed(x: SparseTensor) -> SparseTensor:
    """Elements in order, those at one place added up."""
    x = reorder(x)
    numbers = numbered(x.indices, sizes_of(x))
    first = concat_tensors([numbers[:1] * 0 == 0, numbers[1:] != numbers[:-1]], 0)
    groups = cumsum(cast(first, dtypes.int64)) - 1
    indices = boolean_mask(x.indices, first)
    values = unsorted_segment_sum(x.values, groups, dims_tensor(indices.dims[0], dtypes.int64))
    return SparseTensor(indices, values, x.dense_shape)._shaped_like(x)


def fill_empty_rows(
    sp_input: Any, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """A default at the beginning of rows without elements, and which rows these are. The elements
    of a row keep their order."""
    x = as_sparse(sp_input)
    rows, count = x.indices[:, 0], sizes_of(x)[0]
    ones = cast(rows * 0 + 1, dtypes.int64)
    empty = unsorted_segment_sum(ones, rows, count) == 0
    more = boolean_mask(range_(count), empty)
    zero = zeros([dims_tensor(more.dims[0], dtypes.int64), rank_of(x) - 1], dtypes.int64)
    places = concat_tensors([more[:, None], zero], 1)
    default = convert_to_tensor(default_value, x.dtype)
    filler = fill([dims_tensor(more.dims[0], dtypes.int64)], default)
    joined = SparseTensor(
        concat_tensors([x.indices, places], 0), concat_tensors([x.values, filler], 0),
        x.dense_shape,
    )  # fmt: skip
    return _sorted_by(joined._shaped_like(x), joined.indices[:, 0]), empty
