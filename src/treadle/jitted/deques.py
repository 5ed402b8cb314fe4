"""Deques, which jitted functions have as lists: one with ``maxlen`` is a row of a pool of its own
(`pools`), which forgets what is at its other end."""

from __future__ import annotations

import collections
from typing import Any

from treadle.core import nest
from treadle.core.origin import at, user_origin
from treadle.jitted import list_functions, pool_functions
from treadle.jitted.arrays import direct, is_traced
from treadle.jitted.comprehensions import list_of
from treadle.jitted.errors import NotStaged
from treadle.jitted.grown_lists import GrownList, Template
from treadle.jitted.namespace import add_stand_in
from treadle.jitted.pools import Pool, Row
from treadle.jitted.stacked_lists import StackedList
from treadle.jitted.written import traced


class BoundedRow(Row):
    """A deque with ``maxlen``.

    Attributes:
        maxlen: the most elements that it has.
    """

    __slots__ = ("maxlen",)

    def __init__(self, pool: Pool, number: Any, maxlen: int) -> None:
        super().__init__(pool, number)
        self.maxlen = maxlen

    def append(self, value: Any) -> None:
        self._pushed(pool_functions.pushed, value)

    def appendleft(self, value: Any) -> None:
        self._pushed(pool_functions.pushed_left, value)

    def _pushed(self, function: Any, value: Any) -> None:
        self.pool.take(Template(value))
        self._changed(function, self._element(value), self.maxlen)

    def extend(self, values: Any) -> None:
        traced(list_functions.extended, self, direct(values))

    def insert(self, index: Any, value: Any) -> None:
        raise NotStaged(f"insert() of a deque with maxlen{at(user_origin())}")


nest.register_node(
    BoundedRow,
    lambda row: [row.number],
    lambda like, parts: BoundedRow(like.pool, parts[0], like.maxlen),
    lambda row: (id(row.pool), row.maxlen),
    composite=False,
)


def deque(iterable: Any = (), maxlen: Any = None) -> Any:
    """``collections.deque``: a list.

    Raises:
        NotStaged: only the run knows `maxlen`.
    """
    if maxlen is None:
        return list_of(iterable)
    if is_traced(maxlen):
        raise NotStaged(
            "a deque whose maxlen only the run knows: give it a number that is written down, or "
            f"keep the last elements in an array{at(user_origin())}"
        )
    pool = Pool()
    made = BoundedRow(pool, pool.new().number, maxlen)
    made.extend(list_of(iterable))
    return made


def method(owner: Any, name: str) -> Any:
    """``owner.name``, which may be a method of a deque that is a list."""
    values = direct(owner)
    if isinstance(values, BoundedRow) and name == "appendleft":
        return values.appendleft
    if not isinstance(values, list | GrownList | StackedList | Row):
        return getattr(owner, name)
    if name == "popleft":
        return lambda: values.pop(0)
    return lambda value: values.insert(0, value)


add_stand_in(collections.deque, deque)
