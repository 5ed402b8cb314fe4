"""Kernels for a GPU against their reference: run on the processor through `shim.hpp`."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.runtime.cpu.test_nest import kernels
from tests.runtime.gpu.on_processor import GPU, NONE, Fault, Kernels
from treadle.core import dtypes
from treadle.core.shapes import SymbolicDim
from treadle.kernel.functions import FUNCTIONS
from treadle.kernel.ir import (
    REDUCTIONS,
    Axis,
    Buffer,
    Extent,
    Iota,
    Kernel,
    Reduce,
    Scan,
    affine,
    apply,
    cast,
    const,
    load,
    store,
)
from treadle.kernel.reference import evaluate, evaluate_segmented
from treadle.runtime.gpu.kernels import kernel_code
from treadle.runtime.gpu.mapping import map_kernel
from treadle.runtime.gpu.splitting import split
from treadle.runtime.schedule.facts import Unsupported

F16, BF16, F32, F64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64
I8, I32, I64, U8, BOOL = dtypes.int8, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.bool
N = SymbolicDim.symbol("n")
Case = tuple[Kernel, dict[Buffer, Any], dict[str, int]]
MAKERS: dict[str, Callable[[], Case]] = {}


def numbers(shape: tuple[int, ...], dtype: Any = F32, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if dtype.is_floating:
        return rng.standard_normal(shape).astype(dtype.np_dtype)
    return rng.integers(0, 2 if dtype.is_bool else 9, shape).astype(dtype.np_dtype)


def case(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register the maker of (kernel, arrays) or (kernel, arrays, sizes)."""

    def register(maker: Callable[[], Any]) -> Callable[[], Any]:
        MAKERS[name] = maker
        return maker

    return register


def elementwise(name: str, fn: str, dtype: Any, size: Any, sizes: dict[str, int]) -> None:
    @case(name)
    def make() -> Case:
        i = Axis("i", size)
        x, y = Buffer("x", dtype, (size,)), Buffer("y", dtype, (size,))
        stored = store(y, i, value=apply(fn, load(x, i)))
        arrays = {x: numbers((sizes.get("n", size),), dtype)}
        return Kernel((i,), (x, y), (stored,)), arrays, sizes


for _dtype in (F16, BF16, F32, F64):
    elementwise(f"tanh of {_dtype.name}", "tanh", _dtype, 1000, {})
elementwise("negative bytes", "neg", I8, 77, {})
for _count in (1, 3, 4, 5, 1023, 1024, 1025):
    elementwise(f"{_count} open elements", "exp", F32, N, {"n": _count})


def softmax(rows: Any, columns: Any, down: bool = False) -> tuple[Kernel, Buffer]:
    i, j = Axis("i", rows), Axis("j", columns)
    x, out = Buffer("x", F32, (rows, columns)), Buffer("out", F32, (rows, columns))
    v, over = load(x, i, j), (i,) if down else (j,)
    e = apply("exp", apply("sub", v, Reduce("max", over, v)))
    value = apply("div", e, Reduce("sum", over, e))
    return Kernel((i, j), (x, out), (store(out, i, j, value=value),)), x


for _rows, _columns in ((5, 1), (70, 7), (3, 33), (9, 130), (3, 1000), (2, 4100)):
    for _down in (False, True):

        @case(f"softmax {_rows}x{_columns} {'down' if _down else 'along'}")
        def _(rows: int = _rows, columns: int = _columns, down: bool = _down) -> Any:
            kernel, x = softmax(rows, columns, down)
            return kernel, {x: numbers((rows, columns))}


@case("softmax of open rows")
def _() -> Any:
    kernel, x = softmax(N, SymbolicDim.symbol("m"))
    return kernel, {x: numbers((6, 45))}, {"n": 6, "m": 45}


@case("no elements")
def _() -> Any:
    kernel, x = softmax(N, 4)
    return kernel, {x: numbers((0, 4))}, {"n": 0}


