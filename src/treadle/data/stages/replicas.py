"""Stages that share the elements of a dataset out among the replicas of a strategy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import treadle as td
from treadle.data.elements import Leaves, leaves_of, map_leaves
from treadle.data.stages.stage import Stage, scaled
from treadle.iteration import at, user_origin


class Shares(Stage):
    """The parts of each batch that some replicas get: neighbouring examples, the same number for
    each; of a batch that does not divide, the last ones get fewer or none, as in TensorFlow.

    Args:
        replicas: how many replicas share a batch.
        first, count: those that are here: an element is a tuple of their parts, or the part where
            there is one.
    """

    def __init__(self, inner: Stage, replicas: int, first: int, count: int) -> None:
        self.inner, self.replicas, self.first, self.count = inner, replicas, first, count
        if any(s.shape.rank == 0 for s in leaves_of(inner.spec)):
            raise ValueError(
                "A dataset that replicas share must consist of batches: use dataset.batch(n), n "
                f"being the examples of all replicas together{at(user_origin())}"
            )
        part = map_leaves(lambda s: td.TensorSpec([None, *s.shape[1:]], s.dtype), inner.spec)
        self.spec = part if count == 1 else (part,) * count

    def open(self) -> Iterator[Leaves]:
        return map(self._parts, self.inner.open())

    def resume(self, count: int) -> Iterator[Leaves]:
        return map(self._parts, self.inner.resume(count))

    def _parts(self, leaves: Leaves) -> Leaves:
        return tuple([x[a:b] for a, b in self._bounds(len(leaves[0])) for x in leaves])

    def _bounds(self, size: int) -> list[tuple[int, int]]:
        each = -(-size // self.replicas)
        numbers = range(self.first, self.first + self.count)
        return [(min(n * each, size), min((n + 1) * each, size)) for n in numbers]

    def cardinality(self) -> int:
        return self.inner.cardinality()


class InTurn(Stage):
    """Tuples of neighbouring batches, one for each of `count` replicas. The last tuple is filled up
    with batches of no examples."""

    def __init__(self, inner: Stage, count: int) -> None:
        self.inner, self.count = inner, count
        part = map_leaves(_open_first, inner.spec)
        self.spec = (part,) * count

    def open(self) -> Iterator[Leaves]:
        return self._joined(self.inner.open())

    def resume(self, count: int) -> Iterator[Leaves]:
        return self._joined(self.inner.resume(count * self.count))

    def _joined(self, batches: Iterator[Leaves]) -> Iterator[Leaves]:
        def step() -> Leaves | None:
            group = list(islice(batches, self.count))
            if not group:
                return None
            none = tuple([x[:0] for x in group[0]])
            group += [none] * (self.count - len(group))
            return tuple(chain.from_iterable(group))

        return iter(step, None)

    def cardinality(self) -> int:
        return scaled(self.inner.cardinality(), lambda n: -(-n // self.count))


def _open_first(spec: Any) -> Any:
    return td.TensorSpec([None, *spec.shape[1:]], spec.dtype) if spec.rank else spec
