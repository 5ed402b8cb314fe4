"""Filter gradients by short convolutions.

Along each side the filters' gradient is a few sums over runs of outputs: a short convolution of a
tile's pixels with the gradients of its outputs. For each of the `PLANES` points their products,
summed over tiles, are a matrix product of channels by channels; the sums of a part of the images
are transformed back at its end. Channels are divided into blocks whose sums the caches hold.
"""

from __future__ import annotations

from treadle.runtime.cpu.convolution.filter_gradient import sum_parts
from treadle.runtime.cpu.convolution.points import (
    PLANES,
    SIZE,
    of_pixels,
    of_sums,
    of_weights,
    sums_of,
)
from treadle.runtime.cpu.convolution.transforms import call_transform, define_transform
from treadle.runtime.cpu.convolution.winograd import (
    add_frames_of_tiles,
    copy_frame,
    row_of_image,
    transform_pixels,
)
from treadle.runtime.cpu.convolution.winograd_tiling import NUMBERS
from treadle.runtime.cpu.library_text import (
    ELEMENT_BYTES,
    Words,
    add_vector_loops,
    ceil_divide,
    count_calls,
    define_routine,
    leave_if_stopped,
)
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.matmul.tile_calls import EvenTiles, call_tile, tile_codes
from treadle.runtime.cpu.matmul.tiles import lanes


def add_winograd_filters(module: Module, routine: str, element: str, window: list[int]) -> None:
    """Add ``@winograd3x3_conv2d_backprop_filter_float``: operands x, dy and df."""
    add_vector_loops(module, element)
    add_frames_of_tiles(module, element)
    define_transform(module, "pixels", element, of_pixels(), of_pixels())
    define_transform(module, "slopes", element, *(of_weights(sums_of(k)) for k in window))
    define_transform(module, "sums", element, *(of_sums(k) for k in window))
    define_routine(
        module, f"{routine}_{element}", ("x", "dy", "df"), (*NUMBERS, "slot"),
        lambda fn, w: _entry(fn, w, element),
        [
            lambda fn, w, task: _part(fn, w, task, element),
            lambda fn, w, task: sum_parts(fn, w, task, element),
        ],
    )  # fmt: skip


