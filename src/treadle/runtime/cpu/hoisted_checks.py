"""Positions that count are checked before a loop: at its first iteration and at its last one.

    while i < end: ... x[a + i * b] ...    ->    if a + first * b and a + last * b lie inside:
                                                     while i < end: ... (no checks)
                                                 else:
                                                     while i < end: ... (with checks)

A position that is linear in the counter lies between these two. It does not wrap around between
them: a strip of a loop has at most `MOST_ITERATIONS` iterations, and the step between two positions
is compared with what 62 bits have room for (`LinearForms.most_step`). Positions of 32 bits are
computed with 64: sums that wrap around give the right position all the same, as it has 32 bits. A
position that is proved not to be negative where it is used is compared at the end where it is
largest only.
"""

from __future__ import annotations

from collections.abc import Iterable

from treadle.core import dtypes
from treadle.core.shapes import Dim
from treadle.runtime.cpu.counter_ranges import CounterRange
from treadle.runtime.cpu.linear_forms import LinearForms
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.schedule.steps import Position

MOST_POSITIONS = 12  # that are checked before a loop, for the length of the code on any machine
_MOST_NARROW = 1 << 31  # positions of 32 bits are below it
_COUNTED = (dtypes.int32, dtypes.int64)


class Counting:
    """The positions that a light loop checks, as far as they can be checked before it.

    Args:
        found: the checks of the loop.
        reach: how far its counter goes, if that is known.

    Attributes:
        steps: the checks that the loop can do without where all these positions are inside the
            arrays in the first iteration and in the last one.
        asks: whether that depends on the run.
    """

    def __init__(
        self, emitter: Emitter, forms: LinearForms, found: Iterable[Position],
        reach: CounterRange | None = None,
    ) -> None:  # fmt: skip
        self.emitter, self.forms, self.reach = emitter, forms, reach
        self.steps: list[Position] = []
        self._positions: dict[tuple[Dim, Dim, bool, bool], None] = {}
        for position in found:
            source = position.source.value
            form = forms.linear(source) if source.spec.dtype in _COUNTED else None
            if form is None:
                continue
            if self._is_proved(form, position.size):
                self.steps.append(position)
                continue
            key = form, position.size, forms.is_narrow(source), not position.wraps
            if key in self._positions or len(self._positions) < MOST_POSITIONS:
                self._positions[key] = None
                self.steps.append(position)

    @property
    def asks(self) -> bool:
        return bool(self._positions)

    def _is_proved(self, form: Dim, size: Dim) -> bool:
        """Whether a position is inside for all that the counter can be."""
        ends = None if self.reach is None else self.forms.ends(form, *self.reach[:2])
        if ends is None or not isinstance(size, int):
            return False
        return ends[0] >= 0 and ends[1] < min(size, _MOST_NARROW)

    def all_inside(self, first: str, end: str) -> str:
        """Write the test whether the positions stay inside the arrays while the counter, a word of
        64 bits, goes from `first` to `end`; `first` is less than `end`."""
        return self.stay_inside(first, self.emitter.fn.value(f"sub i64 {end}, 1"))

    def stay_inside(self, first: str, last: str, upwards: bool = True) -> str:
        """The same while the counter moves from `first` to `last`, upwards or downwards."""
        fn, forms, good = self.emitter.fn, self.forms, "true"
        for form, dim, narrow, positive in self._positions:
            size = self.emitter.dim(dim)
            size = fn.min(size, _MOST_NARROW) if narrow else size  # the position has 32 bits
            step = forms.step(form)
            if positive and not narrow and isinstance(step, int) and abs(step) <= forms.most_step:
                most = forms.at(form, last if (step > 0) == upwards else first)
                inside = fn.value(f"icmp ult i64 {most}, {size}")
            else:
                inside = is_inside(forms, form, size, first, last)
            good = fn.both(good, inside)
        return good


def is_inside(forms: LinearForms, form: Dim, size: Word, first: str, last: str) -> str:
    """Write the test whether a linear form stays in [0, size) while the counter goes from first to
    last. It lies between these two, or wraps around where it may change by more than `most_step`:
    then the test fails."""
    fn, step = forms.emitter.fn, forms.step(form)
    good = fn.value(f"icmp ult i64 {forms.at(form, first)}, {size}")
    if step == 0:
        return good
    inside = fn.value(f"icmp ult i64 {forms.at(form, last)}, {size}")
    good = fn.value(f"and i1 {good}, {inside}")
    most = forms.most_step
    if isinstance(step, int) and abs(step) <= most:
        return good
    shifted = fn.value(f"add i64 {forms.at(step, first)}, {most}")
    small = fn.value(f"icmp ult i64 {shifted}, {2 * most}")
    return fn.value(f"and i1 {good}, {small}")
