"""The driver of real devices, with a made-up CuPy; and whether CuPy has what it calls."""

import ctypes
import dataclasses
import gc
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.config.test_devices import fresh  # noqa: F401
from tests.runtime.gpu.made_up_cupy import (
    INSTANCES,
    NAMES,
    PROPERTIES,
    CompileException,
    Cupy,
    Nccl,
)
from treadle.core import errors
from treadle.core.object_cache import ObjectCache
from treadle.kernel.ir import Axis, Buffer, Kernel, apply, load, store
from treadle.runtime.gpu import cupy_driver, discovery
from treadle.runtime.gpu.cupy_driver import CupyDriver
from treadle.runtime.gpu.driver import Driver, Needs
from treadle.runtime.gpu.kernels import OPTIONS, KernelCode, kernel_code
from treadle.runtime.schedule.facts import Unsupported

MEGABYTE = 1 << 20


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Cupy:
    made = Cupy()
    monkeypatch.setitem(sys.modules, "cupy", made.module)
    monkeypatch.setattr(cupy_driver, "default_cache", lambda: ObjectCache(None))
    return made


@pytest.fixture
def driver(cupy: Cupy) -> Iterator[CupyDriver]:
    made = CupyDriver(0)
    with made.active():
        cupy.calls.clear()
        yield made


def test_it_has_all_of_the_protocol(driver: CupyDriver) -> None:
    asked: Driver = driver  # which mypy compares
    own = {n for n in vars(Driver) if not n.startswith("_")}
    assert own <= set(dir(asked))


def test_the_record(driver: CupyDriver) -> None:
    gpu = driver.gpu
    assert (gpu.name, gpu.architecture, gpu.multiprocessors) == ("NVIDIA H200", "sm_90", 132)
    assert gpu.shared == 232448 and gpu.bandwidth == pytest.approx(3.939e12, rel=1e-3)


def test_the_device_is_the_current_one_with_its_stream(cupy: Cupy) -> None:
    made = CupyDriver(3)
    cupy.calls.clear()
    with made.active():
        assert cupy.calls == [("device", 3), ("stream", made.stream.ptr), ("use", 3)]
    assert cupy.calls[3:] == [("stream ends", made.stream.ptr), ("device ends", 3)]


def test_copies(driver: CupyDriver, cupy: Cupy) -> None:
    a, b = driver.allocate(64), driver.allocate(64)
    given = np.arange(16, dtype=np.float32)
    found = np.zeros(16, np.float32)
    driver.upload(a.address, given)
    driver.copy(b.address, a.address, 64)
    driver.clear(b.address, 8)
    driver.download(found, b.address)
    given[:2] = 0
    np.testing.assert_array_equal(found, given)
    stream = driver.stream.ptr
    assert cupy.calls == [
        ("memcpy", 1, 64, stream), ("memcpy", 3, 64, stream), ("memset", 8, stream),
        ("memcpy", 2, 64, stream), ("synchronize", stream),
    ]  # fmt: skip


def test_arrays(driver: CupyDriver, cupy: Cupy) -> None:
    memory = driver.allocate(64)
    driver.upload(memory.address, np.arange(16, dtype=np.float32))
    turned = driver.array(memory.address, np.float32, (4, 4), (4, 16))
    np.testing.assert_array_equal(turned, np.arange(16).reshape(4, 4).T)
    assert driver.array(memory.address, td.bfloat16.np_dtype, (3,)).dtype == np.uint16
    owner = object()
    cupy.calls.clear()
    shown = driver.exported(owner, memory.address, np.dtype(np.float32), (4,))
    assert shown.tolist() == [0, 1, 2, 3] and cupy.owners[-1] is owner
    assert cupy.calls == [("synchronize", driver.stream.ptr)]
    narrow = driver.exported(owner, memory.address, td.bfloat16.np_dtype, (4,))
    assert narrow.dtype == td.bfloat16.np_dtype


