"""All of NumPy's functions on tensors: the modules that have them, and the table by function."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.ops import (
    complex_numbers,
    numpy_choosing,
    numpy_counting,
    numpy_fft,
    numpy_joining,
    numpy_linalg,
    numpy_making,
    numpy_positions,
    numpy_products,
    numpy_reductions,
    numpy_shapes,
    numpy_signals,
    numpy_statistics,
    numpy_values,
)
from treadle.ops import numpy_ufuncs as ufuncs
from treadle.ops.numpy_dtypes import as_array, result_dtype

Function = Callable[..., Any]
Table = dict[Any, Function]

_MODULES = (
    numpy_choosing, numpy_counting, numpy_joining, numpy_making, numpy_positions, numpy_products,
    numpy_reductions, numpy_shapes, numpy_signals, numpy_statistics, numpy_values,
)  # fmt: skip


def _defined(module: types.ModuleType, namespace: Any) -> Table:
    """NumPy's function -> the one of this name that the module defines."""
    return {
        getattr(namespace, name): made
        for name, made in vars(module).items()
        if getattr(made, "__module__", None) == module.__name__ and hasattr(namespace, name)
    }


FUNCTIONS: Table = {
    np.amax: numpy_reductions.max,
    np.amin: numpy_reductions.min,
    np.around: numpy_values.round,
    np.real: lambda val: complex_numbers.real(as_array(val)),
    np.imag: lambda val: complex_numbers.imag(as_array(val)),
    np.fix: lambda x: ufuncs.call(np.trunc, (x,)),
    np.flipud: lambda m: numpy_shapes.flip(m, 0),
    np.fliplr: lambda m: numpy_shapes.flip(m, 1),
    np.result_type: lambda *xs: result_dtype(*xs).np_dtype,
    np.lib.stride_tricks.sliding_window_view: numpy_signals.sliding_window_view,
    np.linalg.matrix_transpose: numpy_shapes.matrix_transpose,
    **_defined(numpy_linalg, np.linalg),
    **_defined(numpy_fft, np.fft),
}
for _module in _MODULES:
    FUNCTIONS |= _defined(_module, np)


def named(name: str) -> Function:
    """The function that NumPy calls `name`."""
    return FUNCTIONS[getattr(np, name)]
