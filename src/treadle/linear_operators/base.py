"""LinearOperator: a matrix that is known by what it does, and by what is known of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import ml_dtypes

from treadle.core import dtypes, nest
from treadle.core.composite_spec import CompositeSpec
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, TensorShape, broadcast
from treadle.core.tensor import Tensor
from treadle.core.trace_types import TypeSpec
from treadle.linear_operators.batches import batch_part
from treadle.ops import asserts
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import real
from treadle.ops.linalg import matrix_functions as matrices
from treadle.ops.linalg.diagonals import diag_part
from treadle.ops.reductions.reduction import reduce_max, reduce_min, reduce_sum
from treadle.ops.requirements import require
from treadle.ops.shaping.creation import eye
from treadle.ops.shaping.joining import stack
from treadle.ops.state import Variable
from treadle.ops.type_specs import type_spec_from_value

# Solves, inverts and takes roots of matrices whose rows add up to so many roundings at most.
_ROUNDINGS = 1e3


class LinearOperator:
    """A matrix, or a batch of them, of shape ``[..., range, domain]``.

    Classes of users derive from it with methods ``_shape`` (the static shape) and ``_matmul``, and
    those among ``_solve``, ``_to_dense``, ``_diag_part``, ``_log_abs_determinant``,
    ``_determinant`` and ``_trace`` that they know a shorter way for than by all elements.

    An operator of `td.linalg` is a structure (`td.nest`) of the tensors that it was made of:
    functions take and give it, loops carry it. Variables are read when it is used.

    Args:
        dtype: of the elements.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: what is known; None where
            it is not. Nothing is checked but that they do not contradict one another.
        graph_parents, parameters: accepted for TensorFlow programs.

    Raises:
        ValueError: they do contradict one another.
    """

    # The attributes with tensors, variables or operators, and those that are part of its type.
    parts: ClassVar[tuple[str, ...]] = ()
    settings: ClassVar[tuple[str, ...]] = ()
    # How many axes of each of these tensors are one matrix's; operators count for themselves.
    event_axes: ClassVar[tuple[int, ...]] = ()
    # The classes of what operators make: "product", "adjoint", "inverse", "triangle".
    made: ClassVar[dict[str, Callable[..., LinearOperator]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.parts or cls.settings:
            nest.register_node(cls, _parts, _rebuilt, _static)

    @property
    def _type_spec(self) -> LinearOperatorSpec:
        return LinearOperatorSpec(self)

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
        parameters: Any = None,
    ) -> None:
        self._dtype, self.name = dtypes.as_dtype(dtype), name or type(self).__name__
        if is_positive_definite:
            if is_non_singular is False:
                raise self._wrong("a positive definite matrix is always non-singular")
            is_non_singular = True
        for claim, what in ((is_non_singular, "non-singular"), (is_self_adjoint, "self-adjoint")):
            if claim:
                if is_square is False:
                    raise self._wrong(f"a {what} matrix is always square")
                is_square = True
        self.is_non_singular, self.is_self_adjoint = is_non_singular, is_self_adjoint
        self.is_positive_definite, self._is_square = is_positive_definite, is_square

    # -- what is known -------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape, batches included."""
        return TensorShape(self._shape())

    @property
    def batch_shape(self) -> TensorShape:
        return TensorShape(self.shape.exact[:-2])

    @property
    def tensor_rank(self) -> int | None:
        """How many axes the dense matrices have."""
        return self.shape.rank

    @property
    def range_dimension(self) -> Any:
        """How many rows there are; None where only a run can tell."""
        return self.shape[-2]

    @property
    def domain_dimension(self) -> Any:
        """How many columns there are; None where only a run can tell."""
        return self.shape[-1]

    @property
    def is_square(self) -> bool | None:
        """Whether there are as many rows as columns; None where that is not known."""
        rows, columns = self._size()
        if self._is_square is not None or rows != columns:
            known = isinstance(rows, int) and isinstance(columns, int)
            return (rows == columns) if known else self._is_square
        return True

    def shape_tensor(self, name: str | None = None) -> Tensor:
        """The shape as a vector of int32."""
        return stack([dims_tensor(d, dtypes.int32) for d in self.shape.exact])

    def batch_shape_tensor(self, name: str | None = None) -> Tensor:
        dims = self.batch_shape.exact
        if not dims:
            return constant([], dtypes.int32)
        return stack([dims_tensor(d, dtypes.int32) for d in dims])

    def tensor_rank_tensor(self, name: str | None = None) -> Tensor:
        return constant(self.tensor_rank, dtypes.int32)

    def range_dimension_tensor(self, name: str | None = None) -> Tensor:
        return dims_tensor(self._size()[0], dtypes.int32)

    def domain_dimension_tensor(self, name: str | None = None) -> Tensor:
        return dims_tensor(self._size()[1], dtypes.int32)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that it was made of."""
        return tuple(x for x in nest.flatten(_parts(self)) if isinstance(x, Variable))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.trainable)

    # -- products and equations ----------------------------------------------------------------

    def matmul(
        self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str | None = None
    ) -> Any:
        """The product with matrices x [..., domain, k], which batches broadcast with.

        Args:
            adjoint: multiply with the adjoint of the operator instead.
            adjoint_arg: x is the adjoint of what is multiplied.

        Returns:
            A tensor [..., range, k]; an operator where x is one.

        Raises:
            TypeError: x is of another dtype.
            ValueError: it has another number of rows.
        """
        if isinstance(x, LinearOperator):
            return self._turned(adjoint)._times(x._turned(adjoint_arg))
        operand = self._operand(x, adjoint, -1 if adjoint_arg else -2)
        return self._matmul(operand, adjoint, adjoint_arg)

    def __getitem__(self, index: Any) -> Any:
        """The operator of some matrices of the batch: numbers, slices, None and an ellipsis are for
        the axes of `batch_shape`.

        Raises:
            TypeError: the class does not say how its tensors are batches.
        """
        if len(self.event_axes) != len(self.parts) or not (self.parts or self.settings):
            raise TypeError(self._text("parts of batches are not known for this class"))
        return batch_part(self, index)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def matvec(self, x: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
        """The product with vectors x [..., domain]: [..., range].

        Raises:
            TypeError, ValueError: as for `matmul`.
        """
        operand = self._operand(x, adjoint, -1)
        return self._matmul(operand[..., None], adjoint, False)[..., 0]

    def solve(
        self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str | None = None
    ) -> Any:
        """X with ``operator @ X = rhs``, for square operators.

        Args:
            adjoint: solve with the adjoint of the operator instead.
            adjoint_arg: `rhs` is the adjoint of the right side.

        Raises:
            NotImplementedError: the operator is known not to be square, or to be singular.
            TypeError, ValueError: as for `matmul`.
        """
        self._check_solvable()
        if isinstance(rhs, LinearOperator):
            return self._turned(adjoint).inverse()._times(rhs._turned(adjoint_arg))
        operand = self._operand(rhs, not adjoint, -1 if adjoint_arg else -2)
        return self._solve(operand, adjoint, adjoint_arg)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
        """x with ``operator @ x = rhs`` for vectors [..., range].

        Raises:
            NotImplementedError, TypeError, ValueError: as for `solve`.
        """
        self._check_solvable()
        operand = self._operand(rhs, not adjoint, -1)
        return self._solve(operand[..., None], adjoint, False)[..., 0]

    # -- other operators -----------------------------------------------------------------------

    def adjoint(self, name: str | None = None) -> LinearOperator:
        """The operator of the conjugate transposes; itself where it is self-adjoint."""
        return self if self.is_self_adjoint else self._adjoint()

    @property
    def H(self) -> LinearOperator:
        """The operator of the conjugate transposes."""
        return self.adjoint()

    def inverse(self, name: str | None = None) -> LinearOperator:
        """The operator of the inverses.

        Raises:
            ValueError: the operator is known not to be square, or to be singular.
        """
        if self.is_square is False or self.is_non_singular is False:
            raise self._wrong("an operator that is not square, or singular, has no inverse")
        return self._inverse()

    def cholesky(self, name: str | None = None) -> LinearOperator:
        """The operator of lower triangles L with ``L @ L.H`` this operator.

        Raises:
            ValueError: it is not known to be positive definite and self-adjoint.
        """
        if not (self.is_positive_definite and self.is_self_adjoint):
            raise self._wrong("cholesky needs is_self_adjoint=True and is_positive_definite=True")
        return self._cholesky()

    # -- dense matrices and numbers ------------------------------------------------------------

    def to_dense(self, name: str | None = None) -> Tensor:
        """The matrices [..., range, domain]."""
        return self._to_dense()

    def add_to_tensor(self, x: Any, name: str | None = None) -> Tensor:
        """The matrices plus x, which broadcasts."""
        return self.to_dense() + convert_to_tensor(x, self.dtype)

    def diag_part(self, name: str | None = None) -> Tensor:
        """The elements of the main diagonals."""
        return self._diag_part()

    def trace(self, name: str | None = None) -> Tensor:
        """The sums of the main diagonals."""
        return self._trace()

    def determinant(self, name: str | None = None) -> Tensor:
        """The determinants.

        Raises:
            NotImplementedError: the operator is known not to be square.
        """
        self._check_square("determinant")
        return self._determinant()

    def log_abs_determinant(self, name: str | None = None) -> Tensor:
        """The logarithms of the absolute values of the determinants, in the operator's dtype.

        Raises:
            NotImplementedError: the operator is known not to be square.
        """
        self._check_square("log_abs_determinant")
        return cast(self._log_abs_determinant(), self.dtype)

    def eigvals(self, name: str | None = None) -> Tensor:
        """The eigenvalues of a self-adjoint operator.

        Raises:
            NotImplementedError: it is not known to be self-adjoint.
        """
        if not self.is_self_adjoint:
            raise NotImplementedError(self._text("eigvals needs a self-adjoint operator"))
        return self._eigvals()

    def cond(self, name: str | None = None) -> Tensor:
        """The largest singular values divided by the smallest."""
        values = self._singular_values()
        return reduce_max(values, -1) / reduce_min(values, -1)

    def assert_non_singular(self, name: str | None = None) -> None:
        """Raise InvalidArgumentError where the condition shows that a matrix is singular."""
        limit = 1.0 / (_ROUNDINGS * self._rounding())
        asserts.assert_less(self.cond(), limit, message="Singular matrix")

    def assert_positive_definite(self, name: str | None = None) -> None:
        """Raise InvalidArgumentError unless all matrices are positive definite."""
        least = reduce_min(real(matrices.eigvalsh(self._symmetric_part())), -1)
        asserts.assert_positive(least, message=f"{self.name} was not positive definite")

    def assert_self_adjoint(self, name: str | None = None) -> None:
        """Raise InvalidArgumentError unless all matrices equal their adjoints."""
        dense = self.to_dense()
        message = f"{self.name} was not equal to its adjoint"
        asserts.assert_equal(dense, matrices.adjoint(dense), message=message)

    # -- for classes to define -----------------------------------------------------------------

    def _shape(self) -> Any:
        raise NotImplementedError(self._text("_shape is not defined"))

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        raise NotImplementedError(self._text("_matmul is not defined"))

    def _to_dense(self) -> Tensor:
        return self.matmul(eye(self._size()[1], dtype=self.dtype))  # type: ignore[no-any-return]

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        dense, rhs = self.to_dense(), matrices.adjoint(rhs) if adjoint_arg else rhs
        if self.is_self_adjoint and self.is_positive_definite:
            return matrices.cholesky_solve(matrices.cholesky(dense), rhs)
        return matrices.solve(dense, rhs, adjoint)

    def _diag_part(self) -> Tensor:
        return diag_part(self.to_dense())

    def _trace(self) -> Tensor:
        return reduce_sum(self.diag_part(), -1)

    def _determinant(self) -> Tensor:
        return matrices.det(self.to_dense())

    def _log_abs_determinant(self) -> Tensor:
        return matrices.slogdet(self.to_dense())[1]

    def _eigvals(self) -> Tensor:
        return matrices.eigvalsh(self.to_dense())

    def _singular_values(self) -> Tensor:
        return matrices.svd(self.to_dense(), compute_uv=False)  # type: ignore[no-any-return]

    def _times(self, other: LinearOperator) -> LinearOperator:
        return self.made["product"]([self, other])

    def _adjoint(self) -> LinearOperator:
        return self.made["adjoint"](self)

    def _inverse(self) -> LinearOperator:
        return self.made["inverse"](self)

    def _cholesky(self) -> LinearOperator:
        return self.made["triangle"](matrices.cholesky(self.to_dense()), is_non_singular=True)

    # -- checks and errors ---------------------------------------------------------------------

    def _size(self) -> tuple[Dim, Dim]:
        """The exact numbers of rows and columns."""
        rows, columns = self.shape.exact[-2:]
        return rows, columns

    def _operand(self, x: Any, of_rows: bool | None, axis: int) -> Tensor:
        """An operand as a tensor, of the operator's dtype and as long along `axis` as the operator
        has columns, or rows."""
        operand = convert_to_tensor(x)
        if operand.dtype is not self.dtype:
            raise TypeError(
                self._text(f"an operand is {operand.dtype.name}, not {self.dtype.name}")
            )
        size = self._size()[0 if of_rows else 1]
        if operand.ndim < -axis or not TensorShape((size,)).is_compatible_with(
            operand.dims[axis : axis + 1 or None]
        ):
            raise self._wrong(f"an operand of shape {operand.shape} does not fit {self.shape}")
        text = self._text("the operand has another size")
        return require(operand, [(operand.dims[axis], size)], text)

    def _turned(self, adjoint: bool) -> LinearOperator:
        return self.adjoint() if adjoint else self

    def _symmetric_part(self) -> Tensor:
        dense = self.to_dense()
        return (dense + matrices.adjoint(dense)) / 2

    def _rounding(self) -> float:
        real = self.dtype.real_dtype.np_dtype
        return float(ml_dtypes.finfo(real).eps)  # type: ignore[no-untyped-call]

    def _check_square(self, what: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(self._text(f"{what}: the operator is not square"))

    def _check_solvable(self) -> None:
        self._check_square("solve")
        if self.is_non_singular is False:
            raise NotImplementedError(self._text("solve: the operator is singular"))

    def _text(self, text: str) -> str:
        return f"{type(self).__name__}: {text}{at(user_origin())}"

    def _wrong(self, text: str) -> ValueError:
        return ValueError(self._text(text))

    def __repr__(self) -> str:
        return f"<td.linalg.{type(self).__name__} shape={self.shape} dtype={self.dtype.name}>"


def held(value: Any, dtype: Any = None) -> Any:
    """What an operator is made of: variables as they are, else a tensor."""
    return value if isinstance(value, Variable) else convert_to_tensor(value, dtype)


def batch_of(*shapes: TensorShape) -> tuple[Dim, ...]:
    """The dims that batches broadcast to."""
    dims: tuple[Dim, ...] = ()
    for shape in shapes:
        dims = broadcast(dims, shape.exact)
    return dims


def _parts(operator: Any) -> list[Any]:
    return [getattr(operator, name) for name in operator.parts]


def _rebuilt(like: Any, parts: list[Any]) -> Any:
    made = copy.copy(like)
    for name, part in zip(like.parts, parts, strict=True):
        setattr(made, name, part)
    return made


def _static(operator: Any) -> Hashable:
    claims = (
        operator.is_non_singular, operator.is_self_adjoint, operator.is_positive_definite,
        operator._is_square,
    )  # fmt: skip
    own = tuple(getattr(operator, name) for name in operator.settings)
    return type(operator), operator.dtype, claims, own


class LinearOperatorSpec(CompositeSpec):
    """The type of an operator: its class and what is known of it, with specs for its tensors."""

    def __init__(self, operator: Any) -> None:
        self._like = copy.copy(operator)
        for name in operator.parts:
            value = getattr(operator, name)
            setattr(self._like, name, nest.map_structure(_part_spec, value))

    @property
    def value_type(self) -> type:
        return type(self._like)

    @property
    def seen_as(self) -> type:
        return type(self._like)

    def __repr__(self) -> str:
        return f"LinearOperatorSpec({self.value_type.__name__}, {nest.flatten(self)})"


def _part_spec(part: Any) -> Any:
    return part if part is None else type_spec_from_value(part)


def _with_specs(spec: Any, parts: list[Any]) -> Any:
    """The spec with others for the tensors; the operator, where tensors are given."""
    made = _rebuilt(spec._like, parts)
    if not any(isinstance(leaf, TypeSpec) for leaf in nest.flatten(parts)):
        return made
    changed = copy.copy(spec)
    changed._like = made
    return changed


nest.register_node(
    LinearOperatorSpec,
    lambda spec: _parts(spec._like),
    _with_specs,
    lambda spec: _static(spec._like),
)
