"""Settings: eager debugging, threads, devices, memory (``td.config``)."""

from __future__ import annotations

from treadle.config import experimental, optimizer, threading
from treadle.config.devices import (
    LogicalDevice,
    LogicalDeviceConfiguration,
    PhysicalDevice,
    get_logical_device_configuration,
    get_soft_device_placement,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_logical_device_configuration,
    set_soft_device_placement,
    set_visible_devices,
)
from treadle.core.context import count_modes
from treadle.names import missing_in
from treadle.tracing import settings

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "experimental",
    "experimental_functions_run_eagerly",
    "experimental_run_functions_eagerly",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_soft_device_placement",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "max_traces",
    "optimizer",
    "run_functions_eagerly",
    "set_logical_device_configuration",
    "set_max_traces",
    "set_soft_device_placement",
    "set_visible_devices",
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


experimental_run_functions_eagerly = run_functions_eagerly
experimental_functions_run_eagerly = functions_run_eagerly

__getattr__ = missing_in(__name__)
