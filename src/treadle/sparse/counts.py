"""How often integers occur: in a sparse tensor, and as one."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import shape, size, size_of
from treadle.ops.elementwise.arithmetic import floordiv, maximum, mod
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.gather import gather, unsorted_segment_sum
from treadle.ops.indexing.masks import boolean_mask
from treadle.ops.reductions.reduction import reduce_all, reduce_max
from treadle.ops.shaping.creation import ones_like
from treadle.ops.shaping.joining import stack
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.shaping.reshaping import expand_dims, reshape
from treadle.ops.statistics import histograms
from treadle.ops.statistics.sorting import argsort
from treadle.ops.statistics.uniques import unique_with_counts
from treadle.sparse.places import checked
from treadle.sparse.tensor import SparseTensor


def dense_counts(
    arr: SparseTensor, weights: Any = None, minlength: Any = None, maxlength: Any = None,
    dtype: Any = dtypes.int32, name: str | None = None, axis: int | None = None,
    binary_output: bool = False,
) -> Tensor:  # fmt: skip
    """`td.math.bincount` of a sparse tensor: elements that are not there do not count."""
    _check("bincount", arr, weights, axis, binary_output)
    of_elements = weights.values if isinstance(weights, SparseTensor) else weights
    given = of_elements, minlength, maxlength, dtypes.as_dtype(dtype), binary_output
    ids = cast(arr.values, dtypes.int64)
    if axis != -1 or len(arr.shape) == 1:
        return histograms.counts(ids, *given)
    count = size_of(arr.dense_shape[0], "bincount: the rows")
    return histograms.counts(ids, *given, arr.indices[:, 0], count)


def bincount(
    values: Any, weights: Any = None, axis: int | None = 0, minlength: Any = None,
    maxlength: Any = None, binary_output: bool = False, name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """How often each integer from 0 on occurs, or the sums of the weights, for those that do.

    Args:
        values: integers, as a tensor or a sparse one.
        weights: of the same kind and shape; the result has their dtype, or else that of `values`.
        axis: -1 counts within every row of a matrix; 0 or None all elements.
        minlength: the least number of columns of the result.
        maxlength: the number of columns; elements from there on are not counted.
        binary_output: only whether an integer occurs, 1.

    Returns:
        A sparse tensor of shape [length], or [rows, length].

    Raises:
        InvalidArgumentError: an element is negative, or there are more than two axes.
        ValueError: another axis, or weights together with `binary_output`.
    """
    x = values if isinstance(values, SparseTensor) else convert_to_tensor(values)
    _check("bincount", x, weights, axis, binary_output)
    by_rows = axis == -1 and len(x.shape) == 2
    ids, shares, rows, count = _elements(x, weights, by_rows)
    checked(reduce_all(ids >= 0), "bincount: the elements must not be negative")
    if maxlength is None:
        length = maximum(maximum(reduce_max(ids), 0) + 1, cast(minlength or 0, dtypes.int64))
    else:
        length = cast(maxlength, dtypes.int64)
        inside = ids < length
        ids, rows = boolean_mask(ids, inside), boolean_mask(rows, inside)
        shares = None if shares is None else boolean_mask(shares, inside)
    keys = rows * length + ids
    order = argsort(keys, stable=True)
    found = unique_with_counts(gather(keys, order), dtypes.int64)
    if shares is not None:
        totals = unsorted_segment_sum(gather(shares, order), found.idx, size(found.y))
    else:
        totals = cast(ones_like(found.count) if binary_output else found.count, x.dtype)
    columns = mod(found.y, maximum(length, 1))  # there are none where the length is 0
    if not by_rows:
        return SparseTensor(expand_dims(columns, 1), totals, expand_dims(length, 0))
    places = stack([floordiv(found.y, maximum(length, 1)), columns], 1)
    return SparseTensor(places, totals, stack([count, length]))


def _check(what: str, x: Any, weights: Any, axis: int | None, binary_output: bool) -> None:
    if binary_output and weights is not None:
        text = f"{what}: weights have no meaning with binary_output{at(user_origin())}"
        raise ValueError(text)
    if axis not in (None, 0, -1):
        raise ValueError(f"{what}: axis must be 0, -1 or None, not {axis!r}{at(user_origin())}")
    if axis == -1 and len(x.shape) > 2:
        text = f"{what}: axis -1 takes at most two axes, not shape {x.shape}{at(user_origin())}"
        raise InvalidArgumentError(None, None, text)
    if isinstance(weights, SparseTensor) and isinstance(x, SparseTensor):
        text = f"{what}: the weights must have the shape of the elements"
        if not weights.shape.is_compatible_with(x.shape):
            raise InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
        checked(reduce_all(weights.dense_shape == x.dense_shape), text)
        same = reduce_all(weights.indices == x.indices)
        checked(same, f"{what}: the weights must be at the places of the elements")
    elif axis == -1 and isinstance(x, Tensor) and weights is not None:
        text = f"{what}: the weights must have the shape of the elements"
        shares = convert_to_tensor(weights)
        if not shares.shape.is_compatible_with(x.shape):
            found = f"{shares.shape}, not {x.shape}"
            raise InvalidArgumentError(None, None, f"{text}: {found}{at(user_origin())}")
        checked(reduce_all(shape(shares) == shape(x)), text)


def _elements(x: Any, weights: Any, by_rows: bool) -> tuple[Tensor, Any, Tensor, Tensor]:
    """The integers, their weights, the rows that they belong to, and how many rows there are."""
    one = convert_to_tensor(1, dtypes.int64)
    if isinstance(x, SparseTensor):
        ids = cast(x.values, dtypes.int64)
        shares = weights.values if isinstance(weights, SparseTensor) else weights
        rows = x.indices[:, 0] if by_rows else ids * 0
        return ids, shares, rows, x.dense_shape[0] if by_rows else one
    ids = cast(reshape(x, [-1]), dtypes.int64)
    shares = None if weights is None else reshape(weights, [-1])
    if not by_rows:
        return ids, shares, ids * 0, one
    count, width = size(x[:, 0], dtypes.int64), size(x[0], dtypes.int64)
    return ids, shares, floordiv(number_range(count * width), maximum(width, one)), count
