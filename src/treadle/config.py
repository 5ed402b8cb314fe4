"""Settings: eager debugging, threads, devices (``td.config``)."""

from __future__ import annotations

from typing import NamedTuple

from treadle.tracing import settings


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Make every `function` call run its Python function eagerly, for debugging."""
    settings.run_eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Whether functions currently run eagerly."""
    return settings.run_eagerly


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that treadle can run on."""
    devices = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    return [d for d in devices if device_type in (None, d.device_type)]
