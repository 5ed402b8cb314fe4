"""The input gradient: for each image row, runs of pixels alike modulo the stride are tiles.

dx[y, x] sums dy[(y + top - i dh) / sh, (x + left - j dw) / sw] filters[i, j]^T over the taps
(i, j) for which both divisions are exact: nothing is multiplied with zeros between the outputs.
"""

from __future__ import annotations

from treadle.runtime.cpu.convolution.edges import each_part
from treadle.runtime.cpu.convolution.frame import frame_rows, group_extents
from treadle.runtime.cpu.convolution.taps import Table
from treadle.runtime.cpu.convolution.tiling import NUMBERS
from treadle.runtime.cpu.epilogue import finish_block
from treadle.runtime.cpu.library_text import (
    ELEMENT_BYTES,
    Words,
    ceil_divide,
    count_calls,
    define_shared_routine,
    leave_if_stopped,
)
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.matmul.tile_calls import EvenTiles, call_tile, packer_code, tile_codes
from treadle.runtime.cpu.matmul.tiles import ALONG, lanes


def add_input_gradient(module: Module, element: str) -> None:
    """Add ``@conv2d_backprop_input_float``: operands filters, dy and dx."""
    define_shared_routine(
        module, f"conv2d_backprop_input_{element}", ("filters", "dy", "dx"), (*NUMBERS, "slot"),
        lambda fn, w: _entry(fn, w, element),
        lambda fn, w, first, last: _share(fn, w, first, last, element),
    )  # fmt: skip


def _entry(fn: Function, w: Words, element: str) -> Words:
    """Transpose the filters, tap after tap: [o, c] with c filled up to whole vectors. Dot products
    read them where they are."""
    width, size = lanes(fn.module.target, element), ELEMENT_BYTES[element]
    groups = group_extents(fn, w)
    c = groups["group_c"]
    row = fn.mul(fn.mul(ceil_divide(fn, c, width), width), size)
    as_they_are = fn.mul(w["o"], size)
    dots = fn.compare("ne", w["dots"], 0)
    with fn.loop(0, fn.select(dots, 0, fn.mul(w["kh"], w["kw"]))) as tap:
        transpose = packer_code(fn, w["table"], element, "transpose_panel")
        source = fn.offset(str(w["filters"]), fn.mul(tap, fn.mul(c, w["o"])), element)
        target = fn.offset(str(w["workspace"]), fn.mul(tap, fn.mul(w["o"], row)), "i8")
        fn.emit(
            f"call void {transpose}(ptr {source}, i64 {as_they_are}, ptr {target}, "
            f"i64 {row}, i64 {w['o']}, i64 {c})"
        )
    count_calls(fn, w, w["n"])
    # Bytes from row to row of the filters, from tap to tap, and from an output, or from an input,
    # to the next.
    return groups | {
        "filter_row": fn.select(dots, as_they_are, row),
        "tap_bytes": fn.select(dots, fn.mul(c, as_they_are), fn.mul(w["o"], row)),
        "filter_o": fn.select(dots, size, row),
        "filter_c": fn.select(dots, as_they_are, size),
        "tasks": fn.mul(w["n"], w["h"]),
    }


