"""The numbers that convolution routines are given: geometry, tiles, parts that caches hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from treadle.core.records import record
from treadle.core.shapes import Dim, compound, product
from treadle.ops.image.windows import Span, spans
from treadle.runtime.cpu.convolution.edges import Row
from treadle.runtime.cpu.library_text import ELEMENT_BYTES
from treadle.runtime.cpu.matmul.tiles import Tile, lanes, most_rows
from treadle.runtime.cpu.matmul.tiling import at_least_one, heights, vector_counts
from treadle.runtime.cpu.target import Target
from treadle.runtime.reach import Reach, whole

# No machine changes these. `MOST_PARTS`, `MOST_SUMS` and `STRIP` are the order in which gradients
# are added up, which no number of threads and no cache may change; tiles of fewer than `LEAST_ROWS`
# wait for their own sums anywhere.
MOST_PARTS = 8  # partial filter gradients
MOST_SUMS = 1 << 23  # elements of all of them
STRIP = 1 << 16  # elements of images that one sum of a filter gradient goes over
TASK_PRODUCTS = 8  # times the arithmetic of a product that is worth a thread: tasks are strips
TAP_BYTES = 16  # an entry of a table of taps
LINE = 64  # bytes: parts of the workspace begin at multiples
LEAST_ROWS = 8  # of a filter gradient's tile
UNITS = 2  # for multiply-adds, of most machines
WORTH = 20  # one in so many taps beyond the sides is worth leaving out

GEOMETRY = (
    "n", "h", "w", "c", "kh", "kw", "o", "oh", "ow", "sh", "sw", "dh", "dw", "top", "left",
)  # fmt: skip
# `groups`: parts of the channels, each with filters of its own; `run`, `runs`: elements of a
# window's row that follow one another, and how many such runs it has; `strip`: most output rows
# (forward, filter gradient) or image rows (input gradient) of a strip; `vectors`, `tall`: SIMD
# vectors across a panel, rows of the tallest tile; `frame`, `taps`: bytes of a thread's workspace,
# and of the table of taps at its end; `shared`: bytes in front of the threads' workspace; `parts`:
# threads that the work is worth, or partial filter gradients; `exact`: 1 where taps beyond the
# sides are left out, so that there are no frames.
NUMBERS = (
    *GEOMETRY, "groups", "run", "runs", "strip", "vectors", "tall", "frame", "taps", "shared",
    "parts", "exact",
)  # fmt: skip


@record(frozen=True)
class Tiling:
    """The numbers of a routine, and the tiles that it may call."""

    numbers: tuple[Dim, ...]
    frame_bytes: Dim
    shared_bytes: Dim
    needs: tuple[Tile, ...]


@record(frozen=True)
class Geometry:
    """A convolution of NHWC images x with filters [kh, kw, c, o] to outputs y."""

    element: str
    x: Sequence[Dim]
    filters: Sequence[int]
    y: Sequence[Dim]
    rows: Span
    columns: Span

    @staticmethod
    def of(
        element: str, x: Sequence[Dim], filters: Sequence[Dim], y: Sequence[Dim],
        attrs: Mapping[str, Any],
    ) -> Geometry | None:  # fmt: skip
        """The geometry of an op; None where no routine computes it."""
        if not isinstance(x[3], int) or not all(isinstance(d, int) for d in filters):
            return None
        if 0 in (*x[1:], *filters, *y[1:]):  # nothing to read; no images at all are fine
            return None
        window: Any = filters[:2]
        rows, columns = spans(
            x[1:3], window, attrs["strides"], attrs["padding"], attrs["dilations"]
        )
        if (rows.count, columns.count) != tuple(y[1:3]):
            return None
        return Geometry(element, x, filters, y, rows, columns)  # type: ignore[arg-type]

    @property
    def groups(self) -> int:
        """Parts of the channels, each with filters of its own."""
        channels: Any = self.x[3]
        return max(int(channels) // self.filters[2], 1) if self.filters[2] else 1

    @property
    def outputs(self) -> int:
        """Output channels of a group."""
        return self.filters[3] // self.groups

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel has filters of its own."""
        return self.groups > 1 and self.filters[2] == 1

    @property
    def is_pointwise(self) -> bool:
        """Whether it is a product of pixels and channels."""
        return self.groups == 1 and all(
            s.window == s.stride == 1 and s.before == s.after == 0
            for s in (self.rows, self.columns)
        )

    @property
    def size(self) -> int:
        return ELEMENT_BYTES[self.element]

    @property
    def numbers(self) -> tuple[Dim, ...]:
        rows, columns = self.rows, self.columns
        return (
            *self.x, rows.window, columns.window, self.filters[3], rows.count, columns.count,
            rows.stride, columns.stride, rows.dilation, columns.dilation, rows.before,
            columns.before,
        )  # fmt: skip

    @property
    def reaches(self) -> tuple[Reach, Reach, Reach]:
        """The elements of images, filters and outputs: windows beyond the images are padding."""
        rows, columns = self.rows, self.columns
        outputs = (self.x[0], rows.count, columns.count, self.filters[3])
        filters = (rows.window, columns.window, *self.filters[2:])
        return whole(self.x), whole(filters), whole(outputs)

    @property
    def runs(self) -> tuple[int, int]:
        """Elements of a window's row that follow one another, and how many such runs it has."""
        c, window = self.filters[2], self.columns.window
        return (window * c, 1) if self.is_plain else (c, window)

    @property
    def is_plain(self) -> bool:
        """Whether the taps of a window's row follow one another in memory."""
        return self.columns.dilation == 1 and self.groups == 1

    @property
    def flops(self) -> Dim:
        return 2 * product(self.y) * product(self.filters[:3])


