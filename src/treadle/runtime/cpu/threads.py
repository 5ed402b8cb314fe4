"""The pool of native threads that share the work of kernels and library routines.

Generated code calls two functions, whose addresses `pool` gives:

    parallel(task, record, most, call)
                             task(record, part, parts) for every part, on as many threads as there
                             are, `most` of them at most: handing out parts takes time
    launch(kernel, buffers, dims, units, grain, scratch, stride, slice, call)
                             kernel(buffers, dims, lo, hi, scratch) over ranges of the units

`call` is the record of the program's call (`program_poll`), or null where nothing ends the work
early. A thread does a launch's units in slices and looks between two whether it is to stop: `slice`
units at first, more where they take no time.

A worker spins for a short while and then sleeps. The caller runs part 0 itself and then takes
back every part whose worker has not begun, so a sleeping worker never delays it. One parallel
region runs at a time: a nested one, or one of another Python thread, runs on its caller alone.
Where threads of data pipelines keep processors busy (`thread_count.occupied`), a region uses the
rest. Where more threads are asked for than there are processors, the work is divided among all of
them, but only as many as there are processors run: others would take these from them.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import weakref
from collections.abc import Callable

from treadle.core import locks, processors
from treadle.core.records import record
from treadle.core.safe_thread import SafeThread
from treadle.runtime.cpu.jit import Jit, process_jit
from treadle.runtime.cpu.pool_memory import HEAD, PATIENCE, SLOT, patience
from treadle.runtime.cpu.thread_count import MOST_THREADS, occupied, threads, when_changed

_MODULE = "pool"  # the name of its code


@record(frozen=True)
class PoolAddresses:
    """The functions for generated code; the last four are those of `program_poll`."""

    parallel: int
    launch: int
    parallel_alone: int
    launch_alone: int
    clock_ns: int
    look: int
    poll: int
    python: int


class Pool:
    """Worker threads. Those that are needed are started when the number of threads is set."""

    def __init__(self, compiler: Jit) -> None:
        code = compiler.load(lambda: _text(compiler), name=_MODULE)
        names = PoolAddresses.__annotations__
        self.addresses = PoolAddresses(*map(code.address, names))
        self._work = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("work"))
        self._init = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(code.address("init_slot"))
        self._set_pool = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(code.address("set_pool"))
        self._quit = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(code.address("quit_slot"))
        self._lock = locks.lock()
        self._spins = compiler.target.tuning.spins
        self._threads, self._occupied, self._processors = 1, 0, 1
        self._fresh_memory()

    def _fresh_memory(self) -> None:
        size = HEAD + MOST_THREADS * SLOT
        self._memory = ctypes.create_string_buffer(size + 64)
        self._base = (ctypes.addressof(self._memory) + 63) // 64 * 64
        self._workers, self._spare = (
            ctypes.c_int64.from_address(self._base + place) for place in (8, 16)
        )
        ctypes.c_int64.from_address(self._base + PATIENCE).value = patience(self._spins)
        self._started = 0
        self._set_pool(self._base)

    @property
    def threads(self) -> int:
        """How many threads the work is divided among, the caller included."""
        return self._threads

    def set_threads(self, count: int) -> None:
        """Divide work among `count` threads from the next parallel region on.

        Raises:
            ValueError: `count` is not between 1 and 256.
        """
        if not 1 <= count <= MOST_THREADS:
            raise ValueError(f"The number of threads must be from 1 to {MOST_THREADS}, got {count}")
        with self._lock:
            self._processors = processors.usable()
            while self._started < min(count, self._processors) - 1:
                self._start()
            self._threads = count
            self._share()

    def leave(self, occupied: int) -> None:
        """Use fewer threads by so many: others keep their processors busy."""
        with self._lock:
            self._occupied = occupied
            self._share()

    def _share(self) -> None:
        threads = max(1, self._threads - self._occupied)
        running = max(1, min(threads, self._processors - self._occupied))
        self._workers.value, self._spare.value = running - 1, threads - running

    def _start(self) -> None:
        slot = self._base + HEAD + self._started * SLOT
        self._init(slot)
        # A worker reads its slot until it ends, which may be after the pool is gone: it keeps the
        # memory.
        kept = ctypes.byref(self._memory, slot - ctypes.addressof(self._memory))
        worker = SafeThread(
            target=self._work,
            args=(kept, self._spins),
            name=f"treadle-{self._started + 1}",
            daemon=True,
        )
        worker.start()
        self._started += 1

    def after_fork(self) -> None:
        """In the child the workers are gone: start others."""
        self._fresh_memory()
        self._occupied = 0
        self.set_threads(self._threads)

    def stop(self) -> None:
        """Let the workers end; what runs later runs on its caller alone."""
        with self._lock:
            self._threads = 1
            self._share()
            for k in range(self._started):
                self._quit(self._base + HEAD + k * SLOT)


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
                made.leave(occupied.count)
                occupied.tell = made.leave
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


def prepare_pool() -> None:
    """Compile the pool's code in the background where it is on no disk yet."""
    compiler = process_jit()
    compiler.prepare(lambda: _text(compiler), _MODULE)


def _text(compiler: Jit) -> str:
    from treadle.runtime.cpu.pool_code import pool_text

    return pool_text(compiler.target)
