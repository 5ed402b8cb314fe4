"""The caches of the process: each module that keeps one says here how it is emptied."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable

_clear: list[Callable[[], None]] = []
_return: list[Callable[[], None]] = []


def clears(fn: Callable[[], None]) -> Callable[[], None]:
    """Decorator: `fn` empties a cache, and `clear_caches` calls it."""
    _clear.append(fn)
    return fn


def returns_memory(fn: Callable[[], None]) -> Callable[[], None]:
    """Decorator: `fn` gives back memory that is kept for reuse; called when caches are empty."""
    _return.append(fn)
    return fn


def clear_caches() -> None:
    """Empty the caches of treadle: traces, their programs, machine code, conversions.

    Functions stay usable and are traced again when they are next called. Variables that functions
    created on their first call, the state of random generators, objects held by the program (such
    as a ConcreteFunction) and compiled code on disk stay. A call that is running goes on.
    """
    for fn in reversed(_clear):  # those that use others' caches were defined after them
        fn()
    gc.collect()  # programs and graphs have reference cycles
    for fn in _return:
        fn()
    _return_memory()


def _return_memory() -> None:
    """Let the C library hand free memory back to the system, where it can."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
