"""Loops and branches that the device decides about, as parts of recordings: no call waits."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu.on_processor import GPU
from tests.runtime.gpu.recorder import recorded_gpu
from tests.runtime.gpu.test_execution import driver_of, gpu, on, program_of, same  # noqa: F401
from treadle.core.devices import Device
from treadle.runtime.gpu.driver import CannotRecord

RNG = np.random.default_rng(2)
LARGE = RNG.uniform(0.5, 1.0, (70, 100)).astype(np.float32)  # more than one block works on
WEIGHTS = (RNG.standard_normal((100, 100)) / 12).astype(np.float32)


def halved(x: Any) -> Any:
    n = 0
    while td.reduce_max(td.abs(x)) > 0.1:
        x = x * 0.5
        n += 1
    return x, n


def turned(x: Any) -> Any:
    """Two arrays change places."""
    y = x * 0.0 + 1.0
    while td.reduce_sum(x * x) > 20.0:
        x, y = y * 0.9, x * 0.7
    return x, y


def multiplied(x: Any) -> Any:
    n = 0
    while td.reduce_sum(td.abs(x)) > 50.0 and n < 40:
        x = td.tanh(x @ WEIGHTS) * 0.9
        n += 1
    return x, n


def one_way(x: Any) -> Any:
    if td.reduce_mean(x) > 0.7:
        return td.nn.relu(x @ WEIGHTS), td.reduce_sum(x, 0)
    return x * 2.0, td.reduce_max(x, 0)


def only_then(x: Any) -> Any:
    if td.reduce_mean(x) > 0.7:
        x = x @ WEIGHTS
    return x


def nested(x: Any) -> Any:
    total, n = td.zeros_like(x), 0
    while td.reduce_sum(total) < 9000.0:
        y = x + td.cast(n, td.float32)
        while td.reduce_max(y) > 1.0:
            y = y * 0.75
        if td.reduce_mean(y) > 0.45:
            total += y
        else:
            total += y * 2.0
        n += 1
    return total, n


def counted_inside(x: Any) -> Any:
    while td.reduce_max(td.abs(x)) > 0.1:
        for i in td.range(3):
            x = td.sin(x) * 0.8 + td.cast(i, td.float32) * 0.0001
    return x


CONTROL: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (halved, turned, multiplied, one_way, only_then, nested, counted_inside)
}


@pytest.mark.parametrize("name", CONTROL)
@pytest.mark.parametrize("scale", [1.0, 1.5, 0.01])
def test_the_host_reads_nothing(gpu: Device, name: str, scale: float) -> None:  # noqa: F811
    """Other scales take other ways, and odd and even numbers of iterations."""
    x = LARGE * np.float32(scale)
    wanted = td.nest.flatten(CONTROL[name](td.constant(x)))
    function, given = td.function(CONTROL[name]), on(gpu, x)
    counts = driver_of(gpu).counts
    for _ in range(5):  # until memory at the same addresses comes again
        counts.clear()
        found = function(given)
        submitted = dict(counts)
        same(found, wanted, 1e-4)
        del found
    program = program_of(function, given)
    assert program.is_recorded and "in recordings" in program.texts["launches"]()
    assert submitted.keys() <= {"submissions", "allocations", "iterations", "choices"}
    assert submitted["submissions"] == 1
    if scale >= 1.0:
        assert submitted.keys() & {"iterations", "choices"}


def test_ways_are_chosen_anew(gpu: Device) -> None:  # noqa: F811
    """One recording serves elements that take other ways."""
    state = td.Variable(on(gpu, LARGE))

    @td.function
    def f() -> Any:
        x, n = state.read_value(), 0
        while td.reduce_max(x) > 0.1:
            x = x * 0.5
            n += 1
        return td.reduce_sum(x), n

    def seen() -> list[float]:
        return [float(np.asarray(y)) for y in f()]

    for _ in range(2):
        seen()
    counts = driver_of(gpu).counts
    for scale in (1.0, 2.0, 4.0, 0.05, 8.0):
        state.assign(on(gpu, LARGE * np.float32(scale)))
        x, n = LARGE * np.float32(scale), 0
        while x.max() > 0.1:
            x, n = x * np.float32(0.5), n + 1
        for _ in range(3):
            counts.clear()
            total, steps = seen()
            assert steps == n and total == pytest.approx(x.sum(), rel=1e-4)
        assert counts["submissions"] == 1 and counts["iterations"] >= n // 2


def test_training_until_the_loss_is_small(gpu: Device) -> None:  # noqa: F811
    """A hundred steps of a network at most: one graph, and the host sees no loss."""
    start = [WEIGHTS[:, :60].copy(), np.zeros(60, np.float32), WEIGHTS[:60, :10].copy()]
    x = LARGE
    labels = RNG.standard_normal((70, 10)).astype(np.float32)

    def trainer(variables: Any) -> Any:
        w, b, v = variables

        @td.function
        def train(x: Any, wanted: Any) -> Any:
            loss, n = td.constant(np.float32(np.inf)), 0
            while loss > 0.5 and n < 100:
                with td.GradientTape() as tape:
                    loss = td.reduce_mean(td.square(td.nn.relu(x @ w + b) @ v - wanted))
                for variable, slope in zip(variables, tape.gradient(loss, variables), strict=True):
                    variable.assign_sub(0.2 * slope)
                n += 1
            return loss, n

        return train

    mine = [td.Variable(a) for a in start]
    theirs = [td.Variable(on(gpu, a)) for a in start]
    train, given = trainer(theirs), (on(gpu, x), on(gpu, labels))
    wanted = trainer(mine)(x, labels)
    assert 3 < int(wanted[1]) <= 100
    same(train(*given), wanted, 1e-3)
    same(theirs, mine, 1e-3)
    counts = driver_of(gpu).counts
    began = [on(gpu, array) for array in start]
    for _ in range(6):  # until memory at the same addresses comes again
        for variable, tensor in zip(theirs, began, strict=True):
            variable.assign(tensor)
        counts.clear()
        loss, n = train(*given)
        asked = dict(counts)
        assert int(n) == int(wanted[1])
        same([loss, *theirs], [wanted[0], *mine], 1e-3)
        del loss, n
    assert asked["submissions"] == 1 and asked["iterations"] > 1
    assert not asked.keys() & {"downloads", "uploads", "launches"}


def test_a_check_that_fails_inside_ends_the_loop(gpu: Device) -> None:  # noqa: F811
    @td.function
    def f(x: Any, i: Any) -> Any:
        while td.reduce_max(x) > 0.1:
            x = td.gather(x, i) * 0.5
            i = i + 1
        return x

    x, positions = on(gpu, LARGE), np.arange(70)
    for _ in range(3):
        y = f(x, on(gpu, positions))
        with pytest.raises(td.errors.InvalidArgumentError, match="70"):
            y.numpy()


def test_without_conditional_nodes_the_host_decides() -> None:
    with recorded_gpu(gpu=replace(GPU, decides=False)) as device:
        function, x = td.function(halved), on(device, LARGE)
        for _ in range(3):
            same(function(x), halved(td.constant(LARGE)))
        counts = driver_of(device).counts
        counts.clear()
        function(x)
        assert counts["downloads"] and not counts["submissions"]


def test_what_cannot_be_recorded_is_done_step_by_step(gpu: Device, monkeypatch: Any) -> None:  # noqa: F811
    def refused(flag: int, body: Any) -> None:
        body()
        raise CannotRecord("cuGraphAddNode_v2: error 1 of the driver")

    monkeypatch.setattr(driver_of(gpu), "repeat", refused)
    for program in (halved, turned):
        function, x = td.function(program), on(gpu, LARGE)
        for _ in range(3):
            same(function(x), program(td.constant(LARGE)))
        assert not program_of(function, x).is_recorded
