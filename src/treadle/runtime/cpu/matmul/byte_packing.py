"""Copies of operands of 8 bits, in groups of steps of k (`byte_forms.py`).

A group of B, and of A in tiles that vectors compute, is written as 32 bits where other copies
(`packing.py`) have an element: a row of a panel, or of a tile, has a group for each column of B, or
row of A. Steps beyond the last one are zeros in B, so it does not matter what A has there.

Where the instruction wants A's numbers moved (`byte_tiles.py`), a panel has one row more behind its
last group: what this adds to the sums of each column.

Matrix registers take rows of A as they are stored. A copy is for an A that is stored transposed,
and for a k that does not fill registers: rows of the copy, and panels of B, have as many groups as
do, of which those of B are zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.runtime.cpu.lanes import shuffled, transposed
from treadle.runtime.cpu.library_text import first_lanes, masked_load, masked_store
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.matmul.byte_forms import (
    GROUP,
    PAIRS,
    SHIFT,
    WHOLE,
    byte_form,
    is_shifted,
    is_signed,
    multiplies_in_matrices,
    steps_of_group,
)
from treadle.runtime.cpu.matmul.byte_tiles import multiply_groups
from treadle.runtime.cpu.matmul.panel_rows import copy_row, copy_rows
from treadle.runtime.cpu.matmul.tiles import lanes, most_rows

_SUMS = 4  # sums of a column of B, each of which waits for its own last addition
_LINE = 64  # bytes that a masked copy of a row moves at once: a vector of AVX-512


class BytePacker:
    """Writes one of the copies of an element type (`WHOLE_BYTES`) for a machine.

    `k` counts steps, and strides are in bytes.
    """

    def __init__(self, module: Module, element: str, name: str) -> None:
        self.fn, self.element, self.target = Function(module), element, module.target
        operand = 0 if name.startswith("pack_") else 1
        self.steps = steps_of_group(element, self.target)
        self.width = lanes(self.target, element)
        self.kind = f"<{self.width} x i32>"
        self.widened = byte_form(element, self.target) == PAIRS
        self.extend = "sext" if is_signed(element, operand) else "zext"
        self.shifted = operand == 0 and is_shifted(element, self.target)
        self.makes_up = operand == 1 and is_shifted(element, self.target)
        self.in_matrices = multiplies_in_matrices(element, self.target)

    # -- rows of k: steps are apart ------------------------------------------------------------

    def copy_panels(self) -> None:
        """B is stored as [k, n]."""
        fn = self.fn
        whole = fn.divide("%k", self.steps)
        columns, stride = fn.divide("%row", GROUP), fn.mul("%ldb", self.steps)

        def copy(source: str, target: str, count: Word) -> None:
            self._interleave(self._rows(source, "%ldb"), target, count)

        copy_rows(fn, "i8", 1, columns, self.steps, copy, stride, whole)
        rest = fn.sub("%k", fn.mul(whole, self.steps))

        def last(source: str, target: str, count: Word) -> None:
            self._by_elements(self._rows(source, "%ldb"), target, 0, count, rest)

        with fn.when(fn.compare("sgt", rest, 0)):
            copy_row(fn, "i8", columns, fn.offset("%b", fn.mul(whole, stride), "i8"), whole, last)
        if self.in_matrices:
            with fn.loop(self._groups_left("%k"), self._whole_groups()) as i:
                copy_row(fn, "i8", columns, "%b", i, self._clear)
        if self.makes_up:
            copy_row(fn, "i8", columns, "%b", self._groups_left("%k"), self._sum_columns)
        fn.emit("ret void")

    def _clear(self, source: str, target: str, count: Word) -> None:
        """Zeros for groups of so many columns, and to the end of the last vector."""
        with self.fn.loop(0, count, self.width) as j:
            place = self.fn.offset(target, j, "i32")
            self.fn.emit(f"store {self.kind} zeroinitializer, ptr {place}, align {GROUP}")

    def _sum_columns(self, source: str, target: str, count: Word) -> None:
        """What each column's sum has more by moving A's numbers, for so many columns of a panel."""
        fn, kind = self.fn, self.kind
        groups = self._groups_left("%k")
        panel = fn.offset(target, fn.sub(0, fn.mul(groups, "%row")), "i8")
        whole = fn.mul(fn.divide(groups, _SUMS), _SUMS)

        def added(place: str, total: str) -> str:
            group = fn.value(f"load {kind}, ptr {place}, align {GROUP}")
            shift = f"splat (i32 {SHIFT})"
            return fn.value(multiply_groups(fn, self.element, self.width, shift, group, total))

        with fn.loop(0, count, self.width) as j:
            column = fn.offset(panel, j, "i32")

            def several(i: Word, sums: list[str], column: str = column) -> list[str]:
                steps = [fn.mul(fn.add(i, s), "%row") for s in range(len(sums))]
                rows = [fn.offset(column, step, "i8") for step in steps]
                return [added(row, total) for row, total in zip(rows, sums, strict=True)]

            zeros, kinds = ["zeroinitializer"] * _SUMS, [kind] * _SUMS
            first, *others = fn.carried(0, whole, _SUMS, kinds, zeros, several)
            for other in others:
                first = fn.value(f"add {kind} {first}, {other}")
            (total,) = fn.carried(whole, groups, 1, [kind], [first], several)
            fn.emit(f"store {kind} {total}, ptr {fn.offset(target, j, 'i32')}, align {GROUP}")

    def _whole_groups(self) -> Word:
        """The groups of all registers that k fills or begins."""
        fn = self.fn
        return fn.mul(fn.divide(fn.add(self._groups_left("%k"), WHOLE - 1), WHOLE), WHOLE)

    def pack_columns(self) -> None:
        """A is stored as [k, m]."""
        if self.in_matrices:
            self._columns_of_rows()
            return
        fn = self.fn
        whole = fn.divide("%k", self.steps)
        stride, row = fn.mul("%lda", self.steps), fn.mul("%height", GROUP)
        with fn.loop(0, whole) as i:
            source = fn.offset("%a", fn.mul(i, stride), "i8")
            target = fn.offset("%tile", fn.mul(i, row), "i8")
            self._interleave(self._rows(source, "%lda"), target, "%height")
        rest = fn.sub("%k", fn.mul(whole, self.steps))
        with fn.when(fn.compare("sgt", rest, 0)):
            source = fn.offset("%a", fn.mul(whole, stride), "i8")
            target = fn.offset("%tile", fn.mul(whole, row), "i8")
            self._by_elements(self._rows(source, "%lda"), target, 0, "%height", rest)
        fn.emit("ret void")

    def _rows(self, source: str, stride: Word) -> list[str]:
        """Where the steps of a group are."""
        return [self.fn.offset(source, self.fn.mul(stride, s), "i8") for s in range(self.steps)]

    def _interleave(self, rows: Sequence[str], target: str, count: Word) -> None:
        """The groups of the first `count` columns of some rows; writes up to the end of the last
        vector where masks are free."""
        fn, width = self.fn, self.width

        def write(j: Word, mask: str) -> None:
            places = [fn.offset(row, j, "i8") for row in rows]
            group = self._taken_in_turn([self._numbers(place, mask) for place in places])
            fn.emit(f"store {self.kind} {group}, ptr {fn.offset(target, j, 'i32')}, align {GROUP}")

        whole = fn.mul(fn.divide(count, width), width)
        with fn.loop(0, whole, width) as j:
            write(j, "")
        if not self.target.avx512:
            self._by_elements(rows, target, whole, count, self.steps)
            return
        with fn.when(fn.compare("slt", whole, count)):
            write(whole, first_lanes(fn, fn.sub(count, whole), width))

    def _numbers(self, place: str, mask: str) -> str:
        """A vector of numbers of a row; zeros beyond the mask."""
        if mask:
            return masked_load(self.fn, place, "i8", self.width, mask)
        return self.fn.value(f"load <{self.width} x i8>, ptr {place}, align 1")

    def _taken_in_turn(self, rows: Sequence[str]) -> str:
        """The groups of vectors of numbers, of which each has a step."""
        fn, width, joined = self.fn, self.width, list(rows)
        while len(joined) > 1:  # one after another in one vector first: few shuffles turn that
            kind = f"<{width} x i8>"
            both = range(2 * width)
            pairs = zip(joined[::2], joined[1::2], strict=True)
            joined, width = [shuffled(fn, kind, a, b, both) for a, b in pairs], 2 * width
        order = [step * self.width + j for j in range(self.width) for step in range(self.steps)]
        groups = self._in_groups(shuffled(fn, f"<{width} x i8>", joined[0], "poison", order))
        return self._moved(groups, self.kind)

    def _by_elements(
        self, rows: Sequence[str], target: str, first: Word, count: Word, steps: Word
    ) -> None:
        """The groups of the columns [first, count), of which only so many steps are there."""
        fn = self.fn
        zero = fn.module.constant("zero", "i8 0")
        with fn.loop(first, count) as j:
            numbers = []
            for step, row in enumerate(rows):
                place = fn.offset(row, j, "i8")
                if not isinstance(steps, int):
                    inside = fn.compare("sgt", steps, step)
                    place = fn.value(f"select i1 {inside}, ptr {place}, ptr {zero}")
                x = fn.value(f"load i8, ptr {place}, align 1")
                numbers.append(fn.value(f"{self.extend} i8 {x} to i32"))
            group = self._grouped(numbers)
            fn.emit(f"store i32 {group}, ptr {fn.offset(target, j, 'i32')}, align {GROUP}")

    def _grouped(self, numbers: Sequence[str]) -> str:
        """A group of numbers of 32 bits, one for each step, from the lowest bits on."""
        fn, bits, kind = self.fn, 32 // self.steps, "i32"
        found = ""
        for step, number in enumerate(numbers):
            part = number
            if step < self.steps - 1 and self.extend == "sext":
                part = fn.value(f"and {kind} {part}, {(1 << bits) - 1}")
            if step:
                part = fn.value(f"shl {kind} {part}, {bits * step}")
            found = fn.value(f"or {kind} {found}, {part}") if found else part
        return self._moved(found, kind)

    def _moved(self, groups: str, kind: str) -> str:
        """The groups, with 128 added to each number where the instruction wants that of A."""
        if not self.shifted:
            return groups
        constant = f"splat (i32 {SHIFT})" if kind == self.kind else str(SHIFT)
        return self.fn.value(f"xor {kind} {groups}, {constant}")

    # -- columns of k: steps follow one another --------------------------------------------------

    def transpose_panel(self) -> None:
        """B is stored as [n, k]. Writes whole vectors: up to a vector's length of groups beyond the
        last, and panels have whole vectors across."""
        fn, width = self.fn, self.width
        last = fn.sub("%n", 1)
        with fn.loop(0, "%n", width) as j, fn.loop(0, "%k", width * self.steps) as i:
            rows = [
                fn.offset(fn.offset("%b", fn.mul(row, "%ldb"), "i8"), i, "i8")
                for row in (fn.min(fn.add(j, r), last) for r in range(width))
            ]
            first = fn.mul(fn.divide(i, self.steps), "%row")
            target = fn.offset(fn.offset("%panel", first, "i8"), j, "i32")
            squares = self._squares([rows], fn.sub("%k", i))
            for step, column in enumerate(squares[0]):
                place = fn.offset(target, fn.mul("%row", step), "i8")
                fn.emit(f"store {self.kind} {column}, ptr {place}, align {GROUP}")
        if self.makes_up:
            last = fn.offset("%panel", fn.mul(self._groups_left("%k"), "%row"), "i8")
            self._sum_columns("%b", last, "%n")
        fn.emit("ret void")

    def pack_rows(self) -> None:
        """A is stored as [m, k]; rows beyond the tile repeat its last one."""
        if self.in_matrices:
            self._rows_of_rows()
            return
        fn, width = self.fn, self.width
        count = -(-most_rows(self.target, 2) // width)
        last = fn.sub("%height", 1)
        with fn.loop(0, "%k", width * self.steps) as i:
            rows = []
            for j in range(count * width):
                source = fn.offset("%a", fn.mul(fn.min(j, last), "%lda"), "i8")
                rows.append(fn.offset(source, i, "i8"))
            parts = [rows[s * width : (s + 1) * width] for s in range(count)]
            squares = self._squares(parts, fn.sub("%k", i))
            first = fn.mul(fn.divide(i, self.steps), "%height")
            left = self._groups_left(fn.sub("%k", i))
            for step in range(width):
                with fn.when(fn.compare("sgt", left, step)):
                    at = fn.add(first, fn.mul("%height", step))
                    for s, columns in enumerate(squares):
                        place = fn.offset("%tile", fn.add(at, s * width), "i32")
                        fn.emit(f"store {self.kind} {columns[step]}, ptr {place}, align {GROUP}")
        fn.emit("ret void")

    def _groups_left(self, steps: Word) -> Word:
        return self.fn.divide(self.fn.add(steps, self.steps - 1), self.steps)

    def _squares(self, parts: Sequence[Sequence[str]], left: Word) -> list[list[str]]:
        """For squares of `width` rows the vectors of their groups, a vector for each group; zeros
        in place of the steps that are not `left`."""
        fn, width = self.fn, self.width
        length = width * self.steps
        whole, part = fn.block_of("whole", []), fn.block_of("part", [])
        rows = [row for square in parts for row in square]
        loaded = fn.block_of("loaded", [self.kind] * len(rows))
        fn.fork(str(fn.compare("sge", left, length)), whole, part)
        fn.label(whole)
        kind = f"<{length} x i8>"
        vectors = [fn.value(f"load {kind}, ptr {row}, align 1") for row in rows]
        fn.branch(loaded(*(self._in_groups(v) for v in vectors)))
        fn.label(part)
        load = self._masked(left) if self.target.avx512 else self._through_memory(left)
        fn.enter(loaded(*[self._in_groups(load(row)) for row in rows]))
        found = loaded.values
        return [
            [self._moved(v, self.kind) for v in
             transposed(fn, found[s * width : (s + 1) * width], self.kind)]
            for s in range(len(parts))
        ]  # fmt: skip

    def _masked(self, left: Word) -> Callable[[str], str]:
        """Loads of the first steps of rows, with zeros beyond."""
        fn, length = self.fn, self.width * self.steps
        mask = _first_bytes(fn, left, length)
        return lambda row: masked_load(fn, row, "i8", length, mask)

    def _through_memory(self, left: Word) -> Callable[[str], str]:
        fn, length = self.fn, self.width * self.steps
        space = fn.alloca(f"[{length} x i8], align 32")
        kind = f"<{length} x i8>"

        def load(row: str) -> str:
            fn.emit(f"store {kind} zeroinitializer, ptr {space}, align 1")
            with fn.loop(0, left) as i:
                x = fn.value(f"load i8, ptr {fn.offset(row, i, 'i8')}, align 1")
                fn.emit(f"store i8 {x}, ptr {fn.offset(space, i, 'i8')}, align 1")
            return fn.value(f"load {kind}, ptr {space}, align 1")

        return load

    def _in_groups(self, numbers: str) -> str:
        """Numbers that follow one another as groups."""
        fn, length = self.fn, self.width * self.steps
        kind = f"<{length} x i8>"
        if self.widened:
            numbers = fn.value(f"{self.extend} {kind} {numbers} to <{length} x i16>")
            kind = f"<{length} x i16>"
        return fn.value(f"bitcast {kind} {numbers} to {self.kind}")

    # -- rows of matrix registers ----------------------------------------------------------------

    def _rows_of_rows(self) -> None:
        """Rows with whole registers of k, one after another; what is beyond k stays as it is."""
        fn = self.fn
        row = fn.mul(self._whole_groups(), GROUP)
        with fn.loop(0, "%height") as j, fn.loop(0, "%k", _LINE) as i:
            source = fn.offset(fn.offset("%a", fn.mul(j, "%lda"), "i8"), i, "i8")
            target = fn.offset(fn.offset("%tile", fn.mul(j, row), "i8"), i, "i8")
            mask = _first_bytes(fn, fn.sub("%k", i), _LINE)
            masked_store(fn, masked_load(fn, source, "i8", _LINE, mask), target, "i8", _LINE, mask)
        fn.emit("ret void")

    def _columns_of_rows(self) -> None:
        """The same of an A that is stored as [k, m]: squares of groups are turned."""
        fn, width, steps = self.fn, self.width, self.steps
        groups, apart = self._groups_left("%k"), self._whole_groups()
        zero = fn.module.constant("zeros", f"<{width} x i8> zeroinitializer")
        with fn.loop(0, groups, width) as i, fn.loop(0, "%height", width) as j:
            height, left = fn.sub("%height", j), fn.sub(groups, i)
            across = first_lanes(fn, height, width)
            source = fn.offset(fn.offset("%a", fn.mul(fn.mul(i, steps), "%lda"), "i8"), j, "i8")
            found = []
            for group in range(width):
                numbers = []
                for step in range(group * steps, (group + 1) * steps):
                    place = fn.offset(source, fn.mul("%lda", step), "i8")
                    inside = fn.compare("sgt", fn.sub("%k", fn.mul(i, steps)), step)
                    place = fn.value(f"select i1 {inside}, ptr {place}, ptr {zero}")
                    numbers.append(self._numbers(place, across))
                found.append(self._taken_in_turn(numbers))
            along = first_lanes(fn, left, width)
            for row, line in enumerate(transposed(fn, found, self.kind)):
                mask = fn.value(
                    f"select i1 {fn.compare('sgt', height, row)}, <{width} x i1> {along}, "
                    f"<{width} x i1> zeroinitializer"
                )
                place = fn.offset("%tile", fn.add(fn.mul(fn.add(j, row), apart), i), "i32")
                masked_store(fn, line, place, "i32", width, mask)
        fn.emit("ret void")


def _first_bytes(fn: Function, count: Word, length: int) -> str:
    """The mask of the first `count` of 64 bytes or fewer."""
    some = fn.value(f"sub i64 {length}, {fn.min(count, length)}")
    bits = fn.value(f"lshr i64 {-1 if length == 64 else (1 << length) - 1}, {some}")
    if length < 64:
        bits = fn.value(f"trunc i64 {bits} to i{length}")
    return fn.value(f"bitcast i{length} {bits} to <{length} x i1>")
