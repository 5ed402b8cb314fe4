"""When the steps of programs ran: what profiled programs write down, for `treadle.profiler`.

Beside each program there may be a second one of the same schedule that looks at the clock before
and after each step that does more than a few operations (`Executable.profiled`). It runs instead of
the first while `step_times.on`. It writes an entry of five words into one table of the process: the
number of the program, the number of the step, the thread, and when the step began and ended, in
nanoseconds of ``time.perf_counter_ns``. Threads take entries one after another; what comes when the
table is full is counted only.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

from treadle.core import locks
from treadle.core.tensor import NDArray

ENTRY = 5  # words
MOST_ENTRIES = 1 << 20  # 40 MiB, of which the system gives those that are written
HEAD = 2  # words before the entries: how many were asked for, and how many there are


class Described(NamedTuple):
    """What a profile shows of a step: a name, and texts by what they are called."""

    name: str
    texts: dict[str, str]


class StepTime(NamedTuple):
    """One run of a step."""

    program: str
    step: Described
    thread: int
    begin: int
    end: int


@locks.made_once
def _table() -> NDArray:
    words = np.zeros(HEAD + MOST_ENTRIES * ENTRY, np.int64)
    words[1] = MOST_ENTRIES
    return words


class StepTimes:
    """The table, and the programs whose steps are in it.

    Attributes:
        on: whether programs are to write into it.
    """

    def __init__(self) -> None:
        self.on = False
        self._programs: list[tuple[str, Sequence[Described]]] = []
        self._compiled: list[StepTime] = []
        self._lock = locks.lock()

    @property
    def address(self) -> int:
        """Of the table."""
        return int(_table().ctypes.data)

    def add_program(self, name: str, steps: Sequence[Described]) -> int:
        """The number of a program whose steps are numbered in this order."""
        with self._lock:
            self._programs.append((name, steps))
            return len(self._programs) - 1

    def compiled(self, program: str, since: int) -> None:
        """Tell that a program that writes entries was compiled, from `since` until now."""
        step, now = Described("compile for the profile", {}), perf_counter_ns()
        self._compiled.append(StepTime(program, step, get_ident(), since, now))

    def begin(self) -> None:
        """Forget all entries, and let programs make new ones."""
        words = _table()
        words[HEAD : HEAD + ENTRY * min(int(words[0]), MOST_ENTRIES)] = 0
        words[0] = 0
        self._compiled = []
        self.on = True

    def end(self) -> tuple[list[StepTime], int]:
        """The entries, and how many there was no room for. Programs make no more."""
        self.on = False
        words = _table()
        wanted = int(words[0])
        rows = words[HEAD : HEAD + ENTRY * min(wanted, MOST_ENTRIES)].reshape(-1, ENTRY).tolist()
        found = [
            StepTime(self._programs[p][0], self._programs[p][1][step], thread, begin, end)
            for p, step, thread, begin, end in rows
            if end  # a program of another thread may be writing it
        ]
        return self._compiled + found, max(wanted - MOST_ENTRIES, 0)


step_times = StepTimes()
