"""Locks that are free in a child made by fork: the threads that held them do not exist there.

A lock guards short changes of a cache or a count, which the child finds done or not begun. An
object that another thread was making when the child began is made again.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar, overload

_R = TypeVar("_R")

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


class made_once(Generic[_R]):
    """Decorator: the function's result for its arguments is made once, however many threads ask.

    `functools.cache` lets two threads make one each and forgets the first: its address must not
    have been given to native code by then.
    """

    def __init__(self, fn: Callable[..., _R]) -> None:
        self._fn, self._lock = fn, reentrant_lock()
        self._made: dict[tuple[Hashable, ...], _R] = {}
        functools.update_wrapper(self, fn)

    def __call__(self, *args: Hashable) -> _R:
        try:
            return self._made[args]
        except KeyError:
            pass
        with self._lock:
            if args not in self._made:
                self._made[args] = self._fn(*args)
            return self._made[args]

    @property
    def is_made(self) -> bool:
        """Whether there is a result for some arguments."""
        return bool(self._made)

    def forget(self) -> None:
        """Make the results anew when they are asked for."""
        self._made.clear()


def _after_fork() -> None:
    for made in list(_all):
        owned = getattr(made, "_is_owned", None)
        if owned is None or not owned():  # the forking thread goes on, and will release its own
            made._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class cached_property(Generic[_R]):
    """Decorator: an attribute that the method makes when it is first read.

    That of functools has one lock for all objects of a class in Python 3.11, which a child made by
    fork finds taken where another thread was at work. Two threads may make a value each here; the
    later one stays.
    """

    def __init__(self, function: Callable[[Any], _R]) -> None:
        self.function, self.name, self.__doc__ = function, function.__name__, function.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> cached_property[_R]: ...
    @overload
    def __get__(self, owner: object, kind: type | None = None) -> _R: ...
    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None:
            return self
        value = owner.__dict__[self.name] = self.function(owner)
        return value
