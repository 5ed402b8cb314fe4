"""Timing one job on a machine that other processes use too."""

import gc
import os
import statistics
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.workload import Job

BLOCK = 0.001  # seconds: the shortest stretch worth reading a clock for


@dataclass
class Timing:
    """Seconds a call (median and best block), calls timed, CPU share of other processes."""

    median: float
    best: float
    calls: int
    foreign: float


def call(job: Job) -> Any:
    """Do the work once."""
    return job[0](*job[1:]) if isinstance(job, tuple) else job()


CLOCKS: dict[str, Callable[[], float]] = {
    "wall": time.perf_counter,
    # The time that all processors spent in this process: on a machine that others keep busy, work
    # that is pinned to one core takes as much of it as on an idle one, but for the caches.
    "processor": time.process_time,
}


def timer(job: Job, clock: str = "wall") -> timeit.Timer:
    """A compiled timing loop that calls the job without any wrapper in between."""
    function, *arguments = job if isinstance(job, tuple) else (job,)
    names = {f"a{i}": argument for i, argument in enumerate(arguments)}
    call = f"f({', '.join(names)})"
    return timeit.Timer(call, timer=CLOCKS[clock], globals={"f": function, **names})


def nothing() -> None:
    """Waits for nothing."""


def measure(
    job: Job, seconds: float, wait: Callable[[], None] = nothing, clock: str = "wall"
) -> Timing:
    """Time blocks of calls for about `seconds` of wall time, by one of the clocks; `wait` ends a
    block."""
    loop, now = timer(job, clock), CLOCKS[clock]

    def block(number: int) -> float:
        elapsed, start = loop.timeit(number), now()
        wait()
        return elapsed + (now() - start)

    number = 1
    wait()
    while (elapsed := block(number)) < BLOCK:
        number = max(2 * number, int(number * BLOCK / max(elapsed, 1e-9)))
    blocks = []
    gc.collect()
    watch = ForeignLoad()
    end = time.perf_counter() + seconds
    while not blocks or time.perf_counter() < end:
        blocks.append(block(number) / number)
    return Timing(statistics.median(blocks), min(blocks), number * len(blocks), watch.share())


def measure_once(
    job: Job, wait: Callable[[], None] = nothing, clock: str = "wall"
) -> tuple[Timing, Any]:
    """Time one call and a wait for its result, which is returned too, by one of the clocks."""
    watch, now = ForeignLoad(), CLOCKS[clock]
    start = now()
    result = call(job)
    wait()
    elapsed = now() - start
    return Timing(elapsed, elapsed, 1, watch.share()), result


class ForeignLoad:
    """The share of the machine's CPU time that other processes used since this was made."""

    def __init__(self) -> None:
        self._start = self._read()

    @staticmethod
    def _read() -> tuple[float, float, float]:
        """(busy, total, own) CPU seconds; all zero where there is no /proc/stat."""
        try:
            with open("/proc/stat") as file:
                ticks = [int(word) for word in file.readline().split()[1:9]]
        except OSError:
            return 0.0, 0.0, 0.0
        times = os.times()
        own = times.user + times.system + times.children_user + times.children_system
        tick = os.sysconf("SC_CLK_TCK")
        return (sum(ticks) - ticks[3] - ticks[4]) / tick, sum(ticks) / tick, own

    def share(self) -> float:
        busy, total, own = (now - then for now, then in zip(self._read(), self._start, strict=True))
        return min(1.0, max(0.0, busy - own) / total) if total > 0 else 0.0
