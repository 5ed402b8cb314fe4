"""The keys of ``x[a][b] = value``."""

from __future__ import annotations

from typing import Any


class Path(tuple[Any, ...]):
    """The keys of ``x[a][b]``, from the outside inwards."""

    __slots__ = ()


def path(*keys: Any) -> Path:
    """Several keys, one after the other: ``ag__.set_item(x, ag__.path(a, b), v)``."""
    return Path(keys)
