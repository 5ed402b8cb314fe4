"""The filter gradient: cells of a window's row are the rows of a tile, output rows its segments."""

from __future__ import annotations

from treadle.runtime.cpu.convolution.edges import windows_inside
from treadle.runtime.cpu.convolution.frame import group_extents, pixels, strip_pixels
from treadle.runtime.cpu.convolution.taps import Table
from treadle.runtime.cpu.convolution.tiling import NUMBERS
from treadle.runtime.cpu.epilogue import finish_block
from treadle.runtime.cpu.library_text import (
    ELEMENT_BYTES,
    Words,
    ceil_divide,
    count_calls,
    define_routine,
    leave_if_stopped,
)
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.matmul.tile_calls import EvenTiles, call_tile, tile_codes
from treadle.runtime.cpu.matmul.tiles import lanes


def add_filter_gradient(module: Module, element: str) -> None:
    """Add ``@conv2d_backprop_filter_float``: operands x, dy and df."""
    define_routine(
        module, f"conv2d_backprop_filter_{element}", ("x", "dy", "df"), (*NUMBERS, "slot"),
        lambda fn, w: _entry(fn, w, element),
        [
            lambda fn, w, task: _part(fn, w, task, element),
            lambda fn, w, task: sum_parts(fn, w, task, element),
        ],
    )  # fmt: skip


