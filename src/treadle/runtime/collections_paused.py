"""Python's search for cycles, paused while a function is traced and its graph compiled.

Both make many objects that live until they are done: the search would walk through all of them, and
everything that the process has imported, again and again and find next to nothing.
"""

from __future__ import annotations

import gc
import os

from treadle.core import locks


class _Paused:
    """A context manager for any number of threads; the first one in pauses, the last one out
    resumes what was on."""

    def __init__(self) -> None:
        self._lock = locks.lock()
        self._inside = 0
        self._was_on = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._was_on = gc.isenabled()
                gc.disable()

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._was_on:
                gc.enable()

    def _after_fork(self) -> None:
        """The threads that were inside are not in the child."""
        if self._inside and self._was_on:
            gc.enable()
        self._inside = 0


collections_paused = _Paused()
