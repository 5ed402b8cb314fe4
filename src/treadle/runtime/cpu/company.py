"""Threads that keep other processors at work while one thread is timed.

Threads of a call share memory, its bandwidth and the last-level cache. What is fast alone may not
be in their company.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from treadle.core import locks
from treadle.core.safe_thread import SafeThread

_adding = locks.lock()
_spent = 0.0


class Company:
    """A context in which some threads do their work over and over."""

    def __init__(self, works: Sequence[Callable[[], None]]) -> None:
        self._stop = threading.Event()
        self._threads = [SafeThread(target=self._repeat, args=(work,)) for work in works]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, work: Callable[[], None]) -> None:
        global _spent
        start = time.thread_time()
        while not self._stop.is_set():
            work()
        with _adding:
            _spent += time.thread_time() - start


def seconds_spent() -> float:
    """Processor time of this thread, and of all company that this process ever had."""
    return time.thread_time() + _spent
