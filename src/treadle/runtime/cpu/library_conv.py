"""The convolution routines: blocks of image patches and matrix products.

A patch row holds the window of one output position: [window_h, window_w, channels]. Blocks are
runs of output rows of all images, so small that their patches stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.runtime.cpu.library_text import (
    FLOATS,
    Words,
    add_gemm,
    add_vector_loops,
    call_gemm,
    ceil_divide,
    define_routine,
)  # fmt: skip
from treadle.runtime.cpu.llvm_text import Function, Module, Word

GEOMETRY = (
    "n", "h", "w", "c", "kh", "kw", "o", "oh", "ow", "sh", "sw", "dh", "dw", "top", "left",
)  # fmt: skip
# `rows`: most output rows of a block; `bytes`: a worker's share of the workspace; `parts`: the
# number of partial filter gradients, which precede the workers' shares.
CONV_NUMBERS = (*GEOMETRY, "rows", "bytes", "parts")

LEAST_TASKS = 16
LEAST_PATCHES = 64  # in a block, where there are that many
SUM_CHUNK = 4096  # elements of the filter gradient that one task adds up


def add_convolutions(module: Module, element: str, wide: bool) -> None:
    """Add ``@conv2d_float``, ``@conv2d_backprop_input_float`` and ``..._filter_float``."""
    add_gemm(module, element, wide)
    add_vector_loops(module, element)
    _define_patches(module, element, "gather")
    _define_patches(module, element, "scatter")
    for name, operands, plan, phases in (
        ("conv2d", ("x", "filters", "y"), _plan_blocks, [_forward]),
        ("conv2d_backprop_input", ("filters", "dy", "dx"), _plan_images, [_to_input]),
        ("conv2d_backprop_filter", ("x", "dy", "df"), _plan_parts, [_to_part, _sum_parts]),
    ):
        bound = [_with_element(p, element) for p in phases]
        define_routine(module, f"{name}_{element}", operands, CONV_NUMBERS, plan, bound)


def _with_element(phase: Callable[..., None], element: str) -> Callable[..., None]:
    return lambda fn, words, task: phase(fn, words, task, element)


def _common(fn: Function, w: Words) -> Words:
    all_rows = fn.mul(w["n"], w["oh"])
    even = ceil_divide(fn, all_rows, LEAST_TASKS)
    enough = ceil_divide(fn, LEAST_PATCHES, fn.max(w["ow"], 1))
    block = fn.max(1, fn.min(w["rows"], fn.max(even, enough)))
    return {
        "all_rows": all_rows,
        "block": block,
        "blocks": ceil_divide(fn, all_rows, block),
        "patch": fn.mul(fn.mul(w["kh"], w["kw"]), w["c"]),
        "image": fn.mul(fn.mul(w["h"], w["w"]), w["c"]),
    }


def _plan_blocks(fn: Function, w: Words) -> Words:
    common = _common(fn, w)
    return {**common, "tasks0": common["blocks"]}


def _plan_images(fn: Function, w: Words) -> Words:
    """Windows overlap, so one task adds up a whole image."""
    return {**_common(fn, w), "tasks0": w["n"]}


def _plan_parts(fn: Function, w: Words) -> Words:
    common = _common(fn, w)
    size = fn.mul(common["patch"], w["o"])
    chunks = ceil_divide(fn, size, SUM_CHUNK)
    return {**common, "size": size, "tasks0": w["parts"], "tasks1": chunks}


def _worker_space(fn: Function, w: Words, element: str) -> str:
    """The patches of this thread, after the partial filter gradients."""
    parts = fn.mul(w["parts"], _part_bytes(fn, w, element))
    return fn.offset(str(w["workspace"]), fn.add(parts, fn.mul(w["worker"], w["bytes"])), "i8")


def _part_bytes(fn: Function, w: Words, element: str) -> Word:
    """The room of one partial filter gradient, a multiple of a cache line."""
    size = fn.mul(fn.mul(w["patch"], w["o"]), FLOATS[element])
    return fn.mul(ceil_divide(fn, size, 64), 64)


def _record(fn: Function, w: Words) -> str:
    """What the patch loops need of the geometry, on the stack."""
    record = fn.alloca(f"[{len(GEOMETRY)} x i64], align 8")
    for i, name in enumerate(GEOMETRY):
        fn.emit(f"store i64 {w[name]}, ptr {fn.offset(record, i, 'i64')}, align 8")
    return record


def _forward(fn: Function, w: Words, task: str, element: str) -> None:
    first = fn.mul(task, w["block"])
    count = fn.min(w["block"], fn.sub(w["all_rows"], first))
    patches = _worker_space(fn, w, element)
    _call_patches(fn, "gather", element, (_record(fn, w), patches, str(w["x"])), first, count)
    y = fn.offset(str(w["y"]), fn.mul(fn.mul(first, w["ow"]), w["o"]), element)
    call_gemm(
        fn, element, w["table"], (0, 0), (fn.mul(count, w["ow"]), w["o"], w["patch"]),
        patches, str(w["filters"]), y, (w["patch"], w["o"], w["o"]),
    )  # fmt: skip


def _to_input(fn: Function, w: Words, task: str, element: str) -> None:
    """dx of image `task`: the products dy filters^T added to where the patches came from."""
    record, patches = _record(fn, w), _worker_space(fn, w, element)
    dx = fn.offset(str(w["dx"]), fn.mul(task, w["image"]), element)
    fn.emit(f"call void @zero_{element}(ptr {dx}, i64 {w['image']})")
    start = fn.mul(task, w["oh"])
    stop = fn.add(start, w["oh"])
    with fn.loop(start, stop, w["block"]) as first:
        count = fn.min(w["block"], fn.sub(stop, first))
        dy = fn.offset(str(w["dy"]), fn.mul(fn.mul(first, w["ow"]), w["o"]), element)
        call_gemm(
            fn, element, w["table"], (0, 1), (fn.mul(count, w["ow"]), w["patch"], w["o"]),
            dy, str(w["filters"]), patches, (w["o"], w["o"], w["patch"]),
        )  # fmt: skip
        _call_patches(fn, "scatter", element, (record, patches, str(w["dx"])), first, count)


def _to_part(fn: Function, w: Words, task: str, element: str) -> None:
    """Partial gradient `task`: patches^T dy over its blocks, in order."""
    record, patches = _record(fn, w), _worker_space(fn, w, element)
    part = fn.offset(str(w["workspace"]), fn.mul(task, _part_bytes(fn, w, element)), "i8")
    fn.emit(f"call void @zero_{element}(ptr {part}, i64 {w['size']})")
    first_block = fn.divide(fn.mul(w["blocks"], task), w["parts"])
    last_block = fn.divide(fn.mul(w["blocks"], fn.add(task, 1)), w["parts"])
    with fn.loop(first_block, last_block) as number:
        first = fn.mul(number, w["block"])
        count = fn.min(w["block"], fn.sub(w["all_rows"], first))
        _call_patches(fn, "gather", element, (record, patches, str(w["x"])), first, count)
        dy = fn.offset(str(w["dy"]), fn.mul(fn.mul(first, w["ow"]), w["o"]), element)
        call_gemm(
            fn, element, w["table"], (1, 0), (w["patch"], w["o"], fn.mul(count, w["ow"])),
            patches, dy, part, (w["patch"], w["o"], w["o"]), beta="1.0",
        )  # fmt: skip


def _sum_parts(fn: Function, w: Words, task: str, element: str) -> None:
    """Chunk `task` of the filter gradient: the partial ones added in order."""
    start = fn.mul(task, SUM_CHUNK)
    count = fn.min(SUM_CHUNK, fn.sub(w["size"], start))
    target = fn.offset(str(w["df"]), start, element)
    parts = fn.offset(str(w["workspace"]), start, element)
    fn.emit(f"call void @copy_{element}(ptr {target}, ptr {parts}, i64 {count})")
    size = _part_bytes(fn, w, element)
    with fn.loop(1, w["parts"]) as number:
        part = fn.offset(parts, fn.mul(number, size), "i8")
        fn.emit(f"call void @add_{element}(ptr {target}, ptr {part}, i64 {count})")


# -- patches -----------------------------------------------------------------------------------


def _call_patches(
    fn: Function, kind: str, element: str, pointers: tuple[str, str, str], first: Word, count: Word
) -> None:
    record, patches, images = pointers
    fn.emit(
        f"call void @{kind}_{element}(ptr {record}, ptr {patches}, ptr {images}, i64 {first}, "
        f"i64 {count})"
    )


def _define_patches(module: Module, element: str, kind: str) -> None:
    """``@gather``: patches of `count` output rows from `first` on, zeros outside the images.

    ``@scatter`` adds patches back to the images.
    """
    fn = Function(module)
    w: Words = {name: fn.load_word("%record", i) for i, name in enumerate(GEOMETRY)}
    patch = fn.mul(fn.mul(w["kh"], w["kw"]), w["c"])
    line = fn.mul(w["kw"], w["c"])  # one row of a window
    with fn.loop(0, "%count") as r:
        row = fn.add("%first", r)
        number = fn.divide(row, w["oh"])
        top = fn.sub(fn.mul(fn.sub(row, fn.mul(number, w["oh"])), w["sh"]), w["top"])
        with fn.loop(0, w["ow"]) as x:
            left = fn.sub(fn.mul(x, w["sw"]), w["left"])
            target = fn.mul(fn.add(fn.mul(r, w["ow"]), x), patch)
            with fn.loop(0, w["kh"]) as i:
                y = fn.add(top, fn.mul(i, w["dh"]))
                place = fn.offset("%patches", fn.add(target, fn.mul(i, line)), element)
                source = fn.mul(fn.add(fn.mul(number, w["h"]), y), fn.mul(w["w"], w["c"]))
                inside = fn.value(f"icmp ult i64 {y}, {w['h']}")  # a negative y is huge
                _window_row(fn, w, element, kind, place, source, left, inside)
    fn.emit("ret void")
    fn.define(
        f"{kind}_{element}",
        "void @{}(ptr %record, ptr %patches, ptr %images, i64 %first, i64 %count)",
        "internal",
    )


def _window_row(
    fn: Function, w: Words, element: str, kind: str, place: str, source: Word, left: Word,
    inside: str,
) -> None:  # fmt: skip
    """One row of a window: the columns inside the image, and zeros around them."""
    line, k = fn.mul(w["kw"], w["c"]), fn.unique()
    fn.emit(f"br i1 {inside}, label %in{k}, label %out{k}")
    fn.label(f"out{k}")
    if kind == "gather":
        fn.emit(f"call void @zero_{element}(ptr {place}, i64 {line})")
    fn.branch(f"end{k}")
    fn.label(f"in{k}")
    dense = fn.value(f"icmp eq i64 {w['dw']}, 1")
    fn.emit(f"br i1 {dense}, label %dense{k}, label %spread{k}")
    fn.label(f"dense{k}")
    _dense_row(fn, w, element, kind, place, source, left)
    fn.branch(f"end{k}")
    fn.label(f"spread{k}")
    with fn.loop(0, w["kw"]) as j:
        column = fn.add(left, fn.mul(j, w["dw"]))
        cell = fn.offset(place, fn.mul(j, w["c"]), element)
        _spread_column(fn, w, element, kind, cell, fn.add(source, fn.mul(column, w["c"])), column)
    fn.branch(f"end{k}")
    fn.label(f"end{k}")


def _move(fn: Function, element: str, kind: str, place: str, index: Word, count: Word) -> None:
    """`count` elements between the patch at `place` and the images at `index`."""
    image = fn.offset("%images", index, element)
    if kind == "gather":
        fn.emit(f"call void @copy_{element}(ptr {place}, ptr {image}, i64 {count})")
    else:
        fn.emit(f"call void @add_{element}(ptr {image}, ptr {place}, i64 {count})")


def _dense_row(
    fn: Function, w: Words, element: str, kind: str, place: str, source: Word, left: Word
) -> None:
    """Adjacent columns are one run of memory, cut off at the image's sides."""
    line = fn.mul(w["kw"], w["c"])
    low = fn.min(fn.max(fn.sub(0, left), 0), w["kw"])
    high = fn.max(fn.min(fn.sub(w["w"], left), w["kw"]), low)
    before, width = fn.mul(low, w["c"]), fn.mul(fn.sub(high, low), w["c"])
    after = fn.mul(fn.sub(w["kw"], high), w["c"])
    middle = fn.offset(place, before, element)
    _move(fn, element, kind, middle, fn.add(source, fn.mul(fn.add(left, low), w["c"])), width)
    if kind == "gather":
        cut = fn.compare("ne", width, line)
        with fn.when(cut):
            fn.emit(f"call void @zero_{element}(ptr {place}, i64 {before})")
            end = fn.offset(middle, width, element)
            fn.emit(f"call void @zero_{element}(ptr {end}, i64 {after})")


def _spread_column(
    fn: Function, w: Words, element: str, kind: str, cell: str, index: Word, column: Word
) -> None:
    inside = fn.value(f"icmp ult i64 {column}, {w['w']}")
    k = fn.unique()
    fn.emit(f"br i1 {inside}, label %hit{k}, label %miss{k}")
    fn.label(f"hit{k}")
    _move(fn, element, kind, cell, index, w["c"])
    fn.branch(f"next{k}")
    fn.label(f"miss{k}")
    if kind == "gather":
        fn.emit(f"call void @zero_{element}(ptr {cell}, i64 {w['c']})")
    fn.branch(f"next{k}")
    fn.label(f"next{k}")
