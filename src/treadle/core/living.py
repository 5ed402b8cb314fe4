"""Sets of the objects of a kind that are alive, which several threads add to and look through."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

from treadle.core.locks import reentrant_lock

T = TypeVar("T")


class Living(Generic[T]):
    """A `weakref.WeakSet` whose iteration is over the objects that are there when it begins.

    One of Python's own raises a RuntimeError where another thread adds an object meanwhile,
    ``list(it)`` too.
    """

    def __init__(self) -> None:
        self._held: weakref.WeakSet[T] = weakref.WeakSet()
        self._lock = reentrant_lock()

    def add(self, one: T) -> None:
        with self._lock:
            self._held.add(one)

    def clear(self) -> None:
        with self._lock:
            self._held.clear()

    def __iter__(self) -> Iterator[T]:
        with self._lock:
            found = list(self._held)
        return iter(found)
