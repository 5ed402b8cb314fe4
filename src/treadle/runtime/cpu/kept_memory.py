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
from treadle.runtime.abi import c_function
from treadle.runtime.cpu.target import Target

SMALLEST, LARGEST = 16, 30  # as powers of two
HUGE = 4 << 20  # bytes from which a block asks for huge pages, as NumPy's arrays do
PAGE, MADV_HUGEPAGE = 2 << 20, 14
HEADER = 64  # bytes before a block: its size's power of two or 0, the next in the list, its size
BUDGET = 256 << 20, 1 << 30  # bytes that may wait: at least and at most, ``TREADLE_KEEP_BYTES``
SHARE = 16  # a part of the machine's memory between them

_WORDS = ("lock", "kept", "budget", "aligned_alloc", "free", "madvise", "reclaim", "used", "peak")
_LISTS = len(_WORDS)


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
        from treadle.runtime.cpu.target import process_host

        self._words = (ctypes.c_int64 * (_LISTS + LARGEST + 1))()
        outlives_python(self._words)
        self._words[_WORDS.index("budget")] = budget
        for name in ("aligned_alloc", "free"):
            self._words[_WORDS.index(name)] = c_function(name)
        if sys.platform.startswith("linux"):
            self._words[_WORDS.index("madvise")] = c_function("madvise")
        code = process_jit().load(lambda: memory_text(process_host()), name="memory")
        set_words = ctypes.PYFUNCTYPE(None, ctypes.c_int64)(code.address("set_words"))
        set_words(ctypes.addressof(self._words))
        code.leak()  # arrays live until the very end of the process
        self.array_functions = [
            int(code.address(f"array_{name}")) for name in ("malloc", "calloc", "realloc", "free")
        ]
        self._drop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("drop"))
        self._reclaim = ctypes.CFUNCTYPE(None)(_reclaim)
        self._words[_WORDS.index("reclaim")] = _address(self._reclaim)
        atexit.register(self._words.__setitem__, _WORDS.index("reclaim"), 0)
        self._trim = ctypes.PYFUNCTYPE(None)(code.address("trim"))
        self.allocate = int(code.address("allocate"))
        self.free = int(code.address("release"))

    @property
    def kept(self) -> int:
        """Bytes that wait to be used again."""
        return int(self._words[_WORDS.index("kept")])

    @property
    def used(self) -> int:
        """Bytes in use."""
        return int(self._words[_WORDS.index("used")])

    @property
    def peak(self) -> int:
        """The most bytes that were in use at once, since the last `reset_peak`."""
        return int(self._words[_WORDS.index("peak")])

    def reset_peak(self) -> None:
        self._words[_WORDS.index("peak")] = self.used

    def drop(self, word: int) -> None:
        """Free the block whose address is at `word`, unless a program takes it first."""
        self._drop(word)

    def release(self) -> None:
        """Give everything that waits back to the C library."""
        self._trim()


def memory_text(target: Target) -> str:
    """The allocator's module."""
    names: dict[str, Any] = {name: i for i, name in enumerate(_WORDS)}
    names |= {"lists": _LISTS, "smallest": SMALLEST, "largest": LARGEST, "header": HEADER}
    names |= {"huge": HUGE, "page": PAGE, "advice": MADV_HUGEPAGE}
    text = _TEXT
    for name, value in names.items():
        text = text.replace(f"${name}$", str(value))
    assert "$" not in text
    return text + target.attributes


