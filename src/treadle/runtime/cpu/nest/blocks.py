"""Blocked kernels: loops over a block of rows and columns that the caller names.

A library routine calls such a kernel on each block of its result while that is in the cache.
Rows are all axes but the last one in row-major order, columns are the last axis.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.core.shapes import Dim, product
from treadle.kernel.ir import Axis, Kernel, Load, Store, postorder
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.kernel import KernelEmitter
from treadle.runtime.cpu.nest.level import Level
from treadle.runtime.cpu.nest.shape import Shape, UnsupportedKernel, flat_stride
from treadle.runtime.cpu.target import Target

SIGNATURE = (
    "void @{}(ptr %buffers, ptr %dims, i64 %lo, i64 %hi, i64 %left, i64 %right, ptr %scratch)"
)


class BlockEmitter(KernelEmitter):
    """Writes the function of a blocked kernel, whose signature is `SIGNATURE`."""

    def __init__(self, kernel: Kernel, target: Target, symbol: str) -> None:
        super().__init__(kernel, target, symbol)
        *self.rows, self.column = kernel.axes
        self.shape: Shape = replace(
            self.shape, vector=self.column, parallel=self.column, total=(), rows=frozenset(),
            tile=None,
        )  # fmt: skip
        if not all(_runs_along(e, self.column) for e in self._loads()):
            raise UnsupportedKernel("a load that is not contiguous along a row of the block")
        self._open()
        self.bounds: dict[Axis, tuple[Word, Word]] = {self.column: ("%left", "%right")}
        if self.rows:
            self.bounds[self.rows[0]] = ("%lo", "%hi")

    def _loads(self) -> list[Load]:
        exprs = postorder([s.value for s in self.kernel.stores])
        return [e for e in exprs if isinstance(e, Load)]

    def _define(self, name: str, signature: str) -> None:
        self.fn.define(name, SIGNATURE)

    def _range(self, axis: Axis, reducing: bool) -> tuple[Word, Word]:
        return self.bounds[axis]

    def _store_loop(self, level: Level, axis: Axis, stores: list[Store]) -> None:
        if axis is self.column:
            super()._store_loop(level, axis, stores)
            return
        # Rows [low, high) are those from inside one position of the axis to inside another.
        inner = self.rows[self.rows.index(axis) + 1 :]
        low, high = self.bounds[axis]
        fn, size = self.fn, self.dim(product(a.extent for a in inner))
        end = fn.divide(fn.add(high, fn.sub(size, 1)), size)

        def position(i: Word, state: list[str]) -> list[str]:
            if inner:
                before = fn.mul(i, size)
                start = fn.max(fn.sub(low, before), 0)
                self.bounds[inner[0]] = (start, fn.min(fn.sub(high, before), size))
            self._stores(stores, level.inside(axis, i))
            return state

        self._carried(fn.divide(low, size), end, 1, [], [], position)


def _runs_along(load: Load, axis: Axis) -> bool:
    """Whether the elements along an axis follow one another, or are the same one."""
    step: Dim | None = flat_stride(load.buffer, load.index, axis)
    return step in (0, 1)
