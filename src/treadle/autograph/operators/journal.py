"""Changes that a branch or loop body makes in Python's own objects while it is traced.

Both branches of a conditional on a tensor run while it is traced, and a loop's body runs once for
any number of iterations. The content of the objects that are known there by name is kept, so that
changes can be taken back and made again with the merged values.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from treadle.autograph.operators.places import Item, content_place
from treadle.core import nest
from treadle.core.interrupts import Undone, is_mode
from treadle.core.tensor import Tensor
from treadle.ops.collections.graph_list import GraphList

Key = tuple[Any, ...]


class Journal(Undone):
    """The places inside some objects, with their values before a region and after it."""

    def __init__(self, objects: Iterable[Any]) -> None:
        self.places: dict[Key, Any] = {}
        self.before: dict[Key, Any] = {}
        self.after: dict[Key, Any] = {}
        self.owners: dict[int, Any] = {}
        for found in objects:
            self._watch(found)

    def _watch(self, value: Any) -> None:
        place = content_place(value)
        if id(value) in self.owners:
            return
        if place is not None:
            self.note(place)
        elif not isinstance(value, tuple):
            if is_owner(value):
                self.owners[id(value)] = value
            return
        self.owners[id(value)] = value
        if not isinstance(value, GraphList):
            for _, child in nest.children(value) or ():
                self._watch(child)

    def note(self, place: Any) -> None:
        if place.identity not in self.places:
            self.places[place.identity] = place
            self.before[place.identity] = place.get()

    def undo(self) -> None:
        """Keep the values that the places have now, and put the earlier ones back."""
        self.after = {key: place.get() for key, place in self.places.items()}
        for key, place in reversed(self.places.items()):
            place.set(self.before[key])

    def content(self, value: Any) -> Any:
        """The content of a list at the end of the region; other values as they are."""
        place = content_place(value) if isinstance(value, list | GraphList) else None
        return value if place is None else self.after.get(place.identity, value)


def is_owner(value: Any) -> bool:
    """Whether a value is an object whose items are changed in place."""
    if isinstance(value, list | dict | GraphList) or _is_changeable_dataclass(value):
        return True
    return not nest.is_nested(value) and hasattr(type(value), "__setitem__") and _is_users(value)


def _is_changeable_dataclass(value: Any) -> bool:
    parameters = getattr(type(value), "__dataclass_params__", None)
    return parameters is not None and not parameters.frozen


def _is_users(value: Any) -> bool:
    module = type(value).__module__.partition(".")[0]
    return module not in ("treadle", "tensorflow", "numpy", "builtins")  # see as_tensorflow


class _Stack(threading.local):
    journals: tuple[Journal, ...] = ()


_stack = is_mode(_Stack())


class changes:
    """Keep the content of `objects` in a `Journal`; their changes are undone at the end."""

    def __init__(self, objects: Iterable[Any]) -> None:
        self._journal = Journal(objects)

    def __enter__(self) -> Journal:
        self._before = _stack.journals
        _stack.journals = (*self._before, self._journal)
        return self._journal

    def __exit__(self, *error: object) -> None:
        self._journal.undo()
        _stack.journals = self._before


def note_item(owner: Any, key: Any) -> None:
    """Call before ``owner[key]`` is changed."""
    if _stack.journals and content_place(owner) is None and not isinstance(key, Tensor):
        journal = _stack.journals[-1]
        if id(owner) in journal.owners:
            journal.note(Item(owner, key))
