"""Where CPython and NumPy keep what the trampoline reads and writes, found by probing live objects.

Nothing is assumed that can be searched for, and what was found is checked on other objects.
`call_layout` gives None where anything is odd; calls then take the portable path.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.core.tensor import Tensor
from treadle.runtime.cpu.abi import layout, numpy_function

_WORD = 8
_VERSIONS = ((3, 11), (3, 14))  # tested; later ones take the portable path
_NEW_FROM_DESCR, _SCALAR = 94, 60  # places in NumPy's table of functions (NumPy 2)


class CallLayout(NamedTuple):
    """Byte offsets of fields, and the addresses of PyArray_NewFromDescr and PyArray_Scalar."""

    refcount: int
    type: int
    size: int
    list_items: int
    tuple_items: int
    float_value: int
    array_data: int
    array_rank: int
    array_dims: int
    array_dtype: int
    array_flags: int
    tensor_array: int
    tensor_spec: int
    tensor_weak: int
    array_weak: int
    new_array: int
    new_scalar: int

    @property
    def offsets(self) -> tuple[int, ...]:
        """What is the same in every process."""
        return self[: self._fields.index("new_array")]


class Unsupported(Exception):
    """This interpreter is not laid out as expected."""


@functools.cache
def call_layout() -> CallLayout | None:
    """The layout in this process; None for the portable path (``TREADLE_PORTABLE_CALLS=1``)."""
    if os.environ.get("TREADLE_PORTABLE_CALLS", "") not in ("", "0"):
        return None
    basic = layout()
    if basic is None or not _VERSIONS[0] <= sys.version_info[:2] < _VERSIONS[1]:
        return None
    if hasattr(sys, "getobjects"):  # a Py_TRACE_REFS build
        return None
    try:
        return _probe(basic.type, basic.data, basic.dims)
    except (Unsupported, AttributeError, ImportError, OSError, ValueError):
        return None


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _only_offset(objects: Sequence[Any], size: int, value: Callable[[Any], int]) -> int:
    """The one offset at which every object holds ``value(object)``."""
    fits = [o for o in range(0, size, _WORD) if all(_word(id(x) + o) == value(x) for x in objects)]
    if len(fits) != 1:
        raise Unsupported(f"{len(fits)} offsets fit")
    return fits[0]


def _probe(type_: int, data: int, dims: int) -> CallLayout:
    size = type_ + _WORD
    lists = [[object() for _ in range(n)] for n in (3, 5, 7)]
    tuples = [tuple(x) for x in lists]
    for sequence in (*lists, *tuples):
        if _word(id(sequence) + size) != len(sequence):
            raise Unsupported("ob_size")
    floats = [1.2345, -9.875e100, 3.25e-7]
    arrays = [
        np.zeros(shape, dtype)
        for dtype, shape in (("f4", (2, 3, 4)), ("f8", (24,)), ("i8", (4, 6)), ("f2", (1, 2, 3, 4)))
    ]
    extent = np.ndarray.__basicsize__
    dtype = _only_offset(arrays, extent, lambda a: id(a.dtype))
    return CallLayout(
        refcount=_refcount(lists, type_ - _WORD),
        type=type_,
        size=size,
        list_items=_list_items(lists, size),
        tuple_items=_only_offset(tuples, tuple.__basicsize__ + 3 * _WORD, lambda t: id(t[0])),
        float_value=_only_offset(
            floats, float.__basicsize__, lambda f: int(struct.unpack("<Q", struct.pack("<d", f))[0])
        ),
        array_data=data,
        array_rank=data + _WORD,
        array_dims=dims,
        array_dtype=dtype,
        array_flags=_flags(arrays, dtype + _WORD, extent),
        tensor_array=slot_offset(Tensor, "_buffer"),
        tensor_spec=slot_offset(Tensor, "_spec"),
        tensor_weak=_weak(object.__new__(Tensor)),
        array_weak=_weak(np.zeros(3)),
        new_array=_new_array(),
        new_scalar=_new_scalar(),
    )


def _refcount(objects: Sequence[Any], offset: int) -> int:
    """The offset of the count of references, which comes before the type."""
    for count in (1, 4):
        held = [list(objects) for _ in range(count)]
        for x in objects:
            if _word(id(x) + offset) != sys.getrefcount(x) - 1:
                raise Unsupported("ob_refcnt")
        del held
    return offset


def _weak(instance: Any) -> int:
    """The offset of the list of weak references to an object; before the object for classes of
    Python since 3.12."""
    offset: int = type(instance).__weakrefoffset__
    if offset == 0 or _word(id(instance) + offset) != 0:
        raise Unsupported(f"weak references to {type(instance).__name__}")
    reference = weakref.ref(instance)
    if _word(id(instance) + offset) != id(reference):
        raise Unsupported(f"weak references to {type(instance).__name__}")
    return offset


def _list_items(lists: Sequence[list[Any]], size: int) -> int:
    """The offset of the pointer to a list's items."""
    found = size + _WORD
    for items in lists:
        where = _word(id(items) + found)
        held = [_word(where + i * _WORD) for i in range(len(items))] if where else []
        if held != [id(x) for x in items]:
            raise Unsupported("list items")
    return found


