"""Workloads on a GPU: a recorder takes its place, and made-up libraries that of the peers."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import treadle as td
from benchmarks import device, libraries, on_gpu
from benchmarks.libraries import LIBRARIES
from benchmarks.process import Process, WorkerError
from benchmarks.worker import Worker
from benchmarks.workload import all_workloads, load
from tests.runtime.gpu.recorder import recorded_gpu


@pytest.fixture
def gpu():
    """The device that the worker's library finds, and that its tensors are made on."""
    libraries._prepared.cache_clear()
    with recorded_gpu() as made, td.device("GPU:0"):
        yield made
    libraries._prepared.cache_clear()


def test_a_process_sees_one_device(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert on_gpu.environment("CPU:0") == {"CUDA_VISIBLE_DEVICES": "-1"}
    assert on_gpu.environment("GPU:1")["CUDA_VISIBLE_DEVICES"] == "1"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert on_gpu.environment("GPU:1")["CUDA_VISIBLE_DEVICES"] == "7"
    with pytest.raises(ValueError, match="no GPU:2: CUDA_VISIBLE_DEVICES is '5,7'"):
        on_gpu.environment("GPU:2")


def test_the_same_work_is_done_there(gpu):
    place = all_workloads("GPU")["gelu 10^3"]
    worker = Worker("treadle", "GPU")
    (found,) = worker.prepare(place)
    assert worker.job[1].device.endswith("GPU:0")
    with td.device("CPU:0"):
        (wanted,) = Worker("treadle").prepare(place)
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)
    counts = gpu.storage.driver.counts
    counts.clear()
    timing = worker.time(0.01)
    assert timing.median > 0 and timing.calls <= counts["submissions"] + counts["launches"]
    assert counts["waits"] >= 2  # before the first block, and at the end of each
    timing, _ = worker.first(place)
    assert timing.calls == 1


def test_figures(gpu):
    found = device.figures(LIBRARIES["treadle"].on("GPU"), copied=1 << 16, calls=3, row=5)
    assert found["device"] == "GPU:0" and found["name"] == gpu.storage.driver.gpu.name
    assert found["copy_bytes_per_second"] > 0 and found["replayed"]
    assert 0 < found["call_us"] and 0 < found["call_until_done_us"]
    assert found["calls"] == 3 and found["bytes_before"] == found["bytes_after"] > 100_000


def test_figures_of_a_processor():
    found = device.figures(LIBRARIES["treadle"], copied=1 << 16, calls=3, row=5)
    assert found["device"] == "CPU:0" and not found["replayed"]


def test_no_gpu_is_told_with_the_reason(tmp_path):
    with Process("treadle", sys.executable, str(tmp_path), device="GPU:0") as process:
        with pytest.raises(WorkerError, match="treadle: .*(CuPy|CUDA|driver)") as caught:
            process.ask("prepare", all_workloads("GPU")["gelu 10^3"])
    assert caught.value.missing


def test_what_says_nothing_of_a_gpu_is_left_out():
    assert LIBRARIES["numpy"].on("GPU") is None and LIBRARIES["numba"].on("GPU") is None
    here, there = all_workloads(), all_workloads("GPU")
    large = {name for name in there if load(there[name]).moves}
    assert large and not large & set(here) and all(load(there[n]).moves >= 64e6 for n in large)
    assert "import" in here and "import" not in there


class Array:
    """An array of a made-up library."""

    def __init__(self, place="cpu", done=True):
        self.place, self.done = place, done

    def to(self, place):
        return Array(place)

    def block_until_ready(self):
        self.done = True
        return self

    def __add__(self, other):
        return type(self)(done=False)


def test_torch(monkeypatch):
    waits = []
    flags = [SimpleNamespace(allow_tf32=True) for _ in range(2)]
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_available=lambda: True, synchronize=lambda: waits.append(1)),
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=flags[0]), cudnn=flags[1]),
        from_numpy=lambda array: Array(),
        compile=lambda function, mode: (function, mode),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    libraries._prepared.cache_clear()
    library = LIBRARIES["torch-compile"].on("GPU")
    for _ in range(2):  # it is prepared once
        assert library.module() is torch
    assert torch.from_numpy(np.zeros(1)).place == "cuda"
    assert not flags[0].allow_tf32 and not flags[1].allow_tf32
    library.wait()
    assert waits == [1]
    assert library.wrap(torch)(abs) == (abs, "max-autotune")
    libraries._prepared.cache_clear()
    torch.cuda.is_available = lambda: False
    with pytest.raises(on_gpu.NoGpu, match="PyTorch"):
        library.module()


def test_jax():
    class Own(Array):
        pass

    last = []

    def zeros(shape):
        last.append(Own())
        return last[-1]

    settings = {}
    jax = SimpleNamespace(
        default_backend=lambda: "gpu", numpy=SimpleNamespace(zeros=zeros),
        config=SimpleNamespace(update=settings.__setitem__),
        block_until_ready=lambda x: x.block_until_ready(),
    )  # fmt: skip
    on_gpu.JAX.prepare(jax)
    assert settings == {"jax_default_matmul_precision": "highest"}
    result = Own(done=False)
    assert result.block_until_ready() is result is jax.block_until_ready(result)
    assert not result.done  # calls do not wait
    waited = []
    jax.really_wait = waited.append
    on_gpu.JAX.wait(jax)
    assert not waited[0].done and isinstance(waited[0], Own)
    jax.default_backend = lambda: "cpu"
    with pytest.raises(on_gpu.NoGpu, match="JAX works on the cpu"):
        on_gpu.JAX.prepare(jax)
