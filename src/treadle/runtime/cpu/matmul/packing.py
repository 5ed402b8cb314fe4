"""Copies of B's panels and of A's tiles: one step of k after another, in the cache."""

from __future__ import annotations

from treadle.runtime.cpu.lanes import transposed
from treadle.runtime.cpu.library_text import ELEMENT_BYTES, first_lanes, masked_load
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.matmul.byte_forms import is_whole_bytes
from treadle.runtime.cpu.matmul.pairs import add_pair_packer, has_matrix_registers
from treadle.runtime.cpu.matmul.panel_rows import copy_rows
from treadle.runtime.cpu.matmul.tiles import lanes, most_rows
from treadle.runtime.cpu.target import Target

_ARGUMENTS = "ptr %b, i64 %ldb, ptr %panel, i64 %row, i64 %k, i64 %n"
_TILE_ARGUMENTS = "ptr %a, i64 %lda, ptr %tile, i64 %height, i64 %k"


def packer_text(name: str, element: str, target: Target) -> str:
    """A module with the function ``{name}_{element}`` alone, for a name of `PACKERS`.

    ``copy_panels`` (b, ldb, panels, row_bytes, k, n, panel_bytes): ``panel p[i, j] =
    B[i, p * columns + j]`` for i < k and all columns below n; strides are in bytes. Panels that
    are used together are filled together: rows of B are far apart, and each is read in one go.

    ``transpose_panel`` (b, ldb, panel, row_bytes, k, n): ``panel[i, j] = B[j, i]``. It writes
    whole vectors: up to a vector's length of rows beyond k, and rows are as long as whole vectors.

    ``pack_rows`` and ``pack_columns`` (a, lda, tile, height, k): ``tile[i, j] = A[j, i]`` or
    ``A[i, j]`` for i < k, j < height, without gaps. They write up to two vectors beyond the end:
    every step overwrites the elements that the one before wrote beyond its end.

    Those of numbers of 8 bits copy groups of steps of k: see `byte_packing.py`.

    ``pair_panels`` and ``pair_columns``: see `pairs.py`, and `amx.py` for matrix registers.
    """
    module = Module(target)
    if is_whole_bytes(element):
        from treadle.runtime.cpu.matmul.byte_packing import BytePacker

        byte_packer = BytePacker(module, element, name)
        getattr(byte_packer, name)()
        byte_packer.fn.define(f"{name}_{element}", SIGNATURES[name])
    elif name == "pair_columns" and has_matrix_registers(target):
        from treadle.runtime.cpu.matmul.amx import define_pair_rows

        define_pair_rows(module)
    elif name.startswith("pair_"):
        add_pair_packer(module, name)
    else:
        packer = _Packer(module, element)
        getattr(packer, name)()
        packer.fn.define(f"{name}_{element}", SIGNATURES[name])
    return module.text()


SIGNATURES = {
    "copy_panels": f"void @{{}}({_ARGUMENTS}, i64 %bytes)",
    "transpose_panel": f"void @{{}}({_ARGUMENTS})",
    "pack_columns": f"void @{{}}({_TILE_ARGUMENTS})",
    "pack_rows": f"void @{{}}({_TILE_ARGUMENTS})",
}


