"""Arrays that kernels of a loop divide in different ways: one thread runs these kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import both, trace_like
from treadle.ops.control.control_flow import while_loop
from treadle.runtime.compiler import plan_program
from treadle.runtime.cpu.moving_arrays import kernels_of_one_thread
from treadle.runtime.cpu.target import host
from treadle.runtime.cpu.threads import pool


def repeated(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(a: Any) -> Any:
        return while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, step(a)), (0, a))[1]

    return f


def alone(step: Callable[[Any], Any], a: np.ndarray, workers: int = 2) -> int:
    """How many kernels of a repeated step one thread runs, of an array of such a size."""
    block = plan_program(trace_like(repeated(step), a)).block
    return len(kernels_of_one_thread(block, workers))


def columns_then_rows(a: Any) -> Any:
    return a - 1e-3 * a[:, :1] * td.reduce_sum(a, 0)


def rows_then_rows(a: Any) -> Any:
    return a - 1e-3 * td.reduce_sum(a, 1, keepdims=True)


def costly(a: Any) -> Any:
    x = y = a
    for _ in range(16):
        x, y = td.sin(x), td.cos(y)
    return x + td.reduce_sum(y, 0)


def square(n: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, n))


def test_which_kernels_one_thread_runs() -> None:
    assert alone(columns_then_rows, square(300)) == 2
    assert alone(columns_then_rows, square(300), workers=1) == 0
    assert alone(rows_then_rows, square(300)) == 0
    assert alone(lambda a: td.matmul(a, a) * 1e-2 + 1.0, square(300)) == 0


def test_arrays_beyond_the_caches_are_shared() -> None:
    n = int((2 * host().tuning.near / 8) ** 0.5)
    assert alone(columns_then_rows, square(n - 1)) == 2
    assert alone(columns_then_rows, square(n + 8)) == 0


def test_kernels_that_compute_for_long_are_shared() -> None:
    assert alone(costly, square(300)) == 0


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("step", [columns_then_rows, rows_then_rows])
def test_bits_do_not_depend_on_the_threads(step: Any, threads: int) -> None:
    a = square(200)
    before = pool().threads
    found = []
    try:
        for count in (1, threads):
            pool().set_threads(count)
            executable = both(trace_like(repeated(step), a), a, rtol=1e-9, atol=1e-9)
            found.append(executable.run([a])[0].tobytes())
    finally:
        pool().set_threads(before)
    assert found[0] == found[1]
