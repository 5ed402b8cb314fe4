"""GPUs as devices of tensors (`treadle.core.devices`)."""

from __future__ import annotations

from treadle.core.devices import Device
from treadle.runtime.gpu.cupy_driver import CupyDriver
from treadle.runtime.gpu.discovery import PhysicalGPU
from treadle.runtime.gpu.memory import DeviceStorage


def make_device(number: int, gpu: PhysicalGPU, limit: int | None = None) -> Device:
    """A logical GPU.

    Args:
        number: of the logical device.
        gpu: the physical one that it is on.
        limit: bytes that it may use; None: all.
    """
    return Device("GPU", number, DeviceStorage(CupyDriver(gpu.number, limit)))
