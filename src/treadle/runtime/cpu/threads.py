"""The pool of native threads that share the work of kernels and library routines.

Generated code calls two functions, whose addresses `pool` gives:

    parallel(task, record, call)
                             task(record, part, parts) for every part, on all threads
    launch(kernel, buffers, dims, units, grain, scratch, stride, slice, call)
                             kernel(buffers, dims, lo, hi, scratch) over ranges of the units

`call` is the record of the program's call (`program_poll`), or null where nothing ends the work
early. A thread does a launch's units in slices and looks between two whether it is to stop: `slice`
units at first, more where they take no time.

A worker spins for a short while and then sleeps. The caller runs part 0 itself and then takes
back every part whose worker has not begun, so a sleeping worker never delays it. One parallel
region runs at a time: a nested one, or one of another Python thread, runs on its caller alone.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from collections.abc import Callable

from treadle.core import locks
from treadle.core.records import record
from treadle.runtime.cpu.jit import Jit, process_jit
from treadle.runtime.cpu.program_poll import DECLARATIONS, LOOK
from treadle.runtime.cpu.target import Target
from treadle.runtime.cpu.thread_count import MOST_THREADS, threads, when_changed

_SLOT = 256  # bytes a worker: its job, whether it sleeps, a mutex and a condition variable
_HEAD = 64  # bytes of the pool before the slots: busy, workers
_SPINS = 20_000  # pauses before a worker sleeps: a few hundred microseconds
_SLICE_NS = 1_000_000  # what a slice of a launch takes at least, but for the first ones


@record(frozen=True)
class PoolAddresses:
    """The functions for generated code."""

    parallel: int
    launch: int
    parallel_alone: int
    launch_alone: int


class Pool:
    """Worker threads. Those that are needed are started when the number of threads is set."""

    def __init__(self, compiler: Jit) -> None:
        code = compiler.load(lambda: pool_text(compiler.target), name="pool")
        names = ("parallel", "launch", "parallel_alone", "launch_alone")
        self.addresses = PoolAddresses(*map(code.address, names))
        self._work = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("work"))
        self._init = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(code.address("init_slot"))
        self._set_pool = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(code.address("set_pool"))
        self._quit = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(code.address("quit_slot"))
        self._lock = locks.lock()
        self._threads = 1
        self._fresh_memory()

    def _fresh_memory(self) -> None:
        size = _HEAD + MOST_THREADS * _SLOT
        self._memory = ctypes.create_string_buffer(size + 64)
        self._base = (ctypes.addressof(self._memory) + 63) // 64 * 64
        self._workers = ctypes.c_int64.from_address(self._base + 8)
        self._started = 0
        self._set_pool(self._base)

    @property
    def threads(self) -> int:
        """How many threads share the work, the caller included."""
        return self._threads

    def set_threads(self, count: int) -> None:
        """Use `count` threads from the next parallel region on.

        Raises:
            ValueError: `count` is not between 1 and 256.
        """
        if not 1 <= count <= MOST_THREADS:
            raise ValueError(f"The number of threads must be from 1 to {MOST_THREADS}, got {count}")
        with self._lock:
            while self._started < count - 1:
                self._start()
            self._threads = count
            self._workers.value = count - 1

    def _start(self) -> None:
        slot = self._base + _HEAD + self._started * _SLOT
        self._init(slot)
        worker = threading.Thread(
            target=self._work, args=(slot, _SPINS), name=f"treadle-{self._started + 1}", daemon=True
        )
        worker.start()
        self._started += 1

    def after_fork(self) -> None:
        """In the child the workers are gone: start others."""
        self._fresh_memory()
        self.set_threads(self._threads)

    def stop(self) -> None:
        """Let the workers end; what runs later runs on its caller alone."""
        with self._lock:
            self._workers.value = 0
            for k in range(self._started):
                self._quit(self._base + _HEAD + k * _SLOT)


_create = locks.lock()
_pool: Pool | None = None


def pool() -> Pool:
    """The process's pool, started on first use."""
    global _pool
    if _pool is None:
        with _create:
            if _pool is None:
                made = Pool(process_jit())
                made.set_threads(threads())
                when_changed(made.set_threads)
                if hasattr(os, "register_at_fork"):
                    reference = weakref.WeakMethod(made.after_fork)
                    os.register_at_fork(after_in_child=lambda: _call(reference))
                atexit.register(made.stop)
                _pool = made
    return _pool


