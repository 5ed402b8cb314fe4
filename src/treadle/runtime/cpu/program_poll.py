"""Answering Ctrl-C from compiled code.

The GIL is released while a program runs for long. A countdown in every loop calls `@poll` when it
reaches zero; kernels and routines of the library, which do their work piece by piece, call `@look`
between two pieces. Both look at the clock, and only when a period has passed take the GIL to see
whether a signal came. The countdown adapts to the length of an iteration, and the period to how
long the GIL was waited for: with a busy Python thread beside it, asking stays below 5 % of the
time.

Python's handlers run in the program's own thread only. Threads that work for it see in the record
of the call that they are to stop.
"""

from __future__ import annotations

from treadle.runtime.cpu.llvm_text import Module
from treadle.runtime.cpu.program_entry import INTERRUPTED, RAISED
from treadle.runtime.cpu.program_state import fixed

PERIOD_NS = 10_000_000
LONGEST_NS = 200_000_000
MOST_ITERATIONS = 1 << 20

# The record of a call, a word each: the state of its Python thread (null while it holds the GIL),
# when it looked last, the period, whether it is to stop, its state table, the thread's number.
THREAD, LAST, PERIOD, STOPPED, TABLE, IDENT = range(6)
RECORD_WORDS = 6

DECLARATIONS = "i64 @llvm.smin.i64(i64, i64)", "i64 @llvm.smax.i64(i64, i64)"


def add_poll(module: Module) -> None:
    """Define ``i64 @poll(state, record, countdown pointer)``: the next countdown, or -1 when a
    Python exception is set."""
    add_look(module)
    module.define("poll", _POLL)


def add_look(module: Module) -> None:
    """Define ``i64 @look(record)``: the time in nanoseconds, or -1 where the work is to stop. The
    record may be null: then it never is."""
    for declaration in DECLARATIONS:
        module.declare(declaration)
    module.define("look", LOOK)


def add_python(module: Module) -> None:
    """Define ``i64 @python(state, record, number, words, frame)``: run a callback; gives 0 or a
    status. The record is null where the program keeps the GIL.

    A signal that has come meanwhile is answered before Python begins: an exception of its handler
    at the first instruction of what C calls would be told and lost.
    """
    module.define("python", _PYTHON)


def _field(name: str, number: int) -> str:
    return f"  %{name}.p = getelementptr i64, ptr %record, i64 {number}"


_POLL = f"""define internal i64 @poll(ptr %state, ptr %record, ptr %count) noinline #0 {{
entry:
  %now = call i64 @clock_ns(ptr %state)
{_field("last", LAST)}
  %last = load i64, ptr %last.p
{_field("period", PERIOD)}
  %period = load i64, ptr %period.p
  %c = load i64, ptr %count
  %passed = sub i64 %now, %last
  %due = icmp sge i64 %passed, %period
  br i1 %due, label %ask, label %early
early:
  %eighth = sdiv i64 %period, 8
  %often = icmp slt i64 %passed, %eighth
  %twice = shl i64 %c, 1
  %grown = call i64 @llvm.smin.i64(i64 %twice, i64 {MOST_ITERATIONS})
  %c1 = select i1 %often, i64 %grown, i64 %c
  store i64 %c1, ptr %count
  ret i64 %c1
ask:
  %late4 = mul i64 %period, 4
  %late = icmp sgt i64 %passed, %late4
  %half0 = sdiv i64 %c, 2
  %half = or i64 %half0, 1
  %c2 = select i1 %late, i64 %half, i64 %c
  store i64 %c2, ptr %count
  %raised = call i1 @raised(ptr %record, i64 %now)
  %result = select i1 %raised, i64 -1, i64 %c2
  ret i64 %result
}}
"""

_PYTHON = f"""define internal i64 @python(
    ptr %state, ptr %record, i64 %number, ptr %words, ptr %frame
) noinline #0 {{
entry:
  %none = icmp eq ptr %record, null
  br i1 %none, label %check, label %some
some:
  %released = load ptr, ptr %record
  %kept = icmp eq ptr %released, null
  br i1 %kept, label %check, label %take
take:
  %restorep = getelementptr ptr, ptr %state, i64 {fixed("PyEval_RestoreThread")}
  %restore = load ptr, ptr %restorep
  call void %restore(ptr %released)
  br label %check
check:
  %thread = phi ptr [null, %entry], [null, %some], [%released, %take]
  %checkp = getelementptr ptr, ptr %state, i64 {fixed("PyErr_CheckSignals")}
  %check.f = load ptr, ptr %checkp
  %r = call i32 %check.f()
  %raised = icmp slt i32 %r, 0
  br i1 %raised, label %done, label %call
call:
  %callbackp = getelementptr ptr, ptr %state, i64 {fixed("callback")}
  %callback = load ptr, ptr %callbackp
  %failed = call i64 %callback(i64 %number, ptr %words, ptr %frame)
  %bad = icmp ne i64 %failed, 0
  %told = select i1 %bad, i64 {RAISED}, i64 0
  br label %done
done:
  %status = phi i64 [{INTERRUPTED}, %check], [%told, %call]
  %release = icmp ne ptr %thread, null
  br i1 %release, label %save, label %out
save:
  %savep = getelementptr ptr, ptr %state, i64 {fixed("PyEval_SaveThread")}
  %save.f = load ptr, ptr %savep
  %again = call ptr %save.f()
  store ptr %again, ptr %record
  br label %out
out:
  ret i64 %status
}}
"""

