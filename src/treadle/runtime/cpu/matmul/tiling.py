"""How a product is divided: tiles, blocks of k, packing and tasks, from the dims alone.

The numbers are dims: where a dim is symbolic the program computes them at run time. Results do not
depend on them, except that sums are added up in blocks of k (whose extent depends on k only).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from math import gcd

from treadle.core.records import record
from treadle.core.shapes import Dim, compound
from treadle.runtime.cpu.library_text import ELEMENT_BYTES
from treadle.runtime.cpu.matmul.byte_forms import (
    WHOLE,
    groups_of,
    is_whole_bytes,
    multiplies_in_matrices,
    operand_bytes,
    steps_of_group,
)
from treadle.runtime.cpu.matmul.byte_tiles import most_byte_dots, most_byte_rows
from treadle.runtime.cpu.matmul.dots import DOTS_ACROSS, most_dot_rows
from treadle.runtime.cpu.matmul.pairs import (
    MATRIX_ROWS,
    MATRIX_SUMS,
    MOST_PAIRS,
    has_matrix_registers,
    most_matrix_rows,
)
from treadle.runtime.cpu.matmul.tiles import (
    MOST_HEIGHT,
    MOST_VECTORS,
    Tile,
    fills_panels,
    lanes,
    most_rows,
    rows_ahead,
    stores_past,
)
from treadle.runtime.cpu.target import Target
from treadle.runtime.reach import Reach, whole
from treadle.runtime.tuning import NEVER, Cache, Tuning

# No machine changes these: `MOST_K` fixes the order in which sums are added up, the others count
# tiles, or compare instructions with instructions.
MOST_K = 1024  # steps of k in a block at most: beyond, C is read again seldom enough
WIDE = 4  # vectors across a wide tile
WIDE_HEIGHT = 6  # ... where wide tiles are still as tall as this: they load less than they compute
ALL_TILES = 1 << 40
DOTS_K = 11  # steps of k for each row of A from which sums across lanes pay
TALL_TILES = 32  # row tiles from which threads share these, where C is twice as tall as wide
FAR_COLUMNS = 256  # rows of so many elements and more are fetched equally badly
PACK_A_PANELS = 8  # panels that use a copy of A's tile
PACK_A_COLUMNS = 256  # of C, from which a copy of A costs less than steps that fill no register
PACK_A_LONG = 32  # panels beside which a copy of A's tile costs next to nothing
PAGE = 4096  # bytes of the pages that programs get for small arrays
STEP_LINES = 6  # lines that move in the time of a step of k: slower steps hide that of A's line
_FEW_ROWS = (MOST_VECTORS, WIDE, 3)  # vectors across tiles of as many rows as these leave room for

NO_PACK, COPY, TRANSPOSE, DOTS, PANELS, FILL = 0, 1, 2, 3, 4, 5


@record(frozen=True)
class Blocks:
    """Sizes of the parts of operands that stay in a cache: in bytes, but for steps of k.

    Attributes:
        tiles: the copies of A's tiles that are in use together, in the last-level cache: a little
            less than half of the share of each of eight cores.
        panels: the copies of B's panels that are made together.
        matrix_panels: the same for matrix registers, which read A as fast as B: the more panels a
            row of A's tiles meets while it is near, the fewer times it comes from afar.
        run: the part of C that the epilogue takes at once.
        least_apart: the smallest result whose blocks are kept apart; the caches hold smaller ones.
        least_run: a row of a block that is kept apart: as many lines as are fetched ahead.
        most_area: a block that is kept apart.
        large: the smallest B that is not all in the second-level caches.
        dots: rows of B that all tiles of dot products use, one after another.
        past: the smallest result that is stored past the caches: whoever reads it has operands of
            its own, and these leave the last cache little room.
        dots_least_k: steps of k from which dot products pay: four vectors of 32-bit numbers.
    """

    tiles: int
    panels: int
    matrix_panels: int
    run: int
    least_apart: int
    least_run: int
    most_area: int
    large: int
    dots: int
    dots_least_k: int
    past: int

    @staticmethod
    @functools.cache
    def of(target: Target) -> Blocks:
        """The blocks of a machine."""
        tuning, near = target.tuning, target.tuning.near
        return Blocks(
            tiles=tuning.l3.size // 15,
            panels=near // 4,
            matrix_panels=near // 2,
            run=near // 16,
            least_apart=2 * near,
            least_run=16 * tuning.line,
            most_area=near // 4,
            large=2 * near,
            dots=near // 2,
            dots_least_k=4 * tuning.lanes,
            past=tuning.l3.size // 4,
        )


@record(frozen=True)
class Product:
    """A batch of products C[m, n] = op(A) op(B), as the routine gets it.

    Attributes:
        element: the type of elements, of C, too; or one of `WHOLE_BYTES`, for operands of 8 bits
            and sums of 32.
        transpose_a, transpose_b: 0 or 1; A is stored as [k, m], B as [n, k].
        stride_a, stride_b: elements from one matrix of the batch to the next.
        pairs: 1 where elements of A and B are pairs of bfloat16 (`pairs.py`): k counts pairs.
        lda, ldb: elements from one stored row to the next; None: the rows follow one another.
        inner: matrices after which the steps `outer_a` and `outer_b` lead on; None: there is one
            step for all of them.
        panel_width: columns of B's panels, where B is given in panels (`PANELS` of
            `treadle.ops.linalg.panels`); else 0.
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
    panel_width: int = 0

    @property
    def rows(self) -> tuple[Dim, Dim]:
        """Elements from one stored row to the next, of A and of B."""
        a = self.m if self.transpose_a else self.k
        b = self.panel_width or (self.k if self.transpose_b else self.n)
        return a if self.lda is None else self.lda, b if self.ldb is None else self.ldb

    @property
    def reaches(self) -> tuple[Reach, Reach, Reach]:
        """The elements of A, B and C."""
        inner = self.batch if self.inner is None else self.inner
        outer = 1 if self.inner is None or inner == 0 else self.batch // inner
        of_a = (self.k, self.m) if self.transpose_a else (self.m, self.k)
        of_b = (self.n, self.k) if self.transpose_b else (self.k, self.n)
        if self.panel_width:  # the rows of all panels
            of_b = (_ceil(self.n, self.panel_width) * self.k, self.panel_width)
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
class Choice:
    """What may be chosen of a product's division: any choice gives the same values.

    Attributes:
        vectors, pack, pack_a, by_rows, ahead: see `Tiling`.
    """

    vectors: int
    pack: int
    pack_a: int
    by_rows: int
    ahead: int


