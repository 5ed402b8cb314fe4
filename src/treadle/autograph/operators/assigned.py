"""Variables that a loop of the graph may leave without a value.

Such a variable is carried as zeros from the start, with a bool beside it that says whether it was
assigned; reading it is an error where the bool is false (`undefined.defined`).
"""

from __future__ import annotations

from typing import Any

from treadle.autograph.operators.undefined import (
    RETURN_VALUE,
    Undefined,
    assigned_flag,
    with_flag,
)
from treadle.core import nest

State = tuple[Any, ...]


class AssignedFlags:
    """The bools of a loop's variables.

    Attributes:
        names: of the variables.
        numbers: the variables that have one.
        initial: its values before the loop.
    """

    def __init__(self, names: list[str], before: State, start: State) -> None:
        """`before`: the state with markers; `start`: with zeros for them."""
        self.names = names
        flags = {
            i: _entry_flag(old, new) for i, (old, new) in enumerate(zip(before, start, strict=True))
        }
        self.numbers = [i for i, flag in flags.items() if flag is not None]
        self.initial = tuple(flags[i] for i in self.numbers)

    def take(self, values: State) -> State:
        """The loop's variables, without the bools at the end but noting them."""
        if not self.numbers:
            return values
        count = len(values) - len(self.numbers)
        for i, flag in zip(self.numbers, values[count:], strict=True):
            for leaf in nest.flatten(values[i]):
                with_flag(leaf, flag, self.names[i])
        return values[:count]

    def add(self, values: State) -> State:
        """The variables after an iteration, followed by their bools."""
        flags = (_flag(values[i]) for i in self.numbers)
        return (*values, *(True if flag is None else flag for flag in flags))


def _entry_flag(before: Any, start: Any) -> Any:
    if isinstance(before, Undefined):
        typed = not isinstance(start, Undefined) and before.name != RETURN_VALUE
        return False if typed else None  # a `return` has its own flag
    return _flag(start)


def _flag(value: Any) -> Any:
    found = (assigned_flag(leaf) for leaf in nest.flatten(value))
    return next((flag for flag in found if flag is not None), None)
