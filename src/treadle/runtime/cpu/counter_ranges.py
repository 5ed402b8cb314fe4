"""How far the counter of a loop goes, as far as constants and positions tell that were checked
before the loop.

    place[row] = ...                     here 0 <= row < 16, or the check has raised
    for k in range(row): ... place[k]    15 iterations at most; k needs no check
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treadle.graph.ir import Value
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.schedule.steps import Loop


class CounterRange(NamedTuple):
    """The least and the most that a counter is in an iteration; `most` is below `least` where no
    run has one.

    trips: a number of iterations that no run exceeds.
    """

    least: int
    most: int
    trips: int


def counter_range(emitter: Emitter, step: Loop, start: str) -> CounterRange | None:
    """How far the counter of a loop goes which begins at a register or a constant, before anything
    of the loop is written; None where nothing tells, or where it may wrap around."""
    pace, upwards, equals = 1, True, False
    if step.counted is not None:
        counter, limit = step.counted.counter, step.counted.limit
    elif step.paced is not None and isinstance(step.paced.step, int):
        counter, limit, pace = step.paced.counter, step.paced.limit, abs(step.paced.step)
        upwards, equals = step.paced.relation.is_less, step.paced.relation.holds_of_equals
    else:
        return None
    first, end = _range(emitter, start), _range(emitter, _word(emitter, limit))
    if first is None or end is None:
        return None
    numbers = np.iinfo(counter.spec.dtype.np_dtype)
    if upwards:
        least, most = first[0], end[1] - (not equals)
        wraps = most + pace > numbers.max
    else:
        least, most = end[0] + (not equals), first[1]
        wraps = least - pace < numbers.min
    return None if wraps else CounterRange(least, most, max(0, (most - least) // pace + 1))


def _word(emitter: Emitter, limit: Value | int) -> str:
    return str(limit) if isinstance(limit, int) else emitter.registers[limit]


def _range(emitter: Emitter, word: str) -> tuple[int, int] | None:
    """The least and the most that a word can be: it is a constant, or a position along an axis of
    known size, which may count from the end."""
    if not word.startswith("%"):
        return int(word), int(word)
    sizes = [int(n) for given, n in emitter.positions if given == word and not n.startswith("%")]
    return (-min(sizes), min(sizes) - 1) if sizes else None
