"""Where CPython and NumPy keep an array's data and shape, found by probing live objects.

Compiled programs take ndarrays as they are and read their fields. Nothing here is assumed: the
offsets are searched for and checked on several arrays; where anything is odd `layout` gives None
and programs are called with plain addresses instead.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
from typing import Any, NamedTuple

import numpy as np

_WORD = ctypes.sizeof(ctypes.c_void_p)


class Layout(NamedTuple):
    """Byte offsets in an object: of its type, an ndarray's data pointer and pointer to dims."""

    type: int
    data: int
    dims: int


@functools.cache
def layout() -> Layout | None:
    """The layout in this process, or None where native code must not look into arrays."""
    if sys.implementation.name != "cpython" or _WORD != 8 or sys.byteorder != "little":
        return None
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    arrays = _samples()
    data = _common(arrays, lambda a: a.__array_interface__["data"][0])
    if data is None:
        return None
    found = Layout(object.__basicsize__ - _WORD, data, data + 2 * _WORD)  # data, int nd, dimensions
    return found if all(_holds(found, a) for a in arrays) else None


def _samples() -> list[Any]:
    shapes = (("f4", (2, 3, 4)), ("f8", (24,)), ("i8", (4, 6)), ("f2", (1, 2, 3, 4)), ("?", (7,)))
    return [np.zeros(shape, dtype) for dtype, shape in shapes]


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _common(arrays: list[Any], value: Any) -> int | None:
    """The only offset at which every array object holds ``value(array)``."""
    offsets = range(object.__basicsize__, np.ndarray.__basicsize__, _WORD)
    fits = [o for o in offsets if all(_word(id(a) + o) == value(a) for a in arrays)]
    return fits[0] if len(fits) == 1 else None


def _holds(found: Layout, array: Any) -> bool:
    if _word(id(array) + found.type) != id(np.ndarray):
        return False
    rank = ctypes.c_int.from_address(id(array) + found.data + _WORD).value
    if rank != array.ndim:
        return False
    dims = (ctypes.c_ssize_t * rank).from_address(_word(id(array) + found.dims))
    return bool(tuple(dims) == array.shape)


def c_function(name: str) -> int:
    """The address of a function of CPython's API or of the C library."""
    for library in (ctypes.pythonapi, ctypes.CDLL(None)):
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        except AttributeError:
            continue
    raise OSError(f"the process has no function {name}")


def array_at(address: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """An ndarray over memory that somebody else keeps alive."""
    count = dtype.itemsize
    for dim in shape:
        count *= dim
    if not count:
        return np.empty(shape, dtype)
    buffer = (ctypes.c_char * count).from_address(address)
    return np.ndarray(shape, dtype, buffer)  # type: ignore[arg-type]


FASTCALL = 0x0080  # a method that takes (self, arguments, their number)


class MethodDef(ctypes.Structure):
    """CPython's PyMethodDef: name, function, flags, documentation."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )  # fmt: skip


def numpy_function(place: int) -> int:
    """The address of a function of NumPy's C API, by its place in the table.

    Raises:
        OSError: the table is laid out in another way.
    """
    capsule = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = pointer(capsule, None)
    if _word(table + 2 * _WORD) != id(np.ndarray) or _word(table + 3 * _WORD) != id(np.dtype):
        raise OSError("NumPy's table of functions is laid out in another way")
    return _word(table + place * _WORD)
