"""Routines of the library for eager execution: ops whose NumPy form is slow (`Rows.eagerly`)."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.core.spec import TensorSpec, array_spec
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
    target = host()
    if target is not process_host():  # programs are made for another machine
        return None
    arrays = [np.ascontiguousarray(a) if a.ndim else a for a in arrays]
    specs = tuple(map(array_spec, arrays))
    plan = _planned(op, specs, tuple(attrs.items()), target)
    if plan is None:
        return None
    results = tuple(np.empty(shape, dtype) for shape, dtype in plan.results)
    status = () if plan.rows is None else (np.zeros(plan.rows, np.int32),)
    operands = [a.ctypes.data for a in (*arrays, *results, *status)]
    space = np.empty(plan.space, np.uint8)
    start = -space.ctypes.data % LINE
    plan.routine(
        table_address(plan.workers),
        (ctypes.c_void_p * (len(operands) + 2))(*operands),  # no epilogue, no call to stop
        plan.numbers,
        space.ctypes.data + start,
    )
    return None if status and status[0].any() else results


class _Plan(NamedTuple):
    """How a routine is called for operands of some shapes.

    Attributes:
        results: the shapes and dtypes of the arrays that it writes.
        rows: of which it says which ones it refuses; None where it refuses none.
        space: bytes of the workspace of all threads.
    """

    routine: Callable[..., None]
    results: list[tuple[Any, Any]]
    rows: int | None
    numbers: Any
    space: int
    workers: int


@functools.lru_cache(maxsize=512)
def _planned(
    op: Op, specs: tuple[TensorSpec, ...], attrs: tuple[tuple[str, Any], ...], target: Target
) -> _Plan | None:
    lower = op.lower
    assert isinstance(lower, Rows)
    inferred = op.infer(*specs, **dict(attrs))
    outputs: Any = inferred if isinstance(inferred, tuple) else (inferred,)
    call = lower.call(specs, outputs, dict(attrs))
    if call is None:
        return None
    results = [(spec.dims, spec.dtype.np_dtype) for spec in outputs]
    rows: Any = call.rows if lower.fails else None
    numbers: Any = row_numbers(lower.routine, call, target.tuning)
    workers = planned_workers()
    size: Any = row_space(call) * workers + LINE
    routine = _routine(row_symbol(lower.routine, call), target)
    arguments = (ctypes.c_int64 * len(numbers))(*numbers)
    return _Plan(routine, results, rows, arguments, size, workers)


@functools.cache
def _routine(symbol: str, target: Target) -> Callable[..., None]:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(routine_address(symbol))