def _entry(fn: Function, w: Words, element: str) -> Words:
    count_calls(fn, w, w["n"])
    size = ELEMENT_BYTES[element]
    elements = fn.mul(fn.mul(fn.mul(w["kh"], w["kw"]), w["c"]), w["o"])
    lines = fn.mul(fn.mul(w["kh"], w["kw"]), w["c"])
    chunk = fn.max(fn.divide(fn.module.target.tuning.task_elements // 2, w["o"]), 1)
    c_blocks, o_blocks = (ceil_divide(fn, w[x], w[f"{x}_block"]) for x in ("c", "o"))
    return {
        "columns": fn.mul(w["vectors"], lanes(fn.module.target, element)),
        "rows": fn.mul(w["n"], w["th"]),
        "part_bytes": fn.mul(ceil_divide(fn, fn.mul(elements, size), 64), 64),
        "o_blocks": o_blocks,
        "blocks": fn.mul(c_blocks, o_blocks),
        "lines": lines,
        "chunk": chunk,
        "tasks0": fn.mul(w["parts"], fn.mul(c_blocks, o_blocks)),
        "tasks1": ceil_divide(fn, lines, chunk),
    }


def _part(fn: Function, w: Words, task: str, element: str) -> None:
    """A block of channels of a partial gradient: the sum over some rows of tiles, in order."""
    size = ELEMENT_BYTES[element]
    number = fn.divide(task, w["blocks"])
    first, extents = _block(fn, w, fn.sub(task, fn.mul(number, w["blocks"])))
    sums = fn.offset(
        str(w["workspace"]), fn.add(w["shared"], fn.mul(w["worker"], w["frame"])), "i8"
    )
    elements = fn.divide(fn.mul(w["plane"], PLANES), size)
    fn.emit(f"call void @zero_{element}(ptr {sums}, i64 {elements})")
    begin = fn.divide(fn.mul(w["rows"], number), w["parts"])
    end = fn.divide(fn.mul(w["rows"], fn.add(number, 1)), w["parts"])
    with fn.loop(begin, end, w["strip"]) as line:
        leave_if_stopped(fn, w["call"], fn.compare("ne", line, begin))
        lines = line, fn.min(fn.add(line, w["strip"]), end)
        _strip(fn, w, lines, sums, first, extents, element)
    c, o = extents
    part = fn.offset(str(w["workspace"]), fn.mul(number, w["part_bytes"]), "i8")
    part = fn.offset(part, fn.add(fn.mul(first[0], w["o"]), first[1]), element)
    tap = fn.mul(fn.mul(w["c"], w["o"]), size)
    with fn.loop(0, c) as channel:
        target = fn.offset(part, fn.mul(channel, w["o"]), element)
        source = fn.offset(sums, fn.mul(channel, w["sums"]), "i8")
        call_transform(
            fn, "sums", (source, fn.mul(w["plane"], SIZE), w["plane"]),
            (target, fn.mul(tap, w["kw"]), tap), o,
        )  # fmt: skip


def _block(fn: Function, w: Words, block: Word) -> tuple[tuple[Word, Word], tuple[Word, Word]]:
    """The first channels of inputs and of outputs of a block, and how many it has."""
    number = fn.divide(block, w["o_blocks"])
    c0 = fn.mul(number, w["c_block"])
    o0 = fn.mul(fn.sub(block, fn.mul(number, w["o_blocks"])), w["o_block"])
    c = fn.min(w["c_block"], fn.sub(w["c"], c0))
    return (c0, o0), (c, fn.min(w["o_block"], fn.sub(w["o"], o0)))


def _strip(
    fn: Function, w: Words, lines: tuple[Word, Word], sums: str, channels: tuple[Word, Word],
    extents: tuple[Word, Word], element: str,
) -> None:  # fmt: skip
    """Add the products of some rows of tiles, one after another through all images, for a block of
    channels."""
    frame = fn.offset(sums, fn.mul(w["plane"], PLANES), "i8")
    pixels = fn.offset(sums, w["first"], "i8")
    slopes = fn.offset(pixels, fn.mul(w["pixel_plane"], PLANES), "i8")
    first, last = lines
    with fn.loop(first, last) as line:
        image, row = row_of_image(fn, w, line)
        tile = fn.mul(fn.sub(line, first), w["tw"])
        x = fn.mul(fn.mul(fn.mul(image, w["h"]), w["w"]), w["c"])
        source = fn.offset(str(w["x"]), fn.add(x, channels[0]), element)
        target = fn.offset(pixels, fn.mul(tile, w["pixels"]), "i8")
        transform_pixels(fn, w, source, row, frame, target, (w["c"], extents[0]), element)
        y = fn.mul(fn.mul(fn.mul(image, w["oh"]), w["ow"]), w["o"])
        source = fn.offset(str(w["dy"]), fn.add(y, channels[1]), element)
        target = fn.offset(slopes, fn.mul(tile, w["sums"]), "i8")
        _slopes(fn, w, source, row, frame, target, extents[1], element)
    tiles = fn.mul(fn.sub(last, first), w["tw"])
    with fn.loop(0, PLANES) as plane:
        _products(fn, w, plane, tiles, (pixels, slopes, sums), extents, element)


def _slopes(
    fn: Function, w: Words, image: str, row: Word, frame: str, target: str, channels: Word,
    element: str,
) -> None:  # fmt: skip
    """Transform the gradients of the outputs of a row of tiles."""
    size = ELEMENT_BYTES[element]
    cell, pixel = fn.mul(channels, size), fn.mul(w["o"], size)
    columns = fn.mul(w["tw"], w["mw"])
    corner = fn.mul(row, w["mh"]), 0
    shape, extents = (w["mh"], columns), (w["oh"], w["ow"])
    copy_frame(fn, frame, image, corner, shape, extents, pixel, channels)
    with fn.loop(0, w["tw"]) as tile:
        source = fn.offset(frame, fn.mul(fn.mul(tile, w["mw"]), cell), "i8")
        to = fn.offset(target, fn.mul(tile, w["sums"]), "i8")
        call_transform(
            fn, "slopes", (source, fn.mul(columns, cell), cell),
            (to, fn.mul(w["sum_plane"], SIZE), w["sum_plane"]), channels,
        )  # fmt: skip


def _products(
    fn: Function, w: Words, plane: Word, tiles: Word, arrays: tuple[str, str, str],
    channels: tuple[Word, Word], element: str,
) -> None:  # fmt: skip
    """Add a strip's products for one of the points."""
    c, o = channels
    names = ("pixel_plane", "sum_plane", "plane")
    pixels, slopes, sums = (
        fn.offset(array, fn.mul(plane, w[name]), "i8")
        for array, name in zip(arrays, names, strict=True)
    )
    codes = tile_codes(fn, w["table"], element, 1)
    even = EvenTiles(fn, c, w["tall"])
    with fn.loop(0, ceil_divide(fn, o, w["columns"])) as panel:
        column = fn.mul(panel, w["columns"])
        count = fn.min(w["columns"], fn.sub(o, column))
        with even.each() as (start, height):
            target = fn.offset(fn.offset(sums, fn.mul(start, w["sums"]), "i8"), column, element)
            call_tile(
                fn, element, codes, (height, count, tiles),
                (
                    (fn.offset(pixels, start, element), w["pixels"]),
                    (fn.offset(slopes, column, element), w["sums"]),
                    (target, w["sums"]),
                ),
                1, ahead=0,
            )  # fmt: skip
