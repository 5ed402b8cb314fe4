"""Stages over several datasets: zip, concatenate, choose, sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import (
    Leaves,
    packed,
    relaxed,
)
from treadle.data.rows import Block, Rows, Store, all_rows
from treadle.data.stages.failures import Failure, carried, released
from treadle.data.stages.randomness import Randomness
from treadle.data.stages.stage import INFINITE, UNKNOWN, Stage, infinite_or_unknown
from treadle.iteration import NDArray


class Zip(Stage):
    """Elements side by side, until the shortest ends."""

    def __init__(self, structure: Any, parts: list[Stage]) -> None:
        self.parts = parts
        self.spec = packed(structure, [p.spec for p in parts])

    def rows(self) -> Rows | None:
        found = [part.rows() for part in self.parts]
        rows = [r for r in found if r is not None and r.in_order]
        return all_rows(_Joined([r.store for r in rows])) if len(rows) == len(found) else None

    def open(self) -> Iterator[Leaves]:
        if (rows := self.rows()) is not None:
            return rows.elements()
        return self._elements()

    def _elements(self) -> Iterator[Leaves]:
        return released(_side_by_side([p.open() for p in self.parts]), self)

    def resume(self, count: int) -> Iterator[Leaves]:
        return released(_side_by_side([p.resume(count) for p in self.parts]), self)

    def cardinality(self) -> int:
        counts = [p.cardinality() for p in self.parts]
        finite = [c for c in counts if c != INFINITE]
        return UNKNOWN if UNKNOWN in counts else min(finite, default=INFINITE)


def _side_by_side(sources: list[Iterator[Leaves]]) -> Iterator[Any]:
    """An error in one of the elements stands for all of them. Where one source has ended, the
    others are asked once more, too: caches among them are whole then."""
    items = list(map(carried, sources))
    while True:
        parts = [next(source, _END) for source in items]
        if any(part is _END for part in parts):
            return
        failed = [part for part in parts if type(part) is Failure]
        yield failed[0] if failed else tuple([leaf for part in parts for leaf in part])


_END: Any = object()


class _Joined(Store):
    """Stores side by side."""

    def __init__(self, stores: list[Store]) -> None:
        self.stores, self.size = stores, min(s.size for s in stores)

    def gather(self, positions: Block) -> list[NDArray]:
        return [array for store in self.stores for array in store.gather(positions)]

    def row(self, position: int) -> Leaves:
        return tuple([leaf for store in self.stores for leaf in store.row(position)])


class Concatenate(Stage):
    def __init__(self, first: Stage, second: Stage) -> None:
        self.parts = [first, second]
        self.spec = relaxed(first.spec, second.spec, "concatenate")

    def open(self) -> Iterator[Leaves]:
        return released((part for stage in self.parts for part in carried(stage.open())), self)

    def resume(self, count: int) -> Iterator[Leaves]:
        first = self.parts[0].cardinality()
        if 0 <= first <= count:
            return self.parts[1].resume(count - first)
        if count < first:
            rest = (self.parts[0].resume(count), self.parts[1].open())
            return released((item for part in rest for item in carried(part)), self)
        return super().resume(count)

    def cardinality(self) -> int:
        counts = [p.cardinality() for p in self.parts]
        if INFINITE in counts:
            return INFINITE
        return UNKNOWN if UNKNOWN in counts else sum(counts)


class Choose(Stage):
    """From the dataset whose number comes next.

    Args:
        choice: a stage of numbers.
        stop: end when the chosen dataset is empty; otherwise go on to the next number.
    """

    def __init__(self, parts: list[Stage], choice: Stage, stop: bool) -> None:
        self.parts, self.choice, self.stop = parts, choice, stop
        self.spec = parts[0].spec
        for part in parts[1:]:
            self.spec = relaxed(self.spec, part.spec, "choose_from_datasets")

    def open(self) -> Iterator[Leaves]:
        return released(self._elements(), self)

    def _elements(self) -> Iterator[Any]:
        sources = [carried(p.open()) for p in self.parts]
        ended: set[int] = set()
        for found in carried(self.choice.open()):
            if type(found) is Failure:
                yield found
                continue
            place = int(found[0])
            if not 0 <= place < len(sources):
                error = td.errors.InvalidArgumentError(
                    None, None, f"choice {place} of {len(sources)} datasets"
                )
                yield Failure(error)
                continue
            leaves = next(sources[place], None)
            if leaves is not None:
                yield leaves
                continue
            ended.add(place)
            if self.stop or len(ended) == len(sources):
                return

    def cardinality(self) -> int:
        return infinite_or_unknown(self.parts)


class Sample(Stage):
    """From a random dataset each time.

    Args:
        weights: how likely each dataset is: an array, or a stage of arrays.
    """

    def __init__(
        self, parts: list[Stage], weights: Any, randomness: Randomness, stop: bool
    ) -> None:
        self.parts, self.weights, self.randomness, self.stop = parts, weights, randomness, stop
        self.spec = parts[0].spec
        for part in parts[1:]:
            self.spec = relaxed(self.spec, part.spec, "sample_from_datasets")

    def open(self) -> Iterator[Leaves]:
        return released(self._elements(), self)

    def _elements(self) -> Iterator[Any]:
        random = self.randomness.generator()
        sources = [carried(p.open()) for p in self.parts]
        alive = np.ones(len(sources), bool)
        for weights in self._weights():
            if type(weights) is Failure:
                yield weights
                continue
            chances = np.where(alive, weights, 0.0)
            if chances.sum() <= 0:
                return
            place = int(random.choice(len(sources), p=chances / chances.sum()))
            leaves = next(sources[place], None)
            if leaves is not None:
                yield leaves
                continue
            alive[place] = False
            if self.stop or not alive.any():
                return

    def cardinality(self) -> int:
        return infinite_or_unknown(self.parts)

    def _weights(self) -> Iterator[Any]:
        """Arrays, and failures."""
        if isinstance(self.weights, Stage):
            for found in carried(self.weights.open()):
                yield found if type(found) is Failure else np.asarray(found[0], np.float64)
            return
        while True:
            yield np.asarray(self.weights, np.float64)


def check_numbers(stage: Stage) -> None:
    """TypeError unless the elements are int64 scalars."""
    if stage.spec != td.TensorSpec((), td.int64):
        raise TypeError(f"choice_dataset must have int64 scalars as elements, got {stage.spec!r}")
