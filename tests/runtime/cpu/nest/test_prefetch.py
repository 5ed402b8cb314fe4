"""Cache lines that kernels over rows ask for before they are needed."""

from dataclasses import replace

import numpy as np
import pytest

from tests.runtime.cpu.machines import ZEN5
from tests.runtime.cpu.native_kernels import JITS, check
from tests.runtime.cpu.nest.test_braid import row_kernel
from tests.runtime.cpu.test_nest import F32, numbers
from treadle.kernel.ir import Axis, Buffer, Kernel, Reduce, apply, load, store
from treadle.runtime.cpu.nest import emit_kernel

i, j = Axis("i", 9), Axis("j", 256)
x, out = Buffer("x", F32, (9, 256)), Buffer("out", F32, (9, 256))


def fetched(kernel):
    """How often the code asks for lines to write."""
    lines = emit_kernel(kernel, ZEN5).text.splitlines()
    return sum("call void @llvm.prefetch" in x and "i32 1, i32 3, i32 1)" in x for x in lines)


def softmax(target):
    v = load(x, i, j)
    e = apply("exp", apply("sub", v, Reduce("max", (j,), v)))
    stores = (store(target, i, j, value=apply("div", e, Reduce("sum", (j,), e))),)
    return Kernel((i, j), (x, out) if target is out else (x,), stores)


@pytest.mark.parametrize("target", JITS)
def test_rows_that_are_about_to_be_stored(target):
    assert fetched(softmax(out))
    check(softmax(out), {x: numbers((9, 256))}, targets=(target,))


def test_the_last_pass_asks_once():
    one_pass, _, _ = row_kernel(9, 256)
    assert fetched(one_pass) == fetched(softmax(out))


def test_memory_that_is_read_or_passed_by():
    assert not fetched(softmax(x))  # it is in the cache
    streaming = emit_kernel(replace(softmax(out), streaming=True), JITS["host"].target).text
    past = streaming.split("past:")[1].split("through:")[0]
    assert "i32 1, i32 3, i32 1)" not in past
    assert "i32 1, i32 3, i32 1)" in streaming.split("through:")[1]


def test_total_sums_have_no_rows():
    total = Buffer("total", F32, ())
    both = Reduce("sum", (i, j), load(x, i, j))
    kernel = Kernel((i, j), (x, total), (store(total, value=both),))
    assert not fetched(kernel)
    check(kernel, {x: np.abs(numbers((9, 256)))})
