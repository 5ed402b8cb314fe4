"""td.config: devices and their placement; td.device."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

config = td.config
(CPU,) = config.list_physical_devices("CPU")


def test_lists_of_devices():
    assert config.list_logical_devices("CPU") == [config.LogicalDevice("/device:CPU:0", "CPU")]
    assert config.list_logical_devices("GPU") == config.get_visible_devices("GPU") == []
    assert config.experimental.list_physical_devices() == config.get_visible_devices() == [CPU]
    assert CPU == config.PhysicalDevice("/physical_device:CPU:0", "CPU")


def test_devices_cannot_be_hidden_or_divided():
    config.set_visible_devices([], "GPU")
    config.set_visible_devices(CPU)
    with pytest.raises(RuntimeError, match="would be hidden"):
        config.set_visible_devices([], "CPU")
    with pytest.raises(ValueError, match="Unrecognized device: 'x'"):
        config.set_visible_devices(["x"])
    with pytest.raises(ValueError, match="is no GPU"):
        config.set_visible_devices([CPU], "GPU")
    one = config.LogicalDeviceConfiguration()
    config.set_logical_device_configuration(CPU, [one])
    assert config.get_logical_device_configuration(CPU) is None
    with pytest.raises(RuntimeError, match="one device without limits"):
        config.set_logical_device_configuration(CPU, [one, one])
    with pytest.raises(RuntimeError, match="one device without limits"):
        config.set_logical_device_configuration(CPU, [one._replace(memory_limit=100)])
    with pytest.raises(ValueError, match="non-GPU"):
        config.experimental.set_memory_growth(CPU, True)


def test_a_device_that_there_is_not():
    with td.device("GPU:3"):
        assert td.constant(1).device.endswith("CPU:0")
    config.set_soft_device_placement(False)
    try:
        with pytest.raises(td.errors.InvalidArgumentError, match=r"no device /device:GPU:3, .*CPU"):
            with td.device("GPU:3"):
                pass
        with td.device(td.DeviceSpec(device_type="CPU")):
            pass
    finally:
        config.set_soft_device_placement(True)


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
