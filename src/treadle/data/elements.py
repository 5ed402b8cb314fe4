"""Elements of datasets: their structures, their specs, and arrays to and from tensors.

Inside a pipeline an element is a tuple of leaves, in the order of `leaves_of`: arrays, and datasets
where elements hold those (`Dataset.window`). Tuples, mappings, extension types, `UserStructure`s,
ragged and sparse tensors are structure, and so is None, which has no leaves and is its own spec;
lists are not: they become tensors. What ragged and sparse tensors are in a
batch their specs say, so stages that batch take them as the whole *components* that they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

import treadle as td
from treadle.experimental import ExtensionType, ExtensionTypeBatchEncoder, ExtensionTypeSpec
from treadle.iteration import (
    CompositeTensor,
    CompositeTensorSpec,
    NDArray,
    SparseTensorValue,
    at,
    children,
    context,
    empty,
    from_array,
    from_buffer,
    rebuild,
    seen_as,
    static_part,
    user_origin,
)

Leaves: TypeAlias = tuple[Any, ...]


class _OfUsers(type):
    def __instancecheck__(cls, value: object) -> bool:
        kind = type(value)
        return hasattr(kind, "__attrs_attrs__") or hasattr(kind, "__tf_flatten__")


class UserStructure(metaclass=_OfUsers):
    """Objects of classes of attrs, and of classes that say their parts by ``__tf_flatten__``. Their
    specs are objects of the same classes."""


_COMPOSITE = CompositeTensor | CompositeTensorSpec
_EXTENSION = ExtensionType | ExtensionTypeSpec | UserStructure | _COMPOSITE
_STRUCTURES = (
    tuple, Mapping, ExtensionType, ExtensionTypeSpec, UserStructure, CompositeTensor,
    CompositeTensorSpec, type(None),
)  # fmt: skip


class DatasetSpec:
    """The type of a dataset that is an element of another, or an argument.

    Args:
        element_spec: the spec of its elements.
    """

    __slots__ = ("element_spec",)

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self.element_spec = element_spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetSpec) and self.element_spec == other.element_spec

    def __hash__(self) -> int:
        return hash(spec_key(self.element_spec))

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r}, TensorShape([]))"


def spec_key(spec: Any) -> Any:
    """An element spec as something that hashes."""
    if isinstance(spec, Mapping):
        return (type(spec), tuple((k, spec_key(v)) for k, v in sorted(spec.items())))
    if isinstance(spec, tuple):
        return (type(spec), tuple(map(spec_key, spec)))
    return spec


def mapping_like(structure: Mapping[Any, Any], items: dict[Any, Any]) -> Any:
    """A mapping of the type of `structure`."""
    if isinstance(structure, defaultdict):
        return defaultdict(structure.default_factory, items)
    return items if type(structure) is dict else type(structure)(items)  # type: ignore[call-arg]


def as_structure(value: Any) -> Any:
    """The value with tensors as its leaves; lists and numbers are converted."""
    if isinstance(value, Mapping):
        return mapping_like(value, {k: as_structure(v) for k, v in value.items()})
    if isinstance(value, SparseTensorValue):
        return sparse_tensor(value)
    if isinstance(value, tuple):
        parts = [as_structure(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if value is None or is_element(value):
        return value
    if isinstance(value, UserStructure):
        return rebuild(value, [as_structure(part) for _, part in children(value) or ()])
    return host_tensor(value)


def host_tensor(value: Any) -> td.Tensor:
    """A value as a tensor of the host, where pipelines run; in a function as one of its graph."""
    if context.recorder is not None:
        return td.convert_to_tensor(value)
    with td.device("CPU:0"):
        return td.convert_to_tensor(value)


def sparse_tensor(value: SparseTensorValue) -> Any:
    """A sparse tensor of the host of the arrays of one."""
    if context.recorder is not None:
        return td.SparseTensor.from_value(value)
    with td.device("CPU:0"):
        return td.SparseTensor.from_value(value)


def is_element(value: Any) -> bool:
    """Whether a value is part of an element as it is: a tensor, a dataset, an extension type."""
    kinds = td.Tensor | ExtensionType | CompositeTensor
    return isinstance(value, kinds) or getattr(value, "is_dataset", False)


def leaves_of(value: Any, whole: bool = False) -> list[Any]:
    """The leaves of a structure, dicts in the order of their keys.

    For `td.nest`, datasets and their specs have handles as leaves; here they are leaves.

    Args:
        whole: ragged and sparse tensors are leaves, too.
    """
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves_of(part, whole)]
    if isinstance(value, Mapping):
        return [leaf for key in sorted(value) for leaf in leaves_of(value[key], whole)]
    if isinstance(value, _EXTENSION) and not (whole and isinstance(value, _COMPOSITE)):
        return [leaf for _, part in children(value) or () for leaf in leaves_of(part, whole)]
    return [] if value is None else [value]


def packed(structure: Any, leaves: Iterable[Any], whole: bool = False) -> Any:
    """The structure with other leaves; see `leaves_of`."""
    return _packed(structure, iter(leaves), whole)


def _packed(structure: Any, leaves: Iterator[Any], whole: bool) -> Any:
    if isinstance(structure, tuple):
        parts = [_packed(part, leaves, whole) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    if isinstance(structure, Mapping):
        found = {key: _packed(structure[key], leaves, whole) for key in sorted(structure)}
        return mapping_like(structure, {key: found[key] for key in structure})
    if isinstance(structure, _EXTENSION) and not (whole and isinstance(structure, _COMPOSITE)):
        parts = [_packed(p, leaves, whole) for _, p in children(structure) or ()]
        return rebuild(structure, parts)
    return None if structure is None else next(leaves)


def holds_composites(structure: Any) -> bool:
    """Whether a structure, of values or specs, has ragged or sparse tensors."""
    return any(isinstance(part, _COMPOSITE) for part in leaves_of(structure, whole=True))


def map_components(fn: Callable[[Any], Any], structure: Any) -> Any:
    """`fn` of each tensor or composite tensor, or of each of their specs."""
    return packed(structure, map(fn, leaves_of(structure, whole=True)), whole=True)


_WITH_PARTS = (tuple, ExtensionTypeSpec, UserStructure)


def map_types(leaf: Callable[[Any], Any], extension: tuple[Any, ...], structure: Any) -> Any:
    """`leaf` of the spec of each tensor or composite tensor, where elements are put together along
    an axis or taken apart: a batchable extension type changes its fields as its encoder says.

    Args:
        extension: the encoder's method and its arguments for a spec, such as ``("unbatch",)``.

    Raises:
        TypeError: a class has an encoder with another encoding than its fields.
    """
    method, *more = extension
    encoder = getattr(getattr(structure, "value_type", None), "__batch_encoder__", None)
    if encoder is not None:
        if type(encoder).encode is not ExtensionTypeBatchEncoder.encode:
            raise TypeError(
                f"Datasets put objects of {structure.value_type.__name__} together by their "
                f"fields; its encoder does not: map it to tensors before{at(user_origin())}"
            )
        return getattr(encoder, method)(structure, *more)
    if isinstance(structure, Mapping):
        found = {key: map_types(leaf, extension, structure[key]) for key in structure}
        return mapping_like(structure, found)
    parts = children(structure) if isinstance(structure, _WITH_PARTS) else None
    if parts is None:
        return None if structure is None else leaf(structure)
    return rebuild(structure, [map_types(leaf, extension, part) for _, part in parts])


def by_components(spec: Any, leaves: Leaves) -> list[tuple[Any, Leaves]]:
    """The spec of each component of an element, with its leaves."""
    found, place = [], 0
    for part in leaves_of(spec, whole=True):
        count = len(leaves_of(part))
        found.append((part, tuple(leaves[place : place + count])))
        place += count
    return found


def map_leaves(fn: Callable[[Any], Any], structure: Any) -> Any:
    return packed(structure, [fn(leaf) for leaf in leaves_of(structure)])


def form_of(structure: Any) -> Any:
    """The structure without its leaves: equal for structures of one form."""
    if isinstance(structure, tuple):
        return (type(structure), *map(form_of, structure))
    if isinstance(structure, Mapping):
        return ("dict", *((key, form_of(structure[key])) for key in sorted(structure)))
    if isinstance(structure, _EXTENSION):
        parts = (form_of(p) for _, p in children(structure) or ())
        return (seen_as(structure), static_part(structure), *parts)
    return "none" if structure is None else None


def spec_of(value: Any) -> Any:
    """The spec of a structure that `as_structure` gave; symbolic dims are unknown."""
    return map_components(_leaf_spec, value)


def _leaf_spec(leaf: Any) -> Any:
    if isinstance(leaf, CompositeTensor):
        return td.type_spec_from_value(leaf)
    if getattr(leaf, "is_dataset", False):
        return DatasetSpec(leaf.element_spec)
    return td.TensorSpec(leaf.shape, leaf.dtype)


def holds_datasets(spec: Any) -> bool:
    return any(isinstance(s, DatasetSpec) for s in leaves_of(spec))


def packer(spec: Any, leaf: Callable[[Any], Any] = lambda x: x) -> Callable[[Leaves], Any]:
    """A function from leaves to the structure, with `leaf` applied to each."""
    if isinstance(spec, _STRUCTURES):
        if type(spec) is tuple and not any(isinstance(s, _STRUCTURES) for s in spec):
            return lambda leaves: tuple([leaf(x) for x in leaves])
        return lambda leaves: packed(spec, [leaf(x) for x in leaves])
    return lambda leaves: leaf(leaves[0])


class Ahead:
    """An array on its way to a device.

    Attributes:
        array: the array, which others may read.
    """

    def __init__(self, array: NDArray, device: Any) -> None:
        self.array, self.device = array, device
        self._ready = device.storage.from_host_ahead(np.ascontiguousarray(array))

    def tensor(self) -> td.Tensor:
        """The copy on the device; to be asked for once."""
        return from_buffer(self._ready(), self.device)


def on_host(leaves: Leaves) -> Leaves:
    """The leaves with the arrays that are on their way to a device."""
    return tuple([x.array if isinstance(x, Ahead) else x for x in leaves])


def as_value(leaf: Any) -> Any:
    """A leaf as users see it: an eager tensor, or the dataset itself."""
    if isinstance(leaf, np.ndarray):
        return from_array(leaf)
    return leaf.tensor() if isinstance(leaf, Ahead) else leaf


def call_arguments(spec: Any) -> Callable[[Any], tuple[Any, ...]]:
    """How an element becomes a function's arguments: a tuple is unpacked."""
    return (lambda element: tuple(element)) if type(spec) is tuple else (lambda element: (element,))


