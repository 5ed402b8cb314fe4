"""Innermost loops of rank-0 values, in strips: calls stay out of the loop that LLVM improves.

A loop answers Ctrl-C by a poll every so many iterations (`program_poll`). A call inside an
innermost loop, even one that hardly ever happens, keeps LLVM from moving loads out of it and from
vectors. So such a loop is two: the inner one runs a strip of iterations, the outer one polls.

    while i < n: ...     ->     while i < n:
                                    end = min(n, i + strip)
                                    while i < end: ...
                                    if i < n: poll

Where the loop does more than count, the inner one counts the strip down beside its own test.

A flag that ends the loop (``break``, ``return``) is asked at the end of the iteration that sets it,
not by the test before the next one. LLVM then leads the branch that sets it out of the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.runtime.cpu.inner_loops import (
    after_loop,
    below,
    inner,
    iteration,
    leave,
    phis,
    registers,
    test_of,
)
from treadle.runtime.cpu.loop_versions import versions
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_carried import bind, start_of, value_type
from treadle.runtime.cpu.program_entry import INTERRUPTED
from treadle.runtime.schedule.steps import (
    Block,
    Branch,
    Check,
    Counted,
    Evaluate,
    LoadScalar,
    Loop,
    Position,
    Update,
)

FIRST_STRIP = 256  # iterations until the first poll, which finds out how long they take
UNINTERRUPTED = 1 << 14  # iterations that need no poll: milliseconds at most, on any machine
_GROWING = ("buffer", "grown")


def is_light(step: Loop) -> bool:
    """Whether the iterations are nothing but rank-0 values and elements of arrays."""
    grows = any(c.place is not None and c.place.kind in _GROWING for c in step.carried)
    return not grows and _is_light(step.condition) and _is_light(step.body)


def _is_light(block: Block) -> bool:
    return all(
        isinstance(s, Evaluate | LoadScalar | Check | Position)
        or (isinstance(s, Update) and s.refuse is None and _one_element(s))
        or (isinstance(s, Branch) and _is_light(s.then) and _is_light(s.otherwise))
        for s in block.steps
    )


def _one_element(step: Update) -> bool:
    return all(v.spec.rank == 0 for v in step.node.inputs[1:])


def emit_strips(emitter: Emitter, step: Loop) -> None:
    """A light loop."""
    emitter.improved = True
    positions = dict(emitter.positions)
    fn, k = emitter.fn, emitter.fn.unique()
    starts = [start_of(emitter, c) for c in step.carried]
    if step.most is not None and step.most <= UNINTERRUPTED:
        fn.branch(f"strip{k}")
        fn.label(f"strip{k}")
        _uninterrupted(emitter, step, k, starts)
        fn.branch(f"exit{k}")
    elif step.counted is not None:
        _counted(emitter, step, k, starts)
    else:
        _tested(emitter, step, k, starts)
    fn.label(f"exit{k}")
    emitter.positions = positions


def _uninterrupted(emitter: Emitter, step: Loop, k: int, starts: Sequence[list[str]]) -> None:
    """A loop without polls."""
    counted = step.counted
    numbers = [n for n, c in enumerate(step.carried) if counted and c.param is counted.counter]
    if counted is None or not numbers:
        inner(emitter, step, k, starts, None)
        return
    limit = _limit(emitter, counted)
    versions(emitter, step, k, starts, starts[numbers[0]][0], limit)


def _counted(emitter: Emitter, step: Loop, k: int, starts: Sequence[list[str]]) -> None:
    """The number of iterations is known when the loop begins."""
    fn, counted = emitter.fn, step.counted
    assert counted is not None
    limit = _limit(emitter, counted)
    kind, countdown = value_type(emitter, counted.counter), _countdown(emitter)
    fn.branch(f"pre{k}")
    fn.label(f"pre{k}")
    fn.branch(f"more{k}")
    fn.label(f"more{k}")
    mark = len(fn.lines)
    outer = bind(emitter, step, f"y{k}")
    some = below(emitter, step, limit)
    fn.emit(f"br i1 {some}, label %strip{k}, label %exit{k}")
    fn.label(f"strip{k}")
    first = emitter.registers[counted.counter]
    length = fn.load_word(countdown)
    length = length if kind == "i64" else fn.value(f"trunc i64 {length} to {kind}")
    kinds = f"{kind} {{}}, {kind} {{}}"
    end = fn.call(f"{kind} @llvm.sadd.sat.{kind}({kind}, {kind})", kinds.format(first, length))
    end = fn.call(f"{kind} @llvm.smin.{kind}({kind}, {kind})", kinds.format(limit, end))
    inner = versions(emitter, step, k, registers(outer), first, end)
    again = below(emitter, step, limit)
    fn.emit(f"br i1 {again}, label %poll{k}, label %done{k}, !prof !1")
    after = _poll(emitter, k, countdown)
    fn.branch(f"more{k}")
    fn.label(f"done{k}")
    fn.branch(f"more{k}")
    values = registers(inner)
    fn.lines[mark:mark] = phis(
        outer, (starts, f"pre{k}"), (values, after), (values, f"done{k}")
    )  # fmt: skip
    bind(emitter, step, f"y{k}")


def _tested(emitter: Emitter, step: Loop, k: int, starts: Sequence[list[str]]) -> None:
    """Any test: the inner loop counts its strip down."""
    fn, countdown = emitter.fn, _countdown(emitter)
    fn.branch(f"pre{k}")
    fn.label(f"pre{k}")
    fn.branch(f"strip{k}")
    fn.label(f"strip{k}")
    mark = len(fn.lines)
    outer = bind(emitter, step, f"y{k}")
    length = fn.load_word(countdown)
    fn.branch(f"head{k}")
    fn.label(f"head{k}")
    within = len(fn.lines)
    names = bind(emitter, step, f"x{k}")
    test = test_of(emitter, step, None)
    tested = fn.block
    fn.emit(f"br i1 {test}, label %body{k}, label %done{k}")
    fn.label(f"body{k}")
    # Not at the end: LLVM moves the test there, which then sees what the iteration has found.
    zero = fn.value(f"icmp eq i64 %left{k}, 0")
    fn.emit(f"br i1 {zero}, label %poll{k}, label %go{k}, !prof !1")
    fn.label(f"go{k}")
    left = fn.value(f"sub i64 %left{k}, 1")
    ends = iteration(emitter, step, names)
    again = leave(emitter, step, k, ends)
    fn.label(f"latch{k}")
    fn.branch(f"head{k}")
    after = _poll(emitter, k, countdown)
    fn.branch(f"strip{k}")
    fn.lines[within:within] = [
        f"  %left{k} = phi i64 [{length}, %strip{k}], [{left}, %latch{k}]",
        *phis(names, (registers(outer), f"strip{k}"), (again, f"latch{k}")),
    ]
    fn.lines[mark:mark] = phis(outer, (starts, f"pre{k}"), (registers(names), after))
    bind(emitter, step, f"x{k}")
    after_loop(emitter, step, k, "done", (names, tested), ends)
    fn.branch(f"exit{k}")


def _limit(emitter: Emitter, counted: Counted) -> str:
    limit = counted.limit
    return str(limit) if isinstance(limit, int) else emitter.registers[limit]


def _countdown(emitter: Emitter) -> str:
    """The word that holds the length of the next strip."""
    countdown = emitter.fn.alloca("i64, align 8")
    emitter.fn.entry.append(f"  store i64 {FIRST_STRIP}, ptr {countdown}")
    return countdown


def _poll(emitter: Emitter, k: int, countdown: str) -> str:
    """Ask whether a signal came; gives the block from which the loop goes on."""
    fn = emitter.fn
    fn.label(f"poll{k}")
    polled = fn.value(f"call i64 @poll(ptr %state, ptr {emitter.record}, ptr {countdown})")
    emitter.fail_if(fn.value(f"icmp slt i64 {polled}, 0"), INTERRUPTED)
    return fn.block
