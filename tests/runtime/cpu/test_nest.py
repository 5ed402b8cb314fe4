"""Kernels as native code against the NumPy evaluator: random ones, and each shape of loop nest."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.cpu.native_kernels import JITS, check, run, run_segments
from treadle.core import dtypes
from treadle.core.shapes import SymbolicDim
from treadle.kernel.ir import (
    Affine,
    Axis,
    Buffer,
    Extent,
    Iota,
    Kernel,
    Reduce,
    affine,
    apply,
    cast,
    const,
    load,
    store,
)  # fmt: skip
from treadle.kernel.reference import evaluate, evaluate_segmented
from treadle.runtime.cpu.nest import emit_kernel
from treadle.runtime.cpu.nest.shape import choose_shape
from treadle.runtime.cpu.target import host

F32, F64, I32, I64, BOOL = (
    dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.bool,
)  # fmt: skip
B = SymbolicDim.symbol("B")
SIZES = (1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129)


def numbers(shape, dtype=F32, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.is_floating:
        return rng.standard_normal(shape).astype(dtype.np_dtype)
    high = 2 if dtype.is_bool else 9
    return rng.integers(0, high, shape).astype(dtype.np_dtype)


# ---- random kernels
@st.composite
def kernels(draw):
    """A kernel over two or three axes: loads under broadcasts and transposes, elementwise
    functions, row reductions of several depths, and element and row stores."""
    rank = draw(st.integers(1, 3))
    extents = [draw(st.sampled_from(SIZES[:12] if rank > 1 else SIZES)) for _ in range(rank)]
    dtype = draw(st.sampled_from([F32, F32, F64, I32]))
    symbolic = draw(st.booleans())
    dims = [B if symbolic and n == 0 else e for n, e in enumerate(extents)]
    axes = [Axis(f"a{n}", d) for n, d in enumerate(dims)]
    inputs, values = [], []
    for n in range(draw(st.integers(1, 3))):
        chosen = draw(st.permutations(range(rank)))[: draw(st.integers(0 if n else 1, rank))]
        if not draw(st.booleans()):
            chosen = sorted(chosen)
        inputs.append(Buffer(f"x{n}", dtype, tuple(dims[k] for k in chosen)))
        values.append(load(inputs[-1], *(axes[k] for k in chosen)))
    reduced = draw(st.sampled_from(axes))
    for _ in range(draw(st.integers(1, 6))):
        x, y = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        kind = draw(st.sampled_from(["binary", "binary", "compare", "reduce", "unary"]))
        if kind == "binary":
            values.append(apply(draw(st.sampled_from(["add", "sub", "mul", "max", "min"])), x, y))
        elif kind == "compare":
            less = apply("lt", x, y)
            values.append(apply("select", less, x, apply("neg", y)))
        elif kind == "unary":
            values.append(apply("abs", x) if dtype is I32 else apply("tanh", x))
        else:
            values.append(Reduce(draw(st.sampled_from(["sum", "max", "min"])), (reduced,), x))
    whole = values[-1]
    for axis in axes:  # an element store has every axis
        if axis not in whole.axes:
            whole = apply("add", whole, cast(Iota(axis, I32), dtype))
    out = Buffer("out", dtype, tuple(dims))
    row_axes = [a for a in axes if a is not reduced]
    row = Buffer("row", dtype, tuple(a.extent for a in row_axes))
    summed = Reduce("sum", (reduced,), whole)
    stores = [store(out, *axes, value=whole)]
    if row_axes and draw(st.booleans()):
        stores.append(store(row, *row_axes, value=summed))
    buffers = (*inputs, *(s.buffer for s in stores))
    arrays = {b: numbers(_extents(b, extents), dtype, n) for n, b in enumerate(inputs)}
    return Kernel(tuple(axes), buffers, tuple(stores)), arrays, {"B": extents[0]}


def _extents(buffer, extents):
    return [extents[0] if isinstance(d, SymbolicDim) else d for d in buffer.shape]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(kernels(), st.sampled_from(["host", "host", "x86-64-v3"]))
def test_random_kernels(case, target):
    kernel, arrays, symbols = case
    check(kernel, arrays, symbols, rtol=2e-4, targets=(target,))


# ---- each shape of nest
def softmax(rows, columns):
    i, j = Axis("i", rows), Axis("j", columns)
    x, out = Buffer("x", F32, (rows, columns)), Buffer("out", F32, (rows, columns))
    v = load(x, i, j)
    e = apply("exp", apply("sub", v, Reduce("max", (j,), v)))
    value = apply("div", e, Reduce("sum", (j,), e))
    return Kernel((i, j), (x, out), (store(out, i, j, value=value),)), x, out


@pytest.mark.parametrize("columns", [1, 7, 16, 64, 65, 1000, SymbolicDim.symbol("C")], ids=str)
def test_softmax_rows(columns):
    kernel, x, _ = softmax(B, columns)
    width = columns if isinstance(columns, int) else 77
    for rows in (1, 2, 7):
        check(kernel, {x: numbers((rows, width))}, {"B": rows, "C": width}, targets=JITS)


@pytest.mark.parametrize("shape", [(1, 16), (5, 40), (33, 64), (100, 129), (7, 200)], ids=str)
@pytest.mark.parametrize("kept", [False, True])
def test_softmax_down_columns(shape, kept):
    """Blocks of columns go through all passes; what belongs to a column is stored beside them."""
    i, j = Axis("i", shape[0]), Axis("j", B)
    x, out = Buffer("x", F32, (shape[0], B)), Buffer("out", F32, (shape[0], B))
    scale, total = Buffer("scale", F32, (B,)), Buffer("total", F32, (B,))
    v = load(x, i, j)
    e = apply("exp", apply("sub", v, Reduce("max", (i,), v)))
    s = Reduce("sum", (i,), e)
    value = apply("mul", apply("div", e, s), load(scale, j))
    stores = (store(out, i, j, value=value), *([store(total, j, value=s)] if kept else []))
    buffers = (x, scale, out, *([total] if kept else []))
    kernel = Kernel((i, j), buffers, stores)
    assert choose_shape(kernel, JITS["host"].target).columns
    arrays = {x: numbers(shape), scale: numbers(shape[1], seed=1)}
    check(kernel, arrays, {"B": shape[1]}, targets=JITS)


def test_softmax_down_columns_in_place():
    n, i, j = Axis("n", 3), Axis("i", 9), Axis("j", 70)
    x = Buffer("x", F32, (3, 9, 70))
    v = load(x, n, i, j)
    e = apply("exp", apply("sub", v, Reduce("max", (i,), v)))
    stored = store(x, n, i, j, value=apply("div", e, Reduce("sum", (i,), e)))
    check(Kernel((n, i, j), (x,), (stored,)), {x: numbers((3, 9, 70))})


def test_softmax_in_place():
    i, j = Axis("i", 9), Axis("j", 70)
    x = Buffer("x", F32, (9, 70))
    v = load(x, i, j)
    e = apply("exp", apply("sub", v, Reduce("max", (j,), v)))
    stored = store(x, i, j, value=apply("div", e, Reduce("sum", (j,), e)))
    check(Kernel((i, j), (x,), (stored,)), {x: numbers((9, 70))})


OPS = ["sum", "prod", "max", "min", "argmax", "argmin"]
NUMERIC = [d for d in dtypes.ALL if not d.is_complex and not d.is_bool]


@pytest.mark.parametrize("axes", ["rows", "columns", "all"])
@pytest.mark.parametrize("dtype", NUMERIC, ids=lambda d: d.name)
def test_reductions_of_every_dtype(dtype, axes):
    i, j = Axis("i", 11), Axis("j", 37)
    x = Buffer("x", dtype, (11, 37))
    over = {"rows": (j,), "columns": (i,), "all": (i, j)}[axes]
    kept = tuple(a for a in (i, j) if a not in over)
    stores = []
    for op in OPS if axes != "all" else OPS[:4]:
        value = load(x, i, j)
        if op == "prod":
            value = apply("min", value, const(1, dtype))
        result = Reduce(op, over, value)
        out = Buffer(op, result.dtype, tuple(a.extent for a in kept))
        stores.append(store(out, *kept, value=result))
    kernel = Kernel((i, j), (x, *(s.buffer for s in stores)), tuple(stores))
    array = numbers((11, 37), dtype)
    if dtype.is_floating and dtype.size == 2:
        array = (array / 4).astype(array.dtype)
    check(kernel, {x: array}, rtol={2: 2e-2, 4: 2e-5, 8: 1e-12}.get(array.itemsize, 0))


@pytest.mark.parametrize("to", ["bfloat16", "float16", "int8", "int16", "int32", "bool"])
@pytest.mark.parametrize("of", [F32, I64], ids=lambda d: d.name)
def test_rows_that_end_with_one_element(of, to):
    """It is stored alone. LLVM would store all bytes of the number that it is the lower half of."""
    to = dtypes.as_dtype(to)
    for columns in (9, 17, 33):
        i, j = Axis("i", 33), Axis("j", columns)
        x, row = Buffer("x", of, (33, columns)), Buffer("row", of, (columns,))
        out = Buffer("out", to, (33, columns))
        value = cast(apply("add", load(x, i, j), load(row, j)), to)
        kernel = Kernel((i, j), (x, row, out), (store(out, i, j, value=value),))
        check(kernel, {x: numbers((33, columns), of), row: numbers(columns, of, 1)})


@pytest.mark.parametrize("columns", [40, 256, 300, 513])
@pytest.mark.parametrize("rows", [5, 70, B], ids=str)
def test_sums_of_many_columns(rows, columns):
    """However many columns are summed up at once, each has the same bits as alone."""
    i, j = Axis("i", rows), Axis("j", columns)
    x, mean, power = (
        Buffer("x", F32, (rows, columns)), Buffer("mean", F32, (columns,)),
        Buffer("power", F32, (columns,)),
    )  # fmt: skip
    v = load(x, i, j)
    count = cast(Extent(rows), F32)
    stores = (
        store(mean, j, value=apply("div", Reduce("sum", (i,), v), count)),
        store(power, j, value=Reduce("sum", (i,), apply("mul", v, v))),
    )
    array = numbers((70 if rows is B else rows, columns))
    for chosen in (stores[:1], stores):
        kernel = Kernel((i, j), (x, *(s.buffer for s in chosen)), chosen)
        symbols = {"B": len(array)}
        check(kernel, {x: array}, symbols, targets=JITS)
        found = run(kernel, {x: array}, symbols)[mean]
        wanted = np.zeros(columns, np.float32)
        for row in array:
            wanted = wanted + row
        assert found.tobytes() == (wanted / np.float32(len(array))).tobytes()


@pytest.mark.parametrize("op", ["any", "all"])
def test_logical_reductions(op):
    i, j = Axis("i", 5), Axis("j", 40)
    x, out = Buffer("x", BOOL, (5, 40)), Buffer("out", BOOL, (5,))
    kernel = Kernel((i, j), (x, out), (store(out, i, value=Reduce(op, (j,), load(x, i, j))),))
    array = np.full((5, 40), op == "all")
    array[1, 39] = array[3, 0] = op == "any"
    check(kernel, {x: array})


@pytest.mark.parametrize("op", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("over", ["rows", "columns"])
def test_nan_wins_and_the_first_position_counts(op, over):
    i, j = Axis("i", 40), Axis("j", 40)
    x = Buffer("x", F32, (40, 40))
    axis, kept = (j, i) if over == "rows" else (i, j)
    result = Reduce(op, (axis,), load(x, i, j))
    out = Buffer("out", result.dtype, (40,))
    kernel = Kernel((i, j), (x, out), (store(out, kept, value=result),))
    array = np.round(numbers((40, 40)))  # many ties
    array[3, 7] = array[3, 33] = array[9, 7] = np.nan
    array[5], array[:, 5] = -np.inf, np.inf
    found = run(kernel, {x: array})[out]
    np.testing.assert_array_equal(found, evaluate(kernel, {x: array})[out])


@pytest.mark.parametrize("size", [1, 17, 1000, 100_000])
@pytest.mark.parametrize("op", ["sum", "max"])
def test_totals_of_long_arrays(size, op):
    n = SymbolicDim.symbol("n")
    i = Axis("i", n)
    x, out = Buffer("x", F32, (n,)), Buffer("out", F32, ())
    kernel = Kernel((i,), (x, out), (store(out, value=Reduce(op, (i,), load(x, i))),))
    check(kernel, {x: numbers(size)}, {"n": size}, rtol=1e-4)


@pytest.mark.parametrize("shape", [(3, 5), (0, 4), (4, 0), (2, 40_000), (40_000, 2), (300, 301)])
def test_totals_over_extents_known_at_run_time(shape):
    c = SymbolicDim.symbol("C")
    i, j = Axis("i", B), Axis("j", c)
    x, y = Buffer("x", F32, (B, c)), Buffer("y", F32, (c, B))
    total, largest = Buffer("total", F32, ()), Buffer("largest", F32, ())
    value = apply("mul", load(x, i, j), load(y, j, i))
    stores = (
        store(total, value=Reduce("sum", (i, j), value)),
        store(largest, value=Reduce("max", (i, j), value)),
    )
    kernel = Kernel((i, j), (x, y, total, largest), stores)
    arrays = {x: numbers(shape), y: numbers(shape[::-1], seed=1)}
    check(kernel, arrays, {"B": shape[0], "C": shape[1]}, rtol=2e-3)
    units = emit_kernel(kernel, JITS["host"].target).units
    assert units.evaluate({"B": 32, "C": 10**6}) == 32


def test_sums_of_many_numbers_are_accurate():
    i = Axis("i", 1_000_000)
    x, out = Buffer("x", F32, (1_000_000,)), Buffer("out", F32, ())
    kernel = Kernel((i,), (x, out), (store(out, value=Reduce("sum", (i,), load(x, i))),))
    array = np.abs(numbers(1_000_000))
    exact = array.astype(np.float64).sum()
    assert abs(float(run(kernel, {x: array})[out]) - exact) < 2e-6 * exact


def test_loss_of_rows_and_its_gradient():
    """Labels as integers, element stores and a mean over rows in one kernel."""
    i, j = Axis("i", B), Axis("j", 10)
    x, labels = Buffer("x", F32, (B, 10)), Buffer("labels", I64, (B,))
    gradient, losses = Buffer("gradient", F32, (B, 10)), Buffer("losses", F32, (B,))
    v, label = load(x, i, j), load(labels, i)
    largest = Reduce("max", (j,), v)
    e = apply("exp", apply("sub", v, largest))
    s = Reduce("sum", (j,), e)
    hot = cast(apply("eq", Iota(j), label), F32)
    scale = apply("div", const(1, F32), cast(Extent(B), F32))
    grad = apply("mul", apply("sub", apply("div", e, s), hot), scale)
    loss = apply("sub", apply("add", largest, apply("log", s)), load(x, i, label))
    stores = (store(gradient, i, j, value=grad), store(losses, i, value=loss))
    kernel = Kernel((i, j), (x, labels, gradient, losses), stores)
    for rows in (1, 3, 50):
        chosen = np.arange(rows, dtype=np.int64) * 7 % 10
        check(kernel, {x: numbers((rows, 10)), labels: chosen}, {"B": rows}, targets=JITS)


@pytest.mark.parametrize("shape", [(5, 7), (16, 16), (33, 65), (1, 40), (100, 3)], ids=str)
@pytest.mark.parametrize("dtype", [F32, F64, dtypes.int8, dtypes.float16], ids=lambda d: d.name)
def test_transpose(shape, dtype):
    i, j = Axis("i", shape[0]), Axis("j", shape[1])
    x, out = Buffer("x", dtype, shape), Buffer("out", dtype, shape[::-1])
    kernel = Kernel((i, j), (x, out), (store(out, j, i, value=load(x, i, j)),))
    check(kernel, {x: numbers(shape, dtype)}, targets=JITS)


@pytest.mark.parametrize("shape", [(16, 16), (40, 70), (70, 40), (17, 200), (200, 15)], ids=str)
@pytest.mark.parametrize("dtype", [F32, F64, BOOL, dtypes.bfloat16], ids=lambda d: d.name)
def test_tiles_with_work(shape, dtype):
    """Two transposed operands, one that is not, and one of each direction's vectors."""
    i, j = Axis("i", B), Axis("j", shape[1])
    x, y = (Buffer(n, dtype, (shape[1], B)) for n in "xy")
    z, row, column = (
        Buffer("z", dtype, (B, shape[1])), Buffer("row", dtype, (shape[1],)),
        Buffer("column", dtype, (B,)),
    )  # fmt: skip
    out = Buffer("out", dtype, (B, shape[1]))
    combine = "max" if dtype is BOOL else "sub"
    value = apply(combine, load(x, j, i), apply("min", load(y, j, i), load(z, i, j)))
    value = apply(combine, apply(combine, value, load(row, j)), load(column, i))
    kernel = Kernel((i, j), (x, y, z, row, column, out), (store(out, i, j, value=value),))
    sizes = {x: shape[::-1], y: shape[::-1], z: shape, row: shape[1], column: shape[0]}
    arrays = {b: numbers(s, dtype, n) for n, (b, s) in enumerate(sizes.items())}
    check(kernel, arrays, {"B": shape[0]}, rtol=1e-2 if dtype.size == 2 else 2e-5, targets=JITS)


