"""Locks that are free in a child made by fork: the threads that held them do not exist there.

A lock guards short changes of a cache or a count, which the child finds done or not begun; what a
thread was in the middle of making is made again.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_all: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> threading.Lock:
    """A lock for one holder."""
    made = threading.Lock()
    _all.add(made)
    return made


def reentrant_lock() -> Any:
    """A lock that its holder may take again."""
    made = threading.RLock()
    _all.add(made)
    return made


def _after_fork() -> None:
    for made in list(_all):
        owned = getattr(made, "_is_owned", None)
        if owned is None or not owned():  # the forking thread goes on, and will release its own
            made._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
