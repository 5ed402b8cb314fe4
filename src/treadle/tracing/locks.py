"""The lock that a function holds while it is traced."""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from treadle.core.living import Living

_guard = threading.Lock()  # protects _waiting
_waiting: dict[int, TraceLock] = {}  # thread -> the lock that it waits for
_all: Living[TraceLock] = Living()


class TraceLock:
    """A re-entrant lock that cannot deadlock with others of its kind.

    Functions trace each other while they hold their locks, so two threads may each want the lock of
    the other. Then the one that comes second goes on without the lock: it traces once more than
    necessary, which is correct.

        with lock.held():
            lock.is_owned()

    The ``with`` block is a C lock's own: an interrupt cannot come between taking the lock and the
    block, nor between the block and giving it back. The other notes here may be out of date after
    an interrupt, at the cost of tracing once more.
    """

    def __init__(self) -> None:
        self._fresh()
        _all.add(self)

    def _fresh(self) -> None:
        self._lock = threading.RLock()
        self._owner: int | None = None  # the last one, where nobody holds the lock

    def held(self) -> AbstractContextManager[Any]:
        """Hold the lock in the block, or go through without it where waiting would never end."""
        me = threading.get_ident()
        with _guard:
            if self._owner != me and self._leads_back_to(me):
                return nullcontext()
            _waiting[me] = self
        return self._lock

    def is_owned(self) -> None:
        """To be called first in the block: this thread waits no longer."""
        me = threading.get_ident()
        _waiting.pop(me, None)
        self._owner = me

    def _leads_back_to(self, me: int) -> bool:
        """Whether this lock's owner waits, perhaps by way of others, for a lock of this thread."""
        lock: TraceLock | None = self
        seen = set()
        while lock is not None and lock not in seen:
            if lock._owner == me:
                return True
            seen.add(lock)
            lock = None if lock._owner is None else _waiting.get(lock._owner)
        return False


def _after_fork() -> None:
    """The threads that held locks do not exist in the child."""
    global _guard
    _guard = threading.Lock()
    _waiting.clear()
    for lock in _all:
        lock._fresh()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