@pytest.mark.parametrize("shape", [(2, 5, 9, 24), (3, 17, 4, 33)], ids=str)
def test_channels_first_and_back(shape):
    n, h, w, c = (Axis(name, extent) for name, extent in zip("nhwc", shape))
    last = Buffer("last", F32, shape)
    first = Buffer("first", F32, (shape[0], shape[3], shape[1], shape[2]))
    there = store(first, n, c, h, w, value=load(last, n, h, w, c))
    back = store(last, n, h, w, c, value=load(first, n, c, h, w))
    check(Kernel((n, c, h, w), (last, first), (there,)), {last: numbers(shape)})
    check(Kernel((n, h, w, c), (first, last), (back,)), {first: numbers(first.shape)})


def test_an_update_in_place_is_not_tiled_ahead_of_its_stores():
    i, j = Axis("i", 40), Axis("j", 40)
    x, g = Buffer("x", F32, (40, 40)), Buffer("g", F32, (40, 40))
    value = apply("sub", load(x, i, j), load(g, j, i))
    kernel = Kernel((i, j), (x, g), (store(x, i, j, value=value),))
    check(kernel, {x: numbers((40, 40)), g: numbers((40, 40), seed=1)})


@pytest.mark.parametrize("step", [1, 2, 3, -1])
def test_slices_with_steps(step):
    n = 41
    i = Axis("i", n)
    x, out = Buffer("x", F32, (200,)), Buffer("out", F32, (n,))
    start = 190 if step < 0 else 7
    value = load(x, affine([(i, step)], start))
    check(Kernel((i,), (x, out), (store(out, i, value=value),)), {x: numbers(200)}, targets=JITS)


