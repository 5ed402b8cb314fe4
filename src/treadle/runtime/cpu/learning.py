"""Work in the background from which later processes gain: the processor is measured, and products
and convolutions that take much of this process's time are tried out in other forms.

A thread does it in steps, each as short as a millisecond where that can be, and only while all of
them together took less than `SHARE` of the time that the process has computed since it compiled a
program for the first time. So a process that ends soon does none of it, and it is never in the way
of a first call, however long the process loaded libraries before. The thread has the priority of
the others: with a lower one it would hold the GIL for seconds, in which all of them wait, where
other processes keep the processors busy.

How much time a routine takes is counted, not measured: it counts its calls (`calls_counted`),
and the cost model says how long one is.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterator

from treadle.core import locks
from treadle.core.object_cache import default_cache
from treadle.core.safe_thread import SafeThread
from treadle.runtime.cpu.company import seconds_spent
from treadle.runtime.cpu.measured import is_measured, is_wanted

SHARE = 0.03  # of the time that processors spend in the process
MATTERS = 0.03  # of that time: a routine that takes more is tried out
_CYCLE = 0.3  # nanoseconds, where they were not measured
_LONG = 0.05  # seconds of a step that loads modules or compiles: there must be time for one
_WAIT = 0.25  # seconds between two looks whether there is time for more
_PATIENCE = 1.0  # seconds that the end of the process waits for the step under way

Clock = Callable[[], float]
Steps = Iterator[bool]  # whether a step had something to do


class Budget:
    """How much time steps may take: a share of that of the whole process from now on.

    Attributes:
        spent: seconds that steps took.
    """

    def __init__(
        self, share: float = SHARE, process: Clock = time.process_time,
        thread: Clock = seconds_spent,
    ) -> None:  # fmt: skip
        self.share, self.spent = share, 0.0
        self._process, self._thread = process, thread
        self._began = process()

    def allows_more(self) -> bool:
        """Whether another step may begin."""
        return self.spent + _LONG <= self.share * (self._process() - self._began - self.spent)

    def run(self, steps: Steps) -> bool | None:
        """Do a step and count its time; whether it had something to do, None after the last one."""
        start = self._thread()
        try:
            return next(steps, None)
        finally:
            self.spent += self._thread() - start


class Learner:
    """The thread that does the work, at most one at a time."""

    def __init__(self, work: Callable[[], Steps], budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        self._make = work
        self._lock = locks.lock()
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """In the child of a fork there is no thread."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Let the thread do what there is to do, unless it has begun in this process."""
        with self._lock:
            if self._thread is not None:
                return
            self._thread = SafeThread(target=self._work, name="treadle-learner", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # the interpreter is ending, or there are too many threads
                return
        atexit.register(self.end)

    def end(self) -> None:
        """Let the thread end after the step under way."""
        self._stop.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(_PATIENCE)

    def _work(self) -> None:
        with contextlib.suppress(Exception):  # a process never fails for what later ones gain
            steps = self._make()
            found: bool | None = True
            while True:
                while not (found and self.budget.allows_more()):
                    found = True
                    if self._stop.wait(_WAIT):
                        return
                if self._stop.is_set():
                    return
                found = self.budget.run(steps)
                if found is None:
                    return


def _learn() -> Steps:
    """Measure the processor unless that was done often enough. Then try out the routines that turn
    out to matter, one after another, as long as the process runs. All is kept for later ones."""
    from treadle.runtime.cpu import winners
    from treadle.runtime.cpu.chosen import class_that_matters
    from treadle.runtime.cpu.measuring import Measurement
    from treadle.runtime.cpu.target import keep, processor, this_machine
    from treadle.runtime.cpu.trials import Contest

    here = this_machine()
    if not is_measured(processor()):
        measurement = Measurement(here)
        for _ in measurement.steps():
            yield True
        keep(measurement.found)
    cycle = _CYCLE if here.measured is None else here.measured.nanoseconds
    tried = set(winners.known())
    while True:
        found = class_that_matters(here, tried, MATTERS * time.process_time() / (cycle * 1e-9))
        if found is None:
            yield False
            continue
        text, alike, workers = found
        contest = Contest(alike, here, workers)
        tried.add(text)
        for _ in contest.steps():
            yield True
        winners.keep(text, dataclasses.astuple(contest.winner))


learner = Learner(_learn)


def begin() -> None:
    """A program was made: what is worth knowing of this processor is worth finding out, where it
    can be kept for later processes."""
    if is_wanted() and default_cache().is_usable and not os.environ.get("TREADLE_TARGET"):
        learner.begin()
