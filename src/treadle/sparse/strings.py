"""Sparse tensors written as strings, and read again."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.registry import run
from treadle.ops.shaping.joining import stack
from treadle.ops.strings.sparse_tensors import DESERIALIZE_ROWS, SERIALIZE_ROWS
from treadle.ops.strings.tensors import NUMBERS, serialize_tensor
from treadle.ops.strings.texts import invalid, string_tensor
from treadle.sparse.tensor import SparseTensor


def _sparse(value: Any, what: str, out_type: Any) -> SparseTensor:
    if not isinstance(value, SparseTensor):
        raise TypeError(f"{what}: the input must be a SparseTensor, not {value!r}")
    if dtypes.as_dtype(out_type) is not dtypes.string:
        raise invalid(f"{what}: out_type must be string, not {out_type!r}{at(user_origin())}")
    return value


def serialize_sparse(
    sp_input: Any, out_type: Any = dtypes.string, name: str | None = None
) -> Tensor:
    """A sparse tensor as three strings: its places, its values and its shape.

    Args:
        out_type: must be string.

    Raises:
        TypeError: no sparse tensor.
    """
    given = _sparse(sp_input, "serialize_sparse", out_type)
    parts = (given.indices, given.values, given.dense_shape)
    return stack([serialize_tensor(part) for part in parts])


def serialize_many_sparse(
    sp_input: Any, out_type: Any = dtypes.string, name: str | None = None
) -> Tensor:
    """The rows of a sparse tensor along its first axis, three strings each; see
    `serialize_sparse`.

    Raises:
        TypeError: no sparse tensor.
        InvalidArgumentError: it has less than two axes, or its places are not in order.
    """
    given = _sparse(sp_input, "serialize_many_sparse", out_type)
    found: Tensor = run(
        SERIALIZE_ROWS, given.indices, given.values, given.dense_shape, dtype=given.dtype
    )
    return found


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """Sparse tensors as the rows of one: the others of `serialize_many_sparse`.

    Args:
        serialized_sparse: strings [N, 3], a sparse tensor in each row.
        dtype: of their values.
        rank: the number of axes of the result, where it is known.

    Returns:
        a sparse tensor of N rows, each as large as the largest of the tensors.

    Raises:
        InvalidArgumentError: other strings, or tensors of other dtypes or ranks.
    """
    kind = dtypes.as_dtype(dtype)
    if kind not in NUMBERS:
        raise invalid(f"deserialize_many_sparse: no string holds {kind.name}{at(user_origin())}")
    return SparseTensor(
        *run(DESERIALIZE_ROWS, string_tensor(serialized_sparse), dtype=kind, rank=rank)
    )
