"""Which backend makes the programs of a device: for logical CPUs the processor's, for GPUs theirs,
or a chosen one.

The compiler, programs on disk and what is begun early ask for a `Backend` here, and import nothing
of a device's package themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from treadle.core import errors
from treadle.core.devices import HOST, Device

if TYPE_CHECKING:
    from treadle.runtime.backend import Backend

_in_use: list[using] = []  # the innermost last


def backend(device: Device = HOST) -> Backend:
    """The backend that makes programs for a device.

    Raises:
        UnimplementedError: there is none.
    """
    for choice in reversed(_in_use):
        if choice.kind == device.kind:
            return choice.backend
    if device.kind == "GPU":
        from treadle.runtime.gpu.backend import GpuBackend

        return GpuBackend(device.storage)  # type: ignore[arg-type]
    if device.kind != HOST.kind:
        raise errors.UnimplementedError(None, None, f"no compiler makes programs for {device}")
    from treadle.runtime.cpu.backend import cpu

    return cpu


def exchange(devices: Sequence[Device], by: str) -> Any:
    """How GPUs exchange values, which is kept ready as long as somebody has it.

    Args:
        by: see `treadle.runtime.gpu.exchange.exchange_between`.

    Raises:
        UnavailableError: NCCL is asked for, and cannot be used.
    """
    from treadle.runtime.gpu.exchange import exchange_between

    return exchange_between([device.storage.driver for device in devices], by)  # type: ignore[attr-defined]


def join_workers(
    device: Device, rank: int, gather: Callable[[object], list[object]], host: str, is_wanted: bool
) -> bool:
    """See `treadle.runtime.gpu.exchange.join_workers`.

    Args:
        device: of this process.
    """
    from treadle.runtime.gpu.exchange import join_workers

    driver = device.storage.driver if device.kind == "GPU" else None  # type: ignore[attr-defined]
    return join_workers(driver, rank, gather, host, is_wanted)


class using:
    """``with using(backend):`` another backend makes the programs of a kind of device, the host's
    if nothing else is said.

    It holds for the whole process, and for programs that are made within it: a function that has
    its program already keeps it.
    """

    def __init__(self, backend: Backend, kind: str = HOST.kind) -> None:
        self.backend, self.kind = backend, kind

    def __enter__(self) -> Backend:
        _in_use.append(self)
        return self.backend

    def __exit__(self, *exc: object) -> None:
        _in_use.remove(self)
