"""Modes of a thread are as they were where an interrupt (Ctrl-C) ends a call.

CPython raises KeyboardInterrupt where a function begins, after calls and where loops jump back. A
``with`` block whose `__exit__` is written in Python does not put its mode back where that happens
at the first instruction of `__exit__`, or within `__enter__` after the mode was changed. So each
mode of a thread is declared here, and the calls in which functions are traced, compiled and
differentiated remember all modes when they begin and put them back where they are interrupted.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy._core import umath

_P = ParamSpec("_P")
_R = TypeVar("_R")
_L = TypeVar("_L", bound=threading.local)

# The variable that `np.errstate` sets. That is such a block, too. Where the variable is set and put
# back by calls in a ``try`` of the same function, no interrupt comes in between: both are C's.
#
#     before = numpy_errors.get()
#     try:
#         numpy_errors.set(QUIET)
#         ...
#     finally:
#         numpy_errors.set(before)
numpy_errors: ContextVar[Any] = umath._extobj_contextvar


def _quiet() -> Any:
    with np.errstate(all="ignore"):
        return numpy_errors.get()


QUIET = _quiet()

_modes: list[threading.local] = []
_settle: list[Callable[[], None]] = []


def is_mode(mode: _L) -> _L:
    """Declare an object whose attributes say what a thread is doing. Attributes are replaced, never
    changed. Where an interrupt takes elements out of an attribute that is a tuple, those that are
    `Undone` are undone."""
    _modes.append(mode)
    return mode


class Undone:
    """An element of a mode's tuple that has changed what others see, until it is undone."""

    __slots__ = ()

    def undo(self) -> None:
        """Put back what was there before."""
        raise NotImplementedError


class during:
    """An attribute of a mode has a value inside the block, and its earlier one afterwards. The
    object may be entered again inside its block.

    Args:
        gives: the value that the ``with`` statement binds.
    """

    __slots__ = ("_before", "_gives", "_mode", "_name", "_value")

    def __init__(self, mode: Any, name: str, value: Any, gives: Any = None) -> None:
        self._mode, self._name, self._value, self._gives = mode, name, value, gives
        self._before: Any = None  # (the earlier value, the same of the block around), innermost

    def __enter__(self) -> Any:
        self._before = (getattr(self._mode, self._name, None), self._before)
        setattr(self._mode, self._name, self._value)
        return self._gives

    def __exit__(self, *error: object) -> None:
        before, self._before = self._before
        setattr(self._mode, self._name, before)


def settles(fn: Callable[[], None]) -> Callable[[], None]:
    """Decorator: `fn` is called after modes were put back, to recompute what depends on them."""
    _settle.append(fn)
    return fn


def puts_modes_back(fn: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorator: where a call of `fn` is interrupted, modes are as they were when it began."""

    @functools.wraps(fn)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        before = _remember()
        try:
            return fn(*args, **kwargs)
        except Exception:
            raise  # every block on the way has ended
        except BaseException:
            _put_back(before)
            raise

    return call


def carried_over(fn: Callable[_P, _R]) -> Callable[_P, _R]:
    """`fn` for another thread, which then does what this thread is doing: it has this thread's
    modes while `fn` runs."""
    carried = [(mode, mode.__dict__.copy()) for mode in _modes]
    errors = numpy_errors.get()

    @functools.wraps(fn)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        before = _remember()
        try:
            for mode, values in carried:
                mode.__dict__.update(values)
            numpy_errors.set(errors)
            for settle in _settle:
                settle()
            return fn(*args, **kwargs)
        finally:
            _put_back(before)

    return call


_Memory = tuple[Any, list[tuple[dict[str, Any], dict[str, Any]]]]


def _remember() -> _Memory:
    own = [mode.__dict__ for mode in _modes]  # this thread's attributes
    return numpy_errors.get(), [(values, values.copy()) for values in own]


def _put_back(memory: _Memory) -> None:
    errors, modes = memory
    for own, before in modes:
        for name, now in own.items():
            if type(now) is tuple:
                for element in reversed(now[len(before.get(name, ())) :]):
                    if isinstance(element, Undone):
                        element.undo()
        own.clear()
        own.update(before)
    if numpy_errors.get() is not errors:
        numpy_errors.set(errors)
    for fn in _settle:
        fn()
