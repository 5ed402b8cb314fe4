"""NumPy's linear algebra (``np.linalg``) on tensors."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.numpy_staging import choosing, products
from treadle.numpy_staging.dtypes import as_array, floating, promoted, to
from treadle.numpy_staging.reductions import flat
from treadle.numpy_staging.shapes import moveaxis
from treadle.numpy_staging.ufuncs import truth
from treadle.ops.axes import normalize_axes
from treadle.ops.elementwise import unary
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.elementwise.selection import where
from treadle.ops.linalg import decompositions
from treadle.ops.linalg.matrices import array_product as _matmul
from treadle.ops.linalg.matrices import matrix_transpose
from treadle.ops.reductions import reduction
from treadle.ops.shaping.creation import eye
from treadle.ops.shaping.reshaping import reshape_to


def _matrices(a: Any) -> Tensor:
    return floating(as_array(a))


def matmul(x1: Any, x2: Any) -> Tensor:
    return _matmul(*promoted([as_array(x1), as_array(x2)]))


def inv(a: Any) -> Tensor:
    return decompositions.inv(_matrices(a))


def det(a: Any) -> Tensor:
    return decompositions.det(_matrices(a))


class SlogdetResult(NamedTuple):
    """As NumPy's result."""

    sign: Tensor
    logabsdet: Tensor


def slogdet(a: Any) -> SlogdetResult:
    return SlogdetResult(*decompositions.slogdet(_matrices(a)))


def solve(a: Any, b: Any) -> Tensor:
    matrix, right = promoted([_matrices(a), _matrices(b)])
    if right.ndim != 1:
        return decompositions.solve(matrix, right)
    found = decompositions.solve(matrix, reshape_to(right, (*right.dims, 1)))
    return found[..., 0]


def cholesky(a: Any, *, upper: bool = False) -> Tensor:
    x = _matrices(a)
    if not upper:
        return decompositions.cholesky(x)
    return matrix_transpose(decompositions.cholesky(matrix_transpose(x)))


class QRResult(NamedTuple):
    """As NumPy's result."""

    Q: Tensor
    R: Tensor


def qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise TypeError(f"np.linalg.qr: mode={mode!r} is not supported{at(user_origin())}")
    q, r = decompositions.qr(_matrices(a), mode == "complete")
    return r if mode == "r" else QRResult(q, r)


class SVDResult(NamedTuple):
    """As NumPy's result."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    x = _matrices(a)
    if not compute_uv:
        return decompositions.svd(x)[1]
    return SVDResult(*decompositions.svd(x, full_matrices))


def svdvals(x: Any, /) -> Tensor:
    return decompositions.svd(_matrices(x))[1]


class EighResult(NamedTuple):
    """As NumPy's result."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eigh(a: Any, UPLO: str = "L") -> EighResult:
    x = _matrices(a)
    return EighResult(*decompositions.eigh(matrix_transpose(x) if UPLO.upper() == "U" else x))


def eigvalsh(a: Any, UPLO: str = "L") -> Tensor:
    return eigh(a, UPLO)[0]


