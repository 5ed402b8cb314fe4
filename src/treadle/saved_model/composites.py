"""Ragged and sparse tensors and extension types in the types of saved functions: as text, by parts.
Calls that a run makes have a text, too.

A saved function has the structures of its arguments and results as literals. What composite tensors
are in them is their parts: types for arguments, the numbers of tensors for results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treadle.core.shapes import TensorShape
from treadle.graph.literals import register_typed
from treadle.ragged.tensor import RaggedTensor, RaggedTensorSpec
from treadle.sparse.tensor import SparseTensor, SparseTensorSpec
from treadle.tracing import late_calls  # noqa: F401 (gives calls that runs make a text)
from treadle.tracing.extension_types import (
    ExtensionType,
    ExtensionTypeSpec,
    ImmutableMapping,
    class_saved_as,
    saved_name,
)

Parts = dict[str, Any]


def _ragged_parts(ragged: RaggedTensor) -> Parts:
    return {"values": ragged.values, "row_splits": ragged.row_splits}


def _ragged(parts: Parts) -> RaggedTensor:
    made = object.__new__(RaggedTensor)
    made._values, made._row_splits, made._uniform = parts["values"], parts["row_splits"], None
    return made


def _ragged_spec_parts(spec: RaggedTensorSpec) -> Parts:
    return {
        "values": spec.values, "row_splits": spec.row_splits, "offsets": spec.offsets,
        "uniform": spec.uniform,
    }  # fmt: skip


def _ragged_spec(parts: Parts) -> RaggedTensorSpec:
    if parts["row_splits"] is None:
        return RaggedTensorSpec.of_rows(parts["values"], parts["offsets"])
    return RaggedTensorSpec.of([parts["values"], parts["row_splits"]], parts["uniform"])


def _sparse_parts(sparse: SparseTensor) -> Parts:
    return {
        "indices": sparse.indices, "values": sparse.values, "dense_shape": sparse.dense_shape,
    }  # fmt: skip


def _sparse(parts: Parts) -> SparseTensor:
    made = object.__new__(SparseTensor)
    made._indices, made._values = parts["indices"], parts["values"]
    made._dense_shape, made._dims = parts["dense_shape"], None
    return made


def _sparse_spec_parts(spec: SparseTensorSpec) -> Parts:
    return {
        "indices": spec.indices, "values": spec.values, "dense_shape": spec.dense_shape,
        "shape": None if spec.shape.rank is None else spec.shape.as_list(),
    }  # fmt: skip


def _sparse_spec(parts: Parts) -> SparseTensorSpec:
    own = [parts[name] for name in ("indices", "values", "dense_shape")]
    return SparseTensorSpec.of(own, TensorShape(parts["shape"]))


def _fields(value: Any) -> Parts | None:
    """The class and the fields; None for a class without a name for saved models."""
    kind = getattr(value, "value_type", type(value))
    if saved_name(kind) is None:
        return None
    fields = {name: _plain(getattr(value, name)) for name in value._fields_by_name}
    return {"class": saved_name(kind), "fields": fields}


def _plain(field: Any) -> Any:
    return dict(field) if isinstance(field, Mapping) else field


def _extension_type(parts: Parts) -> Any:
    return _with_fields(class_saved_as(parts["class"]), parts)


def _extension_type_spec(parts: Parts) -> Any:
    return _with_fields(class_saved_as(parts["class"]).Spec, parts)


def _with_fields(kind: Any, parts: Parts) -> Any:
    """An object, or type, with these fields.

    Raises:
        ValueError: the class has other fields.
    """
    fields = parts["fields"]
    if set(fields) != set(kind._fields_by_name):
        raise ValueError(
            f"{parts['class']} was saved with the fields {sorted(fields)}, and has "
            f"{sorted(kind._fields_by_name)} now"
        )
    made = object.__new__(kind)
    for name, value in fields.items():
        kept = ImmutableMapping(value) if isinstance(value, dict) else value
        made.__dict__[name] = kept
    if isinstance(made, ExtensionType):
        made.__dict__["_is_made"] = True
    return made


register_typed("ragged", [RaggedTensor], _ragged_parts, _ragged)
register_typed("ragged spec", [RaggedTensorSpec], _ragged_spec_parts, _ragged_spec)
register_typed("sparse", [SparseTensor], _sparse_parts, _sparse)
register_typed("sparse spec", [SparseTensorSpec], _sparse_spec_parts, _sparse_spec)
register_typed("extension type", [ExtensionType], _fields, _extension_type)
register_typed("extension type spec", [ExtensionTypeSpec], _fields, _extension_type_spec)
