"""Sums, products and extremes of ragged rows that share a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.gather import gather
from treadle.ops.indexing.segments import unsorted_segment_max
from treadle.ragged import partitions
from treadle.ragged.tensor import RaggedTensor


def of_segments(reduce: Callable[..., Any], data: Any, segment_ids: Any, num_segments: Any) -> Any:
    """What a function of segments, such as `unsorted_segment_sum`, gives for ragged tensors.

    Row k of the result combines the rows of `data` whose number is k, element by element: it is as
    long as the longest of them, and an element combines those of the rows that reach it.

    Args:
        reduce: takes data, numbers and how many segments there are.
        data: a ragged tensor.
        segment_ids: the number of each row; ragged ones number the elements of rows of the same
            lengths.

    Raises:
        ValueError: ragged numbers of data that is not ragged.
        InvalidArgumentError: ragged numbers whose rows are not those of `data`.
    """
    if isinstance(segment_ids, RaggedTensor):
        if not isinstance(data, RaggedTensor):
            raise ValueError(
                "segment_ids that are ragged are for ragged data of the same rows"
                f"{at(user_origin())}"
            )
        partitions.same_splits(data.row_splits, segment_ids.row_splits)
        return of_segments(reduce, data.values, segment_ids.values, num_segments)
    if not isinstance(data, RaggedTensor):
        return reduce(data, segment_ids, num_segments)
    ids = convert_to_tensor(segment_ids)
    if ids.ndim != 1:
        raise ValueError(
            f"segment_ids of ragged rows are a vector, not of shape {ids.shape}{at(user_origin())}"
        )
    splits = data.row_splits
    longest = unsorted_segment_max(data.row_lengths(), ids, num_segments)
    rows = partitions.splits_of_lengths(maximum(longest, cast(0, longest.dtype)))
    place = partitions.positions(splits, data._nvals())
    number = gather(gather(rows, ids), data.value_rowids()) + place
    return RaggedTensor(of_segments(reduce, data.values, number, rows[-1]), rows)