def test_pad_reads_nothing_outside():
    i, j = Axis("i", 9), Axis("j", 37)
    x, out = Buffer("x", F32, (5, 30)), Buffer("out", F32, (9, 37))

    def within(axis, low, high):
        at = Iota(axis)
        above = apply("ge", at, const(low, I64))
        return apply("and", above, apply("lt", at, const(high, I64)))

    valid = apply("and", within(i, 2, 7), within(j, 4, 34))
    value = load(x, affine([(i, 1)], -2), affine([(j, 1)], -4), valid=valid, fill=-1.5)
    check(Kernel((i, j), (x, out), (store(out, i, j, value=value),)), {x: numbers((5, 30))})


def test_concatenation():
    i, j = Axis("i", 6), Axis("j", 25)
    x, y = Buffer("x", F32, (6, 10)), Buffer("y", F32, (6, 15))
    out = Buffer("out", F32, (6, 25))
    first = apply("lt", Iota(j), const(10, I64))
    left = load(x, i, j, valid=first)
    right = load(y, i, affine([(j, 1)], -10), valid=apply("not", first))
    value = apply("select", first, left, right)
    arrays = {x: numbers((6, 10)), y: numbers((6, 15), seed=1)}
    check(Kernel((i, j), (x, y, out), (store(out, i, j, value=value),)), arrays, targets=JITS)


