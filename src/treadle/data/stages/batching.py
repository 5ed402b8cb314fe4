"""Stages that put elements together or take them apart: batch, padded_batch, unbatch, window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import (
    DatasetSpec,
    Leaves,
    by_components,
    holds_composites,
    holds_datasets,
    leaves_of,
    map_components,
    map_types,
    packed,
    stack,
)
from treadle.data.rows import Block, Rows, Store, regrouped, skipped
from treadle.data.stages.failures import Failure, carried, released
from treadle.data.stages.functions import Map
from treadle.data.stages.places import apart, joined
from treadle.data.stages.stage import UNKNOWN, Stage, integer, invalid, known, scaled
from treadle.iteration import (
    CompositeTensorSpec,
    NDArray,
    at,
    is_symbolic,
    recording,
    user_origin,
)


def batch_size(size: Any, what: str) -> Any:
    number = integer(size, f"{what}: batch_size")
    if known(number) and number < 1:
        raise invalid(f"{what}: batch_size must be greater than zero, got {number}")
    return number


def batches_of(
    items: Iterator[Leaves], size: int, drop: bool, joined: Callable[[list[Leaves]], Leaves],
    aligned: bool = False,
) -> Iterator[Leaves]:  # fmt: skip
    """Groups of elements, joined. An error loses the elements of its group that came before it.

    Args:
        aligned: it loses all elements of its group, so that groups begin at multiples of `size`.
    """
    items = carried(items) if aligned else items

    def step() -> Leaves | None:
        group: list[Any] = list(islice(items, size))
        failed = next((item for item in group if type(item) is Failure), None) if aligned else None
        if failed is not None:
            raise failed.error
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
        self.spec = map_types(lambda s: _batched(s, first), ("batch", first), inner.spec)
        self.has_composites = holds_composites(inner.spec)

    def open(self) -> Iterator[Leaves]:
        rows = self._rows()
        return self._grouped(0) if rows is None else self._gathered(rows)

    def resume(self, count: int) -> Iterator[Leaves]:
        size, rows = int(self.size), self._rows()
        if rows is None:
            return self._grouped(count * size)
        return self._gathered(rows.with_blocks(skipped(rows.blocks, count * size)))

    def _rows(self) -> Rows | None:
        """The elements as rows of arrays; ragged and sparse tensors are none."""
        return None if self.has_composites else self.inner.rows()

    def _grouped(self, skip: int) -> Iterator[Leaves]:
        """Batches of the elements after the first `skip`."""
        size = int(self.size)

        def put_together(group: list[Any]) -> Leaves:
            found = joined(group, size)
            return self.stacked([apart(element) for element in group]) if found is None else found

        # TensorFlow makes one step of a map and a batch, which fails as a whole.
        aligned = isinstance(self.inner, Map)
        items = self.inner.placed(skip, size)
        return batches_of(items, size, self.drop, put_together, aligned)

    def _gathered(self, rows: Rows) -> Iterator[Leaves]:
        size, gather = int(self.size), rows.store.gather
        for block in regrouped(rows.blocks, size):
            if len(block) == size or not self.drop:
                yield tuple(gather(block))

    def stacked(self, group: list[Leaves]) -> Leaves:
        """A batch of the elements of a group."""
        if not self.has_composites:
            return tuple([stack(leaves) for leaves in zip(*group, strict=True)])
        elements = [by_components(self.inner.spec, leaves) for leaves in group]
        found: list[Any] = []
        for column in zip(*elements, strict=True):
            spec, values = column[0][0], [value for _, value in column]
            if isinstance(spec, CompositeTensorSpec):
                found += spec.joined(values)
            else:
                found.append(stack([leaf for (leaf,) in values]))
        return tuple(found)

    def cardinality(self) -> int:
        if not known(self.size):
            return UNKNOWN
        size, drop = self.size, self.drop
        return scaled(self.inner.cardinality(), lambda n: n // size if drop else -(-n // size))


def _batched(spec: Any, size: int | None) -> Any:
    if isinstance(spec, CompositeTensorSpec):
        return spec.batched(size)
    return td.TensorSpec([size] + spec.shape, spec.dtype)


class PaddedBatch(Stage):
    """Batches of elements whose shapes differ, filled up to the largest or to given shapes."""

    def __init__(self, inner: Stage, size: Any, shapes: Any, values: Any, drop: bool) -> None:
        self.inner, self.drop = inner, drop
        self.size = batch_size(size, "padded_batch")
        parts = [*leaves_of(inner.spec, whole=True), *td.nest.flatten(inner.spec)]
        if any(not isinstance(part, td.TensorSpec) for part in parts):  # None is no leaf here
            raise TypeError(
                "padded_batch: ragged and sparse tensors, datasets and None are not padded: use "
                f"batch, or make tensors of them in a map. Got {inner.spec!r}{at(user_origin())}"
            )
        specs = leaves_of(inner.spec)
        self.shapes = _padded_shapes(inner.spec, specs, shapes)
        self.values = _padding_values(inner.spec, specs, values)
        first = self.size if drop and known(self.size) else None
        padded = [
            td.TensorSpec([first, *_dims(shape)], s.dtype)
            for s, shape in zip(specs, self.shapes, strict=True)
        ]
        self.spec = packed(inner.spec, padded)

    def open(self) -> Iterator[Leaves]:
        return batches_of(self.inner.open(), int(self.size), self.drop, self._stacked)

    def resume(self, count: int) -> Iterator[Leaves]:
        size = int(self.size)
        return batches_of(self.inner.resume(count * size), size, self.drop, self._stacked)

    def _stacked(self, group: list[Leaves]) -> Leaves:
        shapes = [_known_dims(shape) for shape in self.shapes]
        columns = zip(zip(*group, strict=True), shapes, self.values, strict=True)
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


def _dims(shape: Any) -> tuple[Any, ...]:
    """The dims of a shape; those of a vector that a function will know are open."""
    return (None,) * int(shape.shape[0]) if is_symbolic(shape) else shape


def _known_dims(shape: Any) -> tuple[Any, ...]:
    """The dims of a shape, or of the vector that a symbolic one turned out to be."""
    if isinstance(shape, tuple):
        return shape
    return tuple(None if d < 0 else d for d in np.asarray(shape).tolist())


def _padded_shapes(structure: Any, specs: list[Any], shapes: Any) -> list[Any]:
    """The shape for each leaf: a tuple, or a symbolic vector."""
    if shapes is None:
        return [tuple(s.shape) for s in specs]
    given = _leaves_for(structure, shapes)
    result = []
    for spec, shape in zip(specs, given, strict=True):
        if isinstance(shape, int):
            shape = [shape]
        if is_symbolic(shape):
            result.append(shape)
            continue
        if isinstance(shape, td.Tensor | np.ndarray):
            shape = _known_dims(shape)
        elif isinstance(shape, list | tuple):
            shape = [None if d is None or d == -1 else d for d in shape]
        dims = tuple(td.TensorShape(shape))
        if spec.shape.rank not in (None, len(dims)):
            raise ValueError(
                f"padded_batch: padded_shapes {dims} for elements of shape {spec.shape}: the "
                f"ranks differ{at(user_origin())}"
            )
        sizes = zip(dims, spec.shape if spec.has_rank else (), strict=False)
        if any(None not in (d, size) and d < size for d, size in sizes):
            raise ValueError(
                f"padded_batch: padded_shapes {dims} are smaller than elements of shape "
                f"{spec.shape}{at(user_origin())}"
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
    """The part of `given` for each leaf of the structure; lists and shapes are such parts. None
    stands for None in all places of a part."""
    if given is None:
        return [None] * len(leaves_of(structure))
    if isinstance(structure, tuple):
        if not isinstance(given, list | tuple) or len(given) != len(structure):
            return [given]
        pairs = zip(structure, given, strict=True)
        return [leaf for s, g in pairs for leaf in _leaves_for(s, g)]
    if isinstance(structure, dict):
        return [leaf for k in sorted(structure) for leaf in _leaves_for(structure[k], given[k])]
    return [] if structure is None else [given]


class Unbatch(Stage):
    """The slices of every element."""

    def __init__(self, inner: Stage) -> None:
        self.inner = inner
        parts = leaves_of(inner.spec, whole=True)
        if any(isinstance(s, DatasetSpec) or s.shape.rank == 0 for s in parts):
            raise ValueError(
                f"unbatch: elements with scalar components cannot be unbatched{at(user_origin())}"
            )
        sizes = {s.shape[0] for s in parts if s.shape.rank is not None} - {None}
        if len(sizes) > 1:
            raise ValueError(
                f"unbatch: the components have {sorted(sizes)} slices{at(user_origin())}"
            )
        self.spec = map_types(_unbatched, ("unbatch",), inner.spec)

    def open(self) -> Iterator[Leaves]:
        return released(self._slices(), self)

    def _slices(self) -> Iterator[Any]:
        if holds_composites(self.inner.spec):
            yield from self._slices_of_composites()
            return
        for found in carried(map(_store_of, self.inner.open())):
            if type(found) is Failure:
                yield found
            else:
                yield from map(found.row, range(found.size))

    def _slices_of_composites(self) -> Iterator[Any]:
        for found in carried(self.inner.open()):
            if type(found) is Failure:
                yield found
            else:
                yield from slices_of(self.inner.spec, found)

    def cardinality(self) -> int:
        firsts = {s.shape[0] for s in leaves_of(self.inner.spec, whole=True)} - {None}
        count = self.inner.cardinality()
        if not firsts:
            return UNKNOWN if count > 0 else count
        return scaled(count, lambda n: n * firsts.pop())


def _unbatched(spec: Any) -> Any:
    if isinstance(spec, CompositeTensorSpec):
        return spec.unbatched()
    return td.TensorSpec(spec.shape[1:], spec.dtype)


def slices_of(spec: Any, leaves: Leaves) -> list[Leaves]:
    """The slices of an element with ragged or sparse tensors.

    Raises:
        InvalidArgumentError: its components have different numbers of slices.
    """
    columns = []
    for part, own in by_components(spec, leaves):
        if isinstance(part, CompositeTensorSpec):
            columns.append(part.sliced(own))
        else:
            columns.append([(np.asarray(row, own[0].dtype),) for row in own[0]])
    if len({len(column) for column in columns}) != 1:
        raise td.errors.InvalidArgumentError(
            None, None, f"the components have {[len(c) for c in columns]} slices"
        )
    return [tuple(leaf for part in row for leaf in part) for row in zip(*columns, strict=True)]


class AsRows(Stage):
    """Elements whose tensors of open shapes are taken for rows of ragged tensors."""

    def __init__(self, inner: Stage, offsets: Any) -> None:
        self.inner, self.offsets = inner, td.as_dtype(offsets)
        self.ranks = [_open_axes(s) for s in leaves_of(inner.spec, whole=True)]
        specs = zip(leaves_of(inner.spec, whole=True), self.ranks, strict=True)
        self.spec = packed(inner.spec, [self._row_spec(s, n) for s, n in specs], whole=True)

    def _row_spec(self, spec: Any, axes: int) -> Any:
        if axes == 0:
            return spec
        return td.RaggedTensorSpec(spec.shape, spec.dtype, axes - 1, self.offsets)

    def open(self) -> Iterator[Leaves]:
        return map(self._rows_of, self.inner.open())

    def _rows_of(self, leaves: Leaves) -> Leaves:
        found: list[Any] = []
        parts = zip(by_components(self.inner.spec, leaves), self.ranks, strict=True)
        for (_, own), axes in parts:
            found += own if axes < 2 else self._partitioned(own[0], axes)
        return tuple(found)

    def _partitioned(self, array: NDArray, axes: int) -> Leaves:
        """An array as a ragged tensor with one ragged axis less than `axes`."""
        sizes, offsets = array.shape, []
        for axis in range(axes - 1, 0, -1):
            rows = int(np.prod(sizes[:axis]))
            offsets.append((np.arange(rows + 1) * sizes[axis]).astype(self.offsets.as_numpy_dtype))
        return (array.reshape(-1, *sizes[axes:]), *offsets)

    def cardinality(self) -> int:
        return self.inner.cardinality()


def _open_axes(spec: Any) -> int:
    """How many axes of an element are rows in a batch: those up to the last one of open size."""
    if isinstance(spec, CompositeTensorSpec | DatasetSpec) or not spec.has_rank:
        return 0
    return max((axis + 1 for axis, size in enumerate(spec.shape) if size is None), default=0)


class SlicesOfComposites(Stage):
    """The slices of tensors of which some are ragged or sparse, along their first axis."""

    def __init__(self, inner: Stage) -> None:
        self.inner = inner
        self.spec = map_types(_unbatched, ("unbatch",), inner.spec)

    def open(self) -> Iterator[Leaves]:
        for leaves in self.inner.open():
            yield from slices_of(self.inner.spec, leaves)

    def cardinality(self) -> int:
        sizes = {s.shape[0] for s in leaves_of(self.inner.spec, whole=True)} - {None}
        return sizes.pop() if len(sizes) == 1 else UNKNOWN


def _store_of(leaves: Leaves) -> Store:
    if len({len(leaf) for leaf in leaves}) != 1:
        sizes = [len(leaf) for leaf in leaves]
        raise td.errors.InvalidArgumentError(
            None, None, f"unbatch: the components have {sizes} slices"
        )
    return Store(leaves)


class Rebatch(Stage):
    """Batches of another size.

    Args:
        sizes: the size of the batches, or those of one batch after another, in turn.
    """

    def __init__(self, inner: Stage, sizes: Any, drop: bool) -> None:
        self.sizes = sizes.numpy() if isinstance(sizes, td.Tensor) and sizes.ndim == 1 else sizes
        if isinstance(self.sizes, list | tuple | np.ndarray):
            self.sizes = [batch_size(size, "rebatch") for size in self.sizes]
            if not self.sizes:
                raise invalid("rebatch: batch_size must not be empty")
        else:
            self.sizes = [self.sizes]
        self.inner, self.drop = inner, drop
        self.parts = Batch(Unbatch(inner), self.sizes[0], drop and len(set(self.sizes)) == 1)
        self.spec = self.parts.spec
        if self._fills_all():
            self.spec = Batch(Unbatch(inner), self.parts.size, drop=True).spec

    def _fills_all(self) -> bool:
        """Whether every batch is whole, since each one that comes in is divided evenly."""
        size = self.parts.size
        if not known(size) or any(other != size for other in self.sizes[1:]):
            return False
        specs = [s for s in td.nest.flatten(self.inner.spec) if isinstance(s, td.TensorSpec)]
        given = [s.shape[0] for s in specs if s.shape.rank and s.shape[0] is not None]
        return bool(given) and all(extent % size == 0 for extent in given)

    def open(self) -> Iterator[Leaves]:
        if len(self.sizes) == 1:
            return self.parts.open()
        return self._in_turn()

    def _in_turn(self) -> Iterator[Leaves]:
        slices = self.parts.inner.open()
        for size in cycle(self.sizes):
            group = list(islice(slices, size))
            if not group or (self.drop and len(group) < size):
                return
            yield self.parts.stacked(group)


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
        self.spec = map_components(DatasetSpec, inner.spec)

    def open(self) -> Iterator[Leaves]:
        return released(self._windows(), self)

    def _windows(self) -> Iterator[Any]:
        """The windows; one with an element that failed is a failure."""
        size, shift, stride = map(int, self.numbers)
        span = (size - 1) * stride + 1
        source, buffer = carried(self.inner.open()), list[Any]()
        while True:
            buffer += islice(source, max(0, span - len(buffer)))
            chosen = buffer[:span:stride]
            if not chosen or (self.drop and len(chosen) < size):
                return
            failed = next((leaves for leaves in chosen if type(leaves) is Failure), None)
            yield self._datasets(chosen) if failed is None else failed
            missing = shift - len(buffer)
            buffer = buffer[shift:]
            if missing > 0:
                next(islice(source, missing, missing), None)

    def _datasets(self, chosen: list[Leaves]) -> Leaves:
        elements = [by_components(self.inner.spec, leaves) for leaves in chosen]
        return tuple(
            self.as_dataset(Listed(column[0][0], [leaves for _, leaves in column]))
            for column in zip(*elements, strict=True)
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
