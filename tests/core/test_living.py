"""Sets of living objects, between threads."""

from __future__ import annotations

import gc

from treadle.core.living import Living


class Some:
    pass


def test_objects_are_there_while_they_live() -> None:
    held: Living[Some] = Living()
    one, other = Some(), Some()
    held.add(one)
    held.add(other)
    held.add(one)
    assert {*held} == {one, other}
    del other
    gc.collect()
    assert [*held] == [one]
    held.clear()
    assert not [*held]


def test_others_may_add_while_one_looks() -> None:
    held: Living[Some] = Living()
    kept = [Some() for _ in range(3)]
    for one in kept:
        held.add(one)
    seen = iter(held)
    found = [next(seen)]
    late = Some()
    held.add(late)  # as another thread may
    found += seen
    assert {*found} == {*kept} and late in {*held}
