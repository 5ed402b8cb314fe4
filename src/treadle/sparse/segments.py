"""Sums over groups of chosen rows: ``td.sparse.segment_sum`` and lookups in tables."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.control.io import Assert
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.arithmetic import divide_no_nan, maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import sqrt, square
from treadle.ops.indexing.gather import gather, gathered, unsorted_segment_sum
from treadle.ops.nn.compositions import embedding_lookup
from treadle.ops.reductions.reduction import reduce_all, reduce_max
from treadle.ops.shaping.creation import ones_like
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.reshaping import reshape
from treadle.sparse.places import fill_empty_rows, retain
from treadle.sparse.tensor import SparseTensor


def _grouped(
    name: str, data: Any, indices: Any, segment_ids: Any, num_segments: Any, sparse_gradient: bool
) -> tuple[Any, ...]:
    """The chosen rows, their groups, how many groups there are, and the size of each.

    Only `segment_sum` takes integers. Dtypes are looked at before any row is taken, as a function
    looks at them while it is traced.
    """
    data = convert_to_tensor(data)
    dtype = data.dtype
    if not (dtype.is_floating or dtype.is_complex or dtype.is_integer and name == "segment_sum"):
        kinds = "numbers" if name == "segment_sum" else "floats"
        text = f"sparse.{name} takes {kinds}, not {dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    ids = convert_to_tensor(segment_ids, dtype_hint=dtypes.int32)
    take = gather if sparse_gradient else gathered
    rows = take(data, convert_to_tensor(indices, dtype_hint=dtypes.int32), axis=0)
    ascending = reduce_all(ids[1:] >= ids[:-1]) & reduce_all(ids >= 0)
    Assert(ascending, [f"sparse.{name}: the segment ids must ascend from 0 on"])
    if num_segments is None:
        count = reduce_max(concat([ids[-1:] + 1, cast([0], ids.dtype)], 0))
    else:
        count = cast(convert_to_tensor(num_segments), ids.dtype)
    sizes = unsorted_segment_sum(ones_like(ids), ids, count)
    return rows, ids, count, sizes


def _divided(total: Tensor, by: Tensor) -> Tensor:
    """Rows divided by one number each; 0 where that is 0."""
    ones = [1] * (total.ndim - 1)
    return divide_no_nan(total, reshape(by, [-1, *ones]))


def segment_sum(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:  # fmt: skip
    """The sums of groups of rows of a tensor.

    Args:
        data: the tensor.
        indices: the numbers of rows.
        segment_ids: the group of each of these, never decreasing.
        num_segments: how many groups there are.
        sparse_gradient: whether the gradient of `data` is `IndexedSlices`.

    Raises:
        TypeError: data of no numbers; means and roots take floats only.
        InvalidArgumentError: a row that is none of `data`; ids that decrease, are negative, or none
            of `num_segments`.
    """
    rows, ids, count, _ = _grouped(
        "segment_sum", data, indices, segment_ids, num_segments, sparse_gradient
    )
    return unsorted_segment_sum(rows, ids, count)


def segment_mean(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:  # fmt: skip
    """The means of groups of rows; see `segment_sum`."""
    rows, ids, count, sizes = _grouped(
        "segment_mean", data, indices, segment_ids, num_segments, sparse_gradient
    )
    least = cast(maximum(sizes, cast(1, sizes.dtype)), rows.dtype)
    return _divided(unsorted_segment_sum(rows, ids, count), least)


def segment_sqrt_n(
    data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:  # fmt: skip
    """The sums of groups of rows divided by the root of their number; see `segment_sum`."""
    rows, ids, count, sizes = _grouped(
        "segment_sqrt_n", data, indices, segment_ids, num_segments, sparse_gradient
    )
    least = cast(maximum(sizes, cast(1, sizes.dtype)), rows.dtype)
    return _divided(unsorted_segment_sum(rows, ids, count), sqrt(least))


def embedding_lookup_sparse(
    params: Any, sp_ids: Any, sp_weights: Any, combiner: str | None = None,
    max_norm: Any = None, name: str | None = None, allow_fast_lookup: bool = False,
) -> Tensor:  # fmt: skip
    """One row for the ids of each row of a sparse matrix: the combined rows of a table.

    Args:
        params: the table.
        sp_ids: a sparse matrix of numbers of rows of it.
        sp_weights: weights at the same places; None for 1.
        combiner: "mean" (if omitted), "sum", or "sqrtn" for the sum divided by the root of the sum
            of squared weights.
        max_norm: rows are scaled to this norm at most.
        allow_fast_lookup: accepted for TensorFlow programs.

    Raises:
        ValueError: another combiner.
    """
    combiner = combiner or "mean"
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(
            f"combiner must be one of 'mean', 'sqrtn' or 'sum', not {combiner!r}{at(user_origin())}"
        )
    if not isinstance(sp_ids, SparseTensor):
        raise TypeError(f"sp_ids must be a SparseTensor{at(user_origin())}")
    ids = sp_ids.indices[:, 0]
    rows = embedding_lookup(params, sp_ids.values, max_norm)
    count = reduce_max(concat([ids[-1:] + 1, cast([0], ids.dtype)], 0))
    if sp_weights is None:
        weights = ones_like(cast(ids, rows.dtype))
    else:
        weights = cast(sp_weights.values, rows.dtype)
    total = unsorted_segment_sum(rows * reshape(weights, [-1, *[1] * (rows.ndim - 1)]), ids, count)
    if combiner == "sum":
        return total
    if combiner == "mean":
        return _divided(total, unsorted_segment_sum(weights, ids, count))
    return _divided(total, sqrt(unsorted_segment_sum(square(weights), ids, count)))


def safe_embedding_lookup_sparse(
    embedding_weights: Any, sparse_ids: Any, sparse_weights: Any = None, combiner: str = "mean",
    default_id: Any = None, max_norm: Any = None, name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:  # fmt: skip
    """`embedding_lookup_sparse` for any ids: negative ones and those without weight do not count.

    Args:
        default_id: whose row stands for no ids; zeros without it.
    """
    kept = sparse_ids.values >= 0
    if sparse_weights is not None:
        if combiner != "sum":
            kept = kept & (sparse_weights.values > 0)
        sparse_weights = retain(sparse_weights, kept)
    ids = retain(sparse_ids, kept)
    filled, empty = fill_empty_rows(ids, 0 if default_id is None else default_id)
    if sparse_weights is not None:
        sparse_weights, _ = fill_empty_rows(sparse_weights, 1.0)
    found = embedding_lookup_sparse(embedding_weights, filled, sparse_weights, combiner, max_norm)
    if default_id is None:
        wide = reshape(empty, [-1, *[1] * (found.ndim - 1)])
        found = where(wide, cast(0, found.dtype), found)
    return found
