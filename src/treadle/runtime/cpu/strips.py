"""Innermost loops of rank-0 values, in strips: calls stay out of the loop that LLVM improves.

A loop answers Ctrl-C by a poll every so many iterations (`program_poll`). A call inside an
innermost loop, even one that hardly ever happens, keeps LLVM from moving loads out of it and from
vectors. So such a loop is two: the inner one runs a strip of iterations, the outer one polls.

    while i < n: ...     ->     while i < n:
                                    end = min(n, i + strip)
                                    while i < end: ...
                                    if i < n: poll

Where a counter does not end the loop alone, or moves by other steps, `paced_loops` finds the end of
a strip; in other loops the inner one counts the strip down beside its own test.

A flag that ends the loop (``break``, ``return``) is tested at the end of the iteration that sets
it, not by the test before the next one. LLVM then lets the branch that sets it leave the loop.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.runtime.cpu.counter_ranges import CounterRange, counter_range
from treadle.runtime.cpu.inner_loops import InnerLoop
from treadle.runtime.cpu.loop_versions import emit_versions
from treadle.runtime.cpu.paced_loops import PacedLoop, is_paced
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_carried import value_type
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
    """Whether the iterations compute nothing but rank-0 values and elements of arrays."""
    grows = any(c.place is not None and c.place.kind in _GROWING for c in step.carried)
    return not grows and _is_light(step.condition) and _is_light(step.body)


def _is_light(block: Block) -> bool:
    return not block.copied and all(
        isinstance(s, Evaluate | LoadScalar | Check | Position)
        or (isinstance(s, Update) and s.refuse is None and _one_element(s))
        or (isinstance(s, Branch) and _is_light(s.then) and _is_light(s.otherwise))
        for s in block.steps
    )


def _one_element(step: Update) -> bool:
    return all(v.spec.rank == 0 for v in step.node.inputs[1:])


def emit_strips(emitter: Emitter, step: Loop) -> None:
    """A light loop."""
    emitter.program.improved = True
    positions = dict(emitter.positions)
    fn, k = emitter.fn, emitter.fn.unique()
    loop = InnerLoop(emitter, step)
    starts = loop.variables.starts()
    reach = _reach(loop, starts)
    most = [n for n in (step.most, None if reach is None else reach.trips) if n is not None]
    if most and min(most) <= UNINTERRUPTED:
        fn.enter(f"strip{k}")
        _uninterrupted(loop, k, starts, reach)
        fn.enter(f"exit{k}")
    elif step.counted is not None:
        _counted(loop, step.counted, k, starts)
    elif is_paced(step):
        _paced(loop, PacedLoop(loop, None), k, starts)
    else:
        _tested(loop, k, starts)
        fn.enter(f"exit{k}")
    emitter.positions = positions


def _reach(loop: InnerLoop, starts: list[str]) -> CounterRange | None:
    """How far the counter goes, if that is known."""
    counting = loop.step.counted or loop.step.paced
    position = None if counting is None else loop.variables.position(counting.counter)
    return None if position is None else counter_range(loop.emitter, loop.step, starts[position])


def _uninterrupted(
    loop: InnerLoop, k: int, starts: list[str], reach: CounterRange | None
) -> None:
    """A loop without polls."""
    counted = loop.step.counted
    position = None if counted is None else loop.variables.position(counted.counter)
    if counted is not None and position is not None:
        emit_versions(loop, k, starts, starts[position], limit_of(loop.emitter, counted))
        return
    paced = PacedLoop(loop, reach) if is_paced(loop.step) else None
    if paced is None or not paced.counting.steps:
        loop.emit(k, starts, None)
        return
    variables = loop.variables
    first = variables.block(f"first{k}", f"y{k}")
    loop.fn.enter(first(*starts))
    words = variables.bind(first)
    end, good = paced.strip(None)
    if good == "true":
        paced.emit(k, words, end)
        return
    _either(
        loop, k, good, lambda n: paced.emit(n, words, end), lambda n: loop.emit(n, words, None)
    )


def _either(
    loop: InnerLoop, k: int, condition: str, then: Callable[[int], list[str]],
    other: Callable[[int], list[str]],
) -> None:  # fmt: skip
    """Two versions of a loop, and the block `after{k}` behind them. A version gives the values of
    the variables at its end."""
    fn, variables = loop.fn, loop.variables
    after = variables.block(f"after{k}", f"z{k}")
    numbers = fn.unique(), fn.unique()
    yes, no = (f"way{number}" for number in numbers)
    fn.fork(condition, yes, no, likely=True)
    for number, way in zip(numbers, (then, other), strict=True):
        fn.label(f"way{number}")
        fn.branch(after(*way(number)))
    fn.label(after)
    variables.bind(after)


def _counted(loop: InnerLoop, counted: Counted, k: int, starts: list[str]) -> None:
    """The number of iterations is known when the loop begins."""
    emitter, fn, variables = loop.emitter, loop.fn, loop.variables
    limit = limit_of(emitter, counted)
    countdown = countdown_of(emitter)
    fn.enter(f"pre{k}")
    more = variables.block(f"more{k}", f"y{k}")
    fn.enter(more(*starts))
    words = variables.bind(more)
    fn.fork(loop.below(limit), f"strip{k}", f"exit{k}")
    fn.label(f"strip{k}")
    first = emitter.registers[counted.counter]
    end = strip_end(emitter, counted, first, limit, countdown)
    left = emit_versions(loop, k, words, first, end)
    fn.fork(loop.below(limit), f"poll{k}", f"done{k}", likely=False)
    fn.label(f"poll{k}")
    emitter.exits.polled(countdown)
    fn.branch(more(*left))
    fn.label(f"done{k}")
    fn.branch(more(*left))
    fn.label(f"exit{k}")
    variables.bind(more)


def _paced(loop: InnerLoop, paced: PacedLoop, k: int, starts: list[str]) -> None:
    """A loop whose counter tells where a strip ends."""
    emitter, fn, variables = loop.emitter, loop.fn, loop.variables
    countdown = countdown_of(emitter)
    fn.enter(f"pre{k}")
    more = variables.block(f"more{k}", f"y{k}")
    fn.enter(more(*starts))
    words = variables.bind(more)
    end, good = paced.strip(fn.load_word(countdown))

    def ended(left: list[str]) -> None:
        fn.fork(paced.goes_on(end), f"poll{k}", f"done{k}", likely=False)
        fn.label(f"poll{k}")
        emitter.exits.polled(countdown)
        fn.branch(more(*loop.unflagged(left)))
        fn.label(f"done{k}")

    def fast(number: int) -> list[str]:
        return paced.emit(number, words, end, ended)

    _either(loop, k, good, fast, lambda number: _tested(loop, number, words))


def _tested(loop: InnerLoop, k: int, starts: list[str]) -> list[str]:
    """A loop with a test of any kind: the inner loop counts its strip down beside it. Gives the
    values of its variables at its end."""
    emitter, fn, variables, countdown = (
        loop.emitter, loop.fn, loop.variables, countdown_of(loop.emitter),
    )  # fmt: skip
    fn.enter(f"pre{k}")
    strip = variables.block(f"strip{k}", f"y{k}")
    fn.enter(strip(*starts))
    outer = variables.bind(strip)
    length = fn.load_word(countdown)
    head = variables.block(f"head{k}", f"x{k}", ("i64", f"%left{k}"))
    fn.enter(head(length, *outer))
    words = variables.bind(head)
    done = loop.after(k, "done")
    fn.fork(loop.test(None), f"body{k}", loop.way_out(done, words))
    fn.label(f"body{k}")
    # The strip is tested here, not at the end of the iteration: LLVM moves the loop's own test
    # there, which then sees what the iteration has computed.
    zero = fn.value(f"icmp eq i64 %left{k}, 0")
    fn.fork(zero, f"poll{k}", f"go{k}", likely=False)
    fn.label(f"go{k}")
    left = fn.value(f"sub i64 %left{k}, 1")
    ends = loop.iteration(words)
    again = loop.leave(k, ends)
    fn.enter(f"latch{k}")
    fn.branch(head(left, *again), fn.module.begins_halves())
    fn.label(f"poll{k}")
    emitter.exits.polled(countdown)
    fn.branch(strip(*words))
    variables.bind(head)
    return loop.finish(k, done, words, ends)


def limit_of(emitter: Emitter, counted: Counted) -> str:
    """The value at which the counter stops."""
    limit = counted.limit
    return str(limit) if isinstance(limit, int) else emitter.registers[limit]


def strip_end(emitter: Emitter, counted: Counted, first: str, limit: str, countdown: str) -> str:
    """The value of the counter at the end of a strip that begins with `first`."""
    fn, kind = emitter.fn, value_type(emitter, counted.counter)
    length = fn.load_word(countdown)
    length = length if kind == "i64" else fn.value(f"trunc i64 {length} to {kind}")
    kinds = f"{kind} {{}}, {kind} {{}}"
    end = fn.call(f"{kind} @llvm.sadd.sat.{kind}({kind}, {kind})", kinds.format(first, length))
    return fn.call(f"{kind} @llvm.smin.{kind}({kind}, {kind})", kinds.format(limit, end))


def countdown_of(emitter: Emitter) -> str:
    """The word that holds the length of the next strip."""
    return emitter.fn.alloca("i64, align 8", f"i64 {FIRST_STRIP}")
