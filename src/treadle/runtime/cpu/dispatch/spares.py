"""Small results are used again when nobody holds them any more.

A plan keeps the last two tensors of each of its results, or arrays where the caller gets these. One
that only the plan still holds, whose array only the tensor holds, takes the next call's result, so
that a call makes no objects. Two, because of ``x = f(x)``. What waits here is bounded; large
results have memory that is kept (`cpu.kept_arrays`), and cost more than their objects anyway.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from treadle.core.caches import returns_memory
from treadle.core.living import Living
from treadle.core.switches import is_on
from treadle.runtime.cpu.dispatch.layout import call_layout
from treadle.runtime.cpu.kept_memory import default_budget

EACH = 2  # tensors that wait, for each result
LARGEST = 64 << 10  # bytes of a result: what two spares of it may keep, whatever the caches
SHARE = 8  # all plans together may keep this fraction of the budget

_all: Living[Spares] = Living()


class Spares:
    """The tensors or arrays that a plan keeps: `EACH` for the first result, then for the second...

    Args:
        sizes: bytes of the results.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.bytes = EACH * sum(sizes)
        self.items: list[Any] = [None] * (EACH * len(sizes))
        _all.add(self)

    @property
    def address(self) -> int:
        """Of the list's items, which stay where they are as its length never changes."""
        found = call_layout()
        assert found is not None
        return ctypes.c_size_t.from_address(id(self.items) + found.list_items).value

    def clear(self) -> None:
        """Let go of what waits."""
        for place in range(len(self.items)):
            self.items[place] = None


def spares_for(sizes: Sequence[int]) -> Spares | None:
    """Room for results of these sizes; None where they are large or many wait already."""
    if not sizes or max(sizes) > LARGEST or not is_on("spares"):
        return None
    waiting = sum(spares.bytes for spares in _all)
    if waiting + EACH * sum(sizes) > default_budget() // SHARE:
        return None
    return Spares(sizes)


@returns_memory
def _clear() -> None:
    for spares in _all:
        spares.clear()
