"""How the GPUs of one process exchange values.

By NCCL, where it is installed and each is a GPU of its own; else by copies from one to the other in
a fixed order. An exchange is asked for once for all of them, by the thread of the one that comes
last (`treadle.core.meeting`), and is then part of the work of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from treadle.core import errors, locks
from treadle.runtime.gpu.driver import Communicator, Driver

_FUNCTIONS = {"sum": "add", "min": "minimum", "max": "maximum"}


class Operand(NamedTuple):
    """What a device brings: the addresses of what it gives, and of what it gets."""

    source: int
    target: int


class Exchange:
    """See the file.

    Attributes:
        communicator: that of NCCL; None: by copies.
        one: whether the first device adds up everything; else each a part of the elements.
        name: how values are exchanged.
    """

    def __init__(
        self, drivers: Sequence[Driver], communicator: Communicator | None, one: bool = False
    ) -> None:
        self.drivers, self.communicator, self.one = tuple(drivers), communicator, one
        self.name = "NCCL" if communicator else "copies"

    @property
    def records(self) -> bool:
        """Whether exchanges can be part of recordings: copies wait for other devices, of which each
        has a recording of its own."""
        return self.communicator is not None

    def reduce(self, operands: Sequence[Operand], count: int, dtype: Any, how: str) -> None:
        """Combine arrays of `count` elements in the order of the devices; each gets the result."""
        if not count:
            return
        if self.communicator is not None:
            self.communicator.all_reduce(operands, count, dtype, how)
            return
        size = np.dtype(dtype).itemsize
        bounds = self._bounds(count)
        self._meet()
        for number, (begin, end) in enumerate(bounds):
            if begin < end:
                places = [o.source + begin * size for o in operands]
                target = operands[number].target + begin * size
                self._combine(number, places, target, end - begin, dtype, how)
        self._meet()
        for number, driver in enumerate(self.drivers):
            with driver.active():
                for other, (begin, end) in enumerate(bounds):
                    if other != number and begin < end:
                        at, length = begin * size, (end - begin) * size
                        source = operands[other].target + at
                        driver.copy_from(
                            self.drivers[other], operands[number].target + at, source, length
                        )
        self._meet()

    def _bounds(self, count: int) -> list[tuple[int, int]]:
        """Which elements each device adds up."""
        parts = 1 if self.one else len(self.drivers)
        each = -(-count // parts)
        bounds = [(min(i * each, count), min((i + 1) * each, count)) for i in range(parts)]
        return bounds + [(count, count)] * (len(self.drivers) - parts)

    def _combine(
        self, number: int, places: Sequence[int], target: int, count: int, dtype: Any, how: str
    ) -> None:
        """Combine the elements at some addresses, one of each device, on one of them."""
        driver, size = self.drivers[number], count * np.dtype(dtype).itemsize
        with driver.active():
            memory = driver.allocate(size)
            total = driver.array(target, dtype, (count,))
            for other, place in enumerate(places):
                into = memory.address if other else target
                if other == number:
                    if other == 0:
                        driver.copy(into, place, size)
                    else:
                        into = place
                else:
                    driver.copy_from(self.drivers[other], into, place, size)
                if other:
                    part = driver.array(into, dtype, (count,))
                    getattr(driver.library, _FUNCTIONS[how])(total, part, out=total)

    def stack(self, operands: Sequence[Operand], size: int) -> None:
        """Each device gets the bytes that all give, one after the other."""
        if not size:
            return
        if self.communicator is not None:
            self.communicator.all_gather(operands, size)
            return
        self._copied([[(k, o.source, k * size) for k, o in enumerate(operands)]] * len(operands),
                     operands, size)  # fmt: skip

    def pass_on(self, operands: Sequence[Operand], size: int, root: int) -> None:
        """Each device gets the bytes that one gives."""
        if not size:
            return
        if self.communicator is not None:
            self.communicator.broadcast(operands, size, root)
            return
        self._copied([[(root, operands[root].source, 0)]] * len(operands), operands, size)

    def _copied(
        self, wanted: Sequence[Sequence[tuple[int, int, int]]], operands: Sequence[Operand],
        size: int,
    ) -> None:  # fmt: skip
        """Copy so many bytes each: of which device, from which address, to which place."""
        self._meet()
        for number, driver in enumerate(self.drivers):
            with driver.active():
                for other, source, place in wanted[number]:
                    target = operands[number].target + place
                    if other == number:
                        driver.copy(target, source, size)
                    else:
                        driver.copy_from(self.drivers[other], target, source, size)
        self._meet()

    def _meet(self) -> None:
        """What each device does from now on happens after what all were asked for by now."""
        marks = []
        for driver in self.drivers:
            with driver.active():
                marks.append(driver.mark())
        for driver in self.drivers:
            with driver.active():
                for other, mark in zip(self.drivers, marks, strict=True):
                    if other is not driver:
                        driver.follow(mark)


_known: WeakValueDictionary[object, Exchange] = WeakValueDictionary()
_lock = locks.reentrant_lock()


def exchange_between(drivers: Sequence[Driver], by: str) -> Exchange:
    """How some devices exchange values.

    Args:
        by: "nccl", "copies", "one" (copies to one device, which adds up), or "auto".

    Raises:
        UnavailableError: NCCL is asked for, and cannot be used.
    """
    key = by, tuple(map(id, drivers))
    with _lock:
        found = _known.get(key)
        if found is None:
            found = _known[key] = Exchange(drivers, _communicator(drivers, by), by == "one")
        return found


def _communicator(drivers: Sequence[Driver], by: str) -> Communicator | None:
    if by in ("copies", "one"):
        return None
    try:
        return drivers[0].communicator(drivers)
    except errors.UnavailableError:
        if by == "nccl":
            raise
        return None


# The device of this process that exchanges values with those of others, and how.
_joined: list[tuple[Driver, Communicator]] = []


def join_workers(
    driver: Driver | None, rank: int, gather: Callable[[object], list[object]], host: str,
    is_wanted: bool,
) -> bool:  # fmt: skip
    """Let NCCL exchange values between the devices of several processes, which call this together.

    Args:
        driver: of the device of this process; None where it is no GPU.
        rank: the number of this process.
        gather: gives what all processes have, in their order.
        host: the name of the machine.
        is_wanted: whether it is an error that NCCL cannot be used.

    Returns:
        Whether it does; else values go through the memory of the hosts.

    Raises:
        UnavailableError: it cannot be used, and is wanted.
    """
    missing = "a worker has no GPU" if driver is None else driver.nccl_missing()
    every: list[Any] = gather((missing, (host, driver and driver.identity)))
    reason = next((m for m, _ in every if m), None)
    if reason is None and len({place for _, place in every}) < len(every):
        reason = "several workers share a GPU"
    if reason is not None:
        if is_wanted:
            text = f"CommunicationImplementation.NCCL cannot be used: {reason}"
            raise errors.UnavailableError(None, None, text)
        return False
    assert driver is not None
    if not any(known is driver for known, _ in _joined):
        with driver.active():
            made = driver.joined_communicator(rank, len(every), lambda x: gather(x)[0])  # type: ignore[arg-type,return-value]
        _joined[:] = [(driver, made)]
    return True


def joined(driver: Driver) -> Communicator:
    """What exchanges values with the devices of other processes.

    Raises:
        FailedPreconditionError: the processes have not agreed on it.
    """
    for known, communicator in _joined:
        if known is driver:
            return communicator
    raise errors.FailedPreconditionError(
        None, None, "make a td.distribute.MultiWorkerMirroredStrategy before the function is called"
    )
