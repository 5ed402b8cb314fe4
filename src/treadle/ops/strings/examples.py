"""Examples of TensorFlow, read into tensors: what they are read for is said by the features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes, wire
from treadle.core.context import recording
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape, fresh_symbol
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.registry import Op, register, run
from treadle.ops.shaping.static_values import get_static_value
from treadle.ops.strings.texts import STRINGS, invalid, string_tensor

# The number of the field of a Feature that holds a list of a dtype.
_FIELDS = {dtypes.string: 1, dtypes.float32: 2, dtypes.int64: 3}
_NAMES = {1: "string", 2: "float", 3: "int64"}


class FixedLenFeature(NamedTuple):
    """A feature with the same number of values in every example.

    Attributes:
        shape: the shape of its values.
        dtype: float32, int64 or string.
        default_value: the values where an example does not have it; None: every example has it.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of parts of one shape.

    Attributes:
        shape: the shape of a part.
        dtype: float32, int64 or string.
        allow_missing: whether an example may have none; must be True for `parse_example`.
        default_value: the value that fills up rows of a batch; zero or the empty string for None.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values, which becomes a sparse tensor.

    Attributes:
        dtype: float32, int64 or string.
    """

    dtype: Any


class SparseFeature(NamedTuple):
    """A sparse tensor, whose values and places are features.

    Attributes:
        index_key: the name of the feature with the places of the values, or a list of them, one
            for each axis.
        value_key: the name of the feature with the values.
        dtype: of the values: float32, int64 or string.
        size: the size of the axis, or a list of the sizes of the axes.
        already_sorted: whether the places are in order.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False

    @property
    def index_keys(self) -> list[str]:
        """The names of the features with the places, one for each axis."""
        return [self.index_key] if isinstance(self.index_key, str) else list(self.index_key)


class RowSplits(NamedTuple):
    """The offsets of the rows are the feature `key`: one more than there are rows."""

    key: str


class RowLengths(NamedTuple):
    """The lengths of the rows are the feature `key`."""

    key: str


class RowStarts(NamedTuple):
    """Where the rows begin is the feature `key`."""

    key: str


class RowLimits(NamedTuple):
    """Where the rows end is the feature `key`."""

    key: str


class ValueRowIds(NamedTuple):
    """The number of the row of each value is the feature `key`."""

    key: str


class UniformRowLength(NamedTuple):
    """All rows have `length` values."""

    length: int


_PARTITIONS = (RowSplits, RowLengths, RowStarts, RowLimits, ValueRowIds, UniformRowLength)


class _RaggedFields(NamedTuple):
    dtype: Any
    value_key: str | None
    partitions: Any
    row_splits_dtype: Any
    validate: bool


class RaggedFeature(_RaggedFields):
    """A feature with any number of values, which becomes the rows of a ragged tensor.

    Attributes:
        dtype: float32, int64 or string.
        value_key: the name of the feature; that of the result without it.
        partitions: how the values of an example are rows of their own, outermost first: each a
            `RaggedFeature.RowSplits`, `RowLengths`, `RowStarts`, `RowLimits`, `ValueRowIds` or
            `UniformRowLength`.
        row_splits_dtype: of the offsets of the rows.
        validate: whether partitions are checked: that they fit the values, and one another.
    """

    __slots__ = ()
    RowSplits, RowLengths, RowStarts = RowSplits, RowLengths, RowStarts
    RowLimits, ValueRowIds, UniformRowLength = RowLimits, ValueRowIds, UniformRowLength

    def __new__(
        cls, dtype: Any, value_key: str | None = None, partitions: Any = (),
        row_splits_dtype: Any = dtypes.int32, validate: bool = False,
    ) -> RaggedFeature:  # fmt: skip
        offsets = dtypes.as_dtype(row_splits_dtype)
        if offsets not in (dtypes.int32, dtypes.int64):
            raise ValueError(
                f"RaggedFeature: row_splits_dtype must be int32 or int64, not {offsets.name}"
                f"{at(user_origin())}"
            )
        if not isinstance(partitions, list | tuple) or isinstance(partitions, _PARTITIONS):
            raise TypeError(
                f"RaggedFeature: partitions must be a list, not {partitions!r}{at(user_origin())}"
            )
        for partition in partitions:
            if not isinstance(partition, _PARTITIONS):
                raise TypeError(
                    f"RaggedFeature: {partition!r} is no partition: use RaggedFeature.RowSplits, "
                    "RowLengths, RowStarts, RowLimits, ValueRowIds or UniformRowLength"
                    f"{at(user_origin())}"
                )
        given = (dtypes.as_dtype(dtype), value_key, tuple(partitions), offsets, bool(validate))
        return super().__new__(cls, *given)


