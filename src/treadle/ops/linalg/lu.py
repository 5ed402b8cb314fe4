"""Matrices as products of a lower and an upper triangle, with rows exchanged."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.shapes import broadcast
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import common_dtype, convert_to_tensor
from treadle.ops.indexing.gather import gathered
from treadle.ops.linalg.decompositions import square_matrix, triangular_solve
from treadle.ops.linalg.diagonals import set_diag
from treadle.ops.linalg.matrices import matmul
from treadle.ops.linalg.matrix_functions import adjoint
from treadle.ops.linalg.triangles import tril, triu
from treadle.ops.op_makers import inferred
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.requirements import require
from treadle.ops.shaping.creation import eye, ones
from treadle.ops.statistics.sorting import argsort


def _infer(x: TensorSpec, *, out_idx: DType) -> tuple[TensorSpec, TensorSpec]:
    return square_matrix(x, "lu"), TensorSpec(x.dims[:-1], out_idx)


def _eager(x: NDArray, *, out_idx: DType) -> tuple[NDArray, NDArray]:
    """Elimination column by column, of all matrices of the batch at once."""
    n = x.shape[-1]
    a = x.reshape(math.prod(x.shape[:-2]), n, n).copy()
    order = np.broadcast_to(np.arange(n), a.shape[:2]).copy()
    batch = np.arange(len(a))
    for k in range(n):
        best = k + np.argmax(np.abs(a[:, k:, k]), 1)
        for rows in (a, order):
            rows[batch, k], rows[batch, best] = rows[batch, best], rows[batch, k].copy()
        pivots = a[:, k, k]
        if not pivots.all():
            raise InvalidArgumentError(None, None, "a matrix is not invertible")
        a[:, k + 1 :, k] /= pivots[:, None]
        a[:, k + 1 :, k + 1 :] -= a[:, k + 1 :, k, None] * a[:, k, None, k + 1 :]
    return a.reshape(x.shape), order.reshape(x.shape[:-1]).astype(out_idx.np_dtype)


def _gradient(call: OpCall, grad: Tensor, _: Any) -> list[Any]:
    """That of P A = L U, solved with the triangles."""
    packed, order = call.outputs
    lower, upper = _lower(packed), triu(packed)
    inner = tril(matmul(adjoint(lower), tril(grad, -1)), -1)
    inner = inner + triu(matmul(triu(grad), adjoint(upper)))
    left = triangular_solve(adjoint(lower), inner, lower=False)
    # X with X @ adjoint(upper) = left
    found = adjoint(triangular_solve(upper, adjoint(left), lower=False))
    return [_rows(found, argsort(order))]


LU = register(
    Op(
        "lu", _infer, inferred(_infer, _eager), _gradient,
        callback="the elements tell which rows are exchanged",
    )
)


def _lower(packed: Tensor) -> Tensor:
    """The lower triangle, whose diagonal is 1."""
    return set_diag(tril(packed), ones(packed.dims[:-1], packed.dtype))


def _rows(x: Tensor, order: Tensor) -> Tensor:
    """The rows of matrices in another order."""
    return gathered(x, order, order.ndim - 1, batch_dims=order.ndim - 1)


class Lu(NamedTuple):
    """The triangles in one matrix, and the order of the rows."""

    lu: Tensor
    p: Tensor


def lu(
    input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None
) -> Lu:
    """(triangles, order): rows of matrices [..., n, n] in an order that makes them ``L @ U``.

    Args:
        output_idx_type: int32 or int64.

    Returns:
        triangles: [..., n, n], the strictly lower part that of L, whose diagonal is 1; the rest U.
        order: [..., n]; row i of ``L @ U`` is row ``order[i]`` of the matrix.

    Raises:
        InvalidArgumentError: a matrix is singular, or they are not square.
    """
    out = dtypes.as_dtype(output_idx_type)
    if out not in (dtypes.int32, dtypes.int64):
        raise InvalidArgumentError(
            None, None, f"lu: output_idx_type must be int32 or int64, not {out.name}"
            f"{at(user_origin())}",
        )  # fmt: skip
    return Lu(*run(LU, convert_to_tensor(input), out_idx=out))


def lu_reconstruct(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The matrices [..., n, n] of which `lu` gave ``(lower_upper, perm)``.

    Raises:
        InvalidArgumentError: the shapes do not fit.
    """
    packed, order = _checked(lower_upper, perm)
    return _rows(matmul(_lower(packed), triu(packed)), argsort(order))


def lu_solve(
    lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """X [..., n, k] with ``matrix @ X = rhs``, for matrices of which `lu` gave the triangles.

    Args:
        lower_upper, perm: the results of `lu`, [..., n, n] and [..., n].
        rhs: [..., n, k]; the batch dims broadcast with those of the matrices.

    Raises:
        InvalidArgumentError: the shapes do not fit.
    """
    packed, order = _checked(lower_upper, perm)
    packed, b = common_dtype("lu_solve", packed, rhs)
    if b.ndim < 2 or not packed.shape[-1:].is_compatible_with(b.shape[-2:-1]):
        raise InvalidArgumentError(
            None, None, f"lu_solve: rhs {b.spec} has not as many rows as the matrices {packed.spec}"
            f"{at(user_origin())}",
        )  # fmt: skip
    batch = broadcast(packed.dims[:-2], b.dims[:-2])
    order = broadcast_dims(order, (*batch, packed.dims[-1]))
    permuted = _rows(broadcast_dims(b, (*batch, *b.dims[-2:])), order)
    inner = triangular_solve(_lower(packed), permuted, lower=True)
    return triangular_solve(triu(packed), inner, lower=False)


def lu_matrix_inverse(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The inverses [..., n, n] of matrices of which `lu` gave ``(lower_upper, perm)``.

    Raises:
        InvalidArgumentError: the shapes do not fit.
    """
    packed, order = _checked(lower_upper, perm)
    size, batch = packed.dims[-1], packed.dims[:-2]
    unit = eye(size, batch_shape=batch, dtype=packed.dtype)
    return lu_solve(packed, order, unit)


def _checked(lower_upper: Any, perm: Any) -> tuple[Tensor, Tensor]:
    packed, order = convert_to_tensor(lower_upper), convert_to_tensor(perm)
    if packed.ndim < 2 or not order.shape.is_compatible_with(packed.shape[:-1]):
        raise InvalidArgumentError(
            None, None, f"lu: {packed.spec} and {order.spec} are not the triangles and the order "
            f"of matrices{at(user_origin())}",
        )  # fmt: skip
    pairs = zip(packed.dims[:-1], order.dims, strict=True)
    return require(packed, pairs, "lu: the order is none of the rows of the matrices"), order
