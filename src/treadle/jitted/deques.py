"""Deques, which jitted functions have as lists."""

from __future__ import annotations

import collections
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.jitted.arrays import direct
from treadle.jitted.comprehensions import list_of
from treadle.jitted.errors import NotStaged
from treadle.jitted.grown_lists import GrownList
from treadle.jitted.namespace import add_stand_in
from treadle.jitted.stacked_lists import StackedList


def deque(iterable: Any = (), maxlen: Any = None) -> Any:
    """``collections.deque``: a list."""
    if maxlen is not None:
        raise NotStaged(f"a deque with maxlen in a jitted function{at(user_origin())}")
    return list_of(iterable)


def method(owner: Any, name: str) -> Any:
    """``owner.name``, which may be a method of a deque that is a list."""
    values = direct(owner)
    if not isinstance(values, list | GrownList | StackedList):
        return getattr(owner, name)
    if name == "popleft":
        return lambda: values.pop(0)
    return lambda value: values.insert(0, value)


add_stand_in(collections.deque, deque)
