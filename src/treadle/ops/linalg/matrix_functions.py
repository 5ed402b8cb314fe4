"""TensorFlow's names for decompositions and equations of matrices (``td.linalg``)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape, compound
from treadle.core.spec import TensorSpec, spec_text
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import common_dtype, convert_to_tensor, is_symbolic
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise import unary
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.elementwise.selection import where
from treadle.ops.linalg import decompositions
from treadle.ops.linalg.diagonals import diag_part
from treadle.ops.linalg.matrices import matmul, matrix_transpose
from treadle.ops.linalg.triangles import tril, triu
from treadle.ops.reductions.reduction import reduce_max, reduce_sum
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.scalars import number
from treadle.ops.shaping.creation import eye, zeros_like
from treadle.ops.shaping.ranges import range as numbers


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The transpose of matrices, of complex ones the conjugate transpose."""
    x = convert_to_tensor(matrix)
    return matrix_transpose(conj(x) if x.dtype.is_complex else x)


def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverses of square matrices [..., n, n], or of their adjoints.

    Those of float16 are computed in float32.

    Raises:
        InvalidArgumentError: a matrix is singular.
    """
    x = _turned(input, adjoint)
    if x.dtype is dtypes.float16:
        return cast(decompositions.inv(cast(x, dtypes.float32)), x.dtype)
    return decompositions.inv(x)


def _turned(matrix: Any, turn: bool) -> Tensor:
    return adjoint(matrix) if turn else convert_to_tensor(matrix)


def det(input: Any, name: str | None = None) -> Tensor:
    """The determinants of square matrices [..., n, n]."""
    return decompositions.det(input)


class LogMatrixDeterminant(NamedTuple):
    """The signs of determinants, and the logarithms of their absolute values."""

    sign: Tensor
    log_abs_determinant: Tensor


def slogdet(input: Any, name: str | None = None) -> LogMatrixDeterminant:
    """(sign, logarithm of the absolute value) of the determinants of matrices [..., n, n], both of
    the dtype of the matrices."""
    sign, size = decompositions.slogdet(input)
    return LogMatrixDeterminant(sign, cast(size, sign.dtype))


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithms of the determinants of positive definite matrices [..., n, n].

    Raises:
        InvalidArgumentError: a matrix is not positive definite.
    """
    diagonal = unary.log(diag_part(decompositions.cholesky(matrix)))
    return 2.0 * reduce_sum(diagonal, -1)


def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """X [..., n, k] with ``matrix @ X = rhs``; matrix is [..., n, n].

    Raises:
        InvalidArgumentError: a matrix is singular, or the shapes do not fit.
    """
    a, b = common_dtype("solve", matrix, rhs)
    return decompositions.solve(_turned(a, adjoint), b)


def triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """X [..., n, k] with ``matrix @ X = rhs`` where only a triangle of matrix [..., n, n] is read.

    Args:
        lower: which one.
        adjoint: solve with the adjoint of that triangle.
    """
    a, b = common_dtype("triangular_solve", matrix, rhs)
    return decompositions.triangular_solve(_turned(a, adjoint), b, lower != adjoint)


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """Lower triangles L with ``L @ adjoint(L)`` the positive definite matrices [..., n, n].

    Raises:
        InvalidArgumentError: a matrix is not positive definite.
    """
    return decompositions.cholesky(input)


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """X with ``chol @ adjoint(chol) @ X = rhs``."""
    return triangular_solve(chol, triangular_solve(chol, rhs), adjoint=True)


