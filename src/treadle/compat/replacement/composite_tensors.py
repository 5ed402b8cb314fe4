"""Classes of libraries whose objects are one value to users and several tensors to programs.

A library derives its class from TensorFlow's private `CompositeTensor` and gives it a property
``_type_spec``: an object of a class derived from `BatchableTypeSpec` that takes values apart
(``_to_components``) and makes them of tensors again (``_from_components``). Such values are
structures here, as ragged tensors are: functions take and give them, loops carry them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from treadle.core import composite_spec, dtypes, nest
from treadle.core.shapes import TensorShape
from treadle.core.tensor import Tensor
from treadle.core.trace_types import TypeSpec
from treadle.linear_operators.base import LinearOperator
from treadle.ops.indexed_slices import IndexedSlices
from treadle.ops.state import Variable
from treadle.ops.type_specs import type_spec_from_value as _spec_of
from treadle.tracing.extension_types import ExtensionType

C = TypeVar("C", bound=type)


class CompositeTensor(ABC):
    """What a class derives from whose objects are several tensors.

    treadle's own classes of that kind are subclasses to `isinstance`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        nest.register_node(cls, _parts, _rebuilt, _Form)

    @property
    @abstractmethod
    def _type_spec(self) -> Any:
        """The type of the value."""


for _own in (composite_spec.CompositeTensor, LinearOperator, IndexedSlices, ExtensionType):
    CompositeTensor.register(_own)


def _parts(value: Any) -> list[Any]:
    return [value._type_spec._to_components(value)]


def _rebuilt(like: Any, parts: list[Any]) -> Any:
    """The value with other components. Where these are no tensors it cannot be made, and `_Unbuilt`
    holds them; None counts as a tensor where the value itself has as many of them."""
    leaves = nest.flatten(parts)
    given = sum(leaf is None for leaf in leaves)
    had = sum(leaf is None for leaf in nest.flatten(_parts(like))) if given else 0
    if given == had and all(map(_is_value, leaves)):
        return like._type_spec._from_components(parts[0])
    return _Unbuilt(like, parts)


def _is_value(leaf: Any) -> bool:
    return leaf is None or isinstance(
        leaf, Tensor | Variable | np.ndarray | np.generic | int | float | complex | str | bytes
    )


class _Unbuilt:
    """A composite tensor whose tensors were replaced by something else, such as specs, which the
    constructors of libraries refuse. With tensors in their places it is the composite tensor again.
    """

    def __init__(self, like: Any, parts: list[Any]) -> None:
        self.like, self.parts = like, parts
        self.seen_as = type(like)


nest.register_node(
    _Unbuilt,
    lambda unbuilt: unbuilt.parts,
    lambda unbuilt, parts: _rebuilt(unbuilt.like, parts),
    lambda unbuilt: _Form(unbuilt.like),
)


class _Form:
    """What a value is besides its class and components: its spec. Two are equal where the specs
    have a common type, so that their shapes may differ and nothing else."""

    def __init__(self, value: Any) -> None:
        self._spec = value._type_spec

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Form) or type(self._spec) is not type(other._spec):
            return False
        found = self._spec.most_specific_common_supertype([other._spec])
        return found is not None

    def __hash__(self) -> int:
        return hash(type(self._spec))

    def __repr__(self) -> str:
        return repr(self._spec)


