"""How steps of training would scale on more threads than this machine has: a simulation from
measured times of tasks.

    python -m benchmarks.thread_scaling [--out docs/results/threads_simulated.json]

A program runs on one thread. Where it starts a parallel region for p threads, the p parts into
which the pool and the routines divide it run one after another, and each is timed. What is left of
the step's time is serial. Of a step on p threads the model says

    serial + the sum over regions of (the longest part + hand-over)

where hand-over is the time in which the pool gives a worker its part and sees that it is done. It
writes to one worker after another, but they read at once: the truth is between this and one
hand-over for each worker, which is given, too. Regions have as many parts as are useful at most.

What the model leaves out: parts that run at once share the bandwidth of memory and the last cache,
and have first and second caches of their own, whereas here the parts find in the cache what others
have left; clocks sink when all cores are busy; cores may be of two kinds, or two threads share one.
It is an upper bound of what the division of the work allows, not a promise of times.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries import LIBRARIES
from benchmarks.workload import all_workloads, load
from treadle.runtime.cpu import threads as pools
from treadle.runtime.cpu.builder.function import Callee, Function
from treadle.runtime.cpu.builder.types import I32, I64, PTR, words
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.jit import process_jit
from treadle.runtime.cpu.pool_code import TASK, add_launch
from treadle.runtime.cpu.program_layout import CALL
from treadle.runtime.cpu.program_poll import signals_unit
from treadle.runtime.cpu.target import Target, host

THREADS = (1, 2, 4, 8, 16, 32, 64)
NAMES = (
    "mlp step 784-100-10 b50 Adam", "mlp step 784-512-512-10 b128 Adam",
    "cnn step 32-64-1024 b50 Adam", "transformer block step b8 t128 d256 h4 Adam",
)  # fmt: skip
ENTRIES = 1 << 18  # words of the log of a step

# Then for every region the number of its parts, and the nanoseconds of each.
_LOG = words("Log", {"parts": I64, "busy": I64, "used": I64})
HEAD = 3  # words before the first region


def _add_clock(unit: Unit) -> Callee:
    """``now()``: nanoseconds."""
    clock_gettime = unit.external("clock_gettime", I32, I32, PTR)

    @unit.function(I64)
    def now(f: Function) -> None:
        time = f.alloca(I64, 2)
        f.call(clock_gettime, 1, time)
        f.ret(time[0] * 1_000_000_000 + time[1])

    return now


def timed_pool_text(target: Target) -> str:
    """A module with `launch` and `parallel` of the pool, which runs parts one after another."""
    unit = Unit()
    unit.variable("log", "internal global ptr null")
    now = _add_clock(unit)

    @unit.function(internal=False, p=PTR)
    def set_log(f: Function, p: Value) -> None:
        f.global_("log", PTR).store(p)
        f.ret()

    @unit.function(internal=False, task=TASK, record=PTR, most=I64, call=CALL.pointer)
    def parallel(f: Function, task: Value, record: Value, most: Value, call: Value) -> None:
        log = f.global_("log", PTR).load().as_pointer(_LOG)
        with f.when(log["busy"].ne(0), "inner"):
            f.call(task, record, 0, 1)
            f.ret()
        log["busy"] = 1
        threads, used = log["parts"], log["used"]
        useful = most.slt(threads).select(most, threads)
        parts = useful.slt(1).select(1, useful)
        entry = log.as_pointer(I64).at(used + HEAD)
        entry[0] = parts
        with f.loop("each", k=0) as each:
            part = each["k"]
            begun = f.call(now)
            f.call(task, record, part, parts)
            entry[part + 1] = f.call(now) - begun
            each.again_if((part + 1).slt(parts), part + 1)
        log["used"] = used + parts + 1
        log["busy"] = 0
        f.ret()

    add_launch(unit, parallel)
    return unit.text(target, signals_unit())


class TimedPool:
    """Stands in the place of the process's pool from now on: no program may have been made."""

    def __init__(self) -> None:
        code = process_jit().load(timed_pool_text(process_jit().target))
        self.log = np.zeros(ENTRIES, np.int64)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("set_log"))(self.log.ctypes.data)
        pool = pools.pool()
        self.hand_over = _hand_over(pool)
        pool.addresses = replace(
            pool.addresses, parallel=code.address("parallel"), launch=code.address("launch")
        )

    def run(self, step: Any, parts: int) -> tuple[float, list[list[int]]]:
        """Nanoseconds of a step, and of the parts of each of its regions."""
        self.log[:HEAD] = parts, 0, 0
        begun = time.perf_counter_ns()
        step()
        took = time.perf_counter_ns() - begun
        entries, regions, place = self.log[HEAD : HEAD + self.log[2]].tolist(), [], 0
        while place < len(entries):
            count = entries[place]
            regions.append(entries[place + 1 : place + 1 + count])
            place += 1 + count
        return took, regions


