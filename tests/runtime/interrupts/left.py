"""What an interrupted call must not leave behind: modes of the thread, locks, settings."""

from __future__ import annotations

import gc
import sys
import threading
import time
import warnings
from typing import Any

import numpy as np

import treadle as td
from treadle.core import locks
from treadle.core.context import context, modes
from treadle.runtime.cpu.threads import pool
from treadle.tracing.locks import TraceLock
from treadle.tracing.locks import _all as trace_locks

# Of a thread, but no mode: what is made once and kept, and what only counts up.
_CACHES = {
    "treadle.autograph.operators.aliases._assigned",
    "treadle.runtime.cpu.emission._machines",
}


def _thread_modes() -> dict[str, Any]:
    """What this thread's objects hold, by name."""
    found = {}
    for name, module in list(sys.modules.items()):
        if not name.startswith("treadle"):
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, threading.local) and f"{name}.{key}" not in _CACHES:
                usual = vars(type(value))
                held = {k: v for k, v in vars(value).items() if _is_plain(v) and v != usual.get(k)}
                found[f"{type(value).__module__}.{type(value).__name__}"] = held
    return found


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | tuple | list | dict | frozenset)


def _is_held(lock: Any) -> bool:
    return bool(lock._is_owned() if hasattr(lock, "_is_owned") else lock.locked())


def _held_locks() -> list[Any]:
    trace = [lock._lock for lock in list(trace_locks) if isinstance(lock, TraceLock)]
    known = [reference() for reference in list(locks._all.data)]  # others may add some meanwhile
    return [lock for lock in [*filter(None, known), *trace] if _is_held(lock)]


def _settings() -> dict[str, Any]:
    return {
        "modes": modes.value,
        "recorder": context.recorder,
        "tapes": context.tapes,
        "collections": gc.isenabled(),
        "recursion limit": sys.getrecursionlimit(),
        "NumPy's errors": np.geterr(),
        "filters of warnings": len(warnings.filters),
        "seterr": np.geterrcall(),
    }


class Baseline:
    """How things are before anything is interrupted."""

    def __init__(self) -> None:
        self._call = td.function(lambda x: x + 1.0)
        self._call(td.ones([3]))
        self.settings = _settings()

    def differences(self) -> list[str]:
        """What is otherwise now. Locks of threads in the background get a while.

        A tape whose block was interrupted, and the count of modes, are settled by the next call of
        a compiled function: this is it.
        """
        found = []
        if context.recorder is None:
            self._call(td.ones([3]))
        for name, value in _settings().items():
            if value != self.settings[name]:
                found.append(f"{name}: {self.settings[name]!r} became {value!r}")
        for name, held in _thread_modes().items():
            busy = {k: v for k, v in held.items() if v and v != 1 and k != "counted"}  # see `modes`
            if busy:
                found.append(f"{name} holds {busy!r}")
        until = time.monotonic() + 5
        while (held_locks := _held_locks()) and time.monotonic() < until:
            time.sleep(0.005)
        found += [f"held: {lock!r}" for lock in held_locks]
        busy_word = np.ctypeslib.ctypes.c_int64.from_address(pool()._base)
        if busy_word.value:
            found.append("the pool is busy")
        return found
