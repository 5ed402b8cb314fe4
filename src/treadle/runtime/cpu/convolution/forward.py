"""Convolution: runs of pixels of an output row are the rows of a tile, taps its segments."""

from __future__ import annotations

from treadle.runtime.cpu.convolution.edges import each_part
from treadle.runtime.cpu.convolution.frame import group_extents, pixels, strip_pixels
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
from treadle.runtime.cpu.matmul.tiles import lanes


def add_forward(module: Module, element: str) -> None:
    """Add ``@conv2d_float`` or ``@conv2d_double``: operands x, filters and y."""
    define_shared_routine(
        module, f"conv2d_{element}", ("x", "filters", "y"), (*NUMBERS, "slot"),
        lambda fn, w: _entry(fn, w, element),
        lambda fn, w, first, last: _share(fn, w, first, last, element),
    )  # fmt: skip


def _entry(fn: Function, w: Words, element: str) -> Words:
    """Copy the panels of the filters, where that was chosen: all taps of one after another."""
    size, row = ELEMENT_BYTES[element], fn.mul(w["o"], ELEMENT_BYTES[element])
    taps = fn.mul(fn.mul(w["kh"], w["kw"]), w["c"])
    packed_row = fn.mul(w["vectors"], lanes(fn.module.target, element) * size)
    panel_bytes = fn.mul(taps, packed_row)
    packs = fn.compare("ne", w["pack"], 0)
    with fn.when(packs):
        packer = packer_code(fn, w["table"], element, "copy_panels")
        fn.emit(
            f"call void {packer}(ptr {w['filters']}, i64 {row}, ptr {w['workspace']}, "
            f"i64 {packed_row}, i64 {taps}, i64 {w['o']}, i64 {panel_bytes})"
        )
    count_calls(fn, w, w["n"])
    return {
        "tasks": fn.mul(w["n"], w["oh"]),
        "filter_row": fn.select(packs, packed_row, row),
        "filter_panel": fn.select(packs, panel_bytes, packed_row),  # bytes to the next one
    }


def _share(fn: Function, w: Words, first: Word, last: Word, element: str) -> None:
    """Output rows [first, last) of all images: strips that end with their image."""
    w |= pixels(fn, w, element)
    space = fn.offset(
        str(w["workspace"]), fn.add(w["shared"], fn.mul(w["worker"], w["frame"])), "i8"
    )
    packs = fn.compare("ne", w["pack"], 0)
    w["panels"] = fn.value(f"select i1 {packs}, ptr {w['workspace']}, ptr {w['filters']}")
    table = Table(fn, fn.offset(space, fn.sub(w["frame"], w["taps"]), "i8"))
    w |= group_extents(fn, w)
    w["columns"] = fn.mul(w["vectors"], lanes(fn.module.target, element))
    codes = tile_codes(fn, w["table"], element, 0)
    start, stop = fn.divide(first, w["oh"]), ceil_divide(fn, last, w["oh"])
    with fn.loop(start, stop) as image:
        before = fn.mul(image, w["oh"])
        low = fn.max(fn.sub(first, before), 0)
        high = fn.min(fn.sub(last, before), w["oh"])
        with fn.loop(low, high, w["strip"]) as row:
            leave_if_stopped(fn, w["call"], fn.compare("ne", fn.add(before, row), first))
            count = fn.min(w["strip"], fn.sub(high, row))
            base = strip_pixels(fn, w, image, row, count, space, element)
            _strip(fn, w, (image, row, count), base, table, codes, element)
            line = fn.mul(fn.add(before, row), w["ow"])
            rows = line, fn.add(line, fn.mul(count, w["ow"]))
            finish_block(fn, w, rows, (0, w["o"]))


def _strip(
    fn: Function, w: Words, rows: tuple[Word, Word, Word], base: Word, table: Table, codes: str,
    element: str,
) -> None:  # fmt: skip
    """Panel by panel, so that a panel of the filters stays in the cache."""
    image, first, count = rows
    panels = ceil_divide(fn, w["group_o"], w["columns"])
    tiles = EvenTiles(fn, w["ow"], w["tall"])
    with fn.loop(0, w["groups"]) as group, fn.loop(0, panels) as panel, fn.loop(0, count) as r:
        row = fn.add(first, r)
        _taps_of_row(fn, w, row, table)
        source = fn.offset(str(base), fn.mul(fn.mul(r, w["sh"]), w["row"]), "i8")
        source = fn.offset(source, fn.mul(group, w["group_c"]), element)
        y_row = fn.mul(fn.add(fn.mul(image, w["oh"]), row), w["ow"])
        with tiles.each() as tile:
            _tile(fn, w, (source, y_row, group, panel), tile, table, codes, element)


def _taps_of_row(fn: Function, w: Words, row: Word, table: Table) -> None:
    """The taps whose image row exists: a run of a window's row each, or a pixel if dilated."""
    y0 = fn.sub(fn.mul(row, w["sh"]), w["top"])
    table.clear()
    with fn.loop(0, w["kh"]) as i:
        down = fn.mul(i, w["dh"])
        inside = fn.value(f"icmp ult i64 {fn.add(y0, down)}, {w['h']}")
        with fn.when(inside), fn.loop(0, w["runs"]) as j:
            across = fn.mul(fn.mul(j, w["dw"]), w["pixel"])
            tap = fn.add(fn.mul(i, w["kw"]), j)
            filters = fn.mul(fn.mul(tap, w["group_c"]), w["filter_row"])
            table.append(fn.add(fn.mul(down, w["row"]), across), filters)


def _tile(
    fn: Function, w: Words, place: tuple[Word, Word, Word, Word], tile: tuple[Word, Word],
    table: Table, codes: str, element: str,
) -> None:  # fmt: skip
    source, y_row, group, panel = place
    size = ELEMENT_BYTES[element]
    column = fn.mul(panel, w["columns"])
    n = fn.min(w["columns"], fn.sub(w["group_o"], column))
    column = fn.add(column, fn.mul(group, w["group_o"]))
    step = fn.mul(w["sw"], w["pixel"])
    stride = fn.mul(w["o"], size)
    exact = fn.compare("ne", w["exact"], 0)
    first = fn.select(exact, fn.sub(0, w["left"]), 0)
    filters = fn.offset(str(w["panels"]), fn.mul(panel, w["filter_panel"]), "i8")
    filters = fn.offset(filters, fn.mul(group, w["group_o"]), element)

    def part(tap: Word, taps: Word, skip: Word, rows: Word, add: Word) -> None:
        pixel = fn.add(tile[0], skip)
        x = fn.add(fn.add(first, fn.mul(pixel, w["sw"])), tap)
        a = fn.offset(str(source), fn.mul(x, w["pixel"]), "i8")
        b = fn.offset(filters, fn.mul(fn.mul(tap, w["group_c"]), w["filter_row"]), "i8")
        place_y = fn.add(fn.mul(fn.add(y_row, pixel), w["o"]), column)
        c = fn.offset(str(w["y"]), place_y, element)
        k = fn.select(exact, fn.mul(taps, w["group_c"]), w["run"])
        call_tile(
            fn, element, codes, (rows, n, k), ((a, step), (b, w["filter_row"]), (c, stride)), add,
            (table.length(), table.pointer), ahead=w["ahead"],
        )  # fmt: skip

    each_part(fn, w, first, w["sw"], w["w"], tile, part)
