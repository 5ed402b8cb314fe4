"""llvmlite's lock, which every call of LLVM holds: neither a Ctrl-C nor a fork leaves it taken.

llvmlite's lock is a class written in Python around a `threading.RLock`. An interrupt that comes in
its `__enter__`, when the inner lock is taken, or at the beginning of its `__exit__` leaves the
inner lock taken: the next thread that compiles waits for ever. The methods of the inner lock are
C's, in which no interrupt is raised, so ``with`` statements are given those.
"""

from __future__ import annotations

import os
import threading
from typing import Any


def make_safe(library: Any) -> None:
    """Make the lock of llvmlite's library (`llvmlite.binding.ffi.lib`) safe; others stay."""
    lock = getattr(library, "_lock", None)
    if lock is None or not isinstance(getattr(lock, "_lock", None), type(threading.RLock())):
        return  # an llvmlite that is built in another way
    if not issubclass(type(lock), _Uninterrupted):
        lock.__class__ = type("SafeLock", (_Uninterrupted, type(lock)), {})
    _calls.lock = lock


class _Uninterrupted:
    """Gives ``with`` the methods of the inner lock, unless somebody has registered functions to be
    called when it is taken and released."""

    _lock: Any
    _cblist: list[Any]

    @property
    def __enter__(self) -> Any:
        return super().__enter__ if self._cblist else self._lock.__enter__  # type: ignore[misc]

    @property
    def __exit__(self) -> Any:
        return super().__exit__ if self._cblist else self._lock.__exit__  # type: ignore[misc]


class _Calls:
    """A fork waits until no other thread is inside LLVM, whose locks would stay taken.

    Hooks before a fork run in reverse order. These are registered on import, so that those of
    whoever compiles in the background come first: they wait for threads that call LLVM.
    """

    def __init__(self) -> None:
        self.lock: Any = None  # llvmlite's, once it is loaded
        self._held: list[Any] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._enter, after_in_parent=self._leave, after_in_child=self._leave
            )

    def _enter(self) -> None:
        if self.lock is not None:
            release = self.lock.__exit__
            self.lock.__enter__()
            self._held.append(release)

    def _leave(self) -> None:
        while self._held:
            self._held.pop()(None, None, None)


_calls = _Calls()
