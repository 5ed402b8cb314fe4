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

from treadle.core import dtypes
from treadle.runtime.cpu.hoisted_checks import Counting
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_control import Names, bind, end_of, start_of, value_type
from treadle.runtime.cpu.program_entry import INTERRUPTED
from treadle.runtime.cpu.program_steps import emit_block
from treadle.runtime.schedule.steps import (
    Block,
    Branch,
    Check,
    Evaluate,
    LoadScalar,
    Loop,
    Position,
    Update,
)

FIRST_STRIP = 256  # iterations until the first poll, which finds out how long they take
UNINTERRUPTED = 1 << 14  # iterations that need no poll
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


def _inner(
    emitter: Emitter, step: Loop, k: int, starts: Sequence[list[str]], end: str | None
) -> Names:
    """The loop itself, entered from block `strip{k}` and left for `after{k}`.

    end: what the counter stops at instead of the loop's own test.
    """
    fn = emitter.fn
    fn.branch(f"head{k}")
    fn.label(f"head{k}")
    mark = len(fn.lines)
    names = bind(emitter, step, f"x{k}")
    test = _test(emitter, step, end)
    tested = fn.block
    fn.emit(f"br i1 {test}, label %body{k}, label %after{k}")
    fn.label(f"body{k}")
    ends = _body(emitter, step, names)
    again = _leave(emitter, step, k, ends)
    fn.label(f"latch{k}")
    fn.branch(f"head{k}")
    fn.lines[mark:mark] = phis(names, (starts, f"strip{k}"), (again, f"latch{k}"))
    return _after(emitter, step, k, "after", (names, tested), ends)


def _leave(emitter: Emitter, step: Loop, k: int, ends: list[list[str]]) -> list[list[str]]:
    """The end of an iteration: to block `leave{k}` where a flag ends the loop, else to `latch{k}`.
    Gives the values for the next iteration."""
    fn, again = emitter.fn, list(ends)
    for flag in step.flags:
        number, stay = step.carried.index(flag), fn.unique()
        fn.emit(f"br i1 {ends[number][0]}, label %leave{k}, label %stay{stay}")
        fn.label(f"stay{stay}")
        again[number] = ["false"]
    fn.branch(f"latch{k}")
    return again


def _after(
    emitter: Emitter, step: Loop, k: int, exit: str, test: tuple[Names, str], ends: list[list[str]]
) -> Names:
    """The block `{exit}{k}` after a loop, which follows its test or a flag."""
    fn, (names, tested) = emitter.fn, test
    if not step.flags:
        fn.label(f"{exit}{k}")
        return names
    fn.label(f"leave{k}")
    fn.branch(f"{exit}{k}")
    fn.label(f"{exit}{k}")
    merged = bind(emitter, step, f"w{k}")
    fn.lines += phis(merged, (_registers(names), tested), (ends, f"leave{k}"))
    return merged


def _uninterrupted(emitter: Emitter, step: Loop, k: int, starts: Sequence[list[str]]) -> None:
    """A loop without polls."""
    counted = step.counted
    numbers = [n for n, c in enumerate(step.carried) if counted and c.param is counted.counter]
    if counted is None or not numbers:
        _inner(emitter, step, k, starts, None)
        return
    limit = emitter.registers[counted.limit]
    _versions(emitter, step, k, starts, starts[numbers[0]][0], limit)


def _versions(
    emitter: Emitter, step: Loop, k: int, starts: Sequence[list[str]], first: str, end: str
) -> Names:
    """As `_inner`; without checks where none is needed while the counter goes to `end`."""
    fn, counting = emitter.fn, Counting(emitter, step)
    if not counting.positions:
        return _inner(emitter, step, k, starts, end)
    inside = counting.all_inside(first, end)
    fast, slow, known = fn.unique(), fn.unique(), dict(emitter.positions)
    fn.emit(f"br i1 {inside}, label %strip{fast}, label %strip{slow}, !prof !2")
    ways = []
    for number, proved in ((fast, counting.positions), (slow, [])):
        fn.label(f"strip{number}")
        emitter.inside, emitter.positions = frozenset(proved), dict(known)
        names = _inner(emitter, step, number, starts, end)
        ways.append((_registers(names), f"after{number}"))
        fn.branch(f"after{k}")
    fn.label(f"after{k}")
    merged = bind(emitter, step, f"z{k}")
    fn.lines += phis(merged, *ways)
    return merged


