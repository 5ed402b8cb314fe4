"""Exponentials, square roots and logarithms of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.linalg.decompositions import square_matrix
from treadle.ops.linalg.matrix_functions import adjoint
from treadle.ops.op_makers import inferred
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.creation import zeros_like
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.slicing import slice_known


def _each(fn: Callable[[NDArray], NDArray]) -> Callable[[NDArray], NDArray]:
    """`fn` of every matrix of a batch, with 64-bit floats; NaN where it is not finite or fails."""

    def all_of(x: NDArray) -> NDArray:
        if x.ndim < 2 or x.shape[-1] != x.shape[-2] or x.dtype.kind not in "fc":
            raise ValueError("not square matrices of floats")  # the shape rule says it
        found = np.full(x.shape, np.nan, x.dtype)
        for place in np.ndindex(x.shape[:-2]):
            matrix = x[place].astype(np.complex128 if x.dtype.kind == "c" else np.float64)
            if matrix.size and np.isfinite(matrix).all():
                found[place] = fn(matrix)
        return found

    return all_of


def _slope(call: OpCall, grad: Tensor) -> list[Any]:
    """The function of ``[[A, E], [0, A]]`` has the slope of the function at A in direction E above
    its diagonal; the gradient is the slope at A's adjoint in the direction of `grad`."""
    a = adjoint(call.inputs[0])
    upper = concat([a, grad], -1)
    found = run(call.op, concat([upper, concat([zeros_like(a), a], -1)], -2))
    n = a.dims[-1]
    return [slice_known(found, (*(0,) * (a.ndim - 1), n), a.dims)]


def _op(name: str, kinds: str, fn: Callable[[NDArray], NDArray]) -> Op:
    def infer(x: TensorSpec) -> TensorSpec:
        if x.dtype.kind not in kinds:
            raise TypeError(f"dtype {x.dtype.name} is not supported")
        return square_matrix(x, name)

    why = "its loops depend on the elements"
    return register(Op(name, infer, inferred(infer, _each(fn)), _slope, callback=why))


# -- exponential ---------------------------------------------------------------------------------

_PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
    10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_REACH = 5.37  # the norm up to which the quotient of polynomials is exact to rounding


def exponential(library: Any, a: Any) -> Any:
    """Higham (2005), "The Scaling and Squaring Method for the Matrix Exponential Revisited".

    Args:
        library: NumPy, or what has its functions for arrays of another device.
    """
    size = float(abs(a).sum(0).max())
    halvings = max(0, int(np.ceil(np.log2(size / _REACH)))) if size else 0
    a = a * 0.5**halvings
    square = a @ a
    power, odd, even = library.eye(len(a)), library.zeros_like(a), library.zeros_like(a)
    for k in range(0, 14, 2):
        even = even + _PADE[k] * power
        odd = odd + _PADE[k + 1] * power
        power = power @ square
    odd = a @ odd
    found = library.linalg.solve(even - odd, even + odd)
    for _ in range(halvings):
        found = found @ found
    return found


# -- square root and logarithm -------------------------------------------------------------------


def _schur(a: NDArray) -> tuple[NDArray, NDArray]:
    """(q, t) with ``a = q @ t @ q.conj().T``, q unitary and t upper triangular."""
    n, half = len(a), len(a) // 2
    if not np.tril(a, -1).any():
        return np.eye(n, dtype=complex), a
    if n == 2 * half and not a[half:, :half].any():  # as gradients have it
        (q1, t1), (q2, t2) = _schur(a[:half, :half]), _schur(a[half:, half:])
        none = np.zeros((half, half))
        upper = q1.conj().T @ a[:half, half:] @ q2
        return np.block([[q1, none], [none, q2]]), np.block([[t1, upper], [none, t2]])
    q: NDArray = np.linalg.qr(np.linalg.eig(a)[1])[0]
    t = q.conj().T @ a @ q
    if np.abs(np.tril(t, -1)).max() > 100 * np.finfo(float).eps * np.abs(a).max():
        q, t = _schur_one_by_one(a)  # too few eigenvectors
    return q, np.triu(t)


