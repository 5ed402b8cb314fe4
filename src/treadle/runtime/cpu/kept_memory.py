"""Memory for programs that is kept when it is given back: fresh pages cost as much as the work.

Blocks from 64 KiB to 1 GiB are rounded up to powers of two and wait in free lists, one for each
size, for the next program that asks; others are the C library's. What waits is bounded. The lists
are guarded by a lock that nobody waits for: who does not get it at once goes to the C library.
Large blocks ask Linux for huge pages: matrices are read down their columns, a page for each row.
Where the C library has no more, what waits goes back to it first, then whatever else lies idle.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any

from treadle.core import locks
from treadle.core.caches import returns_memory
from treadle.runtime.cpu.abi import c_function
from treadle.runtime.cpu.kept_blocks import LARGEST, WORDS

BUDGET = 256 << 20, 1 << 30  # bytes that may wait: at least and at most, ``TREADLE_KEEP_BYTES``
SHARE = 16  # a part of the machine's memory between them
_MODULE = "memory"  # the name of its code


@locks.made_once
def kept_memory() -> KeptMemory:
    """The process's allocator."""
    return KeptMemory(default_budget())


def default_budget() -> int:
    """``TREADLE_KEEP_BYTES``, else a sixteenth of the memory, from 256 MiB to 1 GiB.

    Raises:
        ValueError: the variable does not hold a number of bytes.
    """
    text = os.environ.get("TREADLE_KEEP_BYTES", "").strip()
    if not text:
        least, most = BUDGET
        return max(least, min(most, _machine_bytes() // SHARE))
    if not text.isdigit():
        raise ValueError(f"TREADLE_KEEP_BYTES must be a number of bytes, got {text!r}")
    return int(text)


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on every system
        return 0


@returns_memory
def _release() -> None:
    if kept_memory.is_made:
        kept_memory().release()


_idle: list[Callable[[], None]] = []


def frees_idle_memory(fn: Callable[[], None]) -> Callable[[], None]:
    """Decorator: `fn` frees memory that nobody uses now; called when there is no other. It may be
    called wherever memory is asked for."""
    _idle.append(fn)
    return fn


def outlives_python(memory: Any) -> None:
    """Never free the memory of a ctypes object: arrays are freed when modules are gone."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))


def _reclaim() -> None:
    for fn in _idle:
        fn()


def prepare_memory() -> None:
    """Compile the allocator in the background where it is on no disk yet."""
    from treadle.runtime.cpu.jit import process_jit

    process_jit().prepare(_text, _MODULE)


def _text() -> str:
    from treadle.runtime.cpu.kept_memory_code import memory_text
    from treadle.runtime.cpu.target import process_host

    return memory_text(process_host())


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class KeptMemory:
    """Addresses of ``ptr allocate(i64 alignment, i64 size)`` and ``void release(ptr)``.

    They stand in for aligned_alloc (with an alignment of at most 64) and free.

    Attributes:
        array_functions: malloc, calloc, realloc and free in the form in which NumPy wants them.
    """

    def __init__(self, budget: int) -> None:
        from treadle.runtime.cpu.jit import process_jit

        self._words = (ctypes.c_int64 * (len(WORDS) + LARGEST + 1))()
        outlives_python(self._words)
        self._words[WORDS.index("budget")] = budget
        for name in ("aligned_alloc", "free"):
            self._words[WORDS.index(name)] = c_function(name)
        if sys.platform.startswith("linux"):
            self._words[WORDS.index("madvise")] = c_function("madvise")
        code = process_jit().load(_text, name=_MODULE)
        set_words = ctypes.PYFUNCTYPE(None, ctypes.c_int64)(code.address("set_words"))
        set_words(ctypes.addressof(self._words))
        code.leak()  # arrays live until the very end of the process
        self.array_functions = [
            int(code.address(f"array_{name}")) for name in ("malloc", "calloc", "realloc", "free")
        ]
        self._drop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("drop"))
        self._reclaim = ctypes.CFUNCTYPE(None)(_reclaim)
        self._words[WORDS.index("reclaim")] = _address(self._reclaim)
        atexit.register(self._words.__setitem__, WORDS.index("reclaim"), 0)
        self._trim = ctypes.PYFUNCTYPE(None)(code.address("trim"))
        self.allocate = int(code.address("allocate"))
        self.free = int(code.address("release"))

    @property
    def kept(self) -> int:
        """Bytes that wait to be used again."""
        return int(self._words[WORDS.index("kept")])

    @property
    def used(self) -> int:
        """Bytes in use."""
        return int(self._words[WORDS.index("used")])

    @property
    def peak(self) -> int:
        """The most bytes that were in use at once, since the last `reset_peak`."""
        return int(self._words[WORDS.index("peak")])

    def reset_peak(self) -> None:
        self._words[WORDS.index("peak")] = self.used

    def drop(self, word: int) -> None:
        """Free the block whose address is at `word`, unless a program takes it first."""
        self._drop(word)

    def release(self) -> None:
        """Give everything that waits back to the C library."""
        self._trim()
