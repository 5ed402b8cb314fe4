"""Eigenvalues and eigenvectors of matrices that need not be symmetric; they are complex."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import conj, real
from treadle.ops.elementwise.selection import where
from treadle.ops.linalg.decompositions import decomposition, solve, square_matrix
from treadle.ops.linalg.diagonals import diag, diag_part
from treadle.ops.linalg.matrices import matmul, matrix_transpose
from treadle.ops.registry import OpCall, run


def _complex(dtype: DType) -> DType:
    return dtypes.complex128 if dtype.real_dtype.size == 8 else dtypes.complex64


def _infer(x: TensorSpec, *, vectors: bool) -> TensorSpec | tuple[TensorSpec, ...]:
    square_matrix(x, "eig")
    dtype = _complex(x.dtype)
    values = TensorSpec(x.dims[:-1], dtype)
    return (values, TensorSpec(x.dims, dtype)) if vectors else values


def _eager(x: NDArray, *, vectors: bool) -> Any:
    if x.dtype.kind != "c":  # NumPy's dtype would depend on the elements
        x = x.astype(np.complex128 if x.dtype.itemsize == 8 else np.complex64)
    return tuple(np.linalg.eig(x)) if vectors else np.linalg.eigvals(x)


def _gradient(call: OpCall, *grads: Tensor) -> list[Any]:
    """TensorFlow's rule. The vectors have length 1, and their phase is taken as fixed."""
    x = call.inputs[0]
    if call.attrs["vectors"]:
        values, vectors = call.outputs
        turned = matrix_transpose(conj(vectors))
        gaps = values[..., None, :] - values[..., :, None]
        same = gaps == 0
        f = conj(where(same, 0, 1 / where(same, 1, gaps)))
        moved = matmul(turned, grads[1])
        along = diag(cast(real(diag_part(moved)), values.dtype))
        inner = diag(grads[0]) + f * (moved - matmul(matmul(turned, vectors), along))
    else:
        _, vectors = run(EIG, x, vectors=True)
        turned, inner = matrix_transpose(conj(vectors)), diag(grads[0])
    found = solve(turned, matmul(inner, turned))
    return [found if x.dtype.is_complex else real(found)]


EIG = decomposition(
    "eig", _infer, _eager, _gradient,
    callback="the iterations of the QR method have no routine of the library",
)  # fmt: skip


def eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(eigenvalues [..., n], eigenvectors in columns [..., n, n]) of matrices [..., n, n].

    Both are complex, in no particular order; the vectors have length 1. For symmetric matrices use
    `eigh`. The gradient needs different eigenvalues.

    Raises:
        InvalidArgumentError: the matrices are not square, of integers, or not finite.
    """
    return run(EIG, convert_to_tensor(tensor), vectors=True)  # type: ignore[no-any-return]


def eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """The eigenvalues [..., n] of matrices [..., n, n], complex and in no particular order.

    Raises:
        InvalidArgumentError: the matrices are not square, of integers, or not finite.
    """
    return run(EIG, convert_to_tensor(tensor), vectors=False)  # type: ignore[no-any-return]
