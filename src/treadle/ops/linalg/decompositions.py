"""Determinants, inverses, solutions of equations and decompositions of matrices.

All take batches of matrices. Their gradients are those of TensorFlow, where it has them. Eagerly
most are NumPy's; compiled programs have routines for matrices of up to SMALL rows and columns
(`runtime/routines/elimination.py`, `symmetric.py`, `rotations.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, broadcast, compound, product
from treadle.core.spec import TensorSpec, array_spec, spec_text
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import complex as complex_number
from treadle.ops.elementwise.complex_numbers import conj, imag, real
from treadle.ops.elementwise.selection import where
from treadle.ops.linalg import matrices
from treadle.ops.linalg.triangles import tril, triu
from treadle.ops.lowering import RowCall, Rows
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.creation import eye
from treadle.ops.shaping.reshaping import reshape_to


def square_matrix(x: TensorSpec, name: str) -> TensorSpec:
    """`x`, checked to be square matrices of floats or complex numbers; ValueError otherwise."""
    _matrix(x, name)
    if x.dims[-1] != x.dims[-2] and all(isinstance(d, int) for d in x.dims[-2:]):
        raise ValueError(f"{name} needs square matrices, got {spec_text(x)}{at(user_origin())}")
    return x


def _matrix(x: TensorSpec, name: str) -> TensorSpec:
    text = f"{name} needs matrices of floats or complex numbers, got {spec_text(x)}"
    if not (x.dtype.is_floating or x.dtype.is_complex):
        raise TypeError(text)
    if x.rank < 2:
        raise ValueError(f"{text}{at(user_origin())}")
    if x.dtype.size == 2:
        raise TypeError(f"{name} does not take {x.dtype.name}: cast the matrices to float32")
    return x


def decomposition(
    name: str, infer: Callable[..., Any], fn: Callable[..., Any], *rest: Any, **known: Any
) -> Op:
    """Register an op of matrices. `fn` is NumPy's function, for matrices that `infer` takes: it
    would take integers, too, and compute in float64. Its failure is an InvalidArgumentError, and
    its results are in C order.

    Args:
        rest, known: further fields of the record.
    """

    def compute(*arrays: NDArray, **attrs: Any) -> Any:
        infer(*map(array_spec, arrays), **attrs)
        try:
            found = fn(*arrays, **attrs)
        except np.linalg.LinAlgError as error:
            raise InvalidArgumentError(None, None, f"{fn.__name__}: {error}") from None
        if isinstance(found, tuple):
            return tuple(np.asarray(f, order="C") for f in found)
        return np.asarray(found, order="C")

    return register(Op(name, infer, compute, *rest, **known))


# -- native routines -----------------------------------------------------------------------------

SMALL = 64  # rows and columns up to which LAPACK's blocks are not worth the call into Python
SMALL_SVD = 16  # the same where LAPACK has the faster method
PAD = 16  # rows in the workspace are whole blocks of so many elements
Specs = Sequence[TensorSpec]


def _padded(count: Dim) -> Dim:
    return (count + (PAD - 1)) // PAD * PAD


def _is_small(dims: Sequence[Dim], most: int = SMALL) -> bool:
    """Whether a routine serves matrices of such sides; those of unknown size it does."""
    return all(not isinstance(d, int) or d <= most for d in dims)


def _routine(
    name: str, elements: Callable[..., Dim], dims: Callable[..., dict[str, Dim]],
    fails: bool = True, most: int = SMALL, eagerly: bool = False,
) -> Rows:  # fmt: skip
    """The routine of an op on one batch of matrices.

    Args:
        elements: of the workspace, given `dims`.
        dims: the routine's numbers, given the sides of the matrices.
        fails: it says where it refuses a matrix.
        most: rows and columns of the matrices that it serves.
        eagerly: eager execution uses it, too, as it gives vectors of other signs than LAPACK.
    """

    def plan(inputs: Specs, outputs: Specs, attrs: Mapping[str, Any]) -> RowCall | None:
        x = inputs[0]
        if not _is_small(x.dims[-2:], most) or x.dtype.size < 4:
            return None
        numbers = dims(*x.dims[-2:])
        m, n = x.dims[-2:]
        names: dict[str, Any] = {"T": x.dtype, "DIGITS": _digits(x)}
        same = ((m, n),) if set(numbers) == {"n"} else ()
        space = elements(**numbers) * x.dtype.size
        rows = product(x.dims[:-2])
        return RowCall(rows, rows * m * n * n, numbers, names, space, same)

    return Rows(name, plan, fails, eagerly)


def _digits(x: TensorSpec) -> int:
    """Bits of the fraction of a float."""
    return 52 if x.dtype.size == 8 else 23


def _side(m: Dim, n: Dim) -> dict[str, Dim]:
    return {"n": n}


def _sides(m: Dim, n: Dim) -> dict[str, Dim]:
    return {"m": m, "n": n, "k": compound("min", m, n)}


def _equations(wide: Callable[[Dim, Dim], Dim], **constants: str) -> Callable[..., RowCall | None]:
    """The plan of a routine that solves equations.

    Args:
        wide: elements of a row of the workspace, given the columns of both sides.
        constants: names in the routine -> the attribute that they stand for.
    """

    def plan(inputs: Specs, outputs: Specs, attrs: Mapping[str, Any]) -> RowCall | None:
        a, b = inputs
        n, m = b.dims[-2:]
        steps = [_batch_step(x, outputs[0]) for x in inputs]
        if not _is_small([*a.dims[-2:], n]) or a.dtype.size < 4 or None in steps:
            return None
        names: dict[str, Any] = {"T": a.dtype, **{k: int(attrs[v]) for k, v in constants.items()}}
        numbers: dict[str, Any] = {"n": n, "m": m, "step_a": steps[0], "step_b": steps[1]}
        same = ((a.dims[-1], n), (a.dims[-2], n), *_same_batches(inputs, outputs[0]))
        rows, space = product(outputs[0].dims[:-2]), n * wide(n, m) * a.dtype.size
        return RowCall(rows, rows * n * n * (n + m), numbers, names, space, same)

    return plan


def _batch_step(x: TensorSpec, out: TensorSpec) -> Dim | None:
    """Elements between the matrices of a batch, 0 for a single one; None for mixed broadcasts."""
    if x.dims[:-2] == out.dims[:-2] or (
        x.rank == out.rank and not any(d == 1 for d in (*x.dims[:-2], *out.dims[:-2]))
    ):
        return x.dims[-2] * x.dims[-1]
    return 0 if all(d == 1 for d in x.dims[:-2]) else None


def _same_batches(inputs: Specs, out: TensorSpec) -> list[tuple[Dim, Dim]]:
    """The batch dims that the steps take to be equal."""
    full = [x for x in inputs if x.rank == out.rank and _batch_step(x, out) != 0]
    return [pair for x in full for pair in zip(x.dims[:-2], out.dims[:-2], strict=True)]


# -- ops -----------------------------------------------------------------------------------------


def _conjugate(x: Tensor) -> Tensor:
    return conj(x) if x.dtype.is_complex else x


def _adjoint(x: Tensor) -> Tensor:
    return matrices.matrix_transpose(_conjugate(x))


def _grad_inverse(call: OpCall, grad: Tensor) -> list[Any]:
    turned = _adjoint(call.outputs[0])
    return [-matrices.matmul(matrices.matmul(turned, grad), turned)]


INVERSE = decomposition(
    "inverse",
    lambda x: square_matrix(x, "inv"),
    np.linalg.inv,
    _grad_inverse,
    _routine("elimination.inverse", lambda n: 2 * n * _padded(n), _side),
)


def inv(input: Any) -> Tensor:
    """The inverse of square matrices; InvalidArgumentError for a singular one."""
    return run(INVERSE, convert_to_tensor(input))  # type: ignore[no-any-return]


def _grad_det(call: OpCall, grad: Tensor) -> list[Any]:
    factor = _lift(grad * _conjugate(call.outputs[0]))
    return [factor * _adjoint(inv(call.inputs[0]))]


def _lift(x: Tensor) -> Tensor:
    """Numbers as matrices of one element."""
    return reshape_to(x, (*x.dims, 1, 1))


DETERMINANT = decomposition(
    "determinant",
    lambda x: TensorSpec(square_matrix(x, "det").dims[:-2], x.dtype),
    np.linalg.det,
    _grad_det,
    _routine("elimination.determinant", lambda n: n * _padded(n), _side, fails=False),
)


def det(input: Any) -> Tensor:
    """The determinants of square matrices."""
    return run(DETERMINANT, convert_to_tensor(input))  # type: ignore[no-any-return]


def _infer_slogdet(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    dims = square_matrix(x, "slogdet").dims[:-2]
    return TensorSpec(dims, x.dtype), TensorSpec(dims, x.dtype.real_dtype)


def _log_determinant(x: Any) -> tuple[Any, Any]:
    """NumPy's (sign, logarithm); the sign of a determinant that is NaN is NaN, as in TensorFlow."""
    sign, logarithm = np.linalg.slogdet(x)
    return np.where(np.isnan(logarithm), logarithm, sign), logarithm


