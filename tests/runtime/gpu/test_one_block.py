"""Loops and branches on small arrays are one launch of one block, which needs no host."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu.recorder import recorded_gpu
from tests.runtime.gpu.test_execution import driver_of, on, program_of, same
from treadle.core.devices import Device
from treadle.runtime.gpu.toolkit import Compiler, compilers

RNG = np.random.default_rng(4)
X = RNG.standard_normal((6, 20)).astype(np.float32)
WIDE = RNG.standard_normal((3, 700)).astype(np.float32)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setenv("TREADLE_STRICT", "1")
    monkeypatch.setenv("TREADLE_VERIFY", "1")
    with recorded_gpu() as device:
        yield device


def until_small(x: Any) -> Any:
    n = 0
    while td.reduce_max(td.abs(x)) > 0.1:
        x = x * 0.5
        n += 1
    return x, n


def counted(x: Any) -> Any:
    for i in td.range(100):
        x = td.sin(x) + td.cast(i, td.float32) * 0.01
    return x


def square_root(x: Any) -> Any:
    root = a = td.abs(td.reduce_sum(x)) + 1.0
    while td.abs(root * root - a) > 1e-3:
        root = 0.5 * (root + a / root)
    return root


def branches(x: Any) -> Any:
    if td.reduce_sum(x) > 0.0:
        y = x * 2.0
    else:
        y = td.nn.softmax(x)
    return y, td.reduce_sum(y)


def taking_turns(x: Any) -> Any:
    y, z = x * 2.0, td.reduce_sum(x, 0)
    for _ in td.range(5):
        x, y, z = y, x * 0.9 + td.reduce_mean(y), td.reverse(z, [0]) * 1.1
    return x, y, z


def nested(x: Any) -> Any:
    y = x
    for i in td.range(4):
        k = 0
        while td.reduce_sum(y * y) > 1.0 and k < 5:
            y, x = y * 0.7, y
            k += 1
        if td.reduce_sum(y) > 0.0:
            y = y + td.reduce_mean(x, 0) * td.cast(i, td.float32)
        else:
            y = y - td.reduce_mean(x, 1, keepdims=True)
    return x, y


def forms_of_kernels(x: Any) -> Any:
    """Rows, columns, scans, a transpose, positions, several blocks of points."""
    total = td.zeros([x.shape[1], x.shape[0]])
    while td.reduce_sum(total) < 5.0:
        rows = td.nn.softmax(x) + td.cumsum(x, 1) * 1e-3
        best = td.cast(td.argmax(rows, 0), td.float32)
        total += td.transpose(rows) + best[:, None] * 1e-2
        x = x + td.reduce_sum(td.square(rows), 1, keepdims=True)
    return x, total


def other_types(x: Any) -> Any:
    half, whole = td.cast(x, td.float16), td.cast(x * 10.0, td.int32)
    found = td.reduce_any(whole > 100)
    while not found:
        half, whole = half * 1.5, whole + td.cast(half, td.int32) + 1
        found = td.reduce_any(whole > 100)
    return half, whole, found


def picked(x: Any) -> Any:
    """Rows of an array that is too large to work on."""
    table = td.reshape(td.range(60000, dtype=td.float32), [3000, 20]) * 1e-4
    state, i = x[0], 0
    while td.reduce_sum(state) < 20.0:
        state = state * 0.5 + td.gather(table, i * 200)
        i += 1
    return state, i


def never(x: Any) -> Any:
    while td.reduce_sum(x) > 1e9:
        x = x * 2.0
    return x


LOOPS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        until_small, counted, square_root, branches, taking_turns, nested, forms_of_kernels,
        other_types, picked, never,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_one_launch(gpu: Device, name: str) -> None:
    for array in (X, -X, WIDE) if name != "picked" else (X, -X):
        function, x = td.function(LOOPS[name]), on(gpu, array)
        found = function(x)
        same(found, td.function(LOOPS[name])(td.constant(array)), 1e-3)
        program, counts = program_of(function, x), driver_of(gpu).counts
        assert len(program.alone) == 1 and program.is_recorded
        counts.clear()
        function(x)
        assert not counts["downloads"] and not counts["uploads"]
        assert counts["launches"] + counts["copies"] <= 6


def test_variables_change_in_a_loop(gpu: Device) -> None:
    v, a = td.Variable(on(gpu, X)), td.Variable(X)

    def step(v: Any) -> Any:
        n = 0
        while td.reduce_sum(td.abs(v)) > 1.0:
            v.assign(v * 0.5 + td.reduce_mean(v, 0) * 0.1)
            n += 1
        return n

    function = td.function(step)
    assert int(function(v)) == int(step(a)) > 3
    same(v, a)
    assert len(program_of(function, v).alone) == 1


def test_numbers_of_the_host_begin_a_loop(gpu: Device) -> None:
    @td.function
    def f(x: Any, n: int) -> Any:
        total = td.constant(3.5)
        for i in td.range(n):
            total += td.reduce_sum(x) * td.cast(i, td.float32)
        return total

    same(f(on(gpu, X), 7), f(td.constant(X), 7), 1e-4)


def test_a_check_fails_in_a_loop(gpu: Device) -> None:
    @td.function
    def f(x: Any, i: Any) -> Any:
        total = td.reduce_sum(x) * 0.0
        while total < 1000.0:
            total += td.reduce_sum(td.abs(td.gather(x, i)))
            i += 1
        return total

    x, counts = on(gpu, X), driver_of(gpu).counts
    counts.clear()
    y = f(x, on(gpu, np.int64(2)))
    assert len(program_of(f, x, on(gpu, np.int64(2))).alone) == 1 and not counts["downloads"]
    with pytest.raises(td.errors.InvalidArgumentError, match=r"6.*\n?.*test_one_block.py"):
        y.numpy()


def test_larger_arrays_are_not_for_one_block(gpu: Device) -> None:
    """The host reads the flag of each iteration, and nothing else."""
    array = np.tile(X, (10, 10))
    function, x = td.function(until_small), on(gpu, array)
    found = function(x)
    wanted = td.function(until_small)(td.constant(array))
    same(found, wanted)
    counts = driver_of(gpu).counts
    counts.clear()
    function(x)
    assert not program_of(function, x).alone
    assert counts["downloads"] == int(wanted[1]) + 1 and not counts["uploads"]


@pytest.mark.parametrize("compiler", compilers(), ids=lambda c: c.name)
@pytest.mark.parametrize("name", LOOPS)
def test_they_compile(gpu: Device, compiler: Compiler, name: str) -> None:
    function, x = td.function(LOOPS[name]), on(gpu, X)
    function(x)
    program = program_of(function, x)
    assert compiler.compile(program.texts["cuda"](), "sm_90").code
