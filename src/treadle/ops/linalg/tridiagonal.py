"""Matrices of which only a few diagonals are not 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.refusals import NotYetKnown
from treadle.core.shapes import TensorShape, broadcast
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.broadcasting import unbroadcast
from treadle.ops.conversion import common_dtype, convert_to_tensor
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.indexing.masks import boolean_mask
from treadle.ops.linalg import decompositions
from treadle.ops.linalg.diagonals import diag, diag_part
from treadle.ops.linalg.matrices import matrix_transpose
from treadle.ops.linalg.matrix_functions import adjoint as adjoint_of
from treadle.ops.op_makers import require_kinds
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.joining import stack
from treadle.ops.shaping.padding import pad
from treadle.ops.shaping.reshaping import reshape_to


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")


# -- three diagonals -----------------------------------------------------------------------------


def _infer(diagonals: TensorSpec, b: TensorSpec, *, pivots: bool) -> TensorSpec:
    require_kinds("fc", diagonals, b)
    inner = TensorShape(diagonals.dims[-2:]), TensorShape((3, b.dims[-2] if b.rank > 1 else None))
    if diagonals.rank < 2 or b.rank < 2 or not inner[0].is_compatible_with(inner[1]):
        raise errors.InvalidArgumentError(
            None, None, f"diagonals of shape {diagonals.shape} do not fit a right side of shape "
            f"{b.shape}",
        )  # fmt: skip
    batch = broadcast(diagonals.dims[:-2], b.dims[:-2])
    return TensorSpec((*batch, *b.dims[-2:]), b.dtype)


def _eager(diagonals: NDArray, b: NDArray, *, pivots: bool) -> NDArray:
    """Elimination from the first row on, of all matrices at once. Where rows are exchanged the
    upper triangle has two diagonals more than its main one."""
    if diagonals.shape[-2:] != (3, b.shape[-2]):
        raise ValueError("the sizes differ")  # the shape rule says which
    batch: Any = broadcast(diagonals.shape[:-2], b.shape[:-2])
    n = b.shape[-2]
    above, main, below = np.moveaxis(np.broadcast_to(diagonals, (*batch, 3, n)), -2, 0)
    x = np.array(np.broadcast_to(b, (*batch, *b.shape[-2:])))
    rows = np.zeros((*batch, n, 3), x.dtype)  # of the upper triangle, from the diagonal on
    rows[..., 0], rows[..., :-1, 1] = main, above[..., :-1]
    for k in range(n - 1):
        upper = rows[..., k, :].copy()
        lower = np.stack([below[..., k + 1], *np.moveaxis(rows[..., k + 1, :2], -1, 0)], -1)
        right, next_right = x[..., k, :].copy(), x[..., k + 1, :].copy()
        if pivots:
            swap = (np.abs(lower[..., 0]) > np.abs(upper[..., 0]))[..., None]
            upper, lower = np.where(swap, lower, upper), np.where(swap, upper, lower)
            right, next_right = (
                np.where(swap, next_right, right), np.where(swap, right, next_right)
            )  # fmt: skip
        factor = lower[..., :1] / np.where(upper[..., :1] == 0, 1, upper[..., :1])
        rows[..., k, :], x[..., k, :] = upper, right
        rows[..., k + 1, :2] = lower[..., 1:] - factor * upper[..., 1:]
        x[..., k + 1, :] = next_right - factor * right
    for k in range(n - 1, -1, -1):
        for step in (1, 2):
            if k + step < n:
                x[..., k, :] -= rows[..., k, step, None] * x[..., k + step, :]
        x[..., k, :] /= rows[..., k, :1]
    x[(rows[..., 0] == 0).any(-1)] = np.nan
    return x


def _transposed(diagonals: Tensor) -> Tensor:
    above, main, below = (diagonals[..., k, :] for k in range(3))
    return stack([_moved(below, 1), main, _moved(above, -1)], -2)


def _moved(x: Tensor, by: int) -> Tensor:
    """Element i + by of a row at place i, with 0 at the end that is left."""
    gap = [[0, 0]] * (x.ndim - 1)
    return pad(x[..., 1:], [*gap, [0, 1]]) if by > 0 else pad(x[..., :-1], [*gap, [1, 0]])


def _gradient(call: OpCall, grad: Tensor) -> list[Any]:
    diagonals, b = call.inputs
    turned = _transposed(conj(diagonals))
    of_b = run(TRIDIAGONAL_SOLVE, turned, grad, **call.attrs)
    x = conj(call.outputs[0])
    zero = [[0, 0]] * (x.ndim - 2)
    after = pad(x[..., 1:, :], [*zero, [0, 1], [0, 0]])
    before = pad(x[..., :-1, :], [*zero, [1, 0], [0, 0]])
    of_diagonals = stack([-reduce_sum(of_b * other, -1) for other in (after, x, before)], -2)
    return [unbroadcast(of_diagonals, diagonals), unbroadcast(of_b, b)]


TRIDIAGONAL_SOLVE = register(
    Op(
        "tridiagonal_solve", _infer, _eager, _gradient,
        callback="the elements tell which rows are exchanged",
    )
)  # fmt: skip


def diagonal_rows(what: str, diagonals: Any, form: str, like: Any) -> tuple[Tensor, Tensor]:
    """The three diagonals as rows [..., 3, n], and the right side in their dtype.

    Raises:
        ValueError: an unknown form, or a sequence of another length.
    """
    if form == "compact":
        return common_dtype(what, diagonals, like)
    if form == "matrix":
        matrix, b = common_dtype(what, diagonals, like)
        if matrix.ndim < 2 or not TensorShape(matrix.dims[-1:]).is_compatible_with(
            matrix.dims[-2:-1]
        ):
            raise ValueError(f"{what}: {matrix.spec} is no square matrix{at(user_origin())}")
        return diag_part(matrix, k=(-1, 1), align="LEFT_RIGHT"), b
    if form != "sequence":
        raise ValueError(f"{what}: diagonals_format {form!r} is none of compact, matrix, sequence"
                         f"{at(user_origin())}")  # fmt: skip
    if not isinstance(diagonals, list | tuple) or len(diagonals) != 3:
        raise ValueError(f"{what}: a sequence of three diagonals is expected{at(user_origin())}")
    main, b = common_dtype(what, diagonals[1], like)
    above, below = (convert_to_tensor(diagonals[k], main.dtype) for k in (0, 2))
    n, gap = main.dims[-1], [[0, 0]] * (main.ndim - 1)
    if above.dims[-1] == n - 1:
        above = pad(above, [*gap, [0, 1]])
    if below.dims[-1] == n - 1:
        below = pad(below, [*gap, [1, 0]])
    if not all(main.shape.is_compatible_with(side.shape) for side in (above, below)):
        raise _invalid(f"{what}: diagonals of shapes {above.shape}, {main.shape} and {below.shape} "
                       "are not those of one matrix")  # fmt: skip
    return stack([above, main, below], -2), b


def tridiagonal_solve(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", transpose_rhs: bool = False,
    conjugate_rhs: bool = False, name: str | None = None, partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:  # fmt: skip
    """X with ``matrix @ X = rhs``, for matrices with a main diagonal and one on either side of it.

    Args:
        diagonals: the diagonals above, at and below the main one. "compact": rows [..., 3, n], of
            which the last element of the first and the first of the last are not read; "sequence":
            three tensors [..., n], or the outer ones [..., n - 1]; "matrix": [..., n, n].
        rhs: [..., n] or [..., n, k]; with `transpose_rhs` [..., k, n].
        conjugate_rhs: solve for the conjugate of `rhs`.
        partial_pivoting: exchange rows so that results are exact for all matrices.
        perturb_singular: only False is supported.

    Returns:
        X in the shape of ``matrix @ X``: [..., n] for a vector, else [..., n, k]; NaN where a
        matrix is singular.

    Raises:
        InvalidArgumentError: the shapes do not fit.
        ValueError: another format, or `perturb_singular`.
    """
    what = "tridiagonal_solve"
    if perturb_singular:
        raise ValueError(f"{what}: perturb_singular=True is not supported{at(user_origin())}")
    rows, b = diagonal_rows(what, diagonals, diagonals_format, rhs)
    is_vector = b.ndim == rows.ndim - 1
    if conjugate_rhs:
        b = conj(b)
    if is_vector:
        b = reshape_to(b, (*b.dims, 1))
    elif transpose_rhs:
        b = matrix_transpose(b)
    found = run(TRIDIAGONAL_SOLVE, rows, b, pivots=bool(partial_pivoting))
    return reshape_to(found, found.dims[:-1]) if is_vector else found


def tridiagonal_matmul(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """``matrix @ rhs`` for matrices with a main diagonal and one on either side of it.

    Args:
        diagonals, diagonals_format: as in `tridiagonal_solve`.
        rhs: [..., n, k].

    Raises:
        InvalidArgumentError: the shapes do not fit.
        ValueError: another format.
    """
    rows, b = diagonal_rows("tridiagonal_matmul", diagonals, diagonals_format, rhs)
    if b.ndim < 2 or rows.ndim < 2 or not TensorShape((3, b.dims[-2])).is_compatible_with(
        rows.dims[-2:]
    ):
        raise _invalid(f"tridiagonal_matmul: diagonals of shape {rows.shape} do not fit a right "
                       f"side of shape {b.shape}")  # fmt: skip
    above, main, below = (rows[..., k, :, None] for k in range(3))
    gap = [[0, 0]] * (b.ndim - 2)
    after = pad(b[..., 1:, :], [*gap, [0, 1], [0, 0]])
    before = pad(b[..., :-1, :], [*gap, [1, 0], [0, 0]])
    return above * after + main * b + below * before


def eigh_tridiagonal(
    alpha: Any, beta: Any, eigvals_only: bool = True, select: str = "a", select_range: Any = None,
    tol: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """The eigenvalues of a symmetric (or Hermitian) matrix of three diagonals, in rising order.

    They are those of `eigh` for the whole matrix.

    Args:
        alpha: the main diagonal [n], of which the real part is read.
        beta: the diagonal above it [n - 1].
        eigvals_only: give no eigenvectors.
        select: "a" for all; "v" for those in the interval ``(min, max]`` of `select_range`; "i" for
            those with numbers from min to max.
        tol: ignored; the values are exact to rounding.

    Returns:
        The eigenvalues; or them and the eigenvectors [n, count] in columns.

    Raises:
        ValueError: another `select`, or the shapes do not fit.
        TypeError: `select` needs a range.
    """
    what = "eigh_tridiagonal"
    main, side = common_dtype(what, alpha, beta)
    if select not in ("a", "v", "i"):
        raise ValueError(f"{what}: select {select!r} is none of a, v, i{at(user_origin())}")
    if select != "a" and (select_range is None or len(select_range) != 2):
        raise TypeError(f"{what}: select={select!r} needs a select_range{at(user_origin())}")
    if main.ndim != 1 or side.ndim != 1:
        raise ValueError(f"{what}: {main.spec} and {side.spec} are not vectors{at(user_origin())}")
    whole = diag(main)
    if main.dims[0] != 1:
        whole = whole + diag(conj(side), k=-1)
    values, whole_vectors = decompositions.eigh(whole)  # real for complex matrices, too
    vectors = None if eigvals_only else whole_vectors
    if select == "i":
        first, last = (int(k) for k in select_range)
        if not 0 <= first <= last:
            raise ValueError(f"{what}: select_range {select_range} is no range{at(user_origin())}")
        values = values[first : last + 1]
        vectors = None if vectors is None else vectors[:, first : last + 1]
    elif select == "v":
        low, high = select_range
        kept = (values > low) & (values <= high)
        values = boolean_mask(values, kept)
        vectors = None if vectors is None else boolean_mask(vectors, kept, axis=1)
    return values if vectors is None else (values, vectors)


# -- bands ---------------------------------------------------------------------------------------


def banded_triangular_solve(
    bands: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """X [..., n, m] with ``matrix @ X = rhs``, for triangles of which few diagonals are not 0.

    Args:
        bands: the diagonals [..., count, n]. Of a lower triangle the main diagonal is the first
            row, and those below begin as many elements later; of an upper one it is the last row,
            and those above end as many elements earlier.
        rhs: [..., n, m].
        lower: which triangle.
        adjoint: solve with the adjoint of the triangle.

    Raises:
        InvalidArgumentError: the shapes do not fit.
    """
    rows, b = common_dtype("banded_triangular_solve", bands, rhs)
    if rows.ndim < 2:
        raise _invalid(f"banded_triangular_solve: {rows.spec} is no matrix of diagonals")
    if not isinstance(rows.dims[-2], int):
        text = f"banded_triangular_solve: the number of diagonals of {rows.spec} must be known"
        raise NotYetKnown(f"{text}{at(user_origin())}", rows.dims[-2])
    most = rows.dims[-2] - 1
    if most:
        matrix = diag(rows, k=(-most, 0) if lower else (0, most), align="LEFT_RIGHT")
    else:
        matrix = diag(rows[..., 0, :])
    if adjoint:
        matrix, lower = adjoint_of(matrix), not lower
    return decompositions.triangular_solve(matrix, b, bool(lower))
