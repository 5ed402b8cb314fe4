"""Sums, products, means and extremes of groups of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, TensorShape, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.reference import neutral
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.families import require_kinds
from treadle.ops.lowering import LoopRoutine, ProgramLoops, RowCall, Rows
from treadle.ops.properties import Part, PartKind, PartUse
from treadle.ops.registry import Gradient, Op, OpCall, register, run
from treadle.ops.sizes import Pairs


def _infer(data: TensorSpec, ids: TensorSpec, *, num_segments: Dim) -> TensorSpec:
    require_kinds("iu", ids)
    require_kinds("fciu", data)
    if not TensorShape(data.dims[: ids.rank]).is_compatible_with(ids.shape):
        raise ValueError(
            f"the segment ids {ids.shape} must begin the shape of the data {data.shape}"
        )
    return TensorSpec((num_segments, *data.dims[ids.rank :]), data.dtype)


def _kept(data: NDArray, ids: NDArray, num_segments: int) -> tuple[NDArray, NDArray]:
    """The ids that are not negative, and their rows."""
    from treadle.ops.indexing.gather import check_positions

    if data.shape[: ids.ndim] != ids.shape:
        raise errors.InvalidArgumentError(None, None, "the segment ids do not fit the data")
    flat = ids.reshape(-1)
    rows = data.reshape((flat.size, *data.shape[ids.ndim :]))
    if flat.size and flat.min() < 0:
        rows, flat = rows[flat >= 0], flat[flat >= 0]
    check_positions(flat, num_segments, what="segment id")
    return flat, rows


def _eager(data: NDArray, ids: NDArray, *, num_segments: int) -> NDArray:
    flat, rows = _kept(data, ids, num_segments)
    wide = (
        rows.astype(np.float32)
        if rows.dtype.itemsize == 2 and rows.dtype.kind not in "iu"
        else rows
    )
    total = np.zeros((num_segments, *rows.shape[1:]), wide.dtype)
    np.add.at(total, flat, wide)
    return total.astype(data.dtype, copy=False)


def _gradient(call: OpCall, dy: Tensor) -> list[Any]:
    from treadle.ops.elementwise.selection import where

    data, ids = call.inputs
    return [where(_is_kept(data, ids), _of_rows(dy, ids), convert_to_tensor(0, dy.dtype)), None]


def _is_kept(data: Tensor, ids: Tensor) -> Tensor:
    """Whether a row has a segment, in a shape that broadcasts with the data."""
    from treadle.ops.shaping.reshaping import reshape_to

    return reshape_to(ids >= 0, (*ids.dims, *(1,) * (data.ndim - ids.ndim)))


def _of_rows(segments: Tensor, ids: Tensor) -> Tensor:
    """What belongs to each row of the data; something for rows without a segment."""
    from treadle.ops.elementwise.arithmetic import maximum
    from treadle.ops.indexing.gather import gather

    return gather(segments, maximum(ids, 0))


def _rows(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """Every row of the data has a segment."""
    data, ids = specs
    yield from zip(ids.dims, data.dims, strict=False)


UNSORTED_SEGMENT_SUM = register(
    Op(
        "unsorted_segment_sum",
        _infer,
        _eager,
        _gradient,
        ProgramLoops(LoopRoutine.SUM_SEGMENTS, bools=False, halves=False),
        part=Part(PartKind.SEGMENTS, PartUse.PLACE, 0),
        sizes=_rows,
    )
)


# -- products and extremes: combined with rows that are there --------------------------------------


def _infer_combined(x: TensorSpec, data: TensorSpec, ids: TensorSpec) -> TensorSpec:
    require_kinds("fiu", x, data)
    rows = _infer(data, ids, num_segments=x.dims[0])
    if not x.shape.is_compatible_with(rows.shape):
        raise ValueError(f"segments of shape {rows.shape} do not fit an array of shape {x.shape}")
    return x


def _eager_combined(combine: np.ufunc) -> Callable[..., NDArray]:
    def eager(x: NDArray, data: NDArray, ids: NDArray) -> NDArray:
        if x.dtype.kind in "bc":
            raise TypeError(f"dtype {x.dtype} is not supported")
        result = x.copy()
        combine.at(result, *_kept(data, ids, len(x)))
        return result

    return eager


def _grad_extreme(call: OpCall, dy: Tensor) -> list[Any]:
    """Shared equally between the elements that are the result."""
    from treadle.ops.elementwise.arithmetic import maximum
    from treadle.ops.elementwise.casting import cast
    from treadle.ops.elementwise.selection import where

    (x, data, ids), y = call.inputs, call.outputs[0]
    zero = convert_to_tensor(0, dy.dtype)
    old, own = x == y, _is_kept(data, ids) & (data == _of_rows(y, ids))
    counted = unsorted_segment_sum(cast(own, dy.dtype), ids, x.dims[0])
    share = dy / maximum(cast(old, dy.dtype) + counted, 1)  # nothing is equal to NaN
    return [where(old, share, zero), where(own, _of_rows(share, ids), zero), None]


def _grad_product(call: OpCall, dy: Tensor) -> list[Any]:
    """The product of all others: the whole divided by the element, or for a 0 that of the rest."""
    from treadle.ops.elementwise.casting import cast
    from treadle.ops.elementwise.selection import where

    (x, data, ids), y = call.inputs, call.outputs[0]
    zero, one = convert_to_tensor(0, dy.dtype), convert_to_tensor(1, dy.dtype)
    is_zero = data == zero
    others = run(SEGMENT_MUL, x, where(is_zero, one, data), ids)
    zeros = unsorted_segment_sum(cast(is_zero, dy.dtype), ids, x.dims[0])
    # Only a single 0 has others of which none is 0.
    rest = where(_of_rows(zeros, ids) == one, _of_rows(others, ids), zero)
    partial = where(is_zero, rest, _of_rows(y, ids) / where(is_zero, one, data))
    kept = where(_is_kept(data, ids), partial * _of_rows(dy, ids), zero)
    return [dy * unsorted_segment_prod(data, ids, x.dims[0]), kept, None]


def _fitting(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """Every row of the data has a segment, and is as long as those of the array."""
    x, data, ids = specs
    yield from zip(ids.dims, data.dims, strict=False)
    yield from zip(x.dims[1:], data.dims[ids.rank :], strict=True)


def _combined(name: str, combine: np.ufunc, gradient: Gradient, use: PartUse) -> Op:
    """Rows of an array (input 0) combined with those of the data (1) whose id (2) names them."""
    part = Part(PartKind.SEGMENTS, use, 1)
    eager = _eager_combined(combine)
    return register(Op(name, _infer_combined, eager, gradient, sizes=_fitting, part=part))


SEGMENT_MUL = _combined("segment_mul", np.multiply, _grad_product, PartUse.MUL)
SEGMENT_MAX = _combined("segment_max", np.maximum, _grad_extreme, PartUse.MAX)
SEGMENT_MIN = _combined("segment_min", np.minimum, _grad_extreme, PartUse.MIN)


# -- how often positions occur ---------------------------------------------------------------------


def _infer_count(ids: TensorSpec, *, size: Dim) -> TensorSpec:
    require_kinds("iu", ids)
    return TensorSpec((size,), dtypes.int64)


def _eager_count(ids: NDArray, *, size: int) -> NDArray:
    from treadle.ops.indexing.gather import check_positions

    check_positions(ids, size, what="position")
    return np.bincount(ids.reshape(-1).astype(np.int64), minlength=size)


def _count_call(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], attrs: Mapping[str, Any]
) -> RowCall | None:
    count = product(inputs[0].dims)
    return RowCall(1, count, {"n": count, "size": attrs["size"]}, {"I": inputs[0].dtype})


# How often each of the positions 0 to size - 1 occurs; others are refused.
COUNT_POSITIONS = register(
    Op(
        "count_positions",
        _infer_count,
        _eager_count,
        lower=Rows("counting.count_positions", _count_call, fails=True),
    )
)


# -- the public functions --------------------------------------------------------------------------


def unsorted_segment_sum(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Row k of the result is the sum of the rows of `data` whose id is k; negative ids drop."""
    x, ids, count = _unsorted("unsorted_segment_sum", data, segment_ids, num_segments)
    return _in_float32(lambda wide: run(UNSORTED_SEGMENT_SUM, wide, ids, num_segments=count), x)


