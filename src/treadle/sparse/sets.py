"""Sets along the last axis of tensors, dense or sparse ones."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.gather import unsorted_segment_sum
from treadle.ops.reductions.reduction import reduce_max
from treadle.ops.shaping.creation import ones_like
from treadle.ops.shaping.joining import concat, stack
from treadle.ops.shaping.ranges import range as range_
from treadle.ops.shaping.reshaping import reshape
from treadle.ops.statistics.sets import combined
from treadle.sparse.places import numbered, places_of, sizes_of
from treadle.sparse.tensor import SparseTensor


def _elements(x: Any) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The elements of all sets, the number of the set of each, and the sizes of the outer axes."""
    if isinstance(x, SparseTensor):
        sizes = sizes_of(x)
        _check_rank(len(sizes))
        return x.values, numbered(x.indices[:, :-1], sizes[:-1]), sizes[:-1]
    tensor = convert_to_tensor(x)
    _check_rank(tensor.ndim)
    sizes = [dims_tensor(d, dtypes.int64) for d in tensor.dims]
    flat = reshape(tensor, [-1])
    return flat, range_(dims_tensor(flat.dims[0], dtypes.int64)) // sizes[-1], sizes[:-1]


def _check_rank(rank: int) -> None:
    if rank < 2:
        raise InvalidArgumentError(
            None,
            None,
            f"Sets are along the last of at least two axes, not {rank}{at(user_origin())}",
        )


def _combination(kind: str, a: Any, b: Any, aminusb: bool = True) -> SparseTensor:
    if not aminusb:
        a, b = b, a
    x, x_ids, sizes = _elements(a)
    y, y_ids, _ = _elements(b)
    if not isinstance(a, SparseTensor | Tensor) or not isinstance(b, SparseTensor | Tensor):
        y = cast(y, x.dtype) if y.dtype is not dtypes.string else y
    values, ids, places = combined(kind, x, x_ids, y, y_ids)
    widest = reduce_max(concat([places + 1, [0]], 0))
    indices = concat([places_of(ids, sizes), places[:, None]], 1)
    return SparseTensor(indices, values, stack([*sizes, widest]))


def intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """What sets along the last axis have in common.

    Args:
        a, b: tensors or sparse tensors of integers or strings, alike but for their last axis.
        validate_indices: accepted for TensorFlow programs.

    Returns:
        A sparse tensor with the elements of each set in order.
    """
    return _combination("intersection", a, b)


def union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """What is in either of two sets along the last axis; see `intersection`."""
    return _combination("union", a, b)


def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """What is in the first of two sets alone; see `intersection`.

    Args:
        aminusb: False for what is in the second alone.
    """
    return _combination("difference", a, b, aminusb)


def size(a: Any, validate_indices: bool = True) -> Tensor:
    """How many different elements the sets along the last axis of a sparse tensor have, int32.

    Raises:
        TypeError: it is not sparse.
    """
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected SparseTensor, got {a!r}{at(user_origin())}")
    found = _combination("union", a, a)
    sizes = sizes_of(a)[:-1]
    count = cast(1, dtypes.int64)
    for number in sizes:
        count = count * number
    ones = ones_like(found.indices[:, 0], dtypes.int32)
    totals = unsorted_segment_sum(ones, numbered(found.indices[:, :-1], sizes), count)
    return reshape(totals, sizes)
