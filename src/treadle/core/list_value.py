"""ListValue: the run-time form of a graph value with a ListSpec, a persistent list of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import locks
from treadle.core.spec import ListSpec

NDArray = np.ndarray[Any, Any]

_lock = locks.lock()


class ListValue:
    """An immutable list of arrays whose updates are O(1) when each version is used once.

    The newest version holds the items. An older one holds the changes that lead back to it from
    the next newer one, and takes a copy of its own when it is read or changed after all. An item
    that was never written is None and stands for zeros.
    """

    __slots__ = ("_items", "_newer", "_undo", "length", "spec")

    def __init__(self, items: list[NDArray | None], spec: ListSpec) -> None:
        self._items: list[NDArray | None] | None = items
        self.length = len(items)
        self.spec = spec
        self._newer: ListValue | None = None
        self._undo: tuple[int, NDArray | None] | None = None  # None: the newer one appended

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"a list of {self.length} elements"

    def items(self) -> list[NDArray | None]:
        """The items; the caller must not change the list, nor keep it past the next update."""
        with _lock:
            return self._own()

    def get(self, index: int) -> NDArray | None:
        return self.items()[index]

    def push(self, item: NDArray, spec: ListSpec) -> ListValue:
        """The list with `item` appended, with the given spec."""
        with _lock:
            items = self._own()
            items.append(item)
            return self._hand_over(ListValue(items, spec), None)

    def set(self, index: int, item: NDArray, spec: ListSpec) -> ListValue:
        """The list with ``item`` at `index`, a position that exists, with the given spec."""
        with _lock:
            items = self._own()
            undo = (index, items[index])
            items[index] = item
            return self._hand_over(ListValue(items, spec), undo)

    def grown(self, length: int) -> ListValue:
        """The list with unwritten items appended up to `length`."""
        items = self.items()
        more = length - len(items)
        return ListValue(items + [None] * more, self.spec) if more > 0 else self

    def _hand_over(self, newer: ListValue, undo: tuple[int, NDArray | None] | None) -> ListValue:
        self._items, self._newer, self._undo = None, newer, undo
        return newer

    def _own(self) -> list[NDArray | None]:
        """This version's items in a list of its own, rebuilt from the newer versions if needed."""
        if self._items is not None:
            return self._items
        chain: list[ListValue] = []
        version: ListValue = self
        while version._items is None:
            chain.append(version)
            assert version._newer is not None
            version = version._newer
        items = list(version._items)
        for old in reversed(chain):
            del items[old.length :]
            if old._undo is not None:
                items[old._undo[0]] = old._undo[1]
        self._items, self._newer, self._undo = items, None, None
        return items
