"""Jobs that other threads begin before their results are asked for."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Callable

from treadle.core import locks
from treadle.core.living import Living
from treadle.core.safe_thread import SafeThread

Job = Callable[[], None]

_all: Living[Background] = Living()
_SWITCH = 0.0002  # seconds: jobs are short stretches of Python around long calls without the GIL


class Background:
    """Runs jobs in the order in which they come, on threads that end when there are none.

    How many threads there may be is asked when there is none: the system tells it in files.

    Whoever needs a job done that has not begun takes it over (`take`), so results never depend on
    the threads, and with `threads` 0 nothing runs before it is needed. A job must not raise.
    """

    def __init__(self, threads: Callable[[], int]) -> None:
        self._threads = threads
        self._forget()
        _all.add(self)
        if hasattr(os, "register_at_fork"):
            this = weakref.ref(self)
            os.register_at_fork(
                before=lambda: _if_alive(this, Background.drain),
                after_in_child=lambda: _if_alive(this, Background._forget),
            )

    def _forget(self) -> None:
        self._lock = locks.lock()
        self._jobs: dict[str, Job] = {}
        # Threads that will look for another job. Those that are not alive do not count: an
        # interrupt may have kept one from beginning.
        self._working: set[threading.Thread] = set()
        self._most = 0
        self._alive: list[threading.Thread] = []

    @property
    def is_working(self) -> bool:
        """Whether a thread works on jobs, or will look for another one."""
        return any(thread.is_alive() for thread in list(self._working))

    def submit(self, key: str, job: Job) -> None:
        """Let a thread do the job, unless one of that key waits already."""
        if not self._working:
            self._most = self._threads()
        with self._lock:
            if self._most < 1:
                return
            self._jobs.setdefault(key, job)
            self._working = {t for t in self._working if t.is_alive()}
            if len(self._working) >= self._most:
                return
            thread = SafeThread(target=self._work, name="treadle-compiler")
            self._working.add(thread)
            self._alive = [t for t in self._alive if t.is_alive()] + [thread]
            with contextlib.suppress(RuntimeError):  # at the interpreter's end, or too many threads
                thread.start()

    def take(self, key: str | None = None) -> Job | None:
        """The job of a key (None: the next one), which the caller then does; None: no such job."""
        with self._lock:
            if key is None:
                key = next(iter(self._jobs), None)
            return self._jobs.pop(key, None) if key is not None else None

    def drain(self) -> None:
        """Drop the jobs that have not begun and wait for the others."""
        with self._lock:
            self._jobs.clear()
            alive = list(self._alive)
        for thread in alive:
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join()

    def _work(self) -> None:
        this = threading.current_thread()
        with _quick_switches:
            while True:
                with self._lock:
                    self._working.add(this)  # it was dropped where its start was interrupted
                    if not threading.main_thread().is_alive():
                        self._jobs.clear()  # the process is about to end
                    if not self._jobs:
                        self._working.discard(this)
                        return
                    job = self._jobs.pop(next(iter(self._jobs)))
                job()


def settle() -> None:
    """Drop all jobs that have not begun and wait for the others: what they read may change now."""
    for background in _all:
        background.drain()


def _if_alive(reference: weakref.ref[Background], method: Callable[[Background], None]) -> None:
    background = reference()
    if background is not None:
        method(background)


class _QuickSwitches:
    """While jobs run, threads hand the GIL over sooner: a job waits for it between long calls."""

    def __init__(self) -> None:
        self._lock = locks.lock()
        self._inside = 0
        self._before = 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(_SWITCH, self._before))

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                sys.setswitchinterval(self._before)


_quick_switches = _QuickSwitches()