def _share(fn: Function, w: Words, first: Word, last: Word, element: str) -> None:
    """Image rows [first, last) of all images: strips that end with their image."""
    size = ELEMENT_BYTES[element]
    space = fn.offset(
        str(w["workspace"]), fn.add(w["shared"], fn.mul(w["worker"], w["frame"])), "i8"
    )
    table = Table(fn, fn.offset(space, fn.sub(w["frame"], w["taps"]), "i8"))
    dots = fn.compare("ne", w["dots"], 0)
    codes = tile_codes(fn, w["table"], element, fn.select(dots, ALONG.index("dots"), 0))
    w["lanes"] = fn.select(dots, 1, lanes(fn.module.target, element))
    w["columns"] = fn.mul(w["vectors"], w["lanes"])
    w["matrices"] = fn.value(f"select i1 {dots}, ptr {w['filters']}, ptr {w['workspace']}")
    w["pixel"] = fn.mul(w["o"], size)
    # Output columns that some tap of some pixel asks for, inside or outside the outputs.
    back = fn.divide(fn.mul(fn.sub(w["kw"], 1), w["dw"]), w["sw"])
    exact = fn.compare("ne", w["exact"], 0)
    w["frame0"] = fn.select(exact, 0, fn.sub(fn.divide(w["left"], w["sw"]), back))
    end = fn.divide(fn.sub(fn.add(w["w"], w["left"]), 1), w["sw"])
    w["width"] = fn.select(exact, w["ow"], fn.add(fn.sub(end, w["frame0"]), 1))
    w["row"] = fn.mul(w["width"], w["pixel"])
    w["up"] = fn.divide(fn.mul(fn.sub(w["kh"], 1), w["dh"]), w["sh"])
    start, stop = fn.divide(first, w["h"]), ceil_divide(fn, last, w["h"])
    with fn.loop(start, stop) as image:
        before = fn.mul(image, w["h"])
        low = fn.max(fn.sub(first, before), 0)
        high = fn.min(fn.sub(last, before), w["h"])
        with fn.loop(low, high, w["strip"]) as row:
            leave_if_stopped(fn, w["call"], fn.compare("ne", fn.add(before, row), first))
            count = fn.min(w["strip"], fn.sub(high, row))
            row0, source = _outputs(fn, w, image, row, count, space, element)
            _strip(fn, w, (image, row, count, row0), source, table, codes, element)
            line = fn.mul(fn.add(before, row), w["w"])
            rows = line, fn.add(line, fn.mul(count, w["w"]))
            finish_block(fn, w, rows, (0, w["c"]))


def _outputs(
    fn: Function, w: Words, image: Word, first: Word, count: Word, space: str, element: str
) -> tuple[Word, str]:
    """The first of the output rows that image rows [first, first + count) need, which may be
    negative, and where it is: in a frame into which the rows are copied, or among the outputs."""
    top = fn.add(first, w["top"])
    row0 = fn.sub(fn.divide(top, w["sh"]), w["up"])
    end = fn.add(fn.divide(fn.sub(fn.add(top, count), 1), w["sh"]), 1)
    rows = (row0, fn.sub(end, row0))
    outputs = fn.mul(fn.mul(fn.mul(image, w["oh"]), w["ow"]), w["o"])
    source = fn.offset(str(w["dy"]), outputs, element)
    skipped = fn.max(w["frame0"], 0)  # columns that no pixel asks for
    lacking = fn.max(fn.sub(0, w["frame0"]), 0)  # zeros in front of the first column
    extents = (w["oh"], w["ow"], fn.sub(w["ow"], skipped))
    begin = fn.offset(source, fn.mul(skipped, w["o"]), element)
    framed = fn.compare("eq", w["exact"], 0)
    with fn.when(framed):
        frame_rows(fn, space, begin, rows, extents, lacking, w["width"], w["o"])
    direct = fn.offset(source, fn.mul(row0, w["row"]), "i8")
    return row0, fn.value(f"select i1 {framed}, ptr {space}, ptr {direct}")


def _strip(
    fn: Function, w: Words, rows: tuple[Word, Word, Word, Word], space: str, table: Table,
    codes: str, element: str,
) -> None:  # fmt: skip
    image, first, count, row0 = rows
    panels = ceil_divide(fn, w["group_c"], w["columns"])
    with (
        fn.loop(0, w["groups"]) as group,
        fn.loop(0, panels) as panel,
        fn.loop(first, fn.add(first, count)) as row,
        fn.loop(0, w["sw"]) as phase,
    ):
        lowest = fn.divide(fn.sub(fn.add(w["left"], fn.sub(w["sw"], 1)), phase), w["sw"])
        end = fn.sub(fn.add(fn.add(w["w"], w["left"]), fn.sub(w["sw"], 1)), phase)
        length = fn.sub(fn.divide(end, w["sw"]), lowest)
        some = fn.compare("sgt", length, 0)
        with fn.when(some):
            _taps(fn, w, row, phase, row0, table)
            place = (image, row, phase, lowest, length, group, panel)
            _pixels(fn, w, place, space, table, codes, element)


