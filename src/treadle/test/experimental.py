"""What tests and timings of devices need (``td.test.experimental``)."""

from __future__ import annotations

from treadle.core.devices import known_devices
from treadle.names import missing_in

__all__ = ["sync_devices"]


def sync_devices() -> None:
    """Wait until all devices have done what they were asked for: a GPU works on while Python goes
    on, so a clock is read after this. Errors that only the device finds out are raised here."""
    for device in known_devices():
        device.storage.synchronize()


__getattr__ = missing_in(__name__)
