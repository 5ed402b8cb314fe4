"""NumPy arrays beside memory that nobody may touch: a read or write outside them is a fault.

An array "at the end" ends where an unmapped page begins; one "at the start" begins where an
unmapped page ends. The pages of one `Guarded` are used again and again.
"""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

PAGE = mmap.PAGESIZE
PROT_NONE = 0

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Guarded:
    """A block of memory between two pages that must not be touched."""

    def __init__(self, pages: int) -> None:
        self.bytes = pages * PAGE
        self.map = mmap.mmap(-1, self.bytes + 2 * PAGE)
        whole = (ctypes.c_char * (self.bytes + 2 * PAGE)).from_buffer(self.map)
        self.first = ctypes.addressof(whole) + PAGE
        self.keep = whole
        for page in (self.first - PAGE, self.first + self.bytes):
            if _libc.mprotect(page, PAGE, PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")

    def array(self, like: np.ndarray, at_end: bool) -> np.ndarray:
        """A copy of `like` in this memory."""
        assert like.nbytes <= self.bytes
        address = self.first + (self.bytes - like.nbytes if at_end else 0)
        view = (ctypes.c_char * like.nbytes).from_address(address)
        array = np.frombuffer(view, like.dtype, like.size).reshape(like.shape)
        array[...] = like
        return array


class Pages:
    """Guarded memory for several arrays at once."""

    def __init__(self, pages: int = 256) -> None:
        self.pages = pages
        self.blocks: list[Guarded] = []

    def arrays(self, values: list[np.ndarray], at_end: bool) -> list[np.ndarray]:
        while len(self.blocks) < len(values):
            self.blocks.append(Guarded(self.pages))
        return [
            b.array(np.ascontiguousarray(v).reshape(v.shape), at_end)
            for b, v in zip(self.blocks, values, strict=False)
        ]
