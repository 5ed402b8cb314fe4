"""Lists, dicts and sets of Python's that have to be others of the graph before a branch or loop."""

from __future__ import annotations

from typing import Any

from treadle.core.origin import at, user_origin
from treadle.jitted.errors import NotStaged
from treadle.jitted.grown_lists import GrownList, Template


class BecomesOther(NotStaged):
    """A list, dict or set has to be one of the graph before a branch or loop.

    Attributes:
        owner: as it is before.
    """

    owner: Any

    def made(self) -> Any:
        """What it becomes."""
        raise NotImplementedError


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