def _flags(arrays: Sequence[Any], start: int, extent: int) -> int:
    """The offset of the int with an array's flags."""
    views = [*arrays, arrays[0].T, arrays[0][:, ::2], np.broadcast_to(arrays[1], (2, 24))]
    fits = [
        o
        for o in range(start, extent, 4)
        if all((ctypes.c_int.from_address(id(v) + o).value & 0xFFFF) == v.flags.num for v in views)
    ]
    if len(fits) != 1:
        raise Unsupported("flags")
    return fits[0]


@functools.cache
def slot_offset(cls: type, name: str) -> int:
    """The offset of a slot of a Python class, as its descriptor says and instances show."""
    descriptor: Any = cls.__dict__[name]
    instances: list[Any] = [object.__new__(cls) for _ in range(3)]
    marks = {id(i): object() for i in instances}
    for instance in instances:
        descriptor.__set__(instance, marks[id(instance)])
    offset = _only_offset(instances, cls.__basicsize__, lambda i: id(marks[id(i)]))
    for instance in instances:
        descriptor.__delete__(instance)
        if _word(id(instance) + offset) != 0:
            raise Unsupported("an empty slot is not a null pointer")
    return offset


def _new_array() -> int:
    """The address of PyArray_NewFromDescr, tried out."""
    address = numpy_function(_NEW_FROM_DESCR)
    function = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_int,
        ctypes.POINTER(ctypes.c_ssize_t), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int,
        ctypes.c_void_p,
    )(address)  # fmt: skip
    dtype = np.dtype("f4")
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))  # the function takes this reference
    made = function(np.ndarray, dtype, 2, (ctypes.c_ssize_t * 2)(3, 5), None, None, 0, None)
    good = type(made) is np.ndarray and made.shape == (3, 5) and made.dtype is dtype
    if not (good and made.base is None and made.flags.owndata and made.flags.c_contiguous):
        raise Unsupported("PyArray_NewFromDescr")
    return address


def _new_scalar() -> int:
    """The address of PyArray_Scalar, tried out."""
    address = numpy_function(_SCALAR)
    function = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
    )(address)
    for value in (np.float64(1.25), np.int32(-7), np.bool_(True), np.complex64(1 - 2j)):
        held = np.array(value)
        made = function(held.ctypes.data, held.dtype, None)
        if type(made) is not type(value) or made != value:
            raise Unsupported("PyArray_Scalar")
    return address


@functools.cache
def value_offset(kind: Any) -> int | None:
    """Where objects of a type of numbers, Python's or NumPy's, have their value; None where it is
    not found."""
    dtype = np.dtype(kind)
    size = type(kind(0)).__basicsize__
    patterns = [np.array(n, dtype) for n in (1, 0, 1, 0)]
    if dtype.kind != "b":
        fill = np.arange(1, 1 + 3 * dtype.itemsize, dtype=np.uint8) & 63
        patterns = list(fill.view(dtype))
    objects = [kind(p) for p in patterns]
    values = [np.array(p, dtype).tobytes() for p in patterns]
    held = [ctypes.string_at(id(x), size) for x in objects]
    fits = [
        offset
        for offset in range(object.__basicsize__, size - dtype.itemsize + 1, min(dtype.itemsize, 8))
        if all(h[offset:].startswith(v) for h, v in zip(held, values, strict=True))
    ]
    return fits[0] if len(fits) == 1 else None
