"""Elements that are copied to another device before they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import Ahead, Leaves
from treadle.data.stages.parallel import Prefetch
from treadle.data.stages.stage import Stage, invalid
from treadle.iteration import placed


class CopiedToDevice(Stage):
    """The elements on a device: their copies begin when a stage behind this one takes them."""

    def __init__(self, inner: Stage, device: Any) -> None:
        self.inner, self.spec = inner, inner.spec
        with td.device(device):
            self.device: Any = placed()
        if self.device is None:
            raise invalid(f"copy_to_device: {device!r} is no name of a device")

    def open(self) -> Iterator[Leaves]:
        for leaves in self.inner.open():
            yield tuple([_copied(leaf, self.device) for leaf in leaves])

    def cardinality(self) -> int:
        return self.inner.cardinality()


class CopiedToDevices(Stage):
    """The elements, each a tuple with a part for each of several devices, on these."""

    def __init__(self, inner: Stage, devices: Sequence[Any]) -> None:
        self.inner, self.spec, self.devices = inner, inner.spec, tuple(devices)

    def open(self) -> Iterator[Leaves]:
        return map(self._parts, self.inner.open())

    def resume(self, count: int) -> Iterator[Leaves]:
        return map(self._parts, self.inner.resume(count))

    def _parts(self, leaves: Leaves) -> Leaves:
        each = len(leaves) // len(self.devices)
        return tuple([_copied(x, self.devices[i // each]) for i, x in enumerate(leaves)])

    def cardinality(self) -> int:
        return self.inner.cardinality()


def _copied(leaf: Any, device: Any) -> Any:
    """A leaf on its way to a device."""
    if not isinstance(leaf, np.ndarray) or leaf.dtype.hasobject or device.kind == "CPU":
        return leaf  # strings and datasets stay on the host
    return Ahead(leaf, device)


def check_last(stage: Stage) -> None:
    """Refuse a stage behind one whose elements are on another device than the host.

    Raises:
        InvalidArgumentError: it is not `prefetch`.
    """
    if isinstance(stage, Prefetch):
        return
    for value in vars(stage).values():
        for part in value if isinstance(value, list | tuple) else (value,):
            if isinstance(part, Stage):
                check_on_host(part, type(stage).__name__)


def check_on_host(stage: Stage, follows: str) -> None:
    """Refuse what reads the elements of a stage that are on another device than the host.

    Raises:
        InvalidArgumentError: they are.
    """
    if _is_on_a_device(stage):
        raise invalid(
            "prefetch_to_device and copy_to_device must be the last transformation of a dataset, "
            f"but {follows} follows: pipelines run on the host"
        )


def _is_on_a_device(stage: Stage) -> bool:
    if isinstance(stage, Prefetch):
        return _is_on_a_device(stage.inner)
    if isinstance(stage, CopiedToDevices):
        return True
    return isinstance(stage, CopiedToDevice) and stage.device.kind != "CPU"
