"""The devices of this machine, and which of them programs use (names of ``td.config``).

Logical devices are made when they are listed, or one besides ``CPU:0`` is named: from then on a
RuntimeError refuses to change which ones there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core.devices import all_devices
from treadle.core.origin import at, user_origin
from treadle.runtime.device_setup import (
    LogicalDevice,
    LogicalDeviceConfiguration,
    PhysicalDevice,
    setup,
)
from treadle.tracing import settings
from treadle.tracing.function import clear_all_traces

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "get_logical_device_configuration",
    "get_soft_device_placement",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "set_logical_device_configuration",
    "set_soft_device_placement",
    "set_visible_devices",
]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of this machine, hidden ones too: the processor, and GPUs that CuPy finds."""
    return setup.physical(device_type)


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices as programs name them, in `td.device` for example.

    Raises:
        NotFoundError: the processor is hidden.
    """
    found = [LogicalDevice(f"/device:{d}", d.kind) for d in all_devices()]
    return [d for d in found if device_type in (None, d.device_type)]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The physical devices that programs may use: all, unless `set_visible_devices` hid some."""
    return [d for d in setup.visible() if device_type in (None, d.device_type)]


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Let programs use these devices only. No logical devices are made of others.

    Args:
        devices: a physical device or a list of them.
        device_type: the kind of device that this is about; all without it.

    Raises:
        ValueError: something that is no physical device, or of another kind.
        RuntimeError: logical devices have been made, of other physical ones.
    """
    setup.see(devices if isinstance(devices, list) else [devices], device_type)


def get_logical_device_configuration(
    device: PhysicalDevice,
) -> list[LogicalDeviceConfiguration] | None:
    """What `set_logical_device_configuration` was told; None: it is one logical device.

    Raises:
        ValueError: there is no such device.
    """
    return setup.divided(device)


def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration]
) -> None:
    """Divide a physical device into logical ones.

    Logical CPUs, "CPU:0", "CPU:1" and so on, compute with the same processor and its memory: they
    show what a program does on several devices. Logical GPUs share a GPU; each has a bound on the
    memory that it takes.

    Args:
        logical_devices: one configuration for each. Those of a GPU need a `memory_limit` in MiB,
            those of the processor take none.

    Raises:
        ValueError: there is no such device, or it cannot be divided so.
        RuntimeError: logical devices have been made in another way.
    """
    setup.divide(device, list(logical_devices))


def set_soft_device_placement(enabled: bool) -> None:
    """Whether `td.device` may be followed as far as possible only; it may at first.

    A device that there is not then stands for the processor, and a compiled function runs on one
    device also where it has scopes of several. Without it this is an InvalidArgumentError. After a
    change functions are traced again.

    Raises:
        TypeError: no bool.
    """
    if not isinstance(enabled, bool | np.bool_):
        raise TypeError(
            f"set_soft_device_placement takes a bool, not {enabled!r}{at(user_origin())}"
        )
    if settings.soft_device_placement != bool(enabled):
        settings.soft_device_placement = bool(enabled)
        clear_all_traces()


def get_soft_device_placement() -> bool:
    """What `set_soft_device_placement` was told."""
    return settings.soft_device_placement