class Listed(NamedTuple):
    """The values of all examples one after another, and how many each example has (int64)."""

    values: Tensor
    counts: Tensor


class ListedSteps(NamedTuple):
    """The values of all steps of all sequence examples one after another, how many each step has,
    and how many steps each example has (int64)."""

    values: Tensor
    sizes: Tensor
    counts: Tensor


class _Wanted(NamedTuple):
    """What is read of an example.

    Attributes:
        name: the feature's.
        dims: the dims of its values, or of a part of them.
        default: the values in place of missing ones, as a tuple; of a feature with many parts the
            value that fills up rows.
        many: whether there may be any number of parts.
        required: whether an example without it is refused.
        listed: whether its values are given as a `Listed`.
    """

    name: str
    dtype: DType
    dims: tuple[int, ...]
    default: tuple[Any, ...]
    many: bool
    required: bool
    listed: bool = False

    @property
    def size(self) -> int:
        return int(np.prod(self.dims, dtype=np.int64))


# -- what is wanted --------------------------------------------------------------------------------


def _wanted(name: Any, feature: Any, steps: bool) -> _Wanted:
    """What a feature of the user asks for.

    Args:
        steps: it is a list of features of a sequence example.
    """
    if isinstance(feature, VarLenFeature | RaggedFeature):
        return _Wanted(str(name), _stored_dtype(name, feature.dtype), (), (), True, False, True)
    if not isinstance(feature, FixedLenFeature | FixedLenSequenceFeature):
        raise ValueError(
            f"Unsupported {type(feature).__name__} {feature!r} for key {name!r}: use "
            f"FixedLenFeature or FixedLenSequenceFeature{at(user_origin())}"
        )
    many = isinstance(feature, FixedLenSequenceFeature)
    if steps and not many:
        raise ValueError(
            f"sequence_features: {name!r} must be a FixedLenSequenceFeature{at(user_origin())}"
        )
    if many and not steps and not feature.allow_missing:  # type: ignore[union-attr]
        raise ValueError(
            "Unsupported: FixedLenSequenceFeature requires allow_missing to be True, for key "
            f"{name!r}{at(user_origin())}"
        )
    dtype = _stored_dtype(name, feature.dtype)
    shape = TensorShape([feature.shape] if isinstance(feature.shape, int) else feature.shape)
    if shape.rank is None or None in shape.as_list():
        raise ValueError(
            f"Feature {name!r}: the shape {shape} must be known; use FixedLenSequenceFeature for "
            f"any number of parts{at(user_origin())}"
        )
    dims = tuple(int(d) for d in shape.as_list() if d is not None)
    count = 1 if many else int(np.prod(dims, dtype=np.int64))
    default, required = _default(name, feature.default_value, dtype, count, many)
    if steps:
        required = not feature.allow_missing  # type: ignore[union-attr]
    return _Wanted(str(name), dtype, dims, default, many, required)


def _stored_dtype(name: Any, wanted: Any) -> DType:
    dtype = dtypes.as_dtype(wanted)
    if dtype not in _FIELDS:
        raise invalid(
            f"Feature {name!r}: examples hold float32, int64 and string, not {dtype.name}: read "
            f"int64 or float32 and use td.cast{at(user_origin())}"
        )
    return dtype


def _default(
    name: Any, value: Any, dtype: DType, count: int, many: bool
) -> tuple[tuple[Any, ...], bool]:
    """The values in place of missing ones, and whether there must not be missing ones."""
    if value is None:
        return (b"" if dtype is dtypes.string else 0,) * count, not many
    with recording(None):
        array = get_static_value(convert_to_tensor(value, dtype))
    values = np.asarray(array, object).reshape(-1).tolist()
    if len(values) != count:
        raise invalid(
            f"Feature {name!r}: default_value has {len(values)} values, {count} are needed"
            f"{at(user_origin())}"
        )
    return tuple(values), False


