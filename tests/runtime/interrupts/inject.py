"""KeyboardInterrupt at a chosen instruction, and by a timer's signal.

CPython looks for signals where a function begins and after calls of built-in functions (and where
loops jump back, which a timer finds). A profiler's function is called at just these places, and
what it raises comes from the very instruction that would have looked for signals.
"""

from __future__ import annotations

import contextlib
import inspect
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

_NEVER = ("/tests/", "importlib", "threading.py", "weakref.py", "_weakrefset.py", "/llvmlite/")
_SWALLOWED = {"__del__", "_call", "_reclaim"}  # what is raised there does not reach the caller
# Functions that change modes, locks and tables, where an interrupt does most harm.
DELICATE = {
    "__enter__", "__exit__", "_leave", "recount", "count_modes", "set_tapes", "settle", "held",
    "is_owned",
    "_cached", "_trace", "_call_slowly", "_add_plan", "_add_native_plan", "add", "trace", "compile",
    "executable", "run_taped", "_get", "_known", "load", "submit", "take", "undo", "close",
    "new_plan", "_new_plan", "_concrete", "call", "_again", "take_failure", "store",
}  # fmt: skip


def _is_chosen(frame: FrameType, event: str, delicate: bool) -> bool:
    """Whether an interrupt there ends the call: not in what CPython calls on its own, which
    swallows exceptions."""
    code = frame.f_code
    if delicate and code.co_name not in DELICATE:
        return False
    if any(part in code.co_filename for part in _NEVER) or code.co_name in _SWALLOWED:
        return False
    if event == "c_return":
        return True
    return event == "call" and not code.co_flags & inspect.CO_GENERATOR


def count_places(action: Callable[[], Any]) -> tuple[int, int]:
    """How many places there are to be interrupted at, in all and in delicate functions."""
    count = few = 0

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count, few
        count += _is_chosen(frame, event, False)
        few += _is_chosen(frame, event, True)

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count, few


def at_place(action: Callable[[], Any], number: int, delicate: bool) -> str:
    """Run an action and interrupt it at a place; gives it, or "" where the action ended before."""
    where, left = "", number

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal where, left
        if _is_chosen(frame, event, delicate):
            left -= 1
            if left < 0:
                where = _place(frame)
                raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        try:
            sys.setprofile(profile)
            action()
        finally:
            sys.setprofile(None)
    return where


def by_signal(action: Callable[[], Any], after: float) -> str:
    """Run an action and interrupt it by a signal after so many seconds."""
    where = ""

    def ring(number: int, frame: FrameType | None) -> None:
        nonlocal where
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert frame is not None
        where = _place(frame)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, after)
            action()
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return where


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}, in {frame.f_code.co_name}"