@record(frozen=True)
class Tiling:
    """The numbers of the routine beside the dims, and the tiles that it calls.

    Attributes:
        vectors: SIMD vectors across a panel.
        tall: rows of the tallest tile.
        tiles: row tiles of C.
        panels: column panels of C.
        depth: rows of B in a block of k.
        pack: NO_PACK, COPY or TRANSPOSE for B's panels, or FILL: the first tile of each copies it,
            or DOTS: B is not copied though transposed, or PANELS: B is given in panels.
        pack_a: 1 where A's tiles are copied.
        by_rows: 1 where threads share the row tiles, 0 where they share the panels.
        ahead: rows of B that tiles ask for before they need them, where these are not copied.
        parts: threads that the product is worth.
        chunk: panels that are packed together.
        block: tiles that are copied together; without copies, all of them.
        run: tiles that are computed for all panels of a chunk before the epilogue takes them; in
            matrix registers, before the next tiles are, with an epilogue or not.
        space: bytes of a thread's workspace: A's tiles, then B's panels.
        tile_space: bytes of the copy of one of A's tiles.
        needs: the tiles that may be called.
        apart: bytes at the end of a thread's workspace for a block of C; 0 where C is in memory.
        past: bytes of C from which tiles store it past the caches, where its lines are complete
            when they are stored and nothing else reads them; 0: they do not.
    """

    vectors: int
    tall: int
    tiles: Dim
    panels: Dim
    depth: Dim
    pack: int
    pack_a: int
    by_rows: int
    ahead: int
    parts: Dim
    chunk: int
    block: Dim
    run: int
    space: Dim
    tile_space: Dim
    needs: tuple[Tile, ...]
    apart: int = 0
    past: int = 0


