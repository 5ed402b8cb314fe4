"""The micro-kernel for numbers of 8 bits, with groups of steps of k (`byte_forms.py`) in vectors.

A's tile and B's panel are copies in groups (`byte_packing.py`), so a step is that of other tiles:
B's vectors by a broadcast group of A.

VPDPBUSD multiplies numbers without a sign by numbers with one. Where both operands are of one kind,
the copy of A has each number moved by 128 into the range of the other kind, which adds 128 times
the sum of B's column to each sum (or takes it away). The copy of B's panel has these products in
one row more, behind its last group, and the tile takes them off in the end.
"""

from __future__ import annotations

from treadle.runtime.cpu.library_text import masked_load
from treadle.runtime.cpu.llvm_text import Function
from treadle.runtime.cpu.matmul.byte_forms import (
    DOTS,
    GROUP,
    PAIRS,
    QUADS,
    SHIFT,
    byte_form,
    is_shifted,
    is_signed,
    steps_of_group,
)
from treadle.runtime.cpu.matmul.dots import DOTS_ACROSS, Dots, most_dot_rows
from treadle.runtime.cpu.matmul.tiles import Body, Tile, most_rows
from treadle.runtime.cpu.target import Target


def most_byte_rows(element: str, target: Target, vectors: int) -> int:
    """The tallest tile of so many vectors whose accumulators stay in registers. Copies of A's tiles
    are for those of two vectors."""
    beside = vectors + 1 + 2 * (target.registers == 32)  # B's vectors and A's broadcasts
    if byte_form(element, target) == PAIRS:  # products have a register before they are added; the
        beside += 1 if target.vector_bits >= 256 else 2  # instruction of SSE2 overwrites a factor
    most = min((target.registers - beside) // vectors, most_rows(target, vectors))
    most = min(most, most_rows(target, 2))
    return max(most, 1)


def most_byte_dots(element: str, target: Target) -> int:
    """The tallest tile of dot products whose accumulators stay in registers."""
    beside = DOTS_ACROSS + 1 if is_shifted(element, target) else 0  # one row more, and the shift
    if byte_form(element, target) == PAIRS:
        beside += 1 if target.vector_bits >= 256 else 2
    return max(most_dot_rows(target, beside), 1)


def multiply_groups(fn: Function, element: str, width: int, x: str, y: str, total: str) -> str:
    """The instruction that adds the products of vectors of groups, `x` of A and `y` of B, to sums
    of 32 bits.

    Args:
        element: of `WHOLE_BYTES`.
        width: groups in a vector.
    """
    target, kind, bits = fn.module.target, f"<{width} x i32>", 32 * width
    form, signs = byte_form(element, target), (is_signed(element, 0), is_signed(element, 1))
    if form == PAIRS:
        name = {128: "sse2.pmadd.wd", 256: "avx2.pmadd.wd", 512: "avx512.pmaddw.d.512"}[bits]
        wide = f"<{2 * width} x i16>"
        x, y = (fn.value(f"bitcast {kind} {v} to {wide}") for v in (x, y))
        product = fn.call(f"{kind} @llvm.x86.{name}({wide}, {wide})", f"{wide} {x}, {wide} {y}")
        return f"add {kind} {product}, {total}"
    wide = f"<{4 * width} x i8>"
    x, y = (fn.value(f"bitcast {kind} {v} to {wide}") for v in (x, y))
    if form == QUADS:
        name = f"llvm.x86.avx512.vpdpbusd.{bits}"
        first, second = (x, y) if signs[1] else (y, x)  # the one without a sign is first
    else:
        assert form == DOTS, form
        kinds = {(True, True): "sdot", (False, False): "udot"}
        name = f"llvm.aarch64.neon.{kinds.get(signs, 'usdot')}.v4i32.v16i8"
        first, second = (y, x) if signs == (True, False) else (x, y)
    called = f"{kind} @{name}"
    fn.module.declare(f"{called}({kind}, {wide}, {wide})")
    return f"call {called}({kind} {total}, {wide} {first}, {wide} {second})"


class Bytes(Body):
    """``C = A B``, or ``+=``, with groups of bytes in A and B and 32-bit sums in C."""

    def __init__(self, fn: Function, tile: Tile, width: int, vectors: int, masked: bool) -> None:
        super().__init__(fn, tile, width, vectors, masked)
        target = fn.module.target
        self.shifted = is_shifted(tile.element, target)
        self.element, self.kind = "i32", f"<{width} x i32>"
        self.sum_kind, self.c_element, self.c_size = self.kind, "i32", GROUP

    def _load_of_b(self, pointer: str, mask: str) -> str:
        """Panels have whole vectors: what is beyond the last column gets into no result."""
        return self._load(pointer, "")

    def _finish(self, c: str, sums: dict[tuple[int, int], str], masks: list[str]) -> None:
        if self.shifted:
            fn, kind = self.fn, self.kind
            last = fn.offset("%b", fn.mul("%k", "%ldb"), "i8")
            moved = self._row_of_b(last, masks, "%k")
            sums = {(i, j): fn.value(f"sub {kind} {t}, {moved[j]}") for (i, j), t in sums.items()}
        super()._finish(c, sums, masks)

    def _multiply_add(self, x: str, y: str, total: str) -> str:
        return multiply_groups(self.fn, self.tile.element, self.width, x, y, total)


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


class ByteDots(Dots):
    """Dot products of rows of numbers of 8 bits, which are in groups as they are stored.

    Nothing is copied: A's numbers are moved by 128 when they are loaded, and what this adds to the
    sums is one row more of the tile.
    """

    def __init__(self, fn: Function, tile: Tile, width: int) -> None:
        super().__init__(fn, tile, width)
        target = fn.module.target
        self.signs = is_signed(tile.element, 0), is_signed(tile.element, 1)
        self.widened = byte_form(tile.element, target) == PAIRS
        self.shifted = is_shifted(tile.element, target)
        self.element, self.size, self.kind = "i32", GROUP, f"<{width} x i32>"
        self.steps, self.operand = width * steps_of_group(tile.element, target), "i8"
        self.tile_keys = self.keys
        if self.shifted:
            self.keys = [*self.keys, *((tile.height, j) for j in range(tile.vectors))]

    def _totals(self, sums: dict[tuple[int, int], str]) -> dict[tuple[int, int], str]:
        if not self.shifted:
            return sums
        fn, kind, more = self.fn, self.kind, self.tile.height
        return {
            (i, j): fn.value(f"sub {kind} {sums[i, j]}, {sums[more, j]}") for i, j in self.tile_keys
        }

    def _load(self, pointer: str, mask: str, of: int) -> str:
        fn, kind = self.fn, f"<{self.steps} x i8>"
        if mask:
            numbers = masked_load(fn, pointer, "i8", self.steps, mask)
        else:
            numbers = fn.value(f"load {kind}, ptr {pointer}, align 1")
        if self.widened:
            extend, wide = "sext" if self.signs[of] else "zext", f"<{self.steps} x i16>"
            numbers, kind = fn.value(f"{extend} {kind} {numbers} to {wide}"), wide
        group = fn.value(f"bitcast {kind} {numbers} to {self.kind}")
        if of == 0 and self.shifted:
            group = fn.value(f"xor {self.kind} {group}, splat (i32 {SHIFT})")
        return group

    def _added(
        self, left: list[str], right: list[str], sums: dict[tuple[int, int], str]
    ) -> dict[tuple[int, int], str]:
        return super()._added([*left, f"splat (i32 {SHIFT})"], right, sums)

    def _fma(self, x: str, y: str, total: str) -> str:
        element = self.tile.element
        return self.fn.value(multiply_groups(self.fn, element, self.width, x, y, total))
