"""Functions of treadle's own that are written as users write theirs: traced with the function that
calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_conversion: list[Callable[[Any], Any]] = []


def set_conversion(call: Callable[[Any], Any]) -> None:
    """Set what converts functions: `conversion.call`, whose module finds stand-ins by name and so
    imports those that call functions from here."""
    _conversion[:] = [call]


def traced(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """``function(*args, **options)``, converted."""
    return _conversion[0](function)(*args, **options)


def converted(function: Any) -> Any:
    """What is called in place of a function of the user's that is an argument."""
    return None if function is None else _conversion[0](function)


_sort: list[Callable[..., None]] = []


def set_sort(sort: Callable[..., None]) -> None:
    """Set what puts lists in order: `sorting.sort`, which makes such lists itself, so that their
    modules cannot import it."""
    _sort[:] = [sort]


def put_in_order(owner: Any, key: Any, reverse: Any) -> None:
    """``owner.sort(key=key, reverse=reverse)`` of a list of the graph."""
    _sort[0](owner, converted(key), reverse)
