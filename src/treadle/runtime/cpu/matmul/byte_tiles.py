"""The micro-kernel for numbers of 8 bits, with groups of steps of k (`byte_forms.py`) in vectors.

A's tile and B's panel are copies in groups (`byte_packing.py`), so a step is that of other tiles:
B's vectors by a broadcast group of A.

VPDPBUSD multiplies numbers without a sign by numbers with one. Where both operands are of one kind,
the copy of A has each number moved by 128 into the range of the other kind, which adds 128 times
the sum of B's column to each sum (or takes it away). The tile computes that by the same
instruction, as one row more, and takes it off in the end.
"""

from __future__ import annotations

from treadle.runtime.cpu.llvm_text import Function
from treadle.runtime.cpu.matmul.byte_forms import (
    DOTS,
    GROUP,
    PAIRS,
    QUADS,
    byte_form,
    is_shifted,
    is_signed,
)
from treadle.runtime.cpu.matmul.tiles import Body, Tile, most_rows
from treadle.runtime.cpu.target import Target

_SHIFT = 0x80808080 - (1 << 32)  # 128 in each byte of a group


def most_byte_rows(element: str, target: Target, vectors: int) -> int:
    """The tallest tile of so many vectors whose accumulators stay in registers. Copies of A's tiles
    are for those of two vectors."""
    beside = vectors + 1 + 2 * (target.registers == 32)  # B's vectors and A's broadcasts
    if byte_form(element, target) == PAIRS:  # products have a register before they are added; the
        beside += 1 if target.vector_bits >= 256 else 2  # instruction of SSE2 overwrites a factor
    if is_shifted(element, target):
        beside += vectors + 1  # the row more, and the shift, which takes turns with a broadcast
        beside -= target.registers == 32
    most = min((target.registers - beside) // vectors, most_rows(target, vectors))
    most = min(most, most_rows(target, 2))
    return max(most, 1)


class Bytes(Body):
    """``C = A B``, or ``+=``, with groups of bytes in A and B and 32-bit sums in C."""

    def __init__(self, fn: Function, tile: Tile, width: int, vectors: int, masked: bool) -> None:
        super().__init__(fn, tile, width, vectors, masked)
        target = fn.module.target
        self.form, self.shifted = byte_form(tile.element, target), is_shifted(tile.element, target)
        self.signs = is_signed(tile.element, 0), is_signed(tile.element, 1)
        self.element, self.kind = "i32", f"<{width} x i32>"
        self.sum_kind, self.c_element, self.c_size = self.kind, "i32", GROUP

    def _keys(self) -> list[tuple[int, int]]:
        """One row more for what the shift of A adds."""
        more = [(self.tile.height, j) for j in range(self.vectors)] if self.shifted else []
        return [*super()._keys(), *more]

    def _load_of_b(self, pointer: str, mask: str) -> str:
        """Panels have whole vectors: what is beyond the last column gets into no result."""
        return self._load(pointer, "")

    def _row_of_a(self, row: int, columns: list[str]) -> str:
        if row < self.tile.height:
            return super()._row_of_a(row, columns)
        return f"splat (i32 {_SHIFT})"

    def _finish(self, c: str, sums: dict[tuple[int, int], str], masks: list[str]) -> None:
        if self.shifted:
            height, kind = self.tile.height, self.kind
            sums = {
                (i, j): self.fn.value(f"sub {kind} {total}, {sums[height, j]}")
                for (i, j), total in sums.items() if i < height
            }  # fmt: skip
        super()._finish(c, sums, masks)

    def _multiply_add(self, x: str, y: str, total: str) -> str:
        fn, bits = self.fn, 32 * self.width
        if self.form == PAIRS:
            name = {128: "sse2.pmadd.wd", 256: "avx2.pmadd.wd", 512: "avx512.pmaddw.d.512"}[bits]
            wide = f"<{2 * self.width} x i16>"
            x, y = (fn.value(f"bitcast {self.kind} {v} to {wide}") for v in (x, y))
            product = fn.call(
                f"{self.kind} @llvm.x86.{name}({wide}, {wide})", f"{wide} {x}, {wide} {y}"
            )
            return f"add {self.kind} {product}, {total}"
        wide = f"<{4 * self.width} x i8>"
        x, y = (fn.value(f"bitcast {self.kind} {v} to {wide}") for v in (x, y))
        if self.form == QUADS:
            name = f"llvm.x86.avx512.vpdpbusd.{bits}"
            first, second = (x, y) if self.signs[1] else (y, x)  # the one without a sign is first
        else:
            assert self.form == DOTS, self.form
            kinds = {(True, True): "sdot", (False, False): "udot"}
            name = f"llvm.aarch64.neon.{kinds.get(self.signs, 'usdot')}.v4i32.v16i8"
            first, second = (y, x) if self.signs == (True, False) else (x, y)
        called = f"{self.kind} @{name}"
        fn.module.declare(f"{called}({self.kind}, {wide}, {wide})")
        return f"call {called}({self.kind} {total}, {wide} {first}, {wide} {second})"


def byte_tile(fn: Function, tile: Tile, width: int, target: Target) -> None:
    """The code of a tile: whole vectors without masks, the last columns masked or by elements."""
    if target.avx512:
        Bytes(fn, tile, width, tile.vectors, masked=True).emit("%b", "%c", "%n")
        return
    whole, part, end = (fn.block_of(name, []) for name in ("whole", "part", "end"))
    fn.fork(str(fn.compare("eq", "%n", tile.vectors * width)), whole, part)
    fn.label(whole)
    Bytes(fn, tile, width, tile.vectors, masked=False).emit("%b", "%c", "%n")
    fn.branch(end)
    fn.label(part)
    last = Bytes if target.vector_bits >= 256 else _ByElements
    last(fn, tile, width, tile.vectors, masked=True).emit("%b", "%c", "%n")
    fn.enter(end)


class _ByElements(Bytes):
    """A tile whose last columns are stored element by element: masks are no instructions."""

    def _masks(self, columns: str | int) -> list[str]:
        return [""] * self.vectors

    def _places(self, c: str) -> dict[tuple[int, int], str]:
        return self._apart if c == "apart" else super()._places(c)

    def _fetch(self, c: str) -> None:
        """Rows may end before the vectors do."""

    def _finish(self, c: str, sums: dict[tuple[int, int], str], masks: list[str]) -> None:
        """Vectors go through the stack, C's elements before them where it is added to."""
        fn, tile = self.fn, self.tile
        row = self.vectors * self.width
        space = fn.alloca(f"[{tile.height * row} x i32], align 16")
        self._apart = {
            (i, j): fn.offset(space, i * row + j * self.width, "i32")
            for i in range(tile.height) for j in range(self.vectors)
        }  # fmt: skip
        with fn.when(fn.compare("ne", "%add", 0)):
            self._move(c, space, row, into=False)
        super()._finish("apart", sums, masks)
        self._move(c, space, row, into=True)

    def _move(self, c: str, space: str, row: int, into: bool) -> None:
        fn = self.fn
        with fn.loop(0, self.tile.height) as i, fn.loop(0, "%n") as j:
            there = fn.offset(fn.offset(c, fn.mul("%ldc", i), "i8"), j, "i32")
            here = fn.offset(space, fn.add(fn.mul(i, row), j), "i32")
            source, goal = (here, there) if into else (there, here)
            x = fn.value(f"load i32, ptr {source}, align {GROUP}")
            fn.emit(f"store i32 {x}, ptr {goal}, align {GROUP}")