@pytest.mark.parametrize("width", [1, 4, 33])
@pytest.mark.parametrize("index_dtype", [I32, I64, dtypes.uint8], ids=lambda d: d.name)
def test_gather_of_rows(width, index_dtype):
    i, j = Axis("i", 20), Axis("j", width)
    table, index = Buffer("table", F32, (9, width)), Buffer("index", index_dtype, (20,))
    out = Buffer("out", F32, (20, width))
    kernel = Kernel(
        (i, j), (table, index, out), (store(out, i, j, value=load(table, load(index, i), j)),)
    )
    check(kernel, {table: numbers((9, width)), index: numbers(20, index_dtype)}, targets=JITS)


def test_rows_at_computed_places_are_read_as_whole_vectors():
    """The index is one number for all lanes: no gather instruction, and no check in the lanes."""
    i, j = Axis("i", 12), Axis("j", 40)
    x, ids, y = Buffer("x", F32, (6, 40)), Buffer("ids", I32, (12,)), Buffer("y", F32, (12, 40))
    half = apply("floordiv", Iota(i), const(2, I64))
    value = apply("add", load(x, half, j), load(x, load(ids, i), j))
    kernel = Kernel((i, j), (x, ids, y), (store(y, i, j, value=value),))
    rows = np.array([0, 5, -3, 6, 2, 2, 99, 1, 4, 3, 5, 0], np.int32)  # outside ones are clamped
    check(kernel, {x: numbers((6, 40)), ids: rows})
    assert "masked.gather" not in emit_kernel(kernel, host()).text


