"""Threads whose start a Ctrl-C may interrupt.

`threading.Thread.start` waits for an `Event`, whose methods are Python's: an interrupt within them
leaves the event's lock taken, the new thread waits for that lock for ever, and so does the end of
the process. The event of these threads is a lock of C's, in whose methods no interrupt comes.
"""

from __future__ import annotations

import threading
from typing import Any


class SafeThread(threading.Thread):
    """A `threading.Thread` that runs to its end wherever the caller of `start` is interrupted."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._started = _Begun()


class _Begun:
    """What `Thread` uses of its event."""

    def __init__(self) -> None:
        self._begun = False
        self._at_fork_reinit()

    def _at_fork_reinit(self) -> None:
        self._lock = threading.Lock()
        if not self._begun:
            self._lock.acquire()

    def is_set(self) -> bool:
        return self._begun

    def set(self) -> None:
        if not self._begun:
            self._begun = True
            self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        if not self._begun and self._lock.acquire(timeout=-1 if timeout is None else timeout):
            self._lock.release()
        return self._begun