for _op in REDUCTIONS:
    for _dtype in (BOOL,) if _op in ("any", "all") else (F32, F64, BF16, I8, U8, I64):
        for _axes, _shape in (("j", (7, 40)), ("i", (40, 7)), ("ij", (5, 60)), ("j", (4, 0))):
            if len(_axes) > 1 and _op.startswith("arg"):
                continue

            @case(f"{_op} of {_dtype.name} {_shape} along {_axes}")
            def _(
                op: str = _op, dtype: Any = _dtype, along: str = _axes, shape: Any = _shape
            ) -> Any:
                i, j = Axis("i", shape[0]), Axis("j", shape[1])
                over = tuple(a for a in (i, j) if a.name in along)
                kept = [a for a in (i, j) if a not in over]
                x = Buffer("x", dtype, shape)
                value = Reduce(op, over, load(x, i, j))
                out = Buffer("out", value.dtype, tuple(a.extent for a in kept))
                given = numbers(shape, dtype, 3)
                if dtype is F32 and given.size:
                    given[shape[0] // 2, ::9] = np.nan
                return Kernel((i, j), (x, out), (store(out, *kept, value=value),)), {x: given}


def layer_norm(rows: int, columns: int) -> Case:
    i, j = Axis("i", rows), Axis("j", columns)
    x, scale = Buffer("x", F32, (rows, columns)), Buffer("scale", F32, (columns,))
    out, means = Buffer("out", F32, (rows, columns)), Buffer("means", F32, (rows,))
    v, count = load(x, i, j), const(columns, F32)
    mean = apply("div", Reduce("sum", (j,), v), count)
    apart = apply("sub", v, mean)
    variance = apply("div", Reduce("sum", (j,), apply("mul", apart, apart)), count)
    value = apply("mul", apply("mul", apart, apply("rsqrt", variance)), load(scale, j))
    stores = store(out, i, j, value=value), store(means, i, value=mean)
    arrays = {x: numbers((rows, columns)), scale: numbers((columns,), seed=1)}
    return Kernel((i, j), (x, scale, out, means), stores), arrays, {}


@case("layer norm with its moments")
def _() -> Any:
    return layer_norm(12, 100)


@case("rows and columns of one array")
def _() -> Any:
    i, j = Axis("i", 9), Axis("j", 21)
    x = Buffer("x", F32, (9, 21))
    rows, columns = Buffer("rows", F32, (9,)), Buffer("columns", F32, (21,))
    stores = (
        store(rows, i, value=Reduce("sum", (j,), load(x, i, j))),
        store(columns, j, value=Reduce("max", (i,), load(x, i, j))),
    )
    return Kernel((i, j), (x, rows, columns), stores), {x: numbers((9, 21))}


@case("a sum of products of sums")
def _() -> Any:
    i, j, k = Axis("i", 4), Axis("j", 6), Axis("k", 40)
    x, out = Buffer("x", F64, (4, 6, 40)), Buffer("out", F64, (4,))
    inner = Reduce("sum", (k,), load(x, i, j, k))
    value = Reduce("sum", (j,), apply("mul", inner, inner))
    return Kernel((i, j, k), (x, out), (store(out, i, value=value),)), {x: numbers((4, 6, 40), F64)}


@case("in place")
def _() -> Any:
    i, j = Axis("i", 6), Axis("j", 70)
    x, total = Buffer("x", F32, (6, 70)), Buffer("total", F32, ())
    v = load(x, i, j)
    value = apply("sub", apply("mul", v, load(total)), Reduce("max", (j,), v))
    arrays = {x: numbers((6, 70)), total: np.float32(3)}
    return Kernel((i, j), (x, total), (store(x, i, j, value=value),)), arrays


@case("transposed, padded and reversed")
def _() -> Any:
    i, j = Axis("i", 30), Axis("j", 22)
    x, out = Buffer("x", F32, (20, 28)), Buffer("out", F32, (30, 22))
    place = Iota(i, I64)
    inside = apply("and", apply("ge", place, const(1, I64)), apply("lt", place, const(29, I64)))
    column = apply("lt", Iota(j, I64), const(20, I64))
    valid = apply("and", inside, column)
    value = load(x, affine([(j, -1)], 19), affine([(i, 1)], -1), valid=valid, fill=7)
    return Kernel((i, j), (x, out), (store(out, i, j, value=value),)), {x: numbers((20, 28))}


@case("rows at computed places")
def _() -> Any:
    i, j = Axis("i", 11), Axis("j", 24)
    x, out = Buffer("x", F32, (5, 24)), Buffer("out", F32, (11, 24))
    places = Buffer("places", I32, (11,))
    value = load(x, cast(load(places, i), I64), j)
    arrays = {x: numbers((5, 24)), places: np.arange(-3, 8, dtype=np.int32)}
    return Kernel((i, j), (x, places, out), (store(out, i, j, value=value),)), arrays


for _combine in ("set", "add", "mul", "max", "min"):
    for _dtype in (F32, BF16, I32):
        for _width in (None, 5):

            @case(f"{_combine} at places, {_dtype.name}, rows of {_width}")
            def _(combine: str = _combine, dtype: Any = _dtype, width: Any = _width) -> Any:
                i, j = Axis("i", 40), Axis("j", width or 1)
                tail = (j,) if width else ()
                shape = tuple(a.extent for a in tail)
                places, x = Buffer("p", I64, (40,)), Buffer("x", dtype, (40, *shape))
                out = Buffer("out", dtype, (7, *shape))
                value = load(x, i, *tail)
                stored = store(out, load(places, i), *tail, value=value, combine=combine)
                arrays = {
                    places: np.random.default_rng(1).integers(-1, 8, 40),
                    x: numbers((40, *shape), dtype), out: numbers((7, *shape), dtype, 2),
                }
                return Kernel((i, *tail), (places, x, out), (stored,)), arrays


@case("open rows are added at two places, of open axes, from a row of places")
def _() -> Any:
    m = SymbolicDim.symbol("m")
    i, k, j = Axis("i", N), Axis("k", 3), Axis("j", m)
    rows, columns = Buffer("rows", I32, (N,)), Buffer("columns", I64, (N, 3))
    x, out = Buffer("x", F32, (N, m)), Buffer("out", F32, (m, 5, 6, 3))
    value = apply("mul", load(x, i, j), cast(Iota(k), F32))
    index = j, load(rows, i), apply("add", load(columns, i, k), const(1, I64)), 1
    rng = np.random.default_rng(2)
    arrays = {
        rows: rng.integers(-1, 6, 700).astype(np.int32), columns: rng.integers(0, 9, (700, 3)),
        x: numbers((700, 37)), out: numbers((37, 5, 6, 3), seed=4),
    }  # fmt: skip
    stored = store(out, *index, value=value, combine="add")
    return Kernel((i, k, j), (rows, columns, x, out), (stored,)), arrays, {"n": 700, "m": 37}


for _count, _rows, _columns in ((3000, 4000, 1), (2100, 3, 300), (0, 5, 7), (2000, 0, 3)):

    @case(f"{_count} rows of {_columns} are added to {_rows}")
    def _(count: int = _count, rows: int = _rows, columns: int = _columns) -> Any:
        i, j = Axis("i", count), Axis("j", columns)
        places, x = Buffer("p", I32, (count,)), Buffer("x", F32, (count, columns))
        out = Buffer("out", F32, (rows, columns))
        stored = store(out, load(places, i), j, value=load(x, i, j), combine="add")
        given = np.random.default_rng(3).integers(0, max(rows, 1), count).astype(np.int32)
        arrays = {places: given, x: numbers((count, columns)), out: numbers((rows, columns))}
        return Kernel((i, j), (places, x, out), (stored,)), arrays


for _combine in ("add", "mul", "max", "min", "logaddexp"):
    for _exclusive, _reverse in ((False, False), (True, False), (False, True), (True, True)):

        @case(f"scan by {_combine}{' exclusive' * _exclusive}{' reverse' * _reverse}")
        def _(op: str = _combine, exclusive: bool = _exclusive, reverse: bool = _reverse) -> Any:
            i, j = Axis("i", 5), Axis("j", 19)
            x, out = Buffer("x", F32, (5, 19)), Buffer("out", F32, (5, 19))
            scan = Scan(op, j, apply("abs", load(x, i, j)), exclusive, reverse)
            value = apply("mul", scan, const(2, F32))
            return Kernel((i, j), (x, out), (store(out, i, j, value=value),)), {x: numbers((5, 19))}


for _name, _order, _dtype in (
    ("two axes", (1, 0), F32), ("the outer axes", (2, 1, 0), F64),
    ("the inner axes", (0, 2, 1), F16), ("bytes", (1, 2, 0), U8),
):  # fmt: skip

    @case(f"transpose of {_name}")
    def _(order: Any = _order, dtype: Any = _dtype) -> Any:
        sizes = (40, 33, 70)[: len(order)]
        x = Buffer("x", dtype, sizes)
        axes = [Axis(f"a{n}", sizes[old]) for n, old in enumerate(order)]
        out = Buffer("out", dtype, tuple(a.extent for a in axes))
        v = load(x, *(axes[order.index(n)] for n in range(len(order))))
        stored = store(out, *axes, value=apply("add", v, const(1, dtype)))
        return Kernel(tuple(axes), (x, out), (stored,)), {x: numbers(sizes, dtype)}


@case("a transpose of open axes, with a sum, a pad and what is not turned")
def _() -> Any:
    m = SymbolicDim.symbol("m")
    i, j = Axis("i", N), Axis("j", m)
    x, y = Buffer("x", F32, (m, N)), Buffer("y", F32, (N, m))
    column, out = Buffer("column", F32, (N,)), Buffer("out", F32, (N, m))
    inside = apply("lt", Iota(i), const(30, I64))
    turned = apply("add", load(x, j, i), load(x, j, i, valid=inside, fill=3))
    value = apply("mul", turned, apply("sub", load(y, i, j), load(column, i)))
    arrays = {x: numbers((50, 41)), y: numbers((41, 50), seed=1), column: numbers((41,), seed=2)}
    kernel = Kernel((i, j), (x, y, column, out), (store(out, i, j, value=value),))
    return kernel, arrays, {"n": 41, "m": 50}


@case("complex numbers")
def _() -> Any:
    i = Axis("i", 50)
    z, out = Buffer("z", dtypes.complex64, (50,)), Buffer("out", dtypes.complex64, (50,))
    v = load(z, i)
    value = apply("complex", apply("imag", v), apply("neg", apply("real", v)))
    given = (numbers((50,)) + 1j * numbers((50,), seed=1)).astype(np.complex64)
    return Kernel((i,), (z, out), (store(out, i, value=value),)), {z: given}


@case("the value of a size, and a number that is stored once")
def _() -> Any:
    i = Axis("i", N)
    x, out, total = Buffer("x", F32, (N,)), Buffer("out", F32, (N,)), Buffer("total", F32, ())
    count = cast(Extent(N), F32)
    stores = store(out, i, value=apply("div", load(x, i), count)), store(total, value=count)
    return Kernel((i,), (x, out, total), stores), {x: numbers((13,))}, {"n": 13}


for _shape in ((1, 1000), (9, 32), (3, 33), (40, 5), (2, 0), (7, N)):

    @case(f"scans of scans {_shape}")
    def _(shape: Any = _shape) -> Any:
        i, j = Axis("i", shape[0]), Axis("j", shape[1])
        x, out = Buffer("x", F32, shape), Buffer("out", F32, shape)
        sizes = tuple(300 if d is N else d for d in shape)
        inner = Scan("max", j, load(x, i, j))
        outer = Scan("add", j, apply("mul", inner, load(x, i, j)), exclusive=True)
        lengths = Scan("logaddexp", j, load(x, i, j))
        value = apply("add", outer, lengths)
        kernel = Kernel((i, j), (x, out), (store(out, i, j, value=value),))
        return kernel, {x: numbers(sizes)}, {"n": 300} if N in shape else {}

    @case(f"a scan in place {_shape}")
    def _(shape: Any = _shape) -> Any:
        i, j = Axis("i", shape[0]), Axis("j", shape[1])
        x = Buffer("x", I64, shape)
        sizes = tuple(300 if d is N else d for d in shape)
        scan = Scan("add", j, load(x, i, j), reverse=True)
        kernel = Kernel((i, j), (x,), (store(x, i, j, value=scan),))
        return kernel, {x: numbers(sizes, I64)}, {"n": 300} if N in shape else {}


def in_groups(in_place: bool) -> Case:
    """Stores that do not fit together: rows, columns, all, a scan, and at places; with what changes
    in place after the others have loaded it."""
    i, j = Axis("i", 60), Axis("j", 90)
    x, out = Buffer("x", F32, (60, 90)), Buffer("out", F32, (60, 90))
    rows, columns = Buffer("rows", F32, (60,)), Buffer("columns", F32, (90,))
    most, back = Buffer("most", F32, ()), Buffer("back", F32, (60, 90))
    counts = Buffer("counts", I32, (3,))
    v = load(x, i, j)
    total = Reduce("sum", (j,), v)
    stores = (
        store(x if in_place else out, i, j, value=apply("div", v, total)),
        store(rows, i, value=total),
        store(columns, j, value=Reduce("sum", (i,), apply("abs", v))),
        store(most, value=Reduce("max", (i, j), v)),
        store(back, i, j, value=Scan("max", j, v, reverse=True)),
        store(counts, cast(v, I32), value=const(1, I32), combine="add"),
    )
    buffers = (x, rows, columns, most, back, counts)
    kernel = Kernel((i, j), buffers if in_place else (*buffers, out), stores)
    return kernel, {x: numbers((60, 90))}, {}


for _in_place in (False, True):

    @case(f"stores in groups{' in place' * _in_place}")
    def _(in_place: bool = _in_place) -> Any:
        return in_groups(in_place)


@case("scans in both directions")
def _() -> Any:
    i, j = Axis("i", 5), Axis("j", 40)
    x, y = Buffer("x", F32, (5, 40)), Buffer("y", F32, (5, 40))
    stores = (
        store(x, i, j, value=Scan("add", j, load(x, i, j))),
        store(y, i, j, value=Scan("mul", j, load(x, i, j), reverse=True)),
    )
    return Kernel((i, j), (x, y), stores), {x: numbers((5, 40))}


def test_stores_that_do_not_fit_together_are_several_kernels() -> None:
    for in_place in (False, True):
        kernel, arrays, _ = in_groups(in_place)
        parts = split(kernel)
        assert len(parts) == 5
        kept = dict(arrays)
        for part in parts:
            kept |= evaluate(part, kept)
        for buffer, array in evaluate(kernel, arrays).items():
            np.testing.assert_array_equal(kept[buffer], array)
    i, j = kernel.axes
    x, y = (Buffer(name, F32, (60, 90)) for name in "xy")
    sums = Reduce("sum", (j,), load(y, i, j)), Reduce("sum", (i,), load(x, i, j))
    stores = store(x, i, j, value=sums[0]), store(y, i, j, value=sums[1])
    each_needs_the_other = Kernel((i, j), (x, y), stores)
    assert split(each_needs_the_other) == [each_needs_the_other]


@cache
def cases() -> dict[str, Case]:
    made = {name: maker() for name, maker in MAKERS.items()}
    return {name: (found if len(found) == 3 else (*found, {})) for name, found in made.items()}


@cache
def compiled() -> Kernels:
    return Kernels([kernel for kernel, _, _ in cases().values()])


SCATTERS = [name for name in MAKERS if " at places" in name or " added " in name]


@pytest.mark.parametrize("name", SCATTERS)
def test_stores_that_meet_are_done_in_the_order_of_positions(name: str) -> None:
    kernel, arrays, sizes = cases()[name]
    (expected,) = evaluate(kernel, arrays, sizes).values()
    (found,) = compiled().run(kernel, arrays, sizes).values()
    assert map_kernel(kernel, GPU).owners and found.tobytes() == expected.tobytes()


def assert_same(found: Any, expected: Any, dtype: Any, name: str = "") -> None:
    """Equal numbers: sums differ by their order."""
    if dtype.is_complex or dtype.is_floating:
        wide = np.complex128 if dtype.is_complex else np.float64
        tolerance = {2: 2e-2, 4: 2e-5}.get(dtype.size, 1e-12 if dtype is F64 else 2e-5)
        np.testing.assert_allclose(
            found.astype(wide), expected.astype(wide), tolerance, tolerance, err_msg=name
        )
    else:
        np.testing.assert_array_equal(found, expected, err_msg=name)


def check(library: Kernels, kernel: Kernel, arrays: Any, sizes: Any) -> None:
    expected = evaluate(kernel, arrays, sizes)
    for buffer, found in library.run(kernel, arrays, sizes).items():
        assert_same(found, expected[buffer], buffer.dtype, library.codes[kernel, NONE].text)


@pytest.mark.parametrize("name", MAKERS)
def test_kernels(name: str) -> None:
    kernel, arrays, sizes = cases()[name]
    check(compiled(), kernel, arrays, sizes)


@settings(max_examples=3, deadline=None, derandomize=True, phases=[Phase.generate])
@given(st.lists(kernels(), min_size=20, max_size=20))
def test_random_kernels(found: list[Case]) -> None:
    library = Kernels([kernel for kernel, _, _ in found])
    for kernel, arrays, sizes in found:
        check(library, kernel, arrays, sizes)


# ---- points whose elements blocks share: a device with few elements for a thread
SMALL = replace(GPU, multiprocessors=6, resident=512, elements=2)


def in_parts() -> dict[str, Case]:
    """Kernels with few points that have many elements each."""
    found: dict[str, Case] = {}

    def reduction(name: str, op: str, dtype: Any, shape: Any, kept: str, sizes: Any = {}) -> None:
        axes = [Axis("ij"[n], d) for n, d in enumerate(shape)]
        x = Buffer("x", dtype, tuple(shape))
        stay = [a for a in axes if a.name in kept]
        over = tuple(a for a in axes if a not in stay)
        value = Reduce(op, over, load(x, *axes))
        out = Buffer("out", value.dtype, tuple(a.extent for a in stay))
        kernel = Kernel(tuple(axes), (x, out), (store(out, *stay, value=value),))
        arrays = {x: numbers(tuple(sizes.get(str(d), d) for d in shape), dtype, 5)}
        found[name] = kernel, arrays, sizes

    for op in REDUCTIONS:
        dtype = BOOL if op in ("any", "all") else F32
        reduction(f"{op} of all", op, dtype, (9001,), "")
        reduction(f"{op} of open rows", op, dtype, (3, N), "i", {"n": 7001})
        reduction(f"{op} of few columns", op, dtype, (5000, 3), "j")
    for n in (0, 1, 50, 6000):
        reduction(f"sum of {n} open elements", "sum", BF16, (N,), "", {"n": n})
        reduction(f"argmax of {n} open rows", "argmax", I8, (N, 5), "j", {"n": n})
    reduction("sum along two axes", "sum", I64, (70, 90), "")
    for name, rows, columns in (("softmax of all", 1, 9000), ("softmax of few rows", 3, N)):
        kernel, x = softmax(rows, columns)
        found[name] = kernel, {x: numbers((rows, 9000))}, {} if columns == 9000 else {"n": 9000}
    kernel, x = softmax(7000, 5, down=True)
    found["softmax of few columns"] = kernel, {x: numbers((7000, 5))}, {}

    # A row that is changed in place, with the place of its greatest element and two sums.
    i, j = Axis("i", 2), Axis("j", 6000)
    x, scale = Buffer("x", F32, (2, 6000)), Buffer("scale", F32, (6000,))
    places, sums = Buffer("places", I64, (2,)), Buffer("sums", F64, (2,))
    v = load(x, i, j)
    total = Reduce("sum", (j,), cast(v, F64))
    square = apply("mul", v, v)
    size = apply("rsqrt", Reduce("sum", (j,), square))
    changed = apply("mul", apply("sub", v, cast(total, F32)), apply("mul", size, load(scale, j)))
    stores = (
        store(x, i, j, value=changed),
        store(places, i, value=Reduce("argmax", (j,), apply("mul", square, size))),
        store(sums, i, value=total),
    )
    kernel = Kernel((i, j), (x, scale, places, sums), stores)
    found["rows in place"] = kernel, {x: numbers((2, 6000)), scale: numbers((6000,), seed=4)}, {}

    for op, exclusive, reverse in (
        ("add", False, False), ("mul", True, False), ("max", False, True), ("min", True, True),
    ):  # fmt: skip
        for rows, columns, dtype in ((1, 9001, F32), (3, N, I32), (2, 4000, BF16)):
            i, j = Axis("i", rows), Axis("j", columns)
            x, out = Buffer("x", dtype, (rows, columns)), Buffer("out", dtype, (rows, columns))
            scan = Scan(op, j, load(x, i, j), exclusive, reverse)
            last, sizes = Buffer("first", dtype, (rows,)), {} if columns is not N else {"n": 5003}
            stores = store(out, i, j, value=scan), store(last, i, value=load(x, i, 0))
            given = numbers((rows, 5003 if sizes else columns), dtype, 6)
            if op == "mul":  # products near 1
                given = np.where(given > given.dtype.type(1), 1, -1).astype(dtype.np_dtype)
            name = f"scan by {op} of {dtype.name}{(rows, columns)}"
            found[name] = Kernel((i, j), (x, out, last), stores), {x: given}, sizes
    for op, dtype in (("add", F32), ("mul", F32), ("max", BF16), ("min", I8), ("add", I64)):
        for rows, columns in ((3, 2), (1, 70)):
            i, j = Axis("i", 6000), Axis("j", columns)
            places, x = Buffer("p", I32, (6000,)), Buffer("x", dtype, (6000, columns))
            out = Buffer("out", dtype, (rows, columns))
            stored = store(out, load(places, i), j, value=load(x, i, j), combine=op)
            given = numbers((6000, columns), dtype, 7)
            if op == "mul":
                given = np.where(given > 1, 1, -1).astype(dtype.np_dtype)
            arrays = {
                places: np.random.default_rng(8).integers(-1, rows + 1, 6000).astype(np.int32),
                x: given, out: numbers((rows, columns), dtype, 9),
            }  # fmt: skip
            kernel = Kernel((i, j), (places, x, out), (stored,))
            found[f"{op} of {dtype.name} at {rows}x{columns}"] = kernel, arrays, {}
    return found


IN_PARTS = in_parts()


@cache
def compiled_parts() -> Kernels:
    return Kernels([kernel for kernel, _, _ in IN_PARTS.values()], SMALL)


@pytest.mark.parametrize("name", IN_PARTS)
def test_blocks_share_the_elements_of_a_point(name: str) -> None:
    kernel, arrays, sizes = IN_PARTS[name]
    library = compiled_parts()
    assert len(library.codes[kernel, NONE].stages) == 2 + ("softmax" in name or "rows in" in name)
    check(library, kernel, arrays, sizes)


def test_sums_have_one_order() -> None:
    for name in ("sum of all", "sum of few columns", "softmax of all"):
        kernel, arrays, sizes = IN_PARTS[name]
        results = [*compiled_parts().run(kernel, arrays, sizes).values()]
        for _ in range(3):
            again = [*compiled_parts().run(kernel, arrays, sizes).values()]
            assert all(a.tobytes() == b.tobytes() for a, b in zip(results, again, strict=True))


def test_a_long_sum_fills_the_device() -> None:
    kernel = total(10**8)[0]
    code = kernel_code(kernel, "k", GPU)
    first, last = code.stages
    assert first.blocks * first.threads == GPU.multiprocessors * GPU.resident
    assert last.blocks == 1 and code.scratch >= first.blocks * F32.size
    (alone,) = kernel_code(total(1000)[0], "k", GPU).stages
    assert alone.blocks == 1


def total(size: Any) -> Any:
    i = Axis("i", size)
    x, out = Buffer("x", F32, (size,)), Buffer("out", F32, ())
    return Kernel((i,), (x, out), (store(out, value=Reduce("sum", (i,), load(x, i))),)), x


# ---- scalar functions
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.5, 1e-30, -1e-30, 20.0, -20.0, 88.0, 1e30,
           -1e30, np.inf, -np.inf, np.nan]  # fmt: skip
