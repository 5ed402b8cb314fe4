"""What TensorFlow's ``device_lib`` tells of the devices of this machine, and how its tests divide
them."""

from __future__ import annotations

from typing import Any, NamedTuple

import treadle as td
from treadle.runtime.device_setup import LogicalDeviceConfiguration, PhysicalDevice, setup

_MIB = 1 << 20
_HOST_LIMIT = 256 * _MIB  # TensorFlow's answer for every processor; nothing is limited by it


class DeviceAttributes(NamedTuple):
    """A device.

    Attributes:
        name: as `td.device` takes it, "/device:GPU:0" for example.
        device_type: "CPU" or "GPU".
        memory_limit: of a GPU the bytes of its memory.
        physical_device_desc: what is known of a GPU, as text.
    """

    name: str
    device_type: str
    memory_limit: int
    incarnation: int = 0
    physical_device_desc: str = ""


def list_local_devices(session_config: Any = None) -> list[DeviceAttributes]:
    """The logical devices. The configuration of a session is accepted and changes nothing.

    Raises:
        NotFoundError: the processor is hidden.
    """
    found = []
    for kind in dict.fromkeys(d.device_type for d in td.config.list_logical_devices()):
        visible = td.config.get_visible_devices(kind)
        limits = [limit for physical in visible for limit in _limits(physical)]
        for number, (limit, text) in enumerate(limits):
            found.append(DeviceAttributes(f"/device:{kind}:{number}", kind, limit, number, text))
    return found


def set_virtual_cpus_to_at_least(num_virtual_cpus: int) -> None:
    """Divide the processor into logical devices, before the first use of a device.

    Raises:
        ValueError: the number is not positive.
        RuntimeError: it has been divided into fewer.
    """
    if num_virtual_cpus < 1:
        raise ValueError(f"num_virtual_cpus must be at least 1, not {num_virtual_cpus}")
    processor = td.config.list_physical_devices("CPU")[0]
    parts = setup.divided(processor)
    if not parts:
        given = [td.config.LogicalDeviceConfiguration() for _ in range(num_virtual_cpus)]
        td.config.set_logical_device_configuration(processor, given)
    elif len(parts) < num_virtual_cpus:
        raise RuntimeError(
            f"the processor has been divided into {len(parts)} logical devices, which cannot "
            f"become {num_virtual_cpus}"
        )


def _limits(physical: PhysicalDevice) -> list[tuple[int, str]]:
    """Of each logical device that a physical one is divided into, its memory and the GPU's text."""
    gpu = setup.gpus().get(physical)
    memory, text = _HOST_LIMIT, ""
    if gpu is not None:
        version = ".".join(map(str, gpu.compute_capability))
        memory, text = gpu.memory, f"name: {gpu.name}, compute capability: {version}"
    parts = setup.divided(physical) or [LogicalDeviceConfiguration()]
    return [(part.memory_limit * _MIB if part.memory_limit else memory, text) for part in parts]
