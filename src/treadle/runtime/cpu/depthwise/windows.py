"""The taps of a window that are inside the image: tables of taps, borders, runs between them."""

from __future__ import annotations

from collections.abc import Callable

from treadle.core.records import record
from treadle.runtime.cpu.convolution.taps import Table
from treadle.runtime.cpu.library_text import ELEMENT_BYTES, Words, ceil_divide
from treadle.runtime.cpu.llvm_text import Function, Module, Word

ROWS = 8  # of outputs beside complete columns that make a run: they share a table of taps


@record(frozen=True)
class Run:
    """Outputs that see the same taps.

    Attributes:
        row, column: of the first output.
        shift: bytes from the pixels that the taps name to those of the first output.
        steps: bytes from pixel to pixel, of the image and of the outputs.
        pixels: outputs of the run.
        taps: their number, in the table.
    """

    row: Word
    column: Word
    shift: Word
    steps: tuple[Word, Word]
    pixels: Word
    taps: Word


Emit = Callable[[Word, Word], None]
EmitRun = Callable[[Run], None]


def pixel_bytes(fn: Function, w: Words, element: str) -> Words:
    """`x_pixel` and `x_image`: bytes of a pixel and of an image; `y_pixel`, `y_image`: of the
    outputs'."""
    x_pixel, y_pixel = (fn.mul(w[channels], ELEMENT_BYTES[element]) for channels in ("c", "o"))
    return {
        "x_pixel": x_pixel,
        "y_pixel": y_pixel,
        "x_image": fn.mul(fn.mul(w["h"], w["w"]), x_pixel),
        "y_image": fn.mul(fn.mul(w["oh"], w["ow"]), y_pixel),
    }


def define_window_taps(module: Module) -> None:
    """``i64 @window_taps(ptr table, i64 y, x, h, w, kh, kw, dh, dw, pixel, tap)``

    Fills the table with the taps, in the window's order, of a window at (y, x) that lie in an image
    of h rows by w columns, and returns their number; `pixel` and `tap`: bytes of a pixel, and of
    the filters of a tap.
    """
    fn = Function(module)
    i0, i1 = _inner_taps(fn, "%y", "%h", "%kh", "%dh")
    j0, j1 = _inner_taps(fn, "%x", "%w", "%kw", "%dw")
    across = fn.sub(j1, j0)
    with fn.loop(i0, i1) as i:
        line = fn.mul(fn.add("%y", fn.mul(i, "%dh")), "%w")
        before = fn.mul(fn.sub(i, i0), across)
        with fn.loop(j0, j1) as j:
            column = fn.add("%x", fn.mul(j, "%dw"))
            tap = fn.add(fn.mul(i, "%kw"), j)
            offsets = fn.mul(fn.add(line, column), "%pixel"), fn.mul(tap, "%tap")
            place = fn.mul(fn.add(before, fn.sub(j, j0)), 2)
            for n, offset in enumerate(offsets):
                target = fn.offset("%table", fn.add(place, n), "i64")
                fn.emit(f"store i64 {offset}, ptr {target}, align 8")
    fn.emit(f"ret i64 {fn.mul(fn.sub(i1, i0), across)}")
    fn.define(
        "window_taps",
        "i64 @{}(ptr %table, i64 %y, i64 %x, i64 %h, i64 %w, i64 %kh, i64 %kw, i64 %dh, i64 %dw, "
        "i64 %pixel, i64 %tap)",
        "internal",
    )


def _inner_taps(
    fn: Function, start: Word, size: Word, window: Word, step: Word
) -> tuple[Word, Word]:  # fmt: skip
    """The taps [first, last) of a window from `start` on whose places lie in [0, size)."""
    first = _quotient(fn, fn.add(fn.max(fn.sub(0, start), 0), fn.sub(step, 1)), step)
    last = _quotient(fn, fn.add(fn.max(fn.sub(size, start), 0), fn.sub(step, 1)), step)
    last = fn.min(last, window)
    return fn.min(first, last), last


def window_taps(fn: Function, w: Words, table: str, row: Word, column: Word) -> str:
    """Fill the table with the taps of output (row, column); their number."""
    y = fn.sub(fn.mul(row, w["sh"]), w["top"])
    x = fn.sub(fn.mul(column, w["sw"]), w["left"])
    known = (y, x, *(w[name] for name in ("h", "w", "kh", "kw", "dh", "dw", "x_pixel", "y_pixel")))
    shown = ", ".join(f"i64 {word}" for word in known)
    return fn.value(f"call i64 @window_taps(ptr {table}, {shown})")


def complete(fn: Function, w: Words, along: str) -> tuple[Word, Word]:
    """Outputs whose whole window lies in the image, along "h" or "w": from, to."""
    k, d, s, before = {
        "h": ("kh", "dh", "sh", "top"), "w": ("kw", "dw", "sw", "left"),
    }[along]  # fmt: skip
    reach = fn.mul(fn.sub(w[k], 1), w[d])
    last = fn.sub(fn.sub(fn.add(w[along], w[before]), reach), 1)  # where the last window starts
    return ceil_divide(fn, w[before], w[s]), fn.divide(fn.max(fn.add(last, w[s]), 0), w[s])


