"""The micro-kernels on the matrix registers of AMX (Intel, Advanced Matrix Extensions).

A matrix register has 16 rows of 64 bytes. One instruction multiplies 16 rows of A, of 16 pairs of
steps of k each, by 16 such pairs of 16 columns of B, and adds the products to 16 by 16 float32
sums. A tile of C has up to four registers of sums: two by two, or one row of registers by four.

Operands are the pairs of `pairs.py`: a panel of B has the layout that the instruction wants, and
rows of A are read where they are. The shapes of the registers are a configuration of the thread,
which clears all registers: it changes once in a tile, for the last steps of k.

The order of sums. For each 16 pairs of k, and in the end for the pairs that are left, the
instruction adds up the products of the even steps and those of the odd steps, each beginning at
zero and with one rounding a product, then both sums, and then adds that to the sum before. It
depends on k alone. (The instruction of AVX-512 adds every product to the sum before; both round to
nearest, take subnormal numbers for zeros and give zeros for them, and both sums are rounded to
bfloat16 once.) The source is the operation section of TDPBF16PS in Intel's Software Developer's
Manual.

Numbers of 8 bits come in groups of four steps of k, with signs or without (`byte_forms.py`), and
their sums have 32 bits. These are in C itself where the tile has whole registers of columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from treadle.runtime.cpu.lanes import transposed
from treadle.runtime.cpu.library_text import first_lanes, masked_load, masked_store
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.matmul.byte_forms import GROUP, is_signed
from treadle.runtime.cpu.matmul.pairs import HALF, MATRIX_ROWS, MATRIX_SUMS, interleaved
from treadle.runtime.cpu.matmul.tiles import PREFETCH, Tile

PAIR, ROW_BYTES = 2 * HALF, 64  # bytes of a pair and of a sum, and of a row of a matrix register
ACROSS = ROW_BYTES // PAIR  # columns of C, and pairs of k, in a register
LAST = 7  # the register for the last of B's columns
_CONFIGURATION = 64  # bytes: the palette, from byte 16 on bytes of rows, from byte 48 on rows
_WIDE = f"<{ACROSS} x float>"


class MatrixTile:
    """``C = A B``, with pairs in A and B and bfloat16 in C; see `Tile` for the arguments."""

    result = HALF  # bytes of an element of C

    def __init__(self, fn: Function, tile: Tile) -> None:
        self.fn, self.tile = fn, tile
        starts = range(0, tile.height, MATRIX_ROWS)
        self.heights = [min(MATRIX_ROWS, tile.height - i) for i in starts]
        self.keys = [(i, j) for i in range(len(self.heights)) for j in range(tile.vectors)]
        self.row = tile.vectors * ROW_BYTES  # bytes of a row of the sums in memory
        for text in (
            "void @llvm.x86.ldtilecfg(ptr)", "void @llvm.x86.tilerelease()",
            "void @llvm.x86.tilezero(i8 immarg)",
            "void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)",
            "void @llvm.x86.tilestored64(i8 immarg, ptr, i64)",
            f"void @llvm.x86.{self.instruction}(i8 immarg, i8 immarg, i8 immarg)", PREFETCH,
        ):  # fmt: skip
            fn.module.declare(text)

    @property
    def instruction(self) -> str:
        """The name of the one that multiplies registers."""
        return "tdpbf16ps"

    def emit(self) -> None:
        self._sum_up(self._space(), self.row)

    def _space(self) -> str:
        """Memory for the sums."""
        return self.fn.alloca(f"[{self.tile.height * self.row} x i8], align {ROW_BYTES}")

    def _begin(self) -> None:
        """Give the sums their first values."""
        for key in self.keys:
            self.fn.emit(f"call void @llvm.x86.tilezero(i8 {self._sum(*key)})")

    def _sum_up(self, sums: str, row: Word) -> None:
        """Compute the tile, with its sums in memory at last, rows so many bytes apart."""
        fn = self.fn
        whole = fn.mul(fn.divide("%k", ACROSS), ACROSS)
        rest = fn.sub("%k", whole)
        self._configure(ACROSS)
        self._fetch_result()
        self._begin()
        with self._segments() as (a, b), fn.loop(0, whole, ACROSS) as step:
            self._fetch_ahead(a, fn.add(step, ACROSS))
            self._multiply(a, b, step)
        self._move("tilestored64", sums, row)
        with fn.when(fn.compare("sgt", rest, 0)):
            self._configure(rest)
            self._move("tileloadd64", sums, row)
            with self._segments() as (a, b):
                self._multiply(a, b, whole)
            self._move("tilestored64", sums, row)
        fn.emit("call void @llvm.x86.tilerelease()")
        self._finish(sums)

    # -- registers ---------------------------------------------------------------------------

    def _sum(self, i: int, j: int) -> int:
        """The register of a part of C."""
        return i * self.tile.vectors + j

    def _of_a(self, i: int) -> int:
        return MATRIX_SUMS + i

    def _of_b(self, j: int) -> int:
        """B's registers take turns where there are more columns than registers."""
        free = LAST - MATRIX_SUMS - len(self.heights)
        return LAST if j == self.tile.vectors - 1 else MATRIX_SUMS + len(self.heights) + j % free

    def _configure(self, pairs: Word) -> None:
        """Give the registers their shapes for so many pairs of k, and clear them."""
        texts = [self._shapes(max(count, 1)) for count in range(ACROSS + 1)]
        body = ", ".join(f"[{_CONFIGURATION} x i8] [{text}]" for text in texts)
        shapes = self.fn.module.constant(
            "shapes", f"[{len(texts)} x [{_CONFIGURATION} x i8]] [{body}], align {_CONFIGURATION}"
        )
        place = self.fn.offset(shapes, pairs, f"[{_CONFIGURATION} x i8]")
        self.fn.emit(f"call void @llvm.x86.ldtilecfg(ptr {place})")

    def _shapes(self, pairs: int) -> str:
        """The bytes of a configuration. All columns of B's panels are there, whatever they hold."""
        found = [0] * _CONFIGURATION
        found[0] = 1  # the palette of 16 rows of 64 bytes
        shapes = {self._of_b(j): (pairs, ROW_BYTES) for j in range(self.tile.vectors)}
        for i, height in enumerate(self.heights):
            shapes[self._of_a(i)] = height, pairs * PAIR
            shapes.update((self._sum(i, j), (height, ROW_BYTES)) for j in range(self.tile.vectors))
        for register, (rows, size) in shapes.items():
            found[16 + 2 * register], found[48 + register] = size, rows
        return ", ".join(f"i8 {x}" for x in found)

    def _move(self, instruction: str, sums: str, row: Word) -> None:
        """All sums from or to memory."""
        fn = self.fn
        for i, j in self.keys:
            start = fn.offset(sums, fn.mul(row, i * MATRIX_ROWS), "i8")
            self._at(instruction, self._sum(i, j), fn.offset(start, j * ROW_BYTES, "i8"), row)

    def _at(self, instruction: str, register: int, place: str, stride: Word) -> None:
        self.fn.emit(f"call void @llvm.x86.{instruction}(i8 {register}, ptr {place}, i64 {stride})")

    # -- sums --------------------------------------------------------------------------------

    @contextmanager
    def _segments(self) -> Iterator[tuple[str, str]]:
        """A loop over the segments of the sum: where A and B of each begin."""
        fn = self.fn
        with fn.loop(0, "%segments") as number:
            place = fn.mul(number, 2)
            a, b = (
                fn.offset(start, fn.load_word("%offsets", fn.add(place, i)), "i8")
                for i, start in enumerate(("%a", "%b"))
            )
            yield a, b

    def _multiply(self, a: str, b: str, step: Word) -> None:
        """Add the products of as many pairs of k as the registers are configured for."""
        fn = self.fn
        a = fn.offset(a, fn.mul(step, PAIR), "i8")
        b = fn.offset(b, fn.mul(step, "%ldb"), "i8")
        for i in range(len(self.heights)):
            place = fn.offset(a, fn.mul("%lda", i * MATRIX_ROWS), "i8")
            self._at("tileloadd64", self._of_a(i), place, "%lda")
        for j in range(self.tile.vectors):
            place = fn.offset(b, j * ROW_BYTES, "i8")
            self._at("tileloadd64", self._of_b(j), place, "%ldb")
            for i in range(len(self.heights)):
                registers = self._sum(i, j), self._of_a(i), self._of_b(j)
                operands = ", ".join(f"i8 {r}" for r in registers)
                fn.emit(f"call void @llvm.x86.{self.instruction}({operands})")

    def _fetch_result(self) -> None:
        """Ask for the lines of C: they have the whole sum to arrive."""
        for row in range(self.tile.height):
            place = self.fn.offset("%c", self.fn.mul("%ldc", row), "i8")
            for start in range(0, self.tile.vectors * ACROSS * self.result, ROW_BYTES):
                self._fetch(self.fn.offset(place, start, "i8"), write=True)

    def _fetch_ahead(self, a: str, step: Word) -> None:
        """Ask for A's lines of later pairs of k. Its rows are far apart, so no hardware prefetcher
        follows them; B's panels are copies that follow one another."""
        first = self.fn.offset(a, self.fn.mul(step, PAIR), "i8")
        for row in range(self.tile.height):
            self._fetch(self.fn.offset(first, self.fn.mul("%lda", row), "i8"), write=False)

    def _fetch(self, place: str, write: bool) -> None:
        self.fn.emit(f"call void @llvm.prefetch.p0(ptr {place}, i32 {int(write)}, i32 3, i32 1)")

    def _finish(self, sums: str) -> None:
        """Round the sums, and store them in C."""
        fn, vectors = self.fn, range(self.tile.vectors)
        half = f"<{ACROSS} x bfloat>"
        masks = [first_lanes(fn, fn.sub("%n", j * ACROSS), ACROSS) for j in vectors]
        with fn.loop(0, self.tile.height) as row:
            source = fn.offset(sums, fn.mul(row, self.row), "i8")
            target = fn.offset("%c", fn.mul(row, "%ldc"), "i8")
            for j, mask in zip(vectors, masks, strict=True):
                place = fn.offset(source, j * ROW_BYTES, "i8")
                x = fn.value(f"load {_WIDE}, ptr {place}, align {ROW_BYTES}")
                x = fn.value(f"fptrunc {_WIDE} {x} to {half}")
                x = fn.value(f"bitcast {half} {x} to <{ACROSS} x i16>")
                masked_store(fn, x, fn.offset(target, j * ACROSS, "i16"), "i16", ACROSS, mask)


