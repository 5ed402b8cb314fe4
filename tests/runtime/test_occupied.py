"""The planner of memory against a search through everything that was placed before."""

import random

import pytest

from treadle.runtime.memory.lifetimes import Interval
from treadle.runtime.memory.occupied import Occupied


def lowest(placed, span, size):
    taken = sorted((start, end) for start, end, other in placed if other.overlaps(span))
    offset = 0
    for start, end in taken:
        if offset + size <= start:
            break
        offset = max(offset, end)
    return offset


@pytest.mark.parametrize("seed", range(60))
def test_lowest_free_offset(seed):
    rng = random.Random(seed)
    count = rng.randint(1, 40)
    occupied, placed = Occupied(count), []
    for _ in range(rng.randint(1, 60)):
        first = rng.randrange(count)
        span = Interval(first, min(count - 1, first + rng.choice((0, 1, 3, 40))))
        size = 64 * rng.randint(1, 5)
        offset = occupied.take(span, size)
        assert offset == lowest(placed, span, size)
        placed.append((offset, offset + size, span))


def test_arrays_that_live_together_are_one_range():
    occupied = Occupied(5000)
    for number in range(3000):
        assert occupied.take(Interval(number, 4999), 64) == 64 * number
    assert all(len(r.starts) == 1 for r in occupied.throughout.values())
