"""Attributes and items that a branch or body assigns: state that lives in objects."""

from __future__ import annotations

from typing import Any

from treadle.autograph.operators.undefined import Undefined
from treadle.core.tensor import Tensor
from treadle.ops.collections.graph_list import GraphList


class Attribute:
    """``owner.name`` as a variable."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name

    @property
    def identity(self) -> tuple[Any, ...]:
        return "attribute", id(self.owner), self.name

    @property
    def label(self) -> str:
        return f"attribute {self.name!r}"

    def get(self) -> Any:
        return getattr(self.owner, self.name, MISSING)

    def set(self, value: Any) -> None:
        if value is MISSING:
            if hasattr(self.owner, self.name):
                delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, value)


class Item:
    """``owner[key]`` as a variable."""

    __slots__ = ("key", "owner")

    def __init__(self, owner: Any, key: Any) -> None:
        self.owner, self.key = owner, key

    @property
    def identity(self) -> tuple[Any, ...]:
        try:
            hash(self.key)
        except TypeError:
            return "item", id(self.owner), id(self.key)
        return "item", id(self.owner), self.key

    @property
    def label(self) -> str:
        return f"item {self.key!r}"

    def get(self) -> Any:
        try:
            return self.owner[self.key]
        except (KeyError, IndexError):
            return MISSING

    def set(self, value: Any) -> None:
        if value is not MISSING:
            self.owner[self.key] = value
        elif isinstance(self.owner, dict):
            self.owner.pop(self.key, None)


class ListContent:
    """All that a Python list holds."""

    __slots__ = ("owner",)
    label = "an element of a list"

    def __init__(self, owner: list[Any]) -> None:
        self.owner = owner

    @property
    def identity(self) -> tuple[Any, ...]:
        return "list", id(self.owner)

    def get(self) -> list[Any]:
        return list(self.owner)

    def set(self, value: Any) -> None:
        self.owner[:] = value


class DictContent:
    """All that a dict holds."""

    __slots__ = ("owner",)
    label = "an element of a dict"

    def __init__(self, owner: dict[Any, Any]) -> None:
        self.owner = owner

    @property
    def identity(self) -> tuple[Any, ...]:
        return "dict", id(self.owner)

    def get(self) -> dict[Any, Any]:
        return dict(self.owner)

    def set(self, value: Any) -> None:
        if list(value) != list(self.owner):
            self.owner.clear()
        dict.update(self.owner, value)  # a Counter's own adds


class GraphListContent:
    """All that a list of the graph holds."""

    __slots__ = ("owner",)
    label = "an element of a list"

    def __init__(self, owner: GraphList) -> None:
        self.owner = owner

    @property
    def identity(self) -> tuple[Any, ...]:
        return "graph list", id(self.owner)

    def get(self) -> GraphList:
        return self.owner.copy()

    def set(self, value: GraphList) -> None:
        self.owner.template, self.owner.parts = value.template, list(value.parts)


Content = ListContent | DictContent | GraphListContent


def content_place(value: Any) -> Content | None:
    """All that a list or dict holds as one place; None for other objects."""
    if isinstance(value, GraphList):
        return GraphListContent(value)
    if isinstance(value, list):
        return ListContent(value)
    return DictContent(value) if isinstance(value, dict) else None


MISSING = Undefined("an attribute or item")


def attribute(owner: Any, name: str, items: bool = False) -> Any:
    """The place ``owner.name``.

    Args:
        items: only items of it are assigned: the attribute itself changes where it is a tensor,
            otherwise the content of a list or dict does.
    """
    value = getattr(owner, name, None)
    if items and not isinstance(value, Tensor):
        return content_place(value)
    return Attribute(owner, name)


def item(owner: Any, key: Any) -> Item | None:
    """The place ``owner[key]``; None for a tensor, which is a variable's value itself."""
    return None if isinstance(owner, Tensor) else Item(owner, key)
