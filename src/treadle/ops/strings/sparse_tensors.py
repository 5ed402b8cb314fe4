"""Sparse tensors written as strings, in TensorFlow's form: three strings of TensorProtos, of the
places, the values and the shape. A batch of them are the rows of a matrix of strings."""

from __future__ import annotations

import numpy as np

from treadle.core import dtypes, wire
from treadle.core.dtypes import DType
from treadle.core.shapes import fresh_symbol
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray
from treadle.ops.registry import Op, register
from treadle.ops.strings.tensors import packed, unpacked
from treadle.ops.strings.texts import STRINGS, invalid


def _rows_infer(indices: Spec, values: Spec, shape: Spec, *, dtype: DType) -> TensorSpec:
    return TensorSpec((fresh_symbol("rows"), 3), dtypes.string)


def _rows(indices: NDArray, values: NDArray, shape: NDArray, *, dtype: DType) -> NDArray:
    """The strings of each row of a sparse tensor, whose places must be in order."""
    if len(shape) < 2:
        raise invalid(f"Rank of input SparseTensor should be > 1, but saw rank: {len(shape)}")
    numbers = indices[:, 0]
    if np.any(numbers[1:] < numbers[:-1]):
        raise invalid("the places of the sparse tensor are not in order: use td.sparse.reorder")
    inner = packed(shape[1:], dtypes.int64)
    limits = np.searchsorted(numbers, np.arange(int(shape[0]) + 1))
    out = np.empty((int(shape[0]), 3), object)
    for row, (begin, end) in enumerate(zip(limits[:-1], limits[1:], strict=True)):
        places = packed(indices[begin:end, 1:], dtypes.int64)
        out[row] = [places, packed(values[begin:end], dtype), inner]
    return out


SERIALIZE_ROWS = register(Op("serialize_sparse_rows", _rows_infer, _rows, tags=STRINGS))


def _joined_infer(serialized: Spec, *, dtype: DType, rank: int | None) -> tuple[TensorSpec, ...]:
    if len(serialized.dims) != 2:
        raise invalid(f"serialized_sparse must be a matrix [N, 3], got shape: {serialized.shape}")
    count, axes = fresh_symbol("values"), fresh_symbol("axes") if rank is None else rank
    return (
        TensorSpec((count, axes), dtypes.int64), TensorSpec((count,), dtype),
        TensorSpec((axes,), dtypes.int64),
    )  # fmt: skip


def _joined(
    serialized: NDArray, *, dtype: DType, rank: int | None
) -> tuple[NDArray, NDArray, NDArray]:
    """Sparse tensors of one rank as the rows of one of a rank more, as large as the largest."""
    if serialized.shape[1:] != (3,):
        raise invalid(f"serialized_sparse must be [N, 3], got shape: {list(serialized.shape)}")
    if not len(serialized):
        raise invalid("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows")
    parts = [_parts(row, texts, dtype) for row, texts in enumerate(serialized.tolist())]
    ranks = {shape.size for _, _, shape in parts}
    if len(ranks) > 1 or (rank is not None and ranks != {rank - 1}):
        wanted = "one rank" if rank is None else f"rank {rank - 1}"
        raise invalid(f"the sparse tensors must have {wanted}, got the ranks {sorted(ranks)}")
    numbers = [np.full((len(places), 1), row) for row, (places, _, _) in enumerate(parts)]
    places = [np.concatenate([n, p], 1) for n, (p, _, _) in zip(numbers, parts, strict=True)]
    largest = np.max([shape for _, _, shape in parts], axis=0).astype(np.int64)
    whole = np.concatenate([[len(parts)], largest]).astype(np.int64)
    return np.concatenate(places), np.concatenate([v for _, v, _ in parts]), whole


def _parts(row: int, texts: list[bytes], dtype: DType) -> tuple[NDArray, NDArray, NDArray]:
    """The places, values and shape of a sparse tensor.

    Raises:
        InvalidArgumentError: the strings are no sparse tensor, or one of another dtype.
    """
    try:
        found = [unpacked(text) for text in texts]
    except (wire.WireError, ValueError) as error:
        raise invalid(f"Could not parse serialized_sparse[{row}]: {error}") from None
    (places, _), (values, kind), (shape, _) = found
    if kind is not dtype:
        raise invalid(
            f"Requested SparseTensor of type {dtype.name} but serialized_sparse[{row}] has "
            f"{kind.name}"
        )
    if [d for _, d in (found[0], found[2])] != [dtypes.int64] * 2 or (
        places.ndim != 2 or values.ndim != 1 or places.shape != (values.size, shape.size)
    ):
        raise invalid(f"serialized_sparse[{row}] is no sparse tensor")
    return places, values, shape


DESERIALIZE_ROWS = register(Op("deserialize_sparse_rows", _joined_infer, _joined, tags=STRINGS))
