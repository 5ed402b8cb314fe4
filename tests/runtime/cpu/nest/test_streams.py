"""Kernels whose stores go past the caches."""

from dataclasses import replace

import numpy as np
import pytest

from tests.runtime.cpu.native_kernels import JITS, run
from tests.runtime.cpu.nest.test_braid import row_kernel
from tests.runtime.cpu.test_nest import F32, numbers
from treadle.core import dtypes
from treadle.core.shapes import SymbolicDim
from treadle.kernel.ir import Axis, Buffer, Kernel, affine, apply, cast, load, store
from treadle.runtime.cpu.nest import emit_kernel

N = SymbolicDim.symbol("n")
i = Axis("i", N)
x, y, out, wide = (
    Buffer("x", F32, (N,)), Buffer("y", F32, (N,)), Buffer("out", F32, (N,)),
    Buffer("wide", dtypes.float64, (N,)),
)  # fmt: skip


def flat():
    v = apply("add", load(x, i), load(y, i))
    stores = (store(out, i, value=v), store(wide, i, value=cast(v, dtypes.float64)))
    return Kernel((i,), (x, y, out, wide), stores, streaming=True)


def streams(kernel, target="host"):
    return emit_kernel(kernel, JITS[target].target).text.count("nontemporal !0")


@pytest.mark.parametrize("target", JITS)
@pytest.mark.parametrize("past", [0, 4, 16, 32])
@pytest.mark.parametrize("size", [0, 1, 15, 16, 200, 1003])
def test_the_same_elements_wherever_arrays_begin(size, past, target):
    arrays = {x: numbers(size), y: numbers(size, seed=1)}
    wanted = run(replace(flat(), streaming=False), arrays, {"n": size}, target=target)
    for threads in (1, 2, 3):
        found = run(flat(), arrays, {"n": size}, threads, target, grain=1, past=past)
        for buffer, array in wanted.items():
            assert found[buffer].tobytes() == array.tobytes()


@pytest.mark.parametrize("past", [0, 16])
@pytest.mark.parametrize("columns", [16, 64, 160, 100])
def test_rows(columns, past):
    kernel, a, _ = row_kernel(9, columns)
    arrays = {a: np.abs(numbers((9, columns))) + 0.1}
    wanted = run(kernel, arrays)
    streaming = replace(kernel, streaming=True)
    assert bool(streams(streaming)) == (columns % 16 == 0)
    found = run(streaming, arrays, threads=2, grain=1, past=past)
    for buffer, array in wanted.items():
        assert found[buffer].tobytes() == array.tobytes()


def test_stores_that_have_to_stay():
    assert streams(flat()) == 2 * (4 + 1)  # of four vectors at a time and of one
    assert not streams(replace(flat(), streaming=False))
    in_place = store(x, i, value=apply("add", load(x, i), load(y, i)))
    assert not streams(Kernel((i,), (x, y), (in_place,), streaming=True))
    j = Axis("j", 64)
    target = Buffer("target", F32, (200,))
    for step, start in ((2, 0), (1, 3)):
        shifted = store(target, affine([(j, step)], start), value=load(Buffer("a", F32, (64,)), j))
        kernel = Kernel((j,), (Buffer("a", F32, (64,)), target), (shifted,), streaming=True)
        assert not streams(kernel)
    narrow = Buffer("narrow", dtypes.int8, (N,))
    bytes_ = store(narrow, i, value=cast(load(x, i), dtypes.int8))
    assert not streams(Kernel((i,), (x, narrow), (bytes_,), streaming=True))
