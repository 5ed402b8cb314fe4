"""Memory for arrays that the library makes itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

ALIGNMENT = 64  # bytes: a cache line, the widest vector
LARGE = 256 << 10  # bytes from which it pays to be particular about memory

# Makes an uninitialised array. Once programs run, large ones come from the memory that programs
# keep: it begins at a cache line, and its pages are there already.
allocate: Callable[[tuple[int, ...], np.dtype[Any]], Any] = np.empty


def use_allocator(function: Callable[[tuple[int, ...], np.dtype[Any]], Any]) -> None:
    global allocate
    allocate = function


def own_copy(array: Any) -> Any:
    """A C-contiguous copy of an array."""
    if array.nbytes < LARGE:
        return array.copy()
    copy = allocate(array.shape, array.dtype)
    copy[...] = array
    return copy


def is_well_placed(array: Any) -> bool:
    """Whether an array is small or begins at a cache line, or could not be made to."""
    small = array.nbytes < LARGE or allocate is np.empty
    return small or array.__array_interface__["data"][0] % ALIGNMENT == 0
