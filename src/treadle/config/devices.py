"""The devices of this machine, and which of them programs use (names of ``td.config``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.core.devices import Device, all_devices
from treadle.tracing import settings

_PHYSICAL = "/physical_device:"


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device as programs name it."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """What a logical device may use of a physical one; None leaves it to the device."""

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


def _of_kind(kind: str | None) -> list[Device]:
    return [d for d in all_devices() if kind in (None, d.kind)]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that treadle can run on."""
    return [PhysicalDevice(f"{_PHYSICAL}{d}", d.kind) for d in _of_kind(device_type)]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices as programs name them: each physical one is one."""
    return [LogicalDevice(f"/device:{d}", d.kind) for d in _of_kind(device_type)]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that programs may use: all."""
    return list_physical_devices(device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Accepted where it changes nothing: all devices are visible.

    Args:
        devices: a physical device or a list of them.
        device_type: the kind of device that this is about; all without it.

    Raises:
        ValueError: something that is no physical device, or of another kind.
        RuntimeError: a device is missing in the list.
    """
    given = _listed(devices)
    for each in given:
        if each not in list_physical_devices():
            raise ValueError(f"Unrecognized device: {each!r}")
        if device_type not in (None, each.device_type):
            raise ValueError(f"{each!r} is no {device_type}")
    hidden = [each for each in list_physical_devices(device_type) if each not in given]
    if hidden:
        raise RuntimeError(f"Visible devices cannot be modified: {hidden} would be hidden")


def _listed(devices: Any) -> list[Any]:
    """A device, a list of them, or None."""
    if devices is None or isinstance(devices, PhysicalDevice):
        return [] if devices is None else [devices]
    return list(devices)


def get_logical_device_configuration(
    device: PhysicalDevice,
) -> list[LogicalDeviceConfiguration] | None:
    """None: each physical device is one logical device.

    Raises:
        ValueError: there is no such device.
    """
    _known(device)
    return None


def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration] | None
) -> None:
    """Accepted where it changes nothing: a physical device is one logical device without limits.

    Raises:
        ValueError: there is no such device.
        RuntimeError: several logical devices, or a limit.
    """
    _known(device)
    if logical_devices and list(logical_devices) != [LogicalDeviceConfiguration()]:
        raise RuntimeError(
            f"Virtual devices cannot be modified: {device.name} is one device without limits"
        )


def _known(device: Any) -> None:
    if device not in list_physical_devices():
        raise ValueError(f"Unrecognized device: {device!r}")


def set_soft_device_placement(enabled: bool) -> None:
    """Whether a device that there is not stands for the processor in `td.device`; it does at first.

    Without it `td.device` raises InvalidArgumentError for such a device.
    """
    settings.soft_device_placement = bool(enabled)


def get_soft_device_placement() -> bool:
    """What `set_soft_device_placement` was told."""
    return settings.soft_device_placement
