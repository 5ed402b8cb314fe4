"""A made-up device, the shelf: its tensors lie in boxes that only the device opens.

It shows what the layers above a backend ask of one. Whatever reads a box as an array fails, and
what goes to the host and back is counted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import treadle as td
from treadle.core.devices import Device, add_device, remove_device
from treadle.ops.state import Variable
from treadle.runtime import interpreter
from treadle.runtime.backend import Backend
from treadle.runtime.cpu.backend import cpu
from treadle.runtime.devices import using
from treadle.runtime.executable import Executable
from treadle.runtime.planned import Planned
from treadle.runtime.schedule.facts import Facts


class Box:
    """A buffer."""

    __slots__ = ("__weakref__", "_secret")

    def __init__(self, elements: np.ndarray) -> None:
        self._secret = elements

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a buffer of the shelf was read as an array")

    @property
    def shape(self) -> tuple[int, ...]:
        return self._secret.shape

    __len__ = __iter__ = __getitem__ = __float__ = __array__


class Place:
    def __init__(self, buffer: Box, shared: int) -> None:
        self.buffer, self.shared, self.readers = buffer, shared, 0


class ShelfCell:
    """A cell in Python: programs of the shelf are handed the object."""

    def __init__(self, place: Place) -> None:
        self.place, self.writer = place, 0

    buffer = property(lambda self: self.place.buffer)
    shared = property(
        lambda self: self.place.shared, lambda self, n: setattr(self.place, "shared", n)
    )
    readers = property(
        lambda self: self.place.readers, lambda self, n: setattr(self.place, "readers", n)
    )


class ShelfStorage:
    """See `treadle.core.storage.Storage`. `counts` has how often each method was called."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def empty(self, dtype: Any, shape: tuple[int, ...]) -> Box:
        self.counts["empty"] += 1
        return Box(np.empty(shape, dtype))

    def from_host(self, array: np.ndarray) -> Box:
        assert type(array) is np.ndarray and array.flags.c_contiguous
        self.counts["from_host"] += 1
        return Box(array.copy())

    def to_host(self, buffer: Box, own: bool = False) -> np.ndarray:
        self.counts["to_host"] += 1
        return buffer._secret.copy()

    def copy(self, buffer: Box) -> Box:
        self.counts["copy"] += 1
        return Box(buffer._secret.copy())

    def from_device(self, buffer: Any, storage: Any) -> None:
        return None  # boxes go through the host

    def exported(self, buffer: Box) -> None:
        return None  # no other library opens boxes

    def imported(self, external: Any) -> None:
        return None

    def type_of(self, buffer: Box) -> tuple[Any, tuple[int, ...]]:
        return buffer._secret.dtype, buffer._secret.shape

    def place(self, buffer: Box, shared: int) -> Place:
        assert type(buffer) is Box
        return Place(buffer, shared)

    def raise_failures(self) -> None:
        """Programs have raised their errors."""

    def synchronize(self) -> None:
        """Programs have ended."""

    def cell(self, place: Place) -> ShelfCell:
        self.counts["cell"] += 1
        return ShelfCell(place)

    def is_alone(self, holder: Any) -> bool:
        return bool(holder.cell().shared == 0)  # what was shared once is copied


class ShelfProgram(Executable):
    """Runs a graph where the boxes are: it opens them itself."""

    mode = "native"

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Takes and gives boxes; variables come with their cells."""
        if self.stretched is not None and self.is_stretched(arrays):
            elsewhere = self.stretched(arrays)
            if elsewhere is not None:
                return elsewhere
        storage = self.graph.device.storage
        given, variables = [], []
        for value in arrays:
            if isinstance(value, Variable) and value.dtype is td.string:
                given.append(value)  # strings are on the host for all programs
            elif isinstance(value, Variable):
                assert type(value.cell()) is ShelfCell and type(value.cell().buffer) is Box
                inside = Variable(value.cell().buffer._secret)
                variables.append((value, inside))
                given.append(inside)
            else:
                assert type(value) is Box, value
                given.append(value._secret)
        found = interpreter.run(self.exact_graph, given)
        for value, inside in variables:
            value.make_writable()
            value.cell().buffer._secret[...] = inside.numpy()
        results = []
        for array in found:
            box = storage.empty(array.dtype, array.shape)
            box._secret[...] = array
            results.append(box)
        return results


class ShelfBackend(Backend):
    """See `treadle.runtime.backend.Backend`: the processor's facts, and programs of its own."""

    def facts(self) -> Facts:
        return cpu.facts()

    def build(self, planned: Planned) -> ShelfProgram:
        assert all(type(c) in (Box, np.ndarray) for c in planned.builder.constants)
        return ShelfProgram(planned.graph)

    def key(self) -> str:
        return "shelf"


@contextmanager
def shelf() -> Iterator[Device]:
    """The device SHELF:0, as long as the block lasts."""
    device = Device("SHELF", 0, ShelfStorage())
    add_device(device)
    try:
        with using(ShelfBackend(), "SHELF"):
            yield device
    finally:
        remove_device(device)
