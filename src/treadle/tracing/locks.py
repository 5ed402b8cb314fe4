"""The lock that a function holds while it is traced."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

_guard = threading.Lock()  # protects _waiting
_waiting: dict[int, TraceLock] = {}  # thread -> what it waits for
_all: weakref.WeakSet[TraceLock] = weakref.WeakSet()


class TraceLock:
    """A re-entrant lock that cannot deadlock with others of its kind.

    Functions trace each other while they hold their locks, so two threads may each want what the
    other has. Then the one that comes second goes on without the lock: it traces once more than
    necessary, which is correct.
    """

    def __init__(self) -> None:
        self._fresh()
        _all.add(self)

    def _fresh(self) -> None:
        self._lock = threading.RLock()
        self._owner: int | None = None
        self._depth = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock in the block, or go through without it where waiting would never end."""
        acquired = self._acquire()
        try:
            yield
        finally:
            if acquired:
                self._release()

    def _acquire(self) -> bool:
        me = threading.get_ident()
        if not self._lock.acquire(blocking=False):
            with _guard:
                if self._leads_back_to(me):
                    return False
                _waiting[me] = self
            try:
                self._lock.acquire()
            finally:
                with _guard:
                    del _waiting[me]
        self._owner = me
        self._depth += 1
        return True

    def _release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
        self._lock.release()

    def _leads_back_to(self, me: int) -> bool:
        """Whether this lock's owner waits, perhaps by way of others, for a lock of this thread."""
        lock: TraceLock | None = self
        while lock is not None:
            if lock._owner == me:
                return True
            lock = None if lock._owner is None else _waiting.get(lock._owner)
        return False


def _after_fork() -> None:
    """The threads that held locks do not exist in the child."""
    global _guard
    _guard = threading.Lock()
    _waiting.clear()
    for lock in list(_all):
        lock._fresh()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