def _call(reference: weakref.WeakMethod[Callable[[], None]]) -> None:
    method = reference()
    if method is not None:
        method()


def pool_text(target: Target) -> str:
    """The module of the pool's native functions."""
    declaration = target.pause.split("call ")[-1] if "call" in target.pause else ""
    declare = f"declare {declaration.replace('(i32 1)', '(i32)')}\n" if declaration else ""
    declare += "".join(f"declare {each}\n" for each in DECLARATIONS)
    return declare + LOOK + _TEXT.replace("PAUSE", target.pause) + target.attributes


# Where a slot has its fields; its state (0 idle, 1 posted, 2 running, 3 done) comes first.
_FIELDS = {
    "taskp": 8, "recordp": 16, "partp": 24, "partsp": 32, "asleep": 64, "quit": 68, "mutex": 128,
    "cond": 192,
}  # fmt: skip
_RECORD = {
    "kernel": "ptr", "buffers": "ptr", "dims": "ptr", "units": "i64", "grain": "i64",
    "scratch": "ptr", "stride": "i64", "slice": "i64", "call": "ptr",
}  # fmt: skip


def _slot(*names: str) -> str:
    """Pointers to fields of %slot."""
    lines = [f"  %{name} = getelementptr i8, ptr %slot, i64 {_FIELDS[name]}" for name in names]
    return "\n".join(lines)


def _record(use: str) -> str:
    """A statement for each word of a launch's %record: `use` with name and type filled in."""
    lines = []
    for i, (name, type_) in enumerate(_RECORD.items()):
        lines += [f"%{name}.p = getelementptr i64, ptr %record, i64 {i}", use.format(name, type_)]
    return "\n".join(f"  {line}" for line in lines)


