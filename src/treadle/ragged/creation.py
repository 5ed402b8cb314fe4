"""Ragged tensors of Python values, and of ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops import conversion
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import not_equal
from treadle.ops.indexing.gather import gather
from treadle.ops.reductions.reduction import reduce_all
from treadle.ops.reductions.scan import cumsum
from treadle.ops.shaping.creation import zeros
from treadle.ops.shaping.ranges import range as range_
from treadle.ops.shaping.reshaping import broadcast_to, expand_dims, reshape
from treadle.ops.statistics.sorting import argsort
from treadle.ragged import partitions, shaping
from treadle.ragged.partitions import same_splits
from treadle.ragged.rows import gather_rows
from treadle.ragged.tensor import RaggedTensor


def constant(
    pylist: Any, dtype: Any = None, ragged_rank: int | None = None, inner_shape: Any = None,
    name: str | None = None, row_splits_dtype: Any = dtypes.int64,
) -> Any:  # fmt: skip
    """A ragged tensor of nested lists whose lengths may differ.

    Args:
        pylist: lists, tuples and arrays; all elements are equally deep.
        dtype: of the elements.
        ragged_rank: how many axes are ragged; all but the first and those of `inner_shape` if it is
            omitted.
        inner_shape: the shape of the elements of the innermost ragged axis.
        row_splits_dtype: of the offsets.

    Returns:
        A ragged tensor, or a tensor for a scalar and `ragged_rank` 0.

    Raises:
        ValueError: elements of different depths, or another depth than the ragged rank needs.
        TypeError: a list without ragged axes whose elements do not fill `inner_shape`.
    """
    values = _as_lists(pylist)
    scalar, deepest = _depths(values)
    if scalar is not None and deepest > scalar:
        raise ValueError(
            f"constant: all scalar values must have the same nesting depth, got {pylist!r}"
            f"{at(user_origin())}"
        )
    if not isinstance(values, list):
        if ragged_rank or inner_shape:
            raise ValueError(f"constant: a scalar has no axes{at(user_origin())}")
        return conversion.constant(values, dtype)
    if ragged_rank is not None and ragged_rank < 0:
        raise ValueError(f"constant: ragged_rank {ragged_rank} is negative{at(user_origin())}")
    given = inner_shape
    if ragged_rank is None:
        ragged_rank = max(0, deepest - 1 - (0 if inner_shape is None else len(inner_shape)))
    elif scalar is not None and ragged_rank >= deepest:
        raise ValueError(
            f"constant: lists nested {deepest} deep have no ragged_rank {ragged_rank}"
            f"{at(user_origin())}"
        )
    elif inner_shape is None:
        inner_shape = _inner_shape(values, ragged_rank)
    if ragged_rank == 0:
        return _without_rows(pylist, dtype, given)
    nested = []
    for _ in range(ragged_rank):
        nested.append(np.cumsum([0, *map(_length, values)]))
        values = [item for row in values for item in row]
    shape = (len(values), *(inner_shape or ()))
    flat = conversion.constant(values, dtype, shape) if values else _nothing(dtype, shape)
    splits = dtypes.as_dtype(row_splits_dtype)
    offsets = [conversion.constant(part, splits) for part in nested]
    return RaggedTensor.from_nested_row_splits(flat, offsets, validate=False)


def _without_rows(values: Any, dtype: Any, shape: Any) -> Tensor:
    found: Tensor = conversion.constant(values, dtype)
    if shape is None or found.shape == tuple(shape):
        return found
    if found.shape.num_elements() != math.prod(shape):
        raise TypeError(
            f"constant: {values!r} has {found.shape.num_elements()} elements, inner_shape {shape} "
            f"another number{at(user_origin())}"
        )
    return reshape(found, shape)


def _nothing(dtype: Any, shape: tuple[int, ...]) -> Tensor:
    return zeros(shape, dtypes.float32 if dtype is None else dtype)


def _length(row: Any) -> int:
    if not isinstance(row, list):
        raise ValueError(f"constant: {row!r} stands where a list is needed{at(user_origin())}")
    return len(row)


def _as_lists(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype != object else [_as_lists(v) for v in value]
    if isinstance(value, Tensor | RaggedTensor):
        found = value.to_list() if isinstance(value, RaggedTensor) else value.numpy().tolist()
        return found
    return [_as_lists(v) for v in value] if isinstance(value, list | tuple) else value


def _depths(value: Any) -> tuple[int | None, int]:
    """How deep elements are, None where there are none; how deep lists are nested."""
    if not isinstance(value, list):
        return 0, 0
    scalar: int | None = None
    deepest = 1
    for item in value:
        depth, deep = _depths(item)
        if depth is not None:
            if scalar is not None and scalar != depth + 1:
                raise ValueError(
                    f"constant: all scalar values must have the same nesting depth"
                    f"{at(user_origin())}"
                )
            scalar = depth + 1
        deepest = max(deepest, deep + 1)
    return scalar, deepest


def _inner_shape(values: Any, ragged_rank: int) -> tuple[int, ...]:
    """The shape of the elements behind so many ragged axes, as the first one has it."""
    items = values
    for _ in range(ragged_rank):
        items = [item for row in items for item in row]
    shape = []
    first = items
    while isinstance(first, list) and first and isinstance(first[0], list):
        shape.append(len(first[0]))
        first = first[0]
    return tuple(shape)


_TOO_MANY = "range: the rows have more numbers than their offsets can count"


def ragged_range(
    starts: Any, limits: Any = None, deltas: Any = 1, dtype: Any = None, name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:  # fmt: skip
    """The numbers of Python's ``range`` of each row.

    Args:
        starts: scalar or vector; the limits where `limits` is omitted.
        limits: scalar or vector.
        deltas: the steps, scalar or vector.
        dtype: of the numbers.
        row_splits_dtype: of the offsets.

    Raises:
        InvalidArgumentError: a step of 0, or more numbers than `row_splits_dtype` can count.
    """
    if limits is None:
        starts, limits = 0, starts
    parts = _of_one_dtype([starts, limits, deltas], dtype)
    sizes = [p.dims[0] for p in parts if p.ndim]
    if any(p.ndim > 1 for p in parts):
        raise ValueError(
            f"range: starts, limits and deltas are scalars or vectors{at(user_origin())}"
        )
    count = dims_tensor(sizes[0], dtypes.int64) if sizes else cast(1, dtypes.int64)
    first, last, step = (p if p.ndim else broadcast_to(p, [count]) for p in parts)
    offsets = dtypes.as_dtype(row_splits_dtype)
    partitions.require(reduce_all(not_equal(step, 0)), "range: a step is 0")
    if first.dtype.is_floating:
        steps = _ceil((last - first) / step)
        most = cast(dtypes.int64.max, steps.dtype)  # rounded up: 2**63
        partitions.require(reduce_all(steps < most), _TOO_MANY)
    else:  # the distance between int32 may be no int32
        start, end, each = (cast(p, dtypes.int64) for p in (first, last, step))
        steps = -((start - end) // each)
    lengths = maximum(cast(steps, dtypes.int64), cast(0, dtypes.int64))
    total = cumsum(lengths)
    most = cast(offsets.max, dtypes.int64)
    partitions.require(reduce_all((total >= 0) & (total <= most)), _TOO_MANY)
    splits = partitions.splits_of_lengths(cast(lengths, offsets))
    total = splits[-1]
    rows = partitions.row_ids(splits, total)
    number = cast(range_(total) - gather(splits, rows), first.dtype)
    return RaggedTensor(gather(first, rows) + number * gather(step, rows), splits)


def _of_one_dtype(values: Sequence[Any], dtype: Any) -> list[Tensor]:
    tensors = [convert_to_tensor(v, dtype_hint=dtype) for v in values]
    if dtype is not None:
        return [cast(t, dtype) for t in tensors]
    order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
    typed = [t.dtype for t in tensors if t.dtype in order]
    widest = max(typed, key=order.index) if typed else dtypes.int32
    return [cast(t, widest) for t in tensors]


def _ceil(x: Tensor) -> Tensor:
    return -((-x) // 1)


def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The row of each value, from the offsets of the rows."""
    offsets = partitions.as_offsets(splits, None, "splits")
    ids = partitions.row_ids(offsets, offsets[-1])
    return ids if out_type is None else cast(ids, out_type)


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Tensor:
    """The offsets of the rows, from the row of each value."""
    ids = convert_to_tensor(segment_ids)
    if ids.dtype not in (dtypes.int32, dtypes.int64):
        ids = cast(ids, dtypes.int64)
    found = RaggedTensor.from_value_rowids(ids, ids, num_segments).row_splits
    return found if out_type is None else cast(found, out_type)


