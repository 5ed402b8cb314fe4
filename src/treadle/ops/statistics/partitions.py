"""Rows sorted into parts by number, parts put together by position, and permutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape, product
from treadle.core.tensor import Tensor
from treadle.ops.control.io import Assert
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor, size_of
from treadle.ops.elementwise.arithmetic import floordiv, maximum, mod
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal
from treadle.ops.indexing.gather import gather
from treadle.ops.indexing.masks import boolean_mask
from treadle.ops.indexing.scatter import scatter_nd, tensor_scatter_nd_update
from treadle.ops.reductions.reduction import reduce_all, reduce_max, reduce_prod
from treadle.ops.reductions.scan import cumprod
from treadle.ops.scalars import integer
from treadle.ops.shaping.creation import zeros
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.shaping.reshaping import expand_dims, reshape, reshape_to


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """The rows of `data` as `num_partitions` tensors: row i goes to number ``partitions[i]``.

    Args:
        partitions: integers of the shape of the first axes of `data`.

    Raises:
        InvalidArgumentError: a partition is negative or not below `num_partitions`.
    """
    x, numbers = convert_to_tensor(data), convert_to_tensor(partitions)
    count = integer("dynamic_partition: num_partitions", num_partitions)
    inside = reduce_all((numbers >= 0) & (numbers < count))
    Assert(inside, [f"dynamic_partition: not a number below {count} in", numbers])
    if numbers.ndim == 0:
        x, numbers = expand_dims(x, 0), expand_dims(numbers, 0)
    return [boolean_mask(x, equal(numbers, number)) for number in range(count)]


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Tensor:
    """One tensor made of parts: row ``indices[m][i]`` of it is ``data[m][i]``.

    Where a row is given several times, the last one counts; rows that are not given are 0. It has
    as many rows as the greatest index asks for.

    Args:
        indices: integer tensors.
        data: a tensor for each of them, whose first axes have the same sizes.

    Raises:
        InvalidArgumentError: the shapes do not fit, or an index is negative.
    """
    places = [convert_to_tensor(i) for i in indices]
    parts = [convert_to_tensor(d) for d in data]
    if not parts or len(parts) != len(places):
        text = f"dynamic_stitch: {len(places)} indices for {len(parts)} data"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    rest = parts[0].dims[places[0].ndim :]
    for place, part in zip(places, parts, strict=True):
        fits = place.shape.is_compatible_with(part.shape[: place.ndim])
        if not fits or not TensorShape(rest).is_compatible_with(part.shape[place.ndim :]):
            text = (
                f"dynamic_stitch: data of shape {part.shape} for indices of shape {place.shape}, "
                f"beside data of shape {parts[0].shape} for {places[0].shape}{at(user_origin())}"
            )
            raise errors.InvalidArgumentError(None, None, text)
    flat = concat([reshape(cast(p, dtypes.int64), [-1]) for p in places], 0)
    rows = concat([_rows(p, i.ndim) for p, i in zip(parts, places, strict=True)], 0)
    length = reduce_max(concat([flat, [-1]], 0)) + 1  # 0 where there are no indices at all
    count = size_of(length, "dynamic_stitch: an index")
    return tensor_scatter_nd_update(zeros((count, *rest), rows.dtype), expand_dims(flat, 1), rows)


def _rows(part: Tensor, axes: int) -> Tensor:
    """The first axes as one."""
    return reshape_to(part, (product(part.dims[:axes]), *part.dims[axes:]))


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The permutation that undoes `x`, a vector of the numbers 0, 1, ..., n - 1 in any order.

    Raises:
        InvalidArgumentError: it is no permutation; also a TypeError for other than integers.
    """
    order = convert_to_tensor(x)
    if not order.dtype.is_integer:
        text = f"invert_permutation takes integers, not {order.dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    count = dims_tensor(order.dims[0], order.dtype)
    inside = reduce_all((order >= 0) & (order < count))
    Assert(inside, ["invert_permutation: a number is not a position in", order])
    numbers = number_range(count, dtype=order.dtype)
    found = scatter_nd(expand_dims(order, 1), numbers, [order.dims[0]])
    once = reduce_all(equal(gather(order, found % maximum(count, 1)), numbers))
    Assert(once, ["invert_permutation: a number occurs twice in", order])
    return found


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """The positions along each axis of an array of shape `dims` of elements numbered in order.

    Args:
        indices: a scalar or vector of numbers.
        dims: a vector, of the same dtype.

    Returns:
        [len(dims), *indices.shape]

    Raises:
        InvalidArgumentError: a number is not one of an element.
    """
    flat, sizes = convert_to_tensor(indices), convert_to_tensor(dims)
    sizes = cast(sizes, flat.dtype)
    inside = reduce_all((flat >= 0) & (flat < reduce_prod(sizes)))
    Assert(inside, ["unravel_index: beyond the elements of the shape:", flat, sizes])
    strides = cumprod(sizes, exclusive=True, reverse=True)
    if flat.ndim:
        sizes, strides = expand_dims(sizes, 1), expand_dims(strides, 1)
    return mod(floordiv(flat, strides), sizes)
