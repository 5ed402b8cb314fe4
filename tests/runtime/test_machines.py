"""Whole programs for made-up machines: run where that is possible, compiled for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.cpu.machines import LARGE_CACHES, MACHINES, RUNNABLE
from tests.runtime.fuzz.compare import check
from tests.runtime.fuzz.generate import generate
from treadle.core.object_cache import ObjectCache
from treadle.graph.passes import optimize
from treadle.graph.rewrite import clone_graph
from treadle.runtime.compiler import plan_program
from treadle.runtime.cpu import library_code
from treadle.runtime.cpu.build_program import emitted_program
from treadle.runtime.cpu.compiled_kernels import kernel_code
from treadle.runtime.cpu.jit import Jit
from treadle.runtime.cpu.target import Target, can_run, this_machine, using
from treadle.runtime.schedule.printer import all_kernels

rng = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def convolution_step(x: Any, f: Any) -> Any:
    """A convolution with its epilogue and both gradients."""
    with td.GradientTape() as tape:
        tape.watch([x, f])
        y = td.nn.relu(td.nn.conv2d(x, f, 1, "SAME"))
        loss = td.reduce_mean(td.nn.max_pool2d(y, 2, 2, "VALID") ** 2)
    return (loss, *tape.gradient(loss, [x, f]))


def loop(x: Any, w: Any) -> Any:
    state = td.zeros_like(x)
    for _ in td.range(4):
        state = td.tanh(td.matmul(state, w) + x)
    return td.reduce_sum(state, 1), td.reduce_max(state, 0)


# Products of every plan (tall, wide, transposed, batched, few rows), rows, columns, long chains.
PROGRAMS: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "products": (
        lambda a, b: (td.matmul(a, b), td.matmul(b, a), td.matmul(a, a, transpose_b=True)),
        [numbers(230, 300), numbers(300, 230)],
    ),
    "transposed": (
        lambda a, b: td.nn.relu(td.matmul(a, b, transpose_a=True) + 1.0),
        [numbers(1100, 60), numbers(1100, 520)],
    ),
    "batched": (td.matmul, [numbers(3, 9, 40), numbers(3, 40, 17)]),
    "vector": (td.matmul, [numbers(1, 1500), numbers(1500, 300)]),
    "convolution": (convolution_step, [numbers(3, 14, 14, 8), numbers(5, 5, 8, 20)]),
    "depthwise": (
        lambda x, f: td.nn.depthwise_conv2d(x, f, (1, 1, 1, 1), "SAME"),
        [numbers(2, 13, 11, 48), numbers(3, 3, 48, 2)],
    ),
    "softmax": (lambda x: td.nn.softmax(x) * td.nn.log_softmax(x, 0), [numbers(70, 301)]),
    "columns": (lambda x: (td.reduce_sum(x, 0), td.reduce_max(x, 0)), [numbers(700, 33)]),
    "chain": (lambda x: td.math.erf(td.math.log(x * x + 1) / (td.tanh(x) + 2)), [numbers(5000)]),
    "transpose": (lambda x: td.transpose(x) + 1.0, [numbers(130, 67)]),
    "sums": (lambda x: (td.cumsum(x, 1), td.reduce_sum(x)), [numbers(40, 1000)]),
    "sorting": (lambda x: td.sort(x, axis=1), [numbers(9, 70)]),
    "loop": (loop, [numbers(64, 48), numbers(48, 48)]),
}


@pytest.mark.parametrize("machine", RUNNABLE)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_same(name: str, machine: str) -> None:
    function, arrays = PROGRAMS[name]
    wanted = td.nest.flatten(function(*map(td.constant, arrays)))
    with using(RUNNABLE[machine]):
        compiled = td.function(function)
        found = td.nest.flatten(compiled(*map(td.constant, arrays)))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("seed", [1, 5, 12])
def test_random_graphs(seed: int) -> None:
    assert check(generate(seed), seed, ["native", "machine"]) >= 8


def texts(target: Target, function: Callable[..., Any], arrays: list[np.ndarray]) -> list[str]:
    """All code that a program needs on a machine."""
    with using(target, run=False):
        specs = [td.TensorSpec(a.shape, a.dtype) for a in arrays]
        graph = clone_graph(td.function(function).get_concrete_function(*specs).graph)
        optimize(graph)
        planned = plan_program(graph)
        emitter, text = emitted_program(planned)
        codes = [kernel_code(kernel) for kernel in all_kernels(planned.block)]
        found = [text, *(code.emitted.text for code in codes if code is not None)]
        for kind, symbol in emitter.table.keys:
            if kind == "routine":
                found += routine_texts(symbol, target)
    return list(dict.fromkeys(found))


def routine_texts(symbol: str, target: Target) -> list[str]:
    own, called = library_code.routine_parts(symbol, target)
    return [part.text() for part in (*called, own)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_code_compiles_for_arm(name: str) -> None:
    target = MACHINES["neon"]
    compiler = Jit(target, ObjectCache(None))
    for text in texts(target, *PROGRAMS[name]):
        assembly = compiler.assembly(text)  # verified before
        assert "ret" in assembly and "zmm" not in assembly


def test_vectors_have_the_width_of_the_machine() -> None:
    function, arrays = PROGRAMS["chain"]
    for name, lanes in (("sse2", 4), ("avx2", 8), ("avx512", 16), ("neon", 4)):
        code = "\n".join(texts(MACHINES[name], function, arrays))
        assert f"<{lanes} x float>" in code
        assert f"<{2 * lanes} x float>" not in code


def test_processors_with_avx2_run_the_tests_that_need_it() -> None:
    here = this_machine()
    assert can_run(LARGE_CACHES) == (here.arch == "x86_64" and {"avx2", "fma"} <= here.features)
