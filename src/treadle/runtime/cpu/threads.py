"""The native worker pool: low-latency fork and join with a static partition.

Generated code calls ``treadle_parallel_for(job, context, n, unit, grain)``. The range [0, n) is
cut into at most as many parts as there are threads, at multiples of `unit`, none smaller than
`grain` but the last; part w belongs to worker w and the caller runs part 0. A part whose worker
has not woken up is taken back by the caller, so a sleeping worker never delays a call. A call
while the pool is busy (nested, or from another Python thread) runs in the calling thread.
What a part computes does not depend on who runs it.

Workers are native threads made on first use. They spin for a moment after their last part
and then sleep on a condition variable. They do not survive a fork; the child starts its own.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import threading
import time
from typing import Any

from treadle.runtime.cpu.llvm_text import Module
from treadle.runtime.cpu.target import Target

MAX_THREADS = 256
_SLOT = 256  # bytes a worker: cache lines of its own
_HEADER = 256

# Header words: 0 busy, 1 threads to use, 2 workers started, 3 spin ns, 4 SIG_BLOCK,
# 5 SIG_SETMASK, 6 the monotonic clock's number.
# A slot: +0 i32 state (0 idle, 1 posted, 2 running, 3 done), +8 job, +16 context, +24 low, +32 high, +40 header, +48 pthread_t, +56 i32 quit,
# +64 i32 asleep, +96 mutex, +160 condition.
_TEXT = r"""
@treadle_pool = internal global ptr null

define void @treadle_pool_set(ptr %pool) #0 {
  store atomic ptr %pool, ptr @treadle_pool release, align 8
  ret void
}

define internal ptr @slot(ptr %pool, i64 %worker) #0 {
  %a = mul i64 %worker, 256
  %p = getelementptr i8, ptr %pool, i64 %a   ; worker 1 is right after the header
  ret ptr %p
}

define internal i64 @now(i32 %clock) #0 {
  %ts = alloca [2 x i64]
  %r = call i32 @clock_gettime(i32 %clock, ptr %ts)
  %s = load i64, ptr %ts
  %np = getelementptr i64, ptr %ts, i64 1
  %n = load i64, ptr %np
  %s9 = mul i64 %s, 1000000000
  %t = add i64 %s9, %n
  ret i64 %t
}

define ptr @treadle_worker(ptr %slot) #0 {
entry:
  %headp = getelementptr i8, ptr %slot, i64 40
  %head = load ptr, ptr %headp
  %spinp = getelementptr i64, ptr %head, i64 3
  %clockp = getelementptr i64, ptr %head, i64 6
  %clock64 = load i64, ptr %clockp
  %clock = trunc i64 %clock64 to i32
  %quitp = getelementptr i8, ptr %slot, i64 56
  %asleep = getelementptr i8, ptr %slot, i64 64
  %mutex = getelementptr i8, ptr %slot, i64 96
  %cond = getelementptr i8, ptr %slot, i64 160
  br label %restart
restart:
  %since = call i64 @now(i32 %clock)
  br label %spin
spin:                                         ; 64 looks between two looks at the clock
  %n = phi i64 [0, %restart], [0, %time], [%n1, %idle]
  %s = load atomic i32, ptr %slot acquire, align 4
  %posted = icmp eq i32 %s, 1
  br i1 %posted, label %claim, label %idle
idle:
  PAUSE
  %n1 = add i64 %n, 1
  %again = icmp ult i64 %n1, 64
  br i1 %again, label %spin, label %time
time:
  %t = call i64 @now(i32 %clock)
  %elapsed = sub i64 %t, %since
  %limit = load i64, ptr %spinp
  %early = icmp slt i64 %elapsed, %limit
  %quit = load atomic i32, ptr %quitp acquire, align 4
  %wanted = icmp eq i32 %quit, 0
  %stay = and i1 %early, %wanted
  br i1 %stay, label %spin, label %sleep
sleep:
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i32 1, ptr %asleep seq_cst, align 4
  br label %check
check:
  %s2 = load atomic i32, ptr %slot seq_cst, align 4
  %p2 = icmp eq i32 %s2, 1
  %q2 = load atomic i32, ptr %quitp seq_cst, align 4
  %qq = icmp ne i32 %q2, 0
  %up = or i1 %p2, %qq
  br i1 %up, label %awake, label %block
block:
  %w = call i32 @pthread_cond_wait(ptr %cond, ptr %mutex)
  br label %check
