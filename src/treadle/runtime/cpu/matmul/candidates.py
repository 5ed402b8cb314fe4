"""The ways to divide a product among which one may choose, and about what they cost.

They differ in the width of tiles, in what is copied, in what threads share, and in how far ahead
B's rows are asked for. The order in which sums are added up is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from treadle.runtime.cpu.library_text import ELEMENT_BYTES
from treadle.runtime.cpu.matmul.byte_forms import is_whole_bytes
from treadle.runtime.cpu.matmul.tiles import fills_panels, lanes, most_rows, rows_ahead
from treadle.runtime.cpu.matmul.tiling import (
    COPY,
    FILL,
    MOST_K,
    NO_PACK,
    Choice,
    Product,
    grid,
    in_groups,
    in_matrices,
    rule,
    takes_dots,
    waits_for_lines,
)
from treadle.runtime.cpu.target import Target

WIDTHS = (1, 2, 3, 4)  # of tiles, in vectors: wider ones are so low that B comes too slowly
LEAST_PRODUCTS = 8  # of vectors in a tile: smaller ones wait for their own sums
_STALL = 8  # one in so many of the cycles that a line needs is not hidden by prefetching


def all_choices(product: Product, target: Target, threads: int) -> set[Choice]:
    """Everything that may be chosen for a product of known sizes; empty where nothing can be.

    Args:
        threads: those that share the product.
    """
    dims = product.batch, product.m, product.n, product.k
    known = all(isinstance(d, int) and d > 0 for d in dims)
    if not known or product.panel_width:
        return set()
    if takes_dots(product, target) or in_matrices(product, target):
        return set()
    first = rule(product, target)
    return {first, *_all(product, first, target, threads)}


def _all(product: Product, first: Choice, target: Target, threads: int) -> Iterator[Choice]:
    n, m = product.n, product.m
    assert isinstance(n, int) and isinstance(m, int)
    width = lanes(target, product.element)
    copied = bool(product.pairs) or is_whole_bytes(product.element)  # their groups are copies
    packs: tuple[int, ...] = (first.pack,)
    if first.pack in (NO_PACK, COPY, FILL) and not copied:
        packs = (NO_PACK, COPY, FILL) if fills_panels(target, product.element) else (NO_PACK, COPY)
    far = rows_ahead(target)
    for vectors in sorted({first.vectors, *WIDTHS}):
        rows = min(most_rows(target, vectors), m)
        if vectors != first.vectors and (
            vectors > -(-n // width) or rows * vectors < min(LEAST_PRODUCTS, first.vectors)
        ):
            continue
        tall, panels, _ = grid(product, vectors, target)
        pack_as = (first.pack_a,) if copied else (0, 1)
        if not copied and tall > most_rows(target, 2):
            pack_as = (0,)  # the copies are for tiles of two vectors and more
        shares = {0, 1}
        if threads == 1 or waits_for_lines(product, target):
            shares = {first.by_rows}  # a trial, on one thread, would not see them wait
        for pack in packs:
            waits = pack == NO_PACK and vectors <= 2 and panels != 1
            for ahead in (0, far // 2, far, 2 * far) if waits else (far,):
                for pack_a in pack_as:
                    for by_rows in shares:
                        yield Choice(vectors, pack, pack_a, by_rows, ahead)


def cost(product: Product, choice: Choice, target: Target, threads: int) -> float:
    """About how many cycles a product takes: an order among choices, not a prediction.

    The steps of all tiles, whose multiply-adds, loads or waiting for their own sums take the time;
    what is copied; and lines of B that arrive too late (Low and others, Analytical Modeling is
    Enough for High-Performance BLIS, 2016, count the same).
    """
    t, p = target.tuning, in_groups(product, target)
    batch, m, n, k = (int(d) for d in (p.batch, p.m, p.n, p.k))  # type: ignore[arg-type]
    size, width = ELEMENT_BYTES[p.element], lanes(target, p.element)
    tall, _, _ = grid(p, choice.vectors, target)
    columns = choice.vectors * width
    tiles, panels = -(-m // tall), -(-n // columns)
    height = m / tiles
    used = min(choice.vectors, -(-n // width))
    step = max(height * used / t.fma, (height + used) / t.loads, t.latency)
    if min(k, MOST_K) * columns * size > t.l1.size // 2:  # B's panel is in the second level
        step = max(step, 2 * used * width * size / t.copy)
    units = tiles if choice.by_rows else panels
    busy = min(threads, units)
    share = -(-units // busy) / units  # of the thread that has most to do
    cycles = tiles * panels * k * step * share
    copies = busy if choice.by_rows else 1  # each thread copies all of B's panels, or its own
    moved = 2 * n * k * size / t.copy
    if choice.pack == FILL:  # there are tiles of one row of panels in which to hide it
        cycles += max(moved / 4, moved - cycles / tiles) * copies / busy
    elif choice.pack != NO_PACK:
        cycles += moved * copies / busy
    elif n > columns:
        late = t.far / _STALL if choice.ahead and choice.vectors <= 2 else t.far / 2
        lines = k * panels * max(1, columns * size // t.line)
        again = tiles if min(k, MOST_K) * max(t.line, columns * size) > t.near // 2 else 1
        cycles += late * lines * again * copies / busy / 4  # several are under way at once
    if choice.pack_a:
        turned = 1 if p.transpose_a else 2
        cycles += 2 * turned * m * k * size / t.copy / (busy if choice.by_rows else 1)
    elif p.transpose_a or tall * size * k > t.l1.size:
        cycles += tiles * panels * k * share * t.line / (2 * t.copy)
    return batch * cycles
