"""Where elements come from: tensors, ranges and generators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.data.elements import (
    Leaves,
    UserStructure,
    as_structure,
    leaves_of,
    map_types,
    packed,
    relaxed,
    spec_of,
)
from treadle.data.rows import Rows, Store, all_rows
from treadle.data.stages.failures import carried, released
from treadle.data.stages.randomness import Randomness
from treadle.data.stages.stage import INFINITE, UNKNOWN, Stage, integer, known
from treadle.experimental import ExtensionTypeSpec
from treadle.iteration import (
    CompositeTensorSpec,
    NDArray,
    at,
    call_user,
    children,
    is_symbolic,
    static_part,
    user_origin,
)


def leaf_value(leaf: Any) -> Any:
    """The form in which a stage stores a leaf: a tensor's array; symbolic ones as they are."""
    if isinstance(leaf, td.Tensor) and not is_symbolic(leaf):
        return np.asarray(leaf)
    return leaf


class FromTensors(Stage):
    """One element."""

    def __init__(self, tensors: Any) -> None:
        value = as_structure(tensors)
        self.spec = spec_of(value)
        self.leaves = tuple(map(leaf_value, leaves_of(value)))

    def open(self) -> Iterator[Leaves]:
        yield tuple(self.leaves)

    def cardinality(self) -> int:
        return 1


class FromList(Stage):
    """The elements of a list; shapes that differ are open in their spec."""

    def __init__(self, elements: Sequence[Any]) -> None:
        if not elements:
            raise ValueError(f"from_list: the list has no elements{at(user_origin())}")
        values = [as_structure(element) for element in elements]
        self.spec = spec_of(values[0])
        for value in values[1:]:
            self.spec = relaxed(self.spec, spec_of(value), "from_list: the elements")
        self.elements = [tuple(map(leaf_value, leaves_of(value))) for value in values]

    def open(self) -> Iterator[Leaves]:
        return iter(self.elements)

    def cardinality(self) -> int:
        return len(self.elements)


class FromSlices(Stage):
    """The slices of tensors along their first axis."""

    def __init__(self, tensors: Any) -> None:
        value = as_structure(tensors)
        leaves = leaves_of(value)
        if not leaves:
            raise ValueError(f"from_tensor_slices: no tensors given{at(user_origin())}")
        if any(leaf.ndim == 0 for leaf in leaves):
            raise ValueError(
                f"from_tensor_slices: a scalar has no slices; use from_tensors{at(user_origin())}"
            )
        sizes = [leaf.shape[0] for leaf in leaves]
        for size in sizes:
            if None not in (size, sizes[0]) and size != sizes[0]:
                raise ValueError(
                    f"from_tensor_slices: first dimensions {sizes[0]} and {size} are not "
                    f"compatible{at(user_origin())}"
                )
        self.spec = map_types(_row_spec, ("unbatch",), spec_of(value))
        self.leaves = tuple(map(leaf_value, leaves))

    def rows(self) -> Rows:
        sizes = {len(leaf) for leaf in self.leaves}
        if len(sizes) != 1:
            raise td.errors.InvalidArgumentError(
                None, None, f"from_tensor_slices: first dimensions {sorted(sizes)} differ"
            )
        return all_rows(Store(self.leaves))

    def cardinality(self) -> int:
        size = self.leaves[0].shape[0]
        return UNKNOWN if size is None else int(size)


def _row_spec(spec: Any) -> Any:
    return td.TensorSpec(spec.shape[1:], spec.dtype)


class _Numbers(Store):
    """The numbers of a range as rows of one array that is not stored."""

    def __init__(self, numbers: range, dtype: Any) -> None:
        self.numbers, self.dtype, self.size = numbers, dtype, len(numbers)

    def gather(self, positions: range | NDArray) -> list[NDArray]:
        start, step = self.numbers.start, self.numbers.step
        if isinstance(positions, range):
            last = start + step * positions.stop
            return [np.arange(start + step * positions.start, last, step).astype(self.dtype)]
        return [(start + step * positions).astype(self.dtype)]

    def row(self, position: int) -> Leaves:
        return (np.array(self.numbers[position], self.dtype),)


class Range(Stage):
    """``range(start, stop, step)``."""

    def __init__(self, *args: Any, output_type: Any = None) -> None:
        if not 1 <= len(args) <= 3:
            raise ValueError(
                f"Dataset.range takes 1 to 3 numbers, got {len(args)}{at(user_origin())}"
            )
        if len(args) == 1:
            args = (0, *args)
        numbers = tuple(integer(a, "Dataset.range: an argument") for a in args)
        self.numbers = numbers if len(numbers) == 3 else (*numbers, 1)
        if self.numbers[2] is not None and known(self.numbers[2]) and self.numbers[2] == 0:
            raise td.errors.InvalidArgumentError(
                None, None, f"Dataset.range: step must be non-zero{at(user_origin())}"
            )
        self.spec = td.TensorSpec((), output_type or td.int64)

    def rows(self) -> Rows:
        return all_rows(_Numbers(range(*map(int, self.numbers)), self.spec.dtype.np_dtype))

    def cardinality(self) -> int:
        return len(range(*self.numbers)) if all(map(known, self.numbers)) else UNKNOWN


class Counter(Stage):
    """start, start + step and so on."""

    def __init__(self, start: Any, step: Any, dtype: Any) -> None:
        self.start, self.step = integer(start, "counter: start"), integer(step, "counter: step")
        self.spec = td.TensorSpec((), dtype)

    def open(self) -> Iterator[Leaves]:
        value, dtype = int(self.start), self.spec.dtype.np_dtype
        while True:
            yield (np.array(value, dtype),)
            value += int(self.step)

    def cardinality(self) -> int:
        return INFINITE