def each_run(
    fn: Function, w: Words, table: str, rows: tuple[Word, Word], emit: EmitRun
) -> None:  # fmt: skip
    """Runs of outputs that see the same taps, of the output rows [from, to) of an image.

    Beside the columns whose windows are complete a run goes down some rows.
    """
    x_row, y_row = fn.mul(w["w"], w["x_pixel"]), fn.mul(w["ow"], w["y_pixel"])
    across = fn.mul(w["sw"], w["x_pixel"]), w["y_pixel"]
    down = fn.mul(w["sh"], x_row), y_row
    left, right = _within(fn, complete(fn, w, "w"), (0, w["ow"]))
    low, high = _within(fn, complete(fn, w, "h"), rows)
    some = fn.compare("slt", left, right)

    def line(row: Word) -> None:
        def run(column: Word, pixels: Word) -> None:
            emit(Run(row, column, 0, across, pixels, window_taps(fn, w, table, row, column)))

        runs(fn, w["ow"], left, right, run)

    with fn.loop(rows[0], low) as row:
        line(row)
    with fn.loop(low, high, ROWS) as row:
        count = fn.min(fn.sub(high, row), ROWS)
        for start, stop in ((0, left), (right, w["ow"])):
            with fn.loop(start, stop) as column:
                taps = window_taps(fn, w, table, row, column)
                emit(Run(row, column, 0, down, count, taps))
        with fn.when(some):
            taps = window_taps(fn, w, table, row, left)
            with fn.loop(0, count) as r:
                shift = fn.mul(r, down[0])
                pixels = fn.sub(right, left)
                emit(Run(fn.add(row, r), left, shift, across, pixels, taps))
    with fn.loop(high, rows[1]) as row:
        line(row)


def _within(
    fn: Function, found: tuple[Word, Word], bounds: tuple[Word, Word]
) -> tuple[Word, Word]:  # fmt: skip
    low = fn.min(fn.max(found[0], bounds[0]), bounds[1])
    return low, fn.max(fn.min(found[1], bounds[1]), low)


def covering_taps(fn: Function, w: Words, table: Table, row: Word, column: Word) -> None:
    """Outputs whose windows cover image pixel (row, column), in the window's order."""
    table.clear()
    y0, x0 = fn.add(row, w["top"]), fn.add(column, w["left"])
    with fn.loop(0, w["kh"]) as i:
        y = fn.sub(y0, fn.mul(i, w["dh"]))
        oy = _quotient(fn, y, w["sh"])
        with fn.when(_exact(fn, y, oy, w["sh"], w["oh"])), fn.loop(0, w["kw"]) as j:
            x = fn.sub(x0, fn.mul(j, w["dw"]))
            ox = _quotient(fn, x, w["sw"])
            with fn.when(_exact(fn, x, ox, w["sw"], w["ow"])):
                pixel = fn.mul(fn.add(fn.mul(oy, w["ow"]), ox), w["y_pixel"])
                _append(fn, w, table, pixel, i, j)


def _append(fn: Function, w: Words, table: Table, pixel: Word, i: Word, j: Word) -> None:
    tap = fn.add(fn.mul(i, w["kw"]), j)
    table.append(pixel, fn.mul(tap, w["y_pixel"]))


def _quotient(fn: Function, a: Word, b: Word) -> Word:
    """a // b of a not negative `a`, without a division where b is 1."""
    divides = fn.compare("ne", b, 1)
    (found,) = fn.choose(divides, ["i64"], [a], lambda: [fn.value(f"udiv i64 {a}, {b}")])
    return found


def _exact(fn: Function, a: Word, quotient: Word, b: Word, extent: Word) -> str:
    """Whether `a`, which may be negative, is a multiple of b within extent * b."""
    conditions = [
        fn.value(f"icmp sge i64 {a}, 0"),
        fn.value(f"icmp eq i64 {fn.mul(quotient, b)}, {a}"),
        fn.value(f"icmp slt i64 {quotient}, {extent}"),
    ]
    both = fn.value(f"and i1 {conditions[0]}, {conditions[1]}")
    return fn.value(f"and i1 {both}, {conditions[2]}")


def runs(fn: Function, count: Word, low: Word, high: Word, emit: Emit) -> None:
    """Pixels 0 to `count` of a line: those in [low, high) as one run, the others one by one.

    Args:
        emit: ``emit(first, pixels)`` emits a run, whose taps are those of its first pixel.
    """
    low = fn.min(fn.max(low, 0), count)
    high = fn.max(fn.min(high, count), low)
    with fn.loop(0, low) as q:
        emit(q, 1)
    some = fn.compare("slt", low, high)
    with fn.when(some):
        emit(low, fn.sub(high, low))
    with fn.loop(high, count) as q:
        emit(q, 1)
