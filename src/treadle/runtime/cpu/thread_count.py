"""How many threads the pool shall have; known without a pool or a compiler.

The number may change at any time. A program plans workspace for as many threads as the process may
use, or has when the program is compiled, and never runs a kernel that needs workspace on more.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from treadle.core import locks, processors

MOST_THREADS = 256  # the length of the pool's table

_requested = 0
_changed: list[Callable[[int], None]] = []


def request(count: int) -> None:
    """Ask for `count` threads, 0 for what `default_threads` says."""
    global _requested
    _requested = count
    for tell in _changed:
        tell(threads())


def requested() -> int:
    """The number asked for, 0 for none."""
    return _requested


def threads() -> int:
    """The number of threads to use, the caller of a program included."""
    return _requested or default_threads()


def when_changed(tell: Callable[[int], None]) -> None:
    """Call `tell` with every number that is asked for from now on."""
    _changed.append(tell)


class Occupied:
    """Processors that Python threads keep busy: the work of programs is shared by the others.

    A part of a program's work on a thread that waits for a processor holds up the whole program.
    """

    def __init__(self) -> None:
        self.count = 0
        self.tell: Callable[[int], None] = _nobody
        self._lock = locks.lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """The threads are the parent's."""
        self.count = 0

    def __enter__(self) -> None:
        self._change(1)

    def __exit__(self, *unused: object) -> None:
        self._change(-1)

    def _change(self, by: int) -> None:
        with self._lock:
            self.count += by
            self.tell(self.count)


def _nobody(count: int) -> None:
    """There is no pool."""


occupied = Occupied()  # ``with occupied:`` around the work of a thread beside others


def default_threads() -> int:
    """``TREADLE_NUM_THREADS``, else the number of processors this process may use.

    Raises:
        ValueError: the variable does not hold a positive number.
    """
    text = os.environ.get("TREADLE_NUM_THREADS", "").strip()
    if text:
        if not text.isdigit() or not 1 <= int(text) <= MOST_THREADS:
            raise ValueError(
                f"TREADLE_NUM_THREADS must be a number from 1 to {MOST_THREADS}, got {text!r}"
            )
        return int(text)
    return min(MOST_THREADS, processors.usable())


def planned_workers() -> int:
    """The most threads that a program made now can use: as many as there are processors, so that
    the setting may go up to these later."""
    return max(processors.usable(), threads())
