"""Kernels whose points have so many elements that several blocks share them.

Each block finds a part of a reduction and leaves it in scratch memory. The next launch begins with
these parts, which every block combines in the same order.
"""

from __future__ import annotations

from treadle.core.records import record
from treadle.core.shapes import Dim
from treadle.kernel.ir import Kernel, Reduce, Scan
from treadle.runtime.gpu.mapping import TOTALS, Mapping, scans_of
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


@record(frozen=True)
class Stage:
    """One launch.

    Attributes:
        name: of the function.
        blocks: how many blocks are launched.
        threads: threads of a block.
        shared: bytes of memory that the threads of a block share, given with the launch.
        meets: whether threads wait for one another, or exchange what they have found.
    """

    name: str
    blocks: Dim
    threads: int
    shared: int
    meets: bool


def levels_of(kernel: Kernel, mapping: Mapping) -> list[list[Reduce]]:
    """What the stages before the last one find in parts of the elements of points: reductions, the
    totals of scans, or of stores that meet; nothing where no elements are shared by blocks."""
    if mapping.parts == 1:
        return []
    if mapping.owners:
        return [[met(kernel)]]
    if mapping.scanned:
        return [list(dict.fromkeys(map(total, scans_of(kernel))))]
    return reduction_levels(kernel)


def total(scan: Scan) -> Reduce:
    """What a scan has found in the end."""
    return Reduce(TOTALS[scan.op], (scan.axis,), scan.value)


def met(kernel: Kernel) -> Reduce:
    """What a store at places that meet combines, as a reduction of the values of an element."""
    (store,) = kernel.stores
    return Reduce(TOTALS[store.combine], (), store.value)


class Memory:
    """Scratch memory of all stages of a kernel.

    Attributes:
        bytes: of all.
    """

    def __init__(self) -> None:
        self.bytes: Dim = 0

    def room(self, size: Dim) -> Dim:
        """The first of so many bytes."""
        first = self.bytes
        self.bytes = first + (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        return first


class Scratch:
    """Memory for what blocks have found in their parts.

    Attributes:
        places: the first byte for each reduction, and how many elements it has.
    """

    def __init__(self, mapping: Mapping, memory: Memory) -> None:
        self.mapping, self.memory = mapping, memory
        self.places: dict[Reduce, tuple[Dim, Dim]] = {}

    def add(self, reduce: Reduce) -> None:
        count = self.mapping.count * self.mapping.parts
        if self.mapping.owners:
            count = count * self.mapping.owners.keys
        self.room(reduce, count)

    def room(self, reduce: Reduce, count: Dim) -> tuple[Dim, Dim]:
        """Memory for so many findings: its first byte, and how many they are."""
        place = self.places[reduce] = self.memory.room(count * found_size(reduce)), count
        return place
