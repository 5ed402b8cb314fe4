"""How much memory programs use, devices, and how exactly they multiply
(``td.config.experimental``)."""

from __future__ import annotations

from treadle.config.devices import (
    PhysicalDevice,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_visible_devices,
)
from treadle.core.devices import find_device
from treadle.runtime.devices import backend
from treadle.runtime.precision import precision

__all__ = [
    "enable_op_determinism",
    "enable_tensor_float_32_execution",
    "get_memory_info",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "reset_memory_stats",
    "set_memory_growth",
    "set_visible_devices",
    "tensor_float_32_execution_enabled",
]


def enable_op_determinism() -> None:
    """Accepted for TensorFlow programs: results are always the same for the same arguments and
    seeds, with any number of threads."""


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Accepted for a GPU: memory is taken when it is needed.

    Raises:
        ValueError: the device is no GPU.
    """
    if device.device_type != "GPU":
        raise ValueError(f"Cannot set memory growth on non-GPU device {device.name}")


def get_memory_info(device: str) -> dict[str, int]:
    """Bytes of memory that treadle manages on a device, "CPU:0".

    Unlike TensorFlow's it knows the processor, too. It counts what compiled programs have: their
    workspaces, lists and arrays of sizes found out, and results, variables and constants from
    256 KiB on; smaller arrays and those of eager operations are NumPy's. What a call needs is known
    before it runs: stage "memory" of `td.inspect`.

    Returns:
        "current": bytes in use, where blocks up to 1 GiB are rounded up to powers of two;
        "peak": the most in use at once since the start or `reset_memory_stats`;
        "kept": bytes that wait to be used again, which TREADLE_KEEP_BYTES bounds and
        `td.clear_caches` frees.

    Raises:
        ValueError: there is no such device.
    """
    return backend(find_device(device)).program_memory.use()


def reset_memory_stats(device: str) -> None:
    """Let the peak of `get_memory_info` begin at what is in use now.

    Raises:
        ValueError: there is no such device.
    """
    backend(find_device(device)).program_memory.reset_peak()


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Whether GPUs may multiply matrices of float32 faster, with factors rounded to 10 bits.

    Unlike in TensorFlow they may not unless this says so. Nothing else changes: processors and
    other dtypes are exact as before.
    """
    precision.tensor_float = bool(enabled)


def tensor_float_32_execution_enabled() -> bool:
    """What `enable_tensor_float_32_execution` said last; False at first."""
    return precision.tensor_float