class BatchableTypeSpec(TypeSpec):
    """The type of a composite tensor: what a library's spec derives from.

    A subclass has ``value_type``, ``_serialize()``, which gives the arguments of its constructor,
    ``_component_specs``, ``_to_components`` and ``_from_components``.
    """

    @property
    def value_type(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no value_type")

    def _serialize(self) -> tuple[Any, ...]:
        raise NotImplementedError(f"{type(self).__name__} has no _serialize")

    @classmethod
    def _deserialize(cls, serialization: Sequence[Any]) -> Any:
        return cls(*serialization)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        other = spec_or_value
        if not isinstance(other, TypeSpec):
            other = type_spec_from_value(other)
        if type(self) is not type(other):
            return False
        return self._TypeSpec__is_compatible(self._serialize(), other._serialize())

    def is_subtype_of(self, other: Any) -> bool:
        return type(self) is type(other) and _all_pairs(
            self._serialize(), other._serialize(), lambda mine, theirs: mine.is_subtype_of(theirs)
        )

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Any:
        if any(type(self) is not type(other) for other in others):
            return None
        columns = [nest.flatten(spec._serialize()) for spec in (self, *others)]
        if len(set(map(len, columns))) > 1:
            return None
        joined = []
        for part, *rest in zip(*columns, strict=True):
            if not isinstance(part, TypeSpec):
                if any(part != other for other in rest):
                    return None
                joined.append(part)
                continue
            found = part.most_specific_common_supertype(rest)
            if found is None:
                return None
            joined.append(found)
        return self._deserialize(nest.pack(self._serialize(), joined))

    @staticmethod
    def _TypeSpec__is_compatible(mine: Any, theirs: Any) -> bool:
        """TensorFlow's private comparison, which libraries call by its mangled name."""
        return _all_pairs(mine, theirs, lambda a, b: a.is_compatible_with(b))

    @classmethod
    def _TypeSpec__make_cmp_key(cls, value: Any) -> Hashable:
        """TensorFlow's private key for comparisons and hashes."""
        if isinstance(value, Mapping):
            items = ((k, cls._TypeSpec__make_cmp_key(v)) for k, v in value.items())
            return (dict, *sorted(items, key=lambda item: repr(item[0])))
        if isinstance(value, list | tuple):
            return (tuple, *map(cls._TypeSpec__make_cmp_key, value))
        if isinstance(value, TensorShape):
            return (TensorShape, value.rank, tuple(value) if value.rank is not None else None)
        return value  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        key = self._TypeSpec__make_cmp_key
        return bool(key(self._serialize()) == key(other._serialize()))

    def __hash__(self) -> int:
        return hash((type(self), self._TypeSpec__make_cmp_key(self._serialize())))


def _all_pairs(mine: Any, theirs: Any, fits: Callable[[Any, Any], bool]) -> bool:
    try:
        nest.assert_same_structure(mine, theirs, check_types=False, expand_composites=False)
    except (TypeError, ValueError):
        return False
    pairs = zip(
        nest.flatten(mine, expand_composites=False),
        nest.flatten(theirs, expand_composites=False),
        strict=True,
    )
    return all(fits(a, b) if isinstance(a, TypeSpec | TensorShape) else a == b for a, b in pairs)


# -- registers ---------------------------------------------------------------------------------

_NAME_TO_TYPE_SPEC: dict[str, type] = {}
_TYPE_SPEC_TO_NAME: dict[type, str] = {}
# Classes, what gives the specs of their objects, and whether this holds for subclasses, too.
_converters: list[tuple[type, Callable[[Any], Any], bool]] = []


def register(name: str) -> Callable[[C], C]:
    """Decorator: the name of a class of specs.

    Raises:
        ValueError: another class has it.
    """

    def decorate(cls: C) -> C:
        if _NAME_TO_TYPE_SPEC.get(name, cls) is not cls:
            raise ValueError(f"Name {name} has already been registered for another class")
        _NAME_TO_TYPE_SPEC[name], _TYPE_SPEC_TO_NAME[cls] = cls, name
        return cls

    return decorate


def get_name(cls: type) -> str:
    """The name that a class of specs is registered by.

    Raises:
        ValueError: it is not registered.
    """
    if cls not in _TYPE_SPEC_TO_NAME:
        raise ValueError(f"TypeSpec {cls.__module__}.{cls.__name__} has not been registered.")
    return _TYPE_SPEC_TO_NAME[cls]


def lookup(name: str) -> type:
    """The class of specs that is registered by a name.

    Raises:
        ValueError: there is none.
    """
    if name not in _NAME_TO_TYPE_SPEC:
        raise ValueError(f"No TypeSpec has been registered with name {name!r}")
    return _NAME_TO_TYPE_SPEC[name]


def register_type_spec_from_value_converter(
    type_object: Any, converter_fn: Callable[[Any], Any], allow_subclass: bool = False
) -> None:
    """Let a function give the specs of objects of a class, and of its subclasses if said so."""
    _converters.insert(0, (type_object, converter_fn, allow_subclass))


def type_spec_from_value(value: Any) -> Any:
    """The spec of a value, by a function that was registered for its class if there is one.

    Raises:
        TypeError: it has none.
    """
    for kind, converter, allow_subclass in _converters:
        if type(value) is kind or (allow_subclass and isinstance(value, kind)):
            return converter(value)
    return _spec_of(value)


class DenseSpec(BatchableTypeSpec):
    """The type of a value that stands for one tensor, with its shape and dtype."""

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        self._shape, self._dtype = TensorShape(shape), dtypes.as_dtype(dtype)
        self._name = name

    @property
    def shape(self) -> TensorShape:
        return self._shape

    @property
    def dtype(self) -> dtypes.DType:
        return self._dtype

    @property
    def name(self) -> str | None:
        return self._name

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._name


class VariableSpec(DenseSpec):
    """The type of a variable as a part of a composite tensor."""

    def __init__(
        self, shape: Any, dtype: Any = dtypes.float32, trainable: bool = True,
        alias_id: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(shape, dtype)
        self.trainable, self.alias_id = trainable, alias_id

    @property
    def value_type(self) -> Any:
        return Variable

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self.trainable, self.alias_id