def test_gather_of_elements_stays_inside_the_buffer():
    i = Axis("i", 50)
    table, index = Buffer("table", F32, (7,)), Buffer("index", I64, (50,))
    out = Buffer("out", F32, (50,))
    kernel = Kernel((i,), (table, index, out), (store(out, i, value=load(table, load(index, i))),))
    places = np.arange(50, dtype=np.int64) - 20
    places[:2] = [np.iinfo(np.int64).min, np.iinfo(np.int64).max]
    check(kernel, {table: numbers(7), index: places})


def test_extents_of_one_and_zero():
    i, j, k = Axis("i", B), Axis("j", 1), Axis("k", 5)
    x, out = Buffer("x", F32, (B, 1, 5)), Buffer("out", F32, (B, 1))
    value = Reduce("sum", (k,), load(x, i, j, k))
    kernel = Kernel((i, j, k), (x, out), (store(out, i, j, value=value),))
    for rows in (0, 1, 2):
        check(kernel, {x: numbers((rows, 1, 5))}, {"B": rows})


def test_empty_reductions_give_the_neutral_element():
    i, j = Axis("i", 4), Axis("j", B)
    x = Buffer("x", F32, (4, B))
    stores = []
    for op in OPS:
        result = Reduce(op, (j,), load(x, i, j))
        stores.append(store(Buffer(op, result.dtype, (4,)), i, value=result))
    kernel = Kernel((i, j), (x, *(s.buffer for s in stores)), tuple(stores))
    found = run(kernel, {x: np.zeros((4, 0), np.float32)}, {"B": 0})
    wanted = {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf, "argmax": 0, "argmin": 0}
    for s in stores:
        assert (found[s.buffer] == wanted[s.buffer.name]).all(), s.buffer.name