awake:
  store atomic i32 0, ptr %asleep seq_cst, align 4
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  br i1 %qq, label %out, label %restart
claim:
  %x = cmpxchg ptr %slot, i32 1, i32 2 acq_rel acquire
  %ok = extractvalue {i32, i1} %x, 1
  br i1 %ok, label %run, label %restart
run:
  call void @run_part(ptr %slot)
  store atomic i32 3, ptr %slot release, align 4
  br label %restart
out:
  ret ptr null
}

define internal void @run_part(ptr %slot) #0 {
  %jobp = getelementptr i8, ptr %slot, i64 8
  %ctxp = getelementptr i8, ptr %slot, i64 16
  %lowp = getelementptr i8, ptr %slot, i64 24
  %highp = getelementptr i8, ptr %slot, i64 32
  %job = load ptr, ptr %jobp
  %ctx = load ptr, ptr %ctxp
  %low = load i64, ptr %lowp
  %high = load i64, ptr %highp
  call void %job(ptr %ctx, i64 %low, i64 %high)
  ret void
}

define internal void @wake(ptr %slot) #0 {
entry:
  %asleep = getelementptr i8, ptr %slot, i64 64
  %z = load atomic i32, ptr %asleep seq_cst, align 4
  %yes = icmp ne i32 %z, 0
  br i1 %yes, label %signal, label %out
signal:
  %mutex = getelementptr i8, ptr %slot, i64 96
  %cond = getelementptr i8, ptr %slot, i64 160
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %s = call i32 @pthread_cond_signal(ptr %cond)
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %out
out:
  ret void
}

; Start workers up to number %want, with all signals blocked; the number that runs.
define internal i64 @start_workers(ptr %pool, i64 %want) #0 {
entry:
  %startedp = getelementptr i64, ptr %pool, i64 2
  %started = load i64, ptr %startedp
  %enough = icmp sge i64 %started, %want
  br i1 %enough, label %have, label %begin
have:
  ret i64 %want
begin:
  %all = alloca [256 x i8], align 16
  %old = alloca [256 x i8], align 16
  %blockp = getelementptr i64, ptr %pool, i64 4
  %setp = getelementptr i64, ptr %pool, i64 5
  %block64 = load i64, ptr %blockp
  %set64 = load i64, ptr %setp
  %block = trunc i64 %block64 to i32
  %set = trunc i64 %set64 to i32
  %f = call i32 @sigfillset(ptr %all)
  %m1 = call i32 @pthread_sigmask(i32 %block, ptr %all, ptr %old)
  br label %loop
loop:
  %k = phi i64 [%started, %begin], [%k1, %made]
  %done = icmp sge i64 %k, %want
  br i1 %done, label %out, label %create
create:
  %worker = add i64 %k, 1
  %slot = call ptr @slot(ptr %pool, i64 %worker)
  %headp = getelementptr i8, ptr %slot, i64 40
  store ptr %pool, ptr %headp
  %mutex = getelementptr i8, ptr %slot, i64 96
  %cond = getelementptr i8, ptr %slot, i64 160
  %i1 = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %i2 = call i32 @pthread_cond_init(ptr %cond, ptr null)
  %tidp = getelementptr i8, ptr %slot, i64 48
  %e = call i32 @pthread_create(ptr %tidp, ptr null, ptr @treadle_worker, ptr %slot)
  %bad = icmp ne i32 %e, 0
  br i1 %bad, label %out, label %made
made:
  %k1 = add i64 %k, 1
  store i64 %k1, ptr %startedp
  br label %loop
out:
  %m2 = call i32 @pthread_sigmask(i32 %set, ptr %old, ptr null)
  ret i64 %k
}

define void @treadle_pool_stop(ptr %pool) #0 {
entry:
  %startedp = getelementptr i64, ptr %pool, i64 2
  %started = load i64, ptr %startedp
  br label %loop
loop:
  %k = phi i64 [1, %entry], [%k1, %stop]
  %more = icmp sle i64 %k, %started
  br i1 %more, label %stop, label %out
stop:
  %slot = call ptr @slot(ptr %pool, i64 %k)
  %quitp = getelementptr i8, ptr %slot, i64 56
  %mutex = getelementptr i8, ptr %slot, i64 96
  %cond = getelementptr i8, ptr %slot, i64 160
  store atomic i32 1, ptr %quitp seq_cst, align 4
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %s = call i32 @pthread_cond_signal(ptr %cond)
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  %tidp = getelementptr i8, ptr %slot, i64 48
  %tid = load i64, ptr %tidp
  %j = call i32 @pthread_join(i64 %tid, ptr null)
  %k1 = add i64 %k, 1
  br label %loop
