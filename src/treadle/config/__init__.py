"""Settings: eager debugging, threads, devices, memory (``td.config``)."""

from __future__ import annotations

from typing import NamedTuple

from treadle.config import experimental, threading
from treadle.core.context import count_modes
from treadle.core.devices import all_devices
from treadle.tracing import settings

__all__ = [
    "PhysicalDevice",
    "experimental",
    "functions_run_eagerly",
    "list_physical_devices",
    "max_traces",
    "run_functions_eagerly",
    "set_max_traces",
    "threading",
]


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Make every `function` call run its Python function eagerly, for debugging."""
    settings.run_eagerly = bool(run_eagerly)
    count_modes("run_eagerly", int(settings.run_eagerly))  # compiled calls look there


def functions_run_eagerly() -> bool:
    """Whether functions currently run eagerly."""
    return settings.run_eagerly


def set_max_traces(number: int) -> None:
    """How many traces a `function` keeps unless it was given ``max_traces``; 512 at first.

    Beyond that, the traces not used for longest are freed, and made again when they are needed.
    TREADLE_MAX_TRACES sets it from the start.

    Raises:
        ValueError: the number is not positive.
    """
    settings.max_traces = settings.checked_bound(number)


def max_traces() -> int:
    """How many traces a `function` keeps unless it was given ``max_traces``."""
    return settings.max_traces


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that treadle can run on."""
    devices = [PhysicalDevice(f"/physical_device:{d}", d.kind) for d in all_devices()]
    return [d for d in devices if device_type in (None, d.device_type)]
