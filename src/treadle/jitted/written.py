"""Functions of treadle's own that are written as users write theirs: traced with the function that
calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.jitted.later import later


def traced(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """``function(*args, **options)``, converted."""
    return later.convert(function)(*args, **options)


def converted(function: Any) -> Any:
    """What is called in place of a function of the user's that is an argument."""
    return None if function is None else later.convert(function)


def put_in_order(owner: Any, key: Any, reverse: Any) -> None:
    """``owner.sort(key=key, reverse=reverse)`` of a list of the graph."""
    later.sort(owner, converted(key), reverse)