def test_constant_stores():
    i = Axis("i", 100)
    out, one = Buffer("out", I32, (100,)), Buffer("one", F64, ())
    kernel = Kernel((i,), (out,), (store(out, i, value=const(7, I32)),))
    check(kernel, {})
    check(Kernel((), (one,), (store(one, value=const(2.5, F64)),)), {})


def test_store_with_offset_and_stride_touches_nothing_else():
    i = Axis("i", 21)
    out = Buffer("out", F32, (100,))
    x = Buffer("x", F32, (21,))
    place = Affine(((i, 3),), 5)
    kernel = Kernel((i,), (x, out), (store(out, place, value=load(x, i)),))
    check(kernel, {x: numbers(21), out: numbers(100, seed=2)})


# ---- many tensors in one launch
def adam():
    n = SymbolicDim.symbol("n")
    i = Axis("i", n)
    p, g, m, v = (Buffer(name, F32, (n,)) for name in "pgmv")
    rate = Buffer("rate", F32, ())

    def mix(old, new, share):
        kept = apply("mul", const(share, F32), old)
        return apply("add", kept, apply("mul", const(1 - share, F32), new))

    gradient = load(g, i)
    m2 = mix(load(m, i), gradient, 0.9)
    v2 = mix(load(v, i), apply("mul", gradient, gradient), 0.999)
    step = apply("div", m2, apply("add", apply("sqrt", v2), const(1e-8, F32)))
    p2 = apply("sub", load(p, i), apply("mul", load(rate), step))
    stores = (store(p, i, value=p2), store(m, i, value=m2), store(v, i, value=v2))
    return Kernel((i,), (p, g, m, v, rate), stores, segmented=True)


