"""Loops that Python iterates: rolled where that keeps their meaning, else unrolled.

What rolls them is loaded for the first loop that is not short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from treadle.autograph.loop_notes import SHORT, Known, LoopNote, Peel, Refused, known_of
from treadle.autograph.operators.logical import not_, or_
from treadle.core.context import context
from treadle.core.origin import user_origin
from treadle.core.switches import is_on

if TYPE_CHECKING:
    from treadle.autograph.operators.rolled_items import Items

FEWEST = 6  # iterations of a loop that is rolled, as in `analysis.evident`
FEWEST_OPERATIONS = 128  # that all iterations together would record
STACKED = 4  # times as many, where tensors are copied together for it
MOST_PEELED = 2
MOST_FAILURES = 3  # of one loop in one trace, before it is left alone
MOST_TRIPS = 1 << 16  # of a `while` loop that is looked at
_SIZED = frozenset({dict, list, range, tuple})


def may_roll() -> bool:
    """Whether loops of Python are rolled here."""
    return context.recorder is not None and is_on("rolled_loops")


def _known() -> Known:
    recorder: Any = context.recorder
    return known_of(recorder.graph)


def rolled_for(loop: Any, iterable: Any, state: Any, until: Any, step: Any) -> Any:
    """The variables after the loop, and the items that are left for Python to go through.

    Args:
        step: runs one iteration in Python; gives the state and whether the loop is over.
    """
    if type(iterable) in _SIZED and len(iterable) < FEWEST:
        return state, iterable
    from treadle.autograph.operators.rolled_items import items_of, use_up
    from treadle.autograph.operators.rolling import is_rollable

    items = items_of(iterable)
    if items is None or items.size < FEWEST:
        return state, iterable
    known, code = _known(), loop.body.__code__
    if known.failures.get(code, 0) >= MOST_FAILURES:
        return state, iterable
    left, taken = iter(iterable), 0
    notes = dict(known.notes)
    try:
        is_rollable(loop)
        while items.size - taken >= FEWEST:
            found = _attempt(loop, items, taken, state, until)
            if not isinstance(found, Exception):
                state, trips = found
                use_up(iterable, trips if trips < items.size - taken else None)
                known.note(code, LoopNote(user_origin(), items.size, True))
                return state, ()
            known.notes = dict(notes)
            if taken == MOST_PEELED:
                raise found
            state, over = step(next(left), state)
            taken += 1
            if over:
                return state, ()
    except Exception as why:
        _refused(why, known, code, notes, items.size)
    items.forget()
    return state, left


def _attempt(loop: Any, items: Items, taken: int, state: Any, until: Any) -> Any:
    """The state and number of iterations of a loop of the graph, or why the first iteration is
    left to Python."""
    from treadle.autograph.operators.rolling import roll

    try:
        return roll(loop, items, taken, state, until, _is_worth(items))
    except Peel as why:
        return why


def _is_worth(items: Items) -> Callable[[int], bool]:
    """A short loop runs faster when it is unrolled."""

    def decide(operations: int) -> bool:
        least = FEWEST_OPERATIONS * (STACKED if items.stacked else 1)
        return operations > 0 and operations >= least

    return decide


def _refused(why: Exception, known: Known, code: Any, notes: Any, trips: int | None) -> None:
    if not isinstance(why, Peel | Refused):
        raise why
    known.notes = notes
    if str(why) != SHORT:
        known.failures[code] = known.failures.get(code, 0) + 1
        known.note(code, LoopNote(user_origin(), trips, False, str(why)))


OVER, PEEL, PYTHON = "over", "peel", "python"  # how a `while` loop goes on


def rolled_while(loop: Any, test: Any, state: Any, until: Any) -> tuple[Any, str]:
    """The variables after a ``while`` loop whose condition is Python's and holds.

    Returns:
        The variables, and OVER; or the variables as before, and PEEL where an attempt may succeed
        after an iteration, PYTHON where not.
    """
    from treadle.autograph.operators.rolled_items import Unknown
    from treadle.autograph.operators.rolling import is_rollable, roll

    known, code = _known(), loop.body.__code__
    if known.failures.get(code, 0) >= MOST_FAILURES:
        return state, PYTHON
    items, notes = Unknown(MOST_TRIPS), dict(known.notes)

    def ended(*state: Any) -> Any:
        if until is None:
            return not_(test(*state))
        return or_(lambda: until(*state), lambda: not_(test(*state)))

    try:
        is_rollable(loop, test)
        state, trips = roll(loop, items, 0, state, ended, _is_worth(items))
    except Exception as why:
        _refused(why, known, code, notes, None)
        return state, PEEL if isinstance(why, Peel) else PYTHON
    known.note(code, LoopNote(user_origin(), trips, True))
    return state, OVER


def symbolic_for(loop: Any, numbers: Any, state: Any, until: Any) -> Any:
    """A loop over a range that only the running program knows.

    Raises:
        ValueNeededError: it cannot be rolled, and the program must have Python's bits.
    """
    from treadle.autograph.operators.rolled_items import SymbolicRange
    from treadle.autograph.operators.rolling import is_rollable, roll

    is_rollable(loop)
    items = SymbolicRange(numbers.start, numbers.stop, numbers.step)
    try:
        state, _ = roll(loop, items, 0, state, until, lambda size: True)
    except Peel as why:
        raise Refused(str(why)) from None
    _known().note(loop.body.__code__, LoopNote(user_origin(), None, True))
    return state
