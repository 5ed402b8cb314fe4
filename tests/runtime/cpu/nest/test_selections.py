"""Kernels whose scans tell where they store: what a mask selects, as elements and as rows."""

import numpy as np
import pytest

from tests.runtime.cpu.native_kernels import JITS
from tests.runtime.cpu.nest.test_scans import numbers, same_bits
from treadle.core import dtypes
from treadle.core.shapes import SymbolicDim
from treadle.kernel.ir import Axis, Buffer, Kernel, Scan, apply, cast, const, load, store
from treadle.kernel.parser import parse_kernel
from treadle.kernel.printer import kernel_text
from treadle.kernel.reference import evaluate
from treadle.runtime.bounds import Sizes, unproved
from treadle.runtime.cpu.nest import UnsupportedKernel, emit_kernel
from treadle.runtime.cpu.nest.shape import choose_shape, selection_of
from treadle.runtime.cpu.target import host
from treadle.runtime.schedule import compaction

F32, I64 = dtypes.float32, dtypes.int64
B = SymbolicDim.symbol("B")
KINDS = [
    dtypes.float32, dtypes.float64, dtypes.int64, dtypes.float16, dtypes.bool, dtypes.uint8,
]  # fmt: skip


def select_kernel(parts, size, width, found, dtype=F32, unique=True):
    """``out[start[p] + how many are true before i in part p] = x[p, i]`` where the mask is."""
    part, i = Axis("p", parts), Axis("i", size)
    along = (Axis("j", width),) if width else ()
    dims = tuple(a.extent for a in along)
    mask, starts = Buffer("mask", dtypes.bool, (parts, size)), Buffer("starts", I64, (parts,))
    x, out = Buffer("x", dtype, (parts, size, *dims)), Buffer("out", dtype, (found, *dims))
    true = load(mask, part, i)
    before = Scan("add", i, cast(true, I64), exclusive=True)
    place = apply("select", true, apply("add", load(starts, part), before), const(-1, I64))
    stores = (store(out, place, *along, value=load(x, part, i, *along), unique=unique),)
    return Kernel((part, i, *along), (mask, starts, x, out), stores)


def arguments(kernel, parts, size, found, density, shift=0):
    mask, starts, x, out = kernel.buffers
    chosen = np.random.default_rng(size).random((parts, size)) < density
    counts = chosen.sum(1)
    given = numbers((parts, size, *x.shape[2:]), x.dtype)
    return {
        mask: chosen, starts: np.cumsum(counts) - counts + shift, x: given,
        out: numbers((found, *x.shape[2:]), out.dtype, 1),
    }  # fmt: skip


def numbers_of(dtype, shape):
    return np.random.default_rng(3).random(shape) < 0.5 if dtype.is_bool else numbers(shape, dtype)


@pytest.mark.parametrize("width", [0, 1, 3, 20])
@pytest.mark.parametrize("dtype", KINDS, ids=lambda d: d.name)
def test_elements_and_rows(dtype, width):
    for parts, size, density in ((1, 0, 0.5), (3, 9, 0.5), (2, 700, 0.4), (5, 40, 1.0), (2, 64, 0)):
        found = 1500
        kernel = select_kernel(parts, size, width, found, dtype)
        mask, starts, x, out = kernel.buffers
        arrays = arguments(select_kernel(parts, size, width, found), parts, size, found, density)
        arrays = dict(zip(kernel.buffers, arrays.values(), strict=True))
        arrays[x], arrays[out] = (numbers_of(dtype, arrays[b].shape) for b in (x, out))
        same_bits(kernel, arrays, targets=JITS)
        chosen = arrays[x][arrays[mask]]
        assert evaluate(kernel, arrays)[out][: len(chosen)].tobytes() == chosen.tobytes()


@pytest.mark.parametrize("shift", [-40, -3, 5, 2000])
@pytest.mark.parametrize("width", [0, 3])
def test_what_lies_outside_is_not_written(width, shift):
    kernel = select_kernel(2, 600, width, 500)
    arrays = arguments(kernel, 2, 600, 500, 0.5, shift)
    same_bits(kernel, arrays, targets=JITS)
    assert unproved(kernel, Sizes()) == ([], [])


def test_symbolic_sizes_and_loops():
    kernel = select_kernel(3, B, 0, 5000)
    assert choose_shape(kernel, host()).parallel is kernel.axes[0]
    assert selection_of(kernel) is not None
    for size in (1, 8, 255, 256, 257, 1000):
        arrays = arguments(select_kernel(3, size, 0, 5000), 3, size, 5000, 0.5)
        same_bits(
            kernel, dict(zip(kernel.buffers, arrays.values(), strict=True)), {"B": size}, JITS
        )
    rows = select_kernel(3, 50, 40, 200)
    assert selection_of(rows) is None
    assert choose_shape(rows, host()).vector is rows.axes[2]
    assert parse_kernel(kernel_text(kernel)) is kernel
    with pytest.raises(UnsupportedKernel):
        emit_kernel(select_kernel(3, 50, 0, 200, unique=False), host())


@pytest.mark.parametrize("elements", [0, 1, 700, compaction.FEW, 70_001])
@pytest.mark.parametrize("row", [1, 5])
def test_kernels_of_masks(elements, row):
    """The kernels of a program, one after the other, find what NumPy selects."""
    chosen = np.random.default_rng(0).random(elements) < 0.3
    given = numbers((elements, row) if row > 1 else (elements,), F32)
    wanted = given[chosen]
    spans = compaction.spans_of(elements)
    parts = sum(s.count for s in spans)
    counts, ends = np.zeros(parts, np.int64), np.zeros(parts, np.int64)
    found = np.zeros_like(wanted)

    def run(kernel, *arrays):
        result = evaluate(kernel, dict(zip(kernel.buffers, arrays, strict=True)))
        same_bits(kernel, dict(zip(kernel.buffers, arrays, strict=True)))
        (made,) = result.values()
        arrays[-1][...] = made

    for span in spans:
        run(compaction.counting(elements, span, parts), chosen, counts)
    assert counts.sum() == chosen.sum()
    run(compaction.adding(parts), counts, ends)
    for span in spans:
        made = compaction.writing(elements, span, parts, F32, row, len(wanted), False)
        run(made, chosen, counts, ends, given, found)
    assert found.tobytes() == wanted.tobytes()
