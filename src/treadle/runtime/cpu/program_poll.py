"""Answering Ctrl-C from compiled code.

The GIL is released while a program runs for long. A countdown in every loop calls `poll` when it
reaches zero; kernels and routines of the library, which do their work piece by piece, call `look`
between two pieces. Both look at the clock, and only when a period has passed take the GIL to see
whether a signal came. The countdown adapts to the length of an iteration, and the period to how
long the GIL was waited for: with a busy Python thread beside it, asking stays below 5 % of the
time.

Python's handlers run in the program's own thread only. Threads that work for it see in the record
of the call that they are to stop.

All programs call the same functions, which are compiled with the pool of threads (`pool_code`) and
found in the state table.
"""

from __future__ import annotations

import functools

from treadle.runtime.cpu.builder.function import Callee, Function
from treadle.runtime.cpu.builder.types import I1, I64, PTR, pointer
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.program_entry import INTERRUPTED, RAISED
from treadle.runtime.cpu.program_layout import CALL, STATE
from treadle.runtime.cpu.run_memory import StateWords

PERIOD_NS = 10_000_000
LONGEST_NS = 200_000_000
MOST_ITERATIONS = 1 << 20
_PATIENCE = 20  # waiting for the GIL takes at most one part in so many of the time

# The words of a call's record (`program_layout.CALL`).
THREAD, LAST, PERIOD, STOPPED, TABLE, IDENT = (at // 8 for at, _ in CALL.fields.values())
RECORD_WORDS = CALL.bytes // 8


def poll(state: StateWords, record: str, countdown: str) -> str:
    """Call `poll`: the next countdown, or -1 when a Python exception is set.

    Args:
        record: the record of the call.
        countdown: the address of the word that holds the countdown.
    """
    words = f"ptr %state, ptr {record}, ptr {countdown}"
    return state.fn.value(f"call i64 {state.fixed('poll')}({words})")


def clock(state: StateWords) -> str:
    """Call `clock_ns`: the time in nanoseconds."""
    return state.fn.value(f"call i64 {state.fixed('clock_ns')}(ptr %state)")


@functools.cache
def signals_unit() -> Unit:
    """The functions that programs, kernels and routines of the library call."""
    unit = Unit()
    raised = _add_look(unit)
    _add_poll(unit, raised)
    _add_python(unit)
    return unit


def _add_look(unit: Unit) -> Callee:
    """``i64 look(record)``: the time in nanoseconds, or -1 where the work is to stop. The record
    may be null: then it never is."""

    @unit.function(I64, internal=False, state=STATE.pointer)
    def clock_ns(f: Function, state: Value) -> None:
        """The time of the monotonic clock."""
        time = f.alloca(I64, 2)
        f.call(state["clock_gettime"], 1, time)
        f.ret(time[0] * 1_000_000_000 + time[1])

    @unit.function(I1, attributes="noinline", record=CALL.pointer, now=I64)
    def raised(f: Function, record: Value, now: Value) -> None:
        """Take the GIL and see whether a signal's handler raises."""
        no = f.block("no")
        thread = record["thread"]
        f.refuse(thread.eq(None), no, "take")
        state = record["state"]
        f.call(state["PyEval_RestoreThread"], thread)
        then = f.call(clock_ns, state)
        record.place("last").store(then, "monotonic")
        waited = then - now
        record["period"] = f.smax(f.smin(waited * _PATIENCE, LONGEST_NS), PERIOD_NS)
        result = f.call(state["PyErr_CheckSignals"])
        record["thread"] = f.call(state["PyEval_SaveThread"])
        f.require(result.slt(0), no, "stop")
        record.place("stopped").store(1, "monotonic")
        f.ret(True)
        f.begin(no)
        f.ret(False)

    @unit.function(I64, internal=False, record=CALL.pointer)
    def look(f: Function, record: Value) -> None:
        with f.when(record.eq(None), "never"):
            f.ret(0)
        with f.when(record.place("stopped").load("monotonic").ne(0), "stop"):
            f.ret(-1)
        state = record["state"]
        now = f.call(clock_ns, state)
        last = record.place("last").load("monotonic")
        with f.when(last.eq(0), "begin"):
            record.place("last").store(now, "monotonic")
            f.ret(now)
        go, due = f.block("go"), f.block("due")
        f.branch((now - last).sge(record["period"]), due, go)
        f.begin(go)
        f.ret(now)
        f.begin(due)  # Python asks the thread of the call only
        own = record["ident"]
        f.require(f.call(state["PyThread_get_thread_ident"]).eq(own), go, "ask")
        f.ret(f.call(raised, record, now).select(-1, now))

    return raised


def _add_poll(unit: Unit, raised: Callee) -> None:
    """``i64 poll(state, record, countdown)``: the next countdown, kept where the pointer says, or
    -1 when a Python exception is set."""

    @unit.function(
        I64, internal=False, state=STATE.pointer, record=CALL.pointer, count=pointer(I64)
    )
    def poll(f: Function, state: Value, record: Value, count: Value) -> None:
        now = f.call(unit["clock_ns"], state)
        last, period = record["last"], record["period"]
        left = count.load()
        passed = now - last
        ask = f.block("ask")
        f.refuse(passed.sge(period), ask, "early")
        often = passed.slt(period.sdiv(8))
        longer = often.select(f.smin(left << 1, MOST_ITERATIONS), left)
        count.store(longer)
        f.ret(longer)
        f.begin(ask)
        late = passed.sgt(period * 4)
        shorter = late.select(left.sdiv(2) | 1, left)
        count.store(shorter)
        f.ret(f.call(raised, record, now).select(-1, shorter))


def _add_python(unit: Unit) -> None:
    """``i64 python(state, record, number, words, frame)``: run a callback; gives 0 or a status. The
    record is null where the program keeps the GIL.

    A signal that has come meanwhile is answered before Python begins: an exception of its handler
    at the first instruction of what C calls would be told and lost.
    """

    @unit.function(
        I64, internal=False, state=STATE.pointer, record=CALL.pointer, number=I64, words=PTR,
        frame=PTR,
    )  # fmt: skip
    def python(
        f: Function, state: Value, record: Value, number: Value, words: Value, frame: Value
    ) -> None:
        check, done = f.block("check", thread=PTR), f.block("done", status=I64)
        f.refuse(record.eq(None), check(None))
        released = record["thread"]
        f.refuse(released.eq(None), check(None), "take")
        f.call(state["PyEval_RestoreThread"], released)
        f.jump(check(released))
        f.begin(check)
        signals = f.call(state["PyErr_CheckSignals"])
        f.refuse(signals.slt(0), done(INTERRUPTED), "call")
        failed = f.call(state["callback"], number, words, frame)
        f.jump(done(failed.ne(0).select(RAISED, 0)))
        f.begin(done)
        with f.when(check["thread"].ne(None), "save"):
            record["thread"] = f.call(state["PyEval_SaveThread"])
        f.ret(done["status"])
