"""All of NumPy's functions on tensors: the modules that have them, and the table by function."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.numpy_staging import (
    choosing,
    counting,
    fft,
    joining,
    linalg,
    making,
    positions,
    products,
    reductions,
    shapes,
    signals,
    statistics,
    ufuncs,
    values,
)
from treadle.numpy_staging.dtypes import as_array, result_dtype
from treadle.ops.elementwise import complex_numbers

Function = Callable[..., Any]
Table = dict[Any, Function]

_MODULES = (
    choosing, counting, joining, making, positions, products,
    reductions, shapes, signals, statistics, values,
)  # fmt: skip


def _defined(module: types.ModuleType, namespace: Any) -> Table:
    """NumPy's function -> the one of this name that the module defines."""
    return {
        getattr(namespace, name): made
        for name, made in vars(module).items()
        if getattr(made, "__module__", None) == module.__name__ and hasattr(namespace, name)
    }


FUNCTIONS: Table = {
    np.amax: reductions.max,
    np.amin: reductions.min,
    np.around: values.round,
    np.real: lambda val: complex_numbers.real(as_array(val)),
    np.imag: lambda val: complex_numbers.imag(as_array(val)),
    np.fix: lambda x: ufuncs.call(np.trunc, (x,)),
    np.flipud: lambda m: shapes.flip(m, 0),
    np.fliplr: lambda m: shapes.flip(m, 1),
    np.result_type: lambda *xs: result_dtype(*xs).np_dtype,
    np.lib.stride_tricks.sliding_window_view: signals.sliding_window_view,
    np.linalg.matrix_transpose: shapes.matrix_transpose,
    **_defined(linalg, np.linalg),
    **_defined(fft, np.fft),
}
for _module in _MODULES:
    FUNCTIONS |= _defined(_module, np)


def named(name: str) -> Function:
    """The function that NumPy calls `name`."""
    return FUNCTIONS[getattr(np, name)]
