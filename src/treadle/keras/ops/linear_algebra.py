"""`keras.ops`: decompositions, systems of equations and norms."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.keras.config import floatx
from treadle.keras.ops.conversion import axes_of, floats, tensor
from treadle.keras.ops.operations import operation

_operation = functools.partial(operation, "linalg")


def _matrices(x: Any, name: str, square: bool = True) -> td.Tensor:
    """Matrices of floats.

    Raises:
        ValueError: it has fewer axes, or the matrices are not square.
    """
    x = tensor(x)
    if len(x.shape) < 2:
        raise ValueError(f"{name}: Expected input to have rank >= 2. Received: {x.shape}")
    if square and None not in x.shape[-2:] and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name}: Expected a square matrix. Received: {x.shape}")
    return x if x.dtype.is_floating or x.dtype.is_complex else td.cast(x, floatx())


@_operation("x")
def cholesky(x: Any, upper: bool = False) -> Any:
    """The lower triangular factor of positive definite matrices, or the upper one.

    Raises:
        td.errors.InvalidArgumentError: a matrix is not positive definite.
    """
    found = td.linalg.cholesky(_matrices(x, "cholesky"))
    found = td.debugging.check_numerics(found, "Cholesky")
    return td.linalg.adjoint(found) if upper else found


@_operation("x")
def cholesky_inverse(x: Any, upper: bool = False) -> Any:
    """The inverses of matrices whose Cholesky factors are x."""
    x = _matrices(x, "cholesky_inverse")
    unit = td.eye(td.shape(x)[-1], dtype=x.dtype)
    inverse = td.linalg.triangular_solve(x, td.broadcast_to(unit, td.shape(x)), lower=not upper)
    return td.matmul(inverse, inverse, transpose_a=not upper, transpose_b=upper)


@_operation("x")
def det(x: Any) -> Any:
    """The determinants of matrices."""
    return td.linalg.det(_matrices(x, "det"))


@_operation("x")
def eig(x: Any) -> Any:
    """Eigenvalues and eigenvectors of matrices, complex ones."""
    return tuple(td.linalg.eig(_matrices(x, "eig")))


@_operation("x")
def eigh(x: Any) -> Any:
    """Eigenvalues, in ascending order, and eigenvectors of symmetric matrices."""
    return tuple(td.linalg.eigh(_matrices(x, "eigh")))


@_operation("x")
def inv(x: Any) -> Any:
    """The inverses of matrices."""
    return td.linalg.inv(_matrices(x, "inv"))


@_operation("x")
def lu_factor(x: Any) -> Any:
    """The triangular factors of matrices, in one, and the order of the rows."""
    factors, order = td.linalg.lu(_matrices(x, "lu_factor", square=False))
    return factors, td.cast(td.argsort(order), td.int32)


@_operation("x")
def qr(x: Any, mode: str = "reduced") -> Any:
    """Orthogonal and upper triangular factors of matrices.

    Raises:
        ValueError: the mode is neither "reduced" nor "complete".
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(
            "`mode` argument value not supported. Expected one of {'reduced', 'complete'}. "
            f"Received: mode={mode}"
        )
    return tuple(td.linalg.qr(_matrices(x, "qr", square=False), full_matrices=mode == "complete"))


def _solved(function: Callable[..., Any], a: Any, b: Any) -> Any:
    """The solutions of systems, b being the right sides: vectors or matrices."""
    b = tensor(b, a.dtype)
    if len(b.shape) == len(a.shape) - 1:
        return td.squeeze(function(a, b[..., None]), -1)
    return function(a, b)


@_operation("a", "b")
def solve(a: Any, b: Any) -> Any:
    """The x with ``a @ x = b``."""
    return _solved(td.linalg.solve, _matrices(a, "solve"), b)


@_operation("a", "b")
def solve_triangular(a: Any, b: Any, lower: bool = False) -> Any:
    """The x with ``a @ x = b``, of triangular a."""
    solver = functools.partial(td.linalg.triangular_solve, lower=lower)
    return _solved(solver, _matrices(a, "solve_triangular"), b)


