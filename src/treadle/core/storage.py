"""The memory of a device as the layers above programs use it: buffers of tensors and variables.

A *buffer* holds the elements of one tensor: an ndarray on the host, whatever the device's library
has elsewhere. What is above this interface passes buffers on and never looks into them.

What a backend for another device gives, besides `treadle.runtime.backend.Backend`: a `Storage`, in
a `treadle.core.devices.Device` that is added to the table there. Its programs take and give the
storage's buffers, and reach variables through the storage's cells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

Buffer = Any


class Cell(Protocol):
    """What compiled programs see of a variable. It stays where it is as long as the variable lives.

    Attributes:
        place: assigning one from `Storage.place` replaces `buffer`, `shared` and `readers`, in one
            step for every other thread.
        buffer: the variable's buffer.
        shared: not 0 where somebody besides the variable may hold the buffer, so that it must be
            replaced before it is written.
        readers: how many programs read the buffer without the GIL.
        writer: the thread whose program writes the buffer without the GIL, or 0.
    """

    place: Any
    buffer: Buffer
    shared: int
    readers: int
    writer: int

    def __hash__(self) -> int: ...


class Storage(Protocol):
    """Makes, copies and reads the buffers of one device. Any thread may call it."""

    def empty(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Buffer:
        """A buffer with any elements.

        Raises:
            MemoryError: the device has no room for it.
        """

    def from_host(self, array: np.ndarray[Any, Any]) -> Buffer:
        """A buffer with the elements of a C-contiguous array, which nobody writes any more: it may
        become the buffer."""

    def from_host_ahead(self, array: np.ndarray[Any, Any]) -> Callable[[], Buffer]:
        """Begin to copy a C-contiguous array to the device beside its other work. The function
        gives the buffer, once, to programs that are submitted after its call."""

    def to_host(self, buffer: Buffer, own: bool = False) -> np.ndarray[Any, Any]:
        """The elements as a C-contiguous array, once all programs that write them have ended.

        Args:
            own: give an array that the caller may write; others may be the buffer's own memory.
        """

    def raise_failures(self) -> None:
        """Raise the error of the first program that failed among those that were submitted, after
        waiting for those that may fail."""

    def synchronize(self) -> None:
        """Wait for all programs and copies that were submitted, and raise the first error."""

    def copy(self, buffer: Buffer) -> Buffer:
        """A buffer with the same elements that nobody else holds."""

    def from_device(self, buffer: Buffer, storage: Any) -> Buffer | None:
        """A buffer with the elements of one of another storage, without a copy on the host; None
        where devices do not copy from one another."""

    def exported(self, buffer: Buffer) -> Any:
        """An object of the device's library over the same elements, with the protocols by which
        libraries pass arrays on; it keeps the buffer alive. Nobody may write to it. None where
        NumPy is that library: others get the elements as arrays of the host."""

    def imported(self, external: Any) -> Buffer | None:
        """A buffer over another library's array on this device, without a copy where it lies well;
        None where the array is elsewhere."""

    def type_of(self, buffer: Buffer) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """The dtype and shape of the elements."""

    def place(self, buffer: Buffer, shared: int) -> Any:
        """What the `place` of a cell is set to for this buffer. It keeps the buffer alive."""

    def cell(self, place: Any) -> Cell:
        """The cell of a new variable."""

    def is_alone(self, holder: Any) -> bool:
        """Whether a variable's programs may write its buffer in place: nothing refers to it but
        the attributes `_buffer` and `_cell` of `holder`, and it lies where it is written well."""
