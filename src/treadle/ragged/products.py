"""Products of matrices of which some, or their batches, are ragged."""

from __future__ import annotations

from typing import Any, NamedTuple

from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.gather import gather
from treadle.ops.indexing.repeating import repeat
from treadle.ops.linalg import matrices
from treadle.ops.reductions.reduction import reduce_all
from treadle.ops.shaping.creation import zeros
from treadle.ops.shaping.joining import concat
from treadle.ragged import partitions
from treadle.ragged.tensor import RaggedTensor


def matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False,
    adjoint_a: bool = False, adjoint_b: bool = False, a_is_sparse: bool = False,
    b_is_sparse: bool = False, output_type: Any = None, grad_a: bool = False,
    grad_b: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The products of the matrices of `a` and `b`, of which one is ragged at least.

    Args:
        a, b: tensors of one rank and dtype. The rows and columns of each matrix may be of any
            number; within a matrix all rows are of one length.

    Returns:
        A tensor for two matrices; otherwise a ragged tensor, whose last axis is ragged where the
        columns of the results may differ in number.

    Raises:
        ValueError: the ranks or dtypes differ, or both a transpose and an adjoint are asked for.
        InvalidArgumentError: a matrix with rows of several lengths, batches of different sizes, or
            matrices whose sizes do not fit.
    """
    x, y = _given(a), _given(b)
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise ValueError(f"matmul: transpose and adjoint of one matrix{at(user_origin())}")
    if x.dtype is not y.dtype:
        raise ValueError(
            f"matmul: matrices of {x.dtype.name} and {y.dtype.name}{at(user_origin())}"
        )
    rank = len(x.shape)
    if rank != len(y.shape) or rank < 2:
        raise ValueError(
            f"matmul: ragged matrices of shapes {x.shape} and {y.shape}: the ranks must be equal, "
            f"and 2 at least{at(user_origin())}"
        )
    options = {
        "transpose_a": transpose_a, "transpose_b": transpose_b, "adjoint_a": adjoint_a,
        "adjoint_b": adjoint_b, "output_type": output_type,
    }  # fmt: skip
    if rank == 2:
        return matrices.matmul(_whole(x), _whole(y), **options)
    if rank > 3:
        x, y = _with_rows(x), _with_rows(y)
        partitions.same_splits(x.row_splits, y.row_splits)
        return x.with_values(matmul(x.values, y.values, **options))
    return _of_batches(x, y, transpose_a or adjoint_a, transpose_b or adjoint_b, options)


def _given(value: Any) -> Any:
    return value if isinstance(value, RaggedTensor) else convert_to_tensor(value)


def _with_rows(value: Any) -> RaggedTensor:
    return value if isinstance(value, RaggedTensor) else RaggedTensor.from_tensor(value)


def _whole(value: Any) -> Tensor:
    """A matrix whose rows happen to be of one length, as a tensor."""
    if not isinstance(value, RaggedTensor):
        return value  # type: ignore[no-any-return]
    lengths = partitions.lengths_of(value.row_splits)
    _require_equal(lengths, lengths[:1])
    return value.to_tensor()


def _require_equal(lengths: Tensor, wanted: Tensor) -> None:
    partitions.require(
        reduce_all(lengths == wanted), "matmul: the rows of a matrix are of different lengths"
    )


class _Sizes(NamedTuple):
    """How many rows and columns each matrix of a batch has; whether the columns may differ."""

    rows: Tensor
    columns: Tensor
    differ: bool


def _sizes(value: Any, dtype: Any) -> _Sizes:
    if isinstance(value, Tensor):
        count = dims_tensor(value.dims[0], dtype)
        rows, columns = (repeat(dims_tensor(d, dtype), count) for d in value.dims[1:])
        return _Sizes(rows, columns, False)
    rows = partitions.lengths_of(value.row_splits)
    inner = value.values
    if isinstance(inner, Tensor):
        return _Sizes(rows, rows * 0 + dims_tensor(inner.dims[1], dtype), False)
    lengths = partitions.lengths_of(inner.row_splits)
    padded = concat([lengths, zeros([1], dtype)], 0)  # a last matrix without rows has no first one
    columns = gather(padded, value.row_splits[:-1]) * cast(rows > 0, dtype)
    _require_equal(lengths, gather(columns, value.value_rowids()))
    return _Sizes(rows, columns, True)


def _of_batches(
    x: Any, y: Any, turned_x: bool, turned_y: bool, options: dict[str, Any]
) -> RaggedTensor:
    """Matrices filled up with zeros to the largest, multiplied, and the products cut to size."""
    dtype = next(v.row_splits.dtype for v in (x, y) if isinstance(v, RaggedTensor))
    of_x, of_y = _sizes(x, dtype), _sizes(_as_dtype(y, dtype), dtype)
    rows, inner = (of_x.columns, of_x.rows) if turned_x else (of_x.rows, of_x.columns)
    other, columns = (of_y.columns, of_y.rows) if turned_y else (of_y.rows, of_y.columns)
    same = "matmul: the batches, or the inner sizes of their matrices, differ"
    partitions.require(_size(inner) == _size(other), same)
    partitions.require(reduce_all(inner == other), same)
    left, right = (v if isinstance(v, Tensor) else v.to_tensor() for v in (x, y))
    product = matrices.matmul(left, right, **options)
    may_differ = of_y.differ or (turned_y and isinstance(y, RaggedTensor))
    if isinstance(x, Tensor):  # then all results have the same number of rows
        whole = RaggedTensor.from_tensor(product, row_splits_dtype=dtype)
        if not may_differ:
            return whole
        cut = RaggedTensor.from_tensor(whole.values, repeat(columns, rows), row_splits_dtype=dtype)
        return whole.with_values(cut)
    lengths = [rows, repeat(columns, rows)] if may_differ else [rows]
    return RaggedTensor.from_tensor(product, lengths, row_splits_dtype=dtype)


def _size(vector: Tensor) -> Tensor:
    return dims_tensor(vector.dims[0], vector.dtype)


def _as_dtype(value: Any, dtype: Any) -> Any:
    return value.with_row_splits_dtype(dtype) if isinstance(value, RaggedTensor) else value
