"""Names of devices, and the places that programs ask for (``td.device``, ``td.DeviceSpec``)."""

from __future__ import annotations

from typing import Any

from treadle.core import errors
from treadle.core.devices import HOST, all_devices
from treadle.core.origin import at, user_origin
from treadle.tracing import settings

_NUMBERS = ("replica", "task")


class DeviceSpec:
    """The parts of the name of a device; None for those that it leaves open.

    Args:
        job: the name of a job, such as "localhost".
        replica, task: numbers within the job.
        device_type: "CPU" or "GPU".
        device_index: which of them.
    """

    __slots__ = ("device_index", "device_type", "job", "replica", "task")

    def __init__(
        self, job: str | None = None, replica: int | None = None, task: int | None = None,
        device_type: str | None = None, device_index: int | None = None,
    ) -> None:  # fmt: skip
        self.job = None if job is None else str(job)
        self.replica = None if replica is None else int(replica)
        self.task = None if task is None else int(task)
        self.device_type = None if device_type is None else str(device_type).upper()
        self.device_index = None if device_index is None else int(device_index)

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """The parts of a name such as "CPU:0", "/gpu:1" or "/job:a/task:1/device:CPU:0".

        Raises:
            ValueError: it is no such name.
        """
        found: dict[str, Any] = {}
        for part in filter(None, spec.split("/")):
            key, *values = part.split(":")
            if key in ("job", *_NUMBERS) and len(values) == 1:
                found[key] = values[0] if key == "job" else _number(spec, values[0])
                continue
            if key == "device":
                key, *values = values or [""]
            elif key.upper() not in ("CPU", "GPU", "TPU"):
                raise ValueError(f"Unknown attribute {key!r} in the device name {spec!r}")
            if len(values) > 1 or not key or "device_type" in found:
                raise ValueError(f"{spec!r} is no name of one device")
            found["device_type"] = key
            if values and values[0] != "*":
                found["device_index"] = _number(spec, values[0])
        return cls(**found)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """`from_string`."""
        return type(self).from_string(spec)

    def _parts(self) -> dict[str, Any]:
        names = ("job", *_NUMBERS, "device_type", "device_index")
        return {name: getattr(self, name) for name in names}

    def to_string(self) -> str:
        """The name, such as "/job:a/device:CPU:0"."""
        parts = self._parts()
        named = [f"/{k}:{parts[k]}" for k in ("job", *_NUMBERS) if parts[k] is not None]
        if self.device_type is not None:
            index = "*" if self.device_index is None else self.device_index
            named.append(f"/device:{self.device_type}:{index}")
        return "".join(named)

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """This one with the parts that `dev` has."""
        theirs = {k: v for k, v in dev._parts().items() if v is not None}
        return type(self)(**{**self._parts(), **theirs})

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """This one with other parts."""
        return type(self)(**{**self._parts(), **kwargs})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(tuple(self._parts().values()))

    def __repr__(self) -> str:
        parts = ", ".join(f"{k}={v}" for k, v in self._parts().items())
        return f"<DeviceSpec({parts})>"


def _number(spec: str, text: str) -> int:
    if not text.isdigit():
        raise ValueError(f"{text!r} in the device name {spec!r} is no number")
    return int(text)


class device:
    """Operations of the block belong on a device: ``with td.device("CPU:0"): ...``.

    Operations run on the device of their operands, which is the processor for all that programs
    make from Python and NumPy values. The block checks that the device it names is there.

    Args:
        device_name: a name, a `DeviceSpec`, or None or "" for any device. A device that there is
            not stands for the processor, as in TensorFlow, unless
            `td.config.set_soft_device_placement` forbids that.

    Raises:
        ValueError: it is no name of a device.
        InvalidArgumentError: when the block begins, there is no such device and soft placement is
            off.
        UnimplementedError: when the block begins, the device is there and is not the processor.
    """

    def __init__(self, device_name: Any) -> None:
        if callable(device_name):
            raise RuntimeError(f"device: give a name, not a function{at(user_origin())}")
        named = isinstance(device_name, DeviceSpec)
        self.spec = device_name if named else DeviceSpec.from_string(str(device_name or ""))

    def __enter__(self) -> None:
        kind, number = self.spec.device_type, self.spec.device_index
        if kind is None:
            return
        found = [d for d in all_devices() if d.kind == kind and number in (None, d.number)]
        if not found and not settings.soft_device_placement:
            known = ", ".join(map(str, all_devices()))
            raise errors.InvalidArgumentError(
                None, None, f"there is no device {self.spec.to_string()}, and soft placement is "
                f"off; devices: {known}{at(user_origin())}",
            )  # fmt: skip
        if found and HOST not in found:
            raise errors.UnimplementedError(
                None, None, f"td.device does not place operations on {found[0]}: they run where "
                f"their operands are{at(user_origin())}",
            )  # fmt: skip

    def __exit__(self, *error: object) -> None:
        pass