def unsorted_segment_prod(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Row k of the result is the product of the rows of `data` whose id is k; negative ids drop.

    A segment without rows is 1.
    """
    x, ids, count = _unsorted("unsorted_segment_prod", data, segment_ids, num_segments)
    return _in_float32(lambda wide: _from(SEGMENT_MUL, 1, wide, ids, count), x)


def unsorted_segment_max(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Row k of the result has the largest elements of the rows of `data` whose id is k.

    Negative ids drop, NaN stays, and a segment without rows is the least finite number of the
    dtype.
    """
    x, ids, count = _unsorted("unsorted_segment_max", data, segment_ids, num_segments)
    return _from(SEGMENT_MAX, x.dtype.min, x, ids, count)


def unsorted_segment_min(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Row k of the result has the smallest elements of the rows of `data` whose id is k.

    Negative ids drop, NaN stays, and a segment without rows is the largest finite number of the
    dtype.
    """
    x, ids, count = _unsorted("unsorted_segment_min", data, segment_ids, num_segments)
    return _from(SEGMENT_MIN, x.dtype.max, x, ids, count)


def unsorted_segment_mean(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Row k of the result is the mean of the rows of `data` whose id is k; negative ids drop.

    A segment without rows is 0; means of integers are float64.
    """
    x, ids, count = _unsorted("unsorted_segment_mean", data, segment_ids, num_segments)
    total = unsorted_segment_sum(x, ids, count)
    return total / _rows_of(ids, count, total, least=1)


def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The sums of `unsorted_segment_sum`, divided by the root of the number of rows.

    Raises:
        TypeError: data that is not floating.
    """
    from treadle.ops.elementwise.unary import sqrt

    x, ids, count = _unsorted("unsorted_segment_sqrt_n", data, segment_ids, num_segments)
    require_kinds("f", x.spec)
    return unsorted_segment_sum(x, ids, count) / sqrt(_rows_of(ids, count, x, least=1))


def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Row k of the result is the sum of the rows of `data` whose id is k; the ids ascend.

    There are as many segments as the last id says; those without rows are 0.

    Raises:
        InvalidArgumentError: ids that are negative, or smaller than the one before.
    """
    return unsorted_segment_sum(*_sorted("segment_sum", data, segment_ids))


def segment_prod(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """As `segment_sum`, for products; segments without rows are 1."""
    return unsorted_segment_prod(*_sorted("segment_prod", data, segment_ids))


def segment_max(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """As `segment_sum`, for the largest elements; NaN stays, segments without rows are 0."""
    return _sorted_extreme(SEGMENT_MAX, "max", *_sorted("segment_max", data, segment_ids))


def segment_min(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """As `segment_sum`, for the smallest elements; NaN stays, segments without rows are 0."""
    return _sorted_extreme(SEGMENT_MIN, "min", *_sorted("segment_min", data, segment_ids))


def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """As `segment_sum`, for means, which are truncated for integers."""
    from treadle.ops.elementwise.arithmetic import truncatediv

    x, ids, count = _sorted("segment_mean", data, segment_ids)
    total = unsorted_segment_sum(x, ids, count)
    rows = _rows_of(ids, count, total, least=1)
    return truncatediv(total, rows) if x.dtype.is_integer else total / rows


def _unsorted(name: str, data: Any, ids: Any, segments: Any) -> tuple[Tensor, Tensor, Dim]:
    from treadle.ops.dims import size_of

    count = size_of(segments, f"{name}: num_segments")
    return convert_to_tensor(data), convert_to_tensor(ids), count


def _sorted(name: str, data: Any, segment_ids: Any) -> tuple[Tensor, Tensor, Dim]:
    from treadle.ops.control.io import Assert
    from treadle.ops.dims import size_of
    from treadle.ops.elementwise.arithmetic import maximum
    from treadle.ops.elementwise.casting import cast
    from treadle.ops.reductions.reduction import reduce_all, reduce_max

    x, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
    if ids.ndim != 1 or not ids.dtype.is_integer:
        raise errors.InvalidArgumentError(
            None, None,
            f"{name}: the segment ids must be a vector of integers, not {ids.dtype.name} of shape "
            f"{ids.shape}{at(user_origin())}",
        )  # fmt: skip
    ids = cast(ids, dtypes.int64)
    ascending = reduce_all(ids[1:] >= ids[:-1]) & reduce_all(ids >= 0)
    Assert(ascending, [f"{name}: the segment ids must ascend from 0 on"])
    last = maximum(reduce_max(ids), convert_to_tensor(-1, dtypes.int64))
    return x, ids, size_of(last + 1, f"{name}: the number of segments")


def _from(op: Op, start: Any, x: Tensor, ids: Tensor, count: Dim) -> Tensor:
    """Segments that begin with a number."""
    from treadle.ops.broadcasting import broadcast_dims

    first = broadcast_dims(convert_to_tensor(start, x.dtype), (count, *x.dims[ids.ndim :]))
    return run(op, first, x, ids)  # type: ignore[no-any-return]


def _sorted_extreme(op: Op, kind: str, x: Tensor, ids: Tensor, count: Dim) -> Tensor:
    from treadle.ops.elementwise.selection import where

    found = _from(op, neutral(kind, x.dtype), x, ids, count)
    zero = convert_to_tensor(0, x.dtype)
    return where(_rows_of(ids, count, found) > zero, found, zero)


def _rows_of(ids: Tensor, count: Dim, like: Tensor, least: int = 0) -> Tensor:
    """How many rows each segment has, but at least so many, for segments ``like`` these."""
    from treadle.ops.broadcasting import broadcast_dims
    from treadle.ops.elementwise.arithmetic import maximum
    from treadle.ops.elementwise.casting import cast
    from treadle.ops.shaping.reshaping import reshape_to

    one = broadcast_dims(convert_to_tensor(1, dtypes.int64), ids.dims)
    rows = maximum(unsorted_segment_sum(one, ids, count), convert_to_tensor(least, dtypes.int64))
    return cast(reshape_to(rows, (count, *(1,) * (like.ndim - 1))), like.dtype)


def _in_float32(reduce: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Floats of 16 bits are combined in float32."""
    from treadle.ops.elementwise.casting import cast

    if x.dtype.is_floating and x.dtype.size == 2:
        return cast(reduce(cast(x, dtypes.float32)), x.dtype)
    return reduce(x)