def _schur_one_by_one(a: NDArray) -> tuple[NDArray, NDArray]:
    """One eigenvector after the other, each of what the ones before leave."""
    n = len(a)
    q, t = np.eye(n, dtype=complex), a.copy()
    for k in range(n - 1):
        rest = t[k:, k:]
        value = np.linalg.eigvals(rest)[0]
        vector = np.linalg.svd(rest - value * np.eye(n - k))[2][-1].conj()
        turn = np.linalg.qr(np.column_stack([vector, np.eye(n - k)]))[0]
        t[:, k:] = t[:, k:] @ turn
        t[k:] = turn.conj().T @ t[k:]
        q[:, k:] = q[:, k:] @ turn
    return q, t


def _root_of_triangle(t: NDArray) -> NDArray:
    """Column by column, each from the diagonal upwards."""
    root = np.diag(np.sqrt(np.diag(t)))
    for j in range(1, len(t)):
        for i in range(j - 1, -1, -1):
            known = t[i, j] - root[i, i + 1 : j] @ root[i + 1 : j, j]
            both = root[i, i] + root[j, j]
            root[i, j] = known / both if known else 0
    return root


def _square_root(a: NDArray) -> NDArray:
    q, t = _schur(a.astype(complex))
    found: NDArray = q @ _root_of_triangle(t) @ q.conj().T
    if a.dtype.kind == "c":
        return found
    is_real = np.abs(found.imag).max() <= 1e-6 * np.abs(found).max()
    return found.real if is_real else np.full_like(a, np.nan)


_POINTS = 8  # of the quadrature
_CLOSE = 0.25  # distance from 1 at which the quotients of 8 points are exact to rounding
_MOST_ROOTS = 100


def _logarithm(a: NDArray) -> NDArray:
    """Roots are taken until the triangle is near 1, where quotients of polynomials are exact."""
    q, t = _schur(a)
    unit = np.eye(len(a))
    roots = 0
    while np.abs(t - unit).sum(0).max() > _CLOSE and roots < _MOST_ROOTS:
        t, roots = _root_of_triangle(t), roots + 1
    if not np.isfinite(t).all() or roots == _MOST_ROOTS:
        return np.full_like(a, np.nan)
    nodes, weights = np.polynomial.legendre.leggauss(_POINTS)
    x, found = t - unit, np.zeros_like(a)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        found += weight * np.linalg.solve(unit + node * x, x)
    return 2.0**roots * (q @ found @ q.conj().T)


EXPONENTIAL = _op("matrix_exponential", "fc", partial(exponential, np))
SQUARE_ROOT = _op("matrix_square_root", "fc", _square_root)
LOGARITHM = _op("matrix_logarithm", "c", _logarithm)


def _of_floats(op: Op, input: Any) -> Tensor:
    """`op` of matrices; floats of 16 bits are computed in float32."""
    x = convert_to_tensor(input)
    if x.dtype is not dtypes.float16:
        return run(op, x)  # type: ignore[no-any-return]
    return cast(run(op, cast(x, dtypes.float32)), x.dtype)


def expm(input: Any, name: str | None = None) -> Tensor:
    """The exponentials of square matrices [..., n, n]: 1 + A + A² / 2! + A³ / 3! + ...

    Raises:
        InvalidArgumentError: the matrices are not square, or not of floats or complex numbers.
    """
    return _of_floats(EXPONENTIAL, input)


def sqrtm(input: Any, name: str | None = None) -> Tensor:
    """The square roots of square matrices [..., n, n]: X with ``X @ X`` the matrix, with
    eigenvalues of positive real parts.

    NaN for a real matrix whose root is not real, such as one with one negative eigenvalue.

    Raises:
        InvalidArgumentError: the matrices are not square, or not of floats or complex numbers.
    """
    return _of_floats(SQUARE_ROOT, input)


def logm(input: Any, name: str | None = None) -> Tensor:
    """The logarithms of square complex matrices [..., n, n]: X with ``expm(X)`` the matrix, with
    eigenvalues of imaginary parts in (-pi, pi]; NaN for singular ones.

    Raises:
        TypeError: the matrices are not complex.
        InvalidArgumentError: they are not square.
    """
    return run(LOGARITHM, convert_to_tensor(input))  # type: ignore[no-any-return]
