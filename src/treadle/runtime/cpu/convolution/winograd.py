"""Convolutions and input gradients by short convolutions in tiles of the images.

A tile of ``SIZE x SIZE`` pixels is transformed channel by channel, and so are the filters. For each
of the `PLANES` points the products of pixels and filters, summed over the channels, are a matrix
product with a row for each tile; these sums are transformed back into the outputs of the tile. The
input gradient is the convolution of the outputs' gradients with the filters turned round.
"""

from __future__ import annotations

from treadle.runtime.cpu.convolution import TO_INPUT
from treadle.runtime.cpu.convolution.points import (
    PLANES,
    SIZE,
    of_pixels,
    of_sums,
    of_weights,
    sums_of,
)
from treadle.runtime.cpu.convolution.transforms import call_transform, define_transform
from treadle.runtime.cpu.convolution.winograd_tiling import NUMBERS
from treadle.runtime.cpu.epilogue import finish_block
from treadle.runtime.cpu.library_text import (
    ELEMENT_BYTES,
    Words,
    add_vector_loops,
    ceil_divide,
    count_calls,
    define_routine,
)
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.matmul.tile_calls import EvenTiles, call_tile, packer_code, tile_codes
from treadle.runtime.cpu.matmul.tiles import lanes


def add_winograd(module: Module, routine: str, op: str, element: str, window: list[int]) -> None:
    """Add ``@winograd3x3_conv2d_float`` or the same of ``conv2d_backprop_input``."""
    add_vector_loops(module, element)
    add_frames_of_tiles(module, element)
    sides = [sums_of(k) for k in window]
    define_transform(module, "pixels", element, of_pixels(), of_pixels())
    define_transform(module, "weights", element, *(of_weights(k) for k in window))
    define_transform(module, "sums", element, *(of_sums(m) for m in sides))
    turned = op == TO_INPUT
    operands = ("filters", "x", "y") if turned else ("x", "filters", "y")
    phases = [
        lambda fn, w, task: _filters(fn, w, task, turned, element),
        lambda fn, w, task: _strip(fn, w, task, element),
    ]
    if turned:
        phases.insert(0, lambda fn, w, task: _turn(fn, w, task, element))
    define_routine(
        module, f"{routine}_{element}", operands, (*NUMBERS, "slot"),
        lambda fn, w: _entry(fn, w, turned, element), phases,
    )  # fmt: skip


def add_frames_of_tiles(module: Module, element: str) -> None:
    """``@tile_frame`` (target, image, y, x, rows, columns, h, w, pixel, channels): cells of the
    image from row y and column x on, zeros where they are outside of its h rows and w columns.

    pixel: bytes from pixel to pixel of the image, of which the first `channels` are copied.
    """
    fn = Function(module)
    cell = fn.mul("%channels", ELEMENT_BYTES[element])
    line = fn.mul("%columns", "%channels")
    before = fn.min(fn.max(fn.sub(0, "%x"), 0), "%columns")
    stop = fn.max(fn.min(fn.sub("%w", "%x"), "%columns"), before)
    begin, after = fn.mul(before, cell), fn.mul(stop, cell)
    dense = fn.compare("eq", cell, "%pixel")
    run = fn.select(dense, fn.mul(fn.sub(stop, before), "%channels"), "%channels")
    runs = fn.select(dense, fn.min(fn.sub(stop, before), 1), fn.sub(stop, before))
    with fn.loop(0, "%rows") as r:
        row = fn.add("%y", r)
        target = fn.offset("%target", fn.mul(fn.mul(r, "%columns"), cell), "i8")
        outside = fn.value(f"icmp uge i64 {row}, %h")
        with fn.when(outside):
            fn.emit(f"call void @zero_{element}(ptr {target}, i64 {line})")
        inside = fn.value(f"xor i1 {outside}, true")
        with fn.when(inside):
            fn.emit(f"call void @zero_{element}(ptr {target}, i64 {fn.mul(before, '%channels')})")
            place = fn.add(fn.mul(row, "%w"), fn.add("%x", before))
            source = fn.offset("%image", fn.mul(place, "%pixel"), "i8")
            center = fn.offset(target, begin, "i8")
            with fn.loop(0, runs) as pixel:
                to = fn.offset(center, fn.mul(pixel, cell), "i8")
                cells = fn.offset(source, fn.mul(pixel, "%pixel"), "i8")
                fn.emit(f"call void @copy_{element}(ptr {to}, ptr {cells}, i64 {run})")
            end = fn.offset(target, after, "i8")
            rest = fn.mul(fn.sub("%columns", stop), "%channels")
            fn.emit(f"call void @zero_{element}(ptr {end}, i64 {rest})")
    fn.emit("ret void")
    fn.define(
        "tile_frame",
        "void @{}(ptr %target, ptr %image, i64 %y, i64 %x, i64 %rows, i64 %columns, i64 %h, "
        "i64 %w, i64 %pixel, i64 %channels)",
        "internal",
    )