def stack_dynamic_partitions(
    data: Any, partitions: Any, num_partitions: Any, name: str | None = None
) -> RaggedTensor:
    """The rows of `data` with the number 0, 1, ... in `partitions`, each group as a row.

    Args:
        data: a tensor, whose first axes are those of `partitions`, or a ragged tensor.
        partitions: integers; ragged ones number the elements of ragged data of the same rows.
        num_partitions: how many groups there are.

    Raises:
        ValueError: ragged data and numbers that do not fit it.
    """
    if not isinstance(data, RaggedTensor):
        data = convert_to_tensor(data)
    if not isinstance(partitions, RaggedTensor):
        partitions = convert_to_tensor(partitions)
    groups = convert_to_tensor(num_partitions)
    if groups.ndim != 0:
        raise ValueError(
            f"stack_dynamic_partitions: num_partitions is one number, not of shape {groups.shape}"
            f"{at(user_origin())}"
        )
    if partitions.shape.rank == 0:  # all data is one row of one group
        whole = isinstance(data, RaggedTensor)
        data = shaping.stack([data]) if whole else expand_dims(data, 0)
        partitions = reshape(partitions, [1])
    ragged = next((x for x in (data, partitions) if isinstance(x, RaggedTensor)), None)
    while partitions.shape.rank > 1:
        data, partitions = _without_first_axis(data, partitions)
    if not isinstance(data, RaggedTensor):
        partitions.shape.assert_is_compatible_with(data.shape[:1])
    order = argsort(partitions, stable=True)
    ids = gather(partitions, order)
    if ragged is not None:
        ids = cast(ids, ragged.row_splits.dtype)
    return RaggedTensor.from_value_rowids(gather_rows(data, order), ids, groups)


def _without_first_axis(data: Any, numbers: Any) -> tuple[Any, Any]:
    """Rows and their numbers, whose first two axes are one afterwards."""
    if not isinstance(data, RaggedTensor) and not isinstance(numbers, RaggedTensor):
        numbers.shape.assert_is_compatible_with(data.shape[: numbers.ndim])
    ragged = [x.row_splits.dtype for x in (data, numbers) if isinstance(x, RaggedTensor)]
    offsets = ragged[0] if ragged else dtypes.int64
    rows, ids = (
        x
        if isinstance(x, RaggedTensor)
        else RaggedTensor.from_tensor(x, ragged_rank=1, row_splits_dtype=offsets)
        for x in (data, numbers)
    )
    same_splits(rows.row_splits, ids.row_splits)
    return rows.values, ids.values