WHOLE = [0, 1, 2, 3, 7, 8, 31, 63, 100, 126, 127, -128, -127, -1, -2, -7]


def function_kernel(fn: str, dtype: Any) -> Case | None:
    """A function of all pairs (or triples) of special values; None where it is not defined."""
    function = FUNCTIONS[fn]
    if dtype.kind not in function.kinds:
        return None
    values = np.array(SPECIAL if dtype.is_floating else WHOLE)
    if dtype.is_bool:
        values = np.array([False, True])
    if dtype.is_unsigned:
        values = np.abs(values)
    size = len(values)
    axes = [Axis(f"a{n}", size) for n in range(function.arity)]
    x = Buffer("x", dtype, (size,))
    operands = [load(x, a) for a in axes]
    if fn == "select":
        operands[0] = apply("lt", *operands[1:])
    value = apply(fn, *operands)
    out = Buffer("out", value.dtype, (size,) * len(axes))
    kernel = Kernel(tuple(axes), (x, out), (store(out, *axes, value=value),))
    return kernel, {x: values.astype(dtype.np_dtype)}, {}


FUNCTION_DTYPES = (F32, F64, I8, dtypes.uint16, I32, I64, dtypes.uint64, BOOL)


@cache
def functions() -> tuple[Kernels, dict[tuple[str, Any], Case]]:
    names = [fn for fn, f in FUNCTIONS.items() if fn != "cast" and f.kinds != "c"]
    found = {(fn, d): function_kernel(fn, d) for fn in names for d in FUNCTION_DTYPES}
    kept = {key: made for key, made in found.items() if made is not None}
    return Kernels([kernel for kernel, _, _ in kept.values()]), kept


