"""The numbers that convolution routines are given: geometry, tiles, parts that caches hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from treadle.core.records import record
from treadle.core.shapes import Dim, compound, product
from treadle.ops.image.windows import Span, spans
from treadle.runtime.cpu.convolution import FORWARD, TO_FILTER, TO_INPUT
from treadle.runtime.cpu.convolution.edges import Row
from treadle.runtime.cpu.library_text import ELEMENT_BYTES
from treadle.runtime.cpu.matmul.dots import DOTS_ACROSS, most_dot_rows
from treadle.runtime.cpu.matmul.tiles import Tile, lanes, most_rows, rows_ahead
from treadle.runtime.cpu.matmul.tiling import at_least_one, copies_pay, heights, vector_counts
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
DOTS_WORTH = 2  # products of a dot product's vectors that its sum over the lanes costs as much as
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
# sides are left out, so that there are no frames; `ahead`, `pack`: see `Form`; `dots`: 1 where
# tiles are dot products with the filters where they are.
NUMBERS = (
    *GEOMETRY, "groups", "run", "runs", "strip", "vectors", "tall", "frame", "taps", "shared",
    "parts", "exact", "ahead", "pack", "dots",
)  # fmt: skip


@record(frozen=True)
class Form:
    """What may be chosen of a convolution's division: any form gives the same values.

    Attributes:
        vectors: SIMD vectors across a panel of columns: output channels, or input channels for
            gradients of the images.
        tall: rows of the tallest tile.
        strip: most output rows (forward, filter gradient) or image rows (input gradient) that are
            computed for one panel after another.
        ahead: rows of the right operand that tiles ask for before they need them.
        pack: 1 where panels of the filters are copied first, so that their rows follow one another.
    """

    vectors: int
    tall: int
    strip: Dim
    ahead: int
    pack: int


@record(frozen=True)
class Tiling:
    """The numbers of a routine, its workspace, and the tiles and packers that it may call; the
    routine is named like the op where it has no name of its own."""

    numbers: tuple[Dim, ...]
    frame_bytes: Dim
    shared_bytes: Dim
    needs: tuple[Tile, ...]
    packers: tuple[str, ...] = ()
    routine: str = ""


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


def rule(name: str, g: Geometry, target: Target) -> Form:
    """What is chosen for an op that is computed directly, where nobody tried out others."""
    n = columns_of(name, g)
    vectors = 1 if n <= lanes(target, g.element) else 2
    if takes_dots(name, g, target):
        strip, tall = _gradient_strip(g, frame_bytes(target)), dot_rows(target, n)
        return Form(n, tall, strip, 0, 0)
    if name == TO_INPUT:
        strip = _gradient_strip(g, frame_bytes(target))
    elif name == FORWARD:
        strip = _strip(g, frame_bytes(target))
    else:
        # Longer sums than the others': the parts are read and written less. Every tile reads the
        # outputs' gradients again.
        strip = _strip(g, STRIP * g.size, beside=g.y[2] * g.y[3] * g.size)
    pack = name == FORWARD and _packs(g, vectors, target)
    return Form(vectors, most_rows(target, vectors), strip, rows_ahead(target), int(pack))


def _packs(g: Geometry, vectors: int, target: Target) -> bool:
    """Whether panels of the filters are copied: outputs are a product of pixels by filters. Of
    images whose number is not known there is one at least."""
    if g.groups != 1 or g.outputs <= vectors * lanes(target, g.element):
        return False  # there is a single panel
    images, height, width = g.y[:3]
    pixels = height * width * (images if isinstance(images, int) else 1)
    return copies_pay(pixels, g.outputs, target)


def tiling_of(name: str, g: Geometry, target: Target, form: Form) -> Tiling:
    """The division of an op's work on a machine."""
    return _TILINGS[name](g, target, form)