out:
  store i64 0, ptr %startedp
  ret void
}

define void @treadle_parallel_for(ptr %job, ptr %ctx, i64 %n, i64 %unit, i64 %grain) #0 {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %begin, label %out
begin:
  %pool = load atomic ptr, ptr @treadle_pool acquire, align 8
  %none = icmp eq ptr %pool, null
  %small = icmp sle i64 %n, %grain
  %alone = or i1 %none, %small
  br i1 %alone, label %serial, label %count
count:
  %limitp = getelementptr i64, ptr %pool, i64 1
  %limit = load i64, ptr %limitp
  %n1 = add i64 %n, %grain
  %n2 = sub i64 %n1, 1
  %fit = udiv i64 %n2, %grain
  %less = icmp slt i64 %fit, %limit
  %parts = select i1 %less, i64 %fit, i64 %limit
  %two = icmp sgt i64 %parts, 1
  br i1 %two, label %lock, label %serial
lock:
  %x = cmpxchg ptr %pool, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {i64, i1} %x, 1
  br i1 %mine, label %ready, label %serial
ready:
  %want = sub i64 %parts, 1
  %got = call i64 @start_workers(ptr %pool, i64 %want)
  %p = add i64 %got, 1
  %c1 = add i64 %n, %p
  %c2 = sub i64 %c1, 1
  %c3 = udiv i64 %c2, %p
  %c4 = add i64 %c3, %unit
  %c5 = sub i64 %c4, 1
  %c6 = udiv i64 %c5, %unit
  %chunk = mul i64 %c6, %unit
  br label %post
post:
  %w = phi i64 [1, %ready], [%w1, %posted]
  %low = mul i64 %w, %chunk
  %morew = icmp slt i64 %w, %p
  %morei = icmp slt i64 %low, %n
  %go = and i1 %morew, %morei
  br i1 %go, label %one, label %own
one:
  %slot = call ptr @slot(ptr %pool, i64 %w)
  %end = add i64 %low, %chunk
  %over = icmp slt i64 %end, %n
  %high = select i1 %over, i64 %end, i64 %n
  %jobp = getelementptr i8, ptr %slot, i64 8
  %ctxp = getelementptr i8, ptr %slot, i64 16
  %lowp = getelementptr i8, ptr %slot, i64 24
  %highp = getelementptr i8, ptr %slot, i64 32
  store ptr %job, ptr %jobp
  store ptr %ctx, ptr %ctxp
  store i64 %low, ptr %lowp
  store i64 %high, ptr %highp
  %o = atomicrmw xchg ptr %slot, i32 1 seq_cst
  call void @wake(ptr %slot)
  br label %posted
posted:
  %w1 = add i64 %w, 1
  br label %post
own:
  %first = icmp slt i64 %chunk, %n
  %mineend = select i1 %first, i64 %chunk, i64 %n
  call void %job(ptr %ctx, i64 0, i64 %mineend)
  br label %join
join:
  %v = phi i64 [1, %own], [%v1, %joined]
  %last = icmp slt i64 %v, %w
  br i1 %last, label %take, label %unlock
take:
  %s = call ptr @slot(ptr %pool, i64 %v)
  %y = cmpxchg ptr %s, i32 1, i32 0 acq_rel acquire
  %back = extractvalue {i32, i1} %y, 1
  br i1 %back, label %mypart, label %wait
mypart:
  call void @run_part(ptr %s)
  br label %joined
wait:
  %spins = phi i64 [0, %take], [%spins1, %pause], [%spins1, %yield]
  %st = load atomic i32, ptr %s acquire, align 4
  %fin = icmp eq i32 %st, 3
  br i1 %fin, label %clear, label %again
again:
  %spins1 = add i64 %spins, 1
  %many = icmp ugt i64 %spins1, 20000
  br i1 %many, label %yield, label %pause
yield:
  %yy = call i32 @sched_yield()
  br label %wait
pause:
  PAUSE
  br label %wait
clear:
  store atomic i32 0, ptr %s release, align 4
  br label %joined
joined:
  %v1 = add i64 %v, 1
  br label %join
unlock:
  store atomic i64 0, ptr %pool release, align 8
  br label %out
serial:
  call void %job(ptr %ctx, i64 0, i64 %n)
  br label %out