# -- reading ---------------------------------------------------------------------------------------


class _Fault(Exception):
    """What is wrong with a feature."""


def _entries(message: memoryview) -> dict[str, memoryview]:
    """The messages of a map by name; the last of one name counts."""
    found = {}
    for number, kind, entry in wire.fields(message):
        if (number, kind) == (1, wire.BYTES):
            name, value = b"", memoryview(b"")
            for part, how, inner in wire.fields(entry):
                if (part, how) == (1, wire.BYTES):
                    name = bytes(inner)
                elif (part, how) == (2, wire.BYTES):
                    value = inner
            found[name.decode("utf-8", "replace")] = value
    return found


def _parts(message: bytes) -> dict[int, dict[str, memoryview]]:
    """The maps of an example (field 1) or sequence example (fields 1 and 2)."""
    found: dict[int, dict[str, memoryview]] = {}
    for number, kind, part in wire.fields(message):
        if kind == wire.BYTES and number in (1, 2):
            found.setdefault(number, {}).update(_entries(part))
    return found


def _values(feature: memoryview, wanted: _Wanted) -> Any:
    """The values of a feature: an array, or a list of strings; None where it has no list.

    Raises:
        _Fault: they are of another dtype.
    """
    field = _FIELDS[wanted.dtype]
    chosen: list[tuple[int, memoryview]] = []
    for number, kind, part in wire.fields(feature):
        if kind == wire.BYTES and 1 <= number <= 3:
            if chosen and chosen[-1][0] != number:
                chosen.clear()
            chosen.append((number, part))
    if not chosen:
        return None
    if chosen[0][0] != field:
        raise _Fault(
            f"Key: {wanted.name}. Data types don't match. Data type: {_NAMES[chosen[0][0]]} but "
            f"expected type: {_NAMES[field]}"
        )
    if field == 1:
        return [
            bytes(v) for _, part in chosen for n, k, v in wire.fields(part)
            if (n, k) == (1, wire.BYTES)
        ]  # fmt: skip
    read = _floats if field == 2 else _numbers
    found = [array for _, part in chosen for array in read(part)]
    if len(found) == 1:
        return found[0]
    return np.concatenate(found) if found else np.zeros(0, wanted.dtype.np_dtype)


def _floats(message: memoryview) -> list[NDArray]:
    found = []
    for number, kind, value in wire.fields(message):
        if number == 1 and kind in (wire.BYTES, wire.FIXED32):
            if len(value) % 4:
                raise wire.WireError("a list of numbers of 4 bytes is cut off")
            found.append(np.frombuffer(value, "<f4"))
    return found


def _numbers(message: memoryview) -> list[NDArray]:
    found: list[NDArray] = []
    for number, kind, value in wire.fields(message):
        if (number, kind) == (1, wire.BYTES):
            found.append(wire.varints(value))
        elif (number, kind) == (1, wire.VARINT):
            found.append(np.array([wire.signed(value)], np.int64))
    return found


def _one(found: Mapping[str, memoryview], wanted: _Wanted) -> Any:
    """The values of a feature of an example.

    Raises:
        _Fault: there is no such feature, or it has other values.
    """
    feature = found.get(wanted.name)
    values = None if feature is None else _values(feature, wanted)
    if values is None:
        if wanted.required:
            raise _Fault(
                f"Feature: {wanted.name} (data type: {_NAMES[_FIELDS[wanted.dtype]]}) is required "
                "but could not be found."
            )
        return () if wanted.many else wanted.default
    if wanted.many:
        if wanted.size == 0 or len(values) % wanted.size:
            raise _Fault(
                f"Key: {wanted.name}. number of elements should be divisible by {wanted.size}, "
                f"found {len(values)} instead"
            )
    elif len(values) != wanted.size:
        raise _Fault(
            f"Key: {wanted.name}. Number of values != expected. Values size: {len(values)} but "
            f"output shape: {list(wanted.dims)}"
        )
    return values


