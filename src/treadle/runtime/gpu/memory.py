"""The memory of a GPU as tensors and variables have it: buffers, and what makes them."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from treadle.core import locks
from treadle.core.caches import returns_memory
from treadle.core.devices import known_devices
from treadle.core.storage import Cell
from treadle.runtime.gpu.ahead import Uploads
from treadle.runtime.gpu.driver import Driver

Array = np.ndarray[Any, Any]
ALIGNMENT = 16  # bytes: elements are moved by vectors of so many


class Buffer:
    """The elements of one tensor on a device, in row-major order. No NumPy function reads it.

    Attributes:
        memory: what keeps the bytes alive.
        address: of the first element.
    """

    __slots__ = ("__weakref__", "address", "dtype", "memory", "shape")

    def __init__(
        self, memory: Any, address: int, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> None:
        self.memory, self.address, self.dtype, self.shape = memory, address, dtype, shape

    @property
    def count(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes."""
        return self.count * self.dtype.itemsize

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a buffer of a GPU is no array of the host")

    def __repr__(self) -> str:
        return f"<buffer {self.dtype}{list(self.shape)} at {self.address:#x}>"


class Place:
    """See `treadle.core.storage.Storage.place`."""

    __slots__ = ("buffer", "readers", "shared")

    def __init__(self, buffer: Buffer, shared: int) -> None:
        self.buffer, self.shared, self.readers = buffer, shared, 0


class VariableCell:
    """See `treadle.core.storage.Cell`. Programs of a GPU are submitted with the lock of their
    device, so no other thread sees a variable half written."""

    __slots__ = ("__weakref__", "place", "writer")

    def __init__(self, place: Place) -> None:
        self.place, self.writer = place, 0

    @property
    def buffer(self) -> Buffer:
        return self.place.buffer

    @buffer.setter
    def buffer(self, buffer: Buffer) -> None:
        self.place.buffer = buffer

    @property
    def shared(self) -> int:
        return self.place.shared

    @shared.setter
    def shared(self, shared: int) -> None:
        self.place.shared = shared

    @property
    def readers(self) -> int:
        return self.place.readers

    @readers.setter
    def readers(self, readers: int) -> None:
        self.place.readers = readers


class Copied(NamedTuple):
    """How often something was copied, and how many bytes in all."""

    times: int
    bytes: int

    def and_one(self, size: int) -> Copied:
        """With one more copy."""
        return Copied(self.times + 1, self.bytes + size)

    def __sub__(self, before: Copied) -> Copied:
        return Copied(self.times - before.times, self.bytes - before.bytes)

    def __str__(self) -> str:
        return f"{self.times} time{'' if self.times == 1 else 's'} ({self.bytes:,} bytes)"


