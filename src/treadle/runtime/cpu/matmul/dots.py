"""The micro-kernel for a transposed B: dot products of rows of A and rows of B.

Both are stored with the steps of k one after another, so a vector holds as many steps, every
accumulator as many partial sums, and these are added up at the end. Nothing is copied: that pays
where few rows of A would share a transposed copy of B.
"""

from __future__ import annotations

from treadle.runtime.cpu.lanes import shuffled
from treadle.runtime.cpu.library_text import ELEMENT_BYTES, first_lanes, masked_load
from treadle.runtime.cpu.llvm_text import Function, Word
from treadle.runtime.cpu.matmul.tiles import Tile, is_float, multiply_add
from treadle.runtime.cpu.target import Target

DOTS_ACROSS = 4  # rows of B that a tile takes: a quarter of a vector holds their sums


def most_dot_rows(target: Target, beside: int = 0) -> int:
    """The tallest tile whose accumulators and rows of B stay in registers, with so many beside."""
    return (target.registers - DOTS_ACROSS - 1 - beside) // DOTS_ACROSS


class Dots:
    """``C[height, vectors] = (or +=) A B^T``; here `vectors` counts rows of B."""

    def __init__(self, fn: Function, tile: Tile, width: int) -> None:
        self.fn, self.tile = fn, tile
        self.width, self.element, self.size = width, tile.element, ELEMENT_BYTES[tile.element]
        self.kind = f"<{width} x {tile.element}>"
        self.steps, self.operand = width, tile.element  # of k in a vector, and of which type
        self.add = "fadd" if is_float(tile.element) else "add"
        self.keys = [(i, j) for i in range(tile.height) for j in range(tile.vectors)]

    def emit(self) -> None:
        kinds, zeros = [self.kind] * len(self.keys), ["zeroinitializer"] * len(self.keys)
        every = self.fn.carried(0, "%segments", 1, kinds, zeros, self._segment)
        total = self._totals(dict(zip(self.keys, every, strict=True)))
        for i in range(self.tile.height):
            self._finish(i, [total[i, j] for j in range(self.tile.vectors)])

    def _totals(self, sums: dict[tuple[int, int], str]) -> dict[tuple[int, int], str]:
        """The sums of the tile, from those of the accumulators."""
        return sums

    def _segment(self, number: Word, before: list[str]) -> list[str]:
        """The accumulators after the steps of a segment."""
        fn = self.fn
        a, b = (
            fn.offset(p, fn.load_word("%offsets", fn.add(fn.mul(number, 2), i)), "i8")
            for i, p in enumerate(("%a", "%b"))
        )
        starts = self._rows(a, "%lda", self.tile.height), self._rows(b, "%ldb", self.tile.vectors)
        whole = fn.mul(fn.divide("%k", self.steps), self.steps)
        sums = self._sum(starts, whole, before)
        rest = fn.sub("%k", whole)

        def with_rest() -> list[str]:
            mask = first_lanes(fn, rest, self.steps)
            last = self._step(starts, whole, sums, mask)
            return [last[key] for key in self.keys]

        kinds, found = [self.kind] * len(self.keys), [sums[key] for key in self.keys]
        return fn.choose(fn.compare("sgt", rest, 0), kinds, found, with_rest)

    def _rows(self, pointer: str, stride: str, count: int) -> list[str]:
        fn = self.fn
        return [fn.offset(pointer, fn.mul(stride, i), "i8") for i in range(count)]

    def _sum(
        self, starts: tuple[list[str], list[str]], whole: Word, before: list[str]
    ) -> dict[tuple[int, int], str]:
        """The accumulators after all whole vectors of k of a segment."""

        def step(place: Word, sums: list[str]) -> list[str]:
            new = self._step(starts, place, dict(zip(self.keys, sums, strict=True)))
            return [new[key] for key in self.keys]

        kinds = [self.kind] * len(self.keys)
        sums = self.fn.carried(0, whole, self.steps, kinds, before, step)
        return dict(zip(self.keys, sums, strict=True))

    def _step(
        self, starts: tuple[list[str], list[str]], place: object,
        sums: dict[tuple[int, int], str], mask: str = "",
    ) -> dict[tuple[int, int], str]:  # fmt: skip
        left, right = (
            [self._load(self.fn.offset(row, str(place), self.operand), mask, of) for row in rows]
            for of, rows in enumerate(starts)
        )
        return self._added(left, right, sums)

    def _added(
        self, left: list[str], right: list[str], sums: dict[tuple[int, int], str]
    ) -> dict[tuple[int, int], str]:
        """The accumulators after a step, of vectors of A's rows and of B's."""
        return {(i, j): self._fma(left[i], right[j], sums[i, j]) for i, j in self.keys}

    def _fma(self, x: str, y: str, total: str) -> str:
        return self.fn.value(multiply_add(self.fn, self.element, self.width, x, y, total))

    def _load(self, pointer: str, mask: str, of: int) -> str:
        """A vector of operand 0 or 1, with zeros beyond the mask."""
        if mask:
            return masked_load(self.fn, pointer, self.element, self.width, mask)
        return self.fn.value(f"load {self.kind}, ptr {pointer}, align {self.size}")

    def _finish(self, row: int, sums: list[str]) -> None:
        """Store a row of the tile, or add it to the row of C."""
        fn, element = self.fn, self.element
        total = self._added_up(sums)
        c = fn.offset("%c", fn.mul("%ldc", row), "i8")
        adds = fn.compare("ne", "%add", 0)
        for j in range(len(sums)):
            place = fn.offset(c, j, element)
            x = fn.value(f"extractelement <{DOTS_ACROSS} x {element}> {total}, i64 {j}")

            def added(place: str = place, x: str = x) -> list[str]:
                old = fn.value(f"load {element}, ptr {place}, align {self.size}")
                return [fn.value(f"{self.add} {element} {old}, {x}")]

            (x,) = fn.choose(adds, [element], [x], added)
            fn.emit(f"store {element} {x}, ptr {place}, align {self.size}")

    def _added_up(self, sums: list[str]) -> str:
        """The sums of the lanes of up to four vectors, as one vector of four."""
        a, b, c, d = [*sums, *["zeroinitializer"] * (DOTS_ACROSS - len(sums))]
        pairs = [self._paired(x, y, 1) for x, y in ((a, b), (c, d))]
        found, width = self._paired(pairs[0], pairs[1], 2), self.width
        while width > DOTS_ACROSS:
            width //= 2
            kind = f"<{2 * width} x {self.element}>"
            low, high = (
                shuffled(self.fn, kind, found, "poison", range(s, s + width)) for s in (0, width)
            )
            found = self.fn.value(f"{self.add} <{width} x {self.element}> {low}, {high}")
        return found

    def _paired(self, x: str, y: str, step: int) -> str:
        """Lanes of x and y in turn, `step` at a time, each the sum of two neighbours."""
        low: list[int] = []
        high: list[int] = []
        for block in range(0, self.width, 2 * step):
            for source in (0, self.width):
                low += range(source + block, source + block + step)
                high += range(source + block + step, source + block + 2 * step)
        parts = [shuffled(self.fn, self.kind, x, y, order) for order in (low, high)]
        return self.fn.value(f"{self.add} {self.kind} {parts[0]}, {parts[1]}")