def _filled(values: Sequence[Any], wanted: _Wanted, shape: tuple[int, ...]) -> NDArray:
    """Rows of values as one array of `shape`; of features with many parts filled up."""
    out = np.empty((len(values), int(np.prod(shape[1:], dtype=np.int64))), wanted.dtype.np_dtype)
    for row, given in zip(out, values, strict=True):
        row[: len(given)] = given
        if len(given) < len(row):
            row[len(given) :] = wanted.default[0]
    return out.reshape(shape)


def _column(values: list[Any], wanted: _Wanted, scalar: bool) -> NDArray:
    """The values of a feature in all examples."""
    parts: tuple[int, ...] = ()
    if wanted.many:
        parts = (max((len(v) // max(wanted.size, 1) for v in values), default=0),)
    array = _filled(values, wanted, (len(values), *parts, *wanted.dims))
    # The first element of an array of strings is no array, and NumPy's strings end at zeros.
    return array[0, ...] if scalar else array


def _list_of(values: list[Any], wanted: _Wanted, scalar: bool) -> list[NDArray]:
    """The values of a feature in all examples, and their numbers."""
    flat = [value for row in values for value in row]
    array = np.empty(len(flat), wanted.dtype.np_dtype)
    array[:] = flat
    counts = np.array([len(row) for row in values], np.int64)
    return [array, counts[0] if scalar else counts]


def _failed(fault: object, name: bytes, place: int) -> Exception:
    named = f"Name: {name.decode('utf-8', 'replace')}, " if name else ""
    return invalid(f"{named}{fault} (example {place})")


def _parse(
    serialized: NDArray, names: NDArray, *, features: tuple[Any, ...], steps: tuple[Any, ...]
) -> tuple[NDArray, ...]:
    """What the op computes; features and lists of features come as plain tuples of a `_Wanted`."""
    features, steps = (tuple(_Wanted(*w) for w in group) for group in (features, steps))
    if serialized.ndim > 1:
        raise invalid(
            f"Expected serialized to be a scalar or vector, got shape: {list(serialized.shape)}"
        )
    scalar = serialized.ndim == 0
    messages = serialized.reshape(-1).tolist()
    labels = names.reshape(-1).tolist() or [b""] * len(messages)
    if len(labels) != len(messages):
        raise invalid(f"{len(labels)} names for {len(messages)} examples")
    columns: list[list[Any]] = [[] for _ in features]
    lists: list[list[Any]] = [[] for _ in steps]
    for place, (message, label) in enumerate(zip(messages, labels, strict=True)):
        try:
            found = _parts(message)
            for column, wanted in zip(columns, features, strict=True):
                column.append(_one(found.get(1, {}), wanted))
            for column, wanted in zip(lists, steps, strict=True):
                column.append(_steps(found.get(2, {}), wanted))
        except _Fault as fault:
            raise _failed(fault, label, place) from None
        except wire.WireError as error:
            raise _failed(f"Could not parse example input: {error}", label, place) from None
    results = []
    for column, wanted in zip(columns, features, strict=True):
        results += _list_of(column, wanted, scalar) if wanted.listed else [
            _column(column, wanted, scalar)
        ]  # fmt: skip
    for column, wanted in zip(lists, steps, strict=True):
        lengths = np.array([len(row) for row in column], np.int64)
        if wanted.listed:
            results += _list_of([step for row in column for step in row], wanted, False)
            results.append(lengths[0] if scalar else lengths)
            continue
        flat = [[x for step in row for x in step] for row in column]
        longest = (int(lengths.max(initial=0)),)
        array = _filled(flat, wanted, (len(flat), *longest, *wanted.dims))
        results += [array[0, ...], lengths[0]] if scalar else [array, lengths]
    return tuple(np.asarray(r) for r in results)


def _steps(found: Mapping[str, memoryview], wanted: _Wanted) -> list[Any]:
    """The values of each step of a list of features."""
    message = found.get(wanted.name)
    if message is None:
        if wanted.required:
            raise _Fault(
                f"Feature list '{wanted.name}' is required but could not be found. Did you mean to "
                "include it in feature_list_dense_missing_assumed_empty or "
                "feature_list_dense_defaults? (allow_missing=True)"
            )
        return []
    rows: list[Any] = []
    for number, kind, feature in wire.fields(message):
        if (number, kind) == (1, wire.BYTES):
            values = _values(feature, wanted)
            size = 0 if values is None else len(values)
            if size != wanted.size and not wanted.listed:
                raise _Fault(
                    f"Feature list '{wanted.name}', index {len(rows)}: Number of values != "
                    f"expected. Values size: {size} but output shape: {list(wanted.dims)}"
                )
            rows.append(() if values is None else values)
    return rows


def _infer(
    serialized: Spec, names: Spec, *, features: tuple[Any, ...], steps: tuple[Any, ...]
) -> tuple[TensorSpec, ...]:
    features, steps = (tuple(_Wanted(*w) for w in group) for group in (features, steps))
    if len(serialized.dims) > 1:
        raise invalid(
            f"Expected serialized to be a scalar or vector, got shape: {serialized.shape}"
        )
    batch = tuple(serialized.dims)
    specs = []
    for wanted in features:
        if wanted.listed:
            specs += [TensorSpec([fresh_symbol("values")], wanted.dtype)]
            specs += [TensorSpec(batch, dtypes.int64)]
            continue
        parts = (fresh_symbol("parts"),) if wanted.many else ()
        specs.append(TensorSpec((*batch, *parts, *wanted.dims), wanted.dtype))
    for wanted in steps:
        if wanted.listed:
            specs += [TensorSpec([fresh_symbol("values")], wanted.dtype)]
            specs += [TensorSpec([fresh_symbol("steps")], dtypes.int64)]
            specs += [TensorSpec(batch, dtypes.int64)]
            continue
        specs.append(TensorSpec((*batch, fresh_symbol("steps"), *wanted.dims), wanted.dtype))
        specs.append(TensorSpec(batch, dtypes.int64))
    return tuple(specs)


PARSE = register(Op("parse_examples", _infer, _parse, tags=STRINGS))


def parsed(
    serialized: Any, names: Any, features: Mapping[Any, tuple[Any, Any]],
    steps: Mapping[Any, tuple[Any, Any]],
) -> tuple[dict[Any, Any], dict[Any, Any], dict[Any, Tensor]]:  # fmt: skip
    """The features, the lists of features and the lengths of these.

    Args:
        features: the name and the kind of each feature, by any key.
        steps: those of lists of features.

    Returns:
        by the keys, a tensor, a `Listed` or a `ListedSteps`, which has no length of its own.
    """
    labels = string_tensor([] if names is None else names)
    wanted = {key: _wanted(name, kind, False) for key, (name, kind) in features.items()}
    lists = {key: _wanted(name, kind, True) for key, (name, kind) in steps.items()}
    if not wanted and not lists:
        raise ValueError(f"Invalid argument: features cannot be empty.{at(user_origin())}")
    found = run(
        PARSE, string_tensor(serialized), labels, features=tuple(map(tuple, wanted.values())),
        steps=tuple(map(tuple, lists.values())),
    )  # fmt: skip
    given = iter(found if isinstance(found, tuple | list) else [found])
    own = {key: Listed(next(given), next(given)) if w.listed else next(given)
           for key, w in wanted.items()}  # fmt: skip
    parts: dict[Any, Any] = {}
    lengths: dict[Any, Tensor] = {}
    for key, w in lists.items():
        if w.listed:
            parts[key] = ListedSteps(next(given), next(given), next(given))
        else:
            parts[key], lengths[key] = next(given), next(given)
    return own, parts, lengths


def scalar_string(serialized: Any, what: str) -> Tensor:
    tensor = string_tensor(serialized)
    if len(tensor.dims) != 0:
        raise ValueError(f"{what}: Input serialized must be a scalar{at(user_origin())}")
    return tensor


def features_of(features: Any, what: str) -> Mapping[Any, Any]:
    if not isinstance(features, Mapping) or not features:
        found = "None" if features is None else "empty"
        raise ValueError(f"Invalid argument: {what} cannot be {found}.{at(user_origin())}")
    return features