def copy_frame(
    fn: Function, target: Word, image: Word, corner: tuple[Word, Word], shape: tuple[Word, Word],
    extents: tuple[Word, Word], pixel: Word, channels: Word,
) -> None:  # fmt: skip
    """Copy `shape` cells from a corner of an image of some extents; see `add_frames_of_tiles`."""
    numbers = ", ".join(f"i64 {n}" for n in (*corner, *shape, *extents, pixel, channels))
    fn.emit(f"call void @tile_frame(ptr {target}, ptr {image}, {numbers})")


def transform_pixels(
    fn: Function, w: Words, image: Word, row: Word, frame: str, target: str,
    channels: tuple[Word, Word], element: str,
) -> None:  # fmt: skip
    """Transform the pixels of a row of tiles of an image, by way of a frame.

    channels: how many there are of a pixel, and how many are transformed.
    """
    size = ELEMENT_BYTES[element]
    columns = fn.add(fn.mul(fn.sub(w["tw"], 1), w["mw"]), SIZE)
    corner = fn.sub(fn.mul(row, w["mh"]), w["top"]), fn.sub(0, w["left"])
    pixel, cell = (fn.mul(n, size) for n in channels)
    copy_frame(
        fn, frame, image, corner, (SIZE, columns), (w["h"], w["w"]), pixel, channels[1]
    )  # fmt: skip
    with fn.loop(0, w["tw"]) as tile:
        source = fn.offset(frame, fn.mul(fn.mul(tile, w["mw"]), cell), "i8")
        to = fn.offset(target, fn.mul(tile, w["pixels"]), "i8")
        call_transform(
            fn, "pixels", (source, fn.mul(columns, cell), cell),
            (to, fn.mul(w["pixel_plane"], SIZE), w["pixel_plane"]), channels[1],
        )  # fmt: skip


def _entry(fn: Function, w: Words, turned: bool, element: str) -> Words:
    count_calls(fn, w, w["n"])
    rows = fn.mul(w["n"], w["th"])
    strips = ceil_divide(fn, rows, w["strip"])
    width = lanes(fn.module.target, element)
    found = {"columns": fn.mul(w["vectors"], width), "rows": rows}
    if not turned:
        return found | {"tasks0": w["c"], "tasks1": strips}
    row = fn.mul(fn.mul(ceil_divide(fn, w["o"], width), width), ELEMENT_BYTES[element])
    tasks = {"tasks0": fn.mul(w["kh"], w["kw"]), "tasks1": w["c"], "tasks2": strips}
    return found | {"turned_row": row} | tasks


def _turned_filters(fn: Function, w: Words) -> str:
    """Where the transposed filters are: behind the transformed ones."""
    return fn.offset(str(w["workspace"]), fn.mul(w["plane"], PLANES), "i8")


def _turn(fn: Function, w: Words, tap: str, element: str) -> None:
    """Transpose the filters of a tap: [inputs, outputs] of the forward convolution to rows of its
    outputs, which are the pixels' channels here."""
    size = ELEMENT_BYTES[element]
    transpose = packer_code(fn, w["table"], element, "transpose_panel")
    source = fn.offset(str(w["filters"]), fn.mul(tap, fn.mul(w["c"], w["o"])), element)
    target = fn.offset(_turned_filters(fn, w), fn.mul(tap, fn.mul(w["c"], w["turned_row"])), "i8")
    fn.emit(
        f"call void {transpose}(ptr {source}, i64 {fn.mul(w['c'], size)}, ptr {target}, "
        f"i64 {w['turned_row']}, i64 {w['c']}, i64 {w['o']})"
    )


def _filters(fn: Function, w: Words, channel: str, turned: bool, element: str) -> None:
    """Transform the filters of an input channel: rows of the panels of all points."""
    size = ELEMENT_BYTES[element]
    if turned:
        row = w["turned_row"]
        source = _turned_filters(fn, w)
        last = fn.sub(fn.mul(w["kh"], w["kw"]), 1)
        source = fn.offset(source, fn.mul(last, fn.mul(w["c"], row)), "i8")
        sign = -1
    else:
        row, source, sign = fn.mul(w["o"], size), str(w["filters"]), 1
    source = fn.offset(source, fn.mul(channel, row), "i8")
    tap = fn.mul(fn.mul(w["c"], row), sign)
    panel_row = fn.mul(w["columns"], size)
    with fn.loop(0, ceil_divide(fn, w["o"], w["columns"])) as panel:
        column = fn.mul(panel, w["columns"])
        count = fn.min(w["columns"], fn.sub(w["o"], column))
        place = fn.add(fn.mul(panel, w["panel"]), fn.mul(channel, panel_row))
        call_transform(
            fn, "weights", (fn.offset(source, column, element), fn.mul(tap, w["kw"]), tap),
            (fn.offset(str(w["workspace"]), place, "i8"), fn.mul(w["plane"], SIZE), w["plane"]),
            count,
        )  # fmt: skip


