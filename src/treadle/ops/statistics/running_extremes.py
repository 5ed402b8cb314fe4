"""Running maxima and minima along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.selection import where
from treadle.ops.indexing.gather import unsorted_segment_sum
from treadle.ops.indexing.transposing import transpose
from treadle.ops.op_makers import guard, require_kinds
from treadle.ops.reductions.scan import lower_scan, run_scan, scanned
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.ranges import RANGE
from treadle.ops.shaping.reshaping import reshape_to


def _infer_real(x: TensorSpec, *, axis: int, exclusive: bool, reverse: bool) -> TensorSpec:
    require_kinds("fiu", x)
    return x


_NOWHERE = np.int64(np.iinfo(np.int64).max)  # where a reversed scan of places begins


def _grad_extreme(call: OpCall, dy: Tensor) -> list[Any]:
    """Each gradient goes to the last of the elements so far that are the extreme."""
    axis, exclusive, reverse = (call.attrs[k] for k in ("axis", "exclusive", "reverse"))
    x = call.inputs[0]
    found = run(call.op, x, axis=axis, exclusive=False, reverse=reverse) if exclusive else None
    best = call.outputs[0] if found is None else found
    size = x.dims[axis]
    others = tuple(d for i, d in enumerate(x.dims) if i != axis)

    def numbers(step: Dim, count: Dim, along: bool) -> Tensor:
        """0, step, ... along the axis, or over all others."""
        found = run(RANGE, start=0, delta=step, size=count, dtype=dtypes.int64)
        dims = tuple(d if (i == axis) is along else 1 for i, d in enumerate(x.dims))
        return reshape_to(found, dims)

    places = numbers(1, size, True)
    nowhere = convert_to_tensor(_NOWHERE if reverse else np.int64(-1))
    last = CUMMIN if reverse else CUMMAX  # the latest place in the direction of the scan
    from_ = run(
        last, where(x == best, places, nowhere), axis=axis, exclusive=exclusive, reverse=reverse
    )
    inside = (from_ >= 0) & (from_ != convert_to_tensor(_NOWHERE))
    rows = numbers(size, product(others), False)
    ids = where(inside, rows + from_, convert_to_tensor(np.int64(-1)))
    count = product(x.dims)
    flat = unsorted_segment_sum(reshape_to(dy, (count,)), reshape_to(ids, (count,)), count)
    order = [*(i for i in range(x.ndim) if i != axis), axis]
    moved = reshape_to(flat, (*others, size))
    return [transpose(moved, [order.index(i) for i in range(x.ndim)])]


CUMMAX = register(
    Op(
        "cummax",
        _infer_real,
        guard("fiu", scanned(np.maximum, "max")),
        _grad_extreme,
        lower_scan("max"),
    )
)
CUMMIN = register(
    Op(
        "cummin",
        _infer_real,
        guard("fiu", scanned(np.minimum, "min")),
        _grad_extreme,
        lower_scan("min"),
    )
)


def cummax(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The largest element so far along `axis`, or NaN; the first one of an `exclusive` scan is the
    least number that there is."""
    return run_scan(CUMMAX, x, axis, exclusive, reverse)


def cummin(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The smallest element so far along `axis`, or NaN; the first one of an `exclusive` scan is the
    largest number that there is."""
    return run_scan(CUMMIN, x, axis, exclusive, reverse)
