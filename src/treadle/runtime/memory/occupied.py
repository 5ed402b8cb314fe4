"""Which bytes of a workspace are taken when, and where there is room.

The positions of a schedule are the leaves of a binary tree. A temporary is entered at the few nodes
that together make up its interval. Each node keeps the bytes taken at all its positions, and those
taken at any, as ranges that are joined where they touch: a few nodes tell which bytes are taken
during an interval, also where there are many temporaries.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from treadle.runtime.memory.lifetimes import Interval


class Occupied:
    """The bytes taken at each of `count` positions."""

    def __init__(self, count: int) -> None:
        self.leaves = 1
        while self.leaves < count:
            self.leaves *= 2
        self.throughout: dict[int, _Ranges] = {}  # node -> taken at all its positions
        self.somewhere: dict[int, _Ranges] = {}  # node -> taken at any of them

    def take(self, interval: Interval, size: int) -> int:
        """Take `size` bytes at the lowest offset that is free throughout an interval."""
        nodes = list(self._nodes(interval))
        above = {n >> k for n in nodes for k in range(1, n.bit_length())}
        found = [self.somewhere[n] for n in nodes if n in self.somewhere]
        found += [self.throughout[n] for n in above if n in self.throughout]
        offset, last = 0, -1
        while offset != last:
            last = offset
            for ranges in found:
                offset = ranges.after(offset, size)
        for node in nodes:
            self.throughout.setdefault(node, _Ranges()).add(offset, offset + size)
        for node in (*nodes, *above):
            self.somewhere.setdefault(node, _Ranges()).add(offset, offset + size)
        return offset

    def _nodes(self, interval: Interval) -> Iterator[int]:
        """The fewest nodes that make up an interval; node n has the children 2n and 2n + 1."""
        low, high = interval.first + self.leaves, interval.last + self.leaves + 1
        while low < high:
            if low & 1:
                yield low
                low += 1
            if high & 1:
                high -= 1
                yield high
            low, high = low >> 1, high >> 1


class _Ranges:
    """Ranges of bytes, joined where they touch."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def after(self, offset: int, size: int) -> int:
        """The lowest offset, from the given one on, at which `size` bytes meet no range."""
        at = bisect_right(self.ends, offset)
        while at < len(self.starts) and self.starts[at] < offset + size:
            offset, at = self.ends[at], at + 1
        return offset

    def add(self, start: int, end: int) -> None:
        low = bisect_left(self.ends, start)
        high = bisect_right(self.starts, end)
        if low < high:
            start, end = min(start, self.starts[low]), max(end, self.ends[high - 1])
        self.starts[low:high] = [start]
        self.ends[low:high] = [end]