@pytest.mark.parametrize("dtype", FUNCTION_DTYPES, ids=lambda d: d.name)
def test_special_values(dtype: Any) -> None:
    library, found = functions()
    for (fn, of), (kernel, arrays, _) in found.items():
        if of is not dtype:
            continue
        (expected,) = evaluate(kernel, arrays).values()
        (made,) = library.run(kernel, arrays).values()
        if expected.dtype.kind != "f":
            np.testing.assert_array_equal(made, expected, err_msg=fn)
            continue
        np.testing.assert_array_equal(np.isnan(made), np.isnan(expected), err_msg=fn)
        np.testing.assert_array_equal(np.signbit(made[made == 0]), np.signbit(expected[made == 0]))
        kind = np.finfo(made.dtype)  # results below the normal numbers have fewer places
        np.testing.assert_allclose(
            made, expected, 4 * kind.eps, float(kind.smallest_subnormal), err_msg=fn
        )


CASTS = (F16, BF16, F32, F64, I8, U8, dtypes.int16, dtypes.uint32, I64, dtypes.uint64, BOOL)


def test_casts() -> None:
    made = []
    for source in CASTS:
        values = [0, 1, 2, 100, 127, 128, 255, 300, 65519, 65520, 70000, 2**31, 2**40]
        floats = [*SPECIAL, 1.0009765625, 2049.0, 6e-8, 3e-8, 1e-40, *values]
        given = np.array(floats if source.is_floating else [0, 1, 100, 127])
        with np.errstate(all="ignore"):
            given = given.astype(source.np_dtype)
        for target in CASTS:
            i = Axis("i", len(given))
            x, out = Buffer("x", source, given.shape), Buffer("out", target, given.shape)
            value = cast(load(x, i), target)
            made.append((Kernel((i,), (x, out), (store(out, i, value=value),)), {x: given}))
    library = Kernels([kernel for kernel, _ in made])
    for kernel, arrays in made:
        (expected,) = evaluate(kernel, arrays).values()
        (found,) = library.run(kernel, arrays).values()
        numbers = [a.astype(np.float64) for a in (found, expected)]  # NaN of bfloat16 is unequal
        np.testing.assert_array_equal(*numbers, err_msg=str(kernel))
        np.testing.assert_array_equal(found[found == found], expected[expected == expected])


