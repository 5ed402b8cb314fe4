"""What functions of matrices do with operators. Importing this module lets them take these."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from treadle.core.errors import DtypeError
from treadle.core.origin import at, user_origin
from treadle.core.refusals import Claimed
from treadle.linear_operators.base import LinearOperator
from treadle.ops.conversion import register_converter
from treadle.ops.linalg import diagonals, matrices, matrix_functions


def _matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False,
    adjoint_a: bool = False, adjoint_b: bool = False, a_is_sparse: bool = False,
    b_is_sparse: bool = False, output_type: Any = None, grad_a: bool = False,
    grad_b: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    if transpose_a or transpose_b or a_is_sparse or b_is_sparse:
        raise ValueError(f"matmul of an operator takes adjoints only{at(user_origin())}")
    if isinstance(a, LinearOperator):
        return a.matmul(b, adjoint_a, adjoint_b)
    # a b = (b.H a.H).H
    return matrix_functions.adjoint(b.matmul(a, not adjoint_b, not adjoint_a))


def _solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Any:
    if not isinstance(matrix, LinearOperator):
        raise ValueError(f"solve: the matrix is a tensor, and rhs an operator{at(user_origin())}")
    return matrix.solve(rhs, adjoint)


def _logdet(matrix: LinearOperator, name: str | None = None) -> Any:
    if not (matrix.is_positive_definite and matrix.is_self_adjoint):
        raise ValueError(
            f"logdet: the operator is not known to be self-adjoint positive definite"
            f"{at(user_origin())}"
        )
    return matrix.log_abs_determinant()


def _inv(input: LinearOperator, adjoint: bool = False, name: str | None = None) -> Any:
    return input.inverse().adjoint() if adjoint else input.inverse()


_FORMS: dict[Any, Callable[..., Any]] = {
    matrices.matmul: _matmul,
    matrix_functions.solve: _solve,
    matrix_functions.logdet: _logdet,
    matrix_functions.inv: _inv,
    matrix_functions.adjoint: lambda matrix, name=None: matrix.adjoint(),
    matrix_functions.cholesky: lambda input, name=None: input.cholesky(),
    matrix_functions.det: lambda input, name=None: input.determinant(),
    diagonals.diag_part: lambda input, *args, **kwargs: input.diag_part(),
    diagonals.trace: lambda x, name=None: x.trace(),
}


def _call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    own = inspect.unwrap(function)
    form = _FORMS.get(own)
    if form is None:
        text = f"{own.__name__} does not take linear operators: use their methods, or to_dense()"
        raise DtypeError(None, None, f"{text}{at(user_origin())}")
    return form(*args, **kwargs)


def _claim(value: LinearOperator, dtype: Any) -> Any:
    text = f"A linear operator is no tensor: use its methods, or to_dense(){at(user_origin())}"
    raise Claimed(text, _call)


register_converter(LinearOperator, _claim)