_TEXT = """
@words = internal global ptr null

define void @set_words(ptr %p) #0 {
  store ptr %p, ptr @words
  ret void
}

define internal ptr @word(i64 %number) alwaysinline #0 {
  %all = load ptr, ptr @words
  %p = getelementptr i64, ptr %all, i64 %number
  ret ptr %p
}

; whether the lists are this caller's now; who does not get them at once goes without
define internal i1 @enter() alwaysinline #0 {
  %lock = call ptr @word(i64 $lock$)
  %before = atomicrmw xchg ptr %lock, i64 1 acquire
  %got = icmp eq i64 %before, 0
  ret i1 %got
}

define internal void @leave() alwaysinline #0 {
  %lock = call ptr @word(i64 $lock$)
  store atomic i64 0, ptr %lock release, align 8
  ret void
}

define internal ptr @obtain(i64 %size, i64 %power) #0 {
entry:
  %p.p = call ptr @word(i64 $aligned_alloc$)
  %alloc = load ptr, ptr %p.p
  %padded = add i64 %size, 127
  %total = and i64 %padded, -64
  %advise.p = call ptr @word(i64 $madvise$)
  %advise = load ptr, ptr %advise.p
  %can = icmp ne ptr %advise, null
  %long = icmp uge i64 %size, $huge$
  %huge = and i1 %can, %long
  %alignment = select i1 %huge, i64 $page$, i64 64
  %base = call ptr %alloc(i64 %alignment, i64 %total)
  %none = icmp eq ptr %base, null
  br i1 %none, label %out, label %found
out:
  ret ptr null
found:
  br i1 %huge, label %hint, label %good
hint:
  %ignored = call i32 %advise(ptr %base, i64 %total, i32 $advice$)
  br label %good
good:
  store i64 %power, ptr %base
  %size.p = getelementptr i64, ptr %base, i64 2
  store i64 %size, ptr %size.p
  %p = getelementptr i8, ptr %base, i64 $header$
  ret ptr %p
}

; a new block of `rounded` bytes, or of `size` where there is no memory for these
define internal ptr @fresh(i64 %size, i64 %rounded, i64 %power) #0 {
entry:
  %p0 = call ptr @obtain(i64 %rounded, i64 %power)
  %none0 = icmp eq ptr %p0, null
  br i1 %none0, label %again, label %good
good:
  ret ptr %p0
again:
  call void @trim()
  %p1 = call ptr @obtain(i64 %size, i64 0)
  %none1 = icmp eq ptr %p1, null
  br i1 %none1, label %ask, label %enough
enough:
  ret ptr %p1
ask:
  %reclaim.p = call ptr @word(i64 $reclaim$)
  %reclaim = load ptr, ptr %reclaim.p
  %silent = icmp eq ptr %reclaim, null
  br i1 %silent, label %out, label %call
out:
  ret ptr null
call:
  call void %reclaim()
  call void @trim()
  %p2 = call ptr @obtain(i64 %size, i64 0)
  ret ptr %p2
}

define internal ptr @find(i64 %size) #0 {
entry:
  %least = call i64 @llvm.umax.i64(i64 %size, i64 2)
  %below = sub i64 %least, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %below, i1 true)
  %exact = sub i64 64, %zeros
  %large = icmp ugt i64 %exact, $largest$
  %small = icmp ult i64 %exact, $smallest$
  %other = or i1 %large, %small
  br i1 %other, label %plain, label %try
plain:
  %p0 = call ptr @fresh(i64 %size, i64 %size, i64 0)
  ret ptr %p0
try:
  %got = call i1 @enter()
  br i1 %got, label %look, label %new
look:
  %place = add i64 %exact, $lists$
  %list = call ptr @word(i64 %place)
  %base = load ptr, ptr %list
  %empty = icmp eq ptr %base, null
  br i1 %empty, label %leave, label %take
leave:
  call void @leave()
  br label %new
take:
  %next.p = getelementptr i64, ptr %base, i64 1
  %next = load ptr, ptr %next.p
  store ptr %next, ptr %list
  %kept.p = call ptr @word(i64 $kept$)
  %kept = load i64, ptr %kept.p
  %bytes0 = shl i64 1, %exact
  %less = sub i64 %kept, %bytes0
  store i64 %less, ptr %kept.p
  call void @leave()
  %p1 = getelementptr i8, ptr %base, i64 $header$
  ret ptr %p1
new:
  %bytes = shl i64 1, %exact
  %p2 = call ptr @fresh(i64 %size, i64 %bytes, i64 %exact)
  ret ptr %p2
}

define internal void @give(ptr %p) #0 {
entry:
  %null = icmp eq ptr %p, null
  br i1 %null, label %done, label %some
done:
  ret void
some:
  %base = getelementptr i8, ptr %p, i64 -$header$
  %power = load i64, ptr %base
  %plain = icmp eq i64 %power, 0
  br i1 %plain, label %free, label %try
free:
  %free.p = call ptr @word(i64 $free$)
  %libc = load ptr, ptr %free.p
  call void %libc(ptr %base)
  ret void
try:
  %got = call i1 @enter()
  br i1 %got, label %weigh, label %free
weigh:
  %kept.p = call ptr @word(i64 $kept$)
  %kept = load i64, ptr %kept.p
  %bytes = shl i64 1, %power
  %more = add i64 %kept, %bytes
  %budget.p = call ptr @word(i64 $budget$)
  %budget = load i64, ptr %budget.p
  %over = icmp ugt i64 %more, %budget
  br i1 %over, label %leave, label %keep
leave:
  call void @leave()
  br label %free
keep:
  store i64 %more, ptr %kept.p
  %place = add i64 %power, $lists$
  %list = call ptr @word(i64 %place)
  %first = load ptr, ptr %list
  %next.p = getelementptr i64, ptr %base, i64 1
  store ptr %first, ptr %next.p
  store ptr %base, ptr %list
  call void @leave()
  ret void
}

; the block's size is counted, whatever it was rounded to
define ptr @allocate(i64 %alignment, i64 %size) #0 {
entry:
  %p = call ptr @find(i64 %size)
  %none = icmp eq ptr %p, null
  br i1 %none, label %out, label %count
out:
  ret ptr null
count:
  %used.p = call ptr @word(i64 $used$)
  %peak.p = call ptr @word(i64 $peak$)
  %bytes = call i64 @bytes(ptr %p)
  %before = atomicrmw add ptr %used.p, i64 %bytes monotonic
  %now = add i64 %before, %bytes
  %peak = load atomic i64, ptr %peak.p monotonic, align 8
  %more = icmp sgt i64 %now, %peak
  br i1 %more, label %raise, label %done
raise:
  %ignored = atomicrmw max ptr %peak.p, i64 %now monotonic
  br label %done
done:
  ret ptr %p
}

define void @release(ptr %p) #0 {
entry:
  %null = icmp eq ptr %p, null
  br i1 %null, label %done, label %some
done:
  ret void
some:
  %used.p = call ptr @word(i64 $used$)
  %bytes = call i64 @bytes(ptr %p)
  %before = atomicrmw sub ptr %used.p, i64 %bytes monotonic
  call void @give(ptr %p)
  ret void
}

define internal i64 @bytes(ptr %p) alwaysinline #0 {
  %size.p = getelementptr i8, ptr %p, i64 -48
  %bytes = load i64, ptr %size.p
  ret i64 %bytes
}

define void @drop(ptr %word) #0 {
  %block = atomicrmw xchg ptr %word, i64 0 acquire
  %p = inttoptr i64 %block to ptr
  call void @release(ptr %p)
  ret void
}

define void @trim() #0 {
entry:
  %got = call i1 @enter()
  br i1 %got, label %sizes, label %done
done:
  ret void
sizes:
  %power = phi i64 [$smallest$, %entry], [%power.next, %sized]
  %more = icmp ule i64 %power, $largest$
  br i1 %more, label %size, label %end
size:
  %place = add i64 %power, $lists$
  %list = call ptr @word(i64 %place)
  %first = load ptr, ptr %list
  store ptr null, ptr %list
  br label %blocks
blocks:
  %base = phi ptr [%first, %size], [%next, %block]
  %left = icmp ne ptr %base, null
  br i1 %left, label %block, label %sized
block:
  %next.p = getelementptr i64, ptr %base, i64 1
  %next = load ptr, ptr %next.p
  %free.p = call ptr @word(i64 $free$)
  %libc = load ptr, ptr %free.p
  call void %libc(ptr %base)
  br label %blocks
sized:
  %power.next = add i64 %power, 1
  br label %sizes
end:
  %kept.p = call ptr @word(i64 $kept$)
  store i64 0, ptr %kept.p
  call void @leave()
  ret void
}

define ptr @array_malloc(ptr %context, i64 %size) #0 {
  %p = call ptr @allocate(i64 64, i64 %size)
  ret ptr %p
}

define ptr @array_calloc(ptr %context, i64 %count, i64 %size) #0 {
entry:
  %product = call {i64, i1} @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue {i64, i1} %product, 0
  %over = extractvalue {i64, i1} %product, 1
  br i1 %over, label %none, label %make
none:
  ret ptr null
make:
  %p = call ptr @allocate(i64 64, i64 %bytes)
  %failed = icmp eq ptr %p, null
  br i1 %failed, label %none, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %bytes, i1 false)
  ret ptr %p
}

define ptr @array_realloc(ptr %context, ptr %old, i64 %size) #0 {
entry:
  %new = call ptr @allocate(i64 64, i64 %size)
  %failed = icmp eq ptr %new, null
  %fresh = icmp eq ptr %old, null
  %either = or i1 %failed, %fresh
  br i1 %either, label %done, label %copy
done:
  ret ptr %new
copy:
  %size.p = getelementptr i8, ptr %old, i64 -48
  %room = load i64, ptr %size.p
  %bytes = call i64 @llvm.umin.i64(i64 %room, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 %bytes, i1 false)
  call void @release(ptr %old)
  ret ptr %new
}

define void @array_free(ptr %context, ptr %p, i64 %size) #0 {
  call void @release(ptr %p)
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.ctlz.i64(i64, i1)
"""