def _test(emitter: Emitter, step: Loop, end: str | None) -> str:
    if end is not None:
        return _below(emitter, step, end)
    emitter.contraction.depth += not step.exact
    emit_block(emitter, step.condition)
    emitter.contraction.depth -= not step.exact
    return emitter.registers[step.condition.results[0].value]


def _body(emitter: Emitter, step: Loop, names: Names) -> list[list[str]]:
    """One iteration; gives the values for the next one."""
    symbols = dict(emitter.symbols)
    emitter.contraction.depth += not step.exact
    emit_block(emitter, step.body)
    emitter.contraction.depth -= not step.exact
    pairs = zip(step.carried, step.body.results, names, strict=True)
    ends = [end_of(emitter, c, o, n) for c, o, n in pairs]
    emitter.symbols = symbols
    return ends


def _below(emitter: Emitter, step: Loop, end: str) -> str:
    """Whether the counter is below a number."""
    assert step.counted is not None
    counter = step.counted.counter
    args, dtype = [emitter.registers[counter], end], counter.spec.dtype
    return emitter.elements.apply("lt", args, [dtype] * 2, dtypes.bool)


def _counted(emitter: Emitter, step: Loop, k: int, starts: Sequence[list[str]]) -> None:
    """The number of iterations is known when the loop begins."""
    fn, counted = emitter.fn, step.counted
    assert counted is not None
    limit = emitter.registers[counted.limit]
    kind, countdown = value_type(emitter, counted.counter), _countdown(emitter)
    fn.branch(f"pre{k}")
    fn.label(f"pre{k}")
    fn.branch(f"more{k}")
    fn.label(f"more{k}")
    mark = len(fn.lines)
    outer = bind(emitter, step, f"y{k}")
    some = _below(emitter, step, limit)
    fn.emit(f"br i1 {some}, label %strip{k}, label %exit{k}")
    fn.label(f"strip{k}")
    first = emitter.registers[counted.counter]
    length = fn.load_word(countdown)
    length = length if kind == "i64" else fn.value(f"trunc i64 {length} to {kind}")
    kinds = f"{kind} {{}}, {kind} {{}}"
    end = fn.call(f"{kind} @llvm.sadd.sat.{kind}({kind}, {kind})", kinds.format(first, length))
    end = fn.call(f"{kind} @llvm.smin.{kind}({kind}, {kind})", kinds.format(limit, end))
    inner = _versions(emitter, step, k, _registers(outer), first, end)
    again = _below(emitter, step, limit)
    fn.emit(f"br i1 {again}, label %poll{k}, label %done{k}, !prof !1")
    after = _poll(emitter, k, countdown)
    fn.branch(f"more{k}")
    fn.label(f"done{k}")
    fn.branch(f"more{k}")
    values = _registers(inner)
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
    test = _test(emitter, step, None)
    tested = fn.block
    fn.emit(f"br i1 {test}, label %body{k}, label %done{k}")
    fn.label(f"body{k}")
    # Not at the end: LLVM moves the test there, which then sees what the iteration has found.
    zero = fn.value(f"icmp eq i64 %left{k}, 0")
    fn.emit(f"br i1 {zero}, label %poll{k}, label %go{k}, !prof !1")
    fn.label(f"go{k}")
    left = fn.value(f"sub i64 %left{k}, 1")
    ends = _body(emitter, step, names)
    again = _leave(emitter, step, k, ends)
    fn.label(f"latch{k}")
    fn.branch(f"head{k}")
    after = _poll(emitter, k, countdown)
    fn.branch(f"strip{k}")
    fn.lines[within:within] = [
        f"  %left{k} = phi i64 [{length}, %strip{k}], [{left}, %latch{k}]",
        *phis(names, (_registers(outer), f"strip{k}"), (again, f"latch{k}")),
    ]
    fn.lines[mark:mark] = phis(outer, (starts, f"pre{k}"), (_registers(names), after))
    bind(emitter, step, f"x{k}")
    _after(emitter, step, k, "done", (names, tested), ends)
    fn.branch(f"exit{k}")


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


def _registers(names: Names) -> list[list[str]]:
    return [[name for _, name in group] for group in names]


def phis(names: Names, *edges: tuple[Sequence[list[str]], str]) -> list[str]:
    """The lines of a block's phis, given the values and the block of every way into it."""
    lines = []
    for n, group in enumerate(names):
        for j, (kind, name) in enumerate(group):
            pairs = ", ".join(f"[{values[n][j]}, %{block}]" for values, block in edges)
            lines.append(f"  {name} = phi {kind} {pairs}")
    return lines
