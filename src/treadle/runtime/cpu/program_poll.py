"""Answering Ctrl-C from a compiled loop.

The GIL is released while a loop runs. A countdown in every loop calls `@poll` when it reaches
zero; that looks at the clock, and only when a period has passed takes the GIL to see whether a
signal came. The countdown adapts to the length of an iteration, and the period to how long the
GIL was waited for: with a busy Python thread beside it, polling stays below 5 % of the time.
"""

from __future__ import annotations

from treadle.runtime.cpu.llvm_text import Module
from treadle.runtime.cpu.program_state import fixed

PERIOD_NS = 10_000_000
LONGEST_NS = 200_000_000
MOST_ITERATIONS = 1 << 20

# The record of a call: thread state, time of the last look, period; see `thread_record`.
RECORD_WORDS = 3


def add_poll(module: Module) -> None:
    """Define ``i64 @poll(state, record, countdown pointer)``: the next countdown, or -1 when a
    Python exception is set."""
    for name in ("smin", "smax"):
        module.declare(f"i64 @llvm.{name}.i64(i64, i64)")
    module.define("poll", _TEXT)


_TEXT = f"""define internal i64 @poll(ptr %state, ptr %record, ptr %count) noinline #0 {{
entry:
  %now = call i64 @clock_ns(ptr %state)
  %lastp = getelementptr i64, ptr %record, i64 1
  %last = load i64, ptr %lastp
  %periodp = getelementptr i64, ptr %record, i64 2
  %period = load i64, ptr %periodp
  %c = load i64, ptr %count
  %passed = sub i64 %now, %last
  %due = icmp sge i64 %passed, %period
  br i1 %due, label %look, label %early
early:
  %eighth = sdiv i64 %period, 8
  %often = icmp slt i64 %passed, %eighth
  %twice = shl i64 %c, 1
  %grown = call i64 @llvm.smin.i64(i64 %twice, i64 {MOST_ITERATIONS})
  %c1 = select i1 %often, i64 %grown, i64 %c
  store i64 %c1, ptr %count
  ret i64 %c1
look:
  %late4 = mul i64 %period, 4
  %late = icmp sgt i64 %passed, %late4
  %half0 = sdiv i64 %c, 2
  %half = or i64 %half0, 1
  %c2 = select i1 %late, i64 %half, i64 %c
  store i64 %c2, ptr %count
  %restorep = getelementptr ptr, ptr %state, i64 {fixed("PyEval_RestoreThread")}
  %restore = load ptr, ptr %restorep
  %thread = load ptr, ptr %record
  call void %restore(ptr %thread)
  %then = call i64 @clock_ns(ptr %state)
  store i64 %then, ptr %lastp
  %waited = sub i64 %then, %now
  %w20 = mul i64 %waited, 20
  %capped = call i64 @llvm.smin.i64(i64 %w20, i64 {LONGEST_NS})
  %next = call i64 @llvm.smax.i64(i64 %capped, i64 {PERIOD_NS})
  store i64 %next, ptr %periodp
  %checkp = getelementptr ptr, ptr %state, i64 {fixed("PyErr_CheckSignals")}
  %check = load ptr, ptr %checkp
  %r = call i32 %check()
  %savep = getelementptr ptr, ptr %state, i64 {fixed("PyEval_SaveThread")}
  %save = load ptr, ptr %savep
  %thread2 = call ptr %save()
  store ptr %thread2, ptr %record
  %raised = icmp slt i32 %r, 0
  %result = select i1 %raised, i64 -1, i64 %c2
  ret i64 %result
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
