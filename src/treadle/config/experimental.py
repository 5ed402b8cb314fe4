"""How much memory programs use, devices, and how exactly they multiply
(``td.config.experimental``)."""

from __future__ import annotations

import re
from typing import Any

from treadle.config.devices import (
    LogicalDeviceConfiguration,
    PhysicalDevice,
    get_logical_device_configuration,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_logical_device_configuration,
    set_visible_devices,
)
from treadle.core.devices import Device, all_devices
from treadle.core.origin import at, user_origin
from treadle.names import missing_in
from treadle.ops.random.state import streams
from treadle.runtime.device_setup import setup
from treadle.runtime.devices import backend
from treadle.runtime.precision import precision
from treadle.tracing import settings

VirtualDeviceConfiguration = LogicalDeviceConfiguration
get_virtual_device_configuration = get_logical_device_configuration
set_virtual_device_configuration = set_logical_device_configuration

__all__ = [
    "VirtualDeviceConfiguration",
    "disable_mlir_bridge",
    "enable_mlir_bridge",
    "enable_op_determinism",
    "enable_tensor_float_32_execution",
    "get_device_details",
    "get_device_policy",
    "get_memory_growth",
    "get_memory_info",
    "get_memory_usage",
    "get_synchronous_execution",
    "get_virtual_device_configuration",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "reset_memory_stats",
    "set_device_policy",
    "set_memory_growth",
    "set_synchronous_execution",
    "set_virtual_device_configuration",
    "set_visible_devices",
    "tensor_float_32_execution_enabled",
]


def enable_op_determinism() -> None:
    """Let a program be the same in every run: random numbers must come from a seed now.

    Eager operations on large arrays wait for their programs from now on: otherwise NumPy computes
    them until these are compiled, and may round differently. All else is so anyway: results are the
    same for the same arguments and seeds, with any number of threads. Random operations, and
    shuffles of datasets, for which neither `td.random.set_seed` nor an argument gives a seed are a
    RuntimeError from now on.
    """
    streams.need_seeds = True
    settings.wait_for_eager_programs = True


def get_device_policy() -> str:
    """ "silent": an operation copies operands that are on another device."""
    return "silent"


def set_device_policy(device_policy: str | None) -> None:
    """Accepted for "silent", or None: an operation copies operands that are on another device.

    Raises:
        NotImplementedError: another policy of TensorFlow's.
        ValueError: there is no such policy.
    """
    if device_policy in ("silent_for_int32", "warn", "explicit"):
        raise NotImplementedError(
            f"The device policy {device_policy!r} is not provided: operations copy operands that "
            f"are on another device{at(user_origin())}"
        )
    if device_policy not in (None, "silent"):
        raise ValueError(f"Not a valid device policy: {device_policy!r}{at(user_origin())}")


_synchronous = True


def set_synchronous_execution(enable: bool | None) -> None:
    """Accepted for TensorFlow programs: a call returns when it is done, but for what a GPU does."""
    global _synchronous
    _synchronous = enable is None or bool(enable)


def get_synchronous_execution() -> bool:
    """What `set_synchronous_execution` was told; True at first."""
    return _synchronous


def enable_mlir_bridge() -> None:
    """Accepted for TensorFlow programs: programs are compiled by treadle itself."""


def disable_mlir_bridge() -> None:
    """Accepted for TensorFlow programs: programs are compiled by treadle itself."""


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Accepted for a GPU: memory is always taken when it is needed.

    Raises:
        ValueError: there is no such device, it is no GPU, or it is divided into logical devices.
        RuntimeError: logical devices have been made, and it was told something else before.
    """
    setup.grow(device, bool(enable))


def get_memory_growth(device: PhysicalDevice) -> bool:
    """What `set_memory_growth` was told; False at first.

    Raises:
        ValueError: there is no such device.
    """
    return setup.grows(device)


def get_memory_info(device: str) -> dict[str, int]:
    """Bytes of memory that treadle manages on a device, "GPU:0" or "CPU:0".

    On a GPU these are all tensors, variables, constants and workspaces of programs. Unlike
    TensorFlow's it knows the processor, too, where it counts what compiled programs have: their
    workspaces, lists and arrays of sizes found out, and results, variables and constants from
    256 KiB on; smaller arrays and those of eager operations are NumPy's. What a call needs is known
    before it runs: stage "memory" of `td.inspect`. Logical CPUs have one memory.

    Returns:
        "current": bytes in use, where the processor's blocks up to 1 GiB are rounded up to powers
        of two;
        "peak": the most in use at once since the start or `reset_memory_stats`;
        "kept": bytes that wait to be used again, which `td.clear_caches` frees, and on the
        processor TREADLE_KEEP_BYTES bounds.

    Raises:
        ValueError: there is no such device, or it is no name of a device.
    """
    return backend(_named(device)).program_memory.use()


def get_memory_usage(device: str) -> int:
    """The bytes in use: ``get_memory_info(device)["current"]``."""
    return get_memory_info(device)["current"]


def reset_memory_stats(device: str) -> None:
    """Let the peak of `get_memory_info` begin at what is in use now.

    Raises:
        ValueError: there is no such device, or it is no name of a device.
    """
    backend(_named(device)).program_memory.reset_peak()


def get_device_details(device: PhysicalDevice) -> dict[str, Any]:
    """What is known of a physical device: of a GPU "device_name" and "compute_capability", of
    others nothing.

    Raises:
        ValueError: there is no such device.
    """
    if not isinstance(device, PhysicalDevice):
        raise ValueError(f"device must be a td.config.PhysicalDevice, but got: {device}")
    if device not in setup.physical():
        raise ValueError(
            "The PhysicalDevice must be one obtained from calling "
            f"`td.config.list_physical_devices`, but got: {device}"
        )
    gpu = setup.gpus().get(device)
    if gpu is None:
        return {}
    return {"device_name": gpu.name, "compute_capability": gpu.compute_capability}


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Whether GPUs may multiply matrices of float32 faster, with factors rounded to 10 bits.

    Unlike in TensorFlow they may not unless this says so. Nothing else changes: processors and
    other dtypes are exact as before.
    """
    precision.tensor_float = bool(enabled)


def tensor_float_32_execution_enabled() -> bool:
    """What `enable_tensor_float_32_execution` said last; False at first."""
    return precision.tensor_float


def _named(name: str) -> Device:
    """The device of a name that has a kind and a number."""
    text = str(name)
    parts = re.fullmatch(r"(?:/job:localhost/replica:0/task:0)?/?(?:device:)?(\w+):(\d+)", text)
    if parts is None:
        raise ValueError(
            f"Failed parsing device name: {text!r}. Note a valid device string should at least "
            f'contain a device type and a device index, like "GPU:0".{at(user_origin())}'
        )
    found = [d for d in all_devices() if str(d) == f"{parts[1].upper()}:{int(parts[2])}"]
    if not found:
        raise ValueError(f"No matching devices found for {text!r}{at(user_origin())}")
    return found[0]

__getattr__ = missing_in(__name__)
