"""Tiles beside the edges of images: taps beyond an edge are left out, pixel by pixel.

Most taps of a tile are inside the image for all its pixels, and are summed at once. Each of the
others is added for the pixels that have it. So nothing is multiplied by padding, and images are
read where they are, without frames.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.core.records import record
from treadle.core.shapes import Dim
from treadle.runtime.cpu.library_text import Words, ceil_divide
from treadle.runtime.cpu.llvm_text import Function, Word

# Cycles that one more call of a tile costs, its sums in memory included: a chain of instructions,
# for which processors take much the same.
CALL_CYCLES = 100
_UNBOUNDED = 1 << 40


@record(frozen=True)
class Row:
    """Windows along a row: tap j of window p is at ``first + p * stride + j`` of `size` places."""

    count: Dim
    window: int
    stride: int
    first: Dim
    size: Dim

    def skipped(self, tall: int) -> list[tuple[int, int]] | None:
        """For tiles of up to `tall` windows, (rows, left out) of every tap that some lack.

        None where a tile may have no tap that is inside for all its windows, or sizes are open.
        """
        count, first, size = self.count, self.first, self.size
        if not (isinstance(count, int) and isinstance(first, int) and isinstance(size, int)):
            return None
        if not (-self.window < first <= 0 and (count - 1) * self.stride < size):
            return None
        found = []
        tiles = -(-count // tall)
        for tile in range(tiles):
            start, height = _even(count, tiles, tile)
            for j in range(self.window):
                places = [first + (start + p) * self.stride + j for p in range(height)]
                inside = sum(0 <= place < size for place in places)
                if inside < height:
                    found.append((inside, height - inside))
        return found

    def gains(self, tall: int, depth: int) -> list[int] | None:
        """The heights of further tiles, where leaving taps out pays; a tap has `depth` steps."""
        parts = self.skipped(tall)
        if not parts:
            return None
        saved = sum(left_out for _, left_out in parts) * depth
        calls = sum(rows > 0 for rows, _ in parts)
        return sorted({rows for rows, _ in parts if rows}) if saved > CALL_CYCLES * calls else None


def _even(count: int, tiles: int, tile: int) -> tuple[int, int]:
    """Start and height of a tile, as `EvenTiles` divides."""
    high, higher = divmod(count, tiles)
    return tile * high + min(tile, higher), high + (tile < higher)


# Emits the sum over taps [tap, tap + taps) for `rows` windows after the first `skip` ones.
Emit = Callable[[Word, Word, Word, Word, Word], None]


def each_part(
    fn: Function, w: Words, first: Word, stride: Word, size: Word, tile: tuple[Word, Word],
    emit: Emit,
) -> None:  # fmt: skip
    """``emit(tap, taps, skip, rows, add)`` for the parts of a tile = (first window, height).

    Where ``w["exact"]`` is 0 there is one part, with all taps for all windows.
    """
    window, height = w["kw"], tile[1]
    exact = fn.compare("ne", w["exact"], 0)
    bound = fn.select(exact, size, _UNBOUNDED)
    start = fn.select(exact, fn.add(first, fn.mul(tile[0], stride)), 0)
    last = fn.add(start, fn.mul(fn.sub(height, 1), stride))
    low = fn.max(fn.sub(0, start), 0)
    high = fn.min(fn.sub(bound, last), window)
    emit(low, fn.sub(high, low), 0, height, 0)
    with fn.loop(0, fn.select(exact, window, 0)) as j:
        before, after = fn.compare("slt", j, low), fn.compare("sge", j, high)
        outside = fn.value(f"or i1 {before}, {after}")
        with fn.when(outside):
            skip, stop = windows_inside(fn, fn.add(start, j), stride, bound, height)
            some = fn.compare("slt", skip, stop)
            with fn.when(some):
                emit(j, 1, skip, fn.sub(stop, skip), 1)


def windows_inside(
    fn: Function, place: Word, stride: Word, size: Word, count: Word
) -> tuple[Word, Word]:
    """The windows [skip, stop) of `count` whose tap, at `place` in the first one, is inside."""
    skip = ceil_divide(fn, fn.max(fn.sub(0, place), 0), stride)
    stop = ceil_divide(fn, fn.max(fn.sub(size, place), 0), stride)
    return skip, fn.min(stop, count)
