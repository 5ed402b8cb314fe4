"""Strips of images with their padding, copied where tiles can read across the border."""

from __future__ import annotations

from treadle.runtime.cpu.library_text import ELEMENT_BYTES, Words
from treadle.runtime.cpu.llvm_text import Function, Module, Word


def add_frames(module: Module, element: str) -> None:
    """``@frame`` (target, image, row0, rows, height, stride, columns, before, width, cell).

    Row r of the frame is row ``row0 + r`` of the image, whose rows are `stride` cells apart:
    `before` cells of zeros, the image's `columns` cells (as many as fit), and zeros up to `width`
    cells. Rows outside the image are left as they are: no tap reads them.
    """
    fn = Function(module)
    row_bytes = fn.mul(fn.mul("%width", "%cell"), ELEMENT_BYTES[element])
    before = fn.min("%before", "%width")
    inside = fn.max(fn.min("%columns", fn.sub("%width", before)), 0)
    begin, middle = fn.mul(before, "%cell"), fn.mul(inside, "%cell")
    after = fn.sub(fn.sub(fn.mul("%width", "%cell"), begin), middle)
    with fn.loop(0, "%rows") as r:
        y = fn.add("%row0", r)
        known = fn.value(f"icmp ult i64 {y}, %height")  # a negative row is huge
        with fn.when(known):
            target = fn.offset("%target", fn.mul(r, row_bytes), "i8")
            source = fn.offset("%image", fn.mul(y, fn.mul("%stride", "%cell")), element)
            fn.emit(f"call void @zero_{element}(ptr {target}, i64 {begin})")
            center = fn.offset(target, begin, element)
            fn.emit(f"call void @copy_{element}(ptr {center}, ptr {source}, i64 {middle})")
            end = fn.offset(center, middle, element)
            fn.emit(f"call void @zero_{element}(ptr {end}, i64 {after})")
    fn.emit("ret void")
    fn.define(
        "frame",
        "void @{}(ptr %target, ptr %image, i64 %row0, i64 %rows, i64 %height, i64 %stride, "
        "i64 %columns, i64 %before, i64 %width, i64 %cell)",
        "internal",
    )


def frame_rows(
    fn: Function, target: Word, image: Word, rows: tuple[Word, Word],
    extents: tuple[Word, Word, Word], before: Word, width: Word, cell: Word,
) -> None:  # fmt: skip
    """Copy `rows` = (first, how many) of an image of `extents` = (height, stride, columns)."""
    numbers = ", ".join(f"i64 {x}" for x in (*rows, *extents, before, width, cell))
    fn.emit(f"call void @frame(ptr {target}, ptr {image}, {numbers})")


def group_extents(fn: Function, w: Words) -> Words:
    """`group_c`, `group_o`: input and output channels of a group."""
    return {"group_c": fn.divide(w["c"], w["groups"]), "group_o": fn.divide(w["o"], w["groups"])}


def pixels(fn: Function, w: Words, element: str) -> Words:
    """Words with which windows find the pixels of the image; sizes are in bytes.

    `framed`: whether tiles read padding at the sides, so that frames are needed; `reach`: rows that
    a window spans; `width`: pixels of a row of the frame; `row`: bytes of a row; `pixel`: of one.
    """
    size = ELEMENT_BYTES[element]
    reach = fn.add(fn.mul(fn.sub(w["kw"], 1), w["dw"]), 1)
    needed = fn.add(fn.mul(fn.sub(w["ow"], 1), w["sw"]), reach)
    padded = fn.value(
        f"or i1 {fn.compare('sgt', w['left'], 0)}, {fn.compare('sgt', needed, w['w'])}"
    )
    padded = fn.value(f"and i1 {padded}, {fn.compare('eq', w['exact'], 0)}")
    width = fn.select(padded, needed, w["w"])
    pixel = fn.mul(w["c"], size)
    return {
        "framed": fn.select(padded, 1, 0),
        "reach": fn.add(fn.mul(fn.sub(w["kh"], 1), w["dh"]), 1),
        "width": width,
        "row": fn.mul(width, pixel),
        "pixel": pixel,
    }


def strip_pixels(
    fn: Function, w: Words, image: Word, first: Word, count: Word, frame: Word, element: str
) -> Word:
    """Where the window rows of output rows [first, first + count) of an image begin.

    The pointer is to image row ``first * sh - top``, which may lie outside the image.
    """
    cells = fn.mul(fn.mul(fn.mul(image, w["h"]), w["w"]), w["c"])
    pixels_ = fn.offset(str(w["x"]), cells, element)
    row0 = fn.sub(fn.mul(first, w["sh"]), w["top"])
    framed = fn.compare("ne", w["framed"], 0)
    direct = fn.offset(pixels_, fn.mul(row0, w["row"]), "i8")

    def copied() -> list[Word]:
        rows = fn.add(fn.mul(fn.sub(count, 1), w["sh"]), w["reach"])
        extents = (w["h"], w["w"], w["w"])
        frame_rows(fn, frame, pixels_, (row0, rows), extents, w["left"], w["width"], w["c"])
        return [frame]

    (place,) = fn.choose(framed, ["ptr"], [direct], copied)
    return place
