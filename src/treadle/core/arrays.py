"""Memory for arrays that the library makes itself.

Large copies (constants, variables that are about to be written in place) begin at cache lines. Once
there are programs, copies lie in the memory that these keep (`treadle.runtime.cpu.kept_memory`), in
huge pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.shapes import broadcast

ALIGNMENT = 64  # bytes: a cache line, the widest vector
LARGE = 256 << 10  # bytes from which memory is new pages, which take longer than any cache


def _placed(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """An uninitialised array that begins at a cache line, a part of a slightly larger one: the
    loads of vectors that lie across two lines take twice as long."""
    size = math.prod(shape) * dtype.itemsize
    try:
        memory = np.empty(size + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError):
        return np.empty(shape, dtype)  # the error tells this shape
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


# Makes a large uninitialised array. Once programs run, it comes from the memory that programs
# keep, whose pages are there already.
allocate: Callable[[tuple[int, ...], np.dtype[Any]], Any] = _placed


def use_allocator(function: Callable[[tuple[int, ...], np.dtype[Any]], Any]) -> None:
    global allocate
    allocate = function


def broadcast_arrays(*arrays: Any) -> tuple[Any, ...]:
    """The arrays as views of their common shape; NumPy's function takes 32 axes at most."""
    shape: Any = broadcast(*(a.shape for a in arrays))
    return tuple(np.broadcast_to(a, shape) for a in arrays)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """An uninitialised array; large ones begin at a cache line."""
    is_large = math.prod(shape) * dtype.itemsize >= LARGE
    return allocate(shape, dtype) if is_large else np.empty(shape, dtype)


def string_array(value: bytes) -> Any:
    """A string as the rank-0 array of a string tensor."""
    return np.array(value, object)


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array of zeros, or of empty strings."""
    return np.full(shape, b"", object) if dtype.hasobject else np.zeros(shape, dtype)


def own_copy(array: Any) -> Any:
    """A C-contiguous copy of an array."""
    if array.nbytes < LARGE:
        return array.copy()
    copy = allocate(array.shape, array.dtype)
    copy[...] = array
    return copy


def is_well_placed(array: Any, address: int) -> bool:
    """Whether an array, which is at an address, is small or begins at a cache line."""
    return bool(array.nbytes < LARGE or address % ALIGNMENT == 0)
