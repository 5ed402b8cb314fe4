"""Names of devices, and the places that programs ask for (``td.device``, ``td.DeviceSpec``)."""

from __future__ import annotations

from typing import Any

from treadle.core import errors
from treadle.core.context import context, placing
from treadle.core.devices import HOST, Device, all_devices, known_devices
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.elementwise.unary import IDENTITY
from treadle.ops.registry import run
from treadle.runtime.device_setup import LogicalDevice, why_none
from treadle.tracing import settings

_NUMBERS = ("replica", "task")
_KINDS = ("CPU", "GPU", "TPU")


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
        kinds = {*_KINDS, *(device.kind for device in known_devices())}
        for part in filter(None, spec.split("/")):
            key, *values = part.split(":")
            if key in ("job", *_NUMBERS) and len(values) == 1:
                found[key] = values[0] if key == "job" else int(values[0])
                continue
            if key == "device" and len(values) == 2:
                key, *values = values
            elif key.upper() not in kinds or len(values) > 1:
                raise ValueError(
                    f"Unknown attribute {key!r} is encountered while parsing the device spec: "
                    f"{spec!r}."
                )
            if "device_type" in found:
                raise ValueError(
                    "Multiple device types are not allowed while parsing the device spec: "
                    f"{spec}."
                )
            found["device_type"] = key
            if values and values[0] != "*":
                found["device_index"] = int(values[0])
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


def _copy_to_host(self: Tensor) -> Tensor:
    """A copy of the tensor on the host. Its gradient is that of `td.identity`."""
    return _copied(self, HOST)


def _copy_to_gpu(self: Tensor, gpu_index: int = 0) -> Tensor:
    """A copy of the tensor on a GPU. Its gradient is that of `td.identity`.

    Raises:
        RuntimeError: there is no such GPU.
    """
    for known in all_devices():
        if known.kind == "GPU" and known.number == gpu_index:
            return _copied(self, known)
    why = why_none()
    reason = f" There is no GPU: {why}." if why else ""
    raise RuntimeError(f"GPU:{gpu_index} unknown device.{reason}{at(user_origin())}")


def _copied(tensor: Tensor, device: Device) -> Tensor:
    with placing(device):
        return run(IDENTITY, tensor)  # type: ignore[no-any-return]


Tensor.cpu, Tensor.gpu = _copy_to_host, _copy_to_gpu  # type: ignore[method-assign]


class device:
    """Operations of the block run on a device: ``with td.device("GPU:0"): ...``.

    Eager operations run on it and give tensors there, to which operands from elsewhere are copied;
    constants, results of `td.identity` and variables are made there. Outside of such blocks an
    operation runs where its operands are: on the device of the first one that is not on the host.
    Where all are on the host, or there are none, and programs see a GPU, it runs on the first GPU,
    and so are constants and variables made there. As in TensorFlow, int32 and strings stay on the
    host as long as nothing else is among operands and results, and here bools, too.

    A compiled function runs on one device as a whole. That is the device of the block in which it
    is called, and its tensors are copied there; or the one that blocks inside of the function name,
    the first that is not the host if they name several, or if a part of the operations is in none.
    Where nothing places it it runs on the first GPU, unless it has nothing but int32, bools and
    strings, or uses other variables that are on the host. `td.jit` computes on the host, and so do
    the functions of `td.data`.
    Variables from elsewhere are copied to it for each call, and back where the function assigns:
    make them within the block, too. Without soft placement (`td.config`) blocks of several devices
    in a function are an InvalidArgumentError.

    Args:
        device_name: a name such as "GPU:0", "/device:GPU:0" or the full name that `Tensor.device`
            gives; a `DeviceSpec` or `td.config.LogicalDevice`. Parts that are left out are those of
            the block around this one. None: operations run as outside of all blocks. A device that
            there is not stands for the processor, unless soft placement is off.

    Raises:
        ValueError: it is no name of a device.
        RuntimeError: it is a function.
        InvalidArgumentError: when the block begins, for a device of another process; without soft
            placement for one that there is not, with those that there are.
    """

    def __init__(self, device_name: Any) -> None:
        if callable(device_name):
            raise RuntimeError(
                f"td.device does not support functions: give a name{at(user_origin())}"
            )
        name = str(device_name) if isinstance(device_name, Device) else device_name
        name = getattr(name, "name", name) if type(name) is LogicalDevice else name
        if not isinstance(name, str | DeviceSpec | None):
            raise ValueError(
                f"Expecting a string device name. Got {type(name)}({name!r}){at(user_origin())}"
            )
        self.spec = DeviceSpec.from_string(name) if isinstance(name, str) else name
        self._entered: list[placing] = []  # several: a block may enter it again

    def __enter__(self) -> None:
        scope = placing(None) if self.spec is None else _scope(self.spec)
        self._entered.append(scope)
        scope.__enter__()

    def __exit__(self, *error: object) -> None:
        self._entered.pop().__exit__(*error)


def _scope(spec: DeviceSpec) -> placing:
    """What a name within the scopes around it means."""
    around = context.places[-1] if context.places else None
    if around is not None and around.device is not None:
        outer = around.spec or DeviceSpec.from_string(around.device.name)
        spec = outer.make_merged_spec(spec)
    return placing(None if spec.device_type is None else _device_of(spec), spec)


def _device_of(spec: DeviceSpec) -> Device:
    """The device that a name means; the host where there is none and soft placement is on."""
    kind, number = spec.device_type, spec.device_index
    full = DeviceSpec("localhost", 0, 0, device_index=0).make_merged_spec(spec)
    if (full.job, full.replica, full.task) != ("localhost", 0, 0):
        text = f"{full.to_string()} unknown device.{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    if number is not None and number < 0:
        text = f"Malformed device specification '{full.to_string()}'{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    if kind == HOST.kind and number in (None, 0):
        return HOST
    known = all_devices()
    found = [d for d in known if d.kind == kind and number in (None, d.number)]
    if found:
        return found[0]
    if settings.soft_device_placement:
        return HOST
    why = why_none() if kind == "GPU" else ""
    raise errors.InvalidArgumentError(
        None, None,
        f"Could not satisfy device specification '{full.to_string()}'. enable_soft_placement=0. "
        f"All available devices [{', '.join(d.name for d in known)}]."
        f"{f' There is no GPU: {why}.' if why else ''}{at(user_origin())}",
    )  # fmt: skip
