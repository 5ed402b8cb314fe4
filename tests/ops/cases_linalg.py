"""The table of op tests, continued: functions of matrices, stated with NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

import treadle as td
from tests.ops.cases import Case

WIDE = ("float32", "float64")
SQUARE = (((3, 3),), ((2, 4, 4),))
L = td.linalg


def each(fn: Any) -> Any:
    """A function of one matrix for batches of them."""
    return np.vectorize(fn, signature="(m,n)->(p,q)")


def heavy(fn: Any) -> Any:
    """A function of a matrix made regular, positive and well-conditioned."""
    return lambda x: fn(x + 9 * np.eye(x.shape[-1]))


def on_heavy(fn: Any) -> Any:
    return lambda x: fn(x + 9 * td.eye(td.shape(x)[-1], dtype=x.dtype))


def of_matrices(name: str, fn: Any, ref: Any, shapes: Any = SQUARE, **more: Any) -> Case:
    return Case(name, on_heavy(fn), heavy(ref), shapes, WIDE, **{"kernels": False, **more})


def wide_diagonals(x: Any, low: int, high: int, align: str = "RIGHT_LEFT") -> Any:
    rows, columns = x.shape[-2:]
    length = min(rows + min(high, 0), columns - max(low, 0))
    found = np.zeros((*x.shape[:-2], high - low + 1, length))
    for place, k in enumerate(range(high, low - 1, -1)):
        part = np.diagonal(x, k, -2, -1)
        word = align.split("_")[0 if k >= 0 else 1]
        start = length - part.shape[-1] if word == "RIGHT" else 0
        found[..., place, start : start + part.shape[-1]] = part
    return found


def banded(rows: Any) -> Any:
    """The matrix of three diagonals."""
    above, main, below = rows
    return np.diag(above[:-1], 1) + np.diag(main) + np.diag(below[1:], -1)


def lower_band(rows: Any) -> Any:
    return np.diag(rows[0]) + np.diag(rows[1, 1:], -1)


def regular(rows: Any) -> Any:
    """Three diagonals with a large main one."""
    return rows + np.array([[0.0], [9.0], [0.0]], np.float64)


def packed(x: Any) -> Any:
    order, lower, upper = scipy.linalg.lu(x, p_indices=True)
    return np.tril(lower, -1) + upper


def solve_each(to_matrix: Any) -> Any:
    return np.vectorize(
        lambda rows, b: np.linalg.solve(to_matrix(rows), b), signature="(d,n),(n,k)->(n,k)"
    )


def with_three(fn: Any) -> Any:
    """A function of three diagonals and a right side; the main diagonal is made large."""
    add = td.constant([[0.0], [9.0], [0.0]], td.float64)
    return lambda d, b: fn(d + td.cast(add, d.dtype), b)


THREE = (((3, 4), (4, 2)), ((2, 3, 5), (2, 5, 1)), ((3, 4), (2, 4, 2)))
LINALG = [
    Case("cross", L.cross, np.cross, (((3,), (3,)), ((2, 3), (2, 3))), (*WIDE, "int32"),
         symbolic=False),
    *(Case(f"diag_part_{low}_{high}_{align}",
           lambda x, k=(low, high), a=align: L.diag_part(x, k=k, align=a),
           lambda x, k=(low, high), a=align: wide_diagonals(x, *k, a),
           (((3, 4),), ((2, 5, 4),)), ("float64", "int32"), symbolic=low != high)
      for low, high, align in [(-1, 1, "RIGHT_LEFT"), (0, 2, "LEFT_RIGHT"), (-2, -1, "LEFT_LEFT"),
                               (-1, 2, "RIGHT_RIGHT")]),
    Case("diag_part_1", lambda x: L.diag_part(x, k=1), lambda x: np.diagonal(x, 1, -2, -1),
         (((3, 4),), ((2, 4, 3),)), WIDE),
    Case("diag_-1", lambda x: L.diag(x, k=-1, padding_value=2),
         lambda x: np.where(np.eye(x.shape[-1] + 1, k=-1) > 0, each(
             lambda v: np.diag(v[0], -1))(x[..., None, :]), 2),
         (((3,),), ((2, 4),)), (*WIDE, "int32")),
    Case("diag_of_three", lambda x: L.diag(x, k=(-1, 1), align="LEFT_RIGHT"), each(banded),
         (((3, 4),), ((2, 3, 3),)), WIDE, symbolic=False),
    Case("set_diag", L.set_diag,
         lambda x, d: np.where(np.eye(x.shape[-1]) > 0, d[..., None], x),
         (((3, 3), (3,)), ((2, 4, 4), (2, 4))), (*WIDE, "int32")),
    Case("set_diag_1", lambda x, d: L.set_diag(x, d, k=1),
         lambda x, d: np.where(np.eye(*x.shape[-2:], k=1) > 0, np.pad(
             d, [(0, 0)] * (d.ndim - 1) + [(1, 0)])[..., None, :], x),
         (((4, 4), (3,)), ((2, 3, 4), (2, 3))), WIDE),
    Case("tensor_diag", L.tensor_diag,
         lambda x: np.diag(x.reshape(-1)).reshape(x.shape * 2), (((3,),), ((2, 3),)), WIDE),
    Case("tensor_diag_part", L.tensor_diag_part,
         lambda x: np.diagonal(x.reshape((round(x.size**0.5),) * 2)).reshape(
             x.shape[: x.ndim // 2]), (((3, 3),), ((2, 3, 2, 3),)), WIDE),
    Case("norm_2_of_matrices", lambda x: td.norm(x, 2, (-2, -1)),
         lambda x: np.linalg.norm(x, 2, (-2, -1)), (((3, 4),), ((2, 4, 3),)), WIDE, kernels=False),
    Case("norm_1_of_matrices", lambda x: td.norm(x, 1, (-2, -1)),
         lambda x: np.linalg.norm(x, 1, (-2, -1)), (((3, 4),), ((2, 4, 3),)), WIDE),
    Case("norm_inf_of_matrices", lambda x: td.norm(x, np.inf, (0, 1)),
         lambda x: np.linalg.norm(x, np.inf, (0, 1)), (((3, 4),), ((4, 3),)), WIDE),
    Case("normalize", lambda x: L.normalize(x, axis=-1)[0],
         lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True), (((3,),), ((2, 4),)), WIDE),
    of_matrices("pinv", L.pinv, np.linalg.pinv),
    Case("pinv_wide", L.pinv, np.linalg.pinv, (((2, 4),), ((4, 2),)), ("float64",),
         kernels=False),
    Case("matrix_rank", lambda x: L.matrix_rank(x * 0 + 1), lambda x: np.ones(x.shape[:-2]),
         (((3, 4),), ((2, 3, 3),)), WIDE, differentiable=False, kernels=False),
    Case("expm", L.expm, each(scipy.linalg.expm), SQUARE, ("float64",), kernels=False, low=-1,
         high=1),
    of_matrices("sqrtm", L.sqrtm, each(lambda x: scipy.linalg.sqrtm(x).real)),
    of_matrices("logm", lambda x: td.math.real(L.logm(td.complex(x, 0 * x))),
                each(lambda x: scipy.linalg.logm(x).real)),
    of_matrices("lu", lambda x: L.lu(x).lu, each(packed)),
    Case("lu_order", lambda x: L.lu(x).p,
         np.vectorize(lambda x: np.argsort(scipy.linalg.lu(x, p_indices=True)[0]),
                      signature="(m,m)->(m)"),
         SQUARE, WIDE, differentiable=False, kernels=False),
    of_matrices("lu_inverse", lambda x: L.lu_matrix_inverse(*L.lu(x)), np.linalg.inv),
    of_matrices("lu_reconstruct", lambda x: L.lu_reconstruct(*L.lu(x)), lambda x: x),
    Case("lu_solve", lambda x, b: L.lu_solve(*L.lu(x + 9 * td.eye(3, dtype=x.dtype)), b),
         lambda x, b: np.linalg.solve(x + 9 * np.eye(3), b),
         (((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 1)), ((2, 3, 3), (3, 2))), WIDE, kernels=False,
         symbolic=False),
    Case("eig", lambda x: td.abs(td.reduce_sum(L.eig(x)[0] ** 3, -1)) * td.reduce_max(
             td.abs(L.eig(x)[1][..., 0, :]), -1),
         lambda x: np.abs(np.sum(np.linalg.eigvals(x) ** 3, -1)) * np.max(
             np.abs(np.linalg.eig(x)[1][..., 0, :]), -1), SQUARE, ("float64",), kernels=False),
    Case("eigvals", lambda x: td.math.real(td.reduce_sum(L.eigvals(x) ** 2, -1)),
         lambda x: np.sum(np.linalg.eigvals(x) ** 2, -1).real, SQUARE, ("float64",),
         kernels=False),
    Case("eigh_tridiagonal", L.eigh_tridiagonal, lambda a, b: np.linalg.eigvalsh(
             np.diag(a) + np.diag(b, 1) + np.diag(b, -1)), (((4,), (3,)),), ("float64",),
         kernels=False, symbolic=False),
    Case("tridiagonal_solve", with_three(L.tridiagonal_solve),
         lambda d, b: solve_each(banded)(regular(d), b), THREE, WIDE, kernels=False,
         symbolic=False),
    Case("tridiagonal_solve_pivots", L.tridiagonal_solve, solve_each(banded), THREE[:2],
         ("float64",), kernels=False, symbolic=False, low=1),
    Case("tridiagonal_matmul", L.tridiagonal_matmul,
         np.vectorize(lambda d, b: banded(d) @ b, signature="(d,n),(n,k)->(n,k)"), THREE[:2],
         WIDE, symbolic=False),
    Case("banded_triangular_solve",
         lambda d, b: L.banded_triangular_solve(d, b),
         solve_each(lower_band), (((2, 4), (4, 2)), ((2, 2, 3), (2, 3, 1))), WIDE,
         low=2, kernels=False, symbolic=False),
]  # fmt: skip