def _hand_over(pool: Any) -> float:
    """Nanoseconds that a region of parts of 20 microseconds takes on two threads, less those on
    one; the worker spins, as it does in a program."""
    unit = Unit()
    now = _add_clock(unit)

    @unit.function(internal=False, record=PTR, part=I64, parts=I64)
    def wait(f: Function, record: Value, part: Value, parts: Value) -> None:
        begun = f.call(now)
        with f.loop("again") as again:
            again.leave_if((f.call(now) - begun).sgt(20_000))
            again.again()
        f.ret()

    code = process_jit().load(unit.text(host()))
    kinds = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
    parallel = ctypes.CFUNCTYPE(None, *kinds)(pool.addresses.parallel)
    task, before = code.address("wait"), pool.threads
    times: dict[int, list[int]] = {1: [], 2: []}
    for number in range(4000):
        threads = 1 + number // 100 % 2
        pool.set_threads(threads)
        begun = time.perf_counter_ns()
        parallel(task, None, threads, None)
        times[threads].append(time.perf_counter_ns() - begun)
    pool.set_threads(before)
    return statistics.median(times[2]) - statistics.median(times[1])


def simulated(pool: TimedPool, step: Any, seconds: float) -> dict[str, Any]:
    """The model's numbers for a step of training, by number of threads. Parts are as large for slow
    cores as for others: the division does not know them."""
    for _ in range(5):
        pool.run(step, 2)
    even: dict[int, float] = {}
    worst: dict[int, float] = {}
    mixed: dict[int, float] = {}
    sums: dict[int, float] = {}
    for parts in THREADS:
        runs, end = [], time.monotonic() + seconds / len(THREADS)
        while len(runs) < 5 or time.monotonic() < end:
            runs.append(pool.run(step, parts))
        shapes = {tuple(map(len, regions)) for _, regions in runs}
        assert len(shapes) == 1, "a step has the same regions every time"
        medians = [
            np.median([regions[i] for _, regions in runs], axis=0) for i in range(len(runs[0][1]))
        ]
        if parts == 1:
            serial = statistics.median(took - sum(map(sum, regions)) for took, regions in runs)
            count, inside = len(medians), sum(float(m.sum()) for m in medians)
        at_once = pool.hand_over * sum(len(m) > 1 for m in medians)
        in_turn = pool.hand_over * sum(len(m) - 1 for m in medians)
        longest = sum(float(m.max()) for m in medians)
        even[parts], worst[parts] = serial + at_once + longest, serial + in_turn + longest
        longest = sum(float((m * (1 + (np.arange(len(m)) % 2))).max()) for m in medians)
        mixed[parts] = serial + at_once + longest
        sums[parts] = sum(float(m.sum()) for m in medians)
    return {
        "regions": count,
        "serial, us": round(serial / 1e3, 2),
        "in regions on one thread, us": round(inside / 1e3, 2),
        "step, us": {str(p): round(t / 1e3, 1) for p, t in even.items()},
        "speed-up": {str(p): round(even[1] / t, 2) for p, t in even.items()},
        "speed-up where parts are handed out in turn": {
            str(p): round(even[1] / t, 2) for p, t in worst.items()
        },
        "speed-up where half of the cores take twice as long": {
            str(p): round(even[1] / t, 2) for p, t in mixed.items()
        },
        "work in all parts, of that on one thread": {
            str(p): round(t / inside, 2) for p, t in sums.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each workload")
    parser.add_argument("--only", nargs="*", default=NAMES)
    given = parser.parse_args()
    os.environ["TREADLE_NUM_THREADS"] = str(max(THREADS))
    pool, places = TimedPool(), all_workloads()
    rows = []
    for name in given.only:
        job = load(places[name]).job(LIBRARIES["treadle"])
        step = job if callable(job) else lambda job=job: job[0](*job[1:])
        rows.append({"workload": name, **simulated(pool, step, given.seconds)})
        print(json.dumps(rows[-1], indent=1))
    found = {
        "command": "python -m benchmarks.thread_scaling",
        "what": "a simulation: see benchmarks/thread_scaling.py for its model",
        "model": "serial + sum over regions of (longest part + hand-over)",
        "measured": "parts of regions, one after another on one thread; medians",
        "processor": host().cpu,
        "processors": os.cpu_count(),
        "hand-over, us": round(pool.hand_over / 1e3, 3),
        "rows": rows,
    }
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