out:
  ret void
}
"""
_EXTERNALS = (
    "i32 @clock_gettime(i32, ptr)", "i32 @pthread_mutex_lock(ptr)",
    "i32 @pthread_mutex_unlock(ptr)", "i32 @pthread_cond_wait(ptr, ptr)",
    "i32 @pthread_cond_signal(ptr)", "i32 @pthread_mutex_init(ptr, ptr)",
    "i32 @pthread_cond_init(ptr, ptr)", "i32 @pthread_create(ptr, ptr, ptr, ptr)",
    "i32 @pthread_join(i64, ptr)", "i32 @pthread_sigmask(i32, ptr, ptr)",
    "i32 @sigfillset(ptr)", "i32 @sched_yield()",
)  # fmt: skip

# Without pthreads every range is one part.
_SERIAL = """
define void @treadle_parallel_for(ptr %job, ptr %ctx, i64 %n, i64 %unit, i64 %grain) #0 {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %run, label %out
run:
  call void %job(ptr %ctx, i64 0, i64 %n)
  br label %out
out:
  ret void
}
"""


def pool_text(target: Target) -> str:
    """The LLVM text that defines `treadle_parallel_for`."""
    module = Module(target)
    if sys.platform == "win32":
        module.define("pool", _SERIAL)
        return module.text()
    for declaration in _EXTERNALS:
        module.declare(declaration)
    if target.is_x86:
        module.declare("void @llvm.x86.sse2.pause()")
    elif target.arch == "aarch64":
        module.declare("void @llvm.aarch64.hint(i32)")
    module.define("pool", _TEXT.replace("PAUSE", target.pause))
    return module.text()


def default_threads() -> int:
    """TREADLE_NUM_THREADS, or the number of cores this process may run on."""
    given = os.environ.get("TREADLE_NUM_THREADS")
    if given:
        try:
            count = int(given)
        except ValueError:
            count = 0
        if count < 1:
            raise ValueError(f"TREADLE_NUM_THREADS must be a positive integer, got {given!r}")
        return min(count, MAX_THREADS)
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), MAX_THREADS)
    return min(os.cpu_count() or 1, MAX_THREADS)


class Pool:
    """The pool's memory, as generated code sees it."""

    def __init__(self, addresses: dict[str, int]) -> None:
        self._set = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses["treadle_pool_set"])
        self._stop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses["treadle_pool_stop"])
        self._spin_ns = int(float(os.environ.get("TREADLE_SPIN_US", "200")) * 1000)
        self._memory: list[Any] = []  # never freed: a worker may still look at it
        self._threads = default_threads()
        self._install()
        os.register_at_fork(after_in_child=self._install)
        atexit.register(self._shut_down)

    def _install(self) -> None:
        size = _HEADER + _SLOT * MAX_THREADS
        memory = ctypes.create_string_buffer(size + 64)
        self._memory.append(memory)
        self.address = (ctypes.addressof(memory) + 63) & ~63
        header = (ctypes.c_int64 * 7).from_address(self.address)
        header[1], header[3] = self._threads, self._spin_ns
        header[4], header[5] = int(signal.SIG_BLOCK), int(signal.SIG_SETMASK)
        header[6] = time.CLOCK_MONOTONIC
        self._set(self.address)

    def _shut_down(self) -> None:
        """Workers return before the code they run can go away."""
        header = (ctypes.c_int64 * 7).from_address(self.address)
        self._set(None)
        deadline = time.monotonic() + 1
        while header[0] and time.monotonic() < deadline:
            time.sleep(0.001)
        if not header[0]:
            self._stop(self.address)

    @property
    def threads(self) -> int:
        return self._threads

    @threads.setter
    def threads(self, count: int) -> None:
        self._threads = count
        ctypes.c_int64.from_address(self.address + 8).value = count


_pool: Pool | None = None
_pool_lock = threading.Lock()
_requested: int | None = None


def start_pool(addresses: dict[str, int]) -> None:
    """Give the pool its memory; `addresses` are those of the loaded `pool_text`."""
    global _pool
    with _pool_lock:
        if _pool is None and sys.platform != "win32":
            _pool = Pool(addresses)
            if _requested is not None:
                _pool.threads = _requested


def num_threads() -> int:
    """How many threads parallel kernels use."""
    if _pool is not None:
        return _pool.threads
    return _requested or default_threads()


def set_num_threads(count: int) -> None:
    """Use `count` threads from the next kernel on (0: the default)."""
    global _requested
    if count < 0 or count > MAX_THREADS:
        raise ValueError(f"the number of threads must be in 0..{MAX_THREADS}, got {count}")
    with _pool_lock:
        _requested = count or default_threads()
        if _pool is not None:
            _pool.threads = _requested
