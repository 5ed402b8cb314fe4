"""The devices that tensors may be on: the host, and those that are added, most of them when they
are first asked for (`treadle.runtime.device_setup`).

A tensor's device is part of its spec (`treadle.core.spec`), and so of signatures and of the keys of
programs. Programs for a kind of device are made by its backend (`treadle.runtime.devices`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core.host_storage import host_storage
from treadle.core.storage import Storage

_HERE = "/job:localhost/replica:0/task:0/device:"  # TensorFlow's name of this process


class Device:
    """A device. There is one object for each, so ``is`` compares them.

    Args:
        kind: "CPU", "GPU".
        number: counts the devices of a kind from 0.
        storage: its memory.

    Attributes:
        name: TensorFlow's, as ``/job:localhost/replica:0/task:0/device:CPU:0``.
    """

    __slots__ = ("__weakref__", "kind", "name", "number", "storage")

    def __init__(self, kind: str, number: int, storage: Storage) -> None:
        self.kind, self.number, self.storage = kind, number, storage
        self.name = f"{_HERE}{self}"

    def __str__(self) -> str:
        """``CPU:0``, as messages and texts of graphs have it."""
        return f"{self.kind}:{self.number}"

    def __repr__(self) -> str:
        return f"<device {self}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return find_device, (str(self),)


HOST = Device("CPU", 0, host_storage)
_devices = {str(HOST): HOST}


_begin: list[Callable[[], None]] = []


def begin_with(begin: Callable[[], None]) -> None:
    """Let ``begin()`` add this machine's other devices, each time before devices are listed or one
    is looked for that is not known."""
    _begin[:] = [begin]


def all_devices() -> list[Device]:
    """The host first, then the devices of each kind in their order."""
    for begin in _begin:
        begin()
    found = known_devices()
    kinds = list(dict.fromkeys(device.kind for device in found))
    return sorted(found, key=lambda device: (kinds.index(device.kind), device.number))


def known_devices() -> list[Device]:
    """Those that are added by now."""
    return list(_devices.values())


def add_device(device: Device) -> None:
    """Make a device known by its name.

    Raises:
        ValueError: there is one of its name.
    """
    if _devices.setdefault(str(device), device) is not device:
        raise ValueError(f"there is a device {device} already")


def remove_device(device: Device) -> None:
    """Forget a device; its tensors live on."""
    _devices.pop(str(device), None)


def find_device(name: str) -> Device:
    """The device of a name such as "CPU:0", "/device:CPU:0" or TensorFlow's full one.

    Raises:
        ValueError: there is none.
    """
    short = str(name)
    for prefix in (_HERE, "/physical_device:", "/device:", "/"):
        if short.startswith(prefix):
            short = short.removeprefix(prefix)
            break
    found = _devices.get(short)
    if found is None:
        all_devices()
        found = _devices.get(short)
    if found is None:
        names = ", ".join(repr(each) for each in _devices)
        known = f"the only one is {names}" if len(_devices) == 1 else f"there are {names}"
        raise ValueError(f"there is no device {name!r}: {known}")
    return found
