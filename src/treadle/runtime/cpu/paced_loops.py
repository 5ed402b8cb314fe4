"""Loops with a counter that moves evenly, without checks and without a countdown.

A ``while`` that counts in steps, or that something else may end too, needs two tests in each
iteration beside its own: whether a position is inside its array, and whether it is time for a poll.
Where the counter moves evenly both are found out before a strip of iterations:

    while j < n and ...:         ->      end = min(n, j + strip * step)
        x[j] = ...                       if x has the positions from j to end - 1:
        j += step                            while j < end and ...: x[j] = ...  (no checks)
                                         else:
                                             ...                       (the loop as it stands)

The counter does not wrap around in a strip: the step has the right sign and is small, and one step
beyond the last position is still a number of its type. A loop for which this does not hold, or
that would leave an array if nothing else ended it, is done as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from treadle.core.switches import is_on
from treadle.runtime.cpu.counter_ranges import CounterRange
from treadle.runtime.cpu.hoisted_checks import Counting
from treadle.runtime.cpu.inner_loops import InnerLoop
from treadle.runtime.cpu.linear_forms import LinearForms, positions
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program_carried import value_type
from treadle.runtime.schedule.steps import Branch, Evaluate, Loop, Paced, Position

MOST_PACE = 1 << 20  # of a counter in one iteration: positions of a strip have room in 62 bits


def is_paced(step: Loop) -> bool:
    """Whether the loop has a counter by which it can be divided into strips."""
    paced = step.paced
    if paced is None or not is_on("paced"):
        return False
    if isinstance(paced.step, int) and abs(paced.step) > MOST_PACE:
        return False
    return any(isinstance(s, Evaluate) and s.value is paced.test for s in step.condition.steps)


class PacedLoop:
    """Writes the strips of one loop, which `is_paced`, before anything else of it is written.

    Attributes:
        counting: its positions that are checked before a strip.
    """

    def __init__(self, loop: InnerLoop, reach: CounterRange | None) -> None:
        """`reach`: how far the counter goes, if that is known."""
        paced, emitter = loop.step.paced, loop.emitter
        assert paced is not None
        self.loop, self.paced, self.emitter, self.fn = loop, paced, emitter, loop.fn
        self.kind = value_type(emitter, paced.counter)
        self.forms = LinearForms(emitter, loop.step, MOST_PACE)
        self.counting = Counting(emitter, self.forms, _positions(loop.step, paced), reach)
        self.known, self.reach = dict(emitter.positions), reach

    def strip(self, length: str | None) -> tuple[str, str]:
        """Write where the counter is to stop, and whether the strip until then may go without
        checks.

        Args:
            length: the most iterations, of 64 bits; None: those that there are.
        """
        fn, upwards = self.fn, self.paced.relation.is_less
        first = self.forms.wide(self.emitter.registers[self.paced.counter], self.paced.counter)
        pace, good = self._pace()
        end = self._limit()
        if length is not None:
            reach = self._saturated(first, fn.value(f"mul i64 {length}, {pace}"), upwards)
            end = self._call("smin" if upwards else "smax", end, reach)
        back = "sub" if upwards else "add"
        last = fn.value(f"{back} i64 {end}, 1")
        stops = pace == 1 and not self.paced.relation.holds_of_equals
        if not (stops or self.reach):  # else it stops at the limit itself
            limits = np.iinfo(self.paced.counter.spec.dtype.np_dtype)
            beyond = self._saturated(last, pace, upwards)
            inside = f"slt i64 {beyond}, {limits.max}"
            if not upwards:
                inside = f"sgt i64 {beyond}, {limits.min}"
            good = fn.both(good, fn.value(f"icmp {inside}"))
        good = fn.both(good, self.counting.stay_inside(first, last, upwards))
        return end if self.kind == "i64" else fn.value(f"trunc i64 {end} to {self.kind}"), good

    def emit(
        self, k: int, words: Sequence[str], end: str,
        ended: Callable[[list[str]], None] | None = None,
    ) -> list[str]:  # fmt: skip
        """Write a strip without checks; as `InnerLoop.emit`."""
        emitter, before = self.emitter, self.emitter.inside
        emitter.positions = dict(self.known)
        emitter.inside = before | frozenset(self.counting.steps)
        left = self.loop.emit(k, words, end, ended)
        emitter.inside, emitter.positions = before, dict(self.known)
        return left

    def goes_on(self, end: str) -> str:
        """Write whether the counter, which ended the strip, has not come to its limit."""
        limit, relation = self.paced.limit, self.paced.relation
        word = str(limit) if isinstance(limit, int) else self.emitter.registers[limit]
        counter = self.emitter.registers[self.paced.counter]
        order = "slt" if relation.is_less else "sgt"
        strict = self.fn.value(f"icmp {order} {self.kind} {counter}, {end}")
        order = order.replace("t", "e") if relation.holds_of_equals else order
        more = self.fn.value(f"icmp {order} {self.kind} {counter}, {word}")
        return self.fn.value(f"select i1 {strict}, i1 false, i1 {more}")

    # ---- words of 64 bits
    def _pace(self) -> tuple[Word, str]:
        """What the counter moves by in an iteration, and whether that goes towards the limit."""
        fn, paced = self.fn, self.paced
        if isinstance(paced.step, int):  # towards the limit, and not too much
            return abs(paced.step), "true"
        word = self.forms.wide(self.emitter.registers[paced.step], paced.step)
        if paced.falls == paced.relation.is_less:
            word = fn.value(f"sub i64 0, {word}")
        small = fn.value(f"sub i64 {word}, 1")
        return word, fn.value(f"icmp ult i64 {small}, {MOST_PACE}")

    def _limit(self) -> str:
        """The first number that the counter does not reach, or the last one of 64 bits."""
        limit, relation = self.paced.limit, self.paced.relation
        if isinstance(limit, int):
            word = str(limit)
        else:
            word = self.forms.wide(self.emitter.registers[limit], limit)
        return self._saturated(word, 1, relation.is_less) if relation.holds_of_equals else word

    def _saturated(self, word: Word, by: Word, upwards: bool) -> str:
        """A sum or difference of a number of the counter's type; 64 bits have room for those of 32
        bits, as long as the pace is good."""
        if self.kind != "i64":
            return self.fn.value(f"{'add' if upwards else 'sub'} i64 {word}, {by}")
        return self._call("sadd.sat" if upwards else "ssub.sat", word, by)

    def _call(self, name: str, a: Word, b: Word) -> str:
        return self.fn.call(f"i64 @llvm.{name}.i64(i64, i64)", f"i64 {a}, i64 {b}")


def _positions(step: Loop, paced: Paced) -> Iterator[Position]:
    """The positions that are only looked at where the counter has not come to its limit."""
    yield from positions(step.body)
    for part in step.condition.steps:
        if isinstance(part, Branch) and part.predicate.value is paced.test:
            yield from positions(part.then)
