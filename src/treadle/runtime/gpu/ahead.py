"""Arrays of the host that are copied to a device while it does other work."""

from __future__ import annotations

import ctypes
from collections import deque

from treadle.core import errors, locks
from treadle.runtime.gpu.driver import Array, Driver, Mark, Memory

_SPARE = 2  # free slots of a size below which another is made: the last one freed is still read


class Slot:
    """Room for one array on its way: pinned memory of the host, and memory of the device.

    Attributes:
        copied: the end of the last copy from the one to the other; None before the first.
        read: behind the work that reads the memory of the device; None before any does.
    """

    def __init__(self, pinned: Memory, memory: Memory) -> None:
        self.pinned, self.memory = pinned, memory
        self.copied: Mark | None = None
        self.read: Mark | None = None


class Lease:
    """A slot with an array in it, until nobody has it any more. That may happen anywhere, so its
    end asks nothing of the device.

    Attributes:
        address: of the copy on the device.
    """

    def __init__(self, slot: Slot, ended: deque[Slot]) -> None:
        self.slot, self.ended, self.address = slot, ended, slot.memory.address

    def __del__(self) -> None:
        self.ended.append(self.slot)


class Uploads:
    """Copies of arrays to a device in a stream of its own, in slots that are used in turn.

    The thread that begins copies never waits for one that works with the device, which may itself
    wait for the next array.

    Args:
        driver: of the device.

    Attributes:
        free, ended: slots by their bytes; of those whose leases have ended nobody has said yet
            which work was the last that reads them.
        leased: slots that are not free. Leases in a cycle of garbage would otherwise give back a
            slot whose memory the collector has finalised with them.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver, self.lock = driver, locks.lock()
        self.free: dict[int, deque[Slot]] = {}
        self.ended: dict[int, deque[Slot]] = {}
        self.leased: set[Slot] = set()

    def begin(self, array: Array) -> Lease:
        """Begin to copy the elements of a C-contiguous array, at least one.

        Raises:
            ResourceExhaustedError: there is no memory for it.
        """
        size, driver = array.nbytes, self.driver
        with driver.active():
            slot = self._slot(size)
            self.leased.add(slot)
            lease = Lease(slot, self.ended[size])
            if slot.copied is not None:
                slot.copied.wait()  # the device may still read the pinned memory
            ctypes.memmove(slot.pinned.address, array.ctypes.data, size)
            slot.copied = driver.copy_ahead(lease.address, slot.pinned.address, size, slot.read)
        return lease

    def follow(self, lease: Lease) -> None:
        """Work that the device is given from now on may use the copy. Called by the thread that
        alone gives it work."""
        assert lease.slot.copied is not None
        for size, ended in list(self.ended.items()):
            while ended:
                slot = ended.popleft()
                slot.read = self.driver.mark()
                self.free[size].append(slot)
                self.leased.discard(slot)
        self.driver.follow(lease.slot.copied)

    def give_back(self) -> None:
        """Forget the slots that are free."""
        with self.lock:
            for free in self.free.values():
                free.clear()

    def _slot(self, size: int) -> Slot:
        """A free slot for so many bytes."""
        with self.lock:
            free = self.free.setdefault(size, deque())
            self.ended.setdefault(size, deque())
            if len(free) >= _SPARE:
                return free.popleft()
        try:
            return Slot(*self.driver.allocate_ahead(size))
        except MemoryError as error:
            text = f"there is no memory for an array of {size} bytes that is copied ahead: {error}"
            raise errors.ResourceExhaustedError(None, None, text) from None
