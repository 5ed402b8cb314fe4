"""Kernels that library routines run on blocks of their results."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.cpu.machines import LARGE_CACHES, needs_avx2
from tests.runtime.harness import both, captures, native, trace, trace_like
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph
from treadle.passes import disabled
from treadle.runtime import Executable
from treadle.runtime.cpu.target import using
from treadle.runtime.cpu.threads import pool

RNG = np.random.default_rng(7)


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def runs(graph: Graph, *arrays: Any, off: Sequence[str] = ()) -> tuple[Executable, list[Any]]:
    """A program and its results, variables being restored."""
    held = captures(graph)
    start = [v.numpy().copy() for v in held if isinstance(v, td.Variable)]
    with disabled(*off):
        executable = native(graph)
    found = [np.array(r) for r in executable.run([*arrays, *held])]
    cells = [v for v in held if isinstance(v, td.Variable)]
    found += [v.numpy().copy() for v in cells]
    for variable, array in zip(cells, start, strict=True):
        variable.assign(array)
    return executable, found


def check(
    fn: Callable[..., Any], *arrays: Any, epilogues: int = 1, kernels: int = 0, tol: float = 2e-5
) -> Executable:
    """The program agrees with the interpreter, and bit by bit with one without epilogues."""
    graph = trace_like(fn, *arrays)
    executable = both(graph, *arrays, rtol=tol, atol=tol)
    assert executable.counters["epilogues"] == epilogues
    assert executable.counters["kernels"] == kernels
    plain, expected = runs(graph, *arrays, off=["epilogues"])
    assert plain.counters["epilogues"] == 0
    _, found = runs(graph, *arrays)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    return executable


SHAPES = [(1, 5, 7), (3, 33, 2), (14, 16, 16), (29, 31, 1), (37, 70, 300), (128, 513, 40),
          (250, 300, 1100), (64, 64, 0)]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m, n, k", SHAPES)
def test_bias_and_activation(m: int, n: int, k: int, dtype: Any) -> None:
    fn = lambda x, w, b: td.tanh(x @ w + b)
    arrays = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype), normal(n, dtype=dtype)
    check(fn, *arrays, tol=2e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("ta, tb", [(False, True), (True, False), (True, True)])
def test_residual_and_scale_of_transposed_operands(ta: bool, tb: bool) -> None:
    a, b = normal(*(90, 45)[:: -1 if ta else 1]), normal(*(45, 70)[:: -1 if tb else 1])
    fn = lambda a, b, r, s: td.matmul(a, b, transpose_a=ta, transpose_b=tb) * s + r
    check(fn, a, b, normal(90, 70), np.float32(0.3))


@pytest.mark.parametrize(
    "a, b, residual",
    [
        ((4, 3, 20, 8), (4, 3, 8, 17), (4, 3, 20, 17)),
        ((4, 3, 20, 8), (4, 3, 8, 17), (4, 1, 1, 17)),
        ((4, 3, 20, 8), (4, 3, 8, 17), (3, 20, 17)),
        ((4, 3, 20, 8), (4, 3, 8, 17), (20, 1)),
        ((4, 30, 8), (8, 17), (30, 17)),
        ((4, 30, 8), (8, 17), (4, 1, 1)),
        ((30, 8), (5, 8, 17), (5, 1, 17)),
    ],
)
def test_batches(a: Any, b: Any, residual: Any) -> None:
    fn = lambda a, b, r: td.nn.relu(td.matmul(a, b) + r)
    check(fn, normal(*a), normal(*b), normal(*residual))


def test_several_results_and_one_that_others_read() -> None:
    def fn(x: Any, w: Any, b: Any) -> Any:
        y = x @ w
        z = y + b
        return y, z, td.exp(z), td.reduce_sum(y, axis=0)

    check(fn, normal(40, 30), normal(30, 50) / 6, normal(50), kernels=1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "bool"])
def test_conversion(dtype: str) -> None:
    tol = 1e-2 if dtype in ("float16", "bfloat16") else 2e-5
    check(lambda x, w: td.cast(x @ w, dtype), normal(40, 30), normal(30, 70), tol=tol)


def test_masks_and_positions() -> None:
    def fn(x: Any, w: Any, mask: Any) -> Any:
        y = td.where(mask, x @ w, -1.0)
        return y + td.cast(td.range(70), td.float32)

    check(fn, normal(40, 30), normal(30, 70), RNG.random((40, 70)) > 0.5)


def test_the_last_of_two_products_takes_the_sum() -> None:
    fn = lambda x, w, h, u, b: td.tanh(x @ w + h @ u + b)
    arrays = normal(32, 20), normal(20, 48), normal(32, 48), normal(48, 48) / 7, normal(48)
    text = check(fn, *arrays).stages["schedule"]
    assert text.index("with blocked kernel") > text.rindex("= matmul")


def test_a_group_that_needs_more_of_the_result_stays_apart() -> None:
    check(lambda x, w: td.nn.softmax(x @ w), normal(9, 8), normal(8, 7), epilogues=0, kernels=1)
    check(lambda x, w: (x @ w)[::-1] + 1.0, normal(9, 8), normal(8, 7), epilogues=0, kernels=1)
    fn = lambda x, w: x @ w + td.transpose(x @ w)
    check(fn, normal(9, 8), normal(8, 9), epilogues=0, kernels=1)


def test_a_kernel_between_keeps_its_place() -> None:
    """The group needs the product through another kernel, too: it cannot be part of it."""

    def fn(x: Any, w: Any) -> Any:
        y = x @ w
        return y / td.reduce_max(y)

    check(fn, normal(100, 20), normal(20, 90), epilogues=0, kernels=2)


@pytest.mark.parametrize(
    "image, filters, strides, padding",
    [
        ((2, 9, 8, 3), (3, 3, 3, 20), 1, "SAME"),
        ((2, 9, 8, 3), (2, 3, 3, 40), 2, "VALID"),
        ((3, 14, 14, 32), (5, 5, 32, 64), 1, "SAME"),
        ((2, 9, 8, 16), (1, 1, 16, 40), 1, "SAME"),
        ((2, 9, 8, 16), (3, 3, 8, 40), 1, "SAME"),
    ],
)
def test_convolution(image: Any, filters: Any, strides: int, padding: str) -> None:
    def forward(x: Any, w: Any, b: Any) -> Any:
        return td.nn.relu(td.nn.conv2d(x, w, strides, padding) + b)

    arrays = normal(*image), normal(*filters) / 5, normal(filters[3])
    check(forward, *arrays, tol=1e-4)

    def gradients(x: Any, w: Any, r: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch([x, w])
            y = td.reduce_sum(td.nn.conv2d(td.nn.relu(x), w, strides, padding))
        dx, dw = tape.gradient(y, [x, w])
        return dx, dw * 0.1 + r

    graph = trace_like(gradients, *arrays[:2], normal(*filters))
    plain, expected = runs(graph, *arrays[:2], arrays[1], off=["epilogues"])
    executable, found = runs(graph, *arrays[:2], arrays[1])
    assert executable.counters["epilogues"] == 2
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_symbolic_sizes() -> None:
    fn = lambda x, w, b: td.nn.relu(x @ w + b)
    graph = trace(fn, *(TensorSpec(s) for s in [(None, 20), (20, None), (None,)]))
    executable = native(graph)
    assert executable.counters["epilogues"] == 1
    for m, n in [(1, 1), (0, 3), (40, 1), (1, 70), (37, 65), (300, 20)]:
        x, w, b = normal(m, 20), normal(20, n), normal(n)
        (found,) = executable.run([x, w, b])
        np.testing.assert_allclose(found, np.maximum(x @ w + b, 0), rtol=1e-4, atol=1e-4)


def test_threads_do_not_matter() -> None:
    fn = lambda x, w, b: td.tanh(x @ w + b)
    arrays = normal(300, 200), normal(200, 310) / 14, normal(310)
    graph = trace_like(fn, *arrays)
    before, results = pool().threads, []
    try:
        for count in (1, 2, 3):
            pool().set_threads(count)
            results.append(runs(graph, *arrays)[1][0])
    finally:
        pool().set_threads(before)
    assert all(r.tobytes() == results[0].tobytes() for r in results)


@pytest.mark.parametrize("rows, epilogues", [(12, 0), (230, 1)])
def test_a_loop_that_reads_a_row_of_a_stack(rows: int, epilogues: int) -> None:
    def fn(x: Any, w: Any, u: Any, b: Any) -> Any:
        xw = x @ w

        def body(t: Any, h: Any) -> Any:
            return t + 1, td.tanh(xw[t] + h @ u + b)

        return td.while_loop(lambda t, h: t < 9, body, (0, td.zeros((rows, 40))))[1]

    arrays = normal(9, rows, 8), normal(8, 40), normal(40, 40) / 6, normal(40)
    with disabled("factor_panels"):  # which copies u by a kernel of its own where that pays
        check(fn, *arrays, epilogues=epilogues, kernels=2 - epilogues)


def test_variables_are_read_before_they_are_overwritten() -> None:
    weight = td.Variable(normal(30, 30) / 6)

    def fn(x: Any) -> Any:
        weight.assign(td.tanh(weight @ x + weight))
        return weight @ x

    check(fn, normal(30, 30) / 6, epilogues=1)


def test_an_optimizer_stays_one_kernel() -> None:
    weight = td.Variable(normal(30, 40))
    fn = lambda x, dy: weight.assign_sub(0.1 * td.matmul(x, dy, transpose_a=True)).read_value()
    check(fn, normal(8, 30), normal(8, 40), epilogues=0, kernels=1)


def momentum(weight: td.Variable, slot: td.Variable) -> Callable[..., Any]:
    """An update of a weight by the product of activations and gradients."""

    def update(x: Any, dy: Any, rate: Any) -> Any:
        slot.assign(0.9 * slot + td.matmul(x, dy, transpose_a=True))
        weight.assign_sub(rate * slot)
        return td.reduce_sum(x)

    return update


@pytest.mark.parametrize(
    "m, n, k", [(1400, 400, 30), (2001, 263, 50), (563, 1003, 128), (8000, 70, 3), (160, 3500, 17)]
)
@needs_avx2
def test_the_gradient_of_a_large_weight_is_never_in_memory(m: int, n: int, k: int) -> None:
    weight, slot = td.Variable(normal(m, n)), td.Variable(normal(m, n))
    arrays = normal(k, m), normal(k, n), np.float32(0.01)
    with using(LARGE_CACHES):
        executable = check(momentum(weight, slot), *arrays, epilogues=1, kernels=1)
    assert " in blocks of t" in executable.stages["schedule"]
    assert planned(executable) < m * n * 4


def planned(executable: Executable) -> int:
    (line,) = (x for x in executable.stages["schedule"].splitlines() if x.startswith("workspace: "))
    return int(line.split()[1])


def test_a_gradient_that_is_a_result_is_in_memory() -> None:
    weight, x, dy = td.Variable(normal(1100, 500)), normal(20, 1100), normal(20, 500)

    def update(x: Any, dy: Any) -> Any:
        gradient = td.matmul(x, dy, transpose_a=True)
        weight.assign_sub(gradient)
        return gradient

    assert " in blocks of " not in check(update, x, dy).stages["schedule"]


def test_what_is_kept_apart_need_not_be_a_weight() -> None:
    """A result of another type cannot be where the product would be."""
    x, w = normal(900, 40), normal(40, 700)
    fn = lambda x, w: td.cast(td.nn.relu(x @ w), td.bfloat16)
    assert " in blocks of " in check(fn, x, w, tol=2e-2).stages["schedule"]


def test_threads_keep_blocks_of_their_own() -> None:
    start, slots = normal(900, 610), normal(900, 610)
    arrays = normal(33, 900), normal(33, 610), np.float32(0.1)
    before, results = pool().threads, []
    try:
        for count in (1, 2, 3):
            pool().set_threads(count)
            weight, slot = td.Variable(start), td.Variable(slots)
            compiled = td.function(momentum(weight, slot))
            for _ in range(3):
                compiled(*map(td.constant, arrays))
            results.append(weight.numpy().tobytes() + slot.numpy().tobytes())
    finally:
        pool().set_threads(before)
    assert all(r == results[0] for r in results)


def test_the_schedule_and_the_kernels_show_it() -> None:
    arrays = normal(4, 5), normal(5, 6), normal(6)
    stages = check(lambda x, w, b: td.nn.relu(x @ w + b), *arrays).stages
    assert "\n  with blocked kernel" in stages["schedule"]
    assert "blocked kernel(" in stages["kernels"]
    assert "t0" not in stages["schedule"]


def test_no_epilogue_for_what_leads_back_through_a_group_around_it() -> None:
    """The group of `scaled` has members before and after the product, whose own epilogue would
    need the former (through a view) and give the latter."""

    def program(x: Any, a: Any, b: Any) -> Any:
        scaled = x / td.reduce_max(x)
        column = td.reshape(scaled, (5, 1))
        product = a @ b
        wide = product * column
        sums = td.reduce_sum(product * td.cos(a), 1)
        return wide, td.where(scaled > 0.25, scaled * sums, scaled)

    arrays = np.abs(normal(5)) + 0.1, normal(5, 6), normal(6, 6)
    check(program, *arrays, epilogues=0, kernels=3)
