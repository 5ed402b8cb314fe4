"""Variables of outer functions and of the module, as state of branches and loops."""

from __future__ import annotations

from collections.abc import Callable
from types import CellType
from typing import Any

from treadle.autograph.operators.undefined import Undefined

MISSING = Undefined("a variable of an outer function or the module")


class Cell:
    """A variable that functions share.

    Attributes:
        checked: whether all reads of it find out that it has no value.
    """

    __slots__ = ("checked", "name", "owner")

    def __init__(self, owner: CellType, name: str, checked: bool) -> None:
        self.owner, self.name, self.checked = owner, name, checked

    @property
    def label(self) -> str:
        return f"variable {self.name!r}"

    @property
    def identity(self) -> tuple[Any, ...]:
        return "cell", id(self.owner)

    def get(self) -> Any:
        try:
            return self.owner.cell_contents
        except ValueError:  # not assigned yet
            return MISSING

    def set(self, value: Any) -> None:
        if value is not MISSING:
            self.owner.cell_contents = value
        elif self.get() is not MISSING:
            del self.owner.cell_contents


class Global:
    """A variable of a module."""

    __slots__ = ("name", "owner")
    checked = False

    def __init__(self, owner: dict[str, Any], name: str) -> None:
        self.owner, self.name = owner, name

    @property
    def identity(self) -> tuple[Any, ...]:
        return "global", id(self.owner), self.name

    @property
    def label(self) -> str:
        return f"global variable {self.name!r}"

    def get(self) -> Any:
        return self.owner.get(self.name, MISSING)

    def set(self, value: Any) -> None:
        if value is MISSING:
            self.owner.pop(self.name, None)
        else:
            self.owner[self.name] = value


def outer(reader: Callable[[], Any], checked: bool = False) -> Cell | Global:
    """The variable that ``lambda: name`` reads. `checked`: see `Cell`."""
    if reader.__closure__:
        return Cell(reader.__closure__[0], reader.__code__.co_freevars[0], checked)
    return Global(reader.__globals__, reader.__code__.co_names[0])
