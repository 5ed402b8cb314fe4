"""The operator of lower triangles of blocks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from treadle.core.shapes import Dim
from treadle.core.tensor import Tensor
from treadle.linear_operators.base import LinearOperator, batch_of
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.linalg import matrix_functions as matrices
from treadle.ops.shaping.creation import zeros
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.slicing import part_of


class LinearOperatorBlockLowerTriangular(LinearOperator):
    """The operator of matrices made of blocks, of which those above the diagonal are zero.

    Equations are solved block by block.

    Args:
        operators: the rows of blocks from above, each up to its diagonal block, which is square.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`; it
            is not singular where no block of the diagonal is.

    Raises:
        TypeError: the operators are of several dtypes.
        ValueError: there is none, a row has another length, or shapes do not fit.
    """

    parts = ("operators",)
    event_axes = (0,)

    def __init__(
        self, operators: Sequence[Sequence[LinearOperator]], is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = "LinearOperatorBlockLowerTriangular",
    ) -> None:  # fmt: skip
        self.operators = [list(row) for row in operators]
        if not self.operators:
            raise self._wrong("at least one row of operators is needed")
        for number, row in enumerate(self.operators):
            if len(row) != number + 1:
                raise self._wrong(f"row {number} has {len(row)} operators, not {number + 1}")
        names = sorted({o.dtype.name for row in self.operators for o in row})
        if len(names) > 1:
            raise TypeError(self._text(f"operators of several dtypes: {', '.join(names)}"))
        diagonal = self._diagonal()
        if any(o.is_square is False for o in diagonal) or is_square is False:
            raise self._wrong("the blocks of the diagonal are square")
        for number, row in enumerate(self.operators):
            for other, block in enumerate(row):
                rows, columns = diagonal[number].shape[-1:], diagonal[other].shape[-1:]
                fits = block.shape[-2:-1].is_compatible_with(rows)
                if not (fits and block.shape[-1:].is_compatible_with(columns)):
                    place = f"block {number}, {other}"
                    raise self._wrong(f"{place} of shape {block.shape} does not fit")
        if is_non_singular is None and all(o.is_non_singular for o in diagonal):
            is_non_singular = True
        super().__init__(
            diagonal[0].dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, True,
            name,
        )  # fmt: skip

    def _diagonal(self) -> list[LinearOperator]:
        return [row[-1] for row in self.operators]

    def _sizes(self) -> list[Dim]:
        return [o._size()[0] for o in self._diagonal()]

    def _shape(self) -> Any:
        size = sum(self._sizes())
        return (*batch_of(*(o.batch_shape for row in self.operators for o in row)), size, size)

    def _blocks(self, x: Tensor) -> list[Tensor]:
        """The rows of x that belong to each block of the diagonal."""
        found: list[Tensor] = []
        start: Dim = 0
        for size in self._sizes():
            found.append(part_of(x, x.ndim - 2, start, size))
            start = start + size
        return found

    def _joined(self, blocks: Sequence[Tensor], axis: int = -2) -> Tensor:
        batch = batch_of(*(b.shape[:-2] for b in blocks))
        return concat([broadcast_dims(b, (*batch, *b.dims[-2:])) for b in blocks], axis)

    def _row(self, number: int, adjoint: bool) -> list[tuple[int, LinearOperator]]:
        """The blocks of a row off the diagonal: of the adjoint, those of a column."""
        if adjoint:
            below = range(number + 1, len(self.operators))
            return [(k, self.operators[k][number]) for k in below]
        return list(enumerate(self.operators[number][:-1]))

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        blocks = self._blocks(matrices.adjoint(x) if adjoint_arg else x)
        found = []
        for number, operator in enumerate(self._diagonal()):
            total = operator.matmul(blocks[number], adjoint)
            for other, block in self._row(number, adjoint):
                total = total + block.matmul(blocks[other], adjoint)
            found.append(total)
        return self._joined(found)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        blocks = self._blocks(matrices.adjoint(rhs) if adjoint_arg else rhs)
        diagonal, found = self._diagonal(), list(blocks)
        order = range(len(blocks))
        for number in reversed(order) if adjoint else order:
            rest = blocks[number]
            for other, block in self._row(number, adjoint):
                rest = rest - block.matmul(found[other], adjoint)
            found[number] = diagonal[number].solve(rest, adjoint)
        return self._joined(found)

    def _to_dense(self) -> Tensor:
        sizes = self._sizes()
        batch = self.batch_shape.exact
        rows = []
        for number, row in enumerate(self.operators):
            blocks = [o.to_dense() for o in row]
            blocks += [zeros((*batch, sizes[number], size), self.dtype)
                       for size in sizes[number + 1 :]]  # fmt: skip
            rows.append(self._joined(blocks, -1))
        return self._joined(rows)

    def _diag_part(self) -> Tensor:
        parts = [o.diag_part() for o in self._diagonal()]
        batch = batch_of(*(p.shape[:-1] for p in parts))
        return concat([broadcast_dims(p, (*batch, p.dims[-1])) for p in parts], -1)

    def _determinant(self) -> Tensor:
        return functools.reduce(lambda a, b: a * b, [o.determinant() for o in self._diagonal()])

    def _log_abs_determinant(self) -> Tensor:
        found = [o.log_abs_determinant() for o in self._diagonal()]
        return functools.reduce(lambda a, b: a + b, found)

    def _inverse(self) -> LinearOperator:
        if len(self.operators) == 1:
            return LinearOperatorBlockLowerTriangular([[self.operators[0][0].inverse()]])
        return super()._inverse()