def _forward_tiling(g: Geometry, target: Target, form: Form) -> Tiling:
    """Outputs from strips of padded image rows: tiles are runs of pixels of an output row."""
    taps = _lines(TAP_BYTES * g.rows.window * g.columns.window)
    columns = g.columns
    spaces = (_frame(g, form.strip), taps)
    edges = edges_of(FORWARD, g, target)
    found = _tiling(FORWARD, g, target, [columns.count], form, spaces, 0, edges=edges)
    if not form.pack:
        return found
    row = form.vectors * lanes(target, g.element) * g.size
    panels = -(-g.outputs * g.size // row)
    shared = panels * prod(g.filters[:3]) * row
    numbers = dict(zip(NUMBERS, found.numbers, strict=True)) | {"shared": shared}
    packers = (f"copy_panels_{g.element}",)
    return Tiling(tuple(numbers.values()), found.frame_bytes, shared, found.needs, packers)


def _input_tiling(g: Geometry, target: Target, form: Form) -> Tiling:
    """Input gradients: for each remainder by the strides, a convolution of the padded outputs.

    The filters are transposed into the workspace, tap by tap.
    """
    width, stride = lanes(target, g.element), g.columns.stride
    dots = takes_dots(TO_INPUT, g, target)
    c, o = g.filters[2:]
    taps = g.rows.window * g.columns.window
    row_bytes = _padded(c, width) * g.size
    filters = (taps * o + width) * row_bytes
    lengths = [(g.x[2] + (stride - 1 - r)) // stride for r in range(stride)]
    spaces = (_gradient_frame(g, form.strip), _lines(TAP_BYTES * taps))
    edges = edges_of(TO_INPUT, g, target)
    shared = 0 if dots else _lines(filters)
    found = _tiling(TO_INPUT, g, target, lengths, form, spaces, shared, edges=edges, dots=dots)
    return found if dots else replace(found, packers=(f"transpose_panel_{g.element}",))


def takes_dots(name: str, g: Geometry, target: Target) -> bool:
    """Whether an op's tiles are dot products: input gradients of so few channels that these would
    fill less of a vector than the outputs that are summed over. Filters are read where they are."""
    width, c = lanes(target, g.element), g.filters[2]
    if name != TO_INPUT or target.vector_bits < 256 or width < DOTS_ACROSS:
        return False
    return c <= DOTS_ACROSS and c * DOTS_WORTH * -(-g.outputs // width) <= g.outputs


def dot_rows(target: Target, across: int) -> int:
    """The tallest tile of dot products of so few columns: as many sums as must be under way, or
    more where more columns share the rows."""
    return max(most_dot_rows(target), target.tuning.chains // across)


def _filter_tiling(g: Geometry, target: Target, form: Form) -> Tiling:
    """Filter gradients: partial sums over runs of strips, whose number no thread count changes."""
    part = _lines(product(g.filters) * g.size)
    assert isinstance(part, int)
    parts = max(1, min(MOST_PARTS, MOST_SUMS * g.size // max(part, 1)))
    spaces = (_frame(g, form.strip), _lines(TAP_BYTES * form.strip))
    exact = _leaves_out(g)
    runs = (g.filters[2], g.columns.window) if exact else g.runs
    return _tiling(
        TO_FILTER, g, target, [runs[0]], form, spaces, part * parts, parts,
        [] if exact else None, runs,
    )  # fmt: skip


_TILINGS = {FORWARD: _forward_tiling, TO_INPUT: _input_tiling, TO_FILTER: _filter_tiling}


def columns_of(name: str, g: Geometry) -> int:
    """Columns of the tiles of an op."""
    return g.filters[2] if name == TO_INPUT else g.outputs


def edges_of(name: str, g: Geometry, target: Target) -> list[int] | None:
    """The heights of tiles beside the edges, of images or of outputs; None where an op reads
    frames."""
    c, k = g.columns, g.rows.window
    if name == FORWARD and g.is_plain:
        row = Row(c.count, c.window, c.stride, -c.before, c.size)
        return _edges(row, g.outputs, k * g.filters[2], g, target)
    if name == TO_INPUT and g.is_plain and c.stride == 1 and not takes_dots(name, g, target):
        row = Row(g.x[2], c.window, 1, c.before - (c.window - 1), c.count)
        return _edges(row, g.filters[2], k * g.filters[3], g, target)
    return None


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
    name: str, g: Geometry, target: Target, lengths: Sequence[Dim], form: Form,
    spaces: tuple[Dim, Dim], shared: Dim, parts: Dim | None = None,
    edges: Sequence[int] | None = None, runs: tuple[int, int] | None = None, dots: bool = False,
) -> Tiling:  # fmt: skip
    """Tiles along runs of `lengths`; spaces are the bytes of a frame and of the table of taps.

    edges: the heights of further tiles where taps beyond the sides are left out, else None.
    """
    width, vectors, tall = lanes(target, g.element), form.vectors, form.tall
    n, along = columns_of(name, g), "columns" if name == TO_FILTER else "rows"
    if dots:
        width, along = 1, "dots"
    frame, taps = spaces
    tiles = {height for length in lengths for height in heights(length, tall)}
    tiles.update(edges or ())
    needs = tuple(
        Tile(g.element, along, height, count)
        for count in vector_counts(n, vectors, width)
        for height in sorted(tiles)
    )
    task = TASK_PRODUCTS * target.tuning.task_flops
    numbers = (
        *g.numbers, g.groups, *(runs or g.runs), form.strip, vectors, tall, frame + taps, taps,
        shared, g.flops // task + 1 if parts is None else parts, int(edges is not None), form.ahead,
        form.pack, int(dots),
    )  # fmt: skip
    return Tiling(numbers, frame + taps, shared, needs)


def _strip(g: Geometry, most_bytes: int, beside: Dim = 0) -> Dim:
    """Output rows of a strip whose frame stays in the cache.

    beside: bytes for each output row that are to stay there too.
    """
    rows, row_bytes = g.rows, _row_bytes(g)
    room = at_least_one(most_bytes - _reach(rows) * row_bytes)
    most = room // (row_bytes * rows.stride + beside) + 1
    return compound("max", compound("min", most, rows.count), 1)


def _frame(g: Geometry, strip: Dim) -> Dim:
    """Bytes of the frame of a strip of output rows."""
    return _lines(((strip - 1) * g.rows.stride + _reach(g.rows)) * _row_bytes(g))


def _row_bytes(g: Geometry) -> Dim:
    """Bytes of a row of the frame."""
    width = g.x[2] + g.columns.before + g.columns.after
    return at_least_one(width * g.x[3] * g.size)


def _gradient_strip(g: Geometry, most_bytes: int) -> Dim:
    """Image rows of a strip whose frame of output rows stays in the cache."""
    rows = g.rows
    most = at_least_one((most_bytes // _gradient_row(g)) * rows.stride - _reach(rows))
    return compound("max", compound("min", most, g.x[1]), 1)


def _gradient_frame(g: Geometry, strip: Dim) -> Dim:
    """Bytes of the frame of output rows that a strip of image rows needs."""
    return _lines(((strip + _reach(g.rows)) // g.rows.stride + 2) * _gradient_row(g))


def _gradient_row(g: Geometry) -> Dim:
    """Bytes of a row of the frame of outputs."""
    width = g.y[2] + 2 * _reach(g.columns)
    return at_least_one(width * g.y[3] * g.size)


def _reach(span: Span) -> int:
    return (span.window - 1) * span.dilation + 1


def _padded(c: int, width: int) -> int:
    return -(-c // width) * width


def _lines(size: Dim) -> Dim:
    return (size + (LINE - 1)) // LINE * LINE
