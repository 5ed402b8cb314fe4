"""NumPy arrays in memory that is kept for reuse (`kept_memory`): large results of programs.

NumPy lets every array have its own allocator (NEP 49). Ours is set just while a large result is
made; the array remembers it and gives its memory back there, whoever holds it last.
"""

from __future__ import annotations

import ctypes
import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import locks
from treadle.core.arrays import LARGE
from treadle.runtime.cpu.abi import numpy_function
from treadle.runtime.cpu.kept_memory import kept_memory, outlives_python

_SET_HANDLER = 304  # place of PyDataMem_SetHandler in NumPy's table of functions
_NAME = b"treadle"


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler, version 1."""

    _fields_ = (
        ("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p), ("calloc", ctypes.c_void_p), ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )  # fmt: skip


def empty(shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """``np.empty(shape, dtype)``, in kept memory if it is large."""
    if math.prod(shape) * dtype.itemsize < LARGE:
        return np.empty(shape, dtype)
    found = handler()
    if found is None:
        return np.empty(shape, dtype)
    set_handler, capsule = found
    before = set_handler(capsule)
    try:
        return np.empty(shape, dtype)
    finally:
        set_handler(before)


@locks.made_once
def handler() -> tuple[Any, Any] | None:
    """NumPy's function that sets the allocator, and ours; None where that does not work."""
    try:
        set_handler, capsule = set_handler_function(), _capsule()
        before = set_handler(capsule)
        try:
            array = np.empty(LARGE, np.uint8)
        finally:
            set_handler(before)
        names = importlib.import_module("numpy._core.multiarray").get_handler_name
        if names(array) != _NAME.decode() or names(np.empty(3)) == _NAME.decode():
            return None
    except (AttributeError, ImportError, OSError, RuntimeError, ValueError):
        return None
    return set_handler, capsule


def set_handler_address() -> int:
    """The address of PyDataMem_SetHandler."""
    return numpy_function(_SET_HANDLER)


def set_handler_function() -> Any:
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(set_handler_address())


def _capsule() -> Any:
    functions = kept_memory().array_functions
    record = _Handler(_NAME, 1, None, *functions)
    outlives_python(record)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(ctypes.addressof(record), b"mem_handler", None)
