"""What kernels for a GPU move: counted by the shim as a GPU's memory has it."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from benchmarks.workloads.elementwise import BlackScholes, Gelu
from benchmarks.workloads.rows import CrossEntropy, LayerNorm, Softmax
from tests.runtime.gpu.on_processor import GPU, NONE, Kernels, Traffic
from tests.runtime.gpu.test_kernels import (
    F16,
    F32,
    I32,
    I64,
    Case,
    N,
    assert_same,
    cases,
    layer_norm,
    numbers,
    softmax,
    total,
)
from tests.runtime.gpu.traffic import of_workload
from treadle.core.shapes import SymbolicDim
from treadle.kernel.ir import Axis, Buffer, Kernel, Reduce, Scan, affine, apply, load, store
from treadle.kernel.reference import evaluate
from treadle.runtime.gpu.kernels import kernel_code
from treadle.runtime.gpu.mapping import map_kernel
from treadle.runtime.gpu.rows import Kept, kept_loads

Counts = dict[tuple[Buffer | str, str], Traffic]


def column_sums(rows: int, columns: int) -> tuple[Kernel, Buffer]:
    i, j = Axis("i", rows), Axis("j", columns)
    x, out = Buffer("x", F32, (rows, columns)), Buffer("out", F32, (columns,))
    value = Reduce("sum", (i,), load(x, i, j))
    return Kernel((i, j), (x, out), (store(out, j, value=value),)), x


def sum_of_all() -> Case:
    kernel, x = total(1 << 16)
    return kernel, {x: numbers((1 << 16,))}, {}


def case(made: tuple[Kernel, Buffer]) -> Case:
    kernel, x = made
    shape: Any = x.shape
    return kernel, {x: numbers(shape)}, {}


def binary() -> Case:
    i, j = Axis("i", 64), Axis("j", 96)
    x, out = Buffer("x", F16, (64, 96)), Buffer("out", F16, (64, 96))
    row = Buffer("row", F16, (96,))
    value = apply("add", load(x, i, j), load(row, j))
    kernel = Kernel((i, j), (x, row, out), (store(out, i, j, value=value),))
    return kernel, {x: numbers((64, 96), F16), row: numbers((96,), F16, 1)}, {}


def gathered_rows() -> Case:
    i, j = Axis("i", 100), Axis("j", 24)
    places, x = Buffer("p", I64, (100,)), Buffer("x", F32, (40, 24))
    out = Buffer("out", F32, (100, 24))
    stored = store(out, i, j, value=load(x, load(places, i), j))
    kernel = Kernel((i, j), (places, x, out), (stored,))
    rng = np.random.default_rng(0)
    return kernel, {places: rng.integers(-3, 50, 100), x: numbers((40, 24))}, {}


def added_rows() -> Case:
    i, j = Axis("i", 512), Axis("j", 64)
    places, x = Buffer("p", I32, (512,)), Buffer("x", F32, (512, 64))
    out = Buffer("out", F32, (300, 64))
    stored = store(out, load(places, i), j, value=load(x, i, j), combine="add")
    given = np.random.default_rng(0).integers(0, 300, 512).astype(np.int32)
    arrays = {places: given, x: numbers((512, 64)), out: numbers((300, 64), seed=1)}
    return Kernel((i, j), (places, x, out), (stored,)), arrays, {}


def running_sums() -> Case:
    i, j = Axis("i", 140), Axis("j", 1024)
    x, out = Buffer("x", F32, (140, 1024)), Buffer("out", F32, (140, 1024))
    kernel = Kernel((i, j), (x, out), (store(out, i, j, value=Scan("add", j, load(x, i, j))),))
    return kernel, {x: numbers((140, 1024))}, {}


def pooled() -> Case:
    i, j, k = Axis("i", 20), Axis("j", 3), Axis("k", 96)
    x, out = Buffer("x", F32, (60, 96)), Buffer("out", F32, (20, 96))
    value = Reduce("max", (j,), load(x, affine([(i, 3), (j, 1)]), k))
    kernel = Kernel((i, j, k), (x, out), (store(out, i, k, value=value),))
    return kernel, {x: numbers((60, 96))}, {}


@cache
def patterns() -> dict[str, Case]:
    return {
        "elementwise": cases()["1024 open elements"],
        "a row beside": binary(),
        "softmax": case(softmax(48, 1024)),
        "softmax of long rows": case(softmax(140, 4096)),
        "softmax of columns": case(softmax(64, 64, down=True)),
        "layer norm": layer_norm(32, 256),
        "column sums": case(column_sums(300, 64)),
        "sum of all": sum_of_all(),
        "pooled": pooled(),
        "gathered rows": gathered_rows(),
        "added rows": added_rows(),
        "running sums": running_sums(),
        "transpose": cases()["transpose of the outer axes"],
        "transpose of halves": cases()["transpose of the inner axes"],
        "transpose of bytes": cases()["transpose of bytes"],
    }


@cache
def counted() -> dict[str, Counts]:
    library = Kernels([kernel for kernel, _, _ in patterns().values()])
    return {
        name: library.traffic(kernel, arrays, sizes)
        for name, (kernel, arrays, sizes) in patterns().items()
    }


@pytest.mark.parametrize("name", ["elementwise", "a row beside", "softmax", "softmax of long rows",
    "softmax of columns", "layer norm", "column sums", "sum of all", "gathered rows", "added rows",
    "running sums", "pooled"])  # fmt: skip
def test_warps_move_whole_sectors(name: str) -> None:
    for (buffer, what), traffic in counted()[name].items():
        if buffer != "shared":
            assert traffic.moved == traffic.least, (buffer, what)


@pytest.mark.parametrize("name", ["transpose", "transpose of halves", "transpose of bytes"])
def test_transposes_move_rows_of_squares(name: str) -> None:
    for (buffer, what), traffic in counted()[name].items():
        if buffer != "shared":  # rows of 33 or 70 elements begin anywhere
            assert traffic.moved <= traffic.least + traffic.requests, (buffer, what)
            assert traffic.moved < traffic.elements / 2


@pytest.mark.parametrize("name", patterns())
def test_banks_of_shared_memory_have_no_conflicts(name: str) -> None:
    for (buffer, what), traffic in counted()[name].items():
        if buffer == "shared":
            assert traffic.moved == traffic.least, what
    assert (("shared", "loads") in counted()[name]) or "transpose" not in name


@pytest.mark.parametrize("name", ["softmax", "softmax of long rows", "softmax of columns",
                                  "layer norm"])  # fmt: skip
def test_rows_are_read_once(name: str) -> None:
    kernel, arrays, _ = patterns()[name]
    x = kernel.buffers[0]
    traffic = counted()[name][x, "loads"]
    assert traffic.moved == arrays[x].nbytes / 32


def test_vectors_are_moved_at_once() -> None:
    wanted = {"elementwise": 4, "a row beside": 8, "softmax": 4, "layer norm": 4, "sum of all": 4,
              "running sums": 1, "added rows": 1}  # fmt: skip
    for name, vector in wanted.items():
        kernel, arrays, _ = patterns()[name]
        x = next(b for b in kernel.buffers if b.name == "x")
        assert counted()[name][x, "loads"].elements == arrays[x].size / vector
    kernel, arrays, _ = patterns()["gathered rows"]
    places, x, out = kernel.buffers
    assert counted()["gathered rows"][x, "loads"].elements == 100 * 24 / 4
    assert counted()["gathered rows"][out, "stores"].elements == 100 * 24 / 4


@pytest.mark.parametrize("rows, columns, registers, kept", [
    (16, 60, 16, Kept(1, True, True)),
    (3, 1003, 16, Kept(4, True, True)),
    (3, 1003, 12, Kept(4, True, False)),  # in shared memory
    (3, 1000, 0, Kept(1, True, False)),
    (3, 4000, 12, Kept(3, False, False)),  # some of them
    (3, N, 16, Kept(13, False, False)),
])  # fmt: skip
@pytest.mark.parametrize("in_place", [False, True])
def test_where_rows_are_kept(
    rows: int, columns: Any, registers: int, kept: Kept, in_place: bool
) -> None:
    gpu = replace(GPU, multiprocessors=1, shared=14 << 10, kept=registers)
    kernel, x = softmax(rows, columns)
    if in_place:
        (stored,) = kernel.stores
        kernel = replace(kernel, buffers=(x,), stores=(replace(stored, buffer=x),))
    mapping = map_kernel(kernel, gpu)
    (found,) = kept_loads(kernel, mapping, gpu).values()
    assert found == kept
    size = columns if isinstance(columns, int) else 5000
    arrays = {x: numbers((rows, size))}
    sizes = {} if isinstance(columns, int) else {"n": size}
    library = Kernels([kernel], gpu)
    traffic = library.traffic(kernel, arrays, sizes)[x, "loads"]
    own = kept.turns * mapping.run * mapping.team
    assert traffic.elements * mapping.run == rows * (size + 2 * max(0, size - own))
    ((_, made),) = library.run(kernel, arrays, sizes).items()
    ((_, expected),) = evaluate(kernel, arrays, sizes).items()
    assert_same(made, expected, F32)
    (stage,) = library.codes[kernel, NONE].stages
    assert stage.shared <= gpu.shared


def test_multiprocessors_are_full() -> None:
    for name, (kernel, _, _) in patterns().items():
        for stage in kernel_code(kernel, "k", GPU).stages:
            assert GPU.occupancy(stage.threads, stage.shared) == GPU.resident, name
    assert GPU.occupancy(1024, 100 << 10) == 2048 and GPU.occupancy(1024, 128 << 10) == 1024
    assert GPU.occupancy(32, 0) == 32 * 32


def test_large_squares_are_turned() -> None:
    m = SymbolicDim.symbol("m")
    for rows, columns, turned in ((N, m, True), (3, 1000, False), (1000, 3, False)):
        i, j = Axis("i", rows), Axis("j", columns)
        x, out = Buffer("x", F32, (columns, rows)), Buffer("out", F32, (rows, columns))
        kernel = Kernel((i, j), (x, out), (store(out, i, j, value=load(x, j, i)),))
        assert (map_kernel(kernel, GPU).turned is i) is turned


@pytest.mark.parametrize("workload", [
    Gelu("gelu", n=100_000), BlackScholes("black-scholes", n=40_000),
    Softmax("softmax", rows=48, columns=1024), LayerNorm("layer norm", rows=48, columns=1024),
    CrossEntropy("cross-entropy", rows=48, columns=1000),
], ids=lambda w: w.name)  # fmt: skip
def test_programs_move_little_more_than_they_must(workload: Any) -> None:
    found = of_workload(workload)
    assert found is not None and found.routines == 0
    assert found.ratio <= 1.15
    assert found.microseconds(GPU) == 1e6 * found.kernels / GPU.bandwidth


@pytest.mark.parametrize(
    "rows, columns, wide", [(1024, 64, False), (1024, 8, True), (9000, 64, True)]
)
def test_blocks_have_columns_for_themselves(rows: int, columns: int, wide: bool) -> None:
    """Unless these are too few for the device, or too long to be kept."""
    gpu = replace(GPU, multiprocessors=10)
    kernel, x = softmax(rows, columns, down=True)
    mapping = map_kernel(kernel, gpu)
    assert mapping.across and (mapping.parts != 1) is wide
    if wide:
        return
    assert mapping.points == 8 and mapping.threads == GPU.most_block
    library, arrays = Kernels([kernel], gpu), {x: numbers((rows, columns))}
    counts = library.traffic(kernel, arrays)
    for (buffer, what), traffic in counts.items():
        assert traffic.moved == traffic.least, (buffer, what)
    assert counts[x, "loads"].moved == arrays[x].nbytes / 32
    ((_, made),) = library.run(kernel, arrays).items()
    ((_, expected),) = evaluate(kernel, arrays, {}).items()
    assert_same(made, expected, F32)


def test_rows_that_are_not_kept_are_counted_again() -> None:
    softmax = Softmax("softmax", rows=20, columns=1024)
    found = of_workload(softmax, replace(GPU, kept=0, shared=1 << 10))
    assert found is not None and found.ratio > 1.9
