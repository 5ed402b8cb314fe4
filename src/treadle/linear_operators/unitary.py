"""Operators that keep lengths: reflections and permutations."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.tensor import Tensor
from treadle.linear_operators.base import LinearOperator, batch_of, held
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal
from treadle.ops.elementwise.unary import abs as absolute
from treadle.ops.elementwise.unary import square
from treadle.ops.indexing.gather import gathered
from treadle.ops.linalg import matrix_functions as matrices
from treadle.ops.linalg.matrices import matmul
from treadle.ops.linalg.norms import normalize
from treadle.ops.shaping.creation import ones, zeros
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.statistics.sorting import argsort


class _Unitary(LinearOperator):
    """Operators of square matrices whose adjoint is their inverse."""

    def _vector(self) -> Tensor:
        """What tells of each matrix what it does, [..., n]."""
        raise NotImplementedError

    def _shape(self) -> Any:
        dims = self._vector().dims
        return (*dims, dims[-1])

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self._matmul(rhs, not adjoint, adjoint_arg)

    def _log_abs_determinant(self) -> Tensor:
        return zeros(self._vector().dims[:-1], self.dtype)

    def _singular_values(self) -> Tensor:
        return ones(self._vector().dims, self.dtype.real_dtype)


class LinearOperatorHouseholder(_Unitary):
    """The operator of reflections: ``I - 2 v v.H`` for unit vectors v.

    Args:
        reflection_axis: [..., n], a tensor or variable, of any length but 0: the direction of v.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: accepted if they hold.

    Raises:
        ValueError: something is said not to hold that does, or the operator is said to be positive
            definite.
    """

    parts = ("_held",)
    event_axes = (1,)

    def __init__(
        self, reflection_axis: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = "LinearOperatorHouseholder",
    ) -> None:  # fmt: skip
        self._held = held(reflection_axis)
        if is_self_adjoint is False or is_non_singular is False or is_square is False:
            raise self._wrong("a reflection is self-adjoint and non-singular")
        if is_positive_definite is True:
            raise self._wrong("a reflection is not positive definite")
        super().__init__(self._held.dtype, None, is_non_singular, True, False, True, name)
        if len(self._held.shape) < 1:
            raise self._wrong("reflection_axis must have at least 1 axis, not be a scalar")

    @property
    def reflection_axis(self) -> Any:
        """What it was made of."""
        return self._held

    def _vector(self) -> Tensor:
        return convert_to_tensor(self._held)

    def _unit(self) -> Tensor:
        return normalize(self._vector(), axis=-1)[0]

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        operand = matrices.adjoint(x) if adjoint_arg else x
        column = self._unit()[..., None]
        return operand - 2 * column * matmul(column, operand, adjoint_a=True)

    def _diag_part(self) -> Tensor:
        return 1 - 2 * cast(square(absolute(self._unit())), self.dtype)

    def _trace(self) -> Tensor:
        dims = self._vector().dims
        size = cast(dims_tensor(dims[-1], dtypes.int32), self.dtype)
        return broadcast_dims(size - 2, dims[:-1])

    def _determinant(self) -> Tensor:
        return -ones(self._vector().dims[:-1], self.dtype)

    def _inverse(self) -> LinearOperator:
        return self

    def _eigvals(self) -> Tensor:
        dims = self._vector().dims
        turned = -ones((*dims[:-1], 1), self.dtype)
        return concat([turned, ones((*dims[:-1], dims[-1] - 1), self.dtype)], -1)


class LinearOperatorPermutation(_Unitary):
    """The operator that puts row ``perm[i]`` into row i.

    Args:
        perm: [..., n], integers, a permutation of 0, ..., n - 1 along the last axis.
        dtype: of the elements.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`; it
            is square and not singular.

    Raises:
        TypeError: `perm` does not hold integers.
        ValueError: the operator is said to be singular or not to be square.
    """

    parts = ("_held",)
    event_axes = (1,)

    def __init__(
        self, perm: Any, dtype: Any = dtypes.float32, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = "LinearOperatorPermutation",
    ) -> None:  # fmt: skip
        self._held = held(perm)
        if is_non_singular is False or is_square is False:
            raise self._wrong("a permutation is square and not singular")
        if not self._held.dtype.is_integer:
            raise TypeError(self._text(f"perm must hold integers, not {self._held.dtype.name}"))
        super().__init__(
            dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name
        )
        if len(self._held.shape) < 1:
            raise self._wrong("perm must have at least 1 axis, not be a scalar")

    @property
    def perm(self) -> Any:
        """What it was made of."""
        return self._held

    def _vector(self) -> Tensor:
        return convert_to_tensor(self._held)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        operand = matrices.adjoint(x) if adjoint_arg else x
        places = argsort(self._vector(), -1) if adjoint else self._vector()
        batch = batch_of(places.shape[:-1], operand.shape[:-2])
        places = broadcast_dims(places, (*batch, places.dims[-1]))
        operand = broadcast_dims(operand, (*batch, *operand.dims[-2:]))
        return gathered(operand, places, axis=-2, batch_dims=len(batch))

    def _inverse(self) -> LinearOperator:
        return LinearOperatorPermutation(argsort(self._vector(), -1), self.dtype)

    def _adjoint(self) -> LinearOperator:
        return self._inverse()

    def _diag_part(self) -> Tensor:
        places = self._vector()
        here = number_range(dims_tensor(places.dims[-1], places.dtype))
        return cast(equal(places, cast(here, places.dtype)), self.dtype)

