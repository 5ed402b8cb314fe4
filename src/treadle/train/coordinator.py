"""``td.train.Coordinator``: threads that stop together."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from treadle.core import errors


class Coordinator:
    """Tells threads when to stop, and hands the error of one to who waits for them.

    Args:
        clean_stop_exception_types: exceptions that end the threads and are no errors;
            OutOfRangeError where omitted.
    """

    def __init__(self, clean_stop_exception_types: Any = None) -> None:
        self._clean = clean_stop_exception_types or (errors.OutOfRangeError,)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._error: BaseException | None = None
        self._joined = False

    def request_stop(self, ex: Any = None) -> None:
        """Ask all threads to stop; `ex` is an exception, or what ``sys.exc_info()`` gave."""
        with self._lock:
            error = ex[1] if isinstance(ex, tuple) else ex
            if not self._stop.is_set():
                if error is not None and not isinstance(error, self._clean):
                    self._error = error
                self._stop.set()

    def clear_stop(self) -> None:
        """Begin anew."""
        self._stop.clear()
        self._error, self._joined = None, False

    def should_stop(self) -> bool:
        """Whether the threads are to stop."""
        return self._stop.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """An exception in the block asks all threads to stop."""
        try:
            yield
        except BaseException:
            self.request_stop(sys.exc_info())

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until the threads are to stop."""
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Note a thread that `join` waits for."""
        with self._lock:
            self._threads.append(thread)

    def join(self, threads: Any = None, stop_grace_period_secs: float = 120,
             ignore_live_threads: bool = False) -> None:  # fmt: skip
        """Wait for threads to end.

        Raises:
            RuntimeError: one does not end in time. The exception that ended them.
        """
        waiting = [*self._threads, *(t for t in threads or () if t not in self._threads)]
        while any(t.is_alive() for t in waiting) and not self._stop.is_set():
            self._stop.wait(0.05)
        until = time.monotonic() + stop_grace_period_secs
        for thread in waiting:
            thread.join(max(0.0, until - time.monotonic()))
        self._joined, self._threads = True, []
        if self._error is not None:
            raise self._error
        alive = [t.name for t in waiting if t.is_alive()]
        if alive and not ignore_live_threads:
            raise RuntimeError(
                f"Coordinator stopped with threads still running: {' '.join(alive)}"
            )

    @property
    def joined(self) -> bool:
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raise the exception that ended the threads, if any."""
        if self._error is not None:
            raise self._error