class DeviceStorage:
    """See `treadle.core.storage.Storage`.

    Attributes:
        driver: of the device.
        lock: held by whoever submits several pieces of work that belong together.
        verdicts: what programs that were submitted have still to tell: each raises its error once
            the device has got as far.
        uploads, downloads: what was copied from and to the host.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver, self.lock = driver, locks.reentrant_lock()
        self.ahead = Uploads(driver)
        self.verdicts: list[Callable[[], None]] = []
        self.uploads = self.downloads = Copied(0, 0)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Within, this thread alone gives the device work."""
        with self.lock, self.driver.active():
            yield

    # -- buffers -------------------------------------------------------------------------------

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Buffer:
        size = math.prod(shape) * dtype.itemsize
        with self.working():
            memory = self.driver.allocate(max(size, 1))
        return Buffer(memory, memory.address, dtype, shape)

    def from_host(self, array: Array) -> Buffer:
        with self.working():
            buffer = self.empty(array.dtype, array.shape)
            self.write(buffer.address, array)
        return buffer

    def from_host_ahead(self, array: Array) -> Callable[[], Buffer]:
        if not array.nbytes:
            return lambda: self.from_host(array)
        lease = self.ahead.begin(array)

        def ready() -> Buffer:
            with self.working():
                self.uploads = self.uploads.and_one(array.nbytes)
                self.ahead.follow(lease)
            return Buffer(lease, lease.address, array.dtype, array.shape)

        return ready

    def to_host(self, buffer: Buffer, own: bool = False) -> Array:
        with self.working():
            array = self.read(buffer.address, buffer.dtype, buffer.shape)
            self.raise_failures()
        return array

    def copy(self, buffer: Buffer) -> Buffer:
        with self.working():
            made = self.empty(buffer.dtype, buffer.shape)
            if buffer.size:
                self.driver.copy(made.address, buffer.address, buffer.size)
        return made

    def from_device(self, buffer: Buffer, storage: Any) -> Buffer | None:
        if not isinstance(storage, DeviceStorage):
            return None
        with storage.working():
            mark = storage.driver.mark()
        with self.working():
            made = self.empty(buffer.dtype, buffer.shape)
            self.driver.follow(mark)
            if buffer.size:
                self.driver.copy_from(storage.driver, made.address, buffer.address, buffer.size)
            mark = self.driver.mark()
        with storage.working():
            storage.driver.follow(mark)  # the memory that was read may be used again after that
        return made

    def exported(self, buffer: Buffer) -> Any:
        with self.working():
            self.raise_failures()
            return self.driver.exported(buffer, buffer.address, buffer.dtype, buffer.shape)

    def imported(self, external: Any) -> Buffer | None:
        with self.lock:
            found = self.driver.imported(external)
        if found is None:
            return None
        owner, address, dtype, shape = found
        buffer = Buffer(owner, address, dtype, shape)
        return buffer if address % ALIGNMENT == 0 else self.copy(buffer)

    def type_of(self, buffer: Buffer) -> tuple[np.dtype[Any], tuple[int, ...]]:
        return buffer.dtype, buffer.shape

    # -- elements at addresses -------------------------------------------------------------------

    def write(self, address: int, array: Array) -> None:
        """Put the elements of an array at an address."""
        if array.nbytes:
            self.uploads = self.uploads.and_one(array.nbytes)
            self.driver.upload(address, np.ascontiguousarray(array))

    def read(self, address: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """An array of the caller's own with the elements at an address, for which this waits."""
        array = np.empty(shape, dtype)
        if array.nbytes:
            self.downloads = self.downloads.and_one(array.nbytes)
            self.driver.download(array, address)
        return array

    def view(self, address: int, dtype: Any, shape: tuple[int, ...]) -> Array:
        """See `treadle.runtime.backend.ProgramMemory`, as for the next two."""
        with self.working():
            return self.read(address, np.dtype(dtype), shape)

    def use(self) -> dict[str, int]:
        with self.working():
            return self.driver.memory_use()

    def reset_peak(self) -> None:
        with self.working():
            self.driver.reset_peak()

    def synchronize(self) -> None:
        """Wait for all that was submitted; raise the error of the first program that failed."""
        with self.working():
            self.driver.synchronize()
            self.raise_failures()

    def raise_failures(self) -> None:
        """Raise the error of the first program that failed, once the device has ended all."""
        if not self.verdicts:
            return
        with self.working():
            verdicts, self.verdicts = self.verdicts, []
            for number, verdict in enumerate(verdicts):
                try:
                    verdict()
                except Exception:
                    self.verdicts = verdicts[number + 1 :]
                    raise

    # -- variables -------------------------------------------------------------------------------

    def place(self, buffer: Buffer, shared: int) -> Place:
        return Place(buffer, shared)

    def cell(self, place: Place) -> Cell:
        return VariableCell(place)

    def is_alone(self, holder: Any) -> bool:
        return _references(holder) <= _references_alone()


def _references(holder: Any) -> int:
    return sys.getrefcount(holder._buffer)


class _Holder:
    """Has what a variable has of its buffer."""

    __slots__ = ("_buffer", "_cell")

    def __init__(self, buffer: Buffer) -> None:
        self._cell = VariableCell(Place(buffer, 0))
        self._buffer = buffer


@functools.cache
def _references_alone() -> int:
    """How many references there are to a buffer that only its variable has: a lookup adds some,
    other ones in each interpreter."""
    return _references(_Holder(Buffer(None, 0, np.dtype(np.float32), ())))


@returns_memory
def _give_back() -> None:
    """Devices get the memory that nobody uses."""
    for device in known_devices():
        if isinstance(device.storage, DeviceStorage):
            with device.storage.working():
                device.storage.ahead.give_back()
                device.storage.driver.give_back()
