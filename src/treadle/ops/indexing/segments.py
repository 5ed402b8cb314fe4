"""Products, means and extremes of groups of rows, and groups whose ids ascend."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.reference import neutral
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.control.io import Assert
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import size_of
from treadle.ops.elementwise.arithmetic import maximum, truncatediv
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import sqrt
from treadle.ops.indexing.gather import (
    in_float32,
    infer_sums,
    is_kept,
    kept_rows,
    of_rows,
    segment_arguments,
    unsorted_segment_sum,
)
from treadle.ops.op_makers import require_kinds
from treadle.ops.properties import Part, PartKind, PartUse
from treadle.ops.reductions.reduction import reduce_all, reduce_max
from treadle.ops.registry import Gradient, Op, OpCall, register, run
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.sizes import Pairs

# -- products and extremes: combined with rows that are there --------------------------------------


def _infer_combined(kinds: str) -> Callable[..., TensorSpec]:
    def infer(x: TensorSpec, data: TensorSpec, ids: TensorSpec) -> TensorSpec:
        require_kinds(kinds, x, data)
        rows = infer_sums(data, ids, num_segments=x.dims[0])
        if not x.shape.is_compatible_with(rows.shape):
            raise ValueError(
                f"segments of shape {rows.shape} do not fit an array of shape {x.shape}"
            )
        return x

    return infer


def _eager_combined(kinds: str, combine: np.ufunc) -> Callable[..., NDArray]:
    def eager(x: NDArray, data: NDArray, ids: NDArray) -> NDArray:
        if x.dtype.kind in "bc" and x.dtype.kind not in kinds:
            raise TypeError(f"dtype {x.dtype} is not supported")
        flat, rows = kept_rows(data, ids, len(x))
        result = x.reshape(len(x), math.prod(x.shape[1:])).copy()  # `at` takes 32 axes at most
        combine.at(result, flat, rows.reshape(len(rows), result.shape[1]))
        return result.reshape(x.shape)

    return eager


def _grad_extreme(call: OpCall, dy: Tensor) -> list[Any]:
    """Shared equally between the elements that are the result."""
    (x, data, ids), y = call.inputs, call.outputs[0]
    zero = convert_to_tensor(0, dy.dtype)
    old, own = x == y, is_kept(data, ids) & (data == of_rows(y, ids))
    counted = unsorted_segment_sum(cast(own, dy.dtype), ids, x.dims[0])
    share = dy / maximum(cast(old, dy.dtype) + counted, 1)  # nothing is equal to NaN
    return [where(old, share, zero), where(own, of_rows(share, ids), zero), None]


def _grad_product(call: OpCall, dy: Tensor) -> list[Any]:
    """The product of all others: the whole divided by the element, or for a 0 that of the rest."""
    (x, data, ids), y = call.inputs, call.outputs[0]
    zero, one = convert_to_tensor(0, dy.dtype), convert_to_tensor(1, dy.dtype)
    is_zero = data == zero
    others = run(_product_of(x.dtype), x, where(is_zero, one, data), ids)
    zeros = unsorted_segment_sum(cast(is_zero, dy.dtype), ids, x.dims[0])
    # Only a single 0 has others of which none is 0.
    rest = where(of_rows(zeros, ids) == one, of_rows(others, ids), zero)
    partial = where(is_zero, rest, of_rows(y, ids) / where(is_zero, one, data))
    kept = where(is_kept(data, ids), conj(partial) * of_rows(dy, ids), zero)
    return [dy * conj(unsorted_segment_prod(data, ids, x.dims[0])), kept, None]


def _fitting(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """Every row of the data has a segment, and is as long as those of the array."""
    x, data, ids = specs
    yield from zip(ids.dims, data.dims, strict=False)
    yield from zip(x.dims[1:], data.dims[ids.rank :], strict=True)


def _combined(
    name: str, kinds: str, combine: np.ufunc, gradient: Gradient, use: PartUse | None
) -> Op:
    """Rows of an array (input 0) combined with those of the data (1) whose id (2) names them.

    Args:
        use: how loops of programs combine elements; None where they call the NumPy form.
    """
    part = None if use is None else Part(PartKind.SEGMENTS, use, 1)
    why = "a product needs both parts of the row so far" if use is None else None
    infer, eager = _infer_combined(kinds), _eager_combined(kinds, combine)
    return register(Op(name, infer, eager, gradient, sizes=_fitting, part=part, callback=why))


SEGMENT_MUL = _combined("segment_mul", "fiu", np.multiply, _grad_product, PartUse.MUL)
COMPLEX_SEGMENT_MUL = _combined("complex_segment_mul", "c", np.multiply, _grad_product, None)
SEGMENT_MAX = _combined("segment_max", "fiu", np.maximum, _grad_extreme, PartUse.MAX)
SEGMENT_MIN = _combined("segment_min", "fiu", np.minimum, _grad_extreme, PartUse.MIN)


def _product_of(dtype: DType) -> Op:
    return COMPLEX_SEGMENT_MUL if dtype.is_complex else SEGMENT_MUL


def unsorted_segment_prod(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Row k of the result is the product of the rows of `data` whose id is k; negative ids drop.

    A segment without rows is 1.
    """
    x, ids, count = segment_arguments("unsorted_segment_prod", data, segment_ids, num_segments)
    product = _product_of(x.dtype)
    return in_float32(lambda wide: _from(product, 1, wide, ids, count), x)