# ---- mappings, and what the shim finds
def test_neighbouring_threads_load_neighbouring_elements() -> None:
    along, down = softmax(64, 1000)[0], softmax(64, 1000, down=True)[0]
    assert not map_kernel(along, GPU).across and map_kernel(along, GPU).team == GPU.block
    assert map_kernel(down, GPU).across and map_kernel(down, GPU).points == GPU.warp
    assert map_kernel(cases()["1024 open elements"][0], GPU).vector == 4
    assert map_kernel(cases()["tanh of float16"][0], GPU).vector == 8


def faulty(name: str, old: str, new: str) -> str:
    """What the shim says of a kernel with a change."""
    kernel, arrays, sizes = cases()[name]
    library = Kernels([kernel])
    code = library.codes[kernel, NONE]
    assert old in code.text, code.text
    library.codes[kernel, NONE] = replace(code, text=code.text.replace(old, new, 1))
    with pytest.raises(Fault) as caught:
        library.run(kernel, arrays, sizes)
    return str(caught.value)


def test_the_shim_finds_faults() -> None:
    rows, columns = "softmax 9x130 along", "softmax 9x130 down"
    assert "buffer 0 of 1170 elements" in faulty(rows, "* 130 +", "* 1300 +")
    assert "store into element" in faulty(columns, "if (active) {", "if (true) {")
    assert "not aligned" in faulty("1024 open elements", "(b0, first_0)", "(b0, first_0 + 1)")
    assert "wait for" in faulty(columns, "float r2 =", "if (threadIdx.x < 7) return; float r2 =")
    race = "td_poke(row0, 0, threadIdx.x); float r2 ="
    assert "without a barrier" in faulty(columns, "float r2 =", race)


