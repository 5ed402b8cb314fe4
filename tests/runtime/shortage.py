"""An allocator that fails on demand, in place of the one that programs ask for memory."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

from treadle.runtime.cpu import kept_memory as kept
from treadle.runtime.cpu.abi import c_function
from treadle.runtime.cpu.kept_blocks import WORDS
from treadle.runtime.cpu.native import _free_workspaces

_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Shortage:
    """Stands in for aligned_alloc and free.

    Attributes:
        live: the blocks that were given and did not come back: address -> bytes.
        refused: how often it said no.
        limit: the most bytes that a block may have.
        budget: the most bytes that all blocks may have.
        left: how many allocations succeed before all fail; None: any number.
    """

    def __init__(self) -> None:
        self.live: dict[int, int] = {}
        self.refused = 0
        self.limit = self.budget = 1 << 62
        self.left: int | None = None
        self._allocate = _ALLOCATE(c_function("aligned_alloc"))
        self._free = _FREE(c_function("free"))
        self.allocate, self.free = _ALLOCATE(self._give), _FREE(self._take)

    def _give(self, alignment: int, size: int) -> int | None:
        full = sum(self.live.values()) + size > self.budget
        if size > self.limit or full or self.left == 0:
            self.refused += 1
            return None
        if self.left is not None:
            self.left -= 1
        address = self._allocate(alignment, size)
        self.live[address] = size
        return address

    def _take(self, address: int) -> None:
        self.live.pop(address, None)
        self._free(address)


@contextlib.contextmanager
def shortage() -> Iterator[Shortage]:
    """The process's allocator is a `Shortage` meanwhile."""
    memory, stand_in = kept.kept_memory(), Shortage()
    _free_workspaces()
    memory.release()
    places = [WORDS.index(name) for name in ("aligned_alloc", "free")]
    before = [memory._words[place] for place in places]
    for place, function in zip(places, (stand_in.allocate, stand_in.free), strict=True):
        memory._words[place] = ctypes.cast(function, ctypes.c_void_p).value
    try:
        yield stand_in
    finally:
        stand_in.limit = stand_in.budget = 1 << 62
        stand_in.left = None
        _free_workspaces()
        memory.release()
        for place, word in zip(places, before, strict=True):
            memory._words[place] = word
        _kept_alive.append(stand_in)  # blocks that are still held come back here: plain free


_kept_alive: list[Shortage] = []
