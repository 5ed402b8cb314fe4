"""Sums and other reductions over the axes of ragged tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import exp, is_finite, log, sqrt, square, stop_gradient
from treadle.ops.elementwise.unary import round as round_
from treadle.ops.indexing.gather import gather, unsorted_segment_sum
from treadle.ops.indexing.segments import (
    unsorted_segment_max,
    unsorted_segment_min,
    unsorted_segment_prod,
)
from treadle.ops.reductions import reduction, scan
from treadle.ops.shaping.creation import ones_like
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.reshaping import reshape
from treadle.ragged import partitions
from treadle.ragged.elementwise import binary
from treadle.ragged.partitions import lengths_of
from treadle.ragged.shaping import expand_dims
from treadle.ragged.tensor import RaggedTensor

Segments = Callable[[Tensor, Tensor, Tensor], Tensor]


def _reducer(whole: Callable[..., Any], segments: Segments) -> Callable[..., Any]:
    """A reduction of ragged tensors.

    Args:
        whole: the reduction of tensors.
        segments: the reduction of rows with equal numbers.
    """

    def reduce(
        input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
    ) -> Any:
        x = input_tensor
        axes = _axes(axis, len(x.shape))
        if axes is None:
            found = whole(x.flat_values)
            return reshape(found, [1] * len(x.shape)) if keepdims else found
        for a in reversed(axes):
            x = _along(x, a, whole, segments)
        for a in axes if keepdims else ():
            x = expand_dims(x, a)
        return x

    return reduce


def _axes(axis: Any, rank: int) -> list[int] | None:
    """The axes in order; None for all."""
    if axis is None:
        return None
    if isinstance(axis, Tensor):
        axis = axis.numpy().tolist()
    given = [int(a) for a in axis] if isinstance(axis, list | tuple) else [int(axis)]
    if any(not -rank <= a < rank for a in given):
        raise ValueError(f"axis={axis} is out of bounds for a rank of {rank}{at(user_origin())}")
    axes = sorted({a % rank for a in given})
    return None if len(axes) == rank else axes


def _along(x: Any, axis: int, whole: Callable[..., Any], segments: Segments) -> Any:
    if isinstance(x, Tensor):
        return whole(x, axis)
    if axis == 0:
        longest = reduction.reduce_max(concat([lengths_of(x.row_splits), [0]], 0))
        columns = partitions.positions(x.row_splits, x._nvals())
        return _in_segments(x.values, columns, longest, segments)
    if axis == 1:
        return _in_segments(x.values, x.value_rowids(), x.nrows(), segments)
    return x.with_values(_along(x.values, axis - 1, whole, segments))


def _in_segments(values: Any, ids: Tensor, count: Tensor, segments: Segments) -> Any:
    """The rows with equal numbers put together element by element."""
    if isinstance(values, Tensor):
        return segments(values, ids, count)
    lengths = lengths_of(values.row_splits)
    longest = unsorted_segment_max(lengths, ids, count)
    longest = longest * cast(longest > 0, longest.dtype)  # 0 where nothing belongs to a row
    splits = partitions.splits_of_lengths(longest)
    places = gather(gather(splits[:-1], ids), values.value_rowids())
    places = places + partitions.positions(values.row_splits, values._nvals())
    return RaggedTensor(_in_segments(values.values, places, splits[-1], segments), splits)


def _all_segments(values: Tensor, ids: Tensor, count: Tensor) -> Tensor:
    return unsorted_segment_min(cast(values, dtypes.int32), ids, count) > 0


def _any_segments(values: Tensor, ids: Tensor, count: Tensor) -> Tensor:
    return unsorted_segment_max(cast(values, dtypes.int32), ids, count) > 0


def _logsumexp_segments(values: Tensor, ids: Tensor, count: Tensor) -> Tensor:
    largest = unsorted_segment_max(values, ids, count)
    largest = stop_gradient(where(is_finite(largest), largest, 0))
    return log(unsorted_segment_sum(exp(values - gather(largest, ids)), ids, count)) + largest


reduce_sum = _reducer(reduction.reduce_sum, unsorted_segment_sum)
reduce_prod = _reducer(reduction.reduce_prod, unsorted_segment_prod)
reduce_max = _reducer(reduction.reduce_max, unsorted_segment_max)
reduce_min = _reducer(reduction.reduce_min, unsorted_segment_min)
reduce_logsumexp = _reducer(reduction.reduce_logsumexp, _logsumexp_segments)
reduce_all = _reducer(reduction.reduce_all, _all_segments)
reduce_any = _reducer(reduction.reduce_any, _any_segments)


def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """The mean; of integers in float64."""
    x = _divisible(input_tensor)
    if _axes(axis, len(x.shape)) is None:
        found = reduction.reduce_mean(x.flat_values)
        return reshape(found, [1] * len(x.shape)) if keepdims else found
    total = reduce_sum(x, axis, keepdims)
    count = reduce_sum(x.with_flat_values(ones_like(x.flat_values)), axis, keepdims)
    if isinstance(total, RaggedTensor):
        return total.with_flat_values(total.flat_values / count.flat_values)
    return total / count


def _divisible(x: RaggedTensor) -> RaggedTensor:
    """Integers as the floats that a division of them gives."""
    flat = x.flat_values
    return x.with_flat_values(cast(flat, dtypes.float64)) if flat.dtype.is_integer else x


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """The mean of squares less the square of the mean, of elements around zero: nothing is lost
    where all are far from it, and nothing is negative.

    Raises:
        ValueError: the elements are complex.
    """
    x = _divisible(input_tensor)
    if x.dtype.is_complex:
        text = "reduce_variance is not supported for RaggedTensors with complex dtypes."
        raise ValueError(f"{text}{at(user_origin())}")
    middle = stop_gradient(reduction.reduce_mean(x.flat_values))
    middle = where(is_finite(middle), middle, 0)  # an element that is not counts in its row only
    if input_tensor.dtype.is_integer:
        middle = round_(middle)  # differences of integers are exact
    x = x.with_flat_values(x.flat_values - middle)
    squares = reduce_mean(_each(square, x), axis, keepdims)
    mean = reduce_mean(x, axis, keepdims)
    if isinstance(mean, RaggedTensor):
        return binary(_least_zero, squares, mean)
    return _least_zero(squares, mean)


def _least_zero(squares: Tensor, mean: Tensor) -> Tensor:
    found = squares - square(mean)
    return where(found < 0, 0, found)  # NaN stays


def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Any:
    return _each(sqrt, reduce_variance(input_tensor, axis, keepdims))


def _each(function: Callable[[Any], Any], x: Any) -> Any:
    if isinstance(x, RaggedTensor):
        return x.with_flat_values(function(x.flat_values))
    return function(convert_to_tensor(x))


def cumsum(
    x: RaggedTensor, axis: Any = 0, exclusive: bool = False, reverse: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Running sums along an axis; `exclusive` leaves each element itself out.

    Raises:
        ValueError: the axis is out of bounds.
    """
    rank, number = len(x.shape), int(axis)
    if not -rank <= number < rank:
        raise ValueError(f"axis={number} is out of bounds for a rank of {rank}{at(user_origin())}")
    number %= rank
    if number > x.ragged_rank:
        found = scan.cumsum(x.flat_values, number - x.ragged_rank, exclusive, reverse)
        return x.with_flat_values(found)
    if number < x.ragged_rank:
        found = scan.cumsum(x.to_tensor(), number, exclusive, reverse)
        splits = x.row_splits.dtype
        return RaggedTensor.from_tensor(found, x.nested_row_lengths(), row_splits_dtype=splits)
    inner: Any = x
    while isinstance(inner.values, RaggedTensor):
        inner = inner.values
    # The sums of all rows together, without those of the rows before.
    sums = scan.cumsum(inner.values, 0, exclusive=True, reverse=reverse)
    row = inner.value_rowids()
    first = gather(inner.row_splits, row + 1) - 1 if reverse else gather(inner.row_splits, row)
    found = sums - gather(sums, first)
    return x.with_flat_values(found if exclusive else found + inner.values)
