"""Lists, dicts and sets of Python's that have to be others of the graph before a branch or loop.

Tracing a branch or loop finds out what its variables have to be. Where one has to be another object
than it is, a `BecomesOther` ends the trace; the statement before which that object is made traces
again with it (`traced_again`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.interrupts import during, is_mode
from treadle.core.origin import at, user_origin
from treadle.jitted.errors import ChangesLength, NotStaged
from treadle.jitted.grown_lists import GrownList, Template
from treadle.jitted.left import check_names, leave, leaving
from treadle.jitted.opened import in_python, is_it, is_outermost
from treadle.jitted.storage import scopes


class BecomesOther(NotStaged):
    """A list, dict or set has to be one of the graph before a branch or loop.

    Attributes:
        owner: as it is before.
    """

    owner: Any

    may_stay = False  # whether it can also be written out, with Python's own
    widens = False  # whether it became one already, which does not hold what comes to it

    def made(self) -> Any:
        """What it becomes."""
        raise NotImplementedError

    def is_here(self, args: Sequence[Any], begun: int) -> bool:
        """Whether it becomes that before a statement.

        Args:
            args: of the statement, its variables among them.
            begun: `in_python.count` when the statement began.
        """
        return any(is_it(a, self.owner) for a in args) and is_outermost(self.owner)

    def put(self, args: Sequence[Any], made: Any) -> tuple[Any, ...]:
        """The arguments with what it becomes."""
        return tuple(made if is_it(a, self.owner) else a for a in args)


    def ended(self, made: Any) -> None:
        """Called behind the statement."""


class Lengthens(BecomesOther):
    """A list that a comprehension made has to be one that may change its length.

    Args:
        problem: says so.
    """

    def __init__(self, problem: ChangesLength) -> None:
        super().__init__(str(problem))
        self.owner = problem.owner

    def made(self) -> GrownList:
        return GrownList.of_stacked(self.owner)

    def is_here(self, args: Sequence[Any], begun: int) -> bool:
        return self.owner.scope is scopes.innermost and any(a is self.owner for a in args)

    def ended(self, made: Any) -> None:
        leave(self.owner, made)


class Grows(BecomesOther):
    """A list grows in a branch.

    Args:
        owner: the list, as it is before the branch.
        template: the form of its elements.
    """

    def __init__(self, owner: Any, template: Template, why: str) -> None:
        super().__init__(why)
        self.owner, self.template = owner, template

    def made(self) -> GrownList:
        return GrownList.of(self.owner, self.template)

    def is_here(self, args: Sequence[Any], begun: int) -> bool:
        return any(a is self.owner for a in args)


def traced_again(
    problem: BecomesOther, statement: Callable[..., Any], args: Sequence[Any],
    options: dict[str, Any], begun: int, unstaged: tuple[type[Exception], ...],
) -> Any:  # fmt: skip
    """A statement that ended with a problem, with another object in place of the owner.

    Args:
        begun: `in_python.count` when it began: what Python has run of it cannot be run again.
        unstaged: what a statement raises that cannot become one of the graph.

    Raises:
        BecomesOther: the problem is another statement's.
    """
    owner = problem.owner
    while problem.is_here(args, begun):
        try:
            check_names(args, owner)
            made = problem.made()
            with leaving(owner, made):
                result = statement(*problem.put(args, made), **options)
            problem.ended(made)
            return result
        except unstaged as found:
            if in_python.count != begun:
                raise
            if isinstance(found, BecomesOther) and found.widens:
                if found.owner is not owner:
                    raise
                problem = found
            elif problem.may_stay:
                with keeping(owner):
                    return statement(*args, **options)
            else:
                raise
    raise problem


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
