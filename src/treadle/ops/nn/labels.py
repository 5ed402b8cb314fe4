"""Rows of labels: repetitions merged, and which labels there are."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor, size_of
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal, not_equal
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import gather
from treadle.ops.reductions.reduction import argmax, reduce_max, reduce_sum
from treadle.ops.reductions.scan import cumsum
from treadle.ops.shaping.creation import ones_like
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.shaping.slicing import part_of
from treadle.ops.statistics.sequences import sequence_mask
from treadle.ops.statistics.sorting import argsort


def collapse_repeated(
    labels: Any, seq_length: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Each label once where it is repeated: ``[a, a, b, b, a]`` gives ``[a, b, a]``.

    Args:
        labels: [batch, time].
        seq_length: [batch] integers, how many labels of each row count.

    Returns:
        The labels, [batch, greatest new length] with zeros at the end of rows, and the new lengths
        in seq_length's dtype.

    Raises:
        InvalidArgumentError: other shapes.
    """
    x, lengths = _rows("collapse_repeated", labels), convert_to_tensor(seq_length)
    if lengths.ndim != 1:
        text = f"collapse_repeated: seq_length must be a vector, not of shape {lengths.shape}"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    size = x.dims[1]
    first = ones_like(x[:, :1], dtypes.bool)
    changes = concat([first, not_equal(x[:, 1:], x[:, :-1])], 1)
    kept = changes & sequence_mask(lengths, dims_tensor(size, lengths.dtype))
    count = reduce_sum(cast(kept, dtypes.int32), 1)
    longest = size_of(reduce_max(count), "collapse_repeated: a length", most=size)
    return _packed(x, kept, count, longest), cast(count, lengths.dtype)


def ctc_unique_labels(labels: Any, name: str | None = None) -> list[Tensor]:
    """The different labels of each row in the order in which they come, and which one each is.

    Args:
        labels: [batch, time].

    Returns:
        int64 [batch, time] with zeros at the end of rows, and int32 [batch, time] positions in it.

    Raises:
        InvalidArgumentError: another rank.
    """
    x = _rows("ctc_unique_labels", labels)
    size = x.dims[1]
    same = equal(x[:, :, None], x[:, None, :])
    first = argmax(cast(same, dtypes.int32), 2)
    new = equal(first, number_range(dims_tensor(size, dtypes.int64)))
    number = cumsum(cast(new, dtypes.int32), 1) - 1
    count = reduce_sum(cast(new, dtypes.int32), 1)
    unique = _packed(x, new, count, size)
    return [cast(unique, dtypes.int64), gather(number, first, axis=1, batch_dims=1)]


def _rows(name: str, labels: Any) -> Tensor:
    x = convert_to_tensor(labels)
    if x.ndim != 2:
        text = f"{name}: labels must be [batch, time], their shape is {x.shape}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    return x


def _packed(x: Tensor, kept: Tensor, count: Tensor, size: Dim) -> Tensor:
    """The elements of rows that are kept, `count` of them, moved to the front; zeros behind."""
    order = argsort(cast(~kept, dtypes.int32), 1, stable=True)
    front = part_of(gather(x, order, axis=1, batch_dims=1), 1, 0, size)
    there = sequence_mask(count, dims_tensor(size, count.dtype))
    return where(there, front, convert_to_tensor(0, x.dtype))
