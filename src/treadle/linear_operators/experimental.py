"""Equations of operators by iteration (``td.linalg.experimental``)."""

from __future__ import annotations

from typing import Any, NamedTuple

from treadle.core.tensor import Tensor
from treadle.linear_operators.base import LinearOperator
from treadle.names import missing_in
from treadle.ops.control.control_flow import while_loop
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.linalg.matrices import matmul
from treadle.ops.linalg.norms import norm
from treadle.ops.reductions.reduction import reduce_any
from treadle.ops.shaping.creation import zeros_like

__all__ = ["conjugate_gradient"]


class CGState(NamedTuple):
    """What an iteration of `conjugate_gradient` goes on with.

    Attributes:
        i: how many iterations there were.
        x: the solution so far; r: what the right side is more than the product with it.
        p: the direction of the next step; gamma: the product of `r` and the preconditioned `r`.
    """

    i: Tensor
    x: Tensor
    r: Tensor
    p: Tensor
    gamma: Tensor


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return matmul(a[..., None], b[..., None], adjoint_a=True)[..., 0]


def conjugate_gradient(
    operator: LinearOperator, rhs: Any, preconditioner: LinearOperator | None = None, x: Any = None,
    tol: float = 1e-5, max_iter: int = 20, name: str | None = None,
) -> CGState:  # fmt: skip
    """x with ``operator @ x = rhs`` by conjugate gradients, a loop of products.

    Args:
        operator: self-adjoint and positive definite.
        rhs: vectors [..., n].
        preconditioner: an operator that approximates the inverse.
        x: where to begin; zeros where omitted.
        tol: the loop ends when the residual is so small, relative to `rhs`.
        max_iter: the most iterations.

    Returns:
        The state after the last iteration, with the solution in ``x``, shaped as `rhs`, and
        ``gamma`` of shape [...].

    Raises:
        ValueError: the operator is not known to be self-adjoint and positive definite.
    """
    if not (operator.is_self_adjoint and operator.is_positive_definite):
        raise operator._wrong("conjugate_gradient needs a self-adjoint, positive definite operator")
    b = convert_to_tensor(rhs)
    limit = tol * norm(b, axis=-1)

    def preconditioned(r: Tensor) -> Tensor:
        return r if preconditioner is None else preconditioner.matvec(r)

    def unfinished(i: Tensor, *state: Tensor) -> Tensor:
        return (i < max_iter) & reduce_any(norm(state[1], axis=-1) > limit)

    def step(i: Tensor, x: Tensor, r: Tensor, p: Tensor, gamma: Tensor) -> tuple[Tensor, ...]:
        moved = operator.matvec(p)
        alpha = gamma / _dot(p, moved)
        x, r = x + alpha * p, r - alpha * moved
        z = preconditioned(r)
        after = _dot(r, z)
        return i + 1, x, r, z + after / gamma * p, after

    start = zeros_like(b) if x is None else convert_to_tensor(x, b.dtype)
    r = b if x is None else b - operator.matvec(start)
    z = preconditioned(r)
    state = while_loop(unfinished, step, (constant(0), start, r, z, _dot(r, z)))
    i, found, r, p, gamma = state
    return CGState(i, found, r, p, gamma[..., 0])


__getattr__ = missing_in(__name__)
