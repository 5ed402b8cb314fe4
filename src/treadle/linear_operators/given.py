"""Operators made of numbers: dense, diagonal, triangular, tridiagonal and Toeplitz matrices."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.shapes import Dim, TensorShape
from treadle.core.tensor import Tensor
from treadle.linear_operators.base import LinearOperator, batch_of, held
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor, size_of, sizes_of
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.elementwise.unary import abs as absolute
from treadle.ops.elementwise.unary import log, sqrt
from treadle.ops.indexing.gather import gathered
from treadle.ops.indexing.repeating import roll
from treadle.ops.linalg import matrix_functions as matrices
from treadle.ops.linalg.diagonals import diag, diag_part, set_diag
from treadle.ops.linalg.matrices import matmul
from treadle.ops.linalg.tridiagonal import (
    diagonal_rows,
    tridiagonal_matmul,
    tridiagonal_solve,
)
from treadle.ops.reductions.reduction import reduce_prod, reduce_sum
from treadle.ops.shaping.creation import ones, zeros
from treadle.ops.shaping.joining import concat, stack
from treadle.ops.shaping.permuting import reverse
from treadle.ops.shaping.ranges import range as number_range


class LinearOperatorFullMatrix(LinearOperator):
    """The operator of dense matrices.

    Args:
        matrix: [..., range, domain], a tensor or variable.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.

    Raises:
        ValueError: `matrix` has fewer than two axes.
    """

    parts = ("_held",)
    event_axes = (2,)

    def __init__(
        self, matrix: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str | None = "LinearOperatorFullMatrix",
    ) -> None:  # fmt: skip
        self._held = held(matrix)
        super().__init__(
            self._held.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
            is_square, name,
        )  # fmt: skip
        if len(self._held.shape) < 2:
            raise self._wrong(f"matrix must have at least 2 axes, not shape {self._held.shape}")

    @property
    def matrix(self) -> Any:
        """What it was made of."""
        return self._held

    def _shape(self) -> Any:
        return self._to_dense().dims

    def _to_dense(self) -> Tensor:
        return convert_to_tensor(self._held)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return matmul(self._to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)


class _Diagonal(LinearOperator):
    """Operators of square matrices that are zero off their diagonals."""

    def _diagonal(self) -> Tensor:
        """The diagonals [..., n]."""
        raise NotImplementedError

    def _shape(self) -> Any:
        dims = self._diagonal().dims
        return (*dims, dims[-1])

    def _turned_diagonal(self, adjoint: bool) -> Tensor:
        diagonal = self._diagonal()
        return conj(diagonal) if adjoint and self.dtype.is_complex else diagonal

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        operand = matrices.adjoint(x) if adjoint_arg else x
        return self._turned_diagonal(adjoint)[..., None] * operand

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        operand = matrices.adjoint(rhs) if adjoint_arg else rhs
        return operand / self._turned_diagonal(adjoint)[..., None]

    def _to_dense(self) -> Tensor:
        return diag(self._diagonal())

    def add_to_tensor(self, mat: Any, name: str | None = None) -> Tensor:
        """The matrices plus `mat`, which broadcasts."""
        dense = convert_to_tensor(mat, self.dtype)
        batch = batch_of(self.batch_shape, dense.shape[:-2])
        whole = broadcast_dims(dense, (*batch, *self._size()))
        return set_diag(whole, diag_part(whole) + self._diagonal())

    def _diag_part(self) -> Tensor:
        return self._diagonal()

    def _determinant(self) -> Tensor:
        return reduce_prod(self._diagonal(), -1)

    def _log_abs_determinant(self) -> Tensor:
        return reduce_sum(log(absolute(self._diagonal())), -1)

    def _eigvals(self) -> Tensor:
        return self._diagonal()

    def _singular_values(self) -> Tensor:
        return absolute(self._diagonal())

    def _times(self, other: LinearOperator) -> LinearOperator:
        if isinstance(other, _Diagonal):
            return LinearOperatorDiag(self._diagonal() * other._diagonal())
        return super()._times(other)

    def _adjoint(self) -> LinearOperator:
        return self._with(conj(self._diagonal()))

    def _inverse(self) -> LinearOperator:
        return self._with(1 / self._diagonal())

    def _cholesky(self) -> LinearOperator:
        return self._with(sqrt(self._diagonal()))

    def _with(self, diagonal: Tensor) -> LinearOperator:
        return LinearOperatorDiag(
            diagonal, self.is_non_singular, self.is_self_adjoint, self.is_positive_definite
        )


class LinearOperatorDiag(_Diagonal):
    """The operator of diagonal matrices.

    Args:
        diag: their diagonals [..., n], a tensor or variable.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`;
            those of real numbers are self-adjoint.

    Raises:
        ValueError: `diag` has no axis, or the operator is said not to be square.
    """

    parts = ("_held",)
    event_axes = (1,)

    def __init__(
        self, diag: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str | None = "LinearOperatorDiag",
    ) -> None:  # fmt: skip
        self._held = held(diag)
        if is_square is False:
            raise self._wrong("a diagonal matrix is square")
        if is_self_adjoint is None and not self._held.dtype.is_complex:
            is_self_adjoint = True
        super().__init__(
            self._held.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True,
            name,
        )  # fmt: skip
        if not len(self._held.shape):
            raise self._wrong("diag must have at least 1 axis, not a single number")

    @property
    def diag(self) -> Any:
        """What it was made of."""
        return self._held

    def _diagonal(self) -> Tensor:
        return convert_to_tensor(self._held)


class LinearOperatorScaledIdentity(_Diagonal):
    """The operator of identity matrices times numbers.

    Args:
        num_rows: the number of rows, an int or an integer scalar tensor.
        multiplier: the numbers [...], a tensor or variable.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`;
            those of real numbers are self-adjoint.
        assert_proper_shapes: accepted for TensorFlow programs.

    Raises:
        InvalidArgumentError: `num_rows` is negative.
        ValueError: the operator is said not to be square.
    """

    parts, settings = ("_held",), ("_rows",)
    event_axes = (0,)

    def __init__(
        self, num_rows: Any, multiplier: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = True, assert_proper_shapes: bool = False,
        name: str | None = "LinearOperatorScaledIdentity",
    ) -> None:  # fmt: skip
        self._held = held(multiplier)
        self._rows: Dim = size_of(num_rows, f"{type(self).__name__}: num_rows")
        if is_square is False:
            raise self._wrong("a multiple of the identity is square")
        if is_self_adjoint is None and not self._held.dtype.is_complex:
            is_self_adjoint = True
        super().__init__(
            self._held.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
            is_square, name,
        )  # fmt: skip

    @property
    def multiplier(self) -> Any:
        """The numbers that it was made of."""
        return self._held

    def _diagonal(self) -> Tensor:
        number = convert_to_tensor(self._held)
        return broadcast_dims(number[..., None], (*number.dims, self._rows))

    def _times(self, other: LinearOperator) -> LinearOperator:
        if isinstance(other, LinearOperatorScaledIdentity | LinearOperatorIdentity):
            number = other._multiplier() * convert_to_tensor(self._held)
            return LinearOperatorScaledIdentity(self._rows, number)
        return super()._times(other)

    def _multiplier(self) -> Tensor:
        return convert_to_tensor(self._held)

    def _with(self, diagonal: Tensor) -> LinearOperator:
        return LinearOperatorScaledIdentity(
            self._rows, diagonal[..., 0], self.is_non_singular, self.is_self_adjoint,
            self.is_positive_definite,
        )  # fmt: skip


class LinearOperatorIdentity(_Diagonal):
    """The operator of identity matrices.

    Args:
        num_rows: the number of rows, an int or an integer scalar tensor.
        batch_shape: how many there are, a vector of integers; one where omitted.
        dtype: float32 where omitted.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: accepted if they hold.
        assert_proper_shapes: accepted for TensorFlow programs.

    Raises:
        InvalidArgumentError: `num_rows` is negative.
        ValueError: something is said not to hold that does.
    """

    settings = ("_rows", "_batch")

    def __init__(
        self, num_rows: Any, batch_shape: Any = None, dtype: Any = None,
        is_non_singular: bool | None = True, is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True, is_square: bool | None = True,
        assert_proper_shapes: bool = False, name: str | None = "LinearOperatorIdentity",
    ) -> None:  # fmt: skip
        if not (is_non_singular and is_self_adjoint and is_positive_definite and is_square):
            raise self._wrong("the identity is positive definite, self-adjoint and non-singular")
        self._rows: Dim = size_of(num_rows, f"{type(self).__name__}: num_rows")
        self._batch = () if batch_shape is None else sizes_of(batch_shape, "batch_shape")
        super().__init__(dtype or dtypes.float32, None, True, True, True, True, name)

    def _diagonal(self) -> Tensor:
        return ones((*self._batch, self._rows), self.dtype)

    def _multiplier(self) -> Tensor:
        return ones(self._batch, self.dtype)

    def with_batch(self, dims: tuple[Dim, ...]) -> LinearOperatorIdentity:
        """As many of them."""
        self._batch = dims
        return self

    def _times(self, other: LinearOperator) -> LinearOperator:
        return super()._times(other) if self._batch else other

    def _with(self, diagonal: Tensor) -> LinearOperator:
        return self


class LinearOperatorZeros(LinearOperator):
    """The operator of matrices of zeros.

    Args:
        num_rows, num_columns: ints or integer scalar tensors; as many columns as rows where it is
            omitted.
        batch_shape: how many there are, a vector of integers; one where omitted.
        dtype: float32 where omitted.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.
        assert_proper_shapes: accepted for TensorFlow programs.

    Raises:
        InvalidArgumentError: a number is negative.
        ValueError: the operator is said to be square and is not, or not to be singular.
    """

    settings = ("_dims",)

    def __init__(
        self, num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = None,
        is_non_singular: bool | None = False, is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False, is_square: bool | None = True,
        assert_proper_shapes: bool = False, name: str | None = "LinearOperatorZeros",
    ) -> None:  # fmt: skip
        batch = () if batch_shape is None else sizes_of(batch_shape, "batch_shape")
        rows = size_of(num_rows, f"{type(self).__name__}: num_rows")
        columns = rows
        if num_columns is not None:
            columns = size_of(num_columns, f"{type(self).__name__}: num_columns")
        self._dims = (*batch, rows, columns)
        if is_non_singular or is_positive_definite:
            raise self._wrong("zeros are singular")
        if is_square and not TensorShape((rows,)).is_compatible_with((columns,)):
            raise self._wrong(f"is_square=True, but there are {rows} rows and {columns} columns")
        super().__init__(
            dtype or dtypes.float32, None, False, is_self_adjoint, False, is_square, name
        )

    def _shape(self) -> Any:
        return self._dims

    def with_batch(self, dims: tuple[Dim, ...]) -> LinearOperatorZeros:
        """As many of them."""
        self._dims = (*dims, *self._dims[-2:])
        return self

    def _to_dense(self) -> Tensor:
        return zeros(self._dims, self.dtype)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return matmul(self._to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)


class LinearOperatorLowerTriangular(LinearOperator):
    """The operator of lower triangles.

    Args:
        tril: [..., n, n], a tensor or variable, of which what is above the diagonal is not read.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.

    Raises:
        ValueError: `tril` has fewer than two axes, or the operator is said not to be square.
    """

    parts = ("_held",)
    event_axes = (2,)

    def __init__(
        self, tril: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str | None = "LinearOperatorLowerTriangular",
    ) -> None:  # fmt: skip
        self._held = held(tril)
        if is_square is False:
            raise self._wrong("a triangle is square")
        super().__init__(
            self._held.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True,
            name,
        )  # fmt: skip
        if len(self._held.shape) < 2:
            raise self._wrong(f"tril must have at least 2 axes, not shape {self._held.shape}")

    @property
    def tril(self) -> Any:
        """What it was made of."""
        return self._held

    def _shape(self) -> Any:
        return convert_to_tensor(self._held).dims

    def _to_dense(self) -> Tensor:
        return matrices.band_part(self._held, -1, 0)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return matmul(self._to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        operand = matrices.adjoint(rhs) if adjoint_arg else rhs
        return matrices.triangular_solve(self._held, operand, adjoint=adjoint)

    def _diag_part(self) -> Tensor:
        return diag_part(self._held)

    def _determinant(self) -> Tensor:
        return reduce_prod(self._diag_part(), -1)

    def _log_abs_determinant(self) -> Tensor:
        return reduce_sum(log(absolute(self._diag_part())), -1)

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _times(self, other: LinearOperator) -> LinearOperator:
        if isinstance(other, _Diagonal):
            return LinearOperatorLowerTriangular(self._to_dense() * other._diagonal()[..., None, :])
        return super()._times(other)


class LinearOperatorTridiag(LinearOperator):
    """The operator of matrices with a main diagonal and one on either side of it.

    Args:
        diagonals, diagonals_format: as in `tridiagonal_solve`.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.

    Raises:
        ValueError: another format, or the operator is said not to be square.
    """

    parts, settings = ("_held",), ("_format",)

    @property
    def event_axes(self) -> tuple[int, ...]:  # type: ignore[override]
        """See `LinearOperator`."""
        return (1 if self._format == "sequence" else 2,)

    def __init__(
        self, diagonals: Any, diagonals_format: str = "compact",
        is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str | None = "LinearOperatorTridiag",
    ) -> None:  # fmt: skip
        if diagonals_format not in ("compact", "sequence", "matrix"):
            raise self._wrong(f"{diagonals_format!r} is no format of diagonals")
        if is_square is False:
            raise self._wrong("a tridiagonal matrix is square")
        self._format = diagonals_format
        several = diagonals_format == "sequence"
        self._held: Any = [held(d) for d in diagonals] if several else held(diagonals)
        first: Any = self._held[0] if several else self._held
        super().__init__(
            first.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True, name
        )

    @property
    def diagonals(self) -> Any:
        """What it was made of."""
        return self._held

    @property
    def diagonals_format(self) -> str:
        return self._format

    def _rows(self, adjoint: bool = False) -> Tensor:
        """The diagonals above, at and below the main one: [..., 3, n]."""
        like = self._held[1] if self._format == "sequence" else self._held
        found, _ = diagonal_rows("LinearOperatorTridiag", self._held, self._format, like)
        return _turned(found) if adjoint else found

    def _shape(self) -> Any:
        dims = self._rows().dims
        return (*dims[:-2], dims[-1], dims[-1])

    def _to_dense(self) -> Tensor:
        if self._format == "matrix":
            return matrices.band_part(self._held, 1, 1)
        return diag(self._rows(), k=(-1, 1), align="LEFT_RIGHT")

    def _diag_part(self) -> Tensor:
        return self._rows()[..., 1, :]

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return tridiagonal_matmul(self._rows(adjoint), matrices.adjoint(x) if adjoint_arg else x)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        rows, operand = self._rows(adjoint), matrices.adjoint(rhs) if adjoint_arg else rhs
        batch = batch_of(rows.shape[:-2], operand.shape[:-2])
        return tridiagonal_solve(rows, broadcast_dims(operand, (*batch, *operand.dims[-2:])))


class LinearOperatorToeplitz(LinearOperator):
    """The operator of matrices whose diagonals are constant.

    Args:
        col: [..., n], the first column.
        row: [..., n], the first row, whose first element is not read.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`.

    Raises:
        ValueError: the operator is said not to be square, or a scalar is given.
    """

    parts = ("_column", "_row")
    event_axes = (1, 1)

    def __init__(
        self, col: Any, row: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = "LinearOperatorToeplitz",
    ) -> None:  # fmt: skip
        if is_square is False:
            raise self._wrong("a Toeplitz matrix is square")
        self._column, self._row = held(col), held(row)
        for vector in (self._column, self._row):
            if len(vector.shape) < 1:
                raise self._wrong("row and col must have at least 1 axis, not be scalars")
        super().__init__(
            self._row.dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True,
            name,
        )  # fmt: skip

    @property
    def col(self) -> Any:
        """The first column, as it was given."""
        return self._column

    @property
    def row(self) -> Any:
        """The first row, as it was given."""
        return self._row

    def _vectors(self) -> tuple[Tensor, Tensor]:
        """The column and the row, of one shape."""
        column, row = convert_to_tensor(self._column), convert_to_tensor(self._row)
        dims = (*batch_of(column.shape[:-1], row.shape[:-1]), row.dims[-1])
        return broadcast_dims(column, dims), broadcast_dims(row, dims)

    def _shape(self) -> Any:
        dims = self._vectors()[1].dims
        return (*dims, dims[-1])

    def _to_dense(self) -> Tensor:
        column, row = self._vectors()
        size = row.dims[-1]
        # The diagonals from the lower left corner on; an element's number is that of its diagonal.
        diagonals = concat([reverse(column, [-1]), row[..., 1:]], -1)
        places = number_range(dims_tensor(size, dtypes.int32))
        numbers = places[None, :] - places[:, None] + dims_tensor(size - 1, dtypes.int32)
        return gathered(diagonals, numbers, axis=-1)

    def _diag_part(self) -> Tensor:
        column, _ = self._vectors()
        return broadcast_dims(column[..., :1], column.dims)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return matmul(self._to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)


def _turned(rows: Tensor) -> Tensor:
    """The diagonals of the adjoint: what was above the main one is below it."""
    above, main, below = (rows[..., k, :] for k in range(3))
    if rows.dtype.is_complex:
        above, main, below = conj(above), conj(main), conj(below)
    return stack([roll(below, -1, -1), main, roll(above, 1, -1)], -2)


LinearOperator.made["triangle"] = LinearOperatorLowerTriangular
