"""Where the elements that loads and stores name are in their buffers."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core import dtypes
from treadle.core.shapes import Dim
from treadle.kernel.ir import Buffer, Expr, Index, Load, Store
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.function import KernelFunction
from treadle.runtime.cpu.nest.level import Level
from treadle.runtime.cpu.nest.memory import Address, Gathered, split_index

_INT64 = dtypes.int64


class Places:
    """Flat indices: affine parts, and computed indices whose registers a level knows."""

    def __init__(self, code: KernelFunction) -> None:
        self.code, self.fn, self.shape = code, code.fn, code.shape

    def place(
        self, buffer: Buffer, index: tuple[Index, ...], level: Level, clamp: bool = True
    ) -> tuple[Word, Word]:
        """The flat element of lane 0 of copy 0, and the stride along the vector axis."""
        vector = self.shape.vector
        base = self.row_base(buffer, index, level, clamp)
        coefficients, _, _ = split_index(buffer, index)
        stride: Word = 0
        if level.copies and vector in coefficients:
            stride = self.code.dim(coefficients[vector])
            base = self.fn.add(base, self.fn.mul(level.axes[vector], stride))
        return base, stride

    def row_base(
        self, buffer: Buffer, index: tuple[Index, ...], level: Level, clamp: bool = True
    ) -> Word:
        """The part of a flat index that does not depend on the vector axis inside its loop.

        clamp: keep computed indices inside the buffer.
        """
        coefficients, offset, gathered = split_index(buffer, index)
        inner = {self.shape.vector} if level.copies else set()
        here = tuple((a, c) for a, c in coefficients.items() if a in level.axes and a not in inner)
        uniform = [g for g in gathered if _is_uniform(g, level)]
        key = (offset, tuple(sorted(((a.name, repr(c)) for a, c in here))), tuple(uniform), clamp)
        known = level.find_word(key)
        if known is not None:
            return known
        total: Word = self.code.dim(offset)
        for axis, coefficient in here:
            along = self.code.dim(coefficient)
            total = self.fn.add(total, self.fn.mul(level.axes[axis], along))
        for place, step, size in uniform:
            total = self.fn.add(total, self._scaled(place, step, size if clamp else None, level))
        level.words[key] = total
        return total

    def _scaled(self, index: Expr, stride: Dim, size: Dim | None, level: Level) -> Word:
        """The contribution of a computed index that all lanes share to a flat one; it is kept
        inside the buffer where the size is given."""
        register = level.find(index)
        assert register is not None
        place = self.code.scalar.apply("cast", [register.parts[0]], [index.dtype], _INT64)
        bounded: Word = place
        if size is not None:
            bounded = self.fn.max(self.fn.min(place, self.fn.sub(self.code.dim(size), 1)), 0)
        return self.fn.mul(bounded, self.code.dim(stride))

    # ---- computed indices that lanes have for themselves
    def gathered(self, buffer: Buffer, index: tuple[Index, ...], level: Level) -> list[Gathered]:
        """The computed indices that differ from lane to lane."""
        _, _, found = split_index(buffer, index)
        return [g for g in found if not _is_uniform(g, level)]

    def gathered_places(
        self, base: Word, stride: Word, gathered: list[Gathered], level: Level, copy: int
    ) -> str:
        """The flat elements of all lanes of a copy, as a vector."""
        fn, v, memory = self.fn, self.code.vector, self.code.memory
        kind = v.wrap("i64")
        total = memory.splat_word(base)
        if stride != 0:
            steps = fn.value(f"mul {kind} {memory.lane_numbers()}, {memory.splat_word(stride)}")
            total = fn.value(f"add {kind} {total}, {steps}")
        for index, step, size in gathered:
            place = self.code.wide_parts(index, level.find(index), level)[copy]
            place = v.apply("cast", [place], [index.dtype], _INT64)
            last = memory.splat_word(fn.sub(self.code.dim(size), 1))
            place = v.apply("min", [place, last], [_INT64] * 2, _INT64)
            place = v.apply("max", [place, v.constant(0, _INT64)], [_INT64] * 2, _INT64)
            scaled = fn.value(f"mul {kind} {place}, {memory.splat_word(self.code.dim(step))}")
            total = fn.value(f"add {kind} {total}, {scaled}")
        return total

    # ---- cache lines that are asked for before they are needed
    def fetch_next_row(self, e: Load, address: Address, level: Level) -> None:
        """Ask for the cache line of the same place in the next row. Behind the last row the address
        may belong to no buffer, which a request does not mind."""
        outer = [a for a in level.axes if a is not self.shape.vector]
        coefficients, _, gathered = split_index(e.buffer, e.index)
        if address.stride != 1 or gathered or not outer or not coefficients.get(outer[-1]):
            return
        step = self.code.dim(coefficients[outer[-1]] * level.rows)
        self.code.memory.prefetch(address.pointer, self.fn.add(address.base, step), e.dtype)

    def fetch_results(self, stores: Sequence[Store], level: Level) -> None:
        """Ask for the cache lines that the loop over the stores of a row will overwrite."""
        if level.mask is not None:
            return
        for s in stores:
            base, stride = self.place(s.buffer, s.index, level)
            size = s.buffer.dtype.size * self.shape.lanes
            for copy in range(level.copies):
                if copy * size % self.code.tuning.line == 0:
                    at = self.fn.add(base, self.fn.mul(stride, copy * self.shape.lanes))
                    pointer = self.code.pointers[s.buffer]
                    self.code.memory.prefetch(pointer, at, s.buffer.dtype, write=True)


def _is_uniform(gathered: Gathered, level: Level) -> bool:
    """Whether a computed index is a known number that all lanes share."""
    register = level.find(gathered[0])
    return register is not None and not register.vector
