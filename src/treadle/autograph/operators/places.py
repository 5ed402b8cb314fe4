"""Attributes and items that a branch or body assigns: state that lives in objects."""

from __future__ import annotations

from typing import Any

from treadle.autograph.operators.undefined import Undefined


class Attribute:
    """``owner.name`` as a variable."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name

    def get(self) -> Any:
        return getattr(self.owner, self.name, _MISSING)

    def set(self, value: Any) -> None:
        if value is _MISSING:
            if hasattr(self.owner, self.name):
                delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, value)


class Item:
    """``owner[key]`` as a variable."""

    __slots__ = ("key", "owner")

    def __init__(self, owner: Any, key: Any) -> None:
        self.owner, self.key = owner, key

    def get(self) -> Any:
        try:
            return self.owner[self.key]
        except (KeyError, IndexError):
            return _MISSING

    def set(self, value: Any) -> None:
        if value is not _MISSING:
            self.owner[self.key] = value
        elif isinstance(self.owner, dict):
            self.owner.pop(self.key, None)


_MISSING = Undefined("an attribute or item")


def attribute(owner: Any, name: str) -> Attribute:
    return Attribute(owner, name)


def item(owner: Any, key: Any) -> Item:
    return Item(owner, key)