class MatrixTileOfBytes(MatrixTile):
    """``C = A B``, or ``+=``, with groups of four bytes in A and B and 32-bit sums in C."""

    result = GROUP

    @property
    def instruction(self) -> str:
        """Its letters are the signs of both factors."""
        signs = ("s" if is_signed(self.tile.element, i) else "u" for i in (0, 1))
        return f"tdpb{''.join(signs)}d"

    def emit(self) -> None:
        """Where all columns are there C has the sums from the beginning."""
        fn = self.fn
        space = self._space()
        self.whole = fn.compare("eq", "%n", self.tile.vectors * ACROSS)
        place = fn.value(f"select i1 {self.whole}, ptr %c, ptr {space}")
        self.sums = place, fn.select(self.whole, "%ldc", self.row)
        self._sum_up(*self.sums)

    def _begin(self) -> None:
        """Zeros, or C's elements where they are added to and all columns are there."""
        fn = self.fn
        adds = fn.value("icmp ne i64 %add, 0")
        goes_on = fn.value(f"and i1 {adds}, {self.whole}")
        old, new, begun = (fn.block_of(name, []) for name in ("old", "new", "begun"))
        fn.fork(goes_on, old, new)
        fn.label(old)
        self._move("tileloadd64", *self.sums)
        fn.branch(begun)
        fn.label(new)
        super()._begin()
        fn.enter(begun)

    def _finish(self, sums: str) -> None:
        """Store the sums of some columns, or add them to C's elements."""
        fn, wide = self.fn, f"<{ACROSS} x i32>"
        left = fn.select(self.whole, 0, self.tile.height)
        adds = fn.compare("ne", "%add", 0)
        lefts = [fn.sub("%n", j * ACROSS) for j in range(self.tile.vectors)]
        masks = [first_lanes(fn, count, ACROSS) for count in lefts]
        with fn.loop(0, left) as row:
            source = fn.offset(sums, fn.mul(row, self.row), "i8")
            target = fn.offset("%c", fn.mul(row, "%ldc"), "i8")
            for j, mask in enumerate(masks):
                start, place = (fn.offset(p, j * ROW_BYTES, "i8") for p in (source, target))
                x = fn.value(f"load {wide}, ptr {start}, align {GROUP}")

                def added(place: str = place, mask: str = mask, x: str = x) -> list[str]:
                    old = masked_load(fn, place, "i32", ACROSS, mask)
                    return [fn.value(f"add {wide} {x}, {old}")]

                (x,) = fn.choose(adds, [wide], [x], added)
                masked_store(fn, x, place, "i32", ACROSS, mask)