def tiling_of(
    product: Product, target: Target, tiles: int | None = None, apart: bool = False,
    choice: Choice | None = None,
) -> Tiling:  # fmt: skip
    """The division of a product on a machine.

    Args:
        tiles: the number of row tiles, where the caller shares them among threads.
        apart: whether nothing but the epilogue needs the result: if possible its blocks are kept
            in the workspace only.
        choice: one of `candidates`; by default that of `rule`.
    """
    width, size = lanes(target, product.element), ELEMENT_BYTES[product.element]
    if tiles is None and takes_dots(product, target):
        return _dots_tiling(product, target)
    choice = rule(product, target, tiles) if choice is None else choice
    product = in_groups(product, target)
    m, k, blocks = product.m, product.k, Blocks.of(target)
    vectors, pack, pack_a = choice.vectors, choice.pack, choice.pack_a
    tall, panels, depth = grid(product, vectors, target)
    rows = _tiles(m, tall, choice.by_rows) if tiles is None else tiles
    panel_bytes = (depth + width) * vectors * width * size
    together = blocks.matrix_panels if in_matrices(product, target) else blocks.panels
    chunk = max(1, together // panel_bytes) if isinstance(panel_bytes, int) else 1
    packed = panel_bytes * chunk if pack in (COPY, TRANSPOSE, FILL) else 0
    deep = _ceil(depth, WHOLE) * WHOLE if in_matrices(product, target) else depth
    tile_space = _lines((deep * tall + 2 * width) * size) if pack_a else 0
    most_k = MOST_PAIRS if product.pairs else MOST_K
    most = max(1, blocks.tiles // (most_k * tall * size))
    block = compound("min", rows, most) if pack_a else ALL_TILES
    run = max(1, blocks.run // (chunk * vectors * width * tall * size))
    by_columns = (product.transpose_a or pack_a) and not in_matrices(product, target)
    if is_whole_bytes(product.element):
        by_columns = not in_matrices(product, target)
    along = "columns" if by_columns else "rows"
    columns = chunk * vectors * width
    area = _area(product, run * tall, columns * size, blocks) if apart and depth == k else 0
    along = f"pair{along}" if product.pairs else along
    high = heights(m, tall, rows)
    needs = list(_needs(product, along, vectors, width, high))
    if pack == FILL:
        needs += _needs(product, f"fill{along}", vectors, width, high)
    return Tiling(
        vectors, tall, rows, panels, depth * _steps(product, target), pack, pack_a,
        choice.by_rows, choice.ahead, _parts(product, target.tuning), chunk,
        block, run, packed + tile_space * block + area, tile_space,
        tuple(needs), area,
        blocks.past if stores_past(target, product.element) else 0,
    )  # fmt: skip


def rule(product: Product, target: Target, tiles: int | None = None) -> Choice:
    """What is chosen where nothing was tried out: what benchmarks on a few processors led to.

    Args:
        tiles: see `tiling_of`.
    """
    size = ELEMENT_BYTES[product.element]
    whole_groups, product = _has_whole_groups(product, target), in_groups(product, target)
    vectors = _vectors(product, target, tiles)
    tall, panels, depth = grid(product, vectors, target)
    pack_a = tiles is None and _packs_a(product, (panels, tall, depth), vectors, target)
    if is_whole_bytes(product.element):
        pack_a = bool(product.transpose_a) or not whole_groups
        pack_a = pack_a or (
            isinstance(product.n, int) and product.n >= PACK_A_COLUMNS
            and isinstance(product.k, int) and product.k % WHOLE != 0
        )
    by_rows = tiles is not None or _by_rows(product, (tall, panels), pack_a, target)
    pack = _pack(product, size, target, shared=tiles is None)
    return Choice(vectors, pack, int(pack_a), int(by_rows), rows_ahead(target))


def in_matrices(product: Product, target: Target) -> bool:
    """Whether a product is computed in matrix registers."""
    if product.pairs:
        return has_matrix_registers(target)
    return multiplies_in_matrices(product.element, target)


def in_groups(product: Product, target: Target) -> Product:
    """The product as tiles compute it: of numbers of 8 bits, `k` counts groups."""
    if not is_whole_bytes(product.element):
        return product
    return replace(product, k=groups_of(product.element, product.k, target))


def _steps(product: Product, target: Target) -> int:
    """Steps of k in a step of a tile."""
    element = product.element
    return steps_of_group(element, target) if is_whole_bytes(element) else 1


def _has_whole_groups(product: Product, target: Target) -> bool:
    """Whether A's rows can be read as they are: in matrix registers, where groups fill them."""
    k = product.k
    return in_matrices(product, target) and isinstance(k, int) and k % _steps(product, target) == 0


def grid(product: Product, vectors: int, target: Target) -> tuple[int, Dim, Dim]:
    """Rows of the tallest tile, panels of so many vectors, and rows of B in a block of k."""
    width, size = lanes(target, product.element), ELEMENT_BYTES[product.element]
    if in_matrices(product, target):
        tall = most_matrix_rows(vectors)
    elif is_whole_bytes(product.element):
        tall = most_byte_rows(product.element, target, vectors)
    else:
        tall = min(most_rows(target, vectors), _most_alike(product, vectors, size, target.tuning))
    k = product.k
    depth = k if product.pairs else _ceil(k, at_least_one(_ceil(k, MOST_K)))
    if is_whole_bytes(product.element) and depth != k and in_matrices(product, target):
        depth = _ceil(depth, WHOLE) * WHOLE  # all blocks but the last one fill registers
    return tall, _ceil(product.n, vectors * width), depth


def packers_of(product: Product, tiling: Tiling) -> list[str]:
    """The copies (`packing.py`) that a product may call for."""
    found = {COPY: ["copy_panels"], TRANSPOSE: ["transpose_panel"]}.get(tiling.pack, [])
    if tiling.pack_a:
        found.append("pack_columns" if product.transpose_a else "pack_rows")
    of_pairs = {"copy_panels": "pair_panels", "pack_columns": "pair_columns"}
    return [of_pairs.get(f, f) for f in found] if product.pairs else found


def _parts(p: Product, tuning: Tuning) -> Dim:
    """Threads that a product is worth, by its arithmetic, or by the operands that it reads where
    each of their elements is used hardly more than once: a matrix by a vector."""
    flops = 2 * p.batch * p.m * p.n * at_least_one(p.k)
    parts = flops // tuning.task_flops + 1
    return compound("max", parts, _bytes_read(p) // tuning.task_bytes + 1)


def _bytes_read(p: Product) -> Dim:
    """Bytes of the operands; a matrix that the whole batch shares counts once."""
    size, repeats = ELEMENT_BYTES[p.element], at_least_one(p.batch)
    a, b = p.m * p.k * size, p.k * p.n * size
    shared = p.inner is None
    a = a if shared and p.stride_a == 0 else a * repeats
    b = b if shared and p.stride_b == 0 else b * repeats
    return a + b


def _area(product: Product, rows: int, run: int, blocks: Blocks) -> int:
    """Bytes of a block of the result that is kept apart; 0 where that is not worth while: it would
    be small, or its rows too short, of `run` bytes, for the epilogue to walk along."""
    m, n, size = product.m, product.n, ELEMENT_BYTES[product.element]
    if not (isinstance(m, int) and isinstance(n, int) and isinstance(product.k, int)):
        return 0
    if product.batch != 1 or m * n * size < blocks.least_apart:
        return 0
    if run < min(n * size, blocks.least_run):
        return 0
    area = -(-rows * n * size // 64) * 64
    return area if area <= blocks.most_area else 0


def takes_dots(p: Product, target: Target) -> bool:
    """Where B is stored transposed, and too few rows of A would share a copy of it.

    The sums across lanes cost as much as some steps of k, a copy as much as some rows of A.
    """
    if p.pairs or p.transpose_a or not p.transpose_b or not isinstance(p.m, int):
        return False
    if is_whole_bytes(p.element) and (in_matrices(p, target) or not target.avx512):
        return False  # masks of bytes, for the last steps of k, are those of AVX-512
    if target.vector_bits < 256 or lanes(target, p.element) < DOTS_ACROSS:
        return False
    steps = in_groups(p, target).k
    if not isinstance(steps, int):
        return p.m == 1  # a copy of B would be read once
    return steps >= max(DOTS_K * p.m, Blocks.of(target).dots_least_k)


def _dots_tiling(p: Product, target: Target) -> Tiling:
    """Tiles of some rows of A by four of B, panel after panel of B."""
    tall, blocks = _most_dot_rows(p.element, target), Blocks.of(target)
    panels = _ceil(p.n, DOTS_ACROSS)
    tiles = at_least_one(_ceil(p.m, tall))
    depth = _ceil(p.k, at_least_one(_ceil(p.k, MOST_K)))
    needs = _needs(p, "dots", DOTS_ACROSS, 1, heights(p.m, tall))
    panel_bytes = MOST_K * DOTS_ACROSS * operand_bytes(p.element)
    chunk = max(1, blocks.dots // panel_bytes)
    return Tiling(
        DOTS_ACROSS, tall, tiles, panels, depth, DOTS, 0, 0, 0, _parts(p, target.tuning), chunk,
        ALL_TILES, 1, 0, 0, tuple(needs),
    )  # fmt: skip


def _most_dot_rows(element: str, target: Target) -> int:
    return most_byte_dots(element, target) if is_whole_bytes(element) else most_dot_rows(target)


def _vectors(product: Product, target: Target, tiles: int | None) -> int:
    """SIMD vectors across a panel: two with tall tiles, four with lower ones, and where there are
    hardly any rows as many as there are registers: B is read in long runs, and there are enough
    sums that no multiply-add waits for the one before it."""
    width, n = lanes(target, product.element), product.n
    if product.panel_width:
        return product.panel_width // width
    if in_matrices(product, target):
        few = isinstance(product.m, int) and product.m <= MATRIX_ROWS
        most = MATRIX_SUMS if few else 2
        return min(most, max(1, -(-n // width))) if isinstance(n, int) else most
    wide, most = most_rows(target, WIDE), _widest(target)
    if not isinstance(product.m, int):
        most = 2
    elif product.m <= WIDE_HEIGHT and tiles is None:
        fitting = (v for v in _FEW_ROWS if product.m <= most_rows(target, v))
        most = next(fitting, 2)
    elif tiles is not None:
        most = most if -(-product.m // tiles) <= wide else 2
    elif WIDE_HEIGHT < product.m < target.tuning.wide_rows:
        # A panel of a single vector loads as much as it computes.
        most = 3 if isinstance(n, int) and 2 * width < n <= 3 * width else 2
    return min(most, max(1, -(-n // width))) if isinstance(n, int) else 2


def _widest(target: Target) -> int:
    """SIMD vectors across a panel where there are many rows: low tiles would load too much."""
    return WIDE if most_rows(target, WIDE) >= WIDE_HEIGHT else 2


def _tiles(m: Dim, tall: int, by_rows: int) -> Dim:
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


def _pack(product: Product, size: int, target: Target, shared: bool) -> int:
    """How B's panels are copied; `shared`: the routine shares rows among threads, not its caller,
    whose threads have no workspace."""
    if product.panel_width:
        return PANELS
    if product.transpose_b:
        return TRANSPOSE
    if product.pairs or is_whole_bytes(product.element):
        return COPY
    collides = shared and _collides(product.rows[1], product.k, size, target)
    if not copies_pay(product.m, product.n, target, collides):
        return NO_PACK
    fills = isinstance(product.m, int) and product.m < target.tuning.fill_rows
    return FILL if fills and fills_panels(target, product.element) else COPY


def copies_pay(rows: Dim, columns: Dim, target: Target, collides: bool = False) -> bool:
    """Whether copying the panels of a product's right operand pays, which is stored row by row.

    Args:
        rows, columns: of the result.
        collides: whether rows of the operand share sets of the caches.
    """
    tuning = target.tuning
    least = tuning.pack_colliding if collides else tuning.pack_rows
    if isinstance(columns, int) and 0 < columns < FAR_COLUMNS:
        least = least * FAR_COLUMNS // columns  # rows that are less far apart are fetched well
    wide = not isinstance(columns, int) or columns >= tuning.pack_columns
    return wide and isinstance(rows, int) and rows >= least


def _collides(row: Dim, k: Dim, size: int, target: Target) -> bool:
    """Whether the rows of a large right operand, of so many elements, share sets of the caches."""
    if not (isinstance(row, int) and isinstance(k, int)):
        return False
    same_set = row * size % target.tuning.l1.period == 0
    return same_set and row * k * size > Blocks.of(target).large


def _own_lines(cache: Cache) -> int:
    """Lines of one set that one operand may fill: other operands need the rest."""
    return cache.ways - cache.ways // 3


def _most_alike(product: Product, vectors: int, size: int, tuning: Tuning) -> int:
    """Rows of A whose lines stay in the first-level cache together, where panels are too few for
    a copy of A to pay."""
    row = product.rows[0]
    if vectors > 1 or product.transpose_a or not isinstance(row, int):
        return MOST_HEIGHT
    period = tuning.l1.period
    return _own_lines(tuning.l1) * (period // gcd(row * size, period))


def _packs_a(
    product: Product, blocks: tuple[Dim, int, Dim], vectors: int, target: Target
) -> bool:
    """Whether A's tiles are copied: many panels use them, and the elements that a tile reads at
    once collide in the caches, or come from far away. These are the rows of a tall tile, or all
    steps of k where A is stored transposed. Nor may the first-level cache be too small for a line
    of every such step, of which the next tile needs other elements, nor may these steps lie in too
    many pages, unless a step takes long beside the line's way.

    Args:
        blocks: panels, rows of the tallest tile, steps of a block of k.
        vectors: across a panel.
    """
    (panels, tall, depth), tuning = blocks, target.tuning
    size = ELEMENT_BYTES[product.element]
    if product.pairs and (product.transpose_a or has_matrix_registers(target)):
        return bool(product.transpose_a)  # matrix registers take whole lines of rows
    if not isinstance(panels, int) or panels < PACK_A_PANELS:
        return False
    row = product.rows[0]
    if not isinstance(row, int):
        return bool(product.transpose_a)
    if not product.transpose_a:
        most = max(_own_lines(tuning.l1), tuning.alike_rows)
        collide = tall > most and row * size % tuning.l1.period == 0
        return collide or _comes_from_far(product, panels, size, target)
    short = tall * vectors * tuning.copy < STEP_LINES * tuning.line * tuning.fma
    if short and isinstance(depth, int):
        if depth * tuning.line > tuning.l1.size // 2:
            return True
        in_pages = min(depth, depth * row * size // PAGE)
        if panels >= 2 * PACK_A_PANELS and in_pages >= tuning.pages // 4:
            return True
    # Of a larger cache no more is counted on: where all lines of a step of k collide in the first
    # level, too, a copy pays early.
    period = max(tuning.near // tuning.l2.ways, tuning.l1.period)
    sets = period // gcd(row * size, period)
    return not isinstance(depth, int) or depth > sets * 2 * tuning.l2.ways


def _comes_from_far(product: Product, panels: int, size: int, target: Target) -> bool:
    """Whether A and the result are too large for A to wait in the caches, or A alone for that of
    the core, where so many panels use its tiles that a copy costs nothing."""
    m, n, k, tuning = product.m, product.n, product.k, target.tuning
    if not (isinstance(m, int) and isinstance(n, int) and isinstance(k, int)):
        return False
    if tuning.far_rows == NEVER:
        return False
    if panels >= PACK_A_LONG and m * k * size > Blocks.of(target).large:
        return True
    return m * (k + n) * size >= tuning.far_rows


def _by_rows(product: Product, grid: tuple[int, Dim], pack_a: bool, target: Target) -> bool:
    """Whether threads share row tiles: the halves would otherwise be less even, or C is tall.

    Args:
        grid: rows of the tallest tile, panels.
    """
    tall, panels = grid
    tiles = _ceil(product.m, tall)
    if isinstance(tiles, int) and isinstance(panels, int):
        m, n = product.m, product.n
        tall_rows = TALL_TILES * most_rows(target, 2)
        if isinstance(m, int) and isinstance(n, int) and m >= max(2 * n, tall_rows):
            return True
        rows, columns = _imbalance(_evened(tiles)), _imbalance(panels)
        if waits_for_lines(product, target):
            return tiles > 1 and rows <= columns
        copied = is_whole_bytes(product.element) and not in_matrices(product, target)
        if copied and isinstance(product.k, int):
            return _copies_less_by_rows(product, rows, columns, target)
        return rows < columns or (pack_a and rows == columns)
    return isinstance(product.n, int) and product.n < 8 * target.tuning.lanes


def _copies_less_by_rows(p: Product, rows: float, columns: float, target: Target) -> bool:
    """Whether threads that share the row tiles are done earlier, where both operands are copied:
    each of them copies its own tiles of A, but all of B's panels; and the other way round.

    Args:
        rows, columns: the larger half's share of the work by tiles and by panels.
    """
    assert isinstance(p.m, int) and isinstance(p.n, int) and isinstance(p.k, int)
    tuning, size = target.tuning, ELEMENT_BYTES[p.element]
    work = p.m * p.n * p.k / (lanes(target, p.element) * tuning.fma)
    a, b = (2 * extent * p.k * size / tuning.copy for extent in (p.m, p.n))
    return rows * work + a / 2 + b < columns * work + a + b / 2


def waits_for_lines(product: Product, target: Target) -> bool:
    """Whether threads that share the panels wait for each other: they write to the same cache line
    in every row of C, unless the line ends where the panel does, and a row is computed in the time
    that a line takes on its way to another core."""
    n, k = product.n, product.k
    known = isinstance(n, int) and isinstance(k, int)
    return known and 2 * n * k <= target.tuning.task_flops // 8  # type: ignore[operator]


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