def unsorted_segment_max(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Row k of the result has the largest elements of the rows of `data` whose id is k.

    Negative ids drop, NaN stays, and a segment without rows is the least finite number of the
    dtype.
    """
    x, ids, count = segment_arguments("unsorted_segment_max", data, segment_ids, num_segments)
    return _from(SEGMENT_MAX, x.dtype.min, x, ids, count)


def unsorted_segment_min(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Row k of the result has the smallest elements of the rows of `data` whose id is k.

    Negative ids drop, NaN stays, and a segment without rows is the largest finite number of the
    dtype.
    """
    x, ids, count = segment_arguments("unsorted_segment_min", data, segment_ids, num_segments)
    return _from(SEGMENT_MIN, x.dtype.max, x, ids, count)


def unsorted_segment_mean(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Row k of the result is the mean of the rows of `data` whose id is k; negative ids drop.

    A segment without rows is 0; means of integers are float64.
    """
    x, ids, count = segment_arguments("unsorted_segment_mean", data, segment_ids, num_segments)
    total = unsorted_segment_sum(x, ids, count)
    return total / _rows_of(ids, count, total, least=1)


def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The sums of `unsorted_segment_sum`, divided by the root of the number of rows.

    Raises:
        TypeError: data that is not floating.
    """
    x, ids, count = segment_arguments("unsorted_segment_sqrt_n", data, segment_ids, num_segments)
    if not x.dtype.is_floating:
        text = f"unsorted_segment_sqrt_n takes floats, not {x.dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    total = unsorted_segment_sum(x, ids, count)
    rows = _rows_of(ids, count, total, least=1)
    return total / sqrt(rows)


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
    x, ids, count = _sorted("segment_mean", data, segment_ids)
    total = unsorted_segment_sum(x, ids, count)
    rows = _rows_of(ids, count, total, least=1)
    return truncatediv(total, rows) if x.dtype.is_integer else total / rows


def _sorted(name: str, data: Any, segment_ids: Any) -> tuple[Tensor, Tensor, Dim]:
    x, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
    if ids.ndim != 1 or not ids.dtype.is_integer:
        raise (errors.InvalidArgumentError if ids.dtype.is_integer else errors.DtypeError)(
            None, None,
            f"{name}: the segment ids must be a vector of integers, not {ids.dtype.name} of shape "
            f"{ids.shape}{at(user_origin())}",
        )  # fmt: skip
    if not ids.shape.is_compatible_with(x.shape[:1]):
        text = f"{name}: the segment ids {ids.shape} must begin the shape of the data {x.shape}"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    ids = cast(ids, dtypes.int64)
    ascending = reduce_all(ids[1:] >= ids[:-1]) & reduce_all(ids >= 0)
    Assert(ascending, [f"{name}: the segment ids must ascend from 0 on"])
    last = maximum(reduce_max(ids), convert_to_tensor(-1, dtypes.int64))
    return x, ids, size_of(last + 1, f"{name}: the number of segments")


def _from(op: Op, start: Any, x: Tensor, ids: Tensor, count: Dim) -> Tensor:
    """Segments that begin with a number."""
    if x.dtype is dtypes.bool or (x.dtype.is_complex and op is not COMPLEX_SEGMENT_MUL):
        text = f"{op.name}: the data must be real numbers, not {x.dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    first = broadcast_dims(convert_to_tensor(start, x.dtype), (count, *x.dims[ids.ndim :]))
    return run(op, first, x, ids)  # type: ignore[no-any-return]


def _sorted_extreme(op: Op, kind: str, x: Tensor, ids: Tensor, count: Dim) -> Tensor:
    found = _from(op, neutral(kind, x.dtype), x, ids, count)
    zero = convert_to_tensor(0, x.dtype)
    return where(_rows_of(ids, count, found) > zero, found, zero)


def _rows_of(ids: Tensor, count: Dim, like: Tensor, least: int = 0) -> Tensor:
    """How many rows each segment has, but at least so many, for segments ``like`` these."""
    one = broadcast_dims(convert_to_tensor(1, dtypes.int64), ids.dims)
    rows = maximum(unsorted_segment_sum(one, ids, count), convert_to_tensor(least, dtypes.int64))
    return cast(reshape_to(rows, (count, *(1,) * (like.ndim - 1))), like.dtype)
