"""This machine's devices: which of them programs see, and what logical devices each is divided
into.

Logical devices are made when they are first listed, or one besides ``CPU:0`` is looked for: until
then the setup may be changed. A logical CPU is a device with the host's memory, whose programs the
processor's backend makes. GPUs are found by `treadle.runtime.gpu.discovery`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.core import errors, locks
from treadle.core.context import find_home_by
from treadle.core.devices import HOST, Device, add_device, begin_with, known_devices
from treadle.core.host_storage import host_storage
from treadle.runtime.gpu import discovery


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device as programs name it."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """What a logical device may use of a physical one.

    Attributes:
        memory_limit: in MiB, for a GPU.
        experimental_priority, experimental_device_ordinal: accepted for a GPU.
    """

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


Configurations = list[LogicalDeviceConfiguration]

PROCESSOR = PhysicalDevice("/physical_device:CPU:0", HOST.kind)


class Setup:
    """The choices of the program.

    Attributes:
        is_done: whether the logical devices are made, so that nothing may be changed any more.
    """

    def __init__(self) -> None:
        self.is_done = False
        self._lock = locks.reentrant_lock()
        self._visible: list[PhysicalDevice] | None = None
        self._divided: dict[PhysicalDevice, Configurations] = {}
        self._growing: dict[PhysicalDevice, bool] = {}
        self._made: list[Device] = []
        self._is_busy = False

    # -- physical devices --------------------------------------------------------------------

    def gpus(self) -> dict[PhysicalDevice, discovery.PhysicalGPU]:
        """The GPUs of this machine."""
        found = enumerate(discovery.physical_gpus())
        return {PhysicalDevice(f"/physical_device:GPU:{i}", "GPU"): gpu for i, gpu in found}

    def physical(self, kind: str | None = None) -> list[PhysicalDevice]:
        """The physical devices of a kind, or all: the processor, the GPUs, and what a program added
        to the table. GPUs are looked for where the answer may have some."""
        gpus = self.gpus() if kind in (None, "GPU") else ()
        found = [PROCESSOR, *gpus, *self._added()]
        return [device for device in found if kind in (None, device.device_type)]

    def visible(self) -> list[PhysicalDevice]:
        """Those that programs see."""
        return self.physical() if self._visible is None else self._visible

    def _added(self) -> list[PhysicalDevice]:
        """What was added to the table by others."""
        others = [d for d in known_devices() if d is not HOST and d not in self._made]
        return [PhysicalDevice(f"/physical_device:{device}", device.kind) for device in others]

    def see(self, devices: Sequence[PhysicalDevice], kind: str | None) -> None:
        """Let programs see these devices, of a kind or all of them, and no others of it."""
        known = self.physical()
        for device in devices:
            if device not in known or kind not in (None, device.device_type):
                raise ValueError(f"Unrecognized device: {device!r}")
        before = self.visible()
        kept = [] if kind is None else [d for d in before if d.device_type != kind]
        after = [*kept, *devices]
        if sorted(before) == sorted(after):
            return
        self._change("Visible devices")
        self._visible = after

    # -- logical devices ---------------------------------------------------------------------

    def divided(self, device: PhysicalDevice) -> Configurations | None:
        """The logical devices of a physical one; None: there is one."""
        self._check(device)
        return self._divided.get(device)

    def divide(self, device: PhysicalDevice, parts: Configurations) -> None:
        """Make logical devices of a physical one."""
        self._check(device)
        kind = device.device_type
        if kind == "CPU":
            for each in parts:
                for name, text in _NOT_OF_CPUS.items():
                    if getattr(each, name) is not None:
                        raise ValueError(text)
        elif kind != "GPU":
            raise ValueError(f"Virtual devices are not supported for {kind}")
        elif any(each.memory_limit is None for each in parts):
            raise ValueError("Setting memory limit is required for GPU virtual devices")
        if self._divided.get(device) != parts:
            self._change("Virtual devices")
            self._divided[device] = parts

    # -- memory of GPUs ----------------------------------------------------------------------

    def grows(self, device: PhysicalDevice) -> bool:
        """Whether a GPU's memory is taken when it is needed: it always is, and this is what the
        program said."""
        self._check(device)
        return self._growing.get(device, False)

    def grow(self, device: PhysicalDevice, enable: bool) -> None:
        """Say whether it is."""
        self._check(device)
        if device in self._divided:
            raise ValueError("Cannot set memory growth on device when virtual devices configured")
        if device.device_type != "GPU":
            raise ValueError("Cannot set memory growth on non-GPU and non-Pluggable devices")
        if self._growing.get(device) != enable:
            self._change("Physical devices")
            self._growing[device] = enable

    # -- the device of what nobody places ------------------------------------------------------

    def home(self) -> Device:
        """The first GPU that programs see, else the host. Where no GPU can be there this is cheap,
        and the setup may still be changed."""
        if self._visible is None:
            possible = discovery.may_find()
        else:
            possible = any(device.device_type == "GPU" for device in self._visible)
        if possible:
            self.finish()
        return next((device for device in self._made if device.kind == "GPU"), HOST)

    # -- making devices ----------------------------------------------------------------------

    def finish(self) -> None:
        """Make the logical devices, unless that is done."""
        if self.is_done:
            return
        with self._lock:
            if self.is_done or self._is_busy:
                return
            try:
                self._is_busy = True
                made = self._make()
            finally:
                self._is_busy = False
            self._made = made
            for device in made:
                add_device(device)
            self.is_done = True

    def _make(self) -> list[Device]:
        """All logical devices but the host."""
        seen, gpus = self.visible(), self.gpus()
        if PROCESSOR not in seen:
            raise errors.NotFoundError(None, None, "No CPU devices are available in this process")
        processors = range(1, len(self._divided.get(PROCESSOR) or _WHOLE))
        made = [Device(HOST.kind, number, host_storage) for number in processors]
        visible = [device for device in seen if device in gpus]
        parts = [(gpus[d], part) for d in visible for part in self._divided.get(d) or _WHOLE]
        for number, (gpu, part) in enumerate(parts):
            limit = None if part.memory_limit is None else part.memory_limit << 20
            made.append(_gpu(number, gpu, limit))
        return made

    def _change(self, what: str) -> None:
        if self.is_done:
            raise RuntimeError(f"{what} cannot be modified after being initialized")

    def _check(self, device: Any) -> None:
        if device != PROCESSOR and device not in self.physical():
            raise ValueError(f"Unrecognized device: {device!r}")


def why_none() -> str:
    """Why no program sees a GPU; "" where one does."""
    if setup.gpus():
        seen = any(device.device_type == "GPU" for device in setup.visible())
        return "" if seen else "td.config.set_visible_devices hides all of them"
    return discovery.why_none()


def _gpu(number: int, gpu: discovery.PhysicalGPU, limit: int | None) -> Device:
    """A logical GPU, which may use so many bytes."""
    from treadle.runtime.gpu.devices import make_device

    try:
        return make_device(number, gpu, limit)
    except Exception as error:  # such as a GPU that another process has to itself, in CUDA's words
        raise errors.UnavailableError(
            None, None,
            f"{gpu.name} cannot be used: {error}. Free it, or let programs run without it: "
            "td.config.set_visible_devices([], 'GPU')",
        ) from error  # fmt: skip


_WHOLE = [LogicalDeviceConfiguration()]  # where a physical device is one logical device
_NOT_OF_CPUS = {
    "memory_limit": "Setting memory limit on CPU virtual devices is currently not supported",
    "experimental_priority": (
        "Setting experimental_priority on CPU virtual  devices is currently not supported"
    ),
    "experimental_device_ordinal": (
        "Setting experimental_device_ordinal on CPU virtual  devices is currently not supported"
    ),
}  # fmt: skip


setup = Setup()
begin_with(lambda: setup.finish())
find_home_by(lambda: setup.home())
