"""Kernels that store at computed places: order, what lies outside, vectors and threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.cpu.native_kernels import JITS
from tests.runtime.cpu.nest.test_scans import LANES, numbers, same_bits
from treadle.core import dtypes
from treadle.core.shapes import SymbolicDim
from treadle.kernel.ir import (
    COMBINES,
    Axis,
    Buffer,
    Iota,
    Kernel,
    Reduce,
    affine,
    apply,
    const,
    load,
    store,
)  # fmt: skip
from treadle.kernel.printer import kernel_hash
from treadle.kernel.reference import evaluate
from treadle.kernel.rewrite import canonical
from treadle.kernel.verifier import KernelError, verify
from treadle.runtime.bounds import Sizes, unproved
from treadle.runtime.cpu.nest import UnsupportedKernel, emit_kernel
from treadle.runtime.cpu.nest.shape import choose_shape
from treadle.runtime.cpu.target import host
from treadle.runtime.fusion.collapse import collapse

F32, F16, F64, I8, I32, I64, U64 = (
    dtypes.float32, dtypes.float16, dtypes.float64, dtypes.int8, dtypes.int32, dtypes.int64,
    dtypes.uint64,
)  # fmt: skip
B = SymbolicDim.symbol("B")


def rows_kernel(rows, size, width, dtype=F32, combine="add", ids=I32, unique=False):
    """``out[ids[i], j] = x[i, j] * 2``; a width of 0 for elements instead of rows."""
    i, j = Axis("i", rows), Axis("j", width)
    along, dims = ((j,), (width,)) if width else ((), ())
    place, x = Buffer("ids", ids, (rows,)), Buffer("x", dtype, (rows, *dims))
    out = Buffer("out", dtype, (size, *dims))
    doubled = apply("mul", load(x, i, *along), const(2, dtype))
    stores = store(out, load(place, i), *along, value=doubled, combine=combine, unique=unique)
    return Kernel((i, *along), (place, x, out), (stores,)), place, x, out


@st.composite
def scatters(draw):
    rows, size = draw(st.sampled_from([0, 1, 3, 40, 100])), draw(st.sampled_from([1, 2, 9, 50]))
    width = draw(st.sampled_from([0, 1, 3, 16, 17, 40, 65]))
    dtype = draw(st.sampled_from([F32, F64, F16, I8, I32, I64]))
    ids = draw(st.sampled_from([I32, I64, U64]))
    symbolic = draw(st.booleans())
    combine = draw(st.sampled_from([c for c in COMBINES if c != "div" or dtype.is_floating]))
    kernel, place, x, out = rows_kernel(B if symbolic else rows, size, width, dtype, combine, ids)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    low = 0 if ids is U64 else -2
    arrays = {
        place: rng.integers(low, size + 2, rows).astype(ids.np_dtype),
        x: numbers((rows, width) if width else (rows,), dtype),
        out: numbers((size, width) if width else (size,), dtype, 1),
    }
    return kernel, arrays, {"B": rows}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(scatters(), st.sampled_from(["host", "host", "x86-64-v3", "x86-64-v1"]))
def test_random_scatters(case, target):
    kernel, arrays, symbols = case
    same_bits(kernel, arrays, symbols, (target,))
    assert unproved(kernel, Sizes()) == ([], [])


def by_hand(kernel, arrays, out, width):
    """Point after point, in row-major order."""
    (s,) = kernel.stores
    ids, x = (arrays[b] for b in kernel.buffers[:2])
    found = arrays[out].copy()
    for i, row in enumerate(ids):
        if not 0 <= row < len(found):
            continue
        for j in range(width):
            old, new = found[row, j], x[i, j] * x.dtype.type(2)
            found[row, j] = {
                "set": new, "add": old + new, "mul": old * new, "div": old / new,
                "max": np.maximum(old, new), "min": np.minimum(old, new),
            }[s.combine]  # fmt: skip
    return found


@pytest.mark.parametrize("combine", COMBINES)
def test_the_order_is_that_of_the_points(combine):
    kernel, place, x, out = rows_kernel(60, 7, 20, F32, combine)
    rng = np.random.default_rng(0)
    ids = rng.integers(-1, 9, 60).astype(np.int32)
    arrays = {place: ids, x: numbers((60, 20), F32), out: numbers((7, 20), F32, 1)}
    wanted = by_hand(kernel, arrays, out, 20)
    assert evaluate(kernel, arrays)[out].tobytes() == wanted.tobytes()
    same_bits(kernel, arrays, targets=JITS)


def test_threads_divide_the_columns_or_what_is_unique():
    shared, *_ = rows_kernel(1000, 7, 50 * LANES)
    form = choose_shape(shared, host())
    assert form.vector is form.parallel is shared.axes[1]
    alone, *_ = rows_kernel(1000, 7, 0)
    assert choose_shape(alone, host()).parallel is None
    kernel, place, x, out = rows_kernel(1000, 2000, 3, unique=True)
    assert choose_shape(kernel, host()).parallel is kernel.axes[0]
    ids = np.random.default_rng(0).permutation(2000)[:1000].astype(np.int32)
    arrays = {place: ids, x: numbers((1000, 3), F32), out: numbers((2000, 3), F32, 1)}
    same_bits(kernel, arrays, targets=JITS)


def test_several_computed_indices_and_axes_between():
    """``out[a[i], j, b[i, k]] += x[i, j, k]``."""
    i, j, k = Axis("i", 9), Axis("j", 20), Axis("k", 6)
    a, b = Buffer("a", I64, (9,)), Buffer("b", I32, (9, 6))
    x, out = Buffer("x", F32, (9, 20, 6)), Buffer("out", F32, (4, 20, 5))
    at = load(a, i), j, apply("add", load(b, i, k), const(1, I32))
    kernel = Kernel(
        (i, j, k), (a, b, x, out), (store(out, *at, value=load(x, i, j, k), combine="add"),)
    )
    assert choose_shape(kernel, host()).parallel is j
    rng = np.random.default_rng(0)
    arrays = {
        a: rng.integers(-1, 5, 9), b: rng.integers(-2, 5, (9, 6)).astype(np.int32),
        x: numbers((9, 20, 6), F32), out: numbers((4, 20, 5), F32, 1),
    }  # fmt: skip
    same_bits(kernel, arrays, targets=JITS)


def test_combining_where_places_are_known():
    i, j = Axis("i", 33), Axis("j", 20)
    x, out = Buffer("x", F32, (33, 20)), Buffer("out", F32, (40, 20))
    at = affine([(i, 1)], 3), j
    stores = (store(out, *at, value=load(x, i, j), combine="max"),)
    arrays = {x: numbers((33, 20), F32), out: numbers((40, 20), F32, 1)}
    same_bits(Kernel((i, j), (x, out), stores), arrays, targets=JITS)


def test_axes_are_joined_and_names_do_not_matter():
    i, j, k = Axis("i", 5), Axis("j", 8), Axis("k", 4)
    ids = Buffer("ids", I32, (5,))
    x, out = Buffer("x", F32, (5, 8, 4)), Buffer("out", F32, (9, 8, 4))
    stores = (store(out, load(ids, i), j, k, value=load(x, i, j, k), combine="add"),)
    kernel = Kernel((i, j, k), (ids, x, out), stores)
    joined, changed = collapse(kernel)
    assert changed
    assert [a.extent for a in joined.axes] == [5, 32]
    verify(joined)
    assert canonical(canonical(joined)) is canonical(joined)
    assert kernel_hash(canonical(joined)) == kernel_hash(joined)


def test_stores_that_mean_nothing():
    kernel, place, x, out = rows_kernel(5, 6, 3)
    i, j = kernel.axes
    at = load(place, i), j
    bad = {
        "unknown combination 'sub'": store(out, *at, value=load(x, i, j), combine="sub"),
        "used elsewhere": store(out, *at, value=load(out, i, j)),
        "no integer": store(out, load(x, i, j), j, value=load(x, i, j)),
        "varies along": store(out, load(place, i), 0, value=load(x, i, j)),
    }
    for message, made in bad.items():
        with pytest.raises(KernelError, match=message):
            verify(Kernel((i, j), (place, x, out), (made,)))
    flags = Buffer("flags", dtypes.bool, (6, 3))
    true = const(True, dtypes.bool)
    made = store(flags, *at, value=true, combine="max")
    with pytest.raises(KernelError, match="bool is set, not combined"):
        verify(Kernel((i, j), (place, flags), (made,)))


def test_what_has_no_loops():
    i, j = Axis("i", 4), Axis("j", 5)
    x, out = Buffer("x", F32, (4, 5)), Buffer("out", F32, (9,))
    total = Reduce("sum", (j,), load(x, i, j))
    twice = apply("mul", Iota(i), const(2, I64))
    kernel = Kernel((i, j), (x, out), (store(out, twice, value=total),))
    verify(kernel)
    with pytest.raises(UnsupportedKernel):
        emit_kernel(kernel, host())
    assert list(evaluate(kernel, {x: np.ones((4, 5), np.float32)})[out][::2]) == [5, 5, 5, 5, 0]
