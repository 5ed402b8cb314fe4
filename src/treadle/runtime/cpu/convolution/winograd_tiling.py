"""Which convolutions are computed by short convolutions, and the numbers of their routines."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from treadle.core.shapes import Dim
from treadle.core.switches import declare, is_on
from treadle.runtime.cpu.convolution import TO_FILTER, TO_INPUT
from treadle.runtime.cpu.convolution.points import PLANES, SIZE, sums_of
from treadle.runtime.cpu.convolution.tiling import (
    LINE,
    MOST_PARTS,
    MOST_SUMS,
    Form,
    Geometry,
    Tiling,
)
from treadle.runtime.cpu.matmul.tiles import Tile, lanes, most_rows
from treadle.runtime.cpu.matmul.tiling import heights, vector_counts
from treadle.runtime.cpu.target import Target

SWITCH = declare(
    "winograd", "program", "convolutions without strides take fewer products, by short convolutions"
)

WINOGRAD = SWITCH.name  # routines' names begin so
# What decides about the form is the same on all machines, for the form decides about the order of
# sums: only sizes of images and filters are asked. Channels fill the vectors of any machine;
# transforms of a tile's channel take as long as `TRANSFORM` products, and tiles of an image are so
# many that transforming the filters, whose products for all points are at most `MOST_FILTERS`
# elements, costs little; what is gained is worth it from `GAIN` on.
CHANNELS = 16
LEAST_CHANNELS = 32
TRANSFORM = 400
LEAST_TILES = 16
MOST_FILTERS = 1 << 16
GAIN = 1.3
# The order of sums of filter gradients: channels of inputs or outputs that are summed for at once,
# and elements of transformed tiles that one sum goes over.
BLOCK = 64
SUMMED = 1 << 17

# `n`: images, `h`, `w`, `c` those that are read, `oh`, `ow`, `o` those that are written (or, of
# filter gradients, whose gradient is read); `top`, `left`: pixels before the first window;
# `mh`, `mw`: outputs of a tile; `th`, `tw`: tiles of an image; `strip`: rows of tiles of which a
# thread computes all points before the next; `pixels`, `sums`: bytes from tile to tile of the
# transformed pixels, and of their products, and `pixel_plane`, `sum_plane` from point to point;
# `vectors`, `tall`: of the register tiles; `frame`: bytes of a thread's workspace, of which the
# transformed tiles begin at `first`; `shared`: bytes in front of the threads' workspace;
# `plane`: bytes of the transformed filters of a point, and `panel` of a panel of them;
# `c_block`, `o_block`: channels of a filter gradient's block; `parts`: partial gradients.
NUMBERS = (
    "n", "h", "w", "c", "oh", "ow", "o", "kh", "kw", "top", "left", "mh", "mw", "th", "tw", "strip",
    "pixels", "pixel_plane", "sums", "sum_plane", "vectors", "tall", "frame", "first", "shared",
    "plane", "panel", "c_block", "o_block", "parts",
)  # fmt: skip


def takes_winograd(name: str, g: Geometry) -> bool:
    """Whether an op, one of the three, is computed by short convolutions."""
    rows, columns = g.rows, g.columns
    known = (*g.x[1:3], *g.y[1:3], rows.before, columns.before)
    plain = g.groups == 1 and all(s.stride == s.dilation == 1 for s in (rows, columns))
    if not (plain and is_on(SWITCH.name) and all(isinstance(d, int) for d in known)):
        return False
    c, o = g.filters[2:]
    windows = g.filters[:2]
    if g.element not in ("float", "double") or not all(1 < k < SIZE for k in windows):
        return False
    if c % CHANNELS or o % CHANNELS or min(c, o) < LEAST_CHANNELS or c * o > MOST_FILTERS:
        return False
    tiles, pixels = prod(tiles_of(name, g)), prod(map(int, written(name, g)[:2]))
    products = pixels * prod(g.filters)
    needed = tiles * (PLANES * c * o + TRANSFORM * (c + o))
    return tiles >= LEAST_TILES and products >= GAIN * needed


def written(name: str, g: Geometry) -> tuple[int, int, int]:
    """Rows, columns and channels of what tiles are tiles of."""
    found: Any = g.x if name == TO_INPUT else g.y
    return found[1], found[2], found[3]


def tiles_of(name: str, g: Geometry) -> tuple[int, int]:
    """Rows and columns of tiles of an image."""
    height, width, _ = written(name, g)
    return (-(-height // sums_of(g.filters[0])), -(-width // sums_of(g.filters[1])))


def winograd_rule(name: str, g: Geometry, target: Target) -> Form:
    """What is chosen for an op where nobody tried out others."""
    columns = g.filters[2] if name == TO_INPUT else g.filters[3]
    vectors = 1 if columns <= lanes(target, g.element) else 2
    if name == TO_FILTER:
        strip: Dim = _summed_rows(g)
    else:
        strip = max(1, target.tuning.near // 2 // row_bytes(name, g))
    return Form(vectors, most_rows(target, vectors), strip, 0, 0)


def row_bytes(name: str, g: Geometry) -> int:
    """Bytes of the transformed tiles of a row, and of their sums."""
    return tiles_of(name, g)[1] * sum(g.filters[2:]) * PLANES * g.size


def _summed_rows(g: Geometry) -> int:
    """Rows of tiles that a sum of a filter gradient goes over."""
    row = tiles_of(TO_FILTER, g)[1] * sum(map(_block, g.filters[2:])) * PLANES
    return max(1, SUMMED // row)


def _block(channels: int) -> int:
    """Channels of a filter gradient's block: all blocks have nearly as many."""
    blocks = -(-channels // BLOCK)
    return -(-channels // (blocks * CHANNELS)) * CHANNELS


def winograd_tiling(name: str, g: Geometry, target: Target, form: Form) -> Tiling:
    """The division of an op's work in a form."""
    kh, kw, c, o = g.filters
    top, left = (s.before for s in (g.rows, g.columns))
    (h, w), (oh, ow) = g.x[1:3], g.y[1:3]
    if name == TO_INPUT:  # the convolution of the outputs' gradients with the filters turned round
        h, w, oh, ow, c, o = oh, ow, h, w, o, c
        top, left = kh - 1 - top, kw - 1 - left
    mh, mw = sums_of(kh), sums_of(kw)
    th, tw = tiles_of(name, g)
    strip: Any = form.strip
    c_block, o_block = (_block(c), _block(o)) if name == TO_FILTER else (c, o)
    pixels, sums = ((n * g.size // LINE + 1) * LINE for n in (c_block, o_block))
    pixel_plane, sum_plane = (_odd_lines(strip * tw * row) for row in (pixels, sums))
    panel = c * form.vectors * lanes(target, g.element) * g.size
    plane = -(-o * c * g.size // panel) * panel
    # The frame of a row of tiles, or the outputs of one that is not whole.
    first = _lines(SIZE * (tw * mw + SIZE - mw) * c_block * g.size)
    if name == TO_FILTER:
        plane = _odd_lines(c_block * sums)
        first = max(first, _lines(mh * tw * mw * o_block * g.size)) + PLANES * plane
        shared, parts = _parts(g)
    else:
        first, parts = max(first, _lines(mh * mw * o * g.size)), 1
        shared = PLANES * plane + (_turned(g, target) if name == TO_INPUT else 0)
    frame = first + PLANES * (pixel_plane + sum_plane)
    numbers = (
        g.x[0], h, w, c, oh, ow, o, kh, kw, top, left, mh, mw, th, tw, strip, pixels, pixel_plane,
        sums, sum_plane, form.vectors, form.tall, frame, first, shared, plane, panel, c_block,
        o_block, parts,
    )  # fmt: skip
    packers = (f"transpose_panel_{g.element}",) if name == TO_INPUT else ()
    needs = tuple(_needs(name, g, form, target))
    return Tiling(numbers, frame, shared, needs, packers, winograd_routine(name, (kh, kw)))


def winograd_routine(name: str, window: tuple[int, int]) -> str:
    """The name of the routine that computes an op with filters of so many rows and columns."""
    rows, columns = window
    return f"{WINOGRAD}{rows}x{columns}_{name}"


def _needs(name: str, g: Geometry, form: Form, target: Target) -> Iterator[Tile]:
    """The register tiles: rows are tiles of images, or channels of inputs."""
    c, o = g.filters[2:]
    strip: Any = form.strip
    if name == TO_FILTER:
        along, extents, columns = "columns", blocks_of(c), blocks_of(o)
    else:
        extents = {tiles_of(name, g)[1] * rows for rows in range(1, strip + 1)}
        along, columns = "rows", {c if name == TO_INPUT else o}
    found = {height for extent in extents for height in heights(extent, form.tall)}
    width = lanes(target, g.element)
    counts = {count for n in columns for count in vector_counts(n, form.vectors, width)}
    for count in sorted(counts):
        for height in sorted(found):
            yield Tile(g.element, along, height, count)


def blocks_of(channels: int) -> set[int]:
    """The extents of the blocks of channels."""
    block = _block(channels)
    return {block, channels % block or block}


def _parts(g: Geometry) -> tuple[int, int]:
    """Bytes of all partial filter gradients, and how many they are."""
    part = _lines(prod(g.filters) * g.size)
    parts = max(1, min(MOST_PARTS, MOST_SUMS * g.size // part))
    return parts * part, parts


def _turned(g: Geometry, target: Target) -> int:
    """Bytes of the transposed filters: rows are filled up to whole vectors, and so are the last
    ones that are written."""
    width = lanes(target, g.element)
    kh, kw, c, o = g.filters
    return _lines((kh * kw * o + width) * (-(-c // width) * width) * g.size)


def _lines(size: int) -> int:
    return -(-size // LINE) * LINE


def _odd_lines(size: int) -> int:
    """At least so many bytes, an odd number of lines: what is so far apart collides in no cache."""
    return (-(-size // LINE) | 1) * LINE
