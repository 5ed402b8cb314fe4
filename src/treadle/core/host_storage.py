"""The host's memory as a storage: its buffers are C-contiguous arrays."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.arrays import empty, is_well_placed, own_copy
from treadle.core.storage import Cell

NDArray = np.ndarray[Any, Any]


class Place(ctypes.Structure):
    """A buffer as compiled programs see it, replaced as a whole.

    Fields: its address; whether somebody else may hold it, so that it must be replaced before it
    is written; the array, which is kept alive; how many programs read it without the GIL.
    """

    _fields_ = (
        ("data", ctypes.c_int64), ("shared", ctypes.c_int64), ("buffer", ctypes.py_object),
        ("readers", ctypes.c_int64),
    )  # fmt: skip


class VariableCell(ctypes.Structure):
    """See `treadle.core.storage.Cell`."""

    _anonymous_ = ("place",)  # its fields are the cell's as well
    _fields_ = (("place", Place), ("writer", ctypes.c_int64))

    __hash__ = object.__hash__


class HostStorage:
    """See `treadle.core.storage.Storage`."""

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray:
        return empty(shape, dtype)  # type: ignore[no-any-return]

    def from_host(self, array: NDArray) -> NDArray:
        return array

    def from_host_ahead(self, array: NDArray) -> Callable[[], NDArray]:
        return lambda: array

    def to_host(self, buffer: NDArray, own: bool = False) -> NDArray:
        return buffer.copy() if own else buffer

    def raise_failures(self) -> None:
        """Programs of the host raise their errors themselves."""

    def synchronize(self) -> None:
        """Programs of the host have ended when their calls do."""

    def copy(self, buffer: NDArray) -> NDArray:
        return own_copy(buffer)  # type: ignore[no-any-return]

    def from_device(self, buffer: Any, storage: Any) -> None:
        return None

    def exported(self, buffer: NDArray) -> None:
        return None

    def imported(self, external: Any) -> None:
        return None  # arrays of the host are wrapped by NumPy

    def type_of(self, buffer: NDArray) -> tuple[np.dtype[Any], tuple[int, ...]]:
        return buffer.dtype, buffer.shape

    def place(self, buffer: NDArray, shared: int) -> Place:
        return Place(buffer.ctypes.data, shared, buffer, 0)

    def cell(self, place: Place) -> Cell:
        return VariableCell(place, 0)

    def is_alone(self, holder: Any) -> bool:
        buffer: NDArray = holder._buffer
        fits = buffer.base is None and buffer.flags.writeable
        fits = fits and is_well_placed(buffer, holder._cell.data)
        del buffer
        return fits and _references(holder) <= _references_alone()


def _references(holder: Any) -> int:
    return sys.getrefcount(holder._buffer)


class _Holder:
    """Has what a variable has of its buffer."""

    __slots__ = ("_buffer", "_cell")

    def __init__(self, buffer: NDArray) -> None:
        self._cell = host_storage.cell(host_storage.place(buffer, 0))
        self._buffer = buffer


@functools.cache
def _references_alone() -> int:
    """How many references there are to an array that only its variable has: a lookup adds some,
    other ones in each interpreter."""
    return _references(_Holder(np.empty(0)))


host_storage = HostStorage()