class _Packer:
    def __init__(self, module: Module, element: str) -> None:
        self.fn = Function(module)
        self.element, self.size = element, ELEMENT_BYTES[element]
        self.width = lanes(module.target, element)
        self.masks_cost = module.target.vector_bits < 256
        self.kind = f"<{self.width} x {element}>"

    def copy_panels(self) -> None:
        columns = self.fn.divide("%row", self.size)
        copy_rows(self.fn, self.element, self.size, columns, 1, self._copy_row)
        self.fn.emit("ret void")

    def _copy_row(self, source: str, target: str, count: Word) -> None:
        """Copy so many elements; where masks are free, the last vector is filled up with zeros."""
        fn, width = self.fn, self.width
        whole = fn.mul(fn.divide(count, width), width)
        with fn.loop(0, whole, width) as j:
            x = fn.value(f"load {self.kind}, {self._at(source, j)}")
            fn.emit(f"store {self.kind} {x}, {self._at(target, j)}")
        if not self.masks_cost:
            with fn.when(fn.compare("slt", whole, count)):
                mask = first_lanes(fn, fn.sub(count, whole), width)
                place = fn.offset(source, whole, self.element)
                x = masked_load(fn, place, self.element, width, mask)
                fn.emit(f"store {self.kind} {x}, {self._at(target, whole)}")
            return
        with fn.loop(whole, count) as j:
            x = fn.value(f"load {self.element}, {self._at(source, j)}")
            fn.emit(f"store {self.element} {x}, {self._at(target, j)}")

    def transpose_panel(self) -> None:
        """Squares of vectors, whose rows beyond n are zero and lanes beyond k are not read."""
        fn, width = self.fn, self.width
        with fn.loop(0, "%n", width) as j, fn.loop(0, "%k", width) as i:
            k, n = fn.sub("%k", i), fn.sub("%n", j)
            inside = fn.value(
                f"and i1 {fn.compare('sge', k, width)}, {fn.compare('sge', n, width)}"
            )
            source = fn.offset("%b", fn.mul(j, "%ldb"), "i8")
            source = fn.offset(source, i, self.element)
            target = fn.offset("%panel", fn.mul(i, "%row"), "i8")
            target = fn.offset(target, j, self.element)
            self._square(source, target, inside, (k, n))
        fn.emit("ret void")

    # -- tiles of A --------------------------------------------------------------------------

    def pack_columns(self) -> None:
        """A is stored as [k, m]: the tile's part of each row. Reads whole vectors inside A only."""
        fn = self.fn
        row = fn.mul("%height", self.size)
        count = -(-most_rows(fn.module.target, 2) // self.width)  # vectors that hold any tile
        firsts = [] if self.masks_cost else [v * self.width for v in range(count)]
        masks = [first_lanes(fn, fn.sub("%height", f), self.width) for f in firsts]
        with fn.loop(0, "%k") as i:
            source = fn.offset("%a", fn.mul(i, "%lda"), "i8")
            target = fn.offset("%tile", fn.mul(i, row), "i8")
            if self.masks_cost:
                self._copy_row(source, target, "%height")
            for first, mask in zip(firsts, masks, strict=True):
                place = fn.offset(source, first, self.element)
                x = masked_load(fn, place, self.element, self.width, mask)
                fn.emit(f"store {self.kind} {x}, {self._at(target, first)}")
        fn.emit("ret void")

    def pack_rows(self) -> None:
        """A is stored as [m, k]: squares are transposed, the last ones overlapping others."""
        fn, width = self.fn, self.width
        few, many = fn.block_of("few", []), fn.block_of("many", [])
        fn.fork(str(fn.compare("slt", "%k", width)), few, many)
        fn.label(few)
        with fn.loop(0, "%k") as i, fn.loop(0, "%height") as j:
            source = fn.offset("%a", fn.mul(j, "%lda"), "i8")
            x = fn.value(f"load {self.element}, {self._at(source, i)}")
            place = fn.add(fn.mul(i, "%height"), j)
            fn.emit(f"store {self.element} {x}, {self._at('%tile', place)}")
        fn.emit("ret void")
        fn.label(many)
        last = fn.sub("%k", width)
        with fn.loop(0, "%k", width) as block:
            self._transpose_tile(fn.min(block, last))
        fn.emit("ret void")

    def _transpose_tile(self, start: object) -> None:
        """A vector's length of steps of k; rows beyond the tile repeat its last one."""
        fn, width = self.fn, self.width
        squares = -(-most_rows(fn.module.target, 2) // width)
        last = fn.sub("%height", 1)
        columns = []
        for square in range(squares):
            rows = []
            for j in range(width):
                row = fn.min(square * width + j, last)
                source = fn.offset("%a", fn.mul(row, "%lda"), "i8")
                rows.append(fn.value(f"load {self.kind}, {self._at(source, start)}"))
            columns.append(transposed(fn, rows, self.kind))
        for i in range(width):
            place = fn.mul(fn.add(str(start), i), "%height")
            for square in range(squares):
                at = self._at("%tile", fn.add(place, square * width))
                fn.emit(f"store {self.kind} {columns[square][i]}, {at}")

    # -- squares -----------------------------------------------------------------------------

    def _square(self, source: str, target: str, inside: str, rest: tuple[object, ...]) -> None:
        """One square, whole or in part; only the loads differ."""
        fn, width = self.fn, self.width
        whole, part = fn.block_of("whole", []), fn.block_of("part", [])
        square = fn.block_of("square", [self.kind] * width)
        fn.fork(inside, whole, part)
        fn.label(whole)
        rows = [self._row(source, j) for j in range(width)]
        vectors = [fn.value(f"load {self.kind}, ptr {row}, align {self.size}") for row in rows]
        fn.branch(square(*vectors))
        fn.label(part)
        space = fn.alloca(f"[{width * width} x {self.element}], align 64")
        self._gather_part(source, space, rest)
        places = [self._at(space, j * width) for j in range(width)]
        fn.enter(square(*(fn.value(f"load {self.kind}, {place}") for place in places)))
        for i, vector in enumerate(transposed(fn, square.values, self.kind)):
            row = fn.value(f"getelementptr i8, ptr {target}, i64 {fn.mul('%row', i)}")
            fn.emit(f"store {self.kind} {vector}, ptr {row}, align {self.size}")

    def _gather_part(self, source: str, space: str, rest: tuple[object, ...]) -> None:
        """The part of a square that is inside B, element by element, into `space`."""
        fn, width = self.fn, self.width
        k, n = rest
        with fn.loop(0, fn.min(str(n), width)) as j, fn.loop(0, fn.min(str(k), width)) as i:
            row = fn.offset(source, fn.mul(j, "%ldb"), "i8")
            x = fn.value(f"load {self.element}, {self._at(row, i)}")
            place = fn.add(fn.mul(j, width), i)
            fn.emit(f"store {self.element} {x}, {self._at(space, place)}")

    def _row(self, source: str, j: int) -> str:
        fn = self.fn
        return fn.value(f"getelementptr i8, ptr {source}, i64 {fn.mul('%ldb', j)}")

    def _at(self, pointer: str, index: object) -> str:
        place = self.fn.offset(pointer, index, self.element)  # type: ignore[arg-type]
        return f"ptr {place}, align {self.size}"