_TEXT = f"""
@pool = internal global ptr null

declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @sched_yield()


define void @set_pool(ptr %p) #0 {{
  store atomic ptr %p, ptr @pool release, align 8
  ret void
}}

define void @init_slot(ptr %slot) #0 {{
{_slot("mutex", "cond")}
  %a = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %b = call i32 @pthread_cond_init(ptr %cond, ptr null)
  ret void
}}

define internal void @wake(ptr %slot) #0 {{
{_slot("mutex", "cond")}
  %a = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = call i32 @pthread_cond_signal(ptr %cond)
  %c = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}}

define void @quit_slot(ptr %slot) #0 {{
{_slot("quit")}
  store atomic i32 1, ptr %quit seq_cst, align 4
  call void @wake(ptr %slot)
  ret void
}}

define void @work(ptr %slot, i64 %spins) #0 {{
entry:
{_slot("taskp", "recordp", "partp", "partsp", "asleep", "quit", "mutex", "cond")}
  br label %restart
restart:
  br label %spin
spin:
  %n = phi i64 [0, %restart], [%n1, %idle]
  %s = load atomic i32, ptr %slot acquire, align 4
  %posted = icmp eq i32 %s, 1
  br i1 %posted, label %claim, label %idle
idle:
  PAUSE
  %n1 = add i64 %n, 1
  %more = icmp ult i64 %n1, %spins
  br i1 %more, label %spin, label %sleep
sleep:
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i32 1, ptr %asleep seq_cst, align 4
  br label %doze
doze:
  %q = load atomic i32, ptr %quit seq_cst, align 4
  %leave = icmp ne i32 %q, 0
  br i1 %leave, label %out, label %look
look:
  %s2 = load atomic i32, ptr %slot seq_cst, align 4
  %p2 = icmp eq i32 %s2, 1
  br i1 %p2, label %awake, label %wait
wait:
  %w = call i32 @pthread_cond_wait(ptr %cond, ptr %mutex)
  br label %doze
awake:
  store atomic i32 0, ptr %asleep seq_cst, align 4
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %restart
claim:
  %x = cmpxchg ptr %slot, i32 1, i32 2 acq_rel acquire
  %ok = extractvalue {{i32, i1}} %x, 1
  br i1 %ok, label %go, label %restart
go:
  %task = load ptr, ptr %taskp
  %record = load ptr, ptr %recordp
  %part = load i64, ptr %partp
  %parts = load i64, ptr %partsp
  call void %task(ptr %record, i64 %part, i64 %parts)
  store atomic i32 3, ptr %slot release, align 4
  br label %restart
out:
  %u2 = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}}

define internal ptr @slot_of(ptr %pool, i64 %k) #0 {{
  %a = mul i64 %k, {_SLOT}
  %b = add i64 %a, {_HEAD}
  %p = getelementptr i8, ptr %pool, i64 %b
  ret ptr %p
}}

define internal void @post(ptr %slot, ptr %task, ptr %record, i64 %part, i64 %parts) #0 {{
entry:
{_slot("taskp", "recordp", "partp", "partsp", "asleep")}
  store ptr %task, ptr %taskp
  store ptr %record, ptr %recordp
  store i64 %part, ptr %partp
  store i64 %parts, ptr %partsp
  %o = atomicrmw xchg ptr %slot, i32 1 seq_cst
  %z = load atomic i32, ptr %asleep seq_cst, align 4
  %sleeps = icmp ne i32 %z, 0
  br i1 %sleeps, label %call, label %done
call:
  call void @wake(ptr %slot)
  br label %done
done:
  ret void
}}

define internal void @join(
    ptr %slot, ptr %task, ptr %record, i64 %part, i64 %parts, ptr %call
) #0 {{
entry:
  %x = cmpxchg ptr %slot, i32 1, i32 0 acq_rel acquire
  %back = extractvalue {{i32, i1}} %x, 1
  br i1 %back, label %mine, label %wait
mine:
  call void %task(ptr %record, i64 %part, i64 %parts)
  ret void
wait:
  %n = phi i64 [0, %entry], [%n1, %pause], [%n1, %yield]
  %s = load atomic i32, ptr %slot acquire, align 4
  %d = icmp eq i32 %s, 3
  br i1 %d, label %fin, label %more
more:
  %n1 = add i64 %n, 1
  %long = icmp ugt i64 %n1, 2000
  br i1 %long, label %yield, label %pause
yield:                                  ; the worker may be waiting for this very processor
  %y = call i32 @sched_yield()
  %seen = call i64 @look(ptr %call)     ; the worker will see that it is to stop
  br label %wait
pause:
  PAUSE
  br label %wait
fin:
  store atomic i32 0, ptr %slot release, align 4
  ret void
}}

define void @parallel(ptr %task, ptr %record, ptr %call) #0 {{
entry:
  %pool = load atomic ptr, ptr @pool acquire, align 8
  %wp = getelementptr i64, ptr %pool, i64 1
  %workers = load atomic i64, ptr %wp monotonic, align 8
  %some = icmp sgt i64 %workers, 0
  br i1 %some, label %try, label %alone
try:
  %b = atomicrmw xchg ptr %pool, i64 1 acquire
  %free = icmp eq i64 %b, 0
  br i1 %free, label %region, label %alone
alone:
  call void %task(ptr %record, i64 0, i64 1)
  ret void
region:
  %parts = add i64 %workers, 1
  br label %posting
posting:
  %k = phi i64 [0, %region], [%k1, %posting]
  %slot = call ptr @slot_of(ptr %pool, i64 %k)
  %k1 = add i64 %k, 1
  call void @post(ptr %slot, ptr %task, ptr %record, i64 %k1, i64 %parts)
  %more = icmp slt i64 %k1, %workers
  br i1 %more, label %posting, label %own
own:
  call void %task(ptr %record, i64 0, i64 %parts)
  br label %joining
joining:
  %j = phi i64 [0, %own], [%j1, %joining]
  %slot2 = call ptr @slot_of(ptr %pool, i64 %j)
  %j1 = add i64 %j, 1
  call void @join(ptr %slot2, ptr %task, ptr %record, i64 %j1, i64 %parts, ptr %call)
  %left = icmp slt i64 %j1, %workers
  br i1 %left, label %joining, label %done
done:
  store atomic i64 0, ptr %pool release, align 8
  ret void
}}

define internal void @launch_part(ptr %record, i64 %part, i64 %parts) #0 {{
entry:
{_record("%{0} = load {1}, ptr %{0}.p")}
  %fit = sdiv i64 %units, %grain
  %fewer = icmp slt i64 %fit, %parts
  %useful = select i1 %fewer, i64 %fit, i64 %parts
  %none = icmp slt i64 %useful, 1
  %n = select i1 %none, i64 1, i64 %useful
  %over = add i64 %units, %n
  %over1 = sub i64 %over, 1
  %even = sdiv i64 %over1, %n
  %long = icmp sge i64 %grain, 64
  %up64 = add i64 %even, 63
  %whole = and i64 %up64, -64
  %size = select i1 %long, i64 %whole, i64 %even
  %lo = mul i64 %part, %size
  %end = add i64 %lo, %size
  %past = icmp sgt i64 %end, %units
  %hi = select i1 %past, i64 %units, i64 %end
  %work = icmp slt i64 %lo, %hi
  br i1 %work, label %run, label %out
run:
  %shift = mul i64 %part, %stride
  %own = getelementptr i8, ptr %scratch, i64 %shift
  call void @slices(ptr %kernel, ptr %buffers, ptr %dims, i64 %lo, i64 %hi, ptr %own,
    i64 %slice, ptr %call)
  br label %out
out:
  ret void
}}

; the units [lo, hi), with a look between two slices; slices grow until they take long enough
define internal void @slices(
    ptr %kernel, ptr %buffers, ptr %dims, i64 %lo, i64 %hi, ptr %scratch, i64 %slice, ptr %call
) #0 {{
entry:
  %none = icmp eq ptr %call, null
  br i1 %none, label %whole, label %next
whole:
  call void %kernel(ptr %buffers, ptr %dims, i64 %lo, i64 %hi, ptr %scratch)
  ret void
next:
  %start = phi i64 [%lo, %entry], [%end, %on]
  %size = phi i64 [%slice, %entry], [%size.next, %on]
  %before = phi i64 [0, %entry], [%now, %on]
  %reach = add i64 %start, %size
  %last = icmp sge i64 %reach, %hi
  %end = select i1 %last, i64 %hi, i64 %reach
  call void %kernel(ptr %buffers, ptr %dims, i64 %start, i64 %end, ptr %scratch)
  br i1 %last, label %out, label %see
see:
  %now = call i64 @look(ptr %call)
  %stop = icmp slt i64 %now, 0
  br i1 %stop, label %out, label %on
on:
  %took = sub i64 %now, %before         ; the first time since the clock began: too long
  %short = icmp slt i64 %took, {_SLICE_NS}
  %grows = zext i1 %short to i64
  %size.next = shl i64 %size, %grows
  br label %next
out:
  ret void
}}

; the same two on the caller alone
define void @parallel_alone(ptr %task, ptr %record, ptr %call) #0 {{
  call void %task(ptr %record, i64 0, i64 1)
  ret void
}}

define void @launch_alone(
    ptr %kernel, ptr %buffers, ptr %dims, i64 %units, i64 %grain, ptr %scratch, i64 %stride,
    i64 %slice, ptr %call
) #0 {{
  call void @slices(ptr %kernel, ptr %buffers, ptr %dims, i64 0, i64 %units, ptr %scratch,
    i64 %slice, ptr %call)
  ret void
}}

define void @launch(
    ptr %kernel, ptr %buffers, ptr %dims, i64 %units, i64 %grain, ptr %scratch, i64 %stride,
    i64 %slice, ptr %call
) #0 {{
entry:
  %record = alloca [{len(_RECORD)} x i64], align 16
  %twice = shl i64 %grain, 1
  %small = icmp slt i64 %units, %twice
  br i1 %small, label %one, label %many
one:
  call void @slices(ptr %kernel, ptr %buffers, ptr %dims, i64 0, i64 %units, ptr %scratch,
    i64 %slice, ptr %call)
  ret void
many:
{_record("store {1} %{0}, ptr %{0}.p")}
  call void @parallel(ptr @launch_part, ptr %record, ptr %call)
  ret void
}}
"""