def _entry(fn: Function, w: Words, element: str) -> Words:
    groups = group_extents(fn, w)
    lines = fn.mul(fn.mul(w["kh"], w["kw"]), groups["group_c"])
    elements = fn.mul(lines, w["o"])
    # The lines that one task adds up: at least one.
    count_calls(fn, w, w["n"])
    chunk = fn.max(fn.divide(fn.module.target.tuning.task_elements // 2, w["o"]), 1)
    return groups | {
        "elements": elements,
        "part_bytes": fn.mul(ceil_divide(fn, fn.mul(elements, ELEMENT_BYTES[element]), 64), 64),
        "strips": ceil_divide(fn, w["oh"], w["strip"]),  # of an image
        "tasks0": w["parts"],
        "tasks1": ceil_divide(fn, lines, chunk),
        "lines": lines,
        "chunk": chunk,
    }


def _part(fn: Function, w: Words, task: str, element: str) -> None:
    """Partial gradient `task`: the sum over its strips, in order."""
    w = w | pixels(fn, w, element)
    space = fn.offset(
        str(w["workspace"]), fn.add(w["shared"], fn.mul(w["worker"], w["frame"])), "i8"
    )
    table = Table(fn, fn.offset(space, fn.sub(w["frame"], w["taps"]), "i8"))
    part = fn.offset(str(w["workspace"]), fn.mul(task, w["part_bytes"]), "i8")
    fn.emit(f"call void @zero_{element}(ptr {part}, i64 {w['elements']})")
    codes = tile_codes(fn, w["table"], element, 1)
    w["columns"] = fn.mul(w["vectors"], lanes(fn.module.target, element))
    strips = fn.mul(w["n"], w["strips"])
    first = fn.divide(fn.mul(strips, task), w["parts"])
    last = fn.divide(fn.mul(strips, fn.add(task, 1)), w["parts"])
    with fn.loop(first, last) as strip:
        leave_if_stopped(fn, w["call"], fn.compare("ne", strip, first))
        image = fn.divide(strip, w["strips"])
        row = fn.mul(fn.sub(strip, fn.mul(image, w["strips"])), w["strip"])
        count = fn.min(w["strip"], fn.sub(w["oh"], row))
        base = strip_pixels(fn, w, image, row, count, space, element)
        _strip(fn, w, (image, row, count), base, part, table, codes, element)


def _strip(
    fn: Function, w: Words, rows: tuple[Word, Word, Word], base: Word, part: str, table: Table,
    codes: str, element: str,
) -> None:  # fmt: skip
    """Add the strip's products for every row of the window."""
    image, first, count = rows
    outputs = fn.mul(fn.mul(fn.add(fn.mul(image, w["oh"]), first), w["ow"]), w["o"])
    dy = fn.offset(str(w["dy"]), outputs, element)
    panels = ceil_divide(fn, w["group_o"], w["columns"])
    tiles = EvenTiles(fn, w["run"], w["tall"])
    with fn.loop(0, w["kh"]) as i:
        _rows(fn, w, i, first, count, table, element)
        with fn.loop(0, w["runs"]) as j:
            across, skip, stop = _columns(fn, w, j)
            source = fn.offset(str(base), fn.mul(across, w["pixel"]), "i8")
            outputs = fn.offset(dy, fn.mul(skip, w["o"]), element)
            line = fn.mul(fn.add(fn.mul(i, w["kw"]), j), w["group_c"])
            with (
                fn.loop(0, w["groups"]) as group,
                fn.loop(0, panels) as panel,
                tiles.each() as (cell, height),
            ):
                place = (line, cell, height, group, panel)
                arrays = source, outputs, part
                _tile(fn, w, arrays, place, fn.sub(stop, skip), table, codes, element)


def _columns(fn: Function, w: Words, j: Word) -> tuple[Word, Word, Word]:
    """For tap `j` of a window's row the output columns [skip, stop), and the image's column for
    the first one; all of them where frames hold what is beyond the sides."""
    exact = fn.compare("ne", w["exact"], 0)
    place = fn.mul(j, w["dw"])
    inside = fn.sub(place, w["left"])
    skip, stop = windows_inside(fn, inside, w["sw"], w["w"], w["ow"])
    skip = fn.select(exact, fn.min(skip, stop), 0)
    first = fn.add(fn.select(exact, inside, place), fn.mul(skip, w["sw"]))
    return first, skip, fn.select(exact, stop, w["ow"])


def _rows(
    fn: Function, w: Words, i: Word, first: Word, count: Word, table: Table, element: str
) -> None:
    """The output rows of the strip whose window row `i` lies in the image."""
    row_bytes = fn.mul(fn.mul(w["ow"], w["o"]), ELEMENT_BYTES[element])
    table.clear()
    with fn.loop(0, count) as r:
        down = fn.add(fn.mul(r, w["sh"]), fn.mul(i, w["dh"]))
        y = fn.add(fn.sub(fn.mul(first, w["sh"]), w["top"]), down)
        inside = fn.value(f"icmp ult i64 {y}, {w['h']}")
        with fn.when(inside):
            table.append(fn.mul(down, w["row"]), fn.mul(r, row_bytes))


def _tile(
    fn: Function, w: Words, arrays: tuple[Word, Word, Word],
    place: tuple[Word, Word, Word, Word, Word], columns: Word, table: Table, codes: str,
    element: str,
) -> None:  # fmt: skip
    source, dy, part = arrays
    line, cell, height, group, panel = place
    size = ELEMENT_BYTES[element]
    column = fn.mul(panel, w["columns"])
    n = fn.min(w["columns"], fn.sub(w["group_o"], column))
    column = fn.add(column, fn.mul(group, w["group_o"]))
    stride = fn.mul(w["o"], size)
    a = fn.offset(str(source), fn.add(fn.mul(group, w["group_c"]), cell), element)
    b = fn.offset(str(dy), column, element)
    target = fn.add(fn.mul(fn.add(line, cell), w["o"]), column)
    c = fn.offset(str(part), target, element)
    call_tile(
        fn, element, codes, (height, n, columns),
        ((a, fn.mul(w["sw"], w["pixel"])), (b, stride), (c, stride)), 1,
        (table.length(), table.pointer), ahead=w["ahead"],
    )  # fmt: skip


def sum_parts(fn: Function, w: Words, task: str, element: str) -> None:
    """Lines of chunk `task` of the filter gradient: the partial ones added in order."""
    line = fn.mul(task, w["chunk"])
    end = fn.min(fn.add(line, w["chunk"]), w["lines"])
    start, count = fn.mul(line, w["o"]), fn.mul(fn.sub(end, line), w["o"])
    target = fn.offset(str(w["df"]), start, element)
    parts = fn.offset(str(w["workspace"]), start, element)
    fn.emit(f"call void @copy_{element}(ptr {target}, ptr {parts}, i64 {count})")
    with fn.loop(1, w["parts"]) as number:
        part = fn.offset(parts, fn.mul(number, w["part_bytes"]), "i8")
        fn.emit(f"call void @add_{element}(ptr {target}, ptr {part}, i64 {count})")
    finish_block(fn, w, (line, end), (0, w["o"]))