def frame_bytes(target: Target) -> int:
    """Bytes of a strip of padded image rows that a thread works on."""
    return target.tuning.near // 8


def has_large_filters(g: Geometry, target: Target) -> bool:
    """Whether partial sums of the filters' gradient would not stay in the cache."""
    return prod(g.filters) * g.size > target.tuning.near // 2


def forward_tiling(g: Geometry, target: Target) -> Tiling:
    """Outputs from strips of padded image rows: tiles are runs of pixels of an output row."""
    taps = _lines(TAP_BYTES * g.rows.window * g.columns.window)
    strip, frame = _strip(g, frame_bytes(target))
    columns = g.columns
    row = Row(columns.count, columns.window, columns.stride, -columns.before, columns.size)
    depth = g.rows.window * g.filters[2]
    edges = _edges(row, g.outputs, depth, g, target) if g.is_plain else None
    spaces = (strip, frame, taps)
    return _tiling(g, target, "rows", [columns.count], g.outputs, spaces, 0, edges=edges)


def input_tiling(g: Geometry, target: Target) -> Tiling:
    """Input gradients: for each remainder by the strides, a convolution of the padded outputs.

    The filters are transposed into the workspace, tap by tap.
    """
    width, stride = lanes(target, g.element), g.columns.stride
    c, o = g.filters[2:]
    taps = g.rows.window * g.columns.window
    row_bytes = _padded(c, width) * g.size
    filters = (taps * o + width) * row_bytes
    lengths = [(g.x[2] + (stride - 1 - r)) // stride for r in range(stride)]
    strip, frame = _gradient_strip(g, frame_bytes(target))
    spaces = (strip, frame, _lines(TAP_BYTES * taps))
    columns = g.columns
    row = Row(g.x[2], columns.window, 1, columns.before - (columns.window - 1), columns.count)
    edges = None
    if g.is_plain and stride == 1:
        edges = _edges(row, c, g.rows.window * o, g, target)
    return _tiling(g, target, "rows", lengths, c, spaces, _lines(filters), edges=edges)


def filter_tiling(g: Geometry, target: Target) -> Tiling:
    """Filter gradients: partial sums over runs of strips, whose number no thread count changes."""
    part = _lines(product(g.filters) * g.size)
    assert isinstance(part, int)
    parts = max(1, min(MOST_PARTS, MOST_SUMS * g.size // max(part, 1)))
    # Longer sums than the others': the parts are read and written less. Every tile reads the
    # outputs' gradients again.
    beside = g.y[2] * g.y[3] * g.size
    strip, frame = _strip(g, STRIP * g.size, beside)
    spaces = (strip, frame, _lines(TAP_BYTES * strip))
    exact = _leaves_out(g)
    runs = (g.filters[2], g.columns.window) if exact else g.runs
    return _tiling(
        g, target, "columns", [runs[0]], g.outputs, spaces, part * parts, parts,
        [] if exact else None, runs,
    )  # fmt: skip


def _edges(row: Row, n: int, depth: int, g: Geometry, target: Target) -> list[int] | None:
    """The heights of tiles beside the edges; None where frames are better. Either form adds up in
    an order of its own, so what one takes is counted for the same `UNITS` on all machines."""
    width = lanes(target, g.element)
    vectors = 1 if n <= width else 2
    return row.gains(most_rows(target, vectors), depth * vectors // UNITS)


def _leaves_out(g: Geometry) -> bool:
    """Whether sums over the columns inside the image are worth a tile for each tap."""
    s = g.columns
    count, size, before = s.count, s.size, s.before
    if not (isinstance(count, int) and isinstance(size, int) and isinstance(before, int)):
        return False
    if g.filters[2] < LEAST_ROWS:
        return False
    places = [p * s.stride + j * s.dilation - before for p in range(count) for j in range(s.window)]
    outside = sum(not 0 <= place < size for place in places)
    return outside * WORTH > len(places)


def _tiling(
    g: Geometry, target: Target, along: str, lengths: Sequence[Dim], n: int,
    spaces: tuple[Dim, Dim, Dim], shared: Dim, parts: Dim | None = None,
    edges: Sequence[int] | None = None, runs: tuple[int, int] | None = None,
) -> Tiling:  # fmt: skip
    """Tiles along runs of `lengths`, across n columns; spaces are strip, frame and taps.

    edges: the heights of further tiles where taps beyond the sides are left out, else None.
    """
    width = lanes(target, g.element)
    vectors = 1 if n <= width else 2
    tall = most_rows(target, vectors)
    strip, frame, taps = spaces
    tiles = {height for length in lengths for height in heights(length, tall)}
    tiles.update(edges or ())
    needs = tuple(
        Tile(g.element, along, height, count)
        for count in vector_counts(n, vectors, width)
        for height in sorted(tiles)
    )
    task = TASK_PRODUCTS * target.tuning.task_flops
    numbers = (
        *g.numbers, g.groups, *(runs or g.runs), strip, vectors, tall, frame + taps, taps, shared,
        g.flops // task + 1 if parts is None else parts, int(edges is not None),
    )  # fmt: skip
    return Tiling(numbers, frame + taps, shared, needs)


def _strip(g: Geometry, most_bytes: int, beside: Dim = 0) -> tuple[Dim, Dim]:
    """Output rows of a strip whose frame stays in the cache, and the bytes of that frame.

    beside: bytes for each output row that are to stay there too.
    """
    rows, columns = g.rows, g.columns
    width = g.x[2] + columns.before + columns.after
    row_bytes = at_least_one(width * g.x[3] * g.size)
    room = at_least_one(most_bytes - _reach(rows) * row_bytes)
    most = room // (row_bytes * rows.stride + beside) + 1
    strip = compound("max", compound("min", most, rows.count), 1)
    return strip, _lines(((strip - 1) * rows.stride + _reach(rows)) * row_bytes)


def _gradient_strip(g: Geometry, most_bytes: int) -> tuple[Dim, Dim]:
    """Image rows of a strip, and the bytes of the frame of output rows that they need."""
    rows, columns = g.rows, g.columns
    width = g.y[2] + 2 * _reach(columns)
    row_bytes = at_least_one(width * g.y[3] * g.size)
    most = at_least_one((most_bytes // row_bytes) * rows.stride - _reach(rows))
    strip = compound("max", compound("min", most, g.x[1]), 1)
    return strip, _lines(((strip + _reach(rows)) // rows.stride + 2) * row_bytes)


def _reach(span: Span) -> int:
    return (span.window - 1) * span.dilation + 1


def _padded(c: int, width: int) -> int:
    return -(-c // width) * width


def _lines(size: Dim) -> Dim:
    return (size + (LINE - 1)) // LINE * LINE
