"""Stages that put elements together or take them apart: batch, padded_batch, unbatch, window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import (
    DatasetSpec,
    Leaves,
    holds_datasets,
    leaves_of,
    map_leaves,
    packed,
    stack,
)
from treadle.data.rows import Block, Rows, Store, regrouped, skipped
from treadle.data.stages.failures import Failure, carried, released
from treadle.data.stages.stage import UNKNOWN, Stage, integer, invalid, known, scaled
from treadle.iteration import NDArray, at, recording, user_origin


def batch_size(size: Any, what: str) -> Any:
    number = integer(size, f"{what}: batch_size")
    if known(number) and number < 1:
        raise invalid(f"{what}: batch_size must be greater than zero, got {number}")
    return number


def batches_of(
    items: Iterator[Leaves], size: int, drop: bool, joined: Callable[[list[Leaves]], Leaves]
) -> Iterator[Leaves]:
    """Groups of elements, joined. An error loses the group that it is in."""

    def step() -> Leaves | None:
        group = list(islice(items, size))
        return joined(group) if len(group) == size or (group and not drop) else None

    return iter(step, None)


class Batch(Stage):
    def __init__(self, inner: Stage, size: Any, drop: bool) -> None:
        self.inner, self.drop = inner, drop
        self.size = batch_size(size, "batch")
        if holds_datasets(inner.spec):
            raise TypeError(
                f"batch: elements that are datasets cannot be batched{at(user_origin())}"
            )
        first = self.size if drop and known(self.size) else None
        self.spec = map_leaves(lambda s: td.TensorSpec([first] + s.shape, s.dtype), inner.spec)

    def open(self) -> Iterator[Leaves]:
        rows = self.inner.rows()
        if rows is None:
            return batches_of(self.inner.open(), int(self.size), self.drop, self._stacked)
        return self._gathered(rows)

    def resume(self, count: int) -> Iterator[Leaves]:
        size, rows = int(self.size), self.inner.rows()
        if rows is None:
            return batches_of(self.inner.resume(count * size), size, self.drop, self._stacked)
        return self._gathered(rows.with_blocks(skipped(rows.blocks, count * size)))

    def _gathered(self, rows: Rows) -> Iterator[Leaves]:
        size, gather = int(self.size), rows.store.gather
        for block in regrouped(rows.blocks, size):
            if len(block) == size or not self.drop:
                yield tuple(gather(block))

    def _stacked(self, group: list[Leaves]) -> Leaves:
        return tuple([stack(leaves) for leaves in zip(*group, strict=True)])

    def cardinality(self) -> int:
        if not known(self.size):
            return UNKNOWN
        size, drop = self.size, self.drop
        return scaled(self.inner.cardinality(), lambda n: n // size if drop else -(-n // size))


class PaddedBatch(Stage):
    """Batches of elements whose shapes differ, filled up to the largest or to given shapes."""

    def __init__(self, inner: Stage, size: Any, shapes: Any, values: Any, drop: bool) -> None:
        self.inner, self.drop = inner, drop
        self.size = batch_size(size, "padded_batch")
        specs = leaves_of(inner.spec)
        self.shapes = _padded_shapes(inner.spec, specs, shapes)
        self.values = _padding_values(inner.spec, specs, values)
        first = self.size if drop and known(self.size) else None
        padded = [
            td.TensorSpec([first, *shape], s.dtype)
            for s, shape in zip(specs, self.shapes, strict=True)
        ]
        self.spec = packed(inner.spec, padded)

    def open(self) -> Iterator[Leaves]:
        return batches_of(self.inner.open(), int(self.size), self.drop, self._stacked)

    def resume(self, count: int) -> Iterator[Leaves]:
        size = int(self.size)
        return batches_of(self.inner.resume(count * size), size, self.drop, self._stacked)

    def _stacked(self, group: list[Leaves]) -> Leaves:
        columns = zip(zip(*group, strict=True), self.shapes, self.values, strict=True)
        return tuple([_padded(leaves, shape, value) for leaves, shape, value in columns])

    def cardinality(self) -> int:
        if not known(self.size):
            return UNKNOWN
        size, drop = self.size, self.drop
        return scaled(self.inner.cardinality(), lambda n: n // size if drop else -(-n // size))


def _padded(leaves: tuple[NDArray, ...], shape: tuple[Any, ...], value: Any) -> NDArray:
    largest = [max(sizes) for sizes in zip(*(leaf.shape for leaf in leaves), strict=True)]
    full = [size if given is None else given for size, given in zip(largest, shape, strict=True)]
    if any(size > given for size, given in zip(largest, full, strict=True)):
        raise td.errors.DataLossError(
            None, None,
            f"padded_batch: an element of shape {largest} is larger than padded_shapes {full}",
        )  # fmt: skip
    out = np.full((len(leaves), *full), value, leaves[0].dtype)
    for i, leaf in enumerate(leaves):
        place: tuple[Any, ...] = (i, *(slice(n) for n in leaf.shape), ...)
        out[place] = leaf
    return out


def _padded_shapes(structure: Any, specs: list[Any], shapes: Any) -> list[tuple[Any, ...]]:
    if shapes is None:
        return [tuple(s.shape) for s in specs]
    given = _leaves_for(structure, shapes)
    result = []
    for spec, shape in zip(specs, given, strict=True):
        if isinstance(shape, int):
            shape = [shape]
        dims = tuple(None if d == -1 else d for d in td.TensorShape(shape))
        if len(dims) != spec.rank:
            raise ValueError(
                f"padded_batch: padded_shapes {dims} for elements of shape {spec.shape}: the "
                f"ranks differ{at(user_origin())}"
            )
        result.append(dims)
    return result


def filled_shapes(spec: Any, shapes: Any, size: int) -> Any:
    """The shapes for `padded_batch` with a size in place of those that are open."""
    known = _padded_shapes(spec, leaves_of(spec), shapes)
    return packed(spec, [td.TensorShape([size if d is None else d for d in s]) for s in known])


def _padding_values(structure: Any, specs: list[Any], values: Any) -> list[Any]:
    given = [None] * len(specs) if values is None else _leaves_for(structure, values)
    if len(given) == 1:
        given = given * len(specs)
    result = []
    for spec, value in zip(specs, given, strict=True):
        with recording(None), td.device("CPU:0"):  # a number of Python's is one in functions, too
            tensor = td.convert_to_tensor(td.zeros((), spec.dtype) if value is None else value)
        if tensor.dtype is not spec.dtype:
            raise TypeError(
                f"padded_batch: a padding value of {tensor.dtype.name} for elements of "
                f"{spec.dtype.name}{at(user_origin())}"
            )
        result.append(np.asarray(tensor))
    return result


def _leaves_for(structure: Any, given: Any) -> list[Any]:
    """The part of `given` for each leaf of the structure; lists and shapes are such parts."""
    if isinstance(structure, tuple):
        if not isinstance(given, list | tuple) or len(given) != len(structure):
            return [given]
        pairs = zip(structure, given, strict=True)
        return [leaf for s, g in pairs for leaf in _leaves_for(s, g)]
    if isinstance(structure, dict):
        return [leaf for k in sorted(structure) for leaf in _leaves_for(structure[k], given[k])]
    return [given]


class Unbatch(Stage):
    """The slices of every element."""

    def __init__(self, inner: Stage) -> None:
        self.inner = inner
        if any(isinstance(s, DatasetSpec) or s.rank == 0 for s in leaves_of(inner.spec)):
            raise ValueError(
                f"unbatch: elements with scalar components cannot be unbatched{at(user_origin())}"
            )
        self.spec = map_leaves(lambda s: td.TensorSpec(s.shape[1:], s.dtype), inner.spec)

    def open(self) -> Iterator[Leaves]:
        return released(self._slices())

    def _slices(self) -> Iterator[Any]:
        for found in carried(map(_store_of, self.inner.open())):
            if type(found) is Failure:
                yield found
            else:
                yield from map(found.row, range(found.size))

    def cardinality(self) -> int:
        firsts = {s.shape[0] for s in leaves_of(self.inner.spec)} - {None}
        count = self.inner.cardinality()
        if not firsts:
            return UNKNOWN if count > 0 else count
        return scaled(count, lambda n: n * firsts.pop())


def _store_of(leaves: Leaves) -> Store:
    if len({len(leaf) for leaf in leaves}) != 1:
        sizes = [len(leaf) for leaf in leaves]
        raise td.errors.InvalidArgumentError(
            None, None, f"unbatch: the components have {sizes} slices"
        )
    return Store(leaves)


class Rebatch(Stage):
    """Batches of another size."""

    def __init__(self, inner: Stage, size: Any, drop: bool) -> None:
        self.parts = Batch(Unbatch(inner), size, drop)
        self.spec = self.parts.spec

    def open(self) -> Iterator[Leaves]:
        return self.parts.open()


class Window(Stage):
    """Datasets of `size` neighbouring elements, a dataset for each component.

    Args:
        as_dataset: makes the public Dataset of a stage.
    """

    def __init__(
        self, inner: Stage, numbers: tuple[Any, Any, Any], drop: bool,
        as_dataset: Callable[[Stage], Any],
    ) -> None:  # fmt: skip
        self.inner, self.drop, self.as_dataset = inner, drop, as_dataset
        names = ("size", "shift", "stride")
        self.numbers = [integer(n, f"window: {w}") for n, w in zip(numbers, names, strict=True)]
        for number, name in zip(self.numbers, names, strict=True):
            if known(number) and number < 1:
                raise invalid(f"window: {name} must be greater than zero, got {number}")
        self.parts = leaves_of(inner.spec)
        self.spec = map_leaves(DatasetSpec, inner.spec)

    def open(self) -> Iterator[Leaves]:
        size, shift, stride = map(int, self.numbers)
        span = (size - 1) * stride + 1
        source, buffer = self.inner.open(), list[Leaves]()
        while True:
            buffer += islice(source, max(0, span - len(buffer)))
            chosen = buffer[:span:stride]
            if not chosen or (self.drop and len(chosen) < size):
                return
            yield self._datasets(chosen)
            missing = shift - len(buffer)
            buffer = buffer[shift:]
            if missing > 0:
                next(islice(source, missing, missing), None)

    def _datasets(self, chosen: list[Leaves]) -> Leaves:
        columns = zip(self.parts, zip(*chosen, strict=True), strict=True)
        return tuple(
            self.as_dataset(Listed(spec, [(leaf,) for leaf in column])) for spec, column in columns
        )

    def cardinality(self) -> int:
        if not all(map(known, self.numbers)):
            return UNKNOWN
        size, shift, stride = self.numbers
        span = (size - 1) * stride + 1 if self.drop else 1
        return scaled(self.inner.cardinality(), lambda n: max(0, (n - span) // shift + 1))


class Listed(Stage):
    """Elements that are at hand."""

    def __init__(self, spec: Any, elements: list[Leaves]) -> None:
        self.spec, self.elements = spec, _Elements(elements)

    def rows(self) -> Rows | None:
        elements = self.elements.values
        if not elements or any(not isinstance(leaf, np.ndarray) for leaf in elements[0]):
            return None
        if any(len({leaf.shape for leaf in column}) != 1 for column in zip(*elements, strict=True)):
            return None

        def blocks() -> Iterator[Block]:
            yield range(len(elements))

        arrays = [stack(column) for column in zip(*elements, strict=True)]
        return Rows(Store(arrays), blocks(), in_order=True)

    def open(self) -> Iterator[Leaves]:
        return iter(self.elements.values)

    def cardinality(self) -> int:
        return len(self.elements.values)


class _Elements:
    """Holds a list that is data of a stage, not a part of its recipe."""

    def __init__(self, values: list[Leaves]) -> None:
        self.values = values