def _strip(fn: Function, w: Words, task: str, element: str) -> None:
    """Some rows of tiles, one after another through all images."""
    frame = fn.offset(
        str(w["workspace"]), fn.add(w["shared"], fn.mul(w["worker"], w["frame"])), "i8"
    )
    pixels = fn.offset(frame, w["first"], "i8")
    sums = fn.offset(pixels, fn.mul(w["pixel_plane"], PLANES), "i8")
    first = fn.mul(task, w["strip"])
    last = fn.min(fn.add(first, w["strip"]), w["rows"])
    with fn.loop(first, last) as line:
        image, row = row_of_image(fn, w, line)
        source = fn.offset(str(w["x"]), fn.mul(image, _extent(fn, w, "h", "w", "c")), element)
        place = fn.mul(fn.mul(fn.sub(line, first), w["tw"]), w["pixels"])
        target = fn.offset(pixels, place, "i8")
        transform_pixels(fn, w, source, row, frame, target, (w["c"], w["c"]), element)
    tiles = fn.mul(fn.sub(last, first), w["tw"])
    with fn.loop(0, PLANES) as plane:
        _products(fn, w, plane, tiles, pixels, sums, element)
    with fn.loop(first, last) as line:
        image, row = row_of_image(fn, w, line)
        place = fn.mul(fn.mul(fn.sub(line, first), w["tw"]), w["sums"])
        _outputs(fn, w, image, row, fn.offset(sums, place, "i8"), frame, element)


def row_of_image(fn: Function, w: Words, line: Word) -> tuple[Word, Word]:
    """The image and its row of tiles, of a row that is counted through all images."""
    image = fn.divide(line, w["th"])
    return image, fn.sub(line, fn.mul(image, w["th"]))


def _extent(fn: Function, w: Words, *names: str) -> Word:
    found: Word = 1
    for name in names:
        found = fn.mul(found, w[name])
    return found


def _products(
    fn: Function, w: Words, plane: Word, tiles: Word, pixels: str, sums: str, element: str
) -> None:
    """The sums over all channels for one of the points."""
    size = ELEMENT_BYTES[element]
    codes = tile_codes(fn, w["table"], element, 0)
    a = fn.offset(pixels, fn.mul(plane, w["pixel_plane"]), "i8")
    b = fn.offset(str(w["workspace"]), fn.mul(plane, w["plane"]), "i8")
    c = fn.offset(sums, fn.mul(plane, w["sum_plane"]), "i8")
    even = EvenTiles(fn, tiles, w["tall"])
    with fn.loop(0, ceil_divide(fn, w["o"], w["columns"])) as panel:
        column = fn.mul(panel, w["columns"])
        count = fn.min(w["columns"], fn.sub(w["o"], column))
        filters = fn.offset(b, fn.mul(panel, w["panel"]), "i8")
        with even.each() as (start, height):
            tile_a = fn.offset(a, fn.mul(start, w["pixels"]), "i8")
            tile_c = fn.offset(fn.offset(c, fn.mul(start, w["sums"]), "i8"), column, element)
            call_tile(
                fn, element, codes, (height, count, w["c"]),
                (
                    (tile_a, w["pixels"]), (filters, fn.mul(w["columns"], size)),
                    (tile_c, w["sums"]),
                ),
                0, ahead=0,
            )  # fmt: skip


def _outputs(
    fn: Function, w: Words, image: Word, row: Word, sums: str, space: str, element: str
) -> None:
    """Transform the sums of a row of tiles into outputs, and run the epilogue on their rows."""
    size = ELEMENT_BYTES[element]
    pixel = fn.mul(w["o"], size)
    first = fn.mul(row, w["mh"])
    rows = fn.min(w["mh"], fn.sub(w["oh"], first))
    line = fn.mul(fn.add(fn.mul(image, w["oh"]), first), w["ow"])
    with fn.loop(0, w["tw"]) as tile:
        column = fn.mul(tile, w["mw"])
        columns = fn.min(w["mw"], fn.sub(w["ow"], column))
        target = fn.offset(str(w["y"]), fn.mul(fn.add(line, column), w["o"]), element)
        y_row = fn.mul(w["ow"], pixel)
        whole = fn.value(
            f"and i1 {fn.compare('eq', rows, w['mh'])}, {fn.compare('eq', columns, w['mw'])}"
        )
        to = fn.value(f"select i1 {whole}, ptr {target}, ptr {space}")
        to_row = fn.select(whole, y_row, fn.mul(w["mw"], pixel))
        source = fn.offset(sums, fn.mul(tile, w["sums"]), "i8")
        planes = fn.mul(w["sum_plane"], SIZE), w["sum_plane"]
        call_transform(fn, "sums", (source, *planes), (to, to_row, pixel), w["o"])
        part = fn.value(f"xor i1 {whole}, true")
        with fn.when(part), fn.loop(0, rows) as r:
            source = fn.offset(space, fn.mul(r, to_row), "i8")
            place = fn.offset(target, fn.mul(r, y_row), "i8")
            run = fn.mul(columns, w["o"])
            fn.emit(f"call void @copy_{element}(ptr {place}, ptr {source}, i64 {run})")
    finish_block(fn, w, (line, fn.add(line, fn.mul(rows, w["ow"]))), (0, w["o"]))