def _grad_log_determinant(call: OpCall, of_sign: Tensor, grad: Tensor) -> list[Any]:
    """The sign of a real determinant is constant, that of a complex one turns with its angle."""
    sign = call.outputs[0]
    if sign.dtype.is_complex:
        grad = complex_number(grad, imag(_conjugate(sign) * of_sign))
    return [_lift(grad) * _adjoint(inv(call.inputs[0]))]


SLOGDET = decomposition(
    "log_determinant",
    _infer_slogdet,
    _log_determinant,
    _grad_log_determinant,
    _routine("elimination.log_determinant", lambda n: n * _padded(n), _side, fails=False),
)


def slogdet(input: Any) -> tuple[Tensor, Tensor]:
    """(sign, logarithm of the absolute value) of the determinants."""
    return run(SLOGDET, convert_to_tensor(input))  # type: ignore[no-any-return]


def _infer_solve(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    square_matrix(a, "solve")
    _matrix(b, "solve")
    if a.dtype is not b.dtype:
        raise TypeError(f"dtypes {a.dtype.name} and {b.dtype.name} differ")
    rows = a.dims[-1], b.dims[-2]
    if rows[0] != rows[1] and all(isinstance(d, int) for d in rows):
        raise InvalidArgumentError(
            None, None, f"the matrix has {rows[0]} rows and the right side {rows[1]}"
        )
    batch: Any = broadcast(a.dims[:-2], b.dims[:-2])
    return TensorSpec((*batch, *b.dims[-2:]), b.dtype)


def _grad_solve(call: OpCall, grad: Tensor) -> list[Any]:
    a, b = call.inputs
    of_b = solve(_adjoint(a), grad)
    of_a = -matrices.matmul(of_b, _adjoint(call.outputs[0]))
    return [matrices.unbroadcast_batch(of_a, a), matrices.unbroadcast_batch(of_b, b)]


SOLVE = decomposition(
    "solve",
    _infer_solve,
    np.linalg.solve,
    _grad_solve,
    Rows("elimination.solve", _equations(lambda n, m: _padded(n) + _padded(m)), fails=True),
)


def solve(matrix: Any, rhs: Any) -> Tensor:
    """X with ``matrix @ X = rhs``; both are (batches of) matrices."""
    return run(SOLVE, convert_to_tensor(matrix), convert_to_tensor(rhs))  # type: ignore[no-any-return]


# -- triangles -----------------------------------------------------------------------------------


def _triangular(a: NDArray, b: NDArray, *, lower: bool) -> NDArray:
    """Substitution, row by row; where a pivot is 0 infinities and NaN, as TensorFlow's."""
    n = b.shape[-2]
    if a.shape[-2:] != (n, n):
        raise ValueError("the sizes differ")  # the shape rule says which
    batch: Any = broadcast(a.shape[:-2], b.shape[:-2])
    x = np.array(np.broadcast_to(b, (*batch, *b.shape[-2:])))
    for k in range(n) if lower else range(n - 1, -1, -1):
        done = slice(0, k) if lower else slice(k + 1, n)
        known = np.matmul(a[..., k : k + 1, done], x[..., done, :])[..., 0, :]
        x[..., k, :] = (x[..., k, :] - known) / a[..., k, k, None]
    return x


def _grad_triangular(call: OpCall, grad: Tensor) -> list[Any]:
    a, b = call.inputs
    lower = call.attrs["lower"]
    of_b = run(TRIANGULAR_SOLVE, _adjoint(a), grad, lower=not lower)
    of_a = -matrices.matmul(of_b, _adjoint(call.outputs[0]))
    of_a = tril(of_a) if lower else triu(of_a)
    return [matrices.unbroadcast_batch(of_a, a), matrices.unbroadcast_batch(of_b, b)]


TRIANGULAR_SOLVE = decomposition(
    "triangular_solve",
    lambda a, b, *, lower: _infer_solve(a, b),
    _triangular,
    _grad_triangular,
    Rows("elimination.triangular_solve", _equations(lambda n, m: _padded(m), LOWER="lower")),
)


def triangular_solve(matrix: Any, rhs: Any, lower: bool = True) -> Tensor:
    """X with ``matrix @ X = rhs``, of which only one triangle is read."""
    a, b = convert_to_tensor(matrix), convert_to_tensor(rhs)
    return run(TRIANGULAR_SOLVE, a, b, lower=bool(lower))  # type: ignore[no-any-return]


def _grad_cholesky(call: OpCall, grad: Tensor) -> list[Any]:
    """After Murray (2016), "Differentiation of the Cholesky decomposition"."""
    factor = call.outputs[0]
    inner = _lower(matrices.matmul(_adjoint(factor), grad))
    inverse = inv(factor)
    half = matrices.matmul(matrices.matmul(_adjoint(inverse), inner), inverse)
    return [(half + _adjoint(half)) * 0.5]


def _lower(x: Tensor) -> Tensor:
    """The lower triangle with half of the diagonal."""
    size = x.dims[-1]
    return tril(x) - _eye(size, x) * x * 0.5


def _eye(size: Dim, like: Tensor) -> Tensor:
    return eye(size, dtype=like.dtype)


CHOLESKY = decomposition(
    "cholesky",
    lambda x: square_matrix(x, "cholesky"),
    np.linalg.cholesky,
    _grad_cholesky,
    _routine("elimination.cholesky", lambda n: n * _padded(n), _side),
)


def cholesky(input: Any) -> Tensor:
    """Lower triangles L with ``L @ L.H`` the given positive definite matrices."""
    return run(CHOLESKY, convert_to_tensor(input))  # type: ignore[no-any-return]


def _infer_qr(x: TensorSpec, *, full: bool) -> tuple[TensorSpec, TensorSpec]:
    *batch, m, n = _matrix(x, "qr").dims
    k = m if full else compound("min", m, n)
    return TensorSpec((*batch, m, k), x.dtype), TensorSpec((*batch, k, n), x.dtype)


def _grad_qr(call: OpCall, dq: Tensor, dr: Tensor) -> list[Any]:
    q, r = call.outputs
    if r.dims[-1] != r.dims[-2]:
        raise NotImplementedError(
            "the gradient of qr needs at least as many rows as columns, and full_matrices=False"
            f"{at(user_origin())}"
        )
    m = matrices.matmul(r, _adjoint(dr)) - matrices.matmul(_adjoint(dq), q)
    low = _strictly_lower(m)
    both = low + _adjoint(low) + _eye(m.dims[-1], m) * _real_part(m)
    return [matrices.matmul(dq + matrices.matmul(q, both), _adjoint(inv(r)))]


def _real_part(x: Tensor) -> Tensor:
    """The real parts of numbers, in their dtype."""
    return cast(real(x), x.dtype) if x.dtype.is_complex else x


def _strictly_lower(x: Tensor) -> Tensor:
    return tril(x, -1)


def _qr_elements(m: Dim, n: Dim, k: Dim) -> Dim:
    return (m + 1) * _padded(n) + k * m + (m + 1) * _padded(k)


def _qr(x: NDArray, *, full: bool) -> tuple[NDArray, ...]:
    return tuple(np.linalg.qr(x, "complete" if full else "reduced"))


def _qr_plan(inputs: Specs, outputs: Specs, attrs: Mapping[str, Any]) -> RowCall | None:
    return None if attrs["full"] and not _is_wide(inputs[0]) else _QR.plan(inputs, outputs, attrs)


def _is_wide(x: TensorSpec) -> bool:
    """Whether matrices are known to have as many columns as rows: R is no larger then."""
    m, n = x.dims[-2:]
    return isinstance(m, int) and isinstance(n, int) and m <= n


_QR = _routine("rotations.qr", _qr_elements, _sides, fails=False)
QR = decomposition("qr", _infer_qr, _qr, _grad_qr, replace(_QR, plan=_qr_plan))


def qr(input: Any, full: bool = False) -> tuple[Tensor, Tensor]:
    """(Q, R): orthonormal columns and an upper triangle, both reduced unless `full`."""
    return run(QR, convert_to_tensor(input), full=full)  # type: ignore[no-any-return]


def _infer_svd(x: TensorSpec, *, full: bool) -> tuple[TensorSpec, ...]:
    *batch, m, n = _matrix(x, "svd").dims
    k = compound("min", m, n)
    left, right = ((m, m), (n, n)) if full else ((m, k), (k, n))
    return (
        TensorSpec((*batch, *left), x.dtype),
        TensorSpec((*batch, k), x.dtype.real_dtype),
        TensorSpec((*batch, *right), x.dtype),
    )


def singular_values(x: NDArray, *, full: bool) -> tuple[NDArray, ...]:
    """NumPy's `svd`, with NaN for matrices that are not finite, which LAPACK may not come to an
    end with."""
    finite: Any = np.isfinite(x).all((-2, -1))
    found = np.linalg.svd(np.where(finite[..., None, None], x, 0), full_matrices=full)
    if finite.all():
        return tuple(found)
    u, s, vh = (f.copy() for f in found)
    u[~finite], s[~finite], vh[~finite] = np.nan, np.nan, np.nan
    return u, s, vh


def _grad_svd(call: OpCall, du: Tensor, ds: Tensor, dv: Tensor) -> list[Any]:
    """The source for complex matrices is Wan and Zhang, Automatic Differentiation for Complex
    Valued SVD, 2019: it holds where the result depends on no phases of the vectors."""
    if call.attrs["full"]:
        raise NotImplementedError(
            f"the gradient of svd needs full_matrices=False{at(user_origin())}"
        )
    u, s, vh = call.outputs
    s, ds = cast(s, u.dtype), cast(ds, u.dtype)
    k = s.dims[-1]
    squares = s * s
    gaps = squares[..., None, :] - squares[..., :, None]
    same = gaps == 0
    f = where(same, 0.0, 1.0 / where(same, 1.0, gaps))
    ut, v = _adjoint(u), _adjoint(vh)
    a, b = f * matrices.matmul(ut, du), f * matrices.matmul(vh, _adjoint(dv))
    s_row, s_column = s[..., None, :], s[..., :, None]
    inner = (a + _adjoint(a)) * s_row + s_column * (b + _adjoint(b))
    inner = inner + _eye(k, s) * ds[..., None, :]
    if u.dtype.is_complex:  # the phase that a vector of both sides has in common
        turns = matrices.matmul(ut, du)
        inner = inner + _eye(k, s) * (turns - _adjoint(turns)) / (2 * s_row)
    found = matrices.matmul(matrices.matmul(u, inner), vh)
    rest_u = (du - matrices.matmul(u, matrices.matmul(ut, du))) / s_row
    rest_v = (_adjoint(dv) - matrices.matmul(v, matrices.matmul(vh, _adjoint(dv)))) / s_row
    found = found + matrices.matmul(rest_u, vh) + matrices.matmul(u, _adjoint(rest_v))
    return [found]


def _svd_elements(m: Dim, n: Dim, k: Dim) -> Dim:
    return k * (_padded(compound("max", m, n)) + _padded(k)) + _padded(k) + 3 * PAD


def _svd_plan(inputs: Specs, outputs: Specs, attrs: Mapping[str, Any]) -> RowCall | None:
    m, n = inputs[0].dims[-2:]
    opened = not isinstance(m, int) or not isinstance(n, int)
    if opened or (attrs["full"] and m != n):
        return None
    return _SVD.plan(inputs, outputs, attrs)


_SVD = _routine("rotations.svd", _svd_elements, _sides, most=SMALL_SVD, eagerly=True)
SVD = decomposition(
    "svd", _infer_svd, singular_values, _grad_svd, replace(_SVD, plan=_svd_plan)
)


def svd(input: Any, full: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V.H) with ``U * S @ V.H`` the given matrices."""
    return run(SVD, convert_to_tensor(input), full=bool(full))  # type: ignore[no-any-return]


def _infer_eigh(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    square_matrix(x, "eigh")
    return TensorSpec(x.dims[:-1], x.dtype.real_dtype), x


def _eigh(x: NDArray) -> tuple[NDArray, ...]:
    if x.shape[-1] > 1 and not np.isfinite(np.tril(x)).all():
        raise InvalidArgumentError(None, None, "the matrices are not finite")
    return tuple(np.linalg.eigh(x))


def _grad_eigh(call: OpCall, dw: Tensor, dv: Tensor) -> list[Any]:
    w, v = call.outputs
    w, dw = cast(w, v.dtype), cast(dw, v.dtype)
    gaps = w[..., None, :] - w[..., :, None]
    same = gaps == 0
    f = where(same, 0.0, 1.0 / where(same, 1.0, gaps))
    turned = _adjoint(v)
    inner = _eye(w.dims[-1], w) * dw[..., None, :] + f * matrices.matmul(turned, dv)
    found = matrices.matmul(matrices.matmul(v, inner), turned)
    both = found + _adjoint(found)
    # NumPy reads the lower triangle only.
    return [tril(both) - _eye(w.dims[-1], w) * both * 0.5]


EIGH = decomposition(
    "eigh",
    _infer_eigh,
    _eigh,
    _grad_eigh,
    _routine("symmetric.eigh", lambda n: (2 * n + 4) * _padded(n), _side, eagerly=True),
)


def eigh(input: Any) -> tuple[Tensor, Tensor]:
    """(eigenvalues in rising order, eigenvectors in columns) of symmetric matrices."""
    return run(EIGH, convert_to_tensor(input))  # type: ignore[no-any-return]
