"""Innermost loops of rank-0 values themselves, and one iteration of them."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core import dtypes
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_carried import Names, bind, end_of
from treadle.runtime.schedule.steps import Loop


def inner(
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
    test = test_of(emitter, step, end)
    tested = fn.block
    fn.emit(f"br i1 {test}, label %body{k}, label %after{k}")
    fn.label(f"body{k}")
    ends = iteration(emitter, step, names)
    again = leave(emitter, step, k, ends)
    fn.label(f"latch{k}")
    fn.emit(f"br label %head{k}{'' if emitter.group is None else emitter.group.loop}")
    fn.lines[mark:mark] = phis(names, (starts, f"strip{k}"), (again, f"latch{k}"))
    return after_loop(emitter, step, k, "after", (names, tested), ends)


def leave(emitter: Emitter, step: Loop, k: int, ends: list[list[str]]) -> list[list[str]]:
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


def after_loop(
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
    fn.lines += phis(merged, (registers(names), tested), (ends, f"leave{k}"))
    return merged


def test_of(emitter: Emitter, step: Loop, end: str | None) -> str:
    """Whether there is another iteration."""
    if end is not None:
        return below(emitter, step, end)
    emitter.contraction.depth += not step.exact
    emitter.emit_block(step.condition)
    emitter.contraction.depth -= not step.exact
    return emitter.registers[step.condition.results[0].value]


def iteration(emitter: Emitter, step: Loop, names: Names) -> list[list[str]]:
    """One iteration; gives the values for the next one."""
    symbols = dict(emitter.symbols)
    emitter.contraction.depth += not step.exact
    emitter.emit_block(step.body)
    emitter.contraction.depth -= not step.exact
    pairs = zip(step.carried, step.body.results, names, strict=True)
    ends = [end_of(emitter, c, o, n) for c, o, n in pairs]
    emitter.symbols = symbols
    return ends


def below(emitter: Emitter, step: Loop, end: str) -> str:
    """Whether the counter is below a number."""
    assert step.counted is not None
    counter = step.counted.counter
    args, dtype = [emitter.registers[counter], end], counter.spec.dtype
    return emitter.elements.apply("lt", args, [dtype] * 2, dtypes.bool)


def registers(names: Names) -> list[list[str]]:
    """The phis of a loop as values."""
    return [[name for _, name in group] for group in names]


def phis(names: Names, *edges: tuple[Sequence[list[str]], str]) -> list[str]:
    """The lines of a block's phis, given the values and the block of every way into it."""
    lines = []
    for n, group in enumerate(names):
        for j, (kind, name) in enumerate(group):
            pairs = ", ".join(f"[{values[n][j]}, %{block}]" for values, block in edges)
            lines.append(f"  {name} = phi {kind} {pairs}")
    return lines
