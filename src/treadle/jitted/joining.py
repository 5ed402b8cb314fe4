"""NumPy's functions that join the arrays of a list, where the list is one that only the run has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.jitted.arrays import Array, TracedSequence, is_traced
from treadle.jitted.making import known
from treadle.jitted.operations import call_function
from treadle.ops.axes import normalize_axis


def stack(rows: Array, axis: int = 0) -> Array:
    """``np.stack`` of the rows."""
    perm = list(range(1, rows.ndim))
    perm.insert(normalize_axis(axis, rows.ndim), 0)
    return rows.permuted(perm).copy()


def concatenate(rows: Array, axis: Any = 0) -> Array:
    """``np.concatenate`` of the rows."""
    if axis is None:
        return rows.flatten()
    axis = normalize_axis(axis, rows.ndim - 1)
    shape: list[Any] = list(rows.shape[1:])
    shape[axis] = shape[axis] * rows.shape[0]
    return stack(rows, axis).reshape(shape)


def vstack(rows: Array) -> Array:
    if rows.ndim > 2:
        return concatenate(rows)
    return (rows if rows.ndim == 2 else rows[:, None]).copy()


def hstack(rows: Array) -> Array:
    return rows.copy() if rows.ndim == 1 else concatenate(rows, 0 if rows.ndim == 2 else 1)


def column_stack(rows: Array) -> Array:
    return concatenate(rows, 1) if rows.ndim > 2 else vstack(rows).T.copy()


def _joining(func: Any, of_rows: Callable[..., Array]) -> Callable[..., Any]:
    def call(arrays: Any, *args: Any, **options: Any) -> Any:
        if isinstance(arrays, TracedSequence) and not options.keys() - {"axis"}:
            return of_rows(arrays.array(), *args, **options)
        if is_traced((arrays, *args)) or is_traced(list(options.values())):
            return call_function(func, (arrays, *args), options)
        return known(func(arrays, *args, **options))

    call.__name__ = func.__name__
    return call


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    func: _joining(func, of_rows)
    for func, of_rows in {
        np.stack: stack, np.concatenate: concatenate, np.vstack: vstack, np.hstack: hstack,
        np.column_stack: column_stack,
    }.items()
}  # fmt: skip
