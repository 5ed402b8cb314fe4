"""Stages that choose elements or change their order: take, skip, shard, repeat, shuffle, cache."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import Leaves, leaves_of
from treadle.data.rows import (
    Block,
    Rows,
    Store,
    as_array,
    buffered,
    joined,
    limited,
    skipped,
    strided,
)  # fmt: skip
from treadle.data.stages.failures import Failure, carried, paired, released
from treadle.data.stages.functions import Mapped
from treadle.data.stages.randomness import Randomness
from treadle.data.stages.stage import (
    INFINITE,
    UNKNOWN,
    Stage,
    counted,
    in_stage,
    infinite_or_unknown,
    integer,
    invalid,
    known,
    randomness_in,
    scaled,
    stages_in,
)
from treadle.iteration import NDArray, at, user_origin


class Take(Stage):
    def __init__(self, inner: Stage, count: Any) -> None:
        self.inner, self.spec, self.count = inner, inner.spec, integer(count, "take: count")

    def rows(self) -> Rows | None:
        rows, count = self.inner.rows(), int(self.count)
        return rows if rows is None or count < 0 else rows.with_blocks(limited(rows.blocks, count))

    def open(self) -> Iterator[Leaves]:
        if (rows := self.rows()) is not None:
            return rows.elements()
        return self._first(self.inner.open(), int(self.count))

    def resume(self, count: int) -> Iterator[Leaves]:
        left = max(0, int(self.count) - count) if self.count >= 0 else -1
        return self._first(self.inner.resume(count), left)

    def _first(self, source: Iterator[Leaves], count: int) -> Iterator[Leaves]:
        return source if count < 0 else released(_first_of(source, count), self)

    def cardinality(self) -> int:
        inner = self.inner.cardinality()
        if not known(self.count):
            return UNKNOWN
        if inner == INFINITE:
            return int(self.count) if self.count >= 0 else INFINITE
        return scaled(inner, lambda n: min(n, self.count) if self.count >= 0 else n)


def _first_of(source: Iterator[Leaves], count: int) -> Iterator[Any]:
    """The first `count` elements, and the failures between them."""
    if count == 0:
        return
    for leaves in carried(source):
        yield leaves
        count -= type(leaves) is not Failure
        if count == 0:
            return


class Skip(Stage):
    def __init__(self, inner: Stage, count: Any) -> None:
        self.inner, self.spec, self.count = inner, inner.spec, integer(count, "skip: count")

    def rows(self) -> Rows | None:
        rows, count = self.inner.rows(), int(self.count)
        if rows is None:
            return None
        return rows.with_blocks(skipped(rows.blocks, count) if count >= 0 else iter(()))

    def open(self) -> Iterator[Leaves]:
        if (rows := self.rows()) is not None:
            return rows.elements()
        return islice(self.inner.open(), int(self.count), None) if self.count >= 0 else iter(())

    def resume(self, count: int) -> Iterator[Leaves]:
        return self.inner.resume(int(self.count) + count) if self.count >= 0 else iter(())

    def cardinality(self) -> int:
        if not known(self.count):
            return UNKNOWN
        count = int(self.count)
        return scaled(self.inner.cardinality(), lambda n: 0 if count < 0 else max(0, n - count))


class Shard(Stage):
    def __init__(self, inner: Stage, shards: Any, index: Any) -> None:
        self.inner, self.spec = inner, inner.spec
        self.shards = integer(shards, "shard: num_shards")
        self.index = integer(index, "shard: index")
        if known(self.shards) and self.shards < 1:
            raise invalid(f"shard: num_shards must be at least 1, got {self.shards}")
        both = known(self.shards) and known(self.index)
        if both and not 0 <= self.index < self.shards:
            raise invalid(f"shard: index must be in 0..{self.shards - 1}, got {self.index}")

    def rows(self) -> Rows | None:
        rows = self.inner.rows()
        if rows is None:
            return None
        return rows.with_blocks(strided(rows.blocks, int(self.shards), int(self.index)))

    def open(self) -> Iterator[Leaves]:
        if (rows := self.rows()) is not None:
            return rows.elements()
        return islice(self.inner.open(), int(self.index), None, int(self.shards))

    def cardinality(self) -> int:
        if not (known(self.shards) and known(self.index)):
            return UNKNOWN
        return scaled(
            self.inner.cardinality(), lambda n: max(0, -((self.index - n) // self.shards))
        )


class Repeat(Stage):
    def __init__(self, inner: Stage, count: Any) -> None:
        self.inner, self.spec = inner, inner.spec
        self.count = -1 if count is None else integer(count, "repeat: count")

    def rows(self) -> Rows | None:
        rows = self.inner.rows()
        return None if rows is None else rows.with_blocks(self._blocks(rows))

    def _blocks(self, first: Rows) -> Iterator[Block]:
        if int(self.count) == 0:
            return
        yielded = yield from counted(first.blocks)
        done = 1
        while yielded and done != int(self.count):
            again = self.inner.rows()
            assert again is not None
            yielded = yield from counted(again.blocks)
            done += 1

    def open(self) -> Iterator[Leaves]:
        if (rows := self.rows()) is not None:
            return rows.elements()
        return released(self._passes(0, 0), self)

    def _passes(self, done: int, skipped: int) -> Iterator[Any]:
        """The passes after the first `done`, the first without some elements."""
        yielded = 1
        while yielded and done != int(self.count):
            first = self.inner.resume(skipped) if skipped else self.inner.open()
            yielded = skipped + (yield from counted(carried(first)))
            done, skipped = done + 1, 0

    def resume(self, count: int) -> Iterator[Leaves]:
        size = self.inner.cardinality()
        again = any(isinstance(stage, Repeat) for stage in stages_in(self.inner))
        if size <= 0 or again or self.rows() is not None:
            return super().resume(count)
        for random in randomness_in(self.inner):
            random.skip(count // size)
        return released(self._passes(count // size, count % size), self)

    def cardinality(self) -> int:
        inner = self.inner.cardinality()
        if not known(self.count):
            return UNKNOWN
        if self.count == 0 or inner == 0:
            return 0
        if self.count < 0:
            return INFINITE
        return scaled(inner, lambda n: n * self.count)


class Shuffle(Stage):
    """A random order from a buffer: an element leaves it at random when the next comes in.

    Args:
        randomness: the order is drawn from it.
    """

    def __init__(self, inner: Stage, size: Any, randomness: Randomness) -> None:
        self.inner, self.spec, self.randomness = inner, inner.spec, randomness
        self.size = integer(size, "shuffle: buffer_size")
        if known(self.size) and self.size < 1 and self.size != UNKNOWN:
            raise invalid(f"shuffle: buffer_size must be greater than zero, got {self.size}")

    def rows(self) -> Rows | None:
        rows = self.inner.rows()
        return None if rows is None else rows.with_blocks(self._blocks(rows.blocks))

    def _blocks(self, blocks: Iterator[Block]) -> Iterator[Block]:
        random, size = self.randomness.generator(), self._buffer_size()
        first: list[Block] = []
        count = 0
        for block in blocks:
            first.append(block)
            count += len(block)
            if count > size:
                break
        if count <= size:
            if count:
                yield random.permutation(as_array(joined(first)))
            return
        rest = (p for b in chain(first, blocks) for p in as_array(b).tolist())
        yield from buffered(_shuffled(rest, size, random))

    def open(self) -> Iterator[Leaves]:
        if (rows := self.rows()) is not None:
            return rows.elements()
        return released(self._elements(), self)

    def _elements(self) -> Iterator[Any]:
        random = self.randomness.generator()
        yield from _shuffled(carried(self.inner.open()), self._buffer_size(), random)

    def _buffer_size(self) -> int:
        size = int(self.size)
        return size if size > 0 else 1 << 62  # UNKNOWN asks for a full shuffle

    def cardinality(self) -> int:
        return self.inner.cardinality()


def _shuffled(items: Iterator[Any], size: int, random: np.random.Generator) -> Iterator[Any]:
    buffer = list(islice(items, size))
    while len(buffer) == size:
        draws = random.integers(0, size, 1024).tolist()
        for place, item in zip(draws, items, strict=False):
            yield buffer[place]
            buffer[place] = item
        following = next(items, _END)
        if following is _END:
            break
        place = int(random.integers(0, size))
        yield buffer[place]
        buffer[place] = following
    for place in random.permutation(len(buffer)).tolist():
        yield buffer[place]


_END: Any = object()


class Cache(Stage):
    """The elements of the first complete pass, kept in memory."""

    def __init__(self, inner: Stage) -> None:
        self.inner, self.spec = inner, inner.spec
        self.memory = _Memory()

    def renew(self) -> None:
        self.memory = _Memory()

    def rows(self) -> Rows | None:
        rows = self.inner.rows()
        if rows is not None and rows.in_order:
            return rows  # lies in memory already
        return None

    def open(self) -> Iterator[Leaves]:
        if (rows := self.rows()) is not None:
            return rows.elements()
        if self.memory.elements is not None:
            return iter(self.memory.elements)
        return released(self._kept(), self)

    def _kept(self) -> Iterator[Any]:
        """The elements, which are kept where all came without an error: with the last one, where it
        is known to be the last."""
        found, whole, size = [], True, self.inner.cardinality()
        for leaves in carried(self.inner.open()):
            whole = whole and type(leaves) is not Failure
            found.append(leaves)
            if whole and len(found) == size:
                self.memory.elements = found
            yield leaves
        if whole:
            self.memory.elements = found

    def cardinality(self) -> int:
        return self.inner.cardinality()


class _Memory:
    elements: list[Leaves] | None = None


class RejectionResample(Stage):
    """(class, element) for elements that are drawn so that classes have given shares.

    An element is kept with the chance of its class's share over its share among the elements, as
    large as can be: the rarest class, for what it should be, is kept whole.

    Args:
        class_of: the number of the class of an element, on leaves.
        target: the share of each class that is wanted.
        initial: the shares among the elements; None: as the elements so far have them.
    """

    # As many elements of each class count as seen from the beginning, as in TensorFlow: the first
    # classes that come would be taken for all there are, and their elements all be kept.
    _BEFORE = 10

    def __init__(
        self, inner: Stage, class_of: Mapped, target: NDArray, initial: NDArray | None,
        randomness: Randomness,
    ) -> None:  # fmt: skip
        self.inner, self.class_of, self.captures = inner, class_of, class_of.captures
        self.target, self.initial, self.randomness = target, initial, randomness
        self.spec = (class_of.spec, inner.spec)

    def open(self) -> Iterator[Leaves]:
        return released(self._elements(), self)

    def _elements(self) -> Iterator[Any]:
        random = self.randomness.generator()
        call = in_stage(self, self.class_of.bound_to(self.captures))
        seen = np.full(len(self.target), float(self._BEFORE))
        for found in paired(call, self.inner.open()):
            if type(found) is Failure:
                yield found
                continue
            (number,), leaves = found
            if not 0 <= number < len(seen):
                error = td.errors.InvalidArgumentError(
                    None, None, f"rejection_resample: class {number} of {len(seen)} classes"
                )
                yield Failure(error)
                continue
            seen[number] += 1
            shares = seen / seen.sum() if self.initial is None else self.initial
            there = shares > 0
            ratios = np.divide(self.target, shares, out=np.zeros(len(seen)), where=there)
            if random.random() * ratios.max() < ratios[number]:
                yield (number, *leaves)

    def cardinality(self) -> int:
        return infinite_or_unknown([self.inner])


class IgnoreErrors(Stage):
    """The elements that did not fail."""

    def __init__(self, inner: Stage, warn: bool) -> None:
        self.inner, self.spec, self.warn = inner, inner.spec, warn

    def open(self) -> Iterator[Leaves]:
        for leaves in carried(self.inner.open()):
            if type(leaves) is not Failure:
                yield leaves
            elif self.warn:
                warnings.warn(f"ignore_errors: {leaves.error}", RuntimeWarning, stacklevel=2)


class Enumerate(Stage):
    """(number, element)."""

    def __init__(self, inner: Stage, start: Any) -> None:
        self.inner, self.start = inner, integer(start, "enumerate: start")
        self.spec = (td.TensorSpec((), td.int64), inner.spec)

    def rows(self) -> Rows | None:
        rows = self.inner.rows()
        if rows is None or not rows.in_order:
            return None
        return Rows(_Numbered(rows.store, int(self.start)), rows.blocks, in_order=True)

    def open(self) -> Iterator[Leaves]:
        if (rows := self.rows()) is not None:
            return rows.elements()
        return released(_numbered(self.inner.open(), int(self.start)), self)

    def resume(self, count: int) -> Iterator[Leaves]:
        return released(_numbered(self.inner.resume(count), int(self.start) + count), self)

    def cardinality(self) -> int:
        return self.inner.cardinality()


def _numbered(source: Iterator[Leaves], number: int) -> Iterator[Any]:
    for leaves in carried(source):
        yield leaves if type(leaves) is Failure else (np.array(number, np.int64), *leaves)
        number += 1


class _Numbered(Store):
    """A store with the rows' numbers before it."""

    def __init__(self, inner: Store, start: int) -> None:
        self.inner, self.start, self.size = inner, start, inner.size

    def gather(self, positions: Block) -> list[NDArray]:
        return [as_array(positions) + self.start, *self.inner.gather(positions)]

    def row(self, position: int) -> Leaves:
        return (np.array(position + self.start, np.int64), *self.inner.row(position))


class Unique(Stage):
    """Elements that did not come before."""

    def __init__(self, inner: Stage) -> None:
        if len(leaves_of(inner.spec)) != 1:
            raise TypeError(
                f"unique: elements must be single tensors, not {inner.spec!r}{at(user_origin())}"
            )
        self.inner, self.spec = inner, inner.spec

    def open(self) -> Iterator[Leaves]:
        return released(self._elements(), self)

    def _elements(self) -> Iterator[Any]:
        seen: set[Any] = set()
        for leaves in carried(self.inner.open()):
            if type(leaves) is Failure:
                yield leaves
                continue
            leaf = leaves[0]
            same = tuple(leaf.reshape(-1).tolist()) if leaf.dtype.hasobject else leaf.tobytes()
            key = (leaf.shape, same)
            if key not in seen:
                seen.add(key)
                yield leaves
