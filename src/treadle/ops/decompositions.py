"""Determinants, inverses, solutions of equations and decompositions of matrices, by NumPy.

All take batches of matrices. Their gradients are those of TensorFlow, where it has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, compound
from treadle.core.spec import TensorSpec, spec_text
from treadle.core.tensor import NDArray, Tensor
from treadle.ops import linalg
from treadle.ops.complex_numbers import conj
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.creation import eye
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.selection import where
from treadle.ops.shaping import reshape_to


def _square(x: TensorSpec, name: str) -> TensorSpec:
    _matrix(x, name)
    if x.dims[-1] != x.dims[-2] and all(isinstance(d, int) for d in x.dims[-2:]):
        raise ValueError(f"{name} needs square matrices, got {spec_text(x)}{at(user_origin())}")
    return x


def _matrix(x: TensorSpec, name: str) -> TensorSpec:
    if x.rank < 2 or not (x.dtype.is_floating or x.dtype.is_complex):
        raise ValueError(
            f"{name} needs matrices of floats or complex numbers, got {spec_text(x)}"
            f"{at(user_origin())}"
        )
    return x


def _numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function with its failure as an InvalidArgumentError, results in C order."""

    def compute(*arrays: NDArray, **attrs: Any) -> Any:
        try:
            found = fn(*arrays, **attrs)
        except np.linalg.LinAlgError as error:
            raise InvalidArgumentError(None, None, f"{fn.__name__}: {error}") from None
        if isinstance(found, tuple):
            return tuple(np.asarray(f, order="C") for f in found)
        return np.asarray(found, order="C")

    return compute


def _conjugate(x: Tensor) -> Tensor:
    return conj(x) if x.dtype.is_complex else x


def _adjoint(x: Tensor) -> Tensor:
    return linalg.matrix_transpose(_conjugate(x))


def _grad_inverse(call: OpCall, grad: Tensor) -> list[Any]:
    turned = _adjoint(call.outputs[0])
    return [-linalg.matmul(linalg.matmul(turned, grad), turned)]


INVERSE = register(Op("inverse", lambda x: _square(x, "inv"), _numpy(np.linalg.inv), _grad_inverse))


def inv(input: Any) -> Tensor:
    """The inverse of square matrices; InvalidArgumentError for a singular one."""
    return run(INVERSE, convert_to_tensor(input))  # type: ignore[no-any-return]


def _grad_det(call: OpCall, grad: Tensor) -> list[Any]:
    factor = _lift(grad * _conjugate(call.outputs[0]))
    return [factor * _adjoint(inv(call.inputs[0]))]


def _lift(x: Tensor) -> Tensor:
    """Numbers as matrices of one element."""
    return reshape_to(x, (*x.dims, 1, 1))


DETERMINANT = register(
    Op(
        "determinant",
        lambda x: TensorSpec(_square(x, "det").dims[:-2], x.dtype),
        _numpy(np.linalg.det),
        _grad_det,
    )
)


def det(input: Any) -> Tensor:
    """The determinants of square matrices."""
    return run(DETERMINANT, convert_to_tensor(input))  # type: ignore[no-any-return]


