"""Sums over groups of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.shapes import Dim, TensorShape, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.families import require_kinds
from treadle.ops.lowering import LoopRoutine, ProgramLoops, RowCall, Rows
from treadle.ops.properties import Part, PartKind, PartUse
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.sizes import Pairs


def _infer(data: TensorSpec, ids: TensorSpec, *, num_segments: Dim) -> TensorSpec:
    require_kinds("iu", ids)
    require_kinds("fciu", data)
    if not TensorShape(data.dims[: ids.rank]).is_compatible_with(ids.shape):
        raise ValueError(
            f"the segment ids {ids.shape} must begin the shape of the data {data.shape}"
        )
    return TensorSpec((num_segments, *data.dims[ids.rank :]), data.dtype)


def _eager(data: NDArray, ids: NDArray, *, num_segments: int) -> NDArray:
    """Rows with a negative id are dropped."""
    from treadle.ops.indexing.gather import check_positions

    if data.shape[: ids.ndim] != ids.shape:
        raise errors.InvalidArgumentError(None, None, "the segment ids do not fit the data")
    flat, rest = ids.reshape(-1), data.shape[ids.ndim :]
    rows = data.reshape((flat.size, *rest))
    if flat.size and flat.min() < 0:
        rows, flat = rows[flat >= 0], flat[flat >= 0]
    check_positions(flat, num_segments, what="segment id")
    wide = (
        rows.astype(np.float32)
        if rows.dtype.itemsize == 2 and rows.dtype.kind not in "iu"
        else rows
    )
    total = np.zeros((num_segments, *rest), wide.dtype)
    np.add.at(total, flat, wide)
    return total.astype(data.dtype, copy=False)


def _gradient(call: OpCall, dy: Tensor) -> list[Any]:
    from treadle.ops.elementwise.arithmetic import maximum
    from treadle.ops.elementwise.selection import where
    from treadle.ops.indexing.gather import gather
    from treadle.ops.shaping.reshaping import reshape_to

    data, ids = call.inputs
    rows = gather(dy, maximum(ids, 0))
    kept = reshape_to(ids >= 0, (*ids.dims, *(1,) * (data.ndim - ids.ndim)))
    return [where(kept, rows, convert_to_tensor(0, dy.dtype)), None]


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


def unsorted_segment_sum(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Row k of the result is the sum of the rows of `data` whose id is k; negative ids drop."""
    from treadle.ops.dims import size_of

    count = size_of(num_segments, "unsorted_segment_sum: num_segments")
    x, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
    if x.dtype.is_floating and x.dtype.size == 2:
        from treadle.ops.elementwise.casting import cast

        wide = run(UNSORTED_SEGMENT_SUM, cast(x, dtypes.float32), ids, num_segments=count)
        return cast(wide, x.dtype)
    return run(UNSORTED_SEGMENT_SUM, x, ids, num_segments=count)  # type: ignore[no-any-return]
