"""`BatchableExtensionType`: extension types that are put together and taken apart along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core import nest
from treadle.core.composite_spec import CompositeTensorSpec
from treadle.core.shapes import TensorShape
from treadle.core.spec import TensorSpec
from treadle.tracing.extension_types import ExtensionType, parts_of, rebuilt


class ExtensionTypeBatchEncoder:
    """How objects of a `BatchableExtensionType` are put together along a new first axis, and taken
    apart: as the tensors and composite tensors of their fields, one after another.

    A class whose fields cannot be stacked gives an encoder of its own as ``__batch_encoder__``.
    """

    def batch(self, spec: Any, batch_size: int | None) -> Any:
        """The type of `batch_size` objects of a type."""
        return _with_fields(spec, lambda field: _batched(field, batch_size))

    def unbatch(self, spec: Any) -> Any:
        """The type of the objects that an object of a type consists of."""
        return _with_fields(spec, _unbatched)

    def encode(self, spec: Any, value: Any, minimum_rank: int = 0) -> Any:
        """An object of a type as a structure of tensors of at least `minimum_rank` axes."""
        return nest.flatten(parts_of(value), expand_composites=False)

    def encoding_specs(self, spec: Any) -> Any:
        """The types of what `encode` gives for objects of a type."""
        return nest.flatten(parts_of(spec), expand_composites=False)

    def decode(self, spec: Any, encoded_value: Any) -> Any:
        """The object of a type that `encode` gave."""
        parts = nest.pack(parts_of(spec), encoded_value, expand_composites=False)
        return rebuilt(spec, parts)


class BatchableExtensionType(ExtensionType):
    """An `ExtensionType` whose objects `map_fn` and datasets put together and take apart along
    their first axes, as its ``__batch_encoder__`` says.

        class Network(td.experimental.BatchableExtensionType):
            work: td.Tensor
            bandwidth: td.Tensor

        td.map_fn(balanced, networks)  # networks.work has shape [n, nodes]
    """

    __batch_encoder__ = ExtensionTypeBatchEncoder()


def _with_fields(spec: Any, changed: Callable[[Any], Any]) -> Any:
    """A type of extension types with other types in its fields."""
    made = object.__new__(type(spec))
    for name in spec._fields_by_name:
        value = nest.map_structure(changed, getattr(spec, name), expand_composites=False)
        object.__setattr__(made, name, value)
    return made


def _batched(field: Any, size: int | None) -> Any:
    if isinstance(field, TensorShape):
        return TensorShape([size]).concatenate(field)
    if isinstance(field, TensorSpec):
        return TensorSpec(TensorShape([size]).concatenate(field.shape), field.dtype)
    if isinstance(field, CompositeTensorSpec):
        return field.batched(size)
    encoder = _encoder_of(field)
    return field if encoder is None else encoder.batch(field, size)


def _unbatched(field: Any) -> Any:
    if isinstance(field, TensorShape):
        return field[1:]
    if isinstance(field, TensorSpec):
        return TensorSpec(field.shape[1:], field.dtype)
    if isinstance(field, CompositeTensorSpec):
        return field.unbatched()
    encoder = _encoder_of(field)
    return field if encoder is None else encoder.unbatch(field)


def _encoder_of(field: Any) -> Any:
    return getattr(getattr(field, "value_type", None), "__batch_encoder__", None)