def _infer_slogdet(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    dims = _square(x, "slogdet").dims[:-2]
    return TensorSpec(dims, x.dtype), TensorSpec(dims, x.dtype.real_dtype)


SLOGDET = register(
    Op(
        "log_determinant",
        _infer_slogdet,
        _numpy(lambda x: tuple(np.linalg.slogdet(x))),
        lambda call, _, grad: [_lift(grad) * _adjoint(inv(call.inputs[0]))],
    )
)


def slogdet(input: Any) -> tuple[Tensor, Tensor]:
    """(sign, logarithm of the absolute value) of the determinants."""
    return run(SLOGDET, convert_to_tensor(input))  # type: ignore[no-any-return]


def _infer_solve(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    from treadle.core.shapes import broadcast

    _square(a, "solve")
    _matrix(b, "solve")
    batch = broadcast(a.dims[:-2], b.dims[:-2])
    return TensorSpec((*batch, *b.dims[-2:]), b.dtype)


def _grad_solve(call: OpCall, grad: Tensor) -> list[Any]:
    a, b = call.inputs
    of_b = solve(_adjoint(a), grad)
    of_a = -linalg.matmul(of_b, _adjoint(call.outputs[0]))
    return [linalg.unbroadcast_batch(of_a, a), linalg.unbroadcast_batch(of_b, b)]


SOLVE = register(Op("solve", _infer_solve, _numpy(np.linalg.solve), _grad_solve))


def solve(matrix: Any, rhs: Any) -> Tensor:
    """X with ``matrix @ X = rhs``; both are (batches of) matrices."""
    return run(SOLVE, convert_to_tensor(matrix), convert_to_tensor(rhs))  # type: ignore[no-any-return]


def _grad_cholesky(call: OpCall, grad: Tensor) -> list[Any]:
    """After Murray (2016), "Differentiation of the Cholesky decomposition"."""
    factor = call.outputs[0]
    inner = _lower(linalg.matmul(_adjoint(factor), grad))
    inverse = inv(factor)
    half = linalg.matmul(linalg.matmul(_adjoint(inverse), inner), inverse)
    return [(half + _adjoint(half)) * 0.5]


def _lower(x: Tensor) -> Tensor:
    """The lower triangle with half of the diagonal."""
    from treadle.ops.numpy_choosing import tril

    size = x.dims[-1]
    return tril(x) - _eye(size, x) * x * 0.5


def _eye(size: Dim, like: Tensor) -> Tensor:
    return eye(size, dtype=like.dtype)


CHOLESKY = register(
    Op(
        "cholesky",
        lambda x: _square(x, "cholesky"),
        _numpy(np.linalg.cholesky),
        _grad_cholesky,
    )
)


def cholesky(input: Any) -> Tensor:
    """Lower triangles L with ``L @ L.H`` the given positive definite matrices."""
    return run(CHOLESKY, convert_to_tensor(input))  # type: ignore[no-any-return]


def _infer_qr(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    *batch, m, n = _matrix(x, "qr").dims
    k = compound("min", m, n)
    return TensorSpec((*batch, m, k), x.dtype), TensorSpec((*batch, k, n), x.dtype)


def _grad_qr(call: OpCall, dq: Tensor, dr: Tensor) -> list[Any]:
    q, r = call.outputs
    if r.dims[-1] != r.dims[-2]:
        raise NotImplementedError(
            f"the gradient of qr needs at least as many rows as columns{at(user_origin())}"
        )
    m = linalg.matmul(r, _adjoint(dr)) - linalg.matmul(_adjoint(dq), q)
    low = _strictly_lower(m)
    both = low + _adjoint(low) + _eye(m.dims[-1], m) * m
    return [linalg.matmul(dq + linalg.matmul(q, both), _adjoint(inv(r)))]


def _strictly_lower(x: Tensor) -> Tensor:
    from treadle.ops.numpy_choosing import tril

    return tril(x, -1)


QR = register(Op("qr", _infer_qr, _numpy(lambda x: tuple(np.linalg.qr(x))), _grad_qr))


def qr(input: Any) -> tuple[Tensor, Tensor]:
    """(Q, R): orthonormal columns and an upper triangle, reduced."""
    return run(QR, convert_to_tensor(input))  # type: ignore[no-any-return]


def _infer_svd(x: TensorSpec, *, full: bool) -> tuple[TensorSpec, ...]:
    *batch, m, n = _matrix(x, "svd").dims
    k = compound("min", m, n)
    left, right = ((m, m), (n, n)) if full else ((m, k), (k, n))
    return (
        TensorSpec((*batch, *left), x.dtype),
        TensorSpec((*batch, k), x.dtype.real_dtype),
        TensorSpec((*batch, *right), x.dtype),
    )


def _svd(x: NDArray, *, full: bool) -> tuple[NDArray, ...]:
    return tuple(np.linalg.svd(x, full_matrices=full))


def _grad_svd(call: OpCall, du: Tensor, ds: Tensor, dv: Tensor) -> list[Any]:
    if call.attrs["full"] or call.inputs[0].dtype.is_complex:
        raise NotImplementedError(
            f"the gradient of svd needs real matrices and full_matrices=False{at(user_origin())}"
        )
    u, s, vh = call.outputs
    k = s.dims[-1]
    squares = s * s
    gaps = squares[..., None, :] - squares[..., :, None]
    same = gaps == 0
    f = where(same, 0.0, 1.0 / where(same, 1.0, gaps))
    ut, v = _adjoint(u), _adjoint(vh)
    a, b = f * linalg.matmul(ut, du), f * linalg.matmul(vh, _adjoint(dv))
    s_row, s_column = s[..., None, :], s[..., :, None]
    inner = (a + _adjoint(a)) * s_row + s_column * (b + _adjoint(b))
    inner = inner + _eye(k, s) * ds[..., None, :]
    found = linalg.matmul(linalg.matmul(u, inner), vh)
    rest_u = (du - linalg.matmul(u, linalg.matmul(ut, du))) / s_row
    rest_v = (_adjoint(dv) - linalg.matmul(v, linalg.matmul(vh, _adjoint(dv)))) / s_row
    found = found + linalg.matmul(rest_u, vh) + linalg.matmul(u, _adjoint(rest_v))
    return [found]


SVD = register(Op("svd", _infer_svd, _numpy(_svd), _grad_svd))


def svd(input: Any, full: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V.H) with ``U * S @ V.H`` the given matrices."""
    return run(SVD, convert_to_tensor(input), full=full)  # type: ignore[no-any-return]


def _infer_eigh(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    _square(x, "eigh")
    return TensorSpec(x.dims[:-1], x.dtype.real_dtype), x


def _grad_eigh(call: OpCall, dw: Tensor, dv: Tensor) -> list[Any]:
    w, v = call.outputs
    gaps = w[..., None, :] - w[..., :, None]
    same = gaps == 0
    f = where(same, 0.0, 1.0 / where(same, 1.0, gaps))
    if v.dtype.is_complex:
        raise NotImplementedError(f"the gradient of eigh needs real matrices{at(user_origin())}")
    turned = _adjoint(v)
    inner = _eye(w.dims[-1], w) * dw[..., None, :] + f * linalg.matmul(turned, dv)
    found = linalg.matmul(linalg.matmul(v, inner), turned)
    # NumPy reads the lower triangle only.
    from treadle.ops.numpy_choosing import tril

    both = found + _adjoint(found)
    return [tril(both) - _eye(w.dims[-1], w) * found]


EIGH = register(Op("eigh", _infer_eigh, _numpy(lambda x: tuple(np.linalg.eigh(x))), _grad_eigh))


def eigh(input: Any) -> tuple[Tensor, Tensor]:
    """(eigenvalues in rising order, eigenvectors in columns) of symmetric matrices."""
    return run(EIGH, convert_to_tensor(input))  # type: ignore[no-any-return]
