"""Kernels that read one large array are one kernel."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.cpu.machines import ZEN5
from tests.runtime.harness import native, trace_like
from treadle.passes import disabled
from treadle.runtime.cpu.target import using
from treadle.runtime.cpu.threads import pool

RNG = np.random.default_rng(11)
LARGE = RNG.standard_normal((256, 130)).astype(np.float32)
SMALL = LARGE[:4]


def kernels(fn: Callable[..., Any], *arrays: Any) -> int:
    """How many kernels the program launches on a processor with wide vectors; its results here are
    those without shared passes, for every number of threads."""
    graph = trace_like(fn, *arrays)
    with disabled("siblings"):
        expected = [np.array(r) for r in native(graph).run([*arrays])]
    executable = native(graph)
    before = pool().threads
    try:
        for count in (1, 2, 3):
            pool().set_threads(count)
            for found, same in zip(executable.run([*arrays]), expected, strict=True):
                np.testing.assert_allclose(found, same, rtol=1e-5, atol=1e-4)
    finally:
        pool().set_threads(before)
    with using(ZEN5, run=False):
        schedule = native(graph).stages["schedule"]
    steps = schedule.split("workspace")[0].splitlines()
    return sum(line.lstrip().startswith("kernel ") for line in steps)


def column_statistics(x: Any) -> Any:
    return x * 2.0, td.reduce_sum(x, 0)


def a_chain_through_a_product(x: Any) -> Any:
    """The second reader needs a product of the first one's result."""
    shifted = x + 1.0
    return shifted, x * td.matmul(shifted, td.ones((130, 1)))


def diamond(x: Any) -> Any:
    """What the first reader gives is reduced as a whole before the second one runs."""
    doubled = x * 2.0
    return doubled, x - td.reduce_max(doubled)


@pytest.mark.parametrize(
    ("fn", "array", "count"),
    [
        pytest.param(lambda x: (x * 2.0, x * 3.0), LARGE, 1, id="two"),
        pytest.param(lambda x: (x * 2.0, x * 3.0), SMALL, 2, id="small arrays"),
        pytest.param(lambda x: (x + 1.0, td.reduce_sum(x, 1)), LARGE, 1, id="with rows"),
        pytest.param(column_statistics, LARGE, 2, id="with columns"),
        pytest.param(
            lambda x: (x * x[0], x * td.reshape(x[:, 0], (-1, 1)), -x), LARGE, 1, id="broadcasts"
        ),
        pytest.param(lambda x: (x * 2.0, td.transpose(x) * 3.0), LARGE, 2, id="transposed"),
        pytest.param(lambda x: (x[1:] * 2.0, x[:-1] * 3.0), LARGE, 2, id="shifted"),
        pytest.param(lambda x: (td.nn.softmax(x), x * 0.5), LARGE, 1, id="softmax"),
        pytest.param(a_chain_through_a_product, LARGE, 3, id="product between"),
        pytest.param(diamond, LARGE, 3, id="maximum between"),
        pytest.param(
            lambda x: [td.exp(x * float(k)) for k in range(40)], LARGE, 5, id="many heavy ones"
        ),
    ],
)
def test_programs(fn: Callable[..., Any], array: Any, count: int) -> None:
    assert kernels(fn, array) == count


def test_gradients_of_what_shares_a_pass() -> None:
    def fn(x: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch(x)
            loss = td.reduce_sum(td.sin(x) * x) + td.reduce_sum(x * x, 1)[0]
        return loss, tape.gradient(loss, x)

    assert kernels(fn, LARGE) >= 1


def test_a_variable_is_read_before_it_is_assigned() -> None:
    weights = td.Variable(LARGE)

    @td.function
    def step(x: Any) -> Any:
        before = weights * 1.0
        weights.assign_add(x)
        return before, weights * 2.0, x * 3.0

    for _ in range(2):
        old = weights.numpy().copy()
        before, after, third = step(td.constant(LARGE))
        np.testing.assert_array_equal(before, old)
        np.testing.assert_allclose(after, (old + LARGE) * 2, rtol=1e-6)
        np.testing.assert_allclose(third, LARGE * 3, rtol=1e-6)
        np.testing.assert_allclose(weights.numpy(), old + LARGE, rtol=1e-6)
