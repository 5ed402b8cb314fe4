"""The branches and loops that are being traced, with their variables."""

from __future__ import annotations

import threading
from typing import Any

from treadle.core.interrupts import during, is_mode
from treadle.jitted.left import origin_of
from treadle.jitted.storage import scopes


class _Open(threading.local):
    """The variables of the branches and loops that are being traced, each with the number of traced
    bodies around it."""

    states: tuple[tuple[tuple[Any, ...], int], ...] = ()


_open = is_mode(_Open())


def opened(state: tuple[Any, ...]) -> during:
    """While a branch or loop with these variables is traced."""
    return during(_open, "states", (*_open.states, (state, len(scopes.open))))


def statements_around() -> list[tuple[Any, ...]]:
    """The variables and functions of the branches and loops whose bodies are being traced."""
    return [state for state, depth in _open.states if depth < len(scopes.open)]


class in_python:
    """While Python runs a branch, or iterations of a loop, of the innermost statement: what has to
    be another list or dict becomes it there, as what has run already cannot be run again."""

    count = 0  # how often that was

    def __enter__(self) -> None:
        in_python.count += 1
        self._before = _open.states
        _open.states = _open.states[:-1]

    def __exit__(self, *error: object) -> None:
        _open.states = self._before


def is_outermost(owner: Any) -> bool:
    """Whether no branch or loop around has a dict, set or table among its variables."""
    return not any(is_it(value, owner) for state, _ in _open.states for value in state)


def is_from_outside(owner: Any) -> bool:
    """Whether a dict, set or list is a variable of a branch or loop whose body is being traced."""
    return any(
        is_it(value, owner)
        for state, depth in _open.states
        if depth < len(scopes.open)
        for value in state
    )


def is_it(value: Any, owner: Any) -> bool:
    """Whether a variable is a list, dict or set, or what a branch or loop has made of it."""
    return value is owner or (owner is not None and origin_of(value) is owner)
