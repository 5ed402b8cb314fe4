"""Loops that Python iterates: over ranges rolled where that keeps their meaning, else unrolled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from treadle.autograph.operators.rolled_numbers import Counting
from treadle.core.context import context
from treadle.core.origin import Origin, user_origin
from treadle.core.switches import is_on

FEWEST = 6  # iterations of a loop that is rolled, as in `analysis.evident`
FEWEST_OPERATIONS = 128  # that all iterations together would record
MOST_PEELED = 2
MOST_FAILURES = 3  # of one loop in one trace, before it is left alone


@dataclass
class LoopNote:
    """What became of a loop over a Python range.

    Attributes:
        origin: where it is.
        trips: how many iterations it has; None where only the running program knows.
        rolled: whether it is a loop of the graph.
        reason: why not.
        times: how often the loop was met.
    """

    origin: Origin | None
    trips: int | None
    rolled: bool
    reason: str = ""
    times: int = 1


@dataclass
class _Known:
    """What is known of the loops of one graph."""

    notes: dict[Any, LoopNote] = field(default_factory=dict)
    failures: dict[Any, int] = field(default_factory=dict)


_graphs: WeakKeyDictionary[Any, _Known] = WeakKeyDictionary()


def loop_notes(graph: Any) -> list[LoopNote]:
    """The loops over Python ranges that were met while a graph was traced."""
    found = _graphs.get(graph)
    return [] if found is None else list(found.notes.values())


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
    known = _graphs.setdefault(recorder.graph, _Known())
    code = loop.body.__code__
    if known.failures.get(code, 0) >= MOST_FAILURES:
        return state, numbers
    trips = len(numbers)
    notes = dict(known.notes)
    reason = ""
    try:
        is_rollable(loop)
        for _ in range(MOST_PEELED + 1):
            try:
                counting = Counting(numbers.start, numbers.stop, numbers.step)
                count = len(numbers)
                state = roll(loop, counting, state, until,
                             lambda size: size * count >= FEWEST_OPERATIONS)  # noqa: B023
                _note(known, code, LoopNote(user_origin(), trips, True))
                return state, numbers[:0]
            except Peel as why:
                known.notes = dict(notes)
                reason = str(why)
                state, over = step(numbers[0], state)
                numbers = numbers[1:]
                if over or len(numbers) < FEWEST:
                    return state, numbers[:0] if over else numbers
    except Refused as why:
        reason = str(why)
        known.notes = notes
    if reason != SHORT:
        known.failures[code] = known.failures.get(code, 0) + 1
        _note(known, code, LoopNote(user_origin(), trips, False, reason))
    return state, numbers


def symbolic_for(loop: Any, numbers: Any, state: Any, until: Any) -> Any:
    """A loop over a range that only the running program knows.

    Raises:
        ValueNeededError: it cannot be rolled, and the program must have Python's bits.
    """
    from treadle.autograph.operators.rolling import Peel, Refused, is_rollable, roll

    recorder: Any = context.recorder
    known = _graphs.setdefault(recorder.graph, _Known())
    counting = Counting(numbers.start, numbers.stop, numbers.step)
    is_rollable(loop)
    try:
        state = roll(loop, counting, state, until, lambda size: True)
    except Peel as why:
        raise Refused(str(why)) from None
    _note(known, loop.body.__code__, LoopNote(user_origin(), None, True))
    return state


def _note(known: _Known, code: Any, note: LoopNote) -> None:
    key = code, note.rolled, note.reason
    before = known.notes.pop(key, None)
    if before is not None:
        note.times = before.times + 1
    known.notes[key] = note
