"""Batches that are filled while their elements are made: each has its place in one.

Threads of a map write the arrays of a result into the batch itself, while they are in the caches of
their processors; `batch` has nothing to copy then, and is woken once for a batch.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.data.elements import Leaves
from treadle.data.stages.failures import Failure
from treadle.iteration import NDArray, empty


class Placed:
    """An element that is a row of arrays.

    Attributes:
        arrays: one for each leaf.
    """

    __slots__ = ("arrays", "row")

    def __init__(self, arrays: Sequence[NDArray], row: int) -> None:
        self.arrays, self.row = arrays, row

    def leaves(self) -> Leaves:
        """The element as others see it."""
        return tuple([array[self.row, ...] for array in self.arrays])


class Places:
    """The places of elements in batches, by the elements' numbers.

    Args:
        size: of a batch.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock = threading.Lock()
        self._arrays: dict[int, list[NDArray]] = {}  # of a batch, by its number, until it is full
        self._missing: dict[int, int] = {}

    def put(self, number: int, result: Any) -> Any:
        """Write an element into its place. One of another form than its batch stays as it is, and
        so does a failure."""
        failed = type(result) is Failure
        batch, row = divmod(number, self.size)
        with self._lock:
            arrays = self._arrays.get(batch)
            if arrays is None and not failed:
                arrays = self._arrays[batch] = self._room(result)
            missing = self._missing[batch] = self._missing.get(batch, self.size) - 1
            if not missing:
                self._arrays.pop(batch, None)
                del self._missing[batch]
        if failed or not arrays or not all(map(_fits, result, arrays)):
            return result
        for leaf, array in zip(result, arrays, strict=True):
            array[row, ...] = leaf
        return Placed(arrays, row)

    def _room(self, leaves: Leaves) -> list[NDArray]:
        """Arrays for a batch of elements like this one; none where they are no plain arrays."""
        if any(type(leaf) is not np.ndarray or leaf.dtype == object for leaf in leaves):
            return []
        return [empty((self.size, *leaf.shape), leaf.dtype) for leaf in leaves]


def _fits(leaf: Any, array: NDArray) -> bool:
    return type(leaf) is np.ndarray and leaf.shape == array.shape[1:]


def joined(group: list[Any], size: int) -> Leaves | None:
    """The batch that these elements are already; None where they have to be put together."""
    first = group[0]
    if type(first) is not Placed or len(group) != size:
        return None
    arrays = first.arrays
    for row, element in enumerate(group):
        if type(element) is not Placed or element.arrays is not arrays or element.row != row:
            return None
    return tuple(arrays)


def apart(element: Any) -> Leaves:
    """The leaves of an element, which may be a row of a batch."""
    found: Leaves = element.leaves() if type(element) is Placed else element
    return found
