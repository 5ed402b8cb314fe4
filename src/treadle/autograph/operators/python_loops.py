"""Loops that Python iterates: over ranges rolled where that keeps their meaning, else unrolled."""

from __future__ import annotations

from typing import Any

from treadle.autograph.loop_notes import LoopNote, known_of
from treadle.autograph.operators.rolled_numbers import Counting
from treadle.core.context import context
from treadle.core.origin import user_origin
from treadle.core.switches import is_on

FEWEST = 6  # iterations of a loop that is rolled, as in `analysis.evident`
FEWEST_OPERATIONS = 128  # that all iterations together would record
MOST_PEELED = 2
MOST_FAILURES = 3  # of one loop in one trace, before it is left alone


def is_rolled(iterable: Any) -> bool:
    """Whether a loop over `iterable` may be rolled here."""
    return (
        type(iterable) is range
        and len(iterable) >= FEWEST
        and context.recorder is not None
        and is_on("rolled_loops")
    )


def rolled_for(loop: Any, numbers: range, state: Any, until: Any, step: Any) -> Any:
    """The variables after the loop, and the numbers that are left for Python to go through.

    Args:
        step: runs one iteration in Python; gives the state and whether the loop is over.
    """
    from treadle.autograph.operators.rolling import SHORT, Peel, Refused, is_rollable, roll

    recorder: Any = context.recorder
    known = known_of(recorder.graph)
    code = loop.body.__code__
    if known.failures.get(code, 0) >= MOST_FAILURES:
        return state, numbers
    trips, notes = len(numbers), dict(known.notes)
    reason = ""
    try:
        is_rollable(loop)
        for _ in range(MOST_PEELED + 1):
            counting = Counting(numbers.start, numbers.stop, numbers.step)
            try:
                state = roll(loop, counting, state, until, _Worth(len(numbers)))
            except Peel as why:
                known.notes, reason = dict(notes), str(why)
                state, over = step(numbers[0], state)
                numbers = numbers[:0] if over else numbers[1:]
                if len(numbers) < FEWEST:
                    return state, numbers
            else:
                known.note(code, LoopNote(user_origin(), trips, True))
                return state, numbers[:0]
    except Refused as why:
        known.notes, reason = notes, str(why)
    if reason != SHORT:
        known.failures[code] = known.failures.get(code, 0) + 1
        known.note(code, LoopNote(user_origin(), trips, False, reason))
    return state, numbers


class _Worth:
    """Whether to roll so many iterations: what is short runs faster without a loop."""

    def __init__(self, trips: int) -> None:
        self.trips = trips

    def __call__(self, operations: int) -> bool:
        return operations > 0 and self.trips * operations >= FEWEST_OPERATIONS


def symbolic_for(loop: Any, numbers: Any, state: Any, until: Any) -> Any:
    """A loop over a range that only the running program knows.

    Raises:
        ValueNeededError: it cannot be rolled, and the program must have Python's bits.
    """
    from treadle.autograph.operators.rolling import Peel, Refused, is_rollable, roll

    recorder: Any = context.recorder
    known = known_of(recorder.graph)
    counting = Counting(numbers.start, numbers.stop, numbers.step)
    is_rollable(loop)
    try:
        state = roll(loop, counting, state, until, lambda size: True)
    except Peel as why:
        raise Refused(str(why)) from None
    known.note(loop.body.__code__, LoopNote(user_origin(), None, True))
    return state