def test_copies_beside_other_work(driver: CupyDriver, cupy: Cupy) -> None:
    pinned, memory = driver.allocate_ahead(64)
    own, ahead = driver.stream.ptr, driver.ahead.ptr
    assert cupy.calls == [("stream", ahead), ("stream ends", ahead)]
    cupy.calls.clear()
    driver.copy_ahead(memory.address, pinned.address, 64, None)
    assert cupy.calls == [("memcpy", 1, 64, ahead), ("event", 1, ahead)]
    cupy.calls.clear()
    ctypes.memset(pinned.address, 7, 64)
    after = driver.mark()
    done = driver.copy_ahead(memory.address, pinned.address, 64, after)
    driver.follow(done)
    done.wait()
    assert own != ahead and cupy.calls == [
        ("event", 2, own), ("wait", ahead, 2), ("memcpy", 1, 64, ahead), ("event", 3, ahead),
        ("wait", own, 3), ("event ends", 3),
    ]  # fmt: skip
    assert driver.array(memory.address, np.uint8, (64,)).tolist() == [7] * 64


class External(np.ndarray):
    place = (2, 0)

    def __dlpack_device__(self) -> tuple[int, int]:  # type: ignore[override]
        return self.place

    @property
    def data(self) -> Any:
        return type("Pointer", (), {"ptr": self.ctypes.data})


def test_arrays_of_others(cupy: Cupy) -> None:
    theirs, driver = np.arange(6, dtype=np.int32).reshape(2, 3).view(External), CupyDriver(0)
    cupy.calls.clear()
    owner, address, dtype, shape = driver.imported(theirs) or pytest.fail("it is on this device")
    assert cupy.calls == [  # after what the caller's stream has to do
        ("device", 0), ("event", 1, 0), ("wait", driver.stream.ptr, 1), ("device ends", 0),
    ]  # fmt: skip
    assert (address, dtype, shape) == (owner.array.ctypes.data, np.dtype(np.int32), (2, 3))
    theirs.place = (2, 1)
    assert driver.imported(theirs) is None


def test_arrays_of_others_stay_as_long_as_the_device_may_read_them(
    driver: CupyDriver, cupy: Cupy
) -> None:
    """Their libraries use the memory for something else at once."""

    def living(count: int) -> list[Any]:
        made = [np.arange(n + 1, dtype=np.int32).view(External) for n in range(count)]
        owners = [driver.imported(each) for each in made]
        return [weakref.ref(each) for each in made if owners]  # the tensors over them end here

    first = living(2)
    assert all(r() is not None for r in first)
    cupy.done = False
    second = living(1)
    assert all(r() is not None for r in [*first, *second])
    cupy.done = True
    living(1)
    assert [r() for r in first] == [None, None]
    driver.synchronize()
    assert second[0]() is None and not driver.guests.ended and not driver.guests.leaving


def test_memory_that_the_device_reads_late_is_waited_for(
    cupy: Cupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROPERTIES, "pageableMemoryAccess", 1)
    made = CupyDriver(0)
    memory = made.allocate(64)
    cupy.calls.clear()
    made.upload(memory.address, np.zeros(16, np.float32))
    stream = made.stream.ptr
    assert cupy.calls == [("memcpy", 1, 64, stream), ("synchronize", stream)]


def test_memory(driver: CupyDriver) -> None:
    assert driver.memory_use() == {"current": 0, "peak": 0, "kept": 0}
    a, b = driver.allocate(1000), driver.allocate(2000)
    assert driver.memory_use() == {"current": 3000, "peak": 3000, "kept": 0}
    del b
    assert driver.memory_use() == {"current": 1000, "peak": 3000, "kept": 2048}
    driver.reset_peak()
    driver.give_back()
    assert driver.memory_use() == {"current": 1000, "peak": 1000, "kept": 0}
    del a
    assert driver.memory_use()["current"] == 0


