"""Over which positions the loops of a kernel run that store something."""

from __future__ import annotations

from typing import Protocol

from treadle.core.shapes import product
from treadle.kernel.ir import Axis
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.function import KernelFunction


class Bounds(Protocol):
    """The positions of every axis at the place where the loops are being written."""

    def of(self, axis: Axis) -> tuple[Word, Word]:
        """The first position of an axis, and the end."""

    def enter(self, axis: Axis, position: Word) -> None:
        """Note that the code from here on is inside the loop over an axis, at a position."""


class CallBounds:
    """The caller names the range of one axis; the others run over their extents."""

    def __init__(self, code: KernelFunction) -> None:
        self.code = code

    def of(self, axis: Axis) -> tuple[Word, Word]:
        if axis is self.code.shape.parallel:
            return "%lo", "%hi"
        return 0, self.code.dim(axis.extent)

    def enter(self, axis: Axis, position: Word) -> None:
        """The ranges are the same everywhere."""


class BlockBounds:
    """The caller names a block of rows and columns.

    Columns are positions of the last axis. Rows count through the positions of all others: a block
    may begin and end inside of a position of any of them.
    """

    def __init__(self, code: KernelFunction) -> None:
        self.code = code
        *self.outer, column = code.kernel.axes
        self.bounds: dict[Axis, tuple[Word, Word]] = {column: ("%left", "%right")}
        self.rows: dict[Axis, Word] = {}  # of one position of an axis
        if self.outer:
            self.bounds[self.outer[0]] = ("%lo", "%hi")

    def of(self, axis: Axis) -> tuple[Word, Word]:
        if axis not in self.outer:
            return self.bounds[axis]
        inner = self.outer[self.outer.index(axis) + 1 :]
        fn, (low, high) = self.code.fn, self.bounds[axis]
        size = self.rows[axis] = self.code.dim(product(a.extent for a in inner))
        end = fn.divide(fn.add(high, fn.sub(size, 1)), size)
        return fn.divide(low, size), end

    def enter(self, axis: Axis, position: Word) -> None:
        """The rows of the block at a position are a range of the next axis."""
        inner = self.outer[self.outer.index(axis) + 1 :]
        if inner:
            fn, (low, high), size = self.code.fn, self.bounds[axis], self.rows[axis]
            before = fn.mul(position, size)
            start = fn.max(fn.sub(low, before), 0)
            self.bounds[inner[0]] = start, fn.min(fn.sub(high, before), size)
