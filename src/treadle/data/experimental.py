"""``td.data.experimental``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import treadle as td
from treadle.data.dataset import Dataset
from treadle.data.elements import Leaves
from treadle.data.stages.parallel import AUTOTUNE
from treadle.data.stages.stage import INFINITE as INFINITE_CARDINALITY
from treadle.data.stages.stage import UNKNOWN as UNKNOWN_CARDINALITY
from treadle.data.stages.stage import Stage

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "assert_cardinality",
    "cardinality",
    "enumerate_dataset",
    "unbatch",
]


def cardinality(dataset: Dataset) -> td.Tensor:
    """The number of elements, or INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
    return dataset.cardinality()


class AssertCardinality(Stage):
    """Elements whose number is known by promise."""

    def __init__(self, inner: Stage, count: int) -> None:
        self.inner, self.spec, self.count = inner, inner.spec, count

    def open(self) -> Iterator[Leaves]:
        found = 0
        for leaves in self.inner.open():
            found += 1
            if 0 <= self.count < found:
                raise self._wrong("more")
            yield leaves
        if found != self.count and self.count != UNKNOWN_CARDINALITY:
            raise self._wrong(f"only {found}")

    def _wrong(self, found: str) -> td.errors.FailedPreconditionError:
        return td.errors.FailedPreconditionError(
            None, None, f"the dataset was expected to contain {self.count} elements, has {found}"
        )

    def cardinality(self) -> int:
        return self.count


def assert_cardinality(expected_cardinality: Any) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: the dataset has that many elements.

    Raises:
        FailedPreconditionError: while iterating, it has another number.
    """
    return lambda dataset: dataset._then(
        AssertCardinality(dataset._stage, int(expected_cardinality))
    )


def enumerate_dataset(start: Any = 0) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: see `Dataset.enumerate`."""
    return lambda dataset: dataset.enumerate(start)


def unbatch() -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: see `Dataset.unbatch`."""
    return lambda dataset: dataset.unbatch()