class Qr(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    q: Tensor
    r: Tensor


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Qr:
    """(Q, R): orthonormal columns [..., m, k] and an upper triangle [..., k, n], whose product is
    the matrices; k is the smaller of m and n, or m with `full_matrices`. Those of float16 are
    computed in float32."""
    x = convert_to_tensor(input)
    if x.dtype is dtypes.float16:
        found = decompositions.qr(cast(x, dtypes.float32), bool(full_matrices))
        return Qr(*(cast(part, x.dtype) for part in found))
    return Qr(*decompositions.qr(x, bool(full_matrices)))


def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """(s, U, V) with ``U * s @ adjoint(V)`` the matrices, or s alone."""
    u, s, vh = decompositions.svd(tensor, full_matrices)
    return (s, u, adjoint(vh)) if compute_uv else s


def eigh(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(eigenvalues in rising order, eigenvectors in columns) of symmetric matrices, of which the
    lower triangle is read. Both have the dtype of the matrices, as in TensorFlow."""
    values, vectors = decompositions.eigh(tensor)
    return cast(values, vectors.dtype), vectors


def eigvalsh(tensor: Any, name: str | None = None) -> Tensor:
    """The eigenvalues of symmetric matrices in rising order, in the dtype of the matrices."""
    return eigh(tensor)[0]


def lstsq(
    matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """X that makes ``|matrix @ X - rhs|² + l2_regularizer * |X|²`` smallest.

    Args:
        matrix: [..., m, n], of full rank.
        fast: by the normal equations; otherwise by QR, which needs ``m >= n`` and no regularizer.

    Returns:
        [..., n, k]; zeros where `matrix` has no rows.
    """
    a, b = common_dtype("lstsq", matrix, rhs)
    if a.dims[-2] == 0 and not fast:
        return matmul(adjoint(a), b)
    if not fast:
        q, r = decompositions.qr(a)
        return triangular_solve(r, matmul(adjoint(q), b), lower=False)

    rows, columns = a.dims[-2:]
    high = not (isinstance(rows, int) and isinstance(columns, int)) or rows >= columns
    turned = adjoint(a)
    square = matmul(turned, a) if high else matmul(a, turned)
    factor = cholesky(square + eye(square.dims[-1], dtype=a.dtype) * l2_regularizer)
    if high:
        return cholesky_solve(factor, matmul(turned, b))
    return matmul(turned, cholesky_solve(factor, b))


def _infer_pinv(x: TensorSpec, limit: TensorSpec) -> TensorSpec:
    if x.rank < 2 or x.dtype.kind not in "fc":
        raise TypeError(f"{spec_text(x)} are not matrices of floats or complex numbers")
    if x.dtype.size == 2:
        raise TypeError(f"pinv does not take {x.dtype.name}: cast the matrices to float32")
    batch = x.dims[:-2]
    if not limit.shape.is_compatible_with(TensorShape(batch)):
        raise ValueError(f"rcond of shape {limit.shape} does not fit matrices of shape {x.shape}")
    return TensorSpec((*batch, x.dims[-1], x.dims[-2]), x.dtype)


def _eager_pinv(x: NDArray, limit: NDArray) -> NDArray:
    if x.ndim < 2:
        raise ValueError("no matrices")
    u, s, vh = decompositions.singular_values(x, full=False)
    if not s.shape[-1]:
        return np.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    kept = s > (limit * s.max(-1))[..., None]
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0)
    turned = np.swapaxes(vh.conj(), -1, -2) * inverse[..., None, :]
    return np.ascontiguousarray(turned @ np.swapaxes(u.conj(), -1, -2))


def _grad_pinv(call: OpCall, grad: Tensor) -> list[Any]:
    """Golub and Pereyra (1973): right where small changes leave the rank as it is."""
    a, y = call.inputs[0], call.outputs[0]
    turned, gradient = adjoint(y), adjoint(grad)

    found = -matmul(matmul(turned, grad), turned)
    outer = matmul(gradient, matmul(y, turned))
    inner = matmul(matmul(turned, y), gradient)
    found = found + outer - matmul(a, matmul(y, outer))
    return [found + inner - matmul(matmul(inner, y), a), None]


# An op, for its gradient is exact where that of `svd` is not: for equal singular values.
PSEUDO_INVERSE = register(
    Op(
        "pseudo_inverse", _infer_pinv, _eager_pinv, _grad_pinv,
        callback="LAPACK decomposes the matrix",
    )
)  # fmt: skip


def pinv(
    a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The pseudo-inverses [..., n, m] of matrices [..., m, n].

    Args:
        rcond: singular values up to this share of the largest one count as 0; numbers that
            broadcast to the batch dims, ``10 * max(m, n)`` times the dtype's eps without it.

    Raises:
        InvalidArgumentError: the shapes do not fit, or `a` has fewer than two axes.
        TypeError: matrices of integers, or of floats of two bytes.
    """
    x = convert_to_tensor(a)
    if x.dtype.kind not in "fc" or x.dtype.size == 2:
        raise errors.DtypeError(
            None, None, f"pinv: {x.spec} are no matrices of floats{at(user_origin())}"
        )
    wide = x.dtype.real_dtype
    if x.ndim < 2:
        raise errors.InvalidArgumentError(
            None, None, f"pinv: {x.spec} is no matrix or batch of matrices{at(user_origin())}"
        )
    if rcond is None:
        largest = dims_tensor(compound("max", *x.dims[-2:]), wide)
        rcond = largest * convert_to_tensor(10.0 * np.finfo(wide.np_dtype).eps, wide)
    limits = broadcast_dims(convert_to_tensor(rcond, wide), x.dims[:-2])
    return run(PSEUDO_INVERSE, x, limits)  # type: ignore[no-any-return]


def matrix_rank(
    a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """How many singular values of matrices [..., m, n] are greater than `tol`, as int32 [...].

    Args:
        tol: numbers that broadcast with the singular values; without it the largest one times
            ``max(m, n)`` and the dtype's eps.
    """
    x = convert_to_tensor(a)
    values = svd(x, compute_uv=False)
    if tol is None:
        share = dims_tensor(compound("max", *x.dims[-2:]), values.dtype)
        share = share * convert_to_tensor(np.finfo(values.dtype.np_dtype).eps, values.dtype)
        tol = share * reduce_max(values, -1, keepdims=True)
    return reduce_sum(cast(values > tol, dtypes.int32), -1)


def band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """The matrices with 0 outside a band around the diagonal.

    Args:
        num_lower, num_upper: how many diagonals below and above the main one are kept; below 0 for
            all of them.

    Raises:
        InvalidArgumentError: `input` has fewer than two axes.
    """
    x = convert_to_tensor(input)
    if x.ndim < 2:
        raise errors.InvalidArgumentError(
            None, None, f"band_part: {x.spec} is no matrix or batch of matrices{at(user_origin())}"
        )
    if x.dtype.is_bool:
        return cast(band_part(cast(x, dtypes.int8), num_lower, num_upper), x.dtype)
    lower = number("band_part: num_lower", num_lower, "iu")
    upper = number("band_part: num_upper", num_upper, "iu")
    if is_symbolic(lower) or is_symbolic(upper):
        return _band(x, lower, upper)
    x = tril(x, upper) if upper >= 0 else x
    return triu(x, -lower) if lower >= 0 else x


def _band(x: Tensor, lower: Any, upper: Any) -> Tensor:
    """`band_part` with numbers of diagonals that only a run knows."""
    rows, columns = (numbers(dims_tensor(d, dtypes.int64)) for d in x.dims[-2:])
    above = columns - rows[:, None]
    low, high = cast(lower, dtypes.int64), cast(upper, dtypes.int64)
    kept = ((low < 0) | (-above <= low)) & ((high < 0) | (above <= high))
    return where(kept, x, zeros_like(x))