@_operation("x", name="SVD")
def svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Singular values of matrices: ``u, s, v`` with ``x = u @ diag(s) @ v``; or s only."""
    x = _matrices(x, "svd", square=False)
    if not compute_uv:
        return td.linalg.svd(x, full_matrices=full_matrices, compute_uv=False)
    s, u, v = td.linalg.svd(x, full_matrices=full_matrices)
    return u, s, td.linalg.adjoint(v)


@_operation("a", "b")
def lstsq(a: Any, b: Any, rcond: float | None = None) -> Any:
    """The x for which ``a @ x - b`` is shortest.

    Args:
        rcond: smaller singular values than this part of the greatest one count as 0.

    Raises:
        ValueError: a and b have different numbers of rows.
        TypeError: they are no matrices.
    """
    a, b = tensor(a), tensor(b)
    if len(a.shape) != 2 or len(b.shape) not in (1, 2):
        raise TypeError(f"lstsq: matrices are needed, got shapes {a.shape} and {b.shape}")
    if a.shape[0] != b.shape[0]:
        raise ValueError("Leading dimensions of input arrays must match")
    sides = b[:, None] if len(b.shape) == 1 else b
    u, s, v = svd(a, full_matrices=False)
    epsilon = float(np.finfo(a.dtype.np_dtype).eps)
    if rcond is None:
        rcond = epsilon * max(a.shape[0], a.shape[1])
    kept = s >= (epsilon if rcond < 0 else rcond) * s[0]
    inverse = td.where(kept, 1.0 / td.where(kept, s, td.ones_like(s)), td.zeros_like(s))
    parts = inverse[:, None] * td.matmul(td.linalg.adjoint(u), sides)
    found = td.matmul(td.linalg.adjoint(v), parts)
    return td.squeeze(found, 1) if len(b.shape) == 1 else found


@_operation("x")
def matrix_rank(x: Any, tol: Any = None) -> Any:
    """How many singular values of matrices are greater than `tol`."""
    return td.linalg.matrix_rank(_matrices(x, "matrix_rank", square=False), tol=tol)


@_operation("x")
def pinv(x: Any, rcond: Any = None) -> Any:
    """The pseudo-inverses of matrices."""
    return td.linalg.pinv(_matrices(x, "pinv", square=False), rcond=rcond)


@operation("math", "x")
def logdet(x: Any) -> Any:
    """The logarithm of the determinants of positive definite matrices."""
    return td.linalg.logdet(_matrices(x, "logdet"))


def _vector_norm(x: td.Tensor, order: Any, axis: int, keepdims: bool) -> td.Tensor:
    if order is None or order == 2:
        squares = td.math.real(x * td.math.conj(x)) if x.dtype.is_complex else td.square(x)
        return td.sqrt(td.reduce_sum(squares, axis, keepdims))
    sizes = td.abs(x)
    if isinstance(order, str):
        raise ValueError(f"Invalid `ord` argument for vector norm. Received: ord={order}")
    if order == float("inf"):
        return td.reduce_max(sizes, axis, keepdims)
    if order == float("-inf"):
        return td.reduce_min(sizes, axis, keepdims)
    if order == 0:
        return td.reduce_sum(td.cast(td.not_equal(x, 0), x.dtype), axis, keepdims)
    power = td.constant(order, sizes.dtype)
    return td.pow(td.reduce_sum(td.pow(sizes, power), axis, keepdims), 1.0 / power)


def _matrix_norm(x: td.Tensor, order: Any, axes: list[int], keepdims: bool) -> td.Tensor:
    if order is None or order == "fro":
        squares = td.math.real(x * td.math.conj(x)) if x.dtype.is_complex else td.square(x)
        return td.sqrt(td.reduce_sum(squares, axes, keepdims))
    rest = [a for a in range(len(x.shape)) if a not in axes]
    turned = td.transpose(x, rest + axes)
    if order in (1, -1, float("inf"), float("-inf")):
        sums = td.reduce_sum(td.abs(turned), -2 if abs(order) == 1 else -1)
        found = td.reduce_max(sums, -1) if order > 0 else td.reduce_min(sums, -1)
    elif order in ("nuc", 2, -2):
        values = td.linalg.svd(turned, compute_uv=False)
        reduced = {"nuc": td.reduce_sum, 2: td.reduce_max, -2: td.reduce_min}[order]
        found = reduced(values, -1)
    else:
        raise ValueError(f"Invalid `ord` argument for matrix norm. Received: ord={order}")
    for axis in sorted(axes) if keepdims else ():
        found = td.expand_dims(found, axis)
    return found


@_operation("x")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors, along one axis, or of matrices, along two; of all elements otherwise.

    Args:
        ord: which one: a number, ``inf``, ``-inf``; of matrices also "fro" and "nuc".

    Raises:
        ValueError: there is no such norm, or no such axis.
    """
    x = floats(x)
    rank = len(x.shape)
    if axis is None and ord is None:
        flat = _vector_norm(td.reshape(x, [-1]), None, 0, False)
        return td.reshape(flat, [1] * rank) if keepdims else flat
    try:
        axes = [*range(rank)] if axis is None else axes_of(axis, rank)
    except ValueError:
        raise ValueError(
            "All `axis` values must be in the range [-ndim, ndim). Received inputs with "
            f"ndim={rank}, while axis={axis}"
        ) from None
    if len(axes) == 1:
        return _vector_norm(x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    raise ValueError(f"Invalid axis values. Received: axis={axis}")


@_operation("fun", "primals", "tangents", name="JVP")
def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """What a function gives at `primals`, and how it changes when they change by `tangents`.

    Args:
        has_aux: the function gives a pair, whose second part is passed on.
    """
    points = [tensor(p) for p in td.nest.flatten(primals)]
    moves = [tensor(t, p.dtype) for t, p in zip(td.nest.flatten(tangents), points, strict=True)]
    with td.autodiff.ForwardAccumulator(points, moves) as accumulator:
        found = fun(*td.nest.pack_sequence_as(primals, points))
        results, more = found if has_aux else (found, None)
        changes = td.nest.map_structure(accumulator.jvp, results)
    return (results, changes, more) if has_aux else (results, changes)