class Random(Stage):
    """Numbers below 2**32."""

    def __init__(self, randomness: Randomness) -> None:
        self.randomness = randomness
        self.spec = td.TensorSpec((), td.int64)

    def open(self) -> Iterator[Leaves]:
        random = self.randomness.generator()
        while True:
            for number in random.integers(0, 1 << 32, 256):
                yield (np.array(number, np.int64),)

    def cardinality(self) -> int:
        return INFINITE


class FromGenerator(Stage):
    """The elements that a Python generator yields, converted to the spec."""

    def __init__(self, generator: Callable[..., Any], args: tuple[Any, ...], spec: Any) -> None:
        self.generator, self.args, self.spec = generator, args, spec

    def open(self) -> Iterator[Leaves]:
        return released(self._elements(), self)

    def _elements(self) -> Iterator[Any]:
        args = [np.asarray(a) if isinstance(a, td.Tensor) else a for a in self.args]
        source = call_user(lambda: iter(self.generator(*args)))
        try:
            yield from carried(_Yielded(source, self.spec))
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()


class _Yielded:
    """What an iterator of the user gives, as elements. It goes on behind one that does not fit."""

    def __init__(self, source: Iterator[Any], spec: Any) -> None:
        self.source, self.convert = source, _Conversion(spec)

    def __iter__(self) -> Iterator[Leaves]:
        return self

    def __next__(self) -> Leaves:
        value = call_user(next, self.source, _NOTHING)
        if value is _NOTHING:
            raise StopIteration
        return self.convert(value)


_NOTHING = object()


class _Conversion:
    """Values of a generator to arrays of the spec's types."""

    def __init__(self, spec: Any) -> None:
        self.spec, self.specs = spec, leaves_of(spec)

    def __call__(self, value: Any) -> Leaves:
        flat: list[Any] = []
        if not _flatten_like(self.spec, value, flat):
            raise self._refused(value, f"that does not have the structure {self.spec!r}")
        return tuple(self._leaf(v, s, value) for v, s in zip(flat, self.specs, strict=True))

    def _leaf(self, leaf: Any, spec: Any, value: Any) -> NDArray:
        try:
            if spec.dtype is td.string:
                array = np.asarray(td.convert_to_tensor(leaf, spec.dtype))
            else:
                array = np.array(leaf, spec.dtype.np_dtype, order="C")
        except (TypeError, ValueError):
            raise self._refused(value, f"that cannot be converted to {spec.dtype.name}") from None
        if not spec.shape.is_compatible_with(array.shape):
            raise self._refused(value, f"of shape {array.shape} that does not fit {spec!r}")
        return array

    def _refused(self, value: Any, why: str) -> Exception:
        return td.errors.InvalidArgumentError(
            None, None, f"TypeError: the generator yielded an element {why}: {value!r:.200}"
        )


def _flatten_like(spec: Any, value: Any, out: list[Any]) -> bool:
    """The parts of `value` that stand where `spec` has leaves; False where they do not fit."""
    if isinstance(spec, tuple):
        if not isinstance(value, list | tuple) or len(value) != len(spec):
            return False
        return all(_flatten_like(s, v, out) for s, v in zip(spec, value, strict=True))
    if isinstance(spec, dict):
        if not isinstance(value, dict) or set(value) != set(spec):
            return False
        return all(_flatten_like(spec[k], value[k], out) for k in sorted(spec))
    if isinstance(spec, CompositeTensorSpec):
        found = leaves_of(value)
        out += found
        return len(found) == len(leaves_of(spec))
    if isinstance(spec, UserStructure):
        pairs = zip(children(spec) or (), children(value) or (), strict=True)
        return type(value) is type(spec) and all(
            _flatten_like(s, v, out) for (_, s), (_, v) in pairs
        )
    if isinstance(spec, ExtensionTypeSpec):
        out += leaves_of(value)
        return bool(static_part(value) == static_part(spec))
    if spec is None:
        return value is None
    out.append(value)
    return True


def generator_spec(
    generator: Callable[..., Any], args: tuple[Any, ...], types: Any, shapes: Any
) -> Any:
    """The spec for ``output_types`` and ``output_shapes``; without shapes the first element tells
    the ranks."""
    types = _tuples(types)
    if shapes is not None:
        shapes = _as_shapes(types, shapes)
        return packed(
            types,
            [
                td.TensorSpec(s.shape, t)
                for t, s in zip(leaves_of(types), leaves_of(shapes), strict=True)
            ],
        )
    source = iter(generator(*args))
    first: list[Any] = []
    value = next(source, None)
    if value is None or not _flatten_like(types, value, first):
        first = [0] * len(leaves_of(types))
    specs = [
        td.TensorSpec([None] * np.ndim(v), t) for v, t in zip(first, leaves_of(types), strict=True)
    ]
    return packed(types, specs)


class _Shape:
    """A shape as a leaf of a structure."""

    def __init__(self, shape: Any) -> None:
        self.shape = td.TensorShape(shape)


def _as_shapes(types: Any, shapes: Any) -> Any:
    if isinstance(types, tuple) and not isinstance(shapes, td.TensorShape):
        return tuple(_as_shapes(t, s) for t, s in zip(types, shapes, strict=True))
    if isinstance(types, dict):
        return {k: _as_shapes(t, shapes[k]) for k, t in types.items()}
    return _Shape(shapes)


def _tuples(types: Any) -> Any:
    if isinstance(types, list | tuple):
        return tuple(map(_tuples, types))
    return {k: _tuples(v) for k, v in types.items()} if isinstance(types, dict) else types
