"""The micro-kernel for bfloat16 where the processor multiplies pairs of them.

An element is a pair: the values of two steps of k that follow one another, in 32 bits. One
instruction multiplies two pairs and adds both products to a float32 sum, which is rounded to
bfloat16 in the end. The instruction takes subnormal numbers for zeros.
"""

from __future__ import annotations

from treadle.runtime.cpu.library_text import first_lanes, masked_load, masked_store
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.matmul.panel_rows import copy_rows
from treadle.runtime.cpu.matmul.tiles import Body, Tile, lanes
from treadle.runtime.cpu.target import AMX_FEATURES, Target

_DOT = "<16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>, <32 x bfloat>, <32 x bfloat>)"
MOST_PAIRS = 4096  # steps of k in the only block: sums are rounded once, on any machine
HALF = 2  # bytes of a bfloat16
MATRIX_ROWS = 16  # of a matrix register
MATRIX_SUMS = 4  # matrix registers for sums, of eight: the first ones


def multiplies_pairs(target: Target) -> bool:
    return target.avx512 and "avx512bf16" in target.features


def has_matrix_registers(target: Target) -> bool:
    """Whether it does so in matrix registers (`amx.py`)."""
    return multiplies_pairs(target) and target.features >= AMX_FEATURES


def most_matrix_rows(vectors: int) -> int:
    """The tallest tile of matrix registers, so many across: two registers high at most."""
    return MATRIX_ROWS * min(2, MATRIX_SUMS // vectors)


class Pairs(Body):
    """``C = A B``, with pairs in A and B and bfloat16 in C."""

    def __init__(self, fn: Function, tile: Tile, width: int, vectors: int, masked: bool) -> None:
        super().__init__(fn, tile, width, vectors, masked)
        self.sum_kind, self.c_element, self.c_size = f"<{width} x float>", "i16", HALF

    def _multiply_add(self, x: str, y: str, total: str) -> str:
        fn, wide = self.fn, f"<{2 * self.width} x bfloat>"
        fn.module.declare(_DOT)
        x, y = (fn.value(f"bitcast {self.kind} {v} to {wide}") for v in (x, y))
        called = _DOT[: _DOT.index("(")]
        return f"call {called}({self.sum_kind} {total}, {wide} {x}, {wide} {y})"

    def _finish(self, c: str, sums: dict[tuple[int, int], str], masks: list[str]) -> None:
        fn, half = self.fn, f"<{self.width} x bfloat>"
        for key, place in self._places(c).items():
            x = fn.value(f"fptrunc {self.sum_kind} {sums[key]} to {half}")
            x = fn.value(f"bitcast {half} {x} to <{self.width} x i16>")
            masked_store(fn, x, place, "i16", self.width, masks[key[1]])


# -- packing ---------------------------------------------------------------------------------------


def add_pair_packer(module: Module, name: str) -> None:
    """``pair_panels`` or ``pair_columns``: `copy_panels` or `pack_columns` of bfloat16 matrices
    whose rows are steps of k. `k` counts pairs of rows, and strides go from pair to pair."""
    {"pair_panels": _define_panels, "pair_columns": _define_columns}[name](module)


def _define_panels(module: Module) -> None:
    fn = Function(module)
    columns = fn.divide("%row", 2 * HALF)
    apart = fn.divide("%ldb", 2)

    def copy(source: str, target: str, count: Word) -> None:
        _interleave(fn, source, apart, target, count)

    copy_rows(fn, "i16", HALF, columns, 2, copy)
    fn.emit("ret void")
    fn.define(
        "pair_panels_i32",
        "void @{}(ptr %b, i64 %ldb, ptr %panel, i64 %row, i64 %k, i64 %n, i64 %bytes)",
    )


def _define_columns(module: Module) -> None:
    fn = Function(module)
    row = fn.mul("%height", 2 * HALF)
    with fn.loop(0, "%k") as i:
        source = fn.offset("%a", fn.mul(i, "%lda"), "i8")
        target = fn.offset("%tile", fn.mul(i, row), "i8")
        _interleave(fn, source, fn.divide("%lda", 2), target, "%height")
    fn.emit("ret void")
    signature = "void @{}(ptr %a, i64 %lda, ptr %tile, i64 %height, i64 %k)"
    fn.define("pair_columns_i32", signature)


def _interleave(fn: Function, source: str, stride: Word, target: str, count: Word) -> None:
    """Pairs of the first `count` elements of two rows, `stride` bytes apart; writes up to the end
    of the last vector."""
    width = lanes(fn.module.target, "i32")

    def write(j: Word, mask: str) -> None:
        pair = interleaved(fn, fn.offset(source, j, "i16"), stride, mask)
        place = fn.offset(target, j, "i32")
        fn.emit(f"store <{width} x i32> {pair}, ptr {place}, align 4")

    whole = fn.mul(fn.divide(count, width), width)
    with fn.loop(0, whole, width) as j:
        write(j, "")
    with fn.when(fn.compare("slt", whole, count)):
        write(whole, first_lanes(fn, fn.sub(count, whole), width))


def interleaved(fn: Function, first: str, stride: Word, mask: str) -> str:
    """A vector of pairs of elements of two rows, `stride` bytes apart; zeros beyond the mask, where
    there is one."""
    width = lanes(fn.module.target, "i32")
    places = first, fn.offset(first, stride, "i8")
    if mask:
        halves = [masked_load(fn, place, "i16", width, mask) for place in places]
    else:
        halves = [fn.value(f"load <{width} x i16>, ptr {place}, align 2") for place in places]
    low, high = (fn.value(f"zext <{width} x i16> {h} to <{width} x i32>") for h in halves)
    shift = ", ".join(["i32 16"] * width)
    high = fn.value(f"shl <{width} x i32> {high}, <{shift}>")
    return fn.value(f"or <{width} x i32> {low}, {high}")
