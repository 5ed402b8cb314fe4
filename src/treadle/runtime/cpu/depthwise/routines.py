"""Depthwise convolution and its gradients: lines of pixels with the taps that they see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from treadle.runtime.cpu.convolution.taps import Table
from treadle.runtime.cpu.depthwise.gather import add_gather
from treadle.runtime.cpu.depthwise.kernels import add_correlation, add_weighing
from treadle.runtime.cpu.depthwise.tiling import NUMBERS
from treadle.runtime.cpu.depthwise.windows import (
    Run,
    covering_taps,
    define_window_taps,
    each_run,
    pixel_bytes,
    runs,
)
from treadle.runtime.cpu.library_text import (
    ELEMENT_BYTES,
    Words,
    add_vector_loops,
    ceil_divide,
    define_routine,
    define_shared_routine,
    leave_if_stopped,
)
from treadle.runtime.cpu.llvm_text import Function, Module, Word


def add_depthwise(module: Module, element: str, routine: str) -> None:
    """Add ``@depthwise1_conv2d_float`` or its ``_backprop_input_`` or ``_backprop_filter_``; the
    number is the multiplier, the outputs of each channel.

    Args:
        routine: the name without the element type.
    """
    first, _, op = routine.partition("_")
    multiplier = int(first.removeprefix("depthwise"))
    add_vector_loops(module, element)
    define_window_taps(module)
    add = {
        "conv2d": _add_forward,
        "conv2d_backprop_input": _add_input_gradient,
        "conv2d_backprop_filter": _add_filter_gradient,
    }
    add[op](module, f"{routine}_{element}", element, multiplier)


def _add_forward(module: Module, name: str, element: str, multiplier: int) -> None:
    add_weighing(module, element, multiplier)
    define_shared_routine(
        module, name, ("x", "f", "y"), NUMBERS,
        lambda fn, w: _weighing(fn, w, element, "y", w["oh"]),
        _outputs,
    )  # fmt: skip


def _add_input_gradient(module: Module, name: str, element: str, multiplier: int) -> None:
    add_weighing(module, element, 1)
    if multiplier > 1:
        add_gather(module, element, multiplier)
    define_shared_routine(
        module, name, ("f", "dy", "dx"), NUMBERS,
        lambda fn, w: _weighing(fn, w, element, "dx", w["h"]),
        lambda fn, w, first, last: _input_gradients(fn, w, first, last, multiplier),
    )  # fmt: skip


def _add_filter_gradient(module: Module, name: str, element: str, multiplier: int) -> None:
    add_correlation(module, element, multiplier)
    define_routine(
        module, name, ("x", "dy", "df"), NUMBERS,
        lambda fn, w: _filter_words(fn, w, element),
        [
            lambda fn, w, task: _part(fn, w, task, element),
            lambda fn, w, task: _sum_parts(fn, w, element),
        ],
    )  # fmt: skip


def _weighing(fn: Function, w: Words, element: str, result: str, rows: Word) -> Words:
    """The words of a routine that computes `rows` rows of pixels for each image."""
    words = pixel_bytes(fn, w, element)
    side = "y" if result == "y" else "x"
    tuning = fn.module.target.tuning
    large = fn.compare("sgt", fn.mul(w["n"], words[f"{side}_image"]), tuning.l3.size // 4)
    place = fn.value(f"ptrtoint ptr {w[result]} to i64")
    begins = fn.value(f"or i64 {place}, {words[f'{side}_pixel']}")
    aligned = fn.compare("eq", fn.value(f"and i64 {begins}, {tuning.line - 1}"), 0)
    past = fn.value(f"and i1 {large}, {aligned}")
    return {"tasks": fn.mul(w["n"], rows), "past": fn.select(past, 1, 0), **words}


def _fence(fn: Function, w: Words) -> None:
    """Write the fence after which other threads see the stores past the caches."""
    if "past" in w and fn.module.target.is_x86:
        fn.module.declare("void @llvm.x86.sse.sfence()")
        with fn.when(fn.compare("ne", w["past"], 0)):
            fn.emit("call void @llvm.x86.sse.sfence()")


def _table(fn: Function, w: Words) -> Table:
    mine = fn.add(w["shared"], fn.mul(w["worker"], w["space"]))
    return Table(fn, fn.offset(str(w["workspace"]), mine, "i8"))


@contextmanager
def _images(
    fn: Function, w: Words, first: Word, last: Word, rows: Word
) -> Iterator[tuple[Word, tuple[Word, Word]]]:
    """A loop over the images that output rows [first, last) of all belong to, with their rows."""
    start = fn.divide(first, rows)
    with fn.loop(start, ceil_divide(fn, last, rows)) as image:
        with fn.when(fn.compare("ne", image, start)):
            _fence(fn, w)
            leave_if_stopped(fn, w["call"])
        before = fn.mul(image, rows)
        yield image, (fn.max(fn.sub(first, before), 0), fn.min(fn.sub(last, before), rows))


def _outputs(fn: Function, w: Words, first: Word, last: Word) -> None:
    """Output rows [first, last) of all images."""
    table = _table(fn, w).pointer
    with _images(fn, w, first, last, w["oh"]) as (image, rows):
        x = fn.offset(str(w["x"]), fn.mul(image, w["x_image"]), "i8")
        y = fn.offset(str(w["y"]), fn.mul(image, w["y_image"]), "i8")

        def run(r: Run) -> None:
            source = fn.offset(x, r.shift, "i8"), r.steps[0]
            target = _output(fn, w, y, r), r.steps[1]
            _weigh(fn, w, w["c"], source, target, (table, r.taps), r.pixels)

        each_run(fn, w, table, rows, run)
    _fence(fn, w)


def _output(fn: Function, w: Words, image: str, r: Run) -> str:
    """Where the first output of a run is."""
    place = fn.add(fn.mul(r.row, w["ow"]), r.column)
    return fn.offset(image, fn.mul(place, w["y_pixel"]), "i8")


def _weigh(
    fn: Function, w: Words, channels: Word, source: tuple[Word, Word], target: tuple[Word, Word],
    taps: tuple[str, Word], pixels: Word, past: Word | None = None,
) -> None:  # fmt: skip
    past = w["past"] if past is None else past
    fn.emit(
        f"call void @weigh(ptr {source[0]}, i64 {source[1]}, ptr {w['f']}, ptr {target[0]}, "
        f"i64 {target[1]}, ptr {taps[0]}, i64 {taps[1]}, i64 {past}, "
        f"i64 {pixels}, i64 {channels})"
    )


def _input_gradients(fn: Function, w: Words, first: Word, last: Word, multiplier: int) -> None:
    """Image rows [first, last): columns alike modulo the stride see the same taps."""
    table = _table(fn, w)
    f_reach = fn.mul(fn.sub(w["kw"], 1), w["dw"])
    # x + left - j dw lies in [0, (ow - 1) sw] for all taps j: x in [least, most].
    least = fn.sub(f_reach, w["left"])
    most = fn.sub(fn.mul(fn.sub(w["ow"], 1), w["sw"]), w["left"])
    weigh = _weigh_gradients if multiplier == 1 else _gather_gradients
    with fn.loop(first, last) as number, fn.loop(0, fn.min(w["sw"], w["w"])) as phase:
        image = fn.divide(number, w["h"])
        row = fn.sub(number, fn.mul(image, w["h"]))
        begins = fn.value(f"or i64 {row}, {phase}")
        with fn.when(fn.compare("eq", begins, 0)):
            _fence(fn, w)
            leave_if_stopped(fn, w["call"])
        dy = fn.offset(str(w["dy"]), fn.mul(image, w["y_image"]), "i8")
        line = fn.mul(fn.mul(number, w["w"]), w["x_pixel"])
        dx = fn.offset(str(w["dx"]), line, "i8")
        low = ceil_divide(fn, fn.max(fn.sub(least, phase), 0), w["sw"])
        high = fn.divide(fn.max(fn.add(fn.sub(most, phase), w["sw"]), 0), w["sw"])
        count = ceil_divide(fn, fn.sub(w["w"], phase), w["sw"])

        def run(q: Word, pixels: Word) -> None:
            column = fn.add(phase, fn.mul(q, w["sw"]))
            covering_taps(fn, w, table, row, column)
            target = fn.offset(dx, fn.mul(column, w["x_pixel"]), "i8")
            weigh(fn, w, dy, target, table, pixels)

        runs(fn, count, low, high, run)
    _fence(fn, w)


def _weigh_gradients(
    fn: Function, w: Words, dy: str, dx: str, table: Table, pixels: Word
) -> None:  # fmt: skip
    step = fn.mul(w["sw"], w["x_pixel"])
    taps = table.pointer, table.length()
    _weigh(fn, w, w["o"], (dy, w["y_pixel"]), (dx, step), taps, pixels)


def _gather_gradients(
    fn: Function, w: Words, dy: str, dx: str, table: Table, pixels: Word
) -> None:  # fmt: skip
    """Compute the share of each output in some pixels, behind the table of taps, then add the
    shares up for the channels."""
    step, outputs = fn.mul(w["sw"], w["x_pixel"]), w["y_pixel"]
    shares, taps = fn.offset(table.pointer, w["taps"], "i8"), (table.pointer, table.length())
    together = fn.module.target.tuning.chains
    with fn.loop(0, pixels, together) as done:
        count = fn.min(fn.sub(pixels, done), together)
        source = fn.offset(dy, fn.mul(done, outputs), "i8")
        _weigh(fn, w, w["o"], (source, outputs), (shares, outputs), taps, count, past=0)
        with fn.loop(0, count) as p:
            share = fn.offset(shares, fn.mul(p, outputs), "i8")
            target = fn.offset(dx, fn.mul(fn.add(done, p), step), "i8")
            fn.emit(f"call void @gather_sums(ptr {share}, ptr {target}, i64 {w['c']})")


# -- the filters' gradient -------------------------------------------------------------------------


def _filter_words(fn: Function, w: Words, element: str) -> Words:
    elements = fn.mul(fn.mul(w["kh"], w["kw"]), w["o"])
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
    table = _table(fn, w).pointer
    part = fn.offset(str(w["workspace"]), fn.mul(task, w["part_bytes"]), "i8")
    fn.emit(f"call void @zero_{element}(ptr {part}, i64 {w['elements']})")
    rows = fn.mul(w["n"], w["oh"])
    first = fn.divide(fn.mul(rows, task), w["parts"])
    last = fn.divide(fn.mul(rows, fn.add(task, 1)), w["parts"])
    with _images(fn, w, first, last, w["oh"]) as (image, inside):
        x = fn.offset(str(w["x"]), fn.mul(image, w["x_image"]), "i8")
        dy = fn.offset(str(w["dy"]), fn.mul(image, w["y_image"]), "i8")

        def run(r: Run) -> None:
            source = fn.offset(x, r.shift, "i8")
            fn.emit(
                f"call void @correlate(ptr {source}, i64 {r.steps[0]}, ptr {_output(fn, w, dy, r)},"
                f" i64 {r.steps[1]}, ptr {part}, ptr {table}, i64 {r.pixels}, i64 {r.taps}, "
                f"i64 {w['c']})"
            )

        each_run(fn, w, table, inside, run)


def _sum_parts(fn: Function, w: Words, element: str) -> None:
    """The filters' gradient: the partial ones added in order."""
    fn.emit(f"call void @copy_{element}(ptr {w['df']}, ptr {w['workspace']}, i64 {w['elements']})")
    with fn.loop(1, w["parts"]) as number:
        part = fn.offset(str(w["workspace"]), fn.mul(number, w["part_bytes"]), "i8")
        fn.emit(f"call void @add_{element}(ptr {w['df']}, ptr {part}, i64 {w['elements']})")
