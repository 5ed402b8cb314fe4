"""Parts read along an axis at positions given by data, and rows added up at such positions.

Each is the other's gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.context import context
from treadle.core.dtypes import DType
from treadle.core.origin import at, attributed_to, user_origin
from treadle.core.shapes import Dim, TensorShape, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, SymbolicTensor, Tensor
from treadle.kernel.ir import Expr, Index, cast
from treadle.ops.axes import normalize_axis
from treadle.ops.conversion import convert_to_tensor, register_converter
from treadle.ops.dims import shape as shape_of
from treadle.ops.dims import size_of, sizes_of
from treadle.ops.elementwise.arithmetic import maximum, minimum
from treadle.ops.elementwise.casting import cast as cast_tensor
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import WHOLE
from treadle.ops.indexed_slices import IndexedSlices
from treadle.ops.indexing.index import check_positions
from treadle.ops.lowering import (
    Compute,
    LoopRoutine,
    LowerCall,
    ProgramLoops,
)
from treadle.ops.op_makers import inferred, require_kinds
from treadle.ops.properties import Part, PartKind, PartUse, Refusal
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.ranges import RANGE
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.sizes import Pairs

# -- gather --------------------------------------------------------------------------------------


def _infer_gather(
    params: TensorSpec, indices: TensorSpec, *, axis: int, batch_dims: int
) -> TensorSpec:
    require_kinds("iu", indices)
    batch = params.dims[:batch_dims], indices.dims[:batch_dims]
    if not TensorShape(batch[0]).is_compatible_with(TensorShape(batch[1])):
        raise errors.InvalidArgumentError(
            None, None, f"the first {batch_dims} dims of {params.shape} and {indices.shape} differ"
        )
    dims = (*params.dims[:axis], *indices.dims[batch_dims:], *params.dims[axis + 1 :])
    return TensorSpec(dims, params.dtype)


def _eager_gather(params: NDArray, indices: NDArray, *, axis: int, batch_dims: int) -> NDArray:
    check_positions(indices, params.shape[axis])
    if params.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise errors.InvalidArgumentError(None, None, "the batches differ")
    if not batch_dims:
        return np.take(params, indices, axis)
    # Every batch position joined with the index: one flat take over (batch * dim).
    batch = params.shape[:batch_dims]
    moved = np.moveaxis(params, axis, batch_dims)
    rest = moved.shape[batch_dims + 1 :]
    rows = moved.reshape((product(moved.shape[: batch_dims + 1]), *rest))
    offsets = np.arange(int(np.prod(batch))).reshape(batch) * params.shape[axis]
    flat = indices + offsets.reshape(batch + (1,) * (indices.ndim - batch_dims))
    taken = rows[flat]
    order = list(range(taken.ndim))
    middle = order[batch_dims : indices.ndim]
    outer = order[indices.ndim : indices.ndim + axis - batch_dims]
    tail = order[indices.ndim + axis - batch_dims :]
    result: NDArray = taken.transpose(order[:batch_dims] + outer + middle + tail)
    return result


def _lower_gather(call: LowerCall, index: Sequence[Index]) -> Expr:
    axis, batch = call.attrs["axis"], call.attrs["batch_dims"]
    count = call.specs[1].rank - batch
    position = call.inputs[1]([*index[:batch], *index[axis : axis + count]])
    return call.inputs[0]([*index[:axis], cast(position, dtypes.int64), *index[axis + count :]])


def _grad_gather(call: OpCall, dy: Tensor) -> list[Any]:
    """The gradient rows at the positions that they were read from: apart where these are along the
    first axis, else added up."""
    params, indices = call.inputs
    axis, batch = call.attrs["axis"], call.attrs["batch_dims"]
    if not axis:
        return [rows_of(params, indices, dy), None]
    count = indices.ndim - batch
    size = params.dims[axis]
    outer, inner = range(batch, axis), range(axis + count, dy.ndim)
    # Batch axes, the axes of the indices, then those of what each index names.
    moved = permute(dy, [*range(batch), *range(axis, axis + count), *outer, *inner])
    rest = moved.dims[indices.ndim :]
    rows = product(params.dims[:batch])
    flat_index = reshape_to(indices, (rows, product(indices.dims[batch:])))
    if batch:
        flat_index = flat_index + _row_offsets(rows, size, indices.dtype)
    flat = reshape_to(flat_index, (product(indices.dims),))
    updates = reshape_to(moved, (product(indices.dims), *rest))
    total = unsorted_segment_sum(updates, flat, rows * size)
    total = reshape_to(total, (*params.dims[:batch], size, *rest))
    back = [*range(batch), *range(batch + 1, axis + 1), batch, *range(axis + 1, params.ndim)]
    return [permute(total, back), None]


def rows_of(params: Tensor, indices: Tensor, rows: Tensor) -> IndexedSlices:
    """A tensor of the shape of `params` with `rows` at the positions that `indices` names along
    the first axis."""
    count = product(indices.dims)
    flat = reshape_to(rows, (count, *params.dims[1:]))
    return IndexedSlices.of_dims(flat, reshape_to(indices, (count,)), shape_of(params), params.dims)


def _row_offsets(rows: Dim, size: Dim, dtype: Any) -> Tensor:
    offsets = run(RANGE, start=0, delta=size, size=rows, dtype=dtype)
    return reshape_to(offsets, (rows, 1))


def _batches(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """The batches of what is gathered from are those of the positions."""
    count = attrs["batch_dims"]
    yield from zip(specs[0].dims[:count], specs[1].dims[:count], strict=True)


GATHER = register(
    Op(
        "gather",
        _infer_gather,
        _eager_gather,
        _grad_gather,
        Compute(_lower_gather, "gather"),
        tags=frozenset({"any_elements", "selects"}),
        refuses=Refusal.POSITION,
        sizes=_batches,
    )
)


def gather(
    params: Any, indices: Any, validate_indices: Any = None, axis: Any = None,
    batch_dims: int | None = 0, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The parts of `params` at `indices` along `axis` (default: `batch_dims`).

    The first `batch_dims` axes of both are matched instead of combined; a negative number counts
    from the end of the axes of `indices`, and as `axis` from the end of those of `params`;
    None is 0.

    Raises:
        InvalidArgumentError: an index outside the axis.
    """
    x, i = convert_to_tensor(params), convert_to_tensor(indices)
    batch = position = batch_dims or 0
    if axis is not None or batch < 0:
        position = normalize_axis(position if axis is None else axis, x.ndim)
    if batch < 0:
        batch = normalize_axis(batch, i.ndim)
    if not batch <= position < max(x.ndim, 1) or x.ndim == 0:
        raise errors.InvalidArgumentError(
            None, None,
            f"gather: axis {position} does not fit params of shape {x.shape} and batch_dims "
            f"{batch}{at(user_origin())}",
        )  # fmt: skip
    return run(GATHER, x, i, axis=position, batch_dims=batch)  # type: ignore[no-any-return]


