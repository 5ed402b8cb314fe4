"""Calls of tiles from the routines that divide their work into them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from treadle.runtime.cpu.library_text import ELEMENT_BYTES, ceil_divide, table_word
from treadle.runtime.cpu.llvm_text import Function, Word
from treadle.runtime.cpu.matmul.tiles import (
    MOST_HEIGHT,
    MOST_VECTORS,
    PACKERS,
    TILE_WORDS,
    lanes,
    rows_ahead,
)


def tile_codes(fn: Function, table: Word, element: str, along: Word) -> str:
    """The part of the table for tiles along `ALONG[along]`."""
    tiles = table_word(fn, table, f"{element}_tiles")
    return fn.offset(tiles, fn.mul(along, MOST_VECTORS * (MOST_HEIGHT + 1)), "ptr")


def packer_code(fn: Function, table: Word, element: str, name: str) -> str:
    """The address of one of `PACKERS`, if the routine's symbol names it."""
    tiles = table_word(fn, table, f"{element}_tiles")
    return fn.load_word(tiles, TILE_WORDS + PACKERS.index(name), "ptr")


def call_tile(
    fn: Function,
    element: str,
    codes: str,
    shape: tuple[Word, Word, Word],
    operands: tuple[tuple[Word, Word], tuple[Word, Word], tuple[Word, Word]],
    add: Word,
    segments: tuple[Word, Word] | None = None,
    width: Word | None = None,
    ahead: Word | None = None,
    fill: tuple[str, str, Word] | None = None,
) -> None:
    """C[height, n] = (or +=) A B over k steps.

    Args:
        shape: height, n, k.
        operands: (pointer, bytes from row to row) of A, B and C.
        width: columns of C for each of the tile's `vectors`; the lanes of a vector by default.
        ahead: rows of B that the tile asks for before it needs them, where they do not follow one
            another; as many as `rows_ahead` says by default.
        fill: whether the tile is to copy B's panel, the codes of tiles that do, and the address of
            the record that says where.
        segments: their number and the table of their offsets; one at offset 0 by default.
    """
    height, n, k = shape
    target, (_, row) = fn.module.target, operands[1]
    width = lanes(target, element) if width is None else width
    vectors = ceil_divide(fn, n, width)
    apart = fn.compare("ne", row, fn.mul(fn.mul(vectors, width), ELEMENT_BYTES[element]))
    rows = rows_ahead(target) if ahead is None else ahead
    place = fn.add(fn.mul(fn.sub(vectors, 1), MOST_HEIGHT + 1), height)
    if fill is not None:
        codes = fn.value(f"select i1 {fill[0]}, ptr {fill[1]}, ptr {codes}")
    code = fn.load_word(codes, place, "ptr")
    if segments is None:
        segments = 1, fn.module.constant("whole", "[2 x i64] zeroinitializer, align 8")
    if fill is not None:
        filled = fn.value(f"select i1 {fill[0]}, ptr {fill[2]}, ptr {segments[1]}")
        segments = segments[0], filled
    arrays = ", ".join(f"ptr {pointer}, i64 {stride}" for pointer, stride in operands)
    fn.emit(
        f"call void {code}({arrays}, i64 {k}, i64 {n}, i64 {add}, i64 {segments[0]}, "
        f"ptr {segments[1]}, i64 {fn.select(apart, fn.mul(row, rows), 0)})"
    )


class EvenTiles:
    """`count` rows divided into `tiles` as evenly as possible; by default into the fewest tiles of
    at most `tall` rows."""

    def __init__(self, fn: Function, count: Word, tall: Word, tiles: Word | None = None) -> None:
        self.fn = fn
        self.tiles = fn.max(ceil_divide(fn, count, tall), 1) if tiles is None else tiles
        self.high = fn.divide(count, self.tiles)
        self.higher = fn.sub(count, fn.mul(self.high, self.tiles))  # tiles with one row more

    def place(self, tile: Word) -> tuple[Word, Word]:
        """The first row and the height of a tile."""
        fn = self.fn
        start = fn.add(fn.mul(tile, self.high), fn.min(tile, self.higher))
        taller = fn.compare("slt", tile, self.higher)
        return start, fn.add(self.high, fn.select(taller, 1, 0))

    @contextmanager
    def each(self) -> Iterator[tuple[Word, Word]]:
        """A loop over all tiles (there is at least one row)."""
        with self.fn.loop(0, self.tiles) as tile:
            yield self.place(tile)
