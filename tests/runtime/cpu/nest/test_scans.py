"""Kernels with scans: every form of their loops, with the bits of the NumPy evaluator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.cpu.machines import ZEN5
from tests.runtime.cpu.native_kernels import JITS, run
from treadle.core import dtypes
from treadle.core.shapes import SymbolicDim
from treadle.kernel.ir import (
    SCANS,
    Axis,
    Buffer,
    Iota,
    Kernel,
    Load,
    Reduce,
    Scan,
    Store,
    affine,
    apply,
    cast,
    const,
    load,
    store,
)  # fmt: skip
from treadle.kernel.reference import evaluate
from treadle.kernel.verifier import verify
from treadle.runtime.cpu.nest import UnsupportedKernel, emit_kernel
from treadle.runtime.cpu.nest.shape import choose_shape
from treadle.runtime.cpu.target import host
from treadle.runtime.fusion.collapse import collapse

F32, F64, F16, I8, I32, I64 = (
    dtypes.float32, dtypes.float64, dtypes.float16, dtypes.int8, dtypes.int32, dtypes.int64,
)  # fmt: skip
B, C = SymbolicDim.symbol("B"), SymbolicDim.symbol("C")
LANES = host().vector_bits // 32


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.is_floating:
        found = rng.standard_normal(shape).astype(dtype.np_dtype)
        found[rng.random(shape) < 0.1] = -0.0
        return found
    return rng.integers(-5, 6, shape).astype(dtype.np_dtype)


def same_bits(kernel, arrays, symbols=None, targets=("host",)):
    """Natively on any number of threads as the evaluator has it."""
    verify(kernel)
    wanted = evaluate(kernel, arrays, symbols)
    for target in targets:
        for threads in (1, 2, 3):
            found = run(kernel, arrays, symbols, threads, target, grain=1 if threads > 1 else None)
            for buffer, array in wanted.items():
                assert found[buffer].tobytes() == array.tobytes(), (target, threads, kernel)


def scan_kernel(shape, axis, dtype, op="add", exclusive=False, reverse=False, turned=False):
    """A scan of ``x * 2 + 1``, and three times its result; x lies transposed where asked."""
    axes = [Axis(f"a{n}", d) for n, d in enumerate(shape)]
    order = list(range(len(shape)))[:: -1 if turned else 1]
    x = Buffer("x", dtype, tuple(shape[n] for n in order))
    out, more = Buffer("out", dtype, tuple(shape)), Buffer("more", dtype, tuple(shape))
    given = load(x, *(axes[n] for n in order))
    if turned:
        given = apply("add", apply("mul", given, const(2, dtype)), const(1, dtype))
    scan = Scan(op, axes[axis], given, exclusive, reverse)
    tripled = apply("mul", scan, const(3, dtype))
    stores = (store(out, *axes, value=scan), store(more, *axes, value=tripled))
    return Kernel(tuple(axes), (x, out, more), stores), x


def concrete(shape, symbols):
    return tuple(symbols.get(str(d), d) for d in shape)


@st.composite
def scans(draw):
    rank = draw(st.integers(1, 3))
    sizes = st.sampled_from([1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 40])
    sizes = [draw(sizes) for _ in range(rank)]
    shape = [B if n == 0 and draw(st.booleans()) else d for n, d in enumerate(sizes)]
    if rank > 1 and draw(st.booleans()):
        shape[-1] = C
    symbols = {"B": sizes[0], "C": sizes[-1]}
    dtype = draw(st.sampled_from([F32, F32, F64, F16, I8, I32, I64]))
    kernel, x = scan_kernel(
        shape, draw(st.integers(0, rank - 1)), dtype,
        draw(st.sampled_from([op for op in SCANS if op != "logaddexp"])),
        draw(st.booleans()), draw(st.booleans()), draw(st.booleans()),
    )  # fmt: skip
    return kernel, {x: numbers(concrete(x.shape, symbols), dtype)}, symbols


@settings(max_examples=60, deadline=None, derandomize=True)
@given(scans(), st.sampled_from(["host", "host", "x86-64-v3", "x86-64-v1"]))
def test_random_scans(case, target):
    kernel, arrays, symbols = case
    same_bits(kernel, arrays, symbols, (target,))


@st.composite
def mixtures(draw):
    """Several scans in one direction of several arrays, each in its own order of axes, some read
    under masks or once a line, and several outputs."""
    rank = draw(st.integers(1, 3))
    sizes = [draw(st.sampled_from([1, 2, 5, 8, 16, 19, 33, 70])) for _ in range(rank)]
    dims = [B if n == 0 and draw(st.booleans()) else d for n, d in enumerate(sizes)]
    axes = [Axis(f"a{n}", d) for n, d in enumerate(dims)]
    dtype = draw(st.sampled_from([F32, F32, F64, I32]))
    inputs, values = [], []
    for n in range(draw(st.integers(1, 3))):
        chosen = draw(st.permutations(range(rank)))[: draw(st.integers(1, rank))]
        inputs.append(Buffer(f"x{n}", dtype, tuple(dims[k] for k in chosen)))
        valid = None
        if draw(st.booleans()):
            valid = apply("lt", Iota(axes[chosen[0]]), const(draw(st.integers(0, 40)), I64))
        values.append(load(inputs[-1], *(axes[k] for k in chosen), valid=valid, fill=3))
    along, reverse = draw(st.sampled_from(axes)), draw(st.booleans())
    for _ in range(draw(st.integers(1, 4))):
        op = draw(st.sampled_from(["add", "max", "min"]))
        scan = Scan(op, along, draw(st.sampled_from(values)), draw(st.booleans()), reverse)
        other = apply(draw(st.sampled_from(["sub", "max"])), scan, draw(st.sampled_from(values)))
        values += [scan, other]
    stores, outputs = [], []
    for n in range(draw(st.integers(1, 2))):
        whole = values[-1 - n]
        for axis in axes:
            if axis not in whole.axes:
                whole = apply("add", whole, cast(Iota(axis, I32), dtype))
        outputs.append(Buffer(f"out{n}", dtype, tuple(dims)))
        stores.append(store(outputs[-1], *axes, value=whole))
    symbols = {"B": sizes[0]}
    arrays = {b: numbers(concrete(b.shape, symbols), dtype, n) for n, b in enumerate(inputs)}
    return Kernel(tuple(axes), (*inputs, *outputs), tuple(stores)), arrays, symbols


@settings(max_examples=40, deadline=None, derandomize=True)
@given(mixtures(), st.sampled_from(["host", "host", "x86-64-v3", "x86-64-v1"]))
def test_random_mixtures(case, target):
    kernel, arrays, symbols = case
    same_bits(kernel, arrays, symbols, (target,))
    joined, _ = collapse(kernel)
    if joined.buffers == kernel.buffers:
        same_bits(joined, arrays, symbols, (target,))


WAYS = [(e, r) for e in (False, True) for r in (False, True)]


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
@pytest.mark.parametrize("shape", [(3 * LANES, 5 * LANES), (2 * LANES + 3, LANES + 5), (LANES, 3)])
@pytest.mark.parametrize("dtype", [F32, F64, I32, F16], ids=lambda d: d.name)
def test_rows_in_tiles(dtype, shape, exclusive, reverse):
    kernel, x = scan_kernel(shape, 1, dtype, "add", exclusive, reverse)
    form = choose_shape(kernel, host())
    assert form.tile is form.scan is kernel.axes[1]
    same_bits(kernel, {x: numbers(shape, dtype)}, targets=JITS)


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
def test_vectors_down_columns(exclusive, reverse):
    kernel, x = scan_kernel((37, 20 * LANES + 3), 0, F32, "mul", exclusive, reverse)
    form = choose_shape(kernel, host())
    assert form.tile is None
    assert form.vector is kernel.axes[1]
    same_bits(kernel, {x: numbers((37, 20 * LANES + 3), F32)}, targets=JITS)


def test_columns_of_an_array_that_lies_transposed_are_read_in_tiles():
    shape = (50, 70)
    kernel, x = scan_kernel(shape, 0, F32, turned=True)
    form = choose_shape(kernel, host())
    assert form.vector is kernel.axes[1]
    assert form.tile is form.scan is kernel.axes[0]
    same_bits(kernel, {x: numbers(shape[::-1], F32)}, targets=JITS)


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
@pytest.mark.parametrize("rows", [1, 3, 6])
@pytest.mark.parametrize("dtype", [F32, I32, I64, I8], ids=lambda d: d.name)
def test_few_rows(dtype, rows, exclusive, reverse):
    """One element after the other, or the lanes of vectors."""
    shape = (rows, 5 * LANES + 3)
    kernel, x = scan_kernel(shape, 1, dtype, "add", exclusive, reverse)
    assert (choose_shape(kernel, ZEN5).vector is None) == dtype.is_floating
    same_bits(kernel, {x: numbers(shape, dtype)}, targets=JITS)


@pytest.mark.parametrize("reverse", [False, True])
def test_one_row_of_what_takes_long_to_compute(reverse):
    i = Axis("i", B)
    x, out = Buffer("x", F32, (B,)), Buffer("out", F32, (B,))
    root = apply("sqrt", apply("abs", load(x, i)))
    value = apply("div", Scan("add", i, root, False, reverse), const(3, F32))
    kernel = Kernel((i,), (x, out), (store(out, i, value=value),))
    assert choose_shape(kernel, host()).vector is i
    for size in (0, 1, 15, 16, 100, 1000):
        same_bits(kernel, {x: numbers((size,), F32)}, {"B": size}, JITS)


def test_scans_of_scans_and_of_what_does_not_vary():
    i, j = Axis("i", 40), Axis("j", 50)
    x, y, out = Buffer("x", F32, (40, 50)), Buffer("y", F32, (40,)), Buffer("out", F32, (40, 50))
    first = Scan("add", j, load(x, i, j))
    count = Scan("add", j, load(y, i))
    second = Scan("max", j, apply("sub", apply("mul", first, first), count), exclusive=True)
    masked = load(x, i, affine([(j, 1)], 1), valid=apply("lt", Iota(j), const(49, I64)), fill=2)
    stores = (store(out, i, j, value=apply("add", second, masked)),)
    kernel = Kernel((i, j), (x, y, out), stores)
    same_bits(kernel, {x: numbers((40, 50), F32), y: numbers((40,), F32, 1)}, targets=JITS)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("rows", [3, 40])
def test_in_place(rows, axis):
    """A scan overwrites its operand element by element."""
    axes = Axis("i", rows), Axis("j", 50)
    x = Buffer("x", F32, (rows, 50))
    place = tuple(affine([(a, 1)]) for a in axes)
    value = Scan("add", axes[axis], Load(x, place), reverse=True)
    kernel = Kernel(axes, (x,), (Store(x, place, value),))
    same_bits(kernel, {x: numbers((rows, 50), F32)}, targets=JITS)


def test_a_large_kernel_stores_past_the_caches():
    shape = (64, 40 * LANES)
    axes = Axis("i", shape[0]), Axis("j", shape[1])
    x, out = Buffer("x", F32, shape), Buffer("out", F32, shape)
    value = Scan("add", axes[0], load(x, *axes))
    kernel = Kernel(axes, (x, out), (store(out, *axes, value=value),), streaming=True)
    assert "nontemporal" in emit_kernel(kernel, host()).text
    given = {x: numbers(shape, F32)}
    for past in (0, 16):
        found = run(kernel, given, past=past)
        assert found[out].tobytes() == np.cumsum(given[x], 0).tobytes()


def test_what_has_no_loops():
    """Scans along two axes, or beside a reduction, are left to the evaluator."""
    i, j = Axis("i", 4), Axis("j", 5)
    x, out = Buffer("x", F32, (4, 5)), Buffer("out", F32, (4, 5))
    v = load(x, i, j)
    for value in (
        Scan("add", i, Scan("add", j, v)),
        apply("add", Scan("add", i, v), Scan("add", i, v, reverse=True)),
        apply("add", Scan("add", i, v), Reduce("sum", (j,), v)),
        Scan("add", i, cast(Iota(j), F32)),
    ):
        kernel = Kernel((i, j), (x, out), (store(out, i, j, value=value),))
        verify(kernel)
        a = np.ones((4, 5), np.float32)
        if isinstance(value, Scan) and not isinstance(value.value, Scan):
            same_bits(kernel, {x: a})
            continue
        with pytest.raises(UnsupportedKernel):
            emit_kernel(kernel, host())
        assert evaluate(kernel, {x: a})[out].shape == (4, 5)


@pytest.mark.parametrize("count", [2, 3, 5, 17])
def test_several_scans_down_columns(count):
    """Loops take a power of 2 of vectors at a time, however many registers each scan leaves."""
    shape = (9, 11 * LANES + 3)
    i, j = (Axis(n, size) for n, size in zip("ij", shape, strict=True))
    x, outs = Buffer("x", F32, shape), [Buffer(f"o{k}", F32, shape) for k in range(count)]
    scans = [Scan("add", i, apply("mul", load(x, i, j), const(k + 1, F32))) for k in range(count)]
    stores = tuple(store(o, i, j, value=s) for o, s in zip(outs, scans, strict=True))
    same_bits(Kernel((i, j), (x, *outs), stores), {x: numbers(shape, F32)}, targets=JITS)


@pytest.mark.parametrize(("exclusive", "reverse"), WAYS)
@pytest.mark.parametrize(
    ("shape", "axis"), [((2 * LANES + 3, 40), 1), ((37, 2 * LANES + 3), 0), ((3, 41), 1), ((9,), 0)]
)
@pytest.mark.parametrize("dtype", [F32, F64, F16], ids=lambda d: d.name)
def test_logarithms_of_sums_of_exponentials(dtype, shape, axis, exclusive, reverse):
    """In every form of the loops; infinities and NaN as NumPy has them."""
    axes = [Axis(f"a{n}", d) for n, d in enumerate(shape)]
    x, out = Buffer("x", dtype, shape), Buffer("out", dtype, shape)
    scan = Scan("logaddexp", axes[axis], load(x, *axes), exclusive, reverse)
    kernel = Kernel(tuple(axes), (x, out), (store(out, *axes, value=scan),))
    given = numbers(shape, dtype) * dtype.np_dtype.type(5)
    given.flat[::7] = -np.inf
    given.flat[5::31] = np.inf
    given.flat[-2] = np.nan
    verify(kernel)
    with np.errstate(invalid="ignore"):
        wanted = evaluate(kernel, {x: given})[out]
    for target in JITS:
        bits = {run(kernel, {x: given}, None, n, target)[out].tobytes() for n in (1, 2, 3)}
        (found,) = bits
        found = np.frombuffer(found, dtype.np_dtype).reshape(shape)
        limit = {2: 2e-3, 4: 2e-6, 8: 1e-14}[dtype.size]
        np.testing.assert_allclose(found, wanted, rtol=limit, atol=limit)
