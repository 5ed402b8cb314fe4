"""Routines of the library for eager execution: ops whose NumPy form is slow (`Rows.eagerly`)."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray
from treadle.ops.lowering import Rows
from treadle.ops.registry import Op
from treadle.runtime.cpu.library_code import routine_address, table_address
from treadle.runtime.cpu.routines.entry import LINE, row_numbers, row_space, row_symbol
from treadle.runtime.cpu.target import Target, host, process_host
from treadle.runtime.cpu.thread_count import planned_workers


def by_routine(
    op: Op, arrays: Sequence[NDArray], attrs: Mapping[str, Any]
) -> tuple[NDArray, ...] | None:
    """The results of an op by its routine; None where it has none, or refuses the arrays.

    Raises:
        TypeError, ValueError: what the shape rule of the op says.
    """
    lower, target = op.lower, host()
    assert isinstance(lower, Rows)
    if target is not process_host():  # programs are made for another machine
        return None
    arrays = [np.ascontiguousarray(a) if a.ndim else a for a in arrays]
    specs = [TensorSpec(a.shape, dtypes.from_numpy(a.dtype)) for a in arrays]
    inferred = op.infer(*specs, **attrs)
    outputs: Any = inferred if isinstance(inferred, tuple) else (inferred,)
    call = lower.call(specs, outputs, attrs)
    if call is None:
        return None
    rows: Any = call.rows
    numbers: Any = row_numbers(lower.routine, call, target.tuning)
    results = [np.empty(spec.dims, spec.dtype.np_dtype) for spec in outputs]
    status = [np.zeros(rows, np.int32)] if lower.fails else []
    operands = [a.ctypes.data for a in (*arrays, *results, *status)]
    workers = planned_workers()
    size: Any = row_space(call) * workers + LINE
    space = np.empty(size, np.uint8)
    start = -space.ctypes.data % LINE
    _routine(row_symbol(lower.routine, call), target)(
        table_address(workers),
        (ctypes.c_void_p * (len(operands) + 2))(*operands),  # no epilogue, no call to stop
        (ctypes.c_int64 * len(numbers))(*numbers),
        space.ctypes.data + start,
    )
    return None if status and status[0].any() else tuple(results)


@functools.cache
def _routine(symbol: str, target: Target) -> Callable[..., None]:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(routine_address(symbol))
