"""Kernels whose points have so many elements that several blocks share them.

Each block finds a part of a reduction and leaves it in scratch memory. The next launch begins with
these parts, which every block combines in the same order.
"""

from __future__ import annotations

from treadle.core.shapes import Dim
from treadle.kernel.ir import Kernel, Reduce
from treadle.runtime.gpu.mapping import Mapping
from treadle.runtime.gpu.scalars import found_size

_ALIGNMENT = 256  # bytes, as of all memory that a device gives


def reduction_levels(kernel: Kernel) -> list[list[Reduce]]:
    """The reductions of a kernel, after those that they need."""
    below: dict[object, int] = {}
    levels: list[list[Reduce]] = []
    for expr in kernel.exprs:
        level = max((below[c] for c in expr.children), default=0)
        if isinstance(expr, Reduce):
            levels += [[]] if level == len(levels) else []
            levels[level].append(expr)
            level += 1
        below[expr] = level
    return levels


class Scratch:
    """Memory for what blocks have found in their parts.

    Attributes:
        places: the first byte for each reduction, and how many elements it has.
        bytes: of all.
    """

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = mapping
        self.places: dict[Reduce, tuple[Dim, Dim]] = {}
        self.bytes: Dim = 0

    def add(self, reduce: Reduce) -> None:
        self.room(reduce, self.mapping.count * self.mapping.parts)

    def room(self, reduce: Reduce, count: Dim) -> tuple[Dim, Dim]:
        """Memory for so many findings: its first byte, and how many they are."""
        place = self.places[reduce] = self.bytes, count
        size = count * found_size(reduce)
        self.bytes = self.bytes + (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        return place
