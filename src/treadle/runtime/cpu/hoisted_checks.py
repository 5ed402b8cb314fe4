"""Positions that count are checked before a loop: at its first iteration and at its last one.

    while i < end: ... x[a + i * b] ...    ->    if a + first * b and a + last * b lie inside:
                                                     while i < end: ... (no checks)
                                                 else:
                                                     while i < end: ... (with checks)

A position that is linear in the counter lies between these two. Nothing wraps around on the way:
a strip of a loop has at most `MOST_ITERATIONS` iterations, and the step between two positions is
compared with `MOST_STEP`. Positions of 32 bits are computed in 64: what wraps around on the way to
them is right where the number itself has 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterator

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.graph.ir import Value
from treadle.kernel.ir import Apply, Const, Expr, Load
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_poll import MOST_ITERATIONS
from treadle.runtime.schedule.steps import Block, Branch, Evaluate, Loop, Position

MOST_STEP = (1 << 62) // MOST_ITERATIONS
MOST_POSITIONS = 12
_LINEAR = ("add", "sub", "mul")
_COUNTED = (dtypes.int32, dtypes.int64)


class Counting:
    """What a light loop computes of its counter, and of what it does not change."""

    def __init__(self, emitter: Emitter, step: Loop) -> None:
        assert step.counted is not None
        self.emitter, self.counter = emitter, step.counted.counter
        self.made = {s.value: s for s in _evaluated(step.body)}
        changing = {c.param for c in step.carried if c.place is None}
        inside = {s.value for s in _positions(step.body)}
        self.changing = (changing | inside) - {self.counter}
        self.before = dict(emitter.registers)
        self.positions = [s for s in _positions(step.body) if self._counts(s)][:MOST_POSITIONS]

    def _counts(self, step: Position) -> bool:
        degree = self._degree(step.source.value)
        return degree is not None and degree <= 1

    def _degree(self, value: Value) -> int | None:
        """The power of the counter in an integer; None for what is no polynomial in it."""
        if value.spec.dtype not in _COUNTED:
            return None
        if value is self.counter:
            return 1
        step = self.made.get(value)
        if step is not None:
            return self._degree_of(step, step.expr)
        return 0 if value not in self.changing and value in self.before else None

    def _degree_of(self, step: Evaluate, expr: Expr) -> int | None:
        match expr:
            case Const():
                return 0
            case Load() if not expr.index and step.inputs[expr.buffer.name].place is None:
                return self._degree(step.inputs[expr.buffer.name].value)
            case Apply(fn="cast", args=(Load() as given,)) if expr.dtype in _COUNTED:
                return self._widened(step, given, expr)
            case Apply() if expr.fn in _LINEAR and expr.dtype in _COUNTED:
                degrees = [self._degree_of(step, a) for a in expr.args]
                if any(d is None for d in degrees):
                    return None
                known = [d for d in degrees if d is not None]
                return sum(known) if expr.fn == "mul" else max(known)
        return None

    def _widened(self, step: Evaluate, given: Load, cast: Apply) -> int | None:
        """The degree of a register as a wider number: nothing computed, which may have wrapped."""
        operand = step.inputs[given.buffer.name]
        if given.index or operand.place is not None or operand.value in self.made:
            return None
        return self._degree(operand.value) if given.dtype.size <= cast.dtype.size else None

    def at(self, value: Value, counter: str) -> str:
        """Emit an integer, of 64 bits, as it is where the counter has a given value."""
        if value is self.counter:
            return counter
        step = self.made.get(value)
        if step is not None:
            return self._expr(step, step.expr, counter)
        return self.wide(self.before[value], value.spec.dtype)

    def wide(self, register: str, dtype: DType) -> str:
        return self.emitter.elements.apply("cast", [register], [dtype], dtypes.int64)

    def _expr(self, step: Evaluate, expr: Expr, counter: str) -> str:
        match expr:
            case Const():
                return self.emitter.elements.constant(expr.value, dtypes.int64)
            case Load():
                return self.at(step.inputs[expr.buffer.name].value, counter)
            case Apply(fn="cast"):
                return self._expr(step, expr.args[0], counter)
            case Apply():
                args = [self._expr(step, a, counter) for a in expr.args]
                kinds = [dtypes.int64] * len(args)
                return self.emitter.elements.apply(expr.fn, args, kinds, dtypes.int64)
        raise AssertionError(f"{expr} is not linear")

    def all_inside(self, first: str, end: str) -> str:
        """Emit whether the positions stay inside while the counter goes from `first`, which is
        less than `end`, to `end`."""
        fn, dtype = self.emitter.fn, self.counter.spec.dtype
        first, end = self.wide(first, dtype), self.wide(end, dtype)
        last, second = fn.value(f"sub i64 {end}, 1"), fn.value(f"add i64 {first}, 1")
        good, seen = "true", set[tuple[Value, str]]()
        for step in self.positions:
            value, size = step.source.value, str(self._size(step))
            if (value, size) in seen:
                continue
            seen.add((value, size))
            low, high = self.at(value, first), self.at(value, last)
            ends = [fn.value(f"icmp ult i64 {p}, {size}") for p in (low, high)]
            distance = fn.value(f"sub i64 {self.at(value, second)}, {low}")
            shifted = fn.value(f"add i64 {distance}, {MOST_STEP}")
            for test in (*ends, fn.value(f"icmp ult i64 {shifted}, {2 * MOST_STEP}")):
                good = fn.value(f"and i1 {good}, {test}")
        return good

    def _size(self, step: Position) -> Word:
        """What a position must be less than: it also is a number of its dtype."""
        size = self.emitter.dim(step.size)
        narrow = step.source.value.spec.dtype is dtypes.int32
        return self.emitter.fn.min(size, 1 << 31) if narrow else size


def _evaluated(block: Block) -> Iterator[Evaluate]:
    """The registers that a block computes, also in branches."""
    for step in block.steps:
        if isinstance(step, Evaluate):
            yield step
        elif isinstance(step, Branch):
            yield from (*_evaluated(step.then), *_evaluated(step.otherwise))


def _positions(block: Block) -> Iterator[Position]:
    for step in block.steps:
        if isinstance(step, Position):
            yield step
        elif isinstance(step, Branch):
            yield from (*_positions(step.then), *_positions(step.otherwise))