@pytest.mark.parametrize("sizes", [(1,), (5, 64, 1000), (10, 0, 33, 4097)], ids=str)
def test_segmented_update(sizes):
    kernel = adam()
    segments = []
    for k, size in enumerate(sizes):
        group = {
            b: np.abs(numbers(b.shape and size, seed=10 * k + n))
            for n, b in enumerate(kernel.buffers)
        }
        group[kernel.buffers[-1]] = np.array(0.01, np.float32)
        segments.append(group)
    wanted = evaluate_segmented(kernel, segments)
    alone = run_segments(kernel, segments)
    for one, two in zip(alone, wanted):
        for buffer, array in two.items():
            np.testing.assert_allclose(one[buffer], array, rtol=1e-5)
    for threads in (2, 3):
        for one, two in zip(alone, run_segments(kernel, segments, threads)):
            assert all(one[b].tobytes() == two[b].tobytes() for b in one)


def test_the_share_of_a_thread_follows_the_extents():
    """Long rows are shared in smaller numbers than short ones, whether extents are known or not."""
    width = SymbolicDim.symbol("C")
    kernel, _, _ = softmax(B, width)
    grain = emit_kernel(kernel, JITS["host"].target).grain
    found = [grain.evaluate({"B": 4, "C": columns}) for columns in (0, 1, 100, 10**6)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == 1 and found[1] > 1000
    known = emit_kernel(softmax(64, 100)[0], JITS["host"].target).grain
    assert known == found[2]


# ---- ends of rows
@pytest.mark.parametrize("dtype", [F32, F64, I32, I64, dtypes.float16])
@pytest.mark.parametrize("extent", [2, 3, 4, 5, 6, 7, 9, 12, 19])
def test_ends_of_rows_of_known_length(dtype, extent):
    """Rows are read, written and summed up; what lies around them stays as it is."""
    r, c = Axis("r", 5), Axis("c", extent)
    x, y, out = (Buffer(name, dtype, (5, extent)) for name in ("x", "y", "out"))
    sums = Buffer("sums", dtype, (5,))
    value = apply("add", load(x, r, c), load(y, r, c))
    stores = (store(out, r, c, value=value), store(sums, r, value=Reduce("sum", (c,), value)))
    kernel = Kernel((r, c), (x, y, out, sums), stores)
    arrays = {b: numbers(b.shape, dtype, seed) for seed, b in enumerate((x, y))}
    rtol = 1e-2 if dtype is dtypes.float16 else 2e-5
    check(kernel, arrays, rtol=rtol, targets=tuple(JITS))


def test_short_rows_are_whole_vectors():
    """A load would wait for what is stored under a mask, and such a row is one unit of work."""
    for extent in range(2, host().vector_bits // 64 + 1):
        row = Axis("i", extent)
        x = Buffer("x", F64, (9, extent))
        value = apply("add", load(x, affine((), 4), row), const(1.0, F64))
        kernel = Kernel((row,), (x,), (store(x, affine((), 4), row, value=value),))
        emitted = emit_kernel(kernel, host())
        assert emitted.units == 1
        assert "masked" not in emitted.text


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min", "any", "all"])
def test_rows_that_one_vector_holds_have_the_bits_of_the_loops(op):
    """Kernels of few points ask first whether there are more elements than a vector has lanes."""
    n = SymbolicDim.symbol("n")
    i, dtype = Axis("i", n), BOOL if op in ("any", "all") else F64
    x, other, out = Buffer("x", dtype, (n,)), Buffer("other", F64, ()), Buffer("out", dtype, ())
    total = Reduce(op, (i,), load(x, i))
    stores = (store(out, value=total), store(other, value=const(1.5, F64)))
    many = Kernel((i,), (x, other, out), stores)
    few = replace(many, few=True)
    assert "\nshort" in emit_kernel(few, JITS["host"].target).text
    assert "\nshort" not in emit_kernel(many, JITS["host"].target).text
    for size in (0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 40, 70):
        array = numbers((size,), dtype, size)
        if size > 3 and dtype is F64:
            array[2], array[3] = -0.0, np.nan if size == 9 else 0.0
        for target in JITS:
            wanted = run(many, {x: array}, {"n": size}, target=target)
            found = run(few, {x: array}, {"n": size}, target=target)
            assert found[out].tobytes() == wanted[out].tobytes()
