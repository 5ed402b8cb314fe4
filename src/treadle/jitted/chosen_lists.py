"""Lists, dicts and sets that are one object after one branch and another after the other.

After the branches a variable has an object of its own, with the elements that the run chooses. In
Python it would be one of the two: a change of it would be seen by whoever else has that one. Where
that is the caller, such a change is refused.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from treadle.core.interrupts import is_mode
from treadle.core.origin import at, user_origin
from treadle.jitted.errors import NotStaged
from treadle.jitted.left import is_left

_KINDS = (list, dict, set)


class _Chosen(NamedTuple):
    """The object after the branches, its items then, and what it is in Python."""

    merged: Any
    items: list[Any]
    options: tuple[Any, Any]
    place: str


class _Stack(threading.local):
    noted: tuple[list[_Chosen], ...] = ()


_stack = is_mode(_Stack())


class choices:
    """Notes such objects of a function that is being traced."""

    def __enter__(self) -> choices:
        self._before = _stack.noted
        self._own: list[_Chosen] = []
        _stack.noted = (*self._before, self._own)
        return self

    def __exit__(self, *error: object) -> None:
        _stack.noted = self._before

    def check(self, callers: list[Any]) -> None:
        """Refuse changes of an object that may be one of `callers`.

        Raises:
            NotStaged: the function has made one.
        """
        outside = {id(holder) for holder in callers}
        for chosen in self._own:  # in the order in which they were made: one may be another's
            if outside.isdisjoint(map(id, chosen.options)):
                continue
            outside.add(id(chosen.merged))
            if is_left(chosen.merged) or not same_items(chosen.items, items_of(chosen.merged)):
                raise NotStaged(
                    "A list or dict is changed that is the caller's after one branch of a "
                    "conditional that depends on array values, and another one after the other: "
                    "change it in the branches, or give the variable a copy (list(x), dict(x))"
                    f"{chosen.place}"
                )


def chosen(merged: Any, first: Any, second: Any) -> Any:
    """Note an object that is `first` after one branch and `second` after the other; gives it."""
    if _stack.noted and type(merged) in _KINDS and first is not second:
        found = _Chosen(merged, items_of(merged), (first, second), at(user_origin()))
        _stack.noted[-1].append(found)
    return merged


def items_of(holder: Any) -> list[Any]:
    """The items of a list, dict or set, with their positions or keys."""
    return list(holder.items() if isinstance(holder, dict) else enumerate(holder))


def same_items(before: list[Any], after: list[Any]) -> bool:
    """Whether the items are the same objects."""
    return len(before) == len(after) and all(
        k == key and v is value for (k, v), (key, value) in zip(before, after, strict=True)
    )
