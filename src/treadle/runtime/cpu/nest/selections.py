"""Loops of kernels that write what a mask selects, one element after the other.

Elements are collected in blocks that stay in the cache, without a branch: each is written, and the
place moves on where the mask is true. Where vectors can be permuted, the selected lanes of one are
moved to its front and the whole vector is written. A block is then copied to where it belongs.
"""

from __future__ import annotations

import functools

from treadle.runtime.cpu.elements import stored_type
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.function import KernelFunction
from treadle.runtime.cpu.nest.level import Level
from treadle.runtime.cpu.nest.memory import Address
from treadle.runtime.cpu.nest.shape import Selection
from treadle.runtime.cpu.nest.values import Values

BLOCK = 256  # elements that are collected before they are written: few beside any cache
PERMUTED = 8  # 32-bit numbers in a vector that one instruction permutes
PERMUTE = "<8 x i32> @llvm.x86.avx2.permd(<8 x i32>, <8 x i32>)"


class SelectionLoops:
    """Emits the loop along the axis of the mask."""

    def __init__(self, code: KernelFunction, values: Values, selection: Selection) -> None:
        self.code, self.fn, self.values, self.selection = code, code.fn, values, selection
        self.axis, self.store = selection.before.axis, selection.store
        self.lanes = code.shape.lanes if code.shape.vector is self.axis else 1
        self.stored = stored_type(self.store.buffer.dtype)

    def emit(self, level: Level) -> None:
        code, fn = self.code, self.fn
        (place,) = self.values.evaluate(self.selection.base, level).parts
        extent = code.dim(self.axis.extent)
        kept = fn.alloca(f"[{BLOCK + PERMUTED} x {self.stored}], align 64")

        def block(first: Word, state: list[str]) -> list[str]:
            end = fn.min(fn.add(first, BLOCK), extent)
            count = self._collect(level, first, end, kept)
            self._write(kept, state[0], count)
            return [str(fn.add(state[0], count))]

        fn.carried(0, extent, BLOCK, ["i64"], [place], block)

    def _collect(self, level: Level, first: Word, end: Word, kept: str) -> str:
        """Selected elements to the beginning of the block: how many there are."""
        code, fn, values = self.code, self.fn, self.values
        mask, value = self.selection.mask, self.store.value

        def one(i: Word, state: list[str]) -> list[str]:
            here = level.inside(self.axis, i)
            (true,), (element,) = (values.evaluate(x, here).parts for x in (mask, value))
            code.memory.store_scalar(element, kept, state[0], self.store.buffer.dtype)
            return [str(fn.add(state[0], fn.value(f"zext i1 {true} to i64")))]

        def several(i: Word, state: list[str]) -> list[str]:
            here = level.inside(self.axis, i, 1, None)
            (true,) = code.wide_parts(mask, values.evaluate(mask, here), here)
            (part,) = code.wide_parts(value, values.evaluate(value, here), here)
            bits = fn.value(f"bitcast <{self.lanes} x i1> {true} to i{self.lanes}")
            number = fn.value(f"zext i{self.lanes} {bits} to i64")
            raw = code.vector.to_memory(part, self.store.buffer.dtype)
            place = fn.offset(kept, state[0], self.stored)
            fn.emit(f"store <8 x i32> {self._to_front(raw, number)}, ptr {place}, align 4")
            fn.module.declare("i64 @llvm.ctpop.i64(i64)")
            return [str(fn.add(state[0], fn.call("i64 @llvm.ctpop.i64(i64)", f"i64 {number}")))]

        count, whole = "0", first
        if self.lanes > 1:
            whole = code.end_of_whole(first, end, self.lanes)
            (count,) = fn.carried(first, whole, self.lanes, ["i64"], [count], several)
        (count,) = fn.carried(whole, end, 1, ["i64"], [count], one)
        return count

    def _to_front(self, raw: str, number: str) -> str:
        """The lanes whose bits are set in a number, in order, at the front of a vector."""
        fn = self.fn
        rows = (", ".join(f"i8 {k}" for k in order) for order in _orders(self.lanes))
        whole = ", ".join(f"<8 x i8> <{row}>" for row in rows)
        body = f"[{1 << self.lanes} x <8 x i8>] [{whole}], align 8"
        table = fn.module.constant(f"orders_{self.lanes}", body)
        row = fn.value(f"load <8 x i8>, ptr {fn.offset(table, number, '<8 x i8>')}, align 8")
        order = fn.value(f"zext <8 x i8> {row} to <8 x i32>")
        data = fn.value(f"bitcast <{self.lanes} x {self.stored}> {raw} to <8 x i32>")
        fn.module.declare(PERMUTE)
        return fn.call(PERMUTE, f"<8 x i32> {data}, <8 x i32> {order}")

    def _write(self, kept: str, place: str, count: str) -> None:
        """The collected elements to the buffer; those whose places lie outside are left out."""
        code, fn, dtype = self.code, self.fn, self.store.buffer.dtype
        (size,) = self.store.buffer.shape
        first = fn.max(fn.sub(0, place), 0)
        last = fn.min(fn.sub(code.dim(size), place), count)
        target = fn.offset(code.pointers[self.store.buffer], place, self.stored)
        if self.lanes > 1:
            first = self._write_vectors(kept, target, first, last)

        def one(k: Word, state: list[str]) -> list[str]:
            source = fn.offset(kept, k, self.stored)
            raw = fn.value(f"load {self.stored}, ptr {source}, align {dtype.size}")
            place = fn.offset(target, k, self.stored)
            fn.emit(f"store {self.stored} {raw}, ptr {place}, align {dtype.size}")
            return state

        fn.carried(first, last, 1, [], [], one)

    def _write_vectors(self, kept: str, target: str, first: Word, last: Word) -> Word:
        """Whole vectors of the elements from `first` on: where the rest begins."""
        memory, dtype = self.code.memory, self.store.buffer.dtype
        whole = self.code.end_of_whole(first, last, self.lanes)

        def several(k: Word, state: list[str]) -> list[str]:
            raw = memory.load_stored(Address(kept, k, 1), dtype, None)
            memory.store_stored(raw, Address(target, k, 1), dtype, None)
            return state

        self.fn.carried(first, whole, self.lanes, [], [], several)
        return whole


@functools.cache
def _orders(lanes: int) -> list[list[int]]:
    """For every set of lanes the 32-bit numbers of a vector, those of the set first."""
    each = PERMUTED // lanes
    found = []
    for number in range(1 << lanes):
        chosen = [k * each + j for k in range(lanes) if number >> k & 1 for j in range(each)]
        found.append((chosen + [0] * PERMUTED)[:PERMUTED])
    return found