def matrix_power(a: Any, n: int) -> Tensor:
    x = as_array(a)
    if n == 0:
        return eye(x.dims[-1], dtype=x.dtype) + x * to(0, x.dtype)
    if n < 0:
        x, n = inv(x), -n
    if n == 1:
        return x
    half = matrix_power(x, n // 2)
    squared = _matmul(half, half)
    return _matmul(squared, x) if n % 2 else squared


def multi_dot(arrays: Any) -> Tensor:
    """From the left to the right."""
    return functools.reduce(_matmul, promoted([as_array(a) for a in arrays]))


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    x = _matrices(a)
    u, s, vh = decompositions.svd(x)
    limit = rcond if rcond is not None else rtol
    limit = 1e-15 if limit is None else limit
    large = s > to(limit, s.dtype) * reduction.reduce_max(s, -1, keepdims=True)
    inverse = where(large, 1.0 / where(large, s, to(1, s.dtype)), to(0, s.dtype))
    return _matmul(matrix_transpose(vh) * inverse[..., None, :], matrix_transpose(u))


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    x = _matrices(A)
    s = decompositions.svd(x)[1]
    limit = tol
    if limit is None:
        known = [d for d in x.dims[-2:] if isinstance(d, int)]
        share = max(known) * np.finfo(s.dtype.np_dtype).eps if rtol is None else rtol
        limit = to(float(share), s.dtype) * reduction.reduce_max(s, -1, keepdims=True)
    return reduction.reduce_sum(cast(s > limit, dtypes.int64), -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    return choosing.trace(x, offset, -2, -1, dtype)


def outer(x1: Any, x2: Any, /) -> Tensor:
    return products.outer(x1, x2)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    tensor = unary.abs(floating(as_array(x)))
    axes = normalize_axes(axis, tensor.ndim)
    if ord is None or (ord == "fro" and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        return unary.sqrt(reduction.reduce_sum(tensor * tensor, axes, keepdims))
    if len(axes) == 2:
        return _matrix_norm(x, tensor, ord, axes, keepdims)
    if len(axes) != 1:
        raise ValueError(
            f"np.linalg.norm: ord={ord!r} needs one or two axes, not {len(axes)}{at(user_origin())}"
        )
    if ord in (np.inf, -np.inf):
        function = reduction.reduce_max if ord > 0 else reduction.reduce_min
        return function(tensor, axes, keepdims)
    if ord == 0:
        return reduction.reduce_sum(cast(truth(tensor), tensor.dtype), axes, keepdims)
    powers = reduction.reduce_sum(tensor ** to(float(ord), tensor.dtype), axes, keepdims)
    return powers ** to(1.0 / ord, tensor.dtype)


def _matrix_norm(x: Any, sizes: Tensor, ord: Any, axes: Any, keepdims: bool) -> Tensor:
    """`sizes`: the absolute values of `x`."""
    row, column = axes
    if ord in (1, -1, np.inf, -np.inf):
        inner, other = (row, column) if abs(ord) == 1 else (column, row)
        sums = reduction.reduce_sum(sizes, inner, keepdims=True)
        extreme = reduction.reduce_max if ord > 0 else reduction.reduce_min
        found = extreme(sums, other, keepdims=True)
    elif ord in (2, -2, "nuc"):
        values = svdvals(moveaxis(x, (row, column), (-2, -1)))
        whole = (
            reduction.reduce_sum
            if ord == "nuc"
            else (reduction.reduce_max if ord > 0 else reduction.reduce_min)
        )
        found = whole(values, -1)
        kept = tuple(1 if i in axes else d for i, d in enumerate(sizes.dims))
        return reshape_to(found, kept) if keepdims else found
    else:
        raise ValueError(f"np.linalg.norm: ord={ord!r} is none of matrices{at(user_origin())}")
    rest = tuple(d for i, d in enumerate(sizes.dims) if i not in axes)
    return found if keepdims else reshape_to(found, rest)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    a = _matrices(x)
    if axis is None:
        found = norm(flat(a), ord, 0)
        return reshape_to(found, (1,) * a.ndim) if keepdims else found
    axes = normalize_axes(axis, a.ndim)
    if len(axes) == 1 or ord == 2:
        return norm(a, ord if len(axes) == 1 else None, axis, keepdims)
    first = moveaxis(a, axes, range(len(axes)))
    found = norm(
        reshape_to(first, (product(a.dims[i] for i in axes), *first.dims[len(axes) :])), ord, 0
    )
    kept = tuple(1 if i in axes else d for i, d in enumerate(a.dims))
    return reshape_to(found, kept) if keepdims else found


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    return norm(x, ord, (-2, -1), keepdims)


def cond(x: Any, p: Any = None) -> Tensor:
    """The condition numbers of matrices."""
    a = _matrices(x)
    if p in (None, 2, -2):
        s = decompositions.svd(a)[1]
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return norm(a, p, (-2, -1)) * norm(inv(a), p, (-2, -1))


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    return choosing.diagonal(x, offset, -2, -1)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    return products.cross(x1, x2, axis=axis)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    x, y = promoted([as_array(x1), as_array(x2)])
    return reduction.reduce_sum((conj(x) if x.dtype.is_complex else x) * y, axis)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    return products.tensordot(x1, x2, axes)


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Tensor, ...]:
    """(solution, residuals, rank, singular values), of one matrix of full column rank."""
    x, y = promoted([_matrices(a), _matrices(b)])
    limit = np.finfo(x.dtype.np_dtype).eps * max(d for d in x.dims if isinstance(d, int))
    found = _matmul(pinv(x, limit if rcond is None else rcond), y)
    rest = unary.abs(_matmul(x, found) - y) ** to(2, x.dtype)
    values = decompositions.svd(x)[1]
    rank = cast(matrix_rank(x), dtypes.int32)
    total = reduction.reduce_sum(rest, 0)
    return found, reshape_to(total, (1,)) if y.ndim == 1 else total, rank, values
