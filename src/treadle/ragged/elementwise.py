"""Functions of the elements of ragged tensors, and broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gather
from treadle.ops.reductions.reduction import reduce_all
from treadle.ops.shaping.creation import zeros
from treadle.ops.shaping.reshaping import reshape
from treadle.ragged import partitions
from treadle.ragged.partitions import require, same_splits
from treadle.ragged.tensor import RaggedTensor


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`op` of the elements: ragged arguments are replaced by their `flat_values`.

    Args:
        op: gives a tensor with the same number of rows.
        args, kwargs: for `op`; ragged tensors in them, in lists too, have the same rows.

    Returns:
        A ragged tensor of these rows; what `op` gives where no argument is ragged.

    Raises:
        InvalidArgumentError: the rows of ragged arguments differ.
    """
    found = list(_ragged_in((args, kwargs)))
    if not found:
        return op(*args, **kwargs)
    first = found[0]
    for other in found[1:]:
        same_rows(first, other)
    return first.with_flat_values(op(*_flattened(args), **_flattened(kwargs)))


def same_rows(a: RaggedTensor, b: RaggedTensor) -> None:
    """An error where two ragged tensors have other rows."""
    if a.ragged_rank != b.ragged_rank:
        raise ValueError(f"All ragged inputs must have the same ragged_rank{at(user_origin())}")
    for mine, theirs in zip(a.nested_row_splits, b.nested_row_splits, strict=True):
        same_splits(mine, theirs)


def _ragged_in(value: Any) -> Iterator[RaggedTensor]:
    if isinstance(value, RaggedTensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _ragged_in(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _ragged_in(part)


def _flattened(value: Any) -> Any:
    if isinstance(value, RaggedTensor):
        return value.flat_values
    if isinstance(value, dict):
        return {key: _flattened(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_flattened, value))
    return value


def binary(function: Callable[..., Any], x: Any, y: Any, *more: Any, **kwargs: Any) -> Any:
    """`function` of elements of two tensors that broadcast, of which one at least is ragged."""
    if not isinstance(x, RaggedTensor):
        return _with_tensor(lambda a, b: function(b, a, *more, **kwargs), y, x)
    if not isinstance(y, RaggedTensor):
        return _with_tensor(lambda a, b: function(a, b, *more, **kwargs), x, y)
    if x.ragged_rank < y.ragged_rank:
        return binary(lambda a, b: function(b, a, *more, **kwargs), y, x)
    if _is_whole(x, y):
        same_rows(x, y)
        return x.with_flat_values(function(x.flat_values, y.flat_values, *more, **kwargs))
    return x.with_flat_values(function(x.flat_values, broadcast_like(y, x), *more, **kwargs))


def _is_whole(x: RaggedTensor, y: RaggedTensor) -> bool:
    """Whether two ragged tensors are partitioned alike, so that no axis broadcasts."""
    return x.ragged_rank == y.ragged_rank and len(x.shape) == len(y.shape)


def _with_tensor(function: Callable[[Any, Any], Any], x: RaggedTensor, y: Any) -> Any:
    """`function` of the elements of x and of a value without rows."""
    tensor = y if isinstance(y, Tensor) else None
    if tensor is None:
        try:
            tensor = convert_to_tensor(y, x.dtype)
        except (TypeError, ValueError):
            tensor = convert_to_tensor(y)
    if tensor.ndim == 0:
        return x.with_flat_values(function(x.flat_values, y))
    return x.with_flat_values(function(x.flat_values, broadcast_like(tensor, x)))


def broadcast_like(y: Any, x: RaggedTensor) -> Tensor:
    """The element of y for each of x's `flat_values`; their inner axes broadcast as tensors do.

    Args:
        y: a tensor, or a ragged one with at most as many ragged axes as x, whose rows are x's.

    Raises:
        InvalidArgumentError: the sizes of an axis differ, and that of y is not 1.
    """
    rank, level = len(x.shape), y.ragged_rank if isinstance(y, RaggedTensor) else 0
    missing = rank - len(y.shape)
    if missing < 0 or (level and missing):
        raise ValueError(
            f"Shapes {x.shape} and {y.shape} do not broadcast: a ragged tensor takes others of at "
            f"most its rank, and rows that begin at the same axis{at(user_origin())}"
        )
    if level:
        for mine, theirs in zip(x.nested_row_splits, y.nested_row_splits, strict=False):
            same_splits(mine, theirs)
        flat = y.flat_values
    else:
        sizes = [*[1] * missing, *(dims_tensor(d, dtypes.int64) for d in y.dims)]
        flat = reshape(y, sizes) if missing else y
    return _spread(flat, x, level)


def _spread(flat: Tensor, x: RaggedTensor, level: int) -> Tensor:
    """Axes of `flat` that are ragged in x, taken at the places of x's elements.

    Args:
        flat: its first axis are the rows of x at a level of its partitions, the next ones are those
            that x has beyond that level.
    """
    nested, count = x.nested_row_splits, x.ragged_rank - level
    if all(dim == 1 for dim in flat.dims[: count + 1]):
        inner = [dims_tensor(d, dtypes.int64) for d in flat.dims[count + 1 :]]
        return reshape(flat, [1, *inner])
    if not count:
        return flat
    dtype = nested[0].dtype
    place = zeros([], dtype)
    stride: Any = cast(1, dtype)
    ids: Any = None
    for axis in range(count, -1, -1):
        size = dims_tensor(flat.dims[axis], dtype)
        if axis:
            splits = nested[level + axis - 1]
            number = _of_flat(
                x, level + axis, partitions.positions(splits, _count(x, level + axis))
            )
            lengths = partitions.lengths_of(splits)
            fits = equal(size, 1) | reduce_all(equal(lengths, size))
        else:
            ids = _of_flat(x, level, None)
            number, fits = ids, equal(size, 1) | equal(size, _count(x, level))
        if flat.dims[axis] != 1:
            require(fits, f"Unable to broadcast: axis {axis} has another size than the rows")
            place = place + where(equal(size, 1), cast(0, dtype), number) * stride
        stride = stride * size
    inner = [dims_tensor(d, dtypes.int64) for d in flat.dims[count + 1 :]]
    return gather(reshape(flat, [-1, *inner]), place)


def _count(x: RaggedTensor, level: int) -> Tensor:
    """How many rows there are at a level: 0 for the rows, and so on to the elements."""
    values: Any = x
    for _ in range(level):
        values = values.values
    return partitions.count_of(values, x.row_splits.dtype)


def _of_flat(x: RaggedTensor, level: int, numbers: Tensor | None) -> Tensor:
    """For each element of x the number of its row at a level; or what `numbers` has for that."""
    nested = x.nested_row_splits
    ids = numbers
    for deeper in range(level, x.ragged_rank):
        rows = partitions.row_ids(nested[deeper], _count(x, deeper + 1))
        ids = rows if ids is None else gather(ids, rows)
    assert ids is not None
    return ids
