"""Depthwise convolution and its gradients: lines of pixels with the taps that they see."""

from __future__ import annotations

from treadle.runtime.cpu.convolution.taps import Table
from treadle.runtime.cpu.depthwise.kernels import add_kernels, fills_lines
from treadle.runtime.cpu.depthwise.plan import NUMBERS
from treadle.runtime.cpu.depthwise.windows import covering_taps, pixel_bytes, runs, window_taps
from treadle.runtime.cpu.library_text import (
    ELEMENT_BYTES,
    Words,
    add_vector_loops,
    ceil_divide,
    define_routine,
    define_shared_routine,
)
from treadle.runtime.cpu.llvm_text import Function, Module, Word

PAST_BYTES = 8 << 20  # results of more bytes are stored past the caches
LINE = 64


def add_depthwise(module: Module, element: str) -> None:
    """Add ``@depthwise_conv2d_float`` and its ``_backprop_input_`` and ``_backprop_filter_``."""
    add_vector_loops(module, element)
    add_kernels(module, element)
    define_shared_routine(
        module, f"depthwise_conv2d_{element}", ("x", "f", "y"), NUMBERS,
        lambda fn, w: _weighing(fn, w, element, "y", w["oh"]),
        _outputs,
    )  # fmt: skip
    define_shared_routine(
        module, f"depthwise_conv2d_backprop_input_{element}", ("f", "dy", "dx"), NUMBERS,
        lambda fn, w: _weighing(fn, w, element, "dx", w["h"]),
        _input_gradients,
    )  # fmt: skip
    define_routine(
        module, f"depthwise_conv2d_backprop_filter_{element}", ("x", "dy", "df"), NUMBERS,
        lambda fn, w: _filter_words(fn, w, element),
        [
            lambda fn, w, task: _part(fn, w, task, element),
            lambda fn, w, task: _sum_parts(fn, w, element),
        ],
    )  # fmt: skip


def _weighing(fn: Function, w: Words, element: str, result: str, rows: Word) -> Words:
    """The words of a routine that computes `rows` rows of pixels for each image."""
    words = pixel_bytes(fn, w, element)
    image = words["y_image" if result == "y" else "x_image"]
    large = fn.compare("sgt", fn.mul(w["n"], image), PAST_BYTES)
    place = fn.value(f"ptrtoint ptr {w[result]} to i64")
    begins = fn.value(f"or i64 {place}, {words['pixel']}")
    aligned = fn.compare("eq", fn.value(f"and i64 {begins}, {LINE - 1}"), 0)
    past = fn.value(f"and i1 {large}, {aligned}")
    return {"tasks": fn.mul(w["n"], rows), "past": fn.select(past, 1, 0), **words}


def _fence(fn: Function, w: Words) -> None:
    """Other threads see what was stored past the caches after this."""
    if fills_lines(fn.module.target):
        fn.module.declare("void @llvm.x86.sse.sfence()")
        with fn.when(fn.compare("ne", w["past"], 0)):
            fn.emit("call void @llvm.x86.sse.sfence()")


def _table(fn: Function, w: Words) -> Table:
    mine = fn.add(w["shared"], fn.mul(w["worker"], w["taps"]))
    return Table(fn, fn.offset(str(w["workspace"]), mine, "i8"))


def _complete(fn: Function, w: Words) -> tuple[Word, Word]:
    """Output columns whose whole window row lies in the image: from, to."""
    reach = fn.mul(fn.sub(w["kw"], 1), w["dw"])
    last = fn.sub(fn.sub(fn.add(w["w"], w["left"]), reach), 1)  # where the last window starts
    return ceil_divide(fn, w["left"], w["sw"]), fn.divide(fn.max(fn.add(last, w["sw"]), 0), w["sw"])


def _outputs(fn: Function, w: Words, first: Word, last: Word) -> None:
    """Output rows [first, last) of all images."""
    table = _table(fn, w)
    low, high = _complete(fn, w)
    with fn.loop(first, last) as number:
        image = fn.divide(number, w["oh"])
        row = fn.sub(number, fn.mul(image, w["oh"]))
        x = fn.offset(str(w["x"]), fn.mul(image, w["x_image"]), "i8")
        line = fn.mul(fn.mul(number, w["ow"]), w["pixel"])
        y = fn.offset(str(w["y"]), line, "i8")

        def run(column: Word, pixels: Word) -> None:
            window_taps(fn, w, table, row, column)
            target = fn.offset(y, fn.mul(column, w["pixel"]), "i8")
            _weigh(fn, w, (x, fn.mul(w["sw"], w["pixel"])), (target, w["pixel"]), table, pixels)

        runs(fn, w["ow"], low, high, run)
    _fence(fn, w)


