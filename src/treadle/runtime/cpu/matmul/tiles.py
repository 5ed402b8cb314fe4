"""The micro-kernel: one register tile of C, summed over k.

A tile has `height` rows and `vectors` SIMD vectors of columns, all of them accumulators in
registers: each step of k loads the vectors of a row of B and multiplies them by one broadcast
element of A per row (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication).
Strides are run-time values, so one tile serves all shapes, packed operands and transposed A.
"""

from __future__ import annotations

from treadle.core.records import record
from treadle.runtime.cpu.library_text import (
    ELEMENT_BYTES,
    WHOLE_BYTES,
    fills_lines,
    first_lanes,
    masked_load,
    masked_store,
    suffix,
)
from treadle.runtime.cpu.llvm_text import Function, Word
from treadle.runtime.cpu.target import Target

MOST_HEIGHT, MOST_VECTORS = 32, 8  # extents of the table of tiles
ALONG = ("rows", "columns", "dots", "pairrows", "paircolumns", "fillrows", "fillcolumns")
# Forms of tiles that store past the caches, and that ask for rows of B ahead.
USUAL = ("rows", "columns", "fillrows", "fillcolumns")
PREFETCH = "void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)"
FILL = "fill"  # begins the forms of tiles that copy B's panel
PAST = -1  # for `add`: C is stored past the caches
_GROUP = 5  # rows that one address register reaches: 0, 1, 2, 3, 4 times the stride
# Products of vectors beside which counting steps and moving pointers cost little, and steps of k
# that are written out for them at most: the code of a tile grows with them on any machine.
PRODUCTS, MOST_STEPS = 48, 4

SIGNATURE = (
    "void @{}(ptr %a, i64 %lda, ptr %b, i64 %ldb, ptr %c, i64 %ldc, i64 %k, i64 %n, i64 %add, "
    "i64 %segments, ptr %offsets, i64 %ahead)"
)


@record(frozen=True)
class Tile:
    """``C[height, n] = A B`` (or ``+=`` where `add` is above 0), n <= vectors * lanes.

    The sum has segments of k steps each: segment s reads A and B from ``offsets[2 * s]`` and
    ``offsets[2 * s + 1]`` bytes behind their starts. A product has one; the taps of a
    convolution are others. The lines of B that are `ahead` bytes behind those in use are asked for;
    where `ahead` is 0, none are. Where `add` is `PAST` and the tile has all its columns, C is
    stored past the caches: its rows have to begin at lines then (`stores_past`).

    Attributes:
        along: "rows" where the elements of a row of A follow one another (A is stored as [m, k]),
            "columns" where those of a column do ([k, m]); "dots" where B is stored transposed
            and `vectors` counts columns of C (`dots.py`); "pairrows" and "paircolumns" where an
            element is two bfloat16, of steps of k that follow one another (`pairs.py`);
            "fillrows" and "fillcolumns" where B's panel is copied on the way (`filling.py`).
    """

    element: str
    along: str
    height: int
    vectors: int

    @property
    def symbol(self) -> str:
        return f"tile_{self.element}_{self.along}_{self.height}x{self.vectors}"

    @staticmethod
    def named(symbol: str) -> Tile:
        """The tile of a `symbol`."""
        _, element, along, extents = symbol.split("_")
        height, vectors = extents.split("x")
        tile = Tile(element, along, int(height), int(vectors))
        if not (0 < tile.height <= MOST_HEIGHT and 0 < tile.vectors <= MOST_VECTORS):
            raise ValueError(f"there is no tile {symbol}")
        return tile

    @property
    def place(self) -> int:
        """The word of the table of tiles (one table per element type) that points to it."""
        return (ALONG.index(self.along) * MOST_VECTORS + self.vectors - 1) * (
            MOST_HEIGHT + 1
        ) + self.height


TILE_WORDS = len(ALONG) * MOST_VECTORS * (MOST_HEIGHT + 1)
# Copies of B's panels and A's tiles (`packing.py`), whose addresses follow the tiles'.
PACKERS = (
    "copy_panels", "transpose_panel", "pack_columns", "pack_rows", "pair_panels", "pair_columns",
)  # fmt: skip
TABLE_WORDS = TILE_WORDS + len(PACKERS)


def lanes(target: Target, element: str) -> int:
    """Elements of a vector register."""
    return target.vector_bits // (8 * ELEMENT_BYTES[element])