@pytest.mark.parametrize("passed", [False, True])
def test_segments_of_different_lengths_are_one_launch(passed: bool) -> None:
    i = Axis("i", N)
    x, y, rate = Buffer("x", F32, (N,)), Buffer("y", F32, (N,)), Buffer("rate", F32, ())
    value = apply("sub", load(x, i), apply("mul", load(y, i), load(rate)))
    kernel = Kernel((i,), (x, y, rate), (store(x, i, value=value),), segmented=True)
    values = frozenset({rate} if passed else ())
    library = Kernels([(kernel, values)])
    assert ("float b2;" in library.codes[kernel, values].text) is passed
    lengths = [5, 4096, 0, 1, 1025]
    segments = [
        {x: numbers((n,), seed=n), y: numbers((n,), seed=n + 1), rate: np.float32(k)}
        for k, n in enumerate(lengths)
    ]
    found = library.run_segments(kernel, segments, [{"n": n} for n in lengths], values)
    for made, expected in zip(found, evaluate_segmented(kernel, segments), strict=True):
        np.testing.assert_allclose(made[x], expected[x], 1e-6, 1e-6)


def test_what_has_no_form_is_refused() -> None:
    i = Axis("i", N)
    x = Buffer("x", F32, (N,))
    kernel = Kernel((i,), (x,), (store(x, i, value=apply("neg", load(x, i))),), blocked=True)
    with pytest.raises(Unsupported, match="blocks"):
        kernel_code(kernel, "k", GPU)
