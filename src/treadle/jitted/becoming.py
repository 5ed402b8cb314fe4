"""Lists, dicts and sets of Python's that have to be others of the graph before a branch or loop."""

from __future__ import annotations

import threading
from typing import Any

from treadle.core.interrupts import during, is_mode
from treadle.core.origin import at, user_origin
from treadle.jitted.errors import NotStaged
from treadle.jitted.grown_lists import GrownList, Template


class BecomesOther(NotStaged):
    """A list, dict or set has to be one of the graph before a branch or loop.

    Attributes:
        owner: as it is before.
    """

    owner: Any

    may_stay = False  # whether it can also be written out, with Python's own

    def made(self) -> Any:
        """What it becomes."""
        raise NotImplementedError


class _Kept(threading.local):
    owners: tuple[Any, ...] = ()


_kept = is_mode(_Kept())


def keeping(owner: Any) -> during:
    """While a statement is traced in which a list stays one of Python's."""
    return during(_kept, "owners", (*_kept.owners, owner))


def is_kept(owner: Any) -> bool:
    return any(owner is kept for kept in _kept.owners)


class NeedsList(BecomesOther):
    """A list is changed by a function that needs one of the graph, as `heapq.heappush` does.

    Args:
        owner: the list.
        template: the form of its elements.
    """

    def __init__(self, owner: list[Any], template: Template) -> None:
        super().__init__(
            "A list changes in a branch or loop in which it is no variable of the function"
            f"{at(user_origin())}"
        )
        self.owner, self.template = owner, template

    def made(self) -> GrownList:
        return GrownList.of(self.owner, self.template)
