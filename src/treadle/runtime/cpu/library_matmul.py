"""The matmul routine: op(A) op(B) over a batch, divided into tiles of fixed size."""

from __future__ import annotations

from treadle.runtime.cpu.library_text import (
    Words,
    add_gemm,
    call_gemm,
    ceil_divide,
    clamp,
    define_routine,
)  # fmt: skip
from treadle.runtime.cpu.llvm_text import Function, Module, Word

# Numbers of the routine; the strides are in elements from one matrix of the batch to the next.
MATMUL_NUMBERS = ("batch", "m", "n", "k", "ta", "tb", "stride_a", "stride_b")

TASK_FLOPS = 1 << 21  # about 15 microseconds on one core
MOST_TASKS = 64
TILE = 16  # tiles are multiples of this many rows or columns


def add_matmul(module: Module, element: str, wide: bool) -> None:
    """Add ``@matmul_float`` or ``@matmul_double``: operands a, b and c.

    ``@matmul_swapped_float`` takes b before a.
    """
    add_gemm(module, element, wide)
    for name, operands in (("matmul", ("a", "b", "c")), ("matmul_swapped", ("b", "a", "c"))):
        define_routine(
            module, f"{name}_{element}", operands, MATMUL_NUMBERS, _plan,
            [lambda fn, w, task: _task(fn, w, task, element)],
        )  # fmt: skip


def _plan(fn: Function, w: Words) -> Words:
    """A batch is divided into groups of matrices, a single product along its longer side."""
    flops = fn.mul(fn.mul(fn.mul(w["m"], w["n"]), fn.max(w["k"], 1)), 2)
    parts = clamp(fn, fn.divide(flops, TASK_FLOPS), 1, MOST_TASKS)
    wide = fn.compare("sge", w["n"], w["m"])
    longer = fn.select(wide, w["n"], w["m"])
    tile = fn.mul(ceil_divide(fn, ceil_divide(fn, longer, parts), TILE), TILE)
    tiles = ceil_divide(fn, longer, tile)
    single = fn.compare("eq", w["batch"], 1)
    group = fn.max(1, fn.divide(TASK_FLOPS, fn.max(flops, 1)))
    groups = ceil_divide(fn, w["batch"], group)
    return {
        "by_columns": fn.select(wide, 1, 0),
        "single": fn.select(single, 1, 0),
        "tile": fn.select(single, tile, 0),
        "group": group,
        "tasks0": fn.select(single, tiles, groups),
    }


def _task(fn: Function, w: Words, task: str, element: str) -> None:
    single = fn.compare("eq", w["single"], 1)
    k = fn.unique()
    fn.emit(f"br i1 {single}, label %tile{k}, label %batch{k}")
    fn.label(f"tile{k}")
    _tile(fn, w, task, element)
    fn.branch(f"done{k}")
    fn.label(f"batch{k}")
    first = fn.mul(task, w["group"])
    last = fn.min(fn.add(first, w["group"]), w["batch"])
    with fn.loop(first, last) as number:
        c = fn.offset(str(w["c"]), fn.mul(number, fn.mul(w["m"], w["n"])), element)
        a = fn.offset(str(w["a"]), fn.mul(number, w["stride_a"]), element)
        b = fn.offset(str(w["b"]), fn.mul(number, w["stride_b"]), element)
        _product(fn, w, element, (w["m"], w["n"]), (a, b, c))
    fn.branch(f"done{k}")
    fn.label(f"done{k}")


def _tile(fn: Function, w: Words, task: str, element: str) -> None:
    """Rows or columns ``task * tile`` and on of the one product."""
    columns = fn.compare("eq", w["by_columns"], 1)
    start = fn.mul(task, w["tile"])
    longer = fn.select(columns, w["n"], w["m"])
    size = fn.min(w["tile"], fn.sub(longer, start))
    row, column = fn.select(columns, 0, start), fn.select(columns, start, 0)
    height, width = fn.select(columns, w["m"], size), fn.select(columns, size, w["n"])
    # The first element of the tile's rows of op(A), and of its columns of op(B).
    a_step = _if(fn, w["ta"], 1, w["k"])
    b_step = _if(fn, w["tb"], w["k"], 1)
    a = fn.offset(str(w["a"]), fn.mul(row, a_step), element)
    b = fn.offset(str(w["b"]), fn.mul(column, b_step), element)
    c = fn.offset(str(w["c"]), fn.add(fn.mul(row, w["n"]), column), element)
    _product(fn, w, element, (height, width), (a, b, c))


def _if(fn: Function, flag: Word, yes: Word, no: Word) -> Word:
    return fn.select(fn.compare("ne", flag, 0), yes, no)


def _product(
    fn: Function, w: Words, element: str, sizes: tuple[Word, Word], arrays: tuple[str, str, str]
) -> None:
    lda = _if(fn, w["ta"], w["m"], w["k"])
    ldb = _if(fn, w["tb"], w["k"], w["n"])
    call_gemm(
        fn, element, w["table"], (w["ta"], w["tb"]), (*sizes, w["k"]), *arrays,
        (lda, ldb, w["n"]),
    )  # fmt: skip
