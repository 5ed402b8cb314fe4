"""Convolutions by cuDNN: a front end in the place of NVIDIA's judges the calls and computes."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.runtime.gpu import made_up_cudnn
from tests.runtime.gpu.made_up_cudnn import NAMES
from tests.runtime.gpu.on_processor import GPU
from tests.runtime.gpu.recorder import recorded_gpu
from tests.runtime.gpu.test_cupy_driver import LOOK, cupy, interpreters  # noqa: F401
from tests.runtime.gpu.test_execution import driver_of, on, program_of, same
from treadle.core.devices import Device
from treadle.runtime.gpu import cudnn
from treadle.runtime.gpu.cupy_driver import CupyDriver

RNG = np.random.default_rng(5)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """A device with cuDNN."""
    monkeypatch.setenv("TREADLE_STRICT", "1")
    made_up_cudnn.built.clear()
    made_up_cudnn.refused.clear()
    with recorded_gpu(gpu=replace(GPU, convolves=True)) as device:
        yield device
    made_up_cudnn.refused.clear()


# Images, filters, and what tells the windows.
CASES: dict[str, tuple[Any, ...]] = {
    "same": ((2, 7, 6, 3), (3, 3, 3, 4), {"padding": "SAME"}),
    "valid": ((2, 7, 6, 3), (3, 2, 3, 4), {"padding": "VALID"}),
    "strides": ((2, 8, 9, 3), (3, 3, 3, 4), {"padding": "SAME", "strides": 2}),
    "rows are left": ((1, 8, 8, 2), (3, 3, 2, 3), {"padding": "VALID", "strides": 2}),
    "dilations": ((2, 9, 8, 3), (3, 3, 3, 2), {"padding": "SAME", "dilations": 2}),
    "padding": (
        (1, 5, 6, 2), (3, 3, 2, 3), {"padding": [[0, 0], [1, 0], [2, 1], [0, 0]]},
    ),
    "groups": ((2, 6, 5, 4), (3, 3, 2, 6), {"padding": "SAME"}),
}  # fmt: skip


def given(name: str, dtype: Any) -> tuple[Any, Any, Any]:
    images, filters, attrs = CASES[name]
    arrays = (RNG.standard_normal(shape).astype(np.float32) for shape in (images, filters))
    x, f = (td.cast(a, dtype).numpy() for a in arrays)
    return x, f, attrs


def gradients(x: Any, f: Any, attrs: Any) -> Any:
    with td.GradientTape() as tape:
        tape.watch([x, f])
        y = td.nn.conv2d(x, f, **{"strides": 1, **attrs})
        loss = td.reduce_sum(td.cast(y * y, td.float32))
    return y, *tape.gradient(loss, [x, f])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_convolutions_and_gradients(gpu: Device, name: str, dtype: str) -> None:
    x, f, attrs = given(name, dtype)
    wanted = [td.cast(y, td.float32) for y in gradients(td.constant(x), td.constant(f), attrs)]
    function = td.function(lambda x, f: gradients(x, f, attrs))
    found = function(on(gpu, x), on(gpu, f))
    tolerance = 2e-5 if dtype == "float32" else 3e-2
    for a, b in zip(found, wanted, strict=True):
        a = td.cast(a, td.float32).numpy()
        np.testing.assert_allclose(a, b, tolerance, tolerance * np.abs(b).max())
    assert driver_of(gpu).counts["convolutions"] == 3
    assert [g.operation for g in made_up_cudnn.built] == ["conv_fprop", "conv_dgrad", "conv_wgrad"]


def test_plans_are_kept_and_recorded(gpu: Device) -> None:
    x, f, attrs = given("same", "float32")
    convolve = td.function(lambda x: td.nn.conv2d(x, td.constant(f), 1, "SAME"))
    wanted, tensor, counts = convolve(td.constant(x)), on(gpu, x), driver_of(gpu).counts
    for _ in range(3):
        same(convolve(tensor), wanted)
    assert len(made_up_cudnn.built) == 1 and program_of(convolve, tensor).is_recorded
    counts.clear()
    same(convolve(tensor), wanted)
    assert counts["submissions"] == 1 and not counts["launches"]


def test_a_branch_that_no_call_has_taken_is_recorded(gpu: Device) -> None:
    """Its plan is built before: that takes memory."""
    x, f, _ = given("same", "float32")

    @td.function
    def chosen(x: Any) -> Any:
        y = x[..., :1]
        if td.reduce_max(x) > 100.0:
            y = td.reduce_sum(td.nn.conv2d(x, td.constant(f), 1, "SAME"), 3, keepdims=True)
        return y

    small, large = on(gpu, x), on(gpu, x * np.float32(1000.0))
    for _ in range(4):
        same(chosen(small), x[..., :1])
    assert program_of(chosen, small).is_recorded and len(made_up_cudnn.built) == 1
    same(chosen(large), chosen(td.constant(x * np.float32(1000.0))), 1e-4)
    assert driver_of(gpu).counts["convolutions"]


def test_each_batch_size_has_a_plan(gpu: Device) -> None:
    x, f, attrs = given("same", "float32")
    convolve = td.function(
        lambda x: td.nn.conv2d(x, td.constant(f), 1, "SAME"),
        input_signature=[td.TensorSpec([None, 7, 6, 3])],
    )
    for count in (1, 2, 5, 2):
        y = np.repeat(x[:1], count, 0)
        same(convolve(on(gpu, y)), td.nn.conv2d(td.constant(y), td.constant(f), 1, "SAME"))
    assert sorted(g.result.dim[0] for g in made_up_cudnn.built) == [1, 2, 5]
    empty = convolve(on(gpu, x[:0]))
    assert empty.shape == (0, 7, 6, 4) and len(made_up_cudnn.built) == 3


def test_engines_that_round_or_change_their_order_are_left_out(gpu: Device) -> None:
    x, f, _ = given("same", "float32")
    convolve, tensor = td.function(lambda x: td.nn.conv2d(x, td.constant(f), 1, "SAME")), on(gpu, x)
    exact = ["NONDETERMINISTIC", "TENSOR_CORE", "DOWN_CONVERT_INPUTS"]
    convolve(tensor)
    try:
        td.config.experimental.enable_tensor_float_32_execution(True)
        convolve(tensor)
    finally:
        td.config.experimental.enable_tensor_float_32_execution(False)
    assert [g.left_out for g in made_up_cudnn.built] == [exact, exact[:1]]


def test_where_no_engine_is_our_kernels_are_used(gpu: Device, caplog: Any) -> None:
    made_up_cudnn.refused.add("conv_fprop")
    x, f, _ = given("same", "float32")
    convolve, tensor = td.function(lambda x: td.nn.conv2d(x, td.constant(f), 1, "SAME")), on(gpu, x)
    with caplog.at_level(logging.WARNING, "treadle"):
        for _ in range(3):
            same(convolve(tensor), convolve(td.constant(x)))
    (record,) = caplog.records
    assert "no engine" in record.getMessage() and "conv2d" in record.getMessage()
    assert not driver_of(gpu).counts["convolutions"]


def test_a_front_end_that_does_not_work(cupy: Any, monkeypatch: Any, caplog: Any) -> None:  # noqa: F811
    class Broken:
        @staticmethod
        def create_handle() -> int:
            raise RuntimeError("Unable to find symbol cudnnCreate")

    driver = CupyDriver(0)
    monkeypatch.setitem(sys.modules, "cudnn", Broken)
    with driver.active(), caplog.at_level(logging.WARNING, "treadle"):
        asked = cudnn.Convolution(
            "conv2d", td.float32, (1, 2, 3, 3), (1, 2, 3, 3), (1, 1, 1, 1), *[(0, 0)] * 2,
            *[(1, 1)] * 2,
        )  # fmt: skip
        assert driver.convolution(asked) is None and driver.convolution(asked) is None
    assert ["cudnnCreate" in r.getMessage() for r in caplog.records] == [True]


def test_the_stream_is_the_drivers(cupy: Any, monkeypatch: Any) -> None:  # noqa: F811
    monkeypatch.setitem(sys.modules, "cudnn", made_up_cudnn)
    driver = CupyDriver(0)
    assert driver.gpu.convolves
    with driver.active():
        assert driver.cudnn is not None
        assert made_up_cudnn.streams[driver.cudnn.handle] == driver.stream.ptr


def with_cudnn() -> list[str]:
    """Those interpreters that have the front end."""
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('cudnn') is None)"
    return [p for p in interpreters() if not subprocess.run([p, "-c", look]).returncode]


@pytest.mark.parametrize("python", with_cudnn())
def test_the_front_end_has_what_is_called(python: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    text = LOOK.replace('"cupy"', '"cudnn"')
    told = json.dumps([NAMES, []])
    ran = subprocess.run(
        [python, "-c", text], input=told, capture_output=True, text=True, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == []
