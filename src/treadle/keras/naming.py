"""Names that Keras gives objects: the class in snake case, numbered from the second on."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

from treadle.modes import during, is_mode, lock

if TYPE_CHECKING:
    from collections.abc import Sequence

_counts: dict[str, int] = {}
_lock = lock()


def snake_case(name: str) -> str:
    """``MyDense2D`` as ``my_dense2d``, which is Keras's way."""
    split = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", split).lower()


def next_number(prefix: str) -> int:
    """How often a name with the prefix was asked for, now included."""
    with _lock:
        _counts[prefix] = count = _counts.get(prefix, 0) + 1
    return count


def unique_name(class_name: str) -> str:
    """``dense``, then ``dense_1``, ``dense_2`` ..."""
    base = snake_case(class_name)
    count = next_number(base) - 1
    return f"{base}_{count}" if count else base


def clear() -> None:
    """Start numbering anew."""
    with _lock:
        _counts.clear()


class _Scopes(threading.local):
    """What the paths of variables begin with: objects with a `name`, and with a `_parent_path`
    where they were used before in other scopes. Innermost last."""

    owners: tuple[Any, ...] = ()


scopes = is_mode(_Scopes())


def path_of(owners: Sequence[Any]) -> str:
    """Names joined by slashes, from the last of the owners on that has a path of its own."""
    parts: list[str] = []
    for owner in owners:
        parent = getattr(owner, "_parent_path", None)
        if parent is not None:
            parts = [part for part in parent.split("/") if part]
        parts.append(owner.name)
    return "/".join(parts)


class Named:
    """A name that paths of variables have a part of.

    Args:
        caller: the object whose name it is, where somebody asks for it.
        parent: the path before it; that of the scopes around it when omitted.
    """

    def __init__(self, name: str, caller: Any = None, parent: str | None = None) -> None:
        self.name, self.caller = name, caller
        self._parent_path = parent


def opened(owner: Any) -> tuple[Any, ...]:
    """The scopes with that of an owner, who keeps where it was opened first."""
    owners = scopes.owners
    if owner._parent_path is None:
        owner._parent_path = path_of(owners)
    return owners if owners and owners[-1] is owner else (*owners, owner)


def within(owner: Any) -> during:
    """A block in which paths of new variables begin with an owner's, after those around it."""
    return during(scopes, "owners", opened(owner))
