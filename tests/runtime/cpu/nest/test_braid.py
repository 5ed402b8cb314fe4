"""Code of several rows as one."""

import numpy as np
import pytest

from tests.runtime.cpu.machines import ZEN5
from tests.runtime.cpu.native_kernels import JITS, check, run
from tests.runtime.cpu.test_nest import F32, numbers
from treadle.kernel.ir import Axis, Buffer, Kernel, Reduce, apply, load, store
from treadle.runtime.cpu.llvm_text import Function, Module
from treadle.runtime.cpu.nest import emit_kernel
from treadle.runtime.cpu.nest.braid import braid
from treadle.runtime.cpu.target import host

MOST_ROWS = host().tuning.unroll


def function():
    return Function(Module(JITS["host"].target))


def test_loops_are_shared_and_their_bodies_alternate():
    fn = function()

    def body(name):
        with fn.loop(0, "%n"):
            fn.emit(f"work {name}")

    braid(fn, body, ["a", "b"])
    text = "\n".join(fn.lines)
    assert text.count("br i1") == 1
    assert "work a\n  work b" in text
    second = next(line for line in fn.lines if line.startswith("  %i2 = phi"))
    assert "%pre1" in second
    assert "%latch1" in second
    assert fn.block == "exit1"


def test_copies_that_branch_on_data_follow_one_another():
    fn = function()

    def body(name):
        with fn.when(f"%{name}"):
            fn.emit(f"work {name}")

    braid(fn, body, ["a", "b"])
    assert sum("br i1" in line for line in fn.lines) == 2
    assert fn.block == "after2"


def row_kernel(rows, columns, function="exp"):
    i, j = Axis("i", rows), Axis("j", columns)
    x, out, total = (
        Buffer("x", F32, (rows, columns)), Buffer("out", F32, (rows, columns)),
        Buffer("total", F32, (rows,)),
    )  # fmt: skip
    v = apply(function, load(x, i, j))
    s = Reduce("sum", (j,), v)
    stores = (store(out, i, j, value=apply("div", v, s)), store(total, i, value=s))
    return Kernel((i, j), (x, out, total), stores), x, out


@pytest.mark.parametrize("function", ["exp", "sin", "abs"])  # sin branches on its operands
@pytest.mark.parametrize("columns", [1, 5, 16, 40, 70])
@pytest.mark.parametrize("rows", [1, MOST_ROWS - 1, 2 * MOST_ROWS + 1, 1000 * MOST_ROWS + 1])
def test_any_number_of_rows(rows, columns, function):
    kernel, x, _ = row_kernel(rows, columns, function)
    check(kernel, {x: np.abs(numbers((rows, columns))) + 0.1})


def test_a_row_does_not_depend_on_its_neighbours():
    columns = 100
    array = numbers((50 * MOST_ROWS + 1, columns))
    kernel, x, out = row_kernel(len(array), columns)
    together = run(kernel, {x: array})[out]
    single, y, alone = row_kernel(1, columns)
    for row, wanted in zip(array[::20], together[::20], strict=True):
        assert run(single, {y: row[None]})[alone].tobytes() == wanted.tobytes()


def test_only_rows_of_known_moderate_size_stand_side_by_side():
    def row_buffers(columns):
        kernel, _, _ = row_kernel(64, columns)
        return emit_kernel(kernel, ZEN5).scratch // (4 * columns)

    assert row_buffers(1000) >= ZEN5.tuning.unroll
    assert row_buffers(100_000) == 1


def test_only_the_innermost_loop_over_rows_takes_several():
    i, j, k = Axis("i", 6), Axis("j", 40), Axis("k", 30)
    x, y = Buffer("x", F32, (6, 40, 30)), Buffer("y", F32, (6,))
    out = Buffer("out", F32, (40, 6, 30))
    v = apply("exp", load(x, i, j, k))
    value = apply("mul", apply("div", v, Reduce("sum", (k,), v)), load(y, i))
    kernel = Kernel((i, j, k), (x, y, out), (store(out, j, i, k, value=value),))
    buffers = emit_kernel(kernel, JITS["host"].target).scratch // (4 * 32 + 320)
    assert MOST_ROWS <= buffers < 2 * MOST_ROWS
    check(kernel, {x: numbers((6, 40, 30)), y: numbers(6, seed=1)})