def most_rows(target: Target, vectors: int) -> int:
    """The tallest tile of so many vectors whose accumulators stay in registers. A single row uses
    each vector of B once, and needs no register for it."""
    registers = target.registers
    free = registers - vectors - 1 - (registers == 32)  # B's vectors and A's broadcasts
    return max(min(free // vectors, 24), int(vectors + 2 <= registers))


def rows_ahead(target: Target) -> int:
    """Rows of B that tiles ask for ahead: they take as long to come to them as these to arrive."""
    tuning = target.tuning
    step = max(1, 2 * most_rows(target, 2) // tuning.fma)  # cycles of the tallest tile's
    return -(-tuning.far // step)


def stores_past(target: Target, element: str) -> bool:
    """Whether tiles of such elements may store past the caches."""
    return is_float(element) and fills_lines(target)


def fills_panels(target: Target, element: str) -> bool:
    """Whether tiles of such elements may copy B's panel: of vectors that masks need not divide."""
    return element in ELEMENT_BYTES and element not in WHOLE_BYTES and target.vector_bits >= 256


class Body:
    """The code of a tile for one width of vectors."""

    def __init__(self, fn: Function, tile: Tile, width: int, vectors: int, masked: bool) -> None:
        self.fn, self.tile, self.width, self.vectors = fn, tile, width, vectors
        self.masked = masked and width > 1
        self.element, self.size = tile.element, ELEMENT_BYTES[tile.element]
        self.kind = f"<{width} x {self.element}>" if width > 1 else self.element
        self.sum_kind, self.c_element, self.c_size = self.kind, self.element, self.size
        self.zero = "zeroinitializer" if width > 1 else "0.0" if is_float(self.element) else "0"
        self.line = fn.module.target.tuning.line
        self.passes = tile.along in USUAL and stores_past(fn.module.target, tile.element)

    def emit(self, b: str, c: str, columns: str | int) -> None:
        masks = self._masks(columns)
        self._fetch(c)
        self._finish(c, self._sum_over_k(b, masks), masks)

    def _fetch(self, c: str) -> None:
        """Ask for the lines of C, unless these are not read: they have the whole sum to arrive."""
        fn = self.fn
        fn.module.declare(PREFETCH)
        with fn.when(fn.compare("ne", "%add", PAST) if self.passes else True):
            for (_, j), place in self._places(c).items():
                if j * self.width * self.c_size % self.line == 0:
                    fn.emit(f"call void @llvm.prefetch.p0(ptr {place}, i32 1, i32 3, i32 1)")

    def _finish(self, c: str, sums: dict[tuple[int, int], str], masks: list[str]) -> None:
        """Store the sums, or add them to the elements of C."""
        fn = self.fn
        if not self.passes:
            self._store_sums(c, sums, masks)
            return
        past, near, stored = (fn.block_of(name, []) for name in ("past", "near", "stored"))
        whole = fn.compare("eq", "%n", self.vectors * self.width)
        wanted = fn.compare("eq", "%add", PAST)
        fn.fork(fn.value(f"and i1 {whole}, {wanted}"), past, near, likely=False)
        fn.label(past)
        for key, place in self._places(c).items():
            how = f"align {self.line}, !nontemporal !0"
            fn.emit(f"store {self.kind} {sums[key]}, ptr {place}, {how}")
        fn.branch(stored)
        fn.label(near)
        self._store_sums(c, sums, masks)
        fn.enter(stored)

    def _store_sums(self, c: str, sums: dict[tuple[int, int], str], masks: list[str]) -> None:
        """The same by stores through the caches."""
        fn = self.fn
        keys = list(sums)

        def added() -> list[str]:
            add = "fadd" if is_float(self.element) else "add"
            return [
                fn.value(f"{add} {self.kind} {sums[key]}, {self._load(place, masks[key[1]])}")
                for key, place in self._places(c).items()
            ]

        kinds, found = [self.kind] * len(keys), [sums[key] for key in keys]
        joined = fn.choose(fn.compare("sgt", "%add", 0), kinds, found, added)
        for (_, j), place, total in zip(keys, self._places(c).values(), joined, strict=True):
            self._store(total, place, masks[j])

    def _places(self, c: str) -> dict[tuple[int, int], str]:
        """The addresses of the tile's vectors in C."""
        fn = self.fn
        found = {}
        for i in range(self.tile.height):
            row = fn.value(f"getelementptr i8, ptr {c}, i64 {fn.mul('%ldc', i)}")
            for j in range(self.vectors):
                found[i, j] = fn.offset(row, j * self.width, self.c_element)
        return found

    # -- the loop over k ---------------------------------------------------------------------

    def _keys(self) -> list[tuple[int, int]]:
        """The accumulators: rows, and vectors across."""
        return [(i, j) for i in range(self.tile.height) for j in range(self.vectors)]

    def _sum_over_k(self, b: str, masks: list[str]) -> dict[tuple[int, int], str]:
        """The accumulators after the loops over segments and k, both of which may be empty."""
        fn = self.fn
        keys = self._keys()
        self._strides()
        several = self._steps(len(keys))
        many = fn.mul(fn.divide("%k", several), several)
        segment = fn.block_of("segment", ["i64", *[self.sum_kind] * len(keys)])
        enter, done = fn.block_of("enter", []), fn.block_of("summed", [])
        fn.enter(segment(0, *[self.zero] * len(keys)))
        number, *sums = segment.values
        fn.fork(fn.value(f"icmp ult i64 {number}, %segments"), enter, done)
        fn.label(enter)
        before: list[Word] = [0, *self._segment_starts(b, number), *sums]
        before = self._added_up(several, many, before, masks)
        if several > 1:
            before = self._added_up(1, "%k", before, masks)
        after = before[-len(keys) :]
        fn.branch(segment(fn.value(f"add nuw nsw i64 {number}, 1"), *after))
        fn.label(done)
        return dict(zip(keys, sums, strict=True))

    def _steps(self, products: int) -> int:
        """Steps of k that are written out one after another, where each has so many products of
        vectors: the fewer other instructions there are beside them, the less a tile is held up by
        another thread of its core, with which it shares the decoders."""
        if self.masked and not self.fn.module.target.avx512 or self.width == 1:
            return 1  # the last columns of C only
        return min(MOST_STEPS, -(-PRODUCTS // products))

    def _added_up(
        self, steps: int, end: Word, before: list[Word], masks: list[str]
    ) -> list[Word]:
        """A loop over k until `end`, so many steps at once.

        Args:
            before: the step of k, B's row, where the elements of A are (a pointer for each group
                of rows), and the accumulators.

        Returns:
            the same after the loop.
        """
        fn, pointers = self.fn, 2 + len(self.groups)
        kinds = ["i64", *["ptr"] * pointers, *[self.sum_kind] * (len(before) - 1 - pointers)]
        head = fn.block_of("sum", kinds)
        step, leave = fn.block_of("step", []), fn.block_of("leave", [])
        fn.enter(head(*before))
        k, row, *rest = head.values
        columns, sums = rest[: pointers - 1], rest[pointers - 1 :]
        fn.fork(fn.value(f"icmp ult i64 {k}, {end}"), step, leave)
        fn.label(step)
        self._fetch_ahead(row, steps)
        for number in range(steps):
            at = fn.offset(row, fn.mul("%ldb", number), "i8")
            vectors = self._row_of_b(at, masks, fn.add(k, number))
            sums = self._multiplied(vectors, self._moved(columns, number), sums)
        following = fn.value(f"add nuw nsw i64 {k}, {steps}")
        next_b = fn.offset(row, fn.mul("%ldb", steps), "i8")
        fn.branch(head(following, next_b, *self._moved(columns, steps), *sums))
        fn.label(leave)
        return [*head.values]

    def _moved(self, columns: list[str], steps: int) -> list[str]:
        """Where the elements of A are some steps of k later."""
        along: Word = "%lda" if self.tile.along.endswith("columns") else self.size
        return [self.fn.offset(a, self.fn.mul(along, steps), "i8") for a in columns]

    def _strides(self) -> None:
        """Multiples of the stride of A's rows that addresses cannot hold."""
        rows = self.tile.along.endswith("rows")
        self.triple = self.fn.mul("%lda", 3) if rows else 0
        groups = range(_GROUP, self.tile.height, _GROUP) if rows else ()
        self.groups = [self.fn.mul("%lda", r) for r in groups]

    def _segment_starts(self, b: str, number: str) -> list[str]:
        """B's first row, and pointers from which all rows of A are reached by scaled strides."""
        fn = self.fn
        place = fn.mul(number, 2)
        places = [fn.load_word("%offsets", fn.add(place, i)) for i in (0, 1)]
        a = fn.offset("%a", places[0], "i8")
        return [
            fn.offset(b, places[1], "i8"), a, *(fn.offset(a, g, "i8") for g in self.groups)
        ]

    def _row_of_b(self, row: str, masks: list[str], step: Word) -> list[str]:
        """The vectors of B's row of a step of k."""
        parts = [self.fn.offset(row, j * self.width, self.element) for j in range(self.vectors)]
        return [self._load_of_b(p, mask) for p, mask in zip(parts, masks, strict=True)]

    def _multiplied(
        self, vectors: list[str], columns: list[str], sums: list[str]
    ) -> list[str]:
        """The accumulators after a step of k.

        Args:
            vectors: B's row.
            columns: where the elements of A are, a pointer for each group of rows.
        """
        fn, after = self.fn, []
        for i in range(len(sums) // self.vectors):
            x = self._row_of_a(i, columns)
            for j, vector in enumerate(vectors):
                total = sums[i * self.vectors + j]
                after.append(fn.value(self._multiply_add(x, vector, total)))
        return after

    def _row_of_a(self, row: int, columns: list[str]) -> str:
        """The factor of a row's accumulators."""
        return self._broadcast(self._a_pointer(row, columns))

    def _load_of_b(self, pointer: str, mask: str) -> str:
        return self._load(pointer, mask)

    def _multiply_add(self, x: str, y: str, total: str) -> str:
        return multiply_add(self.fn, self.element, self.width, x, y, total)

    def _fetch_ahead(self, row: str, steps: int) -> None:
        """Ask for the cache lines of later rows of B, `ahead` bytes from here. Its rows may be
        pages apart, which no hardware prefetcher follows. The last line of a row is there where B
        is not aligned.

        B may be a matrix in memory. Wide tiles are low: many use a panel of B, which then is in
        the cache, and have little time in which to hide the requests, but the one that copies it.
        """
        along = self.tile.along
        if along not in USUAL or (self.vectors > 2 and not along.startswith(FILL)):
            return
        fn, size = self.fn, self.vectors * self.width * self.size
        fn.module.declare(PREFETCH)
        with fn.when(fn.compare("ne", "%ahead", 0)):
            later = fn.offset(row, "%ahead", "i8")
            for step in range(steps):
                ahead = fn.offset(later, fn.mul("%ldb", step), "i8")
                for at in (*range(0, size, self.line), size - 1):
                    place = fn.offset(ahead, at, "i8")
                    fn.emit(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 3, i32 1)")

    def _a_pointer(self, row: int, columns: list[str]) -> str:
        """The address of a row's element. Within a group the offsets are multiples of the stride by
        1, 2, 3 and 4, which addresses of instructions can hold."""
        fn = self.fn
        if self.tile.along.endswith("columns"):
            return fn.offset(columns[0], row, self.element)
        group, place = divmod(row, _GROUP)
        if place == 0:
            return columns[group]
        by = {1: "%lda", 3: str(self.triple)}.get(place)
        if by is None:
            by = fn.value(f"shl i64 %lda, {place // 2}")
        return fn.value(f"getelementptr i8, ptr {columns[group]}, i64 {by}")

    # -- vectors -----------------------------------------------------------------------------

    def _broadcast(self, pointer: str) -> str:
        fn, kind = self.fn, self.kind
        x = fn.value(f"load {self.element}, ptr {pointer}, align {self.size}")
        if self.width == 1:
            return x
        x = fn.value(f"insertelement {kind} poison, {self.element} {x}, i32 0")
        zeros = f"<{self.width} x i32> zeroinitializer"
        return fn.value(f"shufflevector {kind} {x}, {kind} poison, {zeros}")

    def _masks(self, columns: str | int) -> list[str]:
        """For each vector the lanes that are columns of C."""
        if not self.masked:
            return [""] * self.vectors
        fn, width = self.fn, self.width
        lefts = [fn.sub(columns, j * width) for j in range(self.vectors)]
        return [first_lanes(fn, left, width) for left in lefts]

    def _load(self, pointer: str, mask: str) -> str:
        if mask:
            return masked_load(self.fn, pointer, self.element, self.width, mask)
        return self.fn.value(f"load {self.kind}, ptr {pointer}, align {self.size}")

    def _store(self, value: str, pointer: str, mask: str) -> None:
        if mask:
            masked_store(self.fn, value, pointer, self.element, self.width, mask)
        else:
            self.fn.emit(f"store {self.kind} {value}, ptr {pointer}, align {self.size}")


def multiply_add(fn: Function, element: str, width: int, x: str, y: str, total: str) -> str:
    """The instruction for ``x * y + total`` of vectors, or of elements; integers wrap around."""
    kind = f"<{width} x {element}>" if width > 1 else element
    if not is_float(element):
        return f"add {kind} {fn.value(f'mul {kind} {x}, {y}')}, {total}"
    vector = f"v{width}" if width > 1 else ""
    fma = f"{kind} @llvm.fma.{vector}{suffix(element)}"
    fn.module.declare(f"{fma}({kind}, {kind}, {kind})")
    return f"call {fma}({kind} {x}, {kind} {y}, {kind} {total})"


def is_float(element: str) -> bool:
    return element in ("float", "double")
