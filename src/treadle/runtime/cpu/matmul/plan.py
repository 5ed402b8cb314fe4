"""How a product is divided: tiles, blocks of k, packing and tasks, from the dims alone.

The numbers are dims: where a dim is symbolic the program computes them at run time. Results do not
depend on them, except that sums are added up in blocks of k (whose extent depends on k only).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from treadle.core.records import record
from treadle.core.shapes import Dim, compound
from treadle.runtime.cpu.library_text import ELEMENT_BYTES
from treadle.runtime.cpu.matmul.dots import DOTS_ACROSS, most_dot_rows
from treadle.runtime.cpu.matmul.pairs import MOST_PAIRS
from treadle.runtime.cpu.matmul.tiles import MOST_HEIGHT, MOST_VECTORS, Tile, lanes, most_rows
from treadle.runtime.cpu.target import Target
from treadle.runtime.reach import Reach, whole

MOST_K = 1024  # rows of B in a block: a panel of them stays in the second-level cache
WIDE = 4  # vectors across a wide tile
WIDE_ROWS = 96  # rows of C from which tiles are wide: C is written in longer runs
WIDE_HEIGHT = 6  # ... where wide tiles are still as tall as this
BLOCK_BYTES = 2200 << 10  # copies of A's tiles that are in use together
CHUNK_BYTES = 256 << 10  # copies of B's panels that are made together
RUN_BYTES = 64 << 10  # of C that the epilogue takes at once
ALL_TILES = 1 << 40
LEAST_APART = 2 << 20  # bytes of a result whose blocks are kept apart: the caches hold others
LEAST_RUN = 1 << 10  # bytes of a row of such a block
MOST_AREA = 256 << 10  # bytes of such a block
DOTS_CHUNK_BYTES = 512 << 10  # rows of B that all tiles use, one after another
DOTS_K, DOTS_LEAST_K = 11, 64  # steps of k for each row of A from which sums across lanes pay
MOST_DOTS_K = 1280  # rows of A that a tile takes stay in the first-level cache
TASK_FLOPS = 1 << 18  # about two microseconds on one core: from there on two threads pay
ROW_FLOPS = TASK_FLOPS // 8  # take about as long as a cache line on its way to another core
TASK_BYTES = 256 << 10  # of operands, where reading them is what takes the time
TALL_ROWS = 448  # rows of C, twice its columns, from which threads share rows
PACK_ROWS = 220  # rows of C from which a copy of B's panel pays
PACK_COLLIDING = 60  # ... where its rows share sets of the caches
LARGE_BYTES = 2 << 20  # of a B that is not all in the second-level caches
PACK_COLUMNS = 256  # columns from which B's rows are far apart
PACK_A_PANELS = 8  # panels that use a copy of A's tile
SAME_SET = 4096  # rows so many bytes apart share a set of the first-level cache
WAYS = 8  # lines that a set of it holds
PERIOD = 64 << 10  # the same of the second-level cache: bytes apart
MOST_ALIKE = 32  # lines of a transposed A of one such set that are worth reading where they are

NO_PACK, COPY, TRANSPOSE, DOTS = 0, 1, 2, 3


@record(frozen=True)
class Product:
    """A batch of products C[m, n] = op(A) op(B), as the routine gets it.

    Attributes:
        transpose_a, transpose_b: 0 or 1; A is stored as [k, m], B as [n, k].
        stride_a, stride_b: elements from one matrix of the batch to the next.
        pairs: 1 where elements of A and B are pairs of bfloat16 (`pairs.py`): k counts pairs.
        lda, ldb: elements from one stored row to the next; None: the rows follow one another.
        inner: matrices after which the steps `outer_a` and `outer_b` lead on; None: there is one
            step for all of them.
    """

    element: str
    batch: Dim
    m: Dim
    n: Dim
    k: Dim
    transpose_a: int = 0
    transpose_b: int = 0
    stride_a: Dim = 0
    stride_b: Dim = 0
    pairs: int = 0
    lda: Dim | None = None
    ldb: Dim | None = None
    inner: Dim | None = None
    outer_a: Dim = 0
    outer_b: Dim = 0

    @property
    def rows(self) -> tuple[Dim, Dim]:
        """Elements from one stored row to the next, of A and of B."""
        a, b = self.m if self.transpose_a else self.k, self.k if self.transpose_b else self.n
        return a if self.lda is None else self.lda, b if self.ldb is None else self.ldb

    @property
    def reaches(self) -> tuple[Reach, Reach, Reach]:
        """The elements of A, B and C."""
        inner = self.batch if self.inner is None else self.inner
        outer = 1 if self.inner is None else self.batch // inner
        of_a = (self.k, self.m) if self.transpose_a else (self.m, self.k)
        of_b = (self.n, self.k) if self.transpose_b else (self.k, self.n)
        steps = ((self.outer_a, self.stride_a), (self.outer_b, self.stride_b))
        some = (self.batch, self.m, self.n)  # without results nothing is read
        found = []
        for (far, near), (count, length), row in zip(steps, (of_a, of_b), self.rows, strict=True):
            levels: list[tuple[Dim, Dim]] = [(outer, far), (inner, near), (count, row), (length, 1)]
            if self.pairs:
                levels = [*((extent, 2 * stride) for extent, stride in levels), (2, 1)]
            found.append(Reach((*levels, *((extent, 0) for extent in some))))
        return found[0], found[1], whole(some)


@record(frozen=True)
class Plan:
    """The numbers of the routine beside the dims, and the tiles that it calls.

    Attributes:
        vectors: SIMD vectors across a panel.
        tall: rows of the tallest tile.
        tiles: row tiles of C.
        panels: column panels of C.
        depth: rows of B in a block of k.
        pack: NO_PACK, COPY or TRANSPOSE for B's panels, or DOTS: B is not copied though transposed.
        pack_a: 1 where A's tiles are copied.
        by_rows: 1 where threads share the row tiles, 0 where they share the panels.
        parts: threads that the product is worth.
        chunk: panels that are packed together.
        block: tiles that are copied together; without copies, all of them.
        run: tiles that are computed for all panels of a chunk before the epilogue takes them.
        space: bytes of a thread's workspace: A's tiles, then B's panels.
        tile_space: bytes of the copy of one of A's tiles.
        needs: the tiles that may be called.
        apart: bytes at the end of a thread's workspace for a block of C; 0 where C is in memory.
    """

    vectors: int
    tall: int
    tiles: Dim
    panels: Dim
    depth: Dim
    pack: int
    pack_a: int
    by_rows: int
    parts: Dim
    chunk: int
    block: Dim
    run: int
    space: Dim
    tile_space: Dim
    needs: tuple[Tile, ...]
    apart: int = 0


def plan(product: Product, target: Target, tiles: int | None = None, apart: bool = False) -> Plan:
    """The division of a product on a machine.

    Args:
        tiles: the number of row tiles, where the caller shares them among threads.
        apart: whether nothing but the epilogue needs the result: if possible its blocks are kept
            in the workspace only.
    """
    width, size = lanes(target, product.element), ELEMENT_BYTES[product.element]
    m, n, k = product.m, product.n, product.k
    if tiles is None and _takes_dots(product, target):
        return _plan_dots(product, target)
    vectors = _vectors(product, target, tiles)
    tall = min(most_rows(target, vectors), _most_alike(product, vectors, size))
    panels = _ceil(n, vectors * width)
    depth = k if product.pairs else _ceil(k, at_least_one(_ceil(k, MOST_K)))
    pack_a = tiles is None and _packs_a(product, (panels, tall, depth), size)
    by_rows = tiles is not None or _by_rows(product, tall, panels, pack_a)
    rows = _tiles(m, tall, by_rows) if tiles is None else tiles
    pack = _pack(product, size, shared=tiles is None)
    panel_bytes = (depth + width) * vectors * width * size
    chunk = max(1, CHUNK_BYTES // panel_bytes) if isinstance(panel_bytes, int) else 1
    packed = panel_bytes * chunk if pack != NO_PACK else 0
    tile_space = _lines((depth * tall + 2 * width) * size) if pack_a else 0
    most = max(1, BLOCK_BYTES // ((MOST_PAIRS if product.pairs else MOST_K) * tall * size))
    block = compound("min", rows, most) if pack_a else ALL_TILES
    run = max(1, RUN_BYTES // (chunk * vectors * width * tall * size))
    along = "columns" if product.transpose_a or pack_a else "rows"
    columns = chunk * vectors * width
    area = _area(product, run * tall, columns * size) if apart and depth == k else 0
    along = f"pair{along}" if product.pairs else along
    return Plan(
        vectors, tall, rows, panels, depth, pack, int(pack_a),
        int(by_rows), _parts(product), chunk,
        block, run, packed + tile_space * block + area, tile_space,
        tuple(_needs(product, along, vectors, width, heights(m, tall, rows))), area,
    )  # fmt: skip


def packers_of(product: Product, plan: Plan) -> list[str]:
    """The copies (`packing.py`) that a product may call for."""
    found = {COPY: ["copy_panels"], TRANSPOSE: ["transpose_panel"]}.get(plan.pack, [])
    if plan.pack_a:
        found.append("pack_columns" if product.transpose_a else "pack_rows")
    of_pairs = {"copy_panels": "pair_panels", "pack_columns": "pair_columns"}
    return [of_pairs.get(f, f) for f in found] if product.pairs else found


def _parts(p: Product) -> Dim:
    """Threads that a product is worth, by its arithmetic, or by the operands that it reads where
    each of their elements is used hardly more than once: a matrix by a vector."""
    flops = 2 * p.batch * p.m * p.n * at_least_one(p.k)
    parts = flops // TASK_FLOPS + 1
    return compound("max", parts, _bytes_read(p) // TASK_BYTES + 1)


def _bytes_read(p: Product) -> Dim:
    """Bytes of the operands, those of a matrix that the whole batch shares only once."""
    size, repeats = ELEMENT_BYTES[p.element], at_least_one(p.batch)
    a, b = p.m * p.k * size, p.k * p.n * size
    shared = p.inner is None
    a = a if shared and p.stride_a == 0 else a * repeats
    b = b if shared and p.stride_b == 0 else b * repeats
    return a + b


def _area(product: Product, rows: int, run: int) -> int:
    """Bytes of a block of the result that is kept apart; 0 where that is not worth while: it would
    be small, or its rows too short, of `run` bytes, for the epilogue to walk along."""
    m, n, size = product.m, product.n, ELEMENT_BYTES[product.element]
    if not (isinstance(m, int) and isinstance(n, int) and isinstance(product.k, int)):
        return 0
    if product.batch != 1 or m * n * size < LEAST_APART or run < min(n * size, LEAST_RUN):
        return 0
    area = -(-rows * n * size // 64) * 64
    return area if area <= MOST_AREA else 0


def _takes_dots(p: Product, target: Target) -> bool:
    """Where B is stored transposed, and too few rows of A would share a copy of it.

    The sums across lanes cost as much as some steps of k, a copy as much as some rows of A.
    """
    if p.pairs or p.transpose_a or not p.transpose_b or not isinstance(p.m, int):
        return False
    if target.vector_bits < 256 or lanes(target, p.element) < DOTS_ACROSS:
        return False
    if not isinstance(p.k, int):
        return p.m == 1  # a copy of B would be read once
    return p.k >= max(DOTS_K * p.m, DOTS_LEAST_K)


def _plan_dots(p: Product, target: Target) -> Plan:
    """Tiles of some rows of A by four of B, panel after panel of B."""
    tall = most_dot_rows(target)
    panels = _ceil(p.n, DOTS_ACROSS)
    tiles = at_least_one(_ceil(p.m, tall))
    depth = _ceil(p.k, at_least_one(_ceil(p.k, MOST_DOTS_K)))
    needs = _needs(p, "dots", DOTS_ACROSS, 1, heights(p.m, tall))
    panel_bytes = MOST_DOTS_K * DOTS_ACROSS * ELEMENT_BYTES[p.element]
    chunk = DOTS_CHUNK_BYTES // panel_bytes
    return Plan(
        DOTS_ACROSS, tall, tiles, panels, depth, DOTS, 0, 0, _parts(p), chunk,
        ALL_TILES, 1, 0, 0, tuple(needs),
    )  # fmt: skip


def _vectors(product: Product, target: Target, tiles: int | None) -> int:
    """SIMD vectors across a panel: two with tall tiles, four with lower ones, and where there are
    hardly any rows as many as there are registers: B is read in long runs."""
    width, n = lanes(target, product.element), product.n
    wide = most_rows(target, WIDE)
    most = WIDE if wide >= WIDE_HEIGHT else 2
    if not isinstance(product.m, int):
        most = 2
    elif product.m <= most_rows(target, MOST_VECTORS) and tiles is None:
        most = MOST_VECTORS
    elif tiles is not None:
        most = most if -(-product.m // tiles) <= wide else 2
    elif WIDE_HEIGHT < product.m < WIDE_ROWS:
        most = 2
    return min(most, max(1, -(-n // width))) if isinstance(n, int) else 2


def _tiles(m: Dim, tall: int, by_rows: bool) -> Dim:
    """Row tiles: an even number where threads share many."""
    tiles = at_least_one(_ceil(m, tall))
    return _evened(tiles) if isinstance(tiles, int) and by_rows else tiles


def _evened(tiles: int) -> int:
    return tiles + tiles % 2 if tiles > 2 else tiles


def at_least_one(d: Dim) -> Dim:
    return compound("max", d, 1)


def _ceil(a: Dim, b: Dim) -> Dim:
    return (a + (b - 1)) // b


def _lines(size: Dim) -> Dim:
    return (size + 63) // 64 * 64


def _pack(product: Product, size: int, shared: bool) -> int:
    """How B's panels are copied; `shared`: the routine shares rows among threads, not its caller,
    whose threads have no workspace."""
    if product.transpose_b:
        return TRANSPOSE
    if product.pairs:
        return COPY
    row, k = product.rows[1], product.k
    collides = False
    if shared and isinstance(row, int) and isinstance(k, int):
        collides = row * size % SAME_SET == 0 and row * k * size > LARGE_BYTES
    wide = not isinstance(product.n, int) or product.n >= PACK_COLUMNS
    least = PACK_COLLIDING if collides else PACK_ROWS
    tall = isinstance(product.m, int) and product.m >= least
    return COPY if wide and tall else NO_PACK


def _most_alike(product: Product, vectors: int, size: int) -> int:
    """Rows of A whose lines stay in the first-level cache together, where panels are too few for
    a copy of A to pay."""
    row = product.rows[0]
    if vectors > 1 or product.transpose_a or not isinstance(row, int):
        return MOST_HEIGHT
    return WAYS * (SAME_SET // gcd(row * size, SAME_SET))


def _packs_a(product: Product, blocks: tuple[Dim, int, Dim], size: int) -> bool:
    """Where many panels use A's tiles, and what a tile reads at once collides in the caches: the
    rows of a tall one, or all steps of k where A is stored transposed.

    Args:
        blocks: panels, rows of the tallest tile, steps of a block of k.
    """
    panels, tall, depth = blocks
    if product.pairs and product.transpose_a:
        return True
    if not isinstance(panels, int) or panels < PACK_A_PANELS:
        return False
    row = product.rows[0]
    if not isinstance(row, int):
        return bool(product.transpose_a)
    if not product.transpose_a:
        return tall > WAYS and row * size % SAME_SET == 0
    sets = PERIOD // gcd(row * size, PERIOD)
    return not isinstance(depth, int) or depth > sets * MOST_ALIKE


def _by_rows(product: Product, tall: int, panels: Dim, pack_a: bool) -> bool:
    """Whether threads share row tiles: the halves would otherwise be less even, or C is tall.

    Threads that share the panels write to the same cache line in every row of C, unless the line
    ends where the panel does. They wait for each other's lines where a row is soon computed.
    """
    tiles = _ceil(product.m, tall)
    if isinstance(tiles, int) and isinstance(panels, int):
        m, n, k = product.m, product.n, product.k
        if isinstance(m, int) and isinstance(n, int) and m >= max(2 * n, TALL_ROWS):
            return True
        rows, columns = _imbalance(tiles), _imbalance(panels)
        if isinstance(n, int) and isinstance(k, int) and 2 * n * k <= ROW_FLOPS:
            return tiles > 1 and _imbalance(_evened(tiles)) <= columns
        return rows < columns or (pack_a and rows == columns)
    return isinstance(product.n, int) and product.n < 128


def _imbalance(count: int) -> float:
    """The larger half's share of the work."""
    return (count + 1) // 2 / count if count else 1.0


def _needs(
    product: Product, along: str, vectors: int, width: int, high: list[int]
) -> Iterator[Tile]:
    """Tiles have ``m // tiles`` rows or one more; the last panel may be narrower."""
    for count in vector_counts(product.n, vectors, width):
        for height in high:
            assert height <= MOST_HEIGHT
            yield Tile(product.element, along, height, count)


def heights(m: Dim, tall: int, tiles: Dim | None = None) -> list[int]:
    """Heights of the tiles into which m rows are divided evenly; all of them where m is open."""
    if not isinstance(m, int):
        return list(range(1, tall + 1))
    tiles = tiles if isinstance(tiles, int) else max(1, -(-m // tall))
    return [h for h in sorted({m // tiles, -(-m // tiles)}) if h]


def vector_counts(n: Dim, vectors: int, width: int) -> list[int]:
    """Vectors across the panels of n columns: the last one may be narrower."""
    if not isinstance(n, int):
        return list(range(1, vectors + 1))
    counts = {vectors} if n > (vectors - 1) * width else set()
    rest = n % (vectors * width)
    if rest:
        counts.add(-(-rest // width))
    return sorted(counts)