# -- packing ---------------------------------------------------------------------------------------


def define_pair_rows(module: Module) -> None:
    """``pair_columns`` where products use matrix registers: ``tile[j, i]`` is the pair of the
    steps 2 i and 2 i + 1 of k of column j of A, which is stored as [k, m]. Rows of the tile have
    `k` pairs and follow one another; nothing is written beyond them."""
    fn, kind = Function(module), f"<{ACROSS} x i32>"
    with fn.loop(0, "%k", ACROSS) as i, fn.loop(0, "%height", ACROSS) as j:
        source = fn.offset(fn.offset("%a", fn.mul(i, "%lda"), "i8"), j, "i16")
        height, rest = fn.sub("%height", j), fn.sub("%k", i)
        rows = []
        for step in range(ACROSS):  # rows of A beyond its last are not read
            count = fn.select(fn.compare("sgt", rest, step), height, 0)
            place = fn.offset(source, fn.mul("%lda", step), "i8")
            mask = first_lanes(fn, count, ACROSS)
            rows.append(interleaved(fn, place, fn.divide("%lda", 2), mask))
        inside = first_lanes(fn, rest, ACROSS)
        for row, pairs in enumerate(transposed(fn, rows, kind)):
            mask = fn.value(
                f"select i1 {fn.compare('sgt', height, row)}, <{ACROSS} x i1> {inside}, "
                f"<{ACROSS} x i1> zeroinitializer"
            )
            place = fn.offset("%tile", fn.add(fn.mul(fn.add(j, row), "%k"), i), "i32")
            masked_store(fn, pairs, place, "i32", ACROSS, mask)
    fn.emit("ret void")
    signature = "void @{}(ptr %a, i64 %lda, ptr %tile, i64 %height, i64 %k)"
    fn.define("pair_columns_i32", signature)