def _taps(fn: Function, w: Words, row: Word, phase: Word, row0: Word, table: Table) -> None:
    """The taps through which outputs depend on pixels of this row and phase, window column by
    window column from the last to the first: so the outputs that they read follow one another."""
    y = fn.add(row, w["top"])
    table.clear()
    with fn.loop(0, w["kw"]) as back:
        j = fn.sub(fn.sub(w["kw"], 1), back)
        across, fits = _exact(fn, fn.sub(phase, fn.mul(j, w["dw"])), w["sw"], w["kw"], w["dw"])
        with fn.when(fits), fn.loop(0, w["kh"]) as i:
            down = fn.sub(y, fn.mul(i, w["dh"]))
            out, exact = _exact(fn, down, w["sh"], w["kh"], w["dh"])
            known = fn.value(f"icmp ult i64 {out}, {w['oh']}")
            hit = fn.value(f"and i1 {exact}, {known}")
            with fn.when(hit):
                rows = fn.mul(fn.sub(out, row0), w["row"])
                pixels = fn.add(rows, fn.mul(across, w["pixel"]))
                tap = fn.add(fn.mul(i, w["kw"]), j)
                table.append(pixels, fn.mul(tap, w["tap_bytes"]))


def _exact(fn: Function, value: Word, by: Word, window: Word, step: Word) -> tuple[Word, str]:
    """``value / by``, rounded down, and whether it is exact; value > -window * step. A division
    takes as long as some steps of a tile: there is none by 1."""

    def divided() -> list[Word]:
        lift = fn.mul(window, step)  # a multiple of `by` that makes it positive: lift * by
        lifted = fn.add(value, fn.mul(lift, by))
        quotient = fn.divide(lifted, by)
        return [fn.sub(quotient, lift), fn.sub(lifted, fn.mul(quotient, by))]

    divides = fn.compare("ne", by, 1)
    quotient, rest = fn.choose(divides, ["i64", "i64"], [value, 0], divided)
    return quotient, str(fn.compare("eq", rest, 0))


def _pixels(
    fn: Function, w: Words, place: tuple[Word, Word, Word, Word, Word, Word, Word], space: str,
    table: Table, codes: str, element: str,
) -> None:  # fmt: skip
    """The tiles of one row and phase: pixels ``(lowest + i) * sw + phase - left``."""
    image, row, phase, lowest, length, group, panel = place
    size = ELEMENT_BYTES[element]
    column = fn.mul(panel, w["columns"])
    n = fn.min(w["columns"], fn.sub(w["group_c"], column))
    first_o = fn.mul(group, w["group_o"])
    line = fn.mul(fn.add(fn.mul(image, w["h"]), row), w["w"])
    exact = fn.compare("ne", w["exact"], 0)
    first = fn.sub(fn.add(w["left"], 1), w["kw"])
    every = table.length()
    rows_of_taps = fn.select(exact, fn.divide(every, w["kw"]), every)  # alike for all columns
    b = fn.offset(str(w["matrices"]), fn.mul(column, w["filter_c"]), "i8")
    b = fn.offset(b, fn.mul(first_o, w["filter_o"]), "i8")
    stride = fn.mul(fn.mul(w["sw"], w["c"]), size)

    def part(
        tile: tuple[Word, Word], tap: Word, taps: Word, skip: Word, rows: Word, add: Word
    ) -> None:
        q = fn.add(fn.add(lowest, tile[0]), skip)
        x = fn.sub(fn.add(fn.mul(q, w["sw"]), phase), w["left"])
        a = fn.offset(space, fn.mul(fn.sub(q, w["frame0"]), w["pixel"]), "i8")
        a = fn.offset(a, first_o, element)
        target = fn.add(fn.mul(fn.add(line, x), w["c"]), fn.mul(group, w["group_c"]))
        target = fn.add(target, column)
        c = fn.offset(str(w["dx"]), target, element)
        segments = fn.mul(rows_of_taps, fn.select(exact, taps, 1))
        start = fn.offset(table.pointer, fn.mul(fn.mul(tap, rows_of_taps), 2), "i64")
        call_tile(
            fn, element, codes, (rows, n, w["group_o"]),
            ((a, w["pixel"]), (b, w["filter_row"]), (c, stride)), add, (segments, start),
            w["lanes"], w["ahead"],
        )  # fmt: skip

    with EvenTiles(fn, length, w["tall"]).each() as tile:
        each_part(fn, w, first, 1, w["ow"], tile, lambda *bounds: part(tile, *bounds))
