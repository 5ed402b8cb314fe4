"""NCCL for tests: what a few of its calls do to devices whose memory is the processor's.

What one device has recorded is done when all of them have come there, each in a thread of its own
as their programs are: a device that does not come is a fault that names it, where NCCL would hang.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.runtime.gpu.on_processor import Fault

LONGEST = 20.0  # seconds until a device that does not come is a fault
_COMBINED = {"sum": np.add, "min": np.minimum, "max": np.maximum}


class Meeting:
    """A recorded call: all devices do it together."""

    def __init__(self, name: str, count: int, work: Callable[[], None]) -> None:
        self.name, self.came = name, set[int]()
        self.barrier = threading.Barrier(count, work)

    def part(self, number: int) -> Callable[[], None]:
        def come() -> None:
            self.came.add(number)
            try:
                self.barrier.wait(LONGEST)
            except threading.BrokenBarrierError:
                missing = sorted(set(range(self.barrier.parties)) - self.came)
                raise Fault(f"{self.name} hangs: devices {missing} do not come") from None
            self.came.discard(number)

        return come


class Clique:
    """See `treadle.runtime.gpu.driver.Communicator`."""

    def __init__(self, drivers: Sequence[Any]) -> None:
        self.drivers = list(drivers)

    def _do(self, name: str, work: Callable[[], None]) -> None:
        recording = [d.calls is not None for d in self.drivers]
        if any(recording) and not all(recording):
            raise Fault(f"{name} is recorded by some devices only: {recording}")
        if not any(recording):
            for driver in self.drivers:
                driver.counts["collectives"] += 1
            work()
            return
        meeting = Meeting(name, len(self.drivers), work)
        for number, driver in enumerate(self.drivers):
            driver.counts["collectives"] += 1
            driver.calls.append(meeting.part(number))

    def _arrays(
        self, places: Sequence[int], count: int, dtype: Any
    ) -> list[np.ndarray[Any, Any]]:
        pairs = zip(self.drivers, places, strict=True)
        return [driver.array(place, dtype, (count,)) for driver, place in pairs]

    def all_reduce(
        self, operands: Sequence[tuple[int, int]], count: int, dtype: Any, how: str
    ) -> None:
        def work() -> None:
            total, *others = self._arrays([s for s, _ in operands], count, dtype)
            for other in others:  # in the order of the devices
                total = _COMBINED[how](total, other)
            for target in self._arrays([t for _, t in operands], count, dtype):
                target[...] = total

        self._do(f"all_reduce of {count}", work)

    def all_gather(self, operands: Sequence[tuple[int, int]], size: int) -> None:
        def work() -> None:
            every = np.concatenate(self._arrays([s for s, _ in operands], size, np.uint8))
            for target in self._arrays([t for _, t in operands], every.size, np.uint8):
                target[...] = every

        self._do(f"all_gather of {size}", work)

    def broadcast(self, operands: Sequence[tuple[int, int]], size: int, root: int) -> None:
        def work() -> None:
            given = self.drivers[root].array(operands[root][0], np.uint8, (size,)).copy()
            for target in self._arrays([t for _, t in operands], size, np.uint8):
                target[...] = given

        self._do(f"broadcast of {size}", work)


class Joined:
    """The same between processes, which MPI connects: each has one device."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def all_reduce(
        self, operands: Sequence[tuple[int, int]], count: int, dtype: Any, how: str
    ) -> None:
        from mpi4py import MPI

        operation = {"sum": MPI.SUM, "min": MPI.MIN, "max": MPI.MAX}[how]
        ((source, target),) = operands

        def work() -> None:
            given = self.driver.array(source, dtype, (count,)).copy()
            MPI.COMM_WORLD.Allreduce(given, self.driver.array(target, dtype, (count,)), operation)

        self.driver._do("collectives", work)