LOOK = f"""define internal i64 @look(ptr %record) noinline #0 {{
entry:
  %none = icmp eq ptr %record, null
  br i1 %none, label %never, label %some
never:
  ret i64 0
some:
{_field("stopped", STOPPED)}
  %stopped = load atomic i64, ptr %stopped.p monotonic, align 8
  %ends = icmp ne i64 %stopped, 0
  br i1 %ends, label %stop, label %time
stop:
  ret i64 -1
time:
{_field("state", TABLE)}
  %state = load ptr, ptr %state.p
  %now = call i64 @clock_ns(ptr %state)
{_field("last", LAST)}
  %last = load atomic i64, ptr %last.p monotonic, align 8
  %first = icmp eq i64 %last, 0
  br i1 %first, label %begin, label %later
begin:
  store atomic i64 %now, ptr %last.p monotonic, align 8
  ret i64 %now
later:
{_field("period", PERIOD)}
  %period = load i64, ptr %period.p
  %passed = sub i64 %now, %last
  %due = icmp sge i64 %passed, %period
  br i1 %due, label %whose, label %go
go:
  ret i64 %now
whose:                                  ; Python asks the thread of the call only
{_field("ident", IDENT)}
  %own = load i64, ptr %ident.p
  %this.p = getelementptr ptr, ptr %state, i64 {fixed("PyThread_get_thread_ident")}
  %this.f = load ptr, ptr %this.p
  %this = call i64 %this.f()
  %mine = icmp eq i64 %this, %own
  br i1 %mine, label %ask, label %go
ask:
  %raised = call i1 @raised(ptr %record, i64 %now)
  %result = select i1 %raised, i64 -1, i64 %now
  ret i64 %result
}}

; takes the GIL and sees whether a signal's handler raises
define internal i1 @raised(ptr %record, i64 %now) noinline #0 {{
entry:
  %thread = load ptr, ptr %record
  %holds = icmp eq ptr %thread, null
  br i1 %holds, label %no, label %take
no:
  ret i1 false
take:
{_field("state", TABLE)}
  %state = load ptr, ptr %state.p
  %restorep = getelementptr ptr, ptr %state, i64 {fixed("PyEval_RestoreThread")}
  %restore = load ptr, ptr %restorep
  call void %restore(ptr %thread)
  %then = call i64 @clock_ns(ptr %state)
{_field("last", LAST)}
  store atomic i64 %then, ptr %last.p monotonic, align 8
  %waited = sub i64 %then, %now
  %w20 = mul i64 %waited, 20
  %capped = call i64 @llvm.smin.i64(i64 %w20, i64 {LONGEST_NS})
  %next = call i64 @llvm.smax.i64(i64 %capped, i64 {PERIOD_NS})
{_field("period", PERIOD)}
  store i64 %next, ptr %period.p
  %checkp = getelementptr ptr, ptr %state, i64 {fixed("PyErr_CheckSignals")}
  %check = load ptr, ptr %checkp
  %r = call i32 %check()
  %savep = getelementptr ptr, ptr %state, i64 {fixed("PyEval_SaveThread")}
  %save = load ptr, ptr %savep
  %thread2 = call ptr %save()
  store ptr %thread2, ptr %record
  %raised = icmp slt i32 %r, 0
  br i1 %raised, label %stop, label %no
stop:
{_field("stopped", STOPPED)}
  store atomic i64 1, ptr %stopped.p monotonic, align 8
  ret i1 true
}}

define internal i64 @clock_ns(ptr %state) #0 {{
entry:
  %time = alloca [2 x i64], align 8
  %clockp = getelementptr ptr, ptr %state, i64 {fixed("clock_gettime")}
  %clock = load ptr, ptr %clockp
  %r = call i32 %clock(i32 1, ptr %time)
  %s = load i64, ptr %time
  %nsp = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %nsp
  %s9 = mul i64 %s, 1000000000
  %now = add i64 %s9, %ns
  ret i64 %now
}}
"""
