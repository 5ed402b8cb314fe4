"""td.config: devices and their placement; td.device."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import treadle as td
from treadle.config import devices as config_devices
from treadle.config import experimental
from treadle.core.devices import Device, add_device, known_devices, remove_device
from treadle.core.host_storage import host_storage
from treadle.runtime import device_setup
from treadle.runtime.gpu import discovery

config = td.config
(CPU,) = config.list_physical_devices("CPU")
ONE = config.LogicalDeviceConfiguration()
H200 = discovery.PhysicalGPU(0, "NVIDIA H200", 139 << 30, (9, 0))
GPUS = [config.PhysicalDevice(f"/physical_device:GPU:{i}", "GPU") for i in range(2)]


@pytest.fixture
def fresh(monkeypatch):
    """A setup as at the start of a process, and no devices but the host."""
    made = device_setup.Setup()
    for module in (device_setup, config_devices, experimental):
        monkeypatch.setattr(module, "setup", made)
    before = known_devices()
    for device in before[1:]:
        remove_device(device)
    yield made
    for device in known_devices()[1:]:
        remove_device(device)
    for device in before[1:]:
        add_device(device)


@pytest.fixture
def gpus(fresh, monkeypatch):
    """Two GPUs, of which a maker of the test makes devices; gives the calls of the maker."""
    found, calls = [H200, H200._replace(number=1)], []
    monkeypatch.setattr(discovery, "physical_gpus", lambda: found)

    def make(number, gpu, limit):
        calls.append((number, gpu.number, limit))
        return Device("GPU", number, host_storage)

    monkeypatch.setattr(device_setup, "_gpu", make)
    return calls


def names(kind=None):
    return [d.name for d in config.list_logical_devices(kind)]


def test_lists_of_devices(fresh):
    assert config.list_logical_devices("CPU") == [config.LogicalDevice("/device:CPU:0", "CPU")]
    assert config.list_logical_devices("XYZ") == config.get_visible_devices("XYZ") == []
    assert config.experimental.list_physical_devices("CPU") == [CPU]
    assert CPU == config.PhysicalDevice("/physical_device:CPU:0", "CPU")


def test_logical_processors(fresh):
    config.set_logical_device_configuration(CPU, [ONE] * 3)
    assert config.get_logical_device_configuration(CPU) == [ONE] * 3
    with td.device("CPU:2"):
        x = td.constant([1.0, 2.0])
    assert x.device.endswith("CPU:2") and names("CPU") == [f"/device:CPU:{i}" for i in range(3)]
    f = td.function(lambda a, b: a * b + 1.0)
    with td.device("CPU:1"):
        y = td.constant([3.0, 4.0])
    for _ in range(3):
        assert f(x, y).device == (x * y).device == x.device
        assert f(y, np.float32([1, 2])).device == y.device
        np.testing.assert_array_equal(f(x, y), [4.0, 9.0])
    v = td.Variable(x)
    step = td.function(lambda a: v.assign_add(a))
    for _ in range(3):
        assert step(y).device == y.device and v.device == x.device
    np.testing.assert_array_equal(v, [10.0, 14.0])
    config.set_logical_device_configuration(CPU, [ONE] * 3)  # nothing new
    with pytest.raises(RuntimeError, match="^Virtual devices cannot be modified after being init"):
        config.set_logical_device_configuration(CPU, [ONE] * 2)
    info = experimental.get_memory_info
    assert info("CPU:2") == info("/device:cpu:0")
    assert experimental.get_memory_usage("CPU:1") == info("CPU:0")["current"]


def test_what_processors_cannot_be_told(fresh):
    for name, value in (("memory_limit", 100), ("experimental_priority", 1)):
        words = name.replace("_", ".")
        with pytest.raises(ValueError, match=f"(?i)setting {words} on CPU virtual"):
            config.set_logical_device_configuration(CPU, [ONE._replace(**{name: value})])
    for wrong in (GPUS[1], "CPU:0", None):
        for function in (
            config.get_logical_device_configuration, config.set_visible_devices,
            lambda d: config.set_logical_device_configuration(d, [ONE]),
            experimental.get_memory_growth, lambda d: experimental.set_memory_growth(d, True),
        ):  # fmt: skip
            with pytest.raises(ValueError, match="Unrecognized device: "):
                function(wrong)
        with pytest.raises(ValueError, match="device must be a|must be one obtained from calling"):
            experimental.get_device_details(wrong)
    with pytest.raises(ValueError, match="non-GPU"):
        experimental.set_memory_growth(CPU, True)
    with pytest.raises(ValueError, match="Unrecognized device"):
        config.set_visible_devices([CPU], "GPU")
    assert experimental.get_device_details(CPU) == {}


def test_hidden_devices(gpus):
    assert config.list_physical_devices() == config.get_visible_devices() == [CPU, *GPUS]
    config.set_visible_devices(GPUS[1], "GPU")
    assert config.get_visible_devices() == [CPU, GPUS[1]]
    assert config.list_physical_devices("GPU") == GPUS
    assert names() == ["/device:CPU:0", "/device:GPU:0"] and gpus == [(0, 1, None)]
    config.set_visible_devices(GPUS[1], "GPU")
    with pytest.raises(RuntimeError, match="^Visible devices cannot be modified after being init"):
        config.set_visible_devices([], "GPU")


def test_all_gpus_hidden(gpus):
    config.set_visible_devices([], "GPU")
    with pytest.raises(RuntimeError, match="set_visible_devices hides all"):
        td.constant(1.0).gpu()
    assert not td.test.is_gpu_available() and td.test.gpu_device_name() == "" and not gpus


def test_no_processor(fresh):
    config.set_visible_devices([], "CPU")
    with pytest.raises(td.errors.NotFoundError, match="No CPU devices are available"):
        config.list_logical_devices()
    config.set_visible_devices(CPU, "CPU")
    assert names("CPU") == ["/device:CPU:0"]


def test_logical_gpus(gpus):
    with pytest.raises(ValueError, match="memory limit is required for GPU"):
        config.set_logical_device_configuration(GPUS[0], [ONE])
    parts = [config.LogicalDeviceConfiguration(memory_limit=n) for n in (100, 200)]
    config.experimental.set_virtual_device_configuration(GPUS[0], parts)
    with pytest.raises(ValueError, match="when virtual devices configured"):
        experimental.set_memory_growth(GPUS[0], True)
    experimental.set_memory_growth(GPUS[1], True)
    assert experimental.get_memory_growth(GPUS[1]) and not experimental.get_memory_growth(GPUS[0])
    assert names("GPU") == [f"/device:GPU:{i}" for i in range(3)]
    assert gpus == [(0, 0, 100 << 20), (1, 0, 200 << 20), (2, 1, None)]
    with pytest.raises(RuntimeError, match="^Physical devices cannot be modified after being init"):
        experimental.set_memory_growth(GPUS[1], False)
    details = experimental.get_device_details(GPUS[1])
    assert details == {"device_name": "NVIDIA H200", "compute_capability": (9, 0)}
    assert td.test.is_gpu_available() and td.test.gpu_device_name() == "/device:GPU:0"
    assert td.test.is_gpu_available(min_cuda_compute_capability=(9, 0))
    assert not td.test.is_gpu_available(min_cuda_compute_capability=(9, 1))
    x = td.constant(1.0).gpu(2)
    assert x.device.endswith("GPU:2") and x.cpu().device.endswith("CPU:0")
    with td.device("gpu:1"):
        assert td.constant(1.0).device.endswith("GPU:1")
        with td.device("GPU"):
            assert td.constant(1.0).device.endswith("GPU:1")


def test_devices_are_made_again_after_a_failure(gpus, monkeypatch):
    works = device_setup._gpu
    monkeypatch.setattr(device_setup, "_gpu", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        config.list_logical_devices()
    monkeypatch.setattr(device_setup, "_gpu", works)
    assert len(names("GPU")) == 2


def test_a_device_that_there_is_not(fresh, monkeypatch):
    monkeypatch.setattr(discovery, "physical_gpus", list)
    monkeypatch.setattr(discovery, "why_none", lambda: "nobody made one")
    with td.device("GPU:3"):
        assert td.constant(1).device.endswith("CPU:0")
    with pytest.raises(RuntimeError, match="GPU:1 unknown device. There is no GPU: nobody made"):
        td.constant(1).gpu(1)
    with pytest.raises(td.errors.InvalidArgumentError, match="/job:a/.*unknown device"):
        with td.device("/job:a/device:CPU:0"):
            pass
    config.set_soft_device_placement(False)
    try:
        with pytest.raises(td.errors.InvalidArgumentError) as info:
            with td.device("GPU:3"):
                pass
        for word in (
            "'/job:localhost/replica:0/task:0/device:GPU:3'", "enable_soft_placement=0",
            "[/job:localhost/replica:0/task:0/device:CPU:0]", "nobody made one",
        ):  # fmt: skip
            assert word in str(info.value)
        with td.device(td.DeviceSpec(device_type="CPU")):
            pass
    finally:
        config.set_soft_device_placement(True)


def test_names_of_scopes(fresh):
    config.set_logical_device_configuration(CPU, [ONE] * 3)

    def here():
        return td.constant(1.0).device.removeprefix("/job:localhost/replica:0/task:0/device:")

    for name in ("/Cpu:1", "/job:localhost/replica:0/task:0/cpu:1", "CPU:01",
                 config.LogicalDevice("/device:CPU:1", "CPU"),
                 td.DeviceSpec(device_type="cpu", device_index=1)):  # fmt: skip
        with td.device(name):
            assert here() == "CPU:1"
            for inner, device in (
                ("", "CPU:1"), ("/job:localhost", "CPU:1"), ("CPU", "CPU:1"), (None, "CPU:0"),
                ("CPU:2", "CPU:2"), ("GPU", "CPU:0"),
            ):  # fmt: skip
                with td.device(inner):
                    assert here() == device
            assert here() == "CPU:1"
    again = td.device("CPU:2")
    with again, again:
        assert here() == "CPU:2"
    assert here() == "CPU:0"
    for name, text in (
        ("nonsense", "Unknown attribute 'nonsense' is encountered while parsing the device spec"),
        ("/cpu:0/gpu:0", "Multiple device types are not allowed while parsing"),
        ("CPU:x", "invalid literal for int"), ("/device:CPU", "Unknown attribute 'device'"),
        (3, "Expecting a string device name"), (b"CPU:1", "Expecting a string device name"),
        (CPU, "Expecting a string device name"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            td.device(name)
    with pytest.raises(RuntimeError, match="does not support functions"):
        td.device(lambda op: "CPU:1")
    with pytest.raises(td.errors.InvalidArgumentError, match="Malformed device specification"):
        with td.device("CPU:-1"):
            pass


def test_names_of_graph_tensors():
    @td.function
    def f(x):
        assert not any(hasattr(x, name) for name in ("cpu", "gpu", "backing_device"))
        return x

    f(td.constant(1.0))


def test_a_process_sets_its_devices_up_before_it_names_them():
    code = (
        "import treadle as td, sys\n"
        "c = td.config; cpu, = c.list_physical_devices('CPU')\n"
        "td.constant(1.0) + 1.0\n"
        "c.set_logical_device_configuration(cpu, [c.LogicalDeviceConfiguration()] * 2)\n"
        "with td.device('CPU:0'): td.constant(1.0)\n"
        "from treadle.runtime.gpu.discovery import _search\n"
        "assert not _search.is_made and 'cupy' not in sys.modules\n"
        "with td.device('CPU:1'): x = td.constant(1.0)\n"
        "print(x.device, len(c.list_logical_devices('CPU')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "/job:localhost/replica:0/task:0/device:CPU:1 2\n"


def test_what_programs_are_made_with():
    info = td.sysconfig.get_build_info()
    assert info["cpu_compiler"].startswith("llvmlite ") and info["is_rocm_build"] is False
    assert info["is_cuda_build"] == td.test.is_built_with_cuda() == discovery.is_installed()
    assert td.test.is_built_with_gpu_support() == discovery.is_installed()


def test_functions_run_eagerly_by_its_older_name():
    config.experimental_run_functions_eagerly(True)
    try:
        assert config.experimental_functions_run_eagerly() and config.functions_run_eagerly()
    finally:
        config.experimental_run_functions_eagerly(False)


def test_parts_of_a_vector_that_are_known():
    seen = []

    @td.function
    def f(x):
        vector = td.stack([x, 3.0, td.constant(2.0) * 2.0])
        seen.extend([td.get_static_value(vector), td.get_static_value(vector, partial=True)])
        return vector

    f(td.constant(1.0))
    assert seen[0] is None and seen[1][0] is None and list(seen[1][1:]) == [3.0, 4.0]
    known = td.get_static_value(td.Variable([1.0]))
    np.testing.assert_array_equal(known, [1.0])


def test_bits_of_a_batch():
    x = td.constant(np.arange(6, dtype=np.float32).reshape(3, 2))
    found = td.vectorized_map(lambda row: td.bitcast(row, td.int32), x)
    np.testing.assert_array_equal(found, x.numpy().view(np.int32))
