"""Why the control flow of a jitted function cannot become the graph's."""

from __future__ import annotations

from typing import Any


class NotStaged(TypeError):
    """A loop or branch cannot be one of the graph: its variables do not keep their structure."""


class NoForm(TypeError):
    """A value that the graph cannot hold, or two that it cannot hold in one variable."""


class ChangesLength(NotStaged):
    """A list that a comprehension made changes its length in a loop or branch of the graph, or has
    a length that only the run knows: it must be one of the graph before.

    Attributes:
        owner: the list.
    """

    def __init__(self, owner: Any, why: str) -> None:
        super().__init__(why)
        self.owner = owner


class CallsItself(NotStaged):
    """A function calls itself for ever while it is traced: only the run knows when to end.

    Attributes:
        code: of the converted function; None where it is not known.
    """

    def __init__(self, name: str, code: Any, where: str) -> None:
        super().__init__(
            f"{name} calls itself, or others that call it, under a condition that only the run "
            "knows, and cannot become a loop with a stack: write a loop, with a list of what is "
            f"left to be done{where}"
        )
        self.code = code


class NotReached(Exception):
    """No program comes to what a branch does, as far as its trace has come."""
