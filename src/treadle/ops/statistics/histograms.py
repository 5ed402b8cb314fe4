"""TensorFlow's counts: of integers, and of values in bins of one width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.control.io import Assert
from treadle.ops.conversion import common_dtype, convert_to_tensor
from treadle.ops.dims import dims_tensor, size_of
from treadle.ops.elementwise.arithmetic import maximum, minimum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import floor
from treadle.ops.indexing.gather import unsorted_segment_sum
from treadle.ops.indexing.index import check_positions
from treadle.ops.lowering import RowCall, Rows
from treadle.ops.op_makers import require_kinds
from treadle.ops.reductions.reduction import reduce_max, reduce_min
from treadle.ops.registry import Op, register, run
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.shaping.reshaping import expand_dims, reshape, reshape_to


def _infer_count(ids: TensorSpec, *, size: Dim, batch_dims: int = 0) -> TensorSpec:
    """`batch_dims`: how many first axes have counts of their own."""
    require_kinds("iu", ids)
    return TensorSpec((*ids.dims[:batch_dims], size), dtypes.int64)


def _eager_count(ids: NDArray, *, size: int, batch_dims: int = 0) -> NDArray:
    check_positions(ids, size, what="position")
    outer = ids.shape[:batch_dims]
    counts = np.zeros((*outer, size), np.int64)
    for place in np.ndindex(*outer):
        counts[place] = np.bincount(ids[place].reshape(-1).astype(np.int64), minlength=size)
    return counts


def _count_call(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], attrs: Mapping[str, Any]
) -> RowCall | None:
    ids, outer = inputs[0], attrs.get("batch_dims", 0)
    rows, count = product(ids.dims[:outer]), product(ids.dims[outer:])
    return RowCall(rows, rows * count, {"n": count, "size": attrs["size"]}, {"I": ids.dtype})


# How often each of the positions 0 to size - 1 occurs; others are refused.
COUNT_POSITIONS = register(
    Op(
        "count_positions",
        _infer_count,
        _eager_count,
        lower=Rows("counting.count_positions", _count_call, fails=True),
    )
)


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The bin of each value: `nbins` of one width between the two numbers of `value_range`. What
    lies outside belongs to the first or last bin.

    Raises:
        InvalidArgumentError: there is no bin, or `value_range` is no vector of two numbers.
    """
    x, limits = common_dtype("histogram_fixed_width_bins", values, value_range)
    if not limits.shape.is_compatible_with([2]):
        text = f"value_range has two numbers, not the shape {limits.shape}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, f"histogram_fixed_width: {text}")
    if x.dtype.is_integer:
        x, limits = cast(x, dtypes.float64), cast(limits, dtypes.float64)
    elif x.dtype.size == 2:  # a bin must not depend on where a program rounds to 16 bits
        x, limits = cast(x, dtypes.float32), cast(limits, dtypes.float32)
    low, high = limits[0], limits[1]
    size_of(nbins, "histogram_fixed_width: nbins", least=1)
    count = cast(convert_to_tensor(nbins), x.dtype)
    one, zero = convert_to_tensor(1, x.dtype), convert_to_tensor(0, x.dtype)
    place = floor((x - low) / (high - low) * count)
    return cast(maximum(minimum(place, count - one), zero), dtypes.int32)


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """How many values lie in each bin of `histogram_fixed_width_bins`: [nbins].

    Raises:
        InvalidArgumentError: there is no bin, or the first number of `value_range` is not below the
            second.
    """
    bins = histogram_fixed_width_bins(values, value_range, nbins)
    limits = convert_to_tensor(value_range)
    Assert(limits[0] < limits[1], ["histogram_fixed_width: value_range does not ascend:", limits])
    size = size_of(nbins, "histogram_fixed_width: nbins")
    return cast(run(COUNT_POSITIONS, bins, size=size), dtype)


def count_dtype(what: str, dtype: Any) -> DType:
    """The dtype of counts; DtypeError for one that has no numbers."""
    kind = dtypes.as_dtype(dtype)
    if not kind.is_numeric:
        text = f"{what}: counts are no values of dtype {kind.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    return kind


def bincount(
    arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None,
    dtype: Any = dtypes.int32, name: str | None = None, axis: int | None = None,
    binary_output: bool = False,
) -> Tensor:  # fmt: skip
    """How often each integer from 0 on occurs in `arr`, or the sums of the weights.

    Args:
        weights: of the shape of `arr`; the result has their dtype.
        minlength: the least length of the result.
        maxlength: the largest; elements from there on are not counted.
        axis: -1 counts within every row of a matrix: [rows, length]; None or 0 all elements.
        binary_output: only whether an integer occurs, 1 or 0.

    Raises:
        InvalidArgumentError: an element is negative, or `axis` is another one, or `arr` of axis -1
            has more than two axes.
        ValueError: weights together with `binary_output`.
    """
    rows, kind = cast(arr, dtypes.int64), count_dtype("bincount", dtype)
    if binary_output and weights is not None:
        text = f"bincount: weights have no meaning with binary_output{at(user_origin())}"
        raise ValueError(text)
    if axis not in (None, 0, -1) or (axis == -1 and rows.ndim > 2):
        text = f"bincount: axis {axis!r} of a tensor of shape {rows.shape}; 0 or -1 of a matrix"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    ids = reshape(rows, [-1])
    flat = None if weights is None else reshape(weights, [-1])
    given = flat, minlength, maxlength, kind, binary_output
    if axis != -1 or rows.ndim != 2:
        return counts(ids, *given)
    numbers = expand_dims(number_range(dims_tensor(rows.dims[0], dtypes.int64)), 1)
    return counts(ids, *given, reshape(broadcast_dims(numbers, rows.dims), [-1]), rows.dims[0])


def counts(
    ids: Tensor, weights: Any, minlength: Any, maxlength: Any, kind: DType, binary_output: bool,
    rows: Tensor | None = None, count: Dim = 1,
) -> Tensor:  # fmt: skip
    """What `bincount` gives for a vector of integers, or for each row of a matrix.

    Args:
        rows: the number of the row that each integer belongs to; None without rows.
        count: how many rows there are.
    """
    length = reduce_max(ids) + 1
    if minlength is not None:
        length = maximum(length, cast(minlength, dtypes.int64))
    length = maximum(length, convert_to_tensor(0, dtypes.int64))
    if maxlength is not None:
        length = minimum(length, cast(maxlength, dtypes.int64))
    smallest = reduce_min(ids)
    size = size_of(where(smallest < 0, smallest, length), "bincount: an element")
    if maxlength is not None:  # one more place, for what is not counted
        ids = minimum(ids, length)
    places = size + (0 if maxlength is None else 1)
    if rows is not None:  # the integers of row k begin at k * places
        ids = ids + rows * dims_tensor(places, dtypes.int64)
    if weights is None:
        found = run(COUNT_POSITIONS, ids, size=count * places)
        found = cast(minimum(found, 1) if binary_output else found, kind)
    else:
        found = unsorted_segment_sum(weights, ids, count * places)
    if rows is not None:
        found = reshape_to(found, (count, places))
    return found if maxlength is None else found[..., :-1]