def gathered(x: Tensor, indices: Tensor, axis: int | None = None, batch_dims: int = 0) -> Tensor:
    """`gather` for operations that are written with it: the gradient of `x` is a tensor."""
    differentiable = context.tapes or isinstance(x, SymbolicTensor)  # a graph, perhaps later
    source = run(WHOLE, x) if differentiable else x
    return gather(source, indices, axis=axis, batch_dims=batch_dims)


# -- sums over groups of rows ------------------------------------------------------------------


def infer_sums(data: TensorSpec, ids: TensorSpec, *, num_segments: Dim) -> TensorSpec:
    require_kinds("iu", ids)
    require_kinds("fciu", data)
    if not TensorShape(data.dims[: ids.rank]).is_compatible_with(ids.shape):
        raise ValueError(
            f"the segment ids {ids.shape} must begin the shape of the data {data.shape}"
        )
    return TensorSpec((num_segments, *data.dims[ids.rank :]), data.dtype)


def kept_rows(data: NDArray, ids: NDArray, num_segments: int) -> tuple[NDArray, NDArray]:
    """The ids that are not negative, and their rows."""
    if data.shape[: ids.ndim] != ids.shape:
        raise errors.InvalidArgumentError(None, None, "the segment ids do not fit the data")
    flat = ids.reshape(-1)
    rows = data.reshape((flat.size, *data.shape[ids.ndim :]))
    if flat.size and flat.min() < 0:
        rows, flat = rows[flat >= 0], flat[flat >= 0]
    check_positions(flat, num_segments, what="segment id")
    return flat, rows