def test_no_memory(driver: CupyDriver, cupy: Cupy) -> None:
    half = driver.allocate(MEGABYTE // 2)
    del half
    cupy.calls.clear()
    whole = driver.allocate(MEGABYTE)  # once what is kept is given back
    assert ("synchronize", driver.stream.ptr) in cupy.calls
    with pytest.raises(MemoryError, match="Out of memory allocating 1,024 bytes"):
        driver.allocate(1000)
    del whole
    driver.allocate(1000)


def test_a_limit(cupy: Cupy) -> None:
    made = CupyDriver(0, limit=4096)
    made.allocate(1024)
    with pytest.raises(MemoryError, match="8,192 bytes"):
        made.allocate(8192)


def test_functions_take_memory_of_the_pool(
    driver: CupyDriver, cupy: Cupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a limit holds for it, and what is kept is given back."""
    raising: list[Any] = []

    @contextmanager
    def errstate(**given: Any) -> Iterator[None]:
        raising.append(given)
        yield

    made = ModuleType("cupyx")
    made.__dict__["errstate"] = errstate
    monkeypatch.setitem(sys.modules, "cupyx", made)
    with driver.computing():
        memory = cupy.allocator(1000)
        assert driver.pool.used_bytes() == 1024
        with pytest.raises(MemoryError, match="Out of memory allocating 1,048,576 bytes"):
            cupy.allocator(MEGABYTE)
    del memory
    assert cupy.allocator is None and raising == [{"linalg": "raise"}]
    assert driver.memory_use()["kept"] == 1024
    driver.give_back()
    assert driver.memory_use()["kept"] == 0


def exponential() -> KernelCode:
    axis = Axis("i", 100)
    x, y = (Buffer(name, td.float32, (100,)) for name in "xy")
    kernel = Kernel((axis,), (x, y), (store(y, axis, value=apply("exp", load(x, axis))),))
    return kernel_code(kernel, "own", CupyDriver(0).gpu)


def test_kernels(driver: CupyDriver, cupy: Cupy) -> None:
    code = exponential()
    cupy.calls.clear()
    ((function,),) = driver.load([code])
    (_, text, options), (_, cubin) = cupy.calls
    assert code.text in text and "TD_KERNEL" in text and cubin == text.encode()
    assert options == OPTIONS  # and none by which small numbers are zeros
    assert driver.needs(function) == Needs(40, 16)
    driver.launch(function, 3, 128, 64, 12345)
    launched = ("launch", function.ptr, 3, 1, 1, 128, 1, 1, 64, driver.stream.ptr, 12345, 0)
    assert cupy.calls[-1] == launched
    assert not any(c[0] == "ask" for c in cupy.calls)


def test_much_shared_memory_is_asked_for(driver: CupyDriver, cupy: Cupy) -> None:
    code = exponential()
    (stage,) = code.stages
    large = dataclasses.replace(stage, shared=100 << 10)
    ((function,),) = driver.load([dataclasses.replace(code, stages=(large,))])
    assert ("ask", function.ptr, 8, 100 << 10) in cupy.calls


def test_another_process_compiles_nothing(
    driver: CupyDriver, cupy: Cupy, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ObjectCache(tmp_path / "objects")
    monkeypatch.setattr(cupy_driver, "default_cache", lambda: cache)
    code, kinds = exponential(), []
    for version in ((12, 9), (12, 9), (13, 1), (13, 1)):
        cupy.module.cuda.nvrtc.getVersion = lambda found=version: found
        cupy.calls.clear()
        driver.load([code])
        kinds.append([c[0] for c in cupy.calls])
    assert kinds == [["compile", "module"], ["module"]] * 2


def test_refused_kernels(driver: CupyDriver, cupy: Cupy) -> None:
    cupy.refuses = CompileException("expected a ';'")
    with pytest.raises(Unsupported, match="NVRTC refuses a kernel: expected a ';'"):
        driver.load([exponential()])


def test_no_nvrtc(driver: CupyDriver, cupy: Cupy) -> None:
    cupy.refuses = RuntimeError("CuPy failed to load libnvrtc.so.12")
    with pytest.raises(errors.UnavailableError, match="NVRTC must compile.*treadle.cuda12.*libnv"):
        driver.load([exponential()])


def test_recordings(driver: CupyDriver, cupy: Cupy) -> None:
    driver.begin_recording()
    recording = driver.end_recording()
    assert recording is not None
    recording.submit()
    stream = driver.stream.ptr
    assert cupy.calls == [("capture", stream, 1), ("graph", stream)]
    driver.begin_recording()
    cupy.recordable = False
    assert driver.end_recording() is None


@pytest.fixture
def gpu(cupy: Cupy, fresh: Any) -> Iterator[None]:  # noqa: F811
    """The GPU that the made-up CuPy finds is GPU:0. Its kernels compute nothing."""
    discovery._search.forget()
    yield
    discovery._search.forget()


def test_memory_info(gpu: None) -> None:
    info = td.config.experimental.get_memory_info
    with td.device("GPU:0"):
        x = td.constant(np.arange(1000, dtype=np.float32))
    assert info("GPU:0") == {"current": 4000, "peak": 4000, "kept": 0}
    assert td.config.experimental.get_memory_usage("GPU:0") == 4000
    assert x.numpy().tolist() == list(range(1000))
    with td.device("GPU:0"):
        y = td.constant(np.zeros(500, np.float32))
    assert info("GPU:0")["peak"] == info("GPU:0")["current"] == 6000
    del x, y
    gc.collect()
    assert info("GPU:0") == {"current": 0, "peak": 6000, "kept": 6144}
    td.config.experimental.reset_memory_stats("GPU:0")
    td.clear_caches()
    assert info("GPU:0") == {"current": 0, "peak": 0, "kept": 0}


def test_limits_of_logical_devices(gpu: None) -> None:
    (physical,) = td.config.list_physical_devices("GPU")
    part = td.config.LogicalDeviceConfiguration(memory_limit=1)
    td.config.set_logical_device_configuration(physical, [part, part])
    for name in ("GPU:0", "GPU:1"):
        with td.device(name), pytest.raises(td.errors.ResourceExhaustedError):
            td.function(lambda: td.zeros([1 << 20]))()
    assert len(td.config.list_logical_devices("GPU")) == 2


def test_a_gpu_that_cannot_be_used(
    gpu: None, cupy: Cupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**given: Any) -> Any:
        raise RuntimeError("cudaErrorDevicesUnavailable: all CUDA-capable devices are busy")

    monkeypatch.setattr(cupy.module.cuda, "Stream", refused)
    text = "H200 cannot be used: cudaErrorDevicesUnavailable.*set_visible_devices"
    with pytest.raises(errors.UnavailableError, match=text):
        td.config.list_logical_devices()
    td.config.set_visible_devices([], "GPU")
    assert len(td.config.list_logical_devices()) == 1


# -- exchanges with other devices ------------------------------------------------------------------


@pytest.fixture
def nccl(monkeypatch: pytest.MonkeyPatch) -> Nccl:
    made = Nccl()
    monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", made)  # type: ignore[arg-type]
    return made


def test_exchanges_of_one_process(cupy: Cupy, nccl: Nccl) -> None:
    drivers = [CupyDriver(n) for n in (0, 1)]
    streams = [d.stream.ptr for d in drivers]
    made = drivers[0].communicator(drivers)
    made.all_reduce([(256, 512), (768, 1024)], 5, np.float32, "sum")
    made.all_reduce([(256, 512), (768, 1024)], 5, np.dtype(np.int32), "max")
    made.broadcast([(256, 512), (768, 1024)], 20, 1)
    made.all_gather([(256, 512), (768, 1024)], 20)
    assert nccl.calls == [
        ("all", [0, 1]),
        ("start",), ("allReduce", 0, 256, 512, 5, 7, 0, streams[0]),
        ("allReduce", 1, 768, 1024, 5, 7, 0, streams[1]), ("end",),
        ("start",), ("allReduce", 0, 256, 512, 5, 2, 2, streams[0]),
        ("allReduce", 1, 768, 1024, 5, 2, 2, streams[1]), ("end",),
        ("start",), ("broadcast", 0, 256, 512, 20, 1, 1, streams[0]),
        ("broadcast", 1, 768, 1024, 20, 1, 1, streams[1]), ("end",),
        ("start",), ("allGather", 0, 256, 512, 20, 1, streams[0]),
        ("allGather", 1, 768, 1024, 20, 1, streams[1]), ("end",),
    ]  # fmt: skip
    with pytest.raises(errors.UnavailableError, match="logical devices of one"):
        drivers[0].communicator([drivers[0], CupyDriver(0)])


def test_exchanges_between_processes(driver: CupyDriver, nccl: Nccl) -> None:
    sent: list[bytes | None] = []

    def agree(number: bytes | None) -> bytes:
        sent.append(number)
        return bytes(range(128))

    driver.joined_communicator(0, 2, agree)
    driver.joined_communicator(1, 2, agree)
    number = bytes(range(128))
    assert sent == [number, None]
    assert nccl.calls == [("joined", 2, number, 0), ("joined", 2, number, 1)]


def test_no_nccl(driver: CupyDriver, cupy: Cupy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", None)  # type: ignore[arg-type]
    assert driver.nccl_missing() == driver.nccl_missing()
    with pytest.raises(errors.UnavailableError, match="pip install nvidia-nccl-cu12"):
        driver.communicator([driver])


def test_copies_from_another_device(cupy: Cupy) -> None:
    drivers = [CupyDriver(n) for n in (0, 1)]
    a, b = (np.frombuffer(bytes(range(k, k + 16)), np.uint8).copy() for k in (0, 16))
    with drivers[0].active():
        drivers[0].copy_from(drivers[1], a.ctypes.data, b.ctypes.data, 16)
    assert np.array_equal(a, b)
    assert ("between", 0, 1, 16, drivers[0].stream.ptr) in cupy.calls


# -- the real CuPy ---------------------------------------------------------------------------------


def interpreters() -> list[str]:
    """Python interpreters that have CuPy: this one, or that of TREADLE_TEST_CUPY."""
    own = [sys.executable] if importlib.util.find_spec("cupy") else []
    return own or [p for p in [os.environ.get("TREADLE_TEST_CUPY", "")] if p]


LOOK = """
import importlib, json, sys
names, instances = json.load(sys.stdin)
missing = []
for path, wanted in names.items():
    found, *parts = importlib.import_module("cupy"), *path.split(".")[1:]
    for part in parts:
        if not hasattr(found, part):
            importlib.import_module(f"{found.__name__}.{part}")
        found = getattr(found, part, None)
    if found is None:  # NCCL, which is not installed
        continue
    for name in set(wanted) - set(instances):
        if not hasattr(found, name):
            missing.append(f"{path}.{name}")
print(json.dumps(missing))
"""


@pytest.mark.parametrize("python", interpreters())
def test_cupy_has_what_is_called(python: str) -> None:
    given = json.dumps([NAMES, sorted(INSTANCES)])
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    ran = subprocess.run(
        [python, "-c", LOOK], input=given, capture_output=True, text=True, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == []


SIGNATURES = """
import json, sys, warnings
warnings.simplefilter("ignore")
from cupy.cuda import nccl
names = json.load(sys.stdin) if nccl.available else []
made = nccl.NcclCommunicator if nccl.available else None
print(json.dumps({name: getattr(made, name).__doc__ for name in names}))
"""


@pytest.mark.parametrize("python", interpreters())
def test_nccl_takes_what_it_is_given(python: str) -> None:
    """The names of the parameters stand in the texts of CuPy's functions."""
    names = ["initAll", "allReduce", "allGather", "broadcast"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    ran = subprocess.run(
        [python, "-c", SIGNATURES], input=json.dumps(names), capture_output=True, text=True,
        env=environment,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    made = Nccl().NcclCommunicator
    for name, text in json.loads(ran.stdout).items():
        listed = text.partition("(")[2].partition(")")[0].split(", ")
        theirs = [part.split()[-1] for part in listed if part != "self"]
        ours = [n for n in inspect.signature(getattr(made, name)).parameters if n != "self"]
        assert ours == theirs, name
