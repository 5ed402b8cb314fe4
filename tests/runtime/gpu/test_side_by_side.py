"""Independent small kernels are one launch; their order is kept where it matters."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu.on_processor import GPU
from tests.runtime.gpu.recorder import recorded_gpu
from tests.runtime.gpu.test_execution import driver_of, on, program_of, same
from treadle.core.devices import Device
from treadle.core.switches import disabled

RNG = np.random.default_rng(3)
X = RNG.standard_normal((6, 20)).astype(np.float32)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setenv("TREADLE_STRICT", "1")
    monkeypatch.setenv("TREADLE_VERIFY", "1")
    with recorded_gpu() as device:
        yield device


def independent(x: Any, y: Any) -> Any:
    """Sums along rows and columns, a whole sum, a transpose, and numbers."""
    rows, columns = td.reduce_sum(td.exp(x), 1), td.reduce_max(td.sin(y), 0)
    return rows, columns, td.reduce_sum(y * y), td.transpose(y) * 2.0, td.cumsum(x, 1)


def test_independent_kernels_are_one_launch(gpu: Device) -> None:
    x, y = on(gpu, X), on(gpu, X[:5] * 0.5)
    function = td.function(independent)
    same(function(x, y), independent(td.constant(X), td.constant(X[:5] * 0.5)))
    assert program_of(function, x, y).submitted == 1


def test_large_kernels_are_launched_alone(gpu: Device) -> None:
    x = on(gpu, np.tile(X, (600, 10)))
    function = td.function(lambda x: (td.sin(x[:1000]) * 2.0, td.exp(x[:900, 1:])))
    same(function(x), function(td.constant(x.numpy())))
    assert program_of(function, x).submitted == 2


def test_parameters_have_room() -> None:
    """A device whose launches have few parameters: fewer kernels share a launch."""
    few = type(GPU)("of few parameters", "sm_90", parameters=48)
    with recorded_gpu(gpu=few) as device:
        x, y = on(device, X), on(device, X[:5] * 0.5)
        function = td.function(independent)
        same(function(x, y), independent(td.constant(X), td.constant(X[:5] * 0.5)))
        assert 1 < program_of(function, x, y).submitted < 5


def test_what_depends_stays_in_order(gpu: Device) -> None:
    v, w = td.Variable(on(gpu, X)), td.Variable(on(gpu, X[:, 0].copy()))
    a, b = td.Variable(X), td.Variable(X[:, 0].copy())

    def step(v: Any, w: Any) -> Any:
        before = td.reduce_sum(v, 1)
        product = v @ td.transpose(v)
        v.assign(td.nn.softmax(product @ v))
        after = td.reduce_max(v, 1) * before
        w.assign_add(before)
        total = td.reduce_sum(w * 2.0)
        w.assign(after)
        return before, total, td.reduce_sum(product, 0), td.reduce_mean(w)

    function = td.function(step)
    for _ in range(3):
        same(function(v, w), step(a, b), 1e-4)
        same([v, w], [a, b], 1e-4)
    assert program_of(function, v, w).submitted < 9


def test_a_check_shares_its_launch(gpu: Device) -> None:
    @td.function
    def f(x: Any, i: Any) -> Any:
        return td.gather(x, i) * 2.0, td.reduce_sum(x * x, 0), td.reduce_sum(td.sin(x))

    x, good, bad = (on(gpu, a) for a in (X, np.array([1, 2]), np.array([1, 77])))
    same(f(x, good), f(td.constant(X), td.constant([1, 2])))
    assert program_of(f, x, good).submitted == 1
    y = f(x, bad)
    with pytest.raises(td.errors.InvalidArgumentError, match="77"):
        y[1].numpy()
    assert driver_of(gpu).counts["downloads"]


def test_many_kernels_share_few_launches(gpu: Device) -> None:
    """Each of their functions takes the arrays that it needs, of all that the launch has."""

    def many(x: Any) -> Any:
        rows = [x[n % 11 : n % 11 + 2 + n % 3] * float(n) for n in range(24)]
        return [td.reduce_sum(td.sin(part), n % 2) for n, part in enumerate(rows)]

    large = np.tile(X, (4, 1))
    function, x = td.function(many), on(gpu, large)
    same(function(x), many(td.constant(large)), 1e-4)
    with disabled("side_by_side"):
        apart = td.function(many)
        apart(x)
    program = program_of(function, x)
    assert program.submitted == 1 and program_of(apart, x).submitted > 10
    lines = program.texts["cuda"]().splitlines()
    taken = [t.count("TD_POINTER") for t in lines if t.startswith("TD_DEVICE")]
    (whole,) = [t.count("TD_POINTER") for t in lines if t.startswith("TD_KERNEL")]
    assert len(taken) > 10 and max(taken) < whole / 2
