"""Python's search for cycles, paused while a function is traced and its graph compiled.

Both make many objects that live until they are done: the search would walk through all of them, and
everything that the process has imported, again and again and find next to nothing.
"""

from __future__ import annotations

import gc
import os
import threading

from treadle.core import locks
from treadle.core.interrupts import is_mode, settles


class _Depth(threading.local):
    inside = 0


_depth = is_mode(_Depth())


class _Paused:
    """A context manager for any number of threads; the first one in pauses the search, the last one
    out resumes it, if it was on."""

    def __init__(self) -> None:
        self._lock = locks.reentrant_lock()
        self._threads: set[int] = set()  # those inside
        self._is_paused = self._was_on = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def __enter__(self) -> None:
        _depth.inside += 1
        self.settle()

    def __exit__(self, *exc: object) -> None:
        _depth.inside -= 1
        self.settle()

    def settle(self) -> None:
        """Pause or resume as this thread's depth and the other threads want it. Calling it again
        completes a change that an interrupt broke off."""
        with self._lock:
            (self._threads.add if _depth.inside else self._threads.discard)(threading.get_ident())
            if self._threads and not self._is_paused:
                self._was_on = gc.isenabled()
                self._is_paused = True
            if self._is_paused:
                if self._threads:
                    gc.disable()
                elif self._was_on:
                    gc.enable()
                self._is_paused = bool(self._threads)

    def _after_fork(self) -> None:
        """The threads that were inside are not in the child."""
        self._threads &= {threading.get_ident()}
        self.settle()


collections_paused = _Paused()
settles(collections_paused.settle)