def _eager_sums(data: NDArray, ids: NDArray, *, num_segments: int) -> NDArray:
    flat, rows = kept_rows(data, ids, num_segments)
    wide = (
        rows.astype(np.float32)
        if rows.dtype.itemsize == 2 and rows.dtype.kind not in "iu"
        else rows
    )
    width = math.prod(rows.shape[1:])
    total = np.zeros((num_segments, width), wide.dtype)
    np.add.at(total, flat, wide.reshape(len(rows), width))  # `at` takes 32 axes at most
    return total.reshape(num_segments, *rows.shape[1:]).astype(data.dtype, copy=False)


def _grad_sums(call: OpCall, dy: Tensor) -> list[Any]:
    data, ids = call.inputs
    return [where(is_kept(data, ids), of_rows(dy, ids), convert_to_tensor(0, dy.dtype)), None]


def is_kept(data: Tensor, ids: Tensor) -> Tensor:
    """Whether a row has a segment, in a shape that broadcasts with the data."""
    return reshape_to(ids >= 0, (*ids.dims, *(1,) * (data.ndim - ids.ndim)))


def of_rows(segments: Tensor, ids: Tensor) -> Tensor:
    """What belongs to each row of the data; something for rows without a segment."""
    return gather(segments, maximum(ids, 0))


def _rows(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """Every row of the data has a segment."""
    data, ids = specs
    yield from zip(ids.dims, data.dims, strict=False)


UNSORTED_SEGMENT_SUM = register(
    Op(
        "unsorted_segment_sum",
        infer_sums,
        inferred(infer_sums, _eager_sums),
        _grad_sums,
        ProgramLoops(LoopRoutine.SUM_SEGMENTS, bools=False, halves=False),
        part=Part(PartKind.SEGMENTS, PartUse.PLACE, 0),
        sizes=_rows,
    )
)


def unsorted_segment_sum(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Row k of the result is the sum of the rows of `data` whose id is k; negative ids drop."""
    x, ids, count = segment_arguments("unsorted_segment_sum", data, segment_ids, num_segments)
    return in_float32(lambda wide: run(UNSORTED_SEGMENT_SUM, wide, ids, num_segments=count), x)


def segment_arguments(name: str, data: Any, ids: Any, segments: Any) -> tuple[Tensor, Tensor, Dim]:
    """The arguments of an op on segments as tensors and a dim.

    Args:
        name: of the op, for errors.
    """
    count, numbers = size_of(segments, f"{name}: num_segments"), convert_to_tensor(ids)
    if numbers.dtype is dtypes.uint64:  # places in memory are signed
        numbers = minimum(numbers, np.uint64(dtypes.int64.max))
    return convert_to_tensor(data), numbers, count


def in_float32(reduce: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Floats of 16 bits are combined in float32."""
    if x.dtype.is_floating and x.dtype.size == 2:
        return cast_tensor(reduce(cast_tensor(x, dtypes.float32)), x.dtype)
    return reduce(x)


def dense(slices: Any) -> Tensor:
    """The tensor that IndexedSlices stand for; tensors as they are.

    Raises:
        ValueError: they do not know its shape.
        InvalidArgumentError: an index beyond the rows of the tensor.
    """
    if not isinstance(slices, IndexedSlices):
        return slices  # type: ignore[no-any-return]
    dims = slices.dims
    if dims is None:
        if slices.dense_shape is None:
            raise ValueError(
                f"IndexedSlices without dense_shape cannot be converted to a tensor"
                f"{at(user_origin())}"
            )
        dims = sizes_of(slices.dense_shape, "IndexedSlices: dense_shape")
    with attributed_to(slices.origin):
        return unsorted_segment_sum(slices.values, slices.indices, dims[0])


def _convert(slices: IndexedSlices, dtype: DType | None) -> Tensor:
    if dtype is not None and dtype is not slices.dtype:
        raise ValueError(
            f"IndexedSlices of dtype {slices.dtype.name} are not converted to {dtype.name}: use "
            f"td.cast{at(user_origin())}"
        )
    return dense(slices)


register_converter(IndexedSlices, _convert)
