"""Dictionaries and sets of objects that are told apart by identity, tensors among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, MutableSet
from typing import Any


class IdentityDictionary(MutableMapping[Any, Any]):
    """A dictionary whose keys may be any objects, also those that cannot be hashed."""

    def __init__(self, items: Any = ()) -> None:
        self._items: dict[int, tuple[Any, Any]] = {}
        self.update(items)

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._items[id(key)][1]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        self._items[id(key)] = key, value

    def __delitem__(self, key: Any) -> None:
        del self._items[id(key)]

    def __contains__(self, key: Any) -> bool:
        return id(key) in self._items

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._items.values())!r})"


class IdentitySet(MutableSet[Any]):
    """A set of any objects."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._items: dict[int, Any] = {id(item): item for item in items}

    def add(self, value: Any) -> None:
        self._items[id(value)] = value

    def discard(self, value: Any) -> None:
        self._items.pop(id(value), None)

    def __contains__(self, value: Any) -> bool:
        return id(value) in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._items.values())!r})"
