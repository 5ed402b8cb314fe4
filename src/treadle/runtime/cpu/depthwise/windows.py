"""Which taps of a window a pixel sees: tables of taps, borders and the runs between them."""

from __future__ import annotations

from collections.abc import Callable

from treadle.runtime.cpu.convolution.taps import Table
from treadle.runtime.cpu.library_text import ELEMENT_BYTES, Words
from treadle.runtime.cpu.llvm_text import Function, Word

Emit = Callable[[Word, Word], None]


def pixel_bytes(fn: Function, w: Words, element: str) -> Words:
    """`pixel`: bytes of a pixel; `x_image`, `y_image`: of an image and of its outputs."""
    pixel = fn.mul(w["c"], ELEMENT_BYTES[element])
    return {
        "pixel": pixel,
        "x_image": fn.mul(fn.mul(w["h"], w["w"]), pixel),
        "y_image": fn.mul(fn.mul(w["oh"], w["ow"]), pixel),
    }


def window_taps(fn: Function, w: Words, table: Table, row: Word, column: Word) -> None:
    """Image pixels that the window of output (row, column) covers, in the window's order."""
    table.clear()
    y0 = fn.sub(fn.mul(row, w["sh"]), w["top"])
    x0 = fn.sub(fn.mul(column, w["sw"]), w["left"])
    with fn.loop(0, w["kh"]) as i:
        y = fn.add(y0, fn.mul(i, w["dh"]))
        with fn.when(_inside(fn, y, w["h"])), fn.loop(0, w["kw"]) as j:
            x = fn.add(x0, fn.mul(j, w["dw"]))
            with fn.when(_inside(fn, x, w["w"])):
                _append(fn, w, table, fn.add(fn.mul(y, w["w"]), x), i, j)


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
                _append(fn, w, table, fn.add(fn.mul(oy, w["ow"]), ox), i, j)


def _append(fn: Function, w: Words, table: Table, pixel: Word, i: Word, j: Word) -> None:
    tap = fn.add(fn.mul(i, w["kw"]), j)
    table.append(fn.mul(pixel, w["pixel"]), fn.mul(tap, w["pixel"]))


def _inside(fn: Function, position: Word, extent: Word) -> str:
    return fn.value(f"icmp ult i64 {position}, {extent}")  # a negative one is huge


def _quotient(fn: Function, a: Word, b: Word) -> Word:
    """a // b of a not negative `a`, without a division where b is 1."""
    k = fn.unique()
    fn.branch(f"quotient{k}")
    fn.label(f"quotient{k}")
    fn.emit(f"br i1 {fn.compare('eq', b, 1)}, label %divided{k}, label %divide{k}")
    fn.label(f"divide{k}")
    found = fn.value(f"udiv i64 {a}, {b}")
    fn.branch(f"divided{k}")
    fn.label(f"divided{k}")
    return fn.value(f"phi i64 [{a}, %quotient{k}], [{found}, %divide{k}]")


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