def relaxed(a: Any, b: Any, what: str, ranks_too: bool = False) -> Any:
    """The most specific spec that both fit; TypeError where they differ in more than dims (and
    ranks, where that is said)."""
    try:
        if form_of(a) != form_of(b):
            raise TypeError
        pairs = zip(leaves_of(a, whole=True), leaves_of(b, whole=True), strict=True)
        return packed(a, [_relaxed_leaf(x, y, ranks_too) for x, y in pairs], whole=True)
    except (TypeError, ValueError, AttributeError):
        raise TypeError(
            f"{what}: incompatible dataset elements: {a!r} vs. {b!r}{at(user_origin())}"
        ) from None


def _relaxed_leaf(a: Any, b: Any, ranks_too: bool) -> Any:
    if isinstance(a, CompositeTensorSpec) or isinstance(b, CompositeTensorSpec):
        found = a.most_specific_common_supertype([b])
        if found is None:
            raise TypeError
        return found
    if isinstance(a, DatasetSpec) and isinstance(b, DatasetSpec):
        return DatasetSpec(relaxed(a.element_spec, b.element_spec, "datasets"))
    if a.dtype is b.dtype and (not (a.has_rank and b.has_rank) or (ranks_too and a.rank != b.rank)):
        return td.TensorSpec(None, a.dtype)
    if a.dtype is not b.dtype or a.rank != b.rank:
        raise TypeError
    dims = [x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)]
    return td.TensorSpec(dims, a.dtype)


def stack(leaves: Sequence[NDArray]) -> NDArray:
    """Arrays of one shape along a new first axis.

    Raises:
        InvalidArgumentError: their shapes differ.
    """
    first = leaves[0]
    out: NDArray = empty((len(leaves), *first.shape), first.dtype)
    for i, leaf in enumerate(leaves):
        if leaf.shape != first.shape:
            raise td.errors.InvalidArgumentError(
                None, None,
                f"Cannot add tensor to the batch: element {i} has shape {list(leaf.shape)}, the "
                f"first has {list(first.shape)}. Use padded_batch for elements of several shapes",
            )  # fmt: skip
        out[i, ...] = leaf
    return out