def _weigh(
    fn: Function, w: Words, source: tuple[Word, Word], target: tuple[Word, Word], table: Table,
    pixels: Word,
) -> None:  # fmt: skip
    fn.emit(
        f"call void @weigh(ptr {source[0]}, i64 {source[1]}, ptr {w['f']}, ptr {target[0]}, "
        f"i64 {target[1]}, ptr {table.pointer}, i64 {table.length()}, i64 {w['past']}, "
        f"i64 {pixels}, i64 {w['c']})"
    )


def _input_gradients(fn: Function, w: Words, first: Word, last: Word) -> None:
    """Image rows [first, last): columns alike modulo the stride see the same taps."""
    table = _table(fn, w)
    f_reach = fn.mul(fn.sub(w["kw"], 1), w["dw"])
    # x + left - j dw lies in [0, (ow - 1) sw] for all taps j: x in [least, most].
    least = fn.sub(f_reach, w["left"])
    most = fn.sub(fn.mul(fn.sub(w["ow"], 1), w["sw"]), w["left"])
    with fn.loop(first, last) as number, fn.loop(0, fn.min(w["sw"], w["w"])) as phase:
        image = fn.divide(number, w["h"])
        row = fn.sub(number, fn.mul(image, w["h"]))
        dy = fn.offset(str(w["dy"]), fn.mul(image, w["y_image"]), "i8")
        line = fn.mul(fn.mul(number, w["w"]), w["pixel"])
        dx = fn.offset(str(w["dx"]), line, "i8")
        low = ceil_divide(fn, fn.max(fn.sub(least, phase), 0), w["sw"])
        high = fn.divide(fn.max(fn.add(fn.sub(most, phase), w["sw"]), 0), w["sw"])
        count = ceil_divide(fn, fn.sub(w["w"], phase), w["sw"])

        def run(q: Word, pixels: Word) -> None:
            column = fn.add(phase, fn.mul(q, w["sw"]))
            covering_taps(fn, w, table, row, column)
            target = fn.offset(dx, fn.mul(column, w["pixel"]), "i8")
            step = fn.mul(w["sw"], w["pixel"])
            _weigh(fn, w, (dy, w["pixel"]), (target, step), table, pixels)

        runs(fn, count, low, high, run)
    _fence(fn, w)


# -- the filters' gradient -------------------------------------------------------------------------


def _filter_words(fn: Function, w: Words, element: str) -> Words:
    elements = fn.mul(fn.mul(w["kh"], w["kw"]), w["c"])
    size = fn.mul(elements, ELEMENT_BYTES[element])
    return {
        "elements": elements,
        "part_bytes": fn.mul(ceil_divide(fn, size, 64), 64),
        "tasks0": w["parts"],
        "tasks1": 1,
        **pixel_bytes(fn, w, element),
    }


def _part(fn: Function, w: Words, task: Word, element: str) -> None:
    """Partial gradient `task`: the sum over its output rows, in order."""
    table = _table(fn, w)
    low, high = _complete(fn, w)
    part = fn.offset(str(w["workspace"]), fn.mul(task, w["part_bytes"]), "i8")
    fn.emit(f"call void @zero_{element}(ptr {part}, i64 {w['elements']})")
    rows = fn.mul(w["n"], w["oh"])
    first = fn.divide(fn.mul(rows, task), w["parts"])
    last = fn.divide(fn.mul(rows, fn.add(task, 1)), w["parts"])
    with fn.loop(first, last) as number:
        image = fn.divide(number, w["oh"])
        row = fn.sub(number, fn.mul(image, w["oh"]))
        x = fn.offset(str(w["x"]), fn.mul(image, w["x_image"]), "i8")
        line = fn.mul(fn.mul(number, w["ow"]), w["pixel"])
        dy = fn.offset(str(w["dy"]), line, "i8")

        def run(column: Word, pixels: Word) -> None:
            window_taps(fn, w, table, row, column)
            source = fn.offset(dy, fn.mul(column, w["pixel"]), "i8")
            step = fn.mul(w["sw"], w["pixel"])
            fn.emit(
                f"call void @correlate(ptr {x}, i64 {step}, ptr {source}, i64 {w['pixel']}, "
                f"ptr {part}, ptr {table.pointer}, i64 {pixels}, i64 {table.length()}, "
                f"i64 {w['c']})"
            )

        runs(fn, w["ow"], low, high, run)


def _sum_parts(fn: Function, w: Words, element: str) -> None:
    """The filters' gradient: the partial ones added in order."""
    fn.emit(f"call void @copy_{element}(ptr {w['df']}, ptr {w['workspace']}, i64 {w['elements']})")
    with fn.loop(1, w["parts"]) as number:
        part = fn.offset(str(w["workspace"]), fn.mul(number, w["part_bytes"]), "i8")
        fn.emit(f"call void @add_{element}(ptr {w['df']}, ptr {part}, i64 {w['elements']})")
