"""What TensorFlow's tests of datasets use of its private modules, and is exported nowhere.

What asks for a rewriting of pipelines, and is checked nowhere else, leaves a dataset as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import treadle as td
from treadle.compat.replacement.absent import absent
from treadle.core.context import context
from treadle.data.elements import leaves_of, packed
from treadle.data.iterator import GraphIterator
from treadle.data.stages.stage import debugging


def unchanged(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A transformation for `Dataset.apply` that changes nothing."""
    return lambda dataset: dataset


def sleep(sleep_microseconds: int) -> Callable[[Any], Any]:
    """A transformation that waits before each element."""

    def wait(*parts: Any) -> Any:
        time.sleep(sleep_microseconds / 1e6)
        return parts if len(parts) > 1 else parts[0]

    def slow(*element: Any) -> Any:
        types = [part.dtype for part in element]
        found = td.numpy_function(wait, element, types if len(types) > 1 else types[0])
        flat = found if isinstance(found, list | tuple) else [found]
        for new, old in zip(flat, element, strict=True):
            new.set_shape(old.shape)
        return tuple(flat) if len(flat) > 1 else flat[0]

    return lambda dataset: dataset.map(slow)


# Structures of elements: lists are leaves, as ragged and sparse tensors are.


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    return leaves_of(structure, whole=True)


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    return packed(structure, flat_sequence, whole=True)


def map_structure(function: Any, *structures: Any, **options: Any) -> Any:
    columns = zip(*map(flatten, structures), strict=True)
    return packed(structures[0], [function(*column) for column in columns], whole=True)


def assert_same_structure(one: Any, other: Any, *args: Any, **options: Any) -> None:
    if isinstance(one, tuple | Mapping) != isinstance(other, tuple | Mapping):
        raise ValueError(f"not of one structure: {one!r} and {other!r}")
    if isinstance(one, Mapping):
        if set(one) != set(other):
            raise ValueError(f"other keys: {one!r} and {other!r}")
        for key in one:
            assert_same_structure(one[key], other[key])
    elif isinstance(one, tuple):
        if len(one) != len(other):
            raise ValueError(f"other lengths: {one!r} and {other!r}")
        for a, b in zip(one, other, strict=True):
            assert_same_structure(a, b)


def are_compatible(one: Any, other: Any) -> bool:
    """Whether two structures of specs fit."""
    pairs = zip(flatten(one), flatten(other), strict=True)
    return all(a.is_compatible_with(b) for a, b in pairs)


def toggle_debug_mode(on: bool) -> None:
    debugging.on = on


def inside_function() -> bool:
    return context.recorder is not None


# Iterators of a pass have a private method, which all tests of datasets call.
for _iterator in (td.data.Iterator, GraphIterator):
    _iterator._next_internal = _iterator.get_next  # type: ignore[attr-defined]


def _absent(*names: str) -> dict[str, Any]:
    return {name: absent(name, "private to TensorFlow") for name in names}


NAMES: dict[str, dict[str, Any]] = {
    "data.experimental.ops.global_shuffle_op": _absent("_global_shuffle"),
    "data.experimental.ops.testing": {
        "assert_next": unchanged,
        "assert_prev": unchanged,
        "non_serializable": lambda: lambda dataset: dataset,
        "sleep": sleep,
    },
    "data.ops.debug_mode": {"toggle_debug_mode": toggle_debug_mode},
    "data.ops.test_mode": {"toggle_test_mode": lambda on: None},
    "data.ops.iterator_ops": {
        "OwnedIterator": td.data.Iterator,
        "GET_NEXT_CALL_WARNING_THRESHOLD": 32,
    },
    "data.ops.from_generator_op": _absent("_GeneratorDataset"),
    "data.ops.readers": {"_TFRecordDataset": td.data.TFRecordDataset},
    "data.util.nest": {
        "flatten": flatten,
        "pack_sequence_as": pack_sequence_as,
        "map_structure": map_structure,
        "is_nested": lambda value: isinstance(value, tuple | Mapping),
        "assert_same_structure": assert_same_structure,
    },
    "data.util.structure": {
        "are_compatible": are_compatible,
        "type_spec_from_value": td.type_spec_from_value,
    },
    "eager.context": {"SYNC": 0, "ASYNC": 1},
    "framework.ops": {"inside_function": inside_function},
    "framework.test_ops": _absent("stub_resource_handle_op"),
    "ops.ragged.ragged_factory_ops": {"constant_value": td.ragged.constant},
    "ops.ragged.ragged_tensor_value": {"RaggedTensorValue": td.RaggedTensor},
    "pywrap_sanitizers": {"is_tsan_enabled": lambda: False},
    "data.experimental.ops.random_access": {"at": td.data.experimental.at},
}
