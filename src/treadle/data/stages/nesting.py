"""Stages whose function gives a dataset for every element: flat_map, interleave and the like."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from operator import itemgetter
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import DatasetSpec, Leaves
from treadle.data.stages.batching import Listed
from treadle.data.stages.failures import Failure, attempted, carried, paired, released
from treadle.data.stages.functions import DatasetFunction, Mapped, argument_specs
from treadle.data.stages.stage import (
    Stage,
    available_processors,
    infinite_or_unknown,
    integer,
    invalid,
    known,
)
from treadle.iteration import at, user_origin


class FlatMap(Stage):
    """All elements of the dataset that a function gives for an element, then those of the next.

    Args:
        fn: the user's function, from an element to a dataset.
    """

    def __init__(self, inner: Stage, fn: Callable[..., Any]) -> None:
        self.inner = inner
        self.function = DatasetFunction(fn, inner.spec, "flat_map")
        self.spec, self.captures = self.function.spec, self.function.captures

    def open(self) -> Iterator[Leaves]:
        return released(self._elements(), self)

    def _elements(self) -> Iterator[Any]:
        datasets = self.function.bound_to(self.captures)
        for leaves in carried(self.inner.open()):
            found: Any = leaves if type(leaves) is Failure else attempted(datasets, leaves)
            if type(found) is Failure:
                yield found
            else:
                yield from found


_THREADS_OF_A_DATASET = 3  # that TensorFlow counts where it chooses their number


class Interleave(Stage):
    """`block` elements from each of `cycle` datasets in turn; one that ends is replaced.

    Args:
        cycle: how many; -1 for as many as TensorFlow has threads for on this machine.
        calls: how many elements TensorFlow would take at once: -1 for what is best, None for one
            after another. Here it decides about a `cycle` of -1 and the cardinality only.
    """

    def __init__(
        self, inner: Stage, fn: Callable[..., Any], cycle: Any, block: Any, calls: Any = None
    ) -> None:
        self.inner = inner
        self.calls = None if calls is None else integer(calls, "interleave: num_parallel_calls")
        self.function = DatasetFunction(fn, inner.spec, "interleave")
        self.spec, self.captures = self.function.spec, self.function.captures
        self.cycle = integer(cycle, "interleave: cycle_length")
        self.block = integer(block, "interleave: block_length")
        if known(self.cycle) and self.cycle < 1 and self.cycle != -1:
            raise invalid(f"interleave: cycle_length must be greater than zero, got {self.cycle}")
        if known(self.block) and self.block < 1:
            raise invalid(f"interleave: block_length must be greater than zero, got {self.block}")

    def open(self) -> Iterator[Leaves]:
        datasets = self.function.bound_to(self.captures)
        cycle = int(self.cycle) if self.cycle > 0 else self._cycle_of_this_machine()

        def opened(leaves: Leaves) -> Any:
            return attempted(datasets, leaves)

        found = interleaved(carried(self.inner.open()), opened, cycle, int(self.block))
        return released(found, self)

    def cardinality(self) -> int:
        return infinite_or_unknown([] if self.calls is None else [self.inner])

    def _cycle_of_this_machine(self) -> int:
        processors = available_processors()
        if self.calls is None:
            return processors
        if self.calls > 0:
            return min(int(self.calls), processors)
        return -(-processors // _THREADS_OF_A_DATASET)


def interleaved(
    source: Iterator[Any], opened: Callable[[Any], Any], cycle: int, block: int
) -> Iterator[Any]:
    """`block` items of each of `cycle` iterators in turn; one that ends is replaced. Failures are
    handed on, and do not count.

    Args:
        source: what the iterators are made of.
        opened: gives the iterator of an item of `source`, or a failure.
    """
    current: list[Iterator[Any] | None] = [None] * cycle
    place, more = 0, True
    while more or any(c is not None for c in current):
        inner = current[place]
        if inner is None and more:
            item = next(source, _END)
            found: Any = item if item is _END or type(item) is Failure else opened(item)
            if type(found) is Failure:
                yield found
                continue
            if item is _END:
                more = False
            else:
                inner = current[place] = found
        if inner is not None:
            count = yield from _block(inner, block)
            if count < block:
                current[place] = None
        place = (place + 1) % cycle


def _block(items: Iterator[Any], size: int) -> Generator[Any, None, int]:
    """The next `size` items, and the failures between them; gives how many items there were."""
    count = 0
    while count < size and (item := next(items, _END)) is not _END:
        count += type(item) is not Failure
        yield item
    return count


_END: Any = object()


class GroupByWindow(Stage):
    """Elements collected by key; a full window becomes the elements of a dataset.

    Args:
        key: the key function, on leaves.
        reduce: from (key, dataset of the window) to a dataset.
        size: the size of a window: a number, or a function of the key.
        as_dataset: makes the public Dataset of a stage.
    """

    def __init__(
        self, inner: Stage, key: Mapped, reduce: DatasetFunction, size: Any,
        as_dataset: Callable[[Stage], Any],
    ) -> None:  # fmt: skip
        self.inner, self.key, self.captures = inner, key, key.captures
        self.reduce, self.size, self.as_dataset = reduce, size, as_dataset
        self.outer = reduce.captures
        self.spec = reduce.spec

    def open(self) -> Iterator[Leaves]:
        return released(self._elements(), self)

    def _elements(self) -> Iterator[Any]:
        groups: dict[int, list[Leaves]] = {}
        key_of = self.key.bound_to(self.captures)
        for found in paired(key_of, self.inner.open()):
            if type(found) is Failure:
                yield found
                continue
            (number,), leaves = found
            key = int(number)
            groups.setdefault(key, []).append(leaves)
            if len(groups[key]) >= self._size_of(key):
                yield from self._reduced(key, groups.pop(key))
        for key, group in sorted(groups.items(), key=itemgetter(0)):  # as TensorFlow has them
            yield from self._reduced(key, group)

    def cardinality(self) -> int:
        return infinite_or_unknown([self.inner])

    def _size_of(self, key: int) -> int:
        size = self.size
        if callable(size):
            with td.device("CPU:0"):
                size = size(td.constant(key, td.int64))
        if int(size) < 1:
            raise invalid(f"group_by_window: window_size must be greater than zero, got {size}")
        return int(size)

    def _reduced(self, key: int, group: list[Leaves]) -> Iterator[Any]:
        window = self.as_dataset(Listed(self.inner.spec, group))
        found = attempted(self.reduce.bound_to(self.outer), (np.array(key, np.int64), window))
        return iter((found,)) if type(found) is Failure else found


def grouped(
    inner: Stage, key: Callable[..., Any], reduce: Callable[..., Any], size: Any,
    as_dataset: Callable[[Stage], Any],
) -> GroupByWindow:  # fmt: skip
    """The stage for functions of the user; ValueError where the key is no integer scalar."""
    keys = Mapped(key, argument_specs(inner.spec))
    number = td.TensorSpec((), td.int64)
    given = keys.spec
    if not isinstance(given, td.TensorSpec) or given.rank != 0 or not given.dtype.is_integer:
        raise ValueError(
            f"group_by_window: key_func must return an integer scalar, not {given!r}"
            f"{at(user_origin())}"
        )
    windows = DatasetFunction(reduce, (number, DatasetSpec(inner.spec)), "group_by_window")
    return GroupByWindow(inner, keys, windows, size, as_dataset)
