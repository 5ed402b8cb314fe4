"""Operators made of other operators."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from treadle.core import dtypes
from treadle.core.shapes import Dim, TensorShape
from treadle.core.tensor import Tensor
from treadle.linear_operators.base import LinearOperator, batch_of, held
from treadle.linear_operators.given import LinearOperatorDiag, LinearOperatorIdentity
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.linalg import matrix_functions as matrices
from treadle.ops.linalg.matrices import matmul
from treadle.ops.shaping.creation import zeros
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.permuting import swap_last
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.shaping.slicing import part_of


class LinearOperatorAdjoint(LinearOperator):
    """The operator of the conjugate transposes of another operator's matrices.

    Args:
        operator: the other one.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: those of `operator` where
            they are omitted.
    """

    parts = ("operator",)
    event_axes = (0,)

    def __init__(
        self, operator: LinearOperator, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self.operator = operator
        claims = _claims_of(
            operator, is_non_singular, is_self_adjoint, is_positive_definite, is_square
        )
        super().__init__(operator.dtype, name=name or f"{operator.name}_adjoint", **claims)

    def _shape(self) -> Any:
        dims = self.operator.shape.exact
        return (*dims[:-2], dims[-1], dims[-2])

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self.operator._matmul(x, not adjoint, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self.operator._solve(rhs, not adjoint, adjoint_arg)

    def _to_dense(self) -> Tensor:
        return matrices.adjoint(self.operator.to_dense())

    def _determinant(self) -> Tensor:
        found = self.operator.determinant()
        return conj(found) if self.dtype.is_complex else found

    def _log_abs_determinant(self) -> Tensor:
        return self.operator.log_abs_determinant()

    def _singular_values(self) -> Tensor:
        return self.operator._singular_values()

    def _adjoint(self) -> LinearOperator:
        return self.operator


class LinearOperatorInversion(LinearOperator):
    """The operator of the inverses of another operator's matrices.

    Args:
        operator: the other one.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: those of `operator` where
            they are omitted.

    Raises:
        ValueError: `operator` is known to be singular.
    """

    parts = ("operator",)
    event_axes = (0,)

    def __init__(
        self, operator: LinearOperator, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self.operator = operator
        if operator.is_non_singular is False or is_non_singular is False:
            raise self._wrong("the operator is singular")
        claims = _claims_of(
            operator, is_non_singular, is_self_adjoint, is_positive_definite, is_square
        )
        super().__init__(operator.dtype, name=name or f"{operator.name}_inv", **claims)

    def _shape(self) -> Any:
        return self.operator.shape.exact

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self.operator._solve(x, adjoint, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self.operator._matmul(rhs, adjoint, adjoint_arg)

    def _determinant(self) -> Tensor:
        return 1 / self.operator.determinant()

    def _log_abs_determinant(self) -> Tensor:
        return -self.operator.log_abs_determinant()

    def _singular_values(self) -> Tensor:
        return 1 / self.operator._singular_values()

    def _inverse(self) -> LinearOperator:
        return self.operator


class LinearOperatorComposition(LinearOperator):
    """The product of operators.

    Args:
        operators: from the left to the right.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`; the
            product of non-singular operators is non-singular.

    Raises:
        ValueError: there is none, or neighbours do not fit.
        TypeError: they are of several dtypes.
    """

    parts = ("operators",)
    event_axes = (0,)

    def __init__(
        self, operators: Sequence[LinearOperator], is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self.operators = list(operators)
        _check_dtypes(self, self.operators)
        for left, right in zip(self.operators, self.operators[1:], strict=False):
            if not left.shape[-1:].is_compatible_with(right.shape[-2:-1]):
                raise self._wrong(f"shapes {left.shape} and {right.shape} do not fit")
        known = [o.is_non_singular for o in self.operators]
        is_non_singular = _of_all(self, "is_non_singular", is_non_singular, known)
        if _is_with_its_adjoint(self.operators):  # A @ A.H
            names = ["is_self_adjoint", *(["is_positive_definite"] if is_non_singular else [])]
            is_self_adjoint = _of_all(self, names[0], is_self_adjoint, [True])
            is_positive_definite = _of_all(self, names[-1], is_positive_definite, names[1:])
        super().__init__(
            self.operators[0].dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
            is_square, name or "_o_".join(o.name for o in self.operators),
        )  # fmt: skip

    def _shape(self) -> Any:
        first, last = self.operators[0].shape.exact, self.operators[-1].shape.exact
        return (*batch_of(*(o.batch_shape for o in self.operators)), first[-2], last[-1])

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        result = matrices.adjoint(x) if adjoint_arg else x
        for operator in self.operators if adjoint else reversed(self.operators):
            result = operator.matmul(result, adjoint)
        return result

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        result = matrices.adjoint(rhs) if adjoint_arg else rhs
        for operator in reversed(self.operators) if adjoint else self.operators:
            result = operator.solve(result, adjoint)
        return result

    def _to_dense(self) -> Tensor:
        return functools.reduce(matmul, [o.to_dense() for o in self.operators])

    def _determinant(self) -> Tensor:
        if not all(o.is_square for o in self.operators):
            return super()._determinant()
        return functools.reduce(lambda a, b: a * b, [o.determinant() for o in self.operators])

    def _log_abs_determinant(self) -> Tensor:
        if not all(o.is_square for o in self.operators):
            return super()._log_abs_determinant()
        found = [o.log_abs_determinant() for o in self.operators]
        return functools.reduce(lambda a, b: a + b, found)

    def _times(self, other: LinearOperator) -> LinearOperator:
        return LinearOperatorComposition([*self.operators, other])

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorComposition([o.adjoint() for o in reversed(self.operators)])

    def _inverse(self) -> LinearOperator:
        if not all(o.is_square for o in self.operators):
            return super()._inverse()
        return LinearOperatorComposition([o.inverse() for o in reversed(self.operators)])


class _OneByOne(LinearOperator):
    """An operator made of others whose adjoint, inverse and Cholesky factor are made of theirs.

    Attributes:
        joint: what stands between their names in its name.
    """

    parts = ("operators",)
    event_axes = (0,)
    joint = ""

    def __init__(
        self, operators: Sequence[LinearOperator], is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self.operators = list(operators)
        _check_dtypes(self, self.operators)

        def known(claim: str, said: bool | None) -> bool | None:
            return _of_all(self, claim, said, [getattr(o, claim) for o in self.operators])

        super().__init__(
            self.operators[0].dtype,
            None,
            known("is_non_singular", is_non_singular),
            known("is_self_adjoint", is_self_adjoint),
            known("is_positive_definite", is_positive_definite),
            known("is_square", is_square),
            name or self.joint.join(o.name for o in self.operators),
        )

    def _of(self, operators: Sequence[LinearOperator]) -> LinearOperator:
        """The operator that is made of others in the same way."""
        raise NotImplementedError

    def _adjoint(self) -> LinearOperator:
        return self._of([o.adjoint() for o in self.operators])

    def _inverse(self) -> LinearOperator:
        return self._of([o.inverse() for o in self.operators])

    def _cholesky(self) -> LinearOperator:
        return self._of([o.cholesky() for o in self.operators])


class LinearOperatorBlockDiag(_OneByOne):
    """The operator of matrices whose diagonal blocks are those of square operators.

    Args:
        operators: of the blocks.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: what holds for all of
            `operators` where they are omitted.

    Raises:
        ValueError: there is no operator.
        TypeError: they are of several dtypes.
    """

    joint = "_ds_"

    def __init__(
        self, operators: Sequence[LinearOperator], is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = True, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            operators, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name
        )

    def _of(self, operators: Sequence[LinearOperator]) -> LinearOperator:
        return LinearOperatorBlockDiag(operators)

    def _shape(self) -> Any:
        sizes = [o._size() for o in self.operators]
        return (
            *batch_of(*(o.batch_shape for o in self.operators)),
            sum(rows for rows, _ in sizes), sum(columns for _, columns in sizes),
        )  # fmt: skip

    def _blocks(self, x: Tensor, of_rows: bool) -> list[Tensor]:
        """The rows of x that belong to each of the operators."""
        found: list[Tensor] = []
        start: Dim = 0
        for operator in self.operators:
            count = operator._size()[0 if of_rows else 1]
            found.append(part_of(x, x.ndim - 2, start, count))
            start = start + count
        return found

    def _joined(self, blocks: Sequence[Tensor]) -> Tensor:
        batch = batch_of(*(b.shape[:-2] for b in blocks))
        return concat([broadcast_dims(b, (*batch, *b.dims[-2:])) for b in blocks], -2)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        blocks = self._blocks(matrices.adjoint(x) if adjoint_arg else x, adjoint)
        pairs = zip(self.operators, blocks, strict=True)
        return self._joined([o.matmul(b, adjoint) for o, b in pairs])

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        blocks = self._blocks(matrices.adjoint(rhs) if adjoint_arg else rhs, not adjoint)
        pairs = zip(self.operators, blocks, strict=True)
        return self._joined([o.solve(b, adjoint) for o, b in pairs])

    def _to_dense(self) -> Tensor:
        batch, columns = self.batch_shape.exact, self._size()[1]
        rows: list[Tensor] = []
        before: Dim = 0
        for operator in self.operators:
            height, width = operator._size()
            block = broadcast_dims(operator.to_dense(), (*batch, height, width))
            left = zeros((*batch, height, before), self.dtype)
            right = zeros((*batch, height, columns - before - width), self.dtype)
            rows.append(concat([left, block, right], -1))
            before = before + width
        return concat(rows, -2)

    def _of_square_blocks(self) -> bool:
        return all(o.is_square for o in self.operators)

    def _determinant(self) -> Tensor:
        if not self._of_square_blocks():
            return super()._determinant()
        return functools.reduce(lambda a, b: a * b, [o.determinant() for o in self.operators])

    def _log_abs_determinant(self) -> Tensor:
        if not self._of_square_blocks():
            return super()._log_abs_determinant()
        found = [o.log_abs_determinant() for o in self.operators]
        return functools.reduce(lambda a, b: a + b, found)


class LinearOperatorKronecker(_OneByOne):
    """The Kronecker product of operators: every element of the first is multiplied by the whole of
    the second, and so on. Products and solves take the operators one by one.

    Args:
        operators: the factors, the outermost one first.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: what holds for all of
            `operators` where they are omitted.

    Raises:
        ValueError: there is no operator.
        TypeError: they are of several dtypes.
    """

    joint = "_x_"

    def _of(self, operators: Sequence[LinearOperator]) -> LinearOperator:
        return LinearOperatorKronecker(operators)

    def _shape(self) -> Any:
        sizes = [o._size() for o in self.operators]
        return (
            *batch_of(*(o.batch_shape for o in self.operators)),
            _product([rows for rows, _ in sizes]), _product([columns for _, columns in sizes]),
        )  # fmt: skip

    def _one_by_one(self, x: Tensor, step: Any, of_rows: bool) -> Tensor:
        """Apply each factor to its part of the rows of x, which it then moves to the end: behind
        the parts of the factors to come and the columns of x."""
        batch, columns = x.dims[:-2], x.dims[-1]
        rows: Dim = 1
        for position, operator in enumerate(self.operators):
            height, width = operator._size()
            taken, given = (height, width) if of_rows else (width, height)
            others = [o._size()[0 if of_rows else 1] for o in self.operators[position + 1 :]]
            rest = _product([*others, columns, rows])
            x = step(operator, reshape_to(x, (*batch, taken, rest)))
            batch, rows = x.dims[:-2], rows * given
            x = swap_last(x)
        return swap_last(reshape_to(x, (*batch, columns, rows)))

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = matrices.adjoint(x) if adjoint_arg else x
        return self._one_by_one(x, lambda o, part: o.matmul(part, adjoint), of_rows=adjoint)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        rhs = matrices.adjoint(rhs) if adjoint_arg else rhs
        return self._one_by_one(rhs, lambda o, part: o.solve(part, adjoint), of_rows=not adjoint)

    def _to_dense(self) -> Tensor:
        def product(a: Tensor, b: Tensor) -> Tensor:
            pairs = a[..., :, None, :, None] * b[..., None, :, None, :]
            (rows, columns), (high, wide) = a.dims[-2:], b.dims[-2:]
            return reshape_to(pairs, (*pairs.dims[:-4], rows * high, columns * wide))

        return functools.reduce(product, [o.to_dense() for o in self.operators])

    def _diag_part(self) -> Tensor:
        if not all(o.is_square for o in self.operators):
            return super()._diag_part()

        def product(a: Tensor, b: Tensor) -> Tensor:
            pairs = a[..., :, None] * b[..., None, :]
            return reshape_to(pairs, (*pairs.dims[:-2], a.dims[-1] * b.dims[-1]))

        return functools.reduce(product, [o.diag_part() for o in self.operators])

    def _trace(self) -> Tensor:
        if not all(o.is_square for o in self.operators):
            return super()._trace()
        return functools.reduce(lambda a, b: a * b, [o.trace() for o in self.operators])

    def _repeats(self) -> list[Tensor]:
        """How often the eigenvalues of each factor count in the determinant."""
        sizes = [o._size()[0] for o in self.operators]
        others = [_product(sizes[:i] + sizes[i + 1 :]) for i in range(len(sizes))]
        return [cast(dims_tensor(size, dtypes.int32), self.dtype) for size in others]

    def _determinant(self) -> Tensor:
        found = [o.determinant() for o in self.operators]
        powers = [pow(d, n) for d, n in zip(found, self._repeats(), strict=True)]
        return functools.reduce(lambda a, b: a * b, powers)

    def _log_abs_determinant(self) -> Tensor:
        found = [o.log_abs_determinant() for o in self.operators]
        terms = [d * cast(n, d.dtype) for d, n in zip(found, self._repeats(), strict=True)]
        return functools.reduce(lambda a, b: a + b, terms)


def _product(sizes: Sequence[Dim]) -> Dim:
    total: Dim = 1
    for size in sizes:
        total = total * size
    return total


class LinearOperatorLowRankUpdate(LinearOperator):
    """The operator ``L + U D V.H``: another operator plus a product of few columns.

    Equations are solved with those of L and a small matrix (Woodbury's formula).

    Args:
        base_operator: L, [..., m, n].
        u: U, [..., m, k], a tensor or variable.
        diag_update: the diagonal of D, [..., k]; ones where omitted.
        v: V, [..., n, k]; U where omitted.
        is_diag_update_positive: whether the elements of `diag_update` are known to be positive.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: see `LinearOperator`;
            known where L, D and U tell.

    Raises:
        ValueError: the shapes do not fit.
    """

    parts = ("base_operator", "_u", "_diag", "_v")
    event_axes = (0, 2, 1, 2)

    def __init__(
        self, base_operator: LinearOperator, u: Any, diag_update: Any = None, v: Any = None,
        is_diag_update_positive: bool | None = None, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = "LinearOperatorLowRankUpdate",
    ) -> None:  # fmt: skip
        base, dtype = base_operator, base_operator.dtype
        self.base_operator, self._u = base, held(u, dtype)
        self._diag = None if diag_update is None else held(diag_update, dtype)
        self._v = None if v is None else held(v, dtype)
        positive = diag_update is None or bool(is_diag_update_positive)
        if v is None and base.is_self_adjoint and (positive or not dtype.is_complex):
            is_self_adjoint = True if is_self_adjoint is None else is_self_adjoint
            if positive and base.is_positive_definite and is_positive_definite is None:
                is_positive_definite = True
        super().__init__(
            dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name
        )
        rows, columns = base.shape[-2:-1], base.shape[-1:]
        for matrix, size, what in ((self.u, rows, "u"), (self.v, columns, "v")):
            if not size.is_compatible_with(matrix.shape[-2:-1]):
                raise self._wrong(f"{what} of shape {matrix.shape} does not fit {base.shape}")
        batch_of(base.batch_shape, self.u.shape[:-2], self.v.shape[:-2])
        if self._diag is not None:
            diagonal, columns = TensorShape(self._diag.shape), TensorShape(self.u.shape)[-1:]
            if not columns.is_compatible_with(diagonal[-1:]):
                raise self._wrong(f"a diagonal {diagonal} does not fit u of shape {self.u.shape}")
            batch_of(self.batch_shape, diagonal[:-1])

    @property
    def u(self) -> Any:
        return self._u

    @property
    def v(self) -> Any:
        return self._u if self._v is None else self._v

    @property
    def diag_update(self) -> Any:
        return self._diag

    @property
    def diag_operator(self) -> LinearOperator:
        """The operator of D."""
        if self._diag is None:
            return LinearOperatorIdentity(TensorShape(self._u.shape).exact[-1], dtype=self.dtype)
        return LinearOperatorDiag(self._diag)

    def _shape(self) -> Any:
        base = self.base_operator.shape
        batch = batch_of(base[:-2], self.u.shape[:-2], self.v.shape[:-2])
        return (*batch, *base.exact[-2:])

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        left, right = (self.v, self.u) if adjoint else (self.u, self.v)
        operand = matrices.adjoint(x) if adjoint_arg else x
        few = self.diag_operator.matmul(matmul(right, operand, adjoint_a=True), adjoint)
        return self.base_operator.matmul(operand, adjoint) + matmul(left, few)  # type: ignore[no-any-return]

    def _to_dense(self) -> Tensor:
        update = matmul(self.u, self.diag_operator.matmul(self.v, adjoint_arg=True))
        return self.base_operator.to_dense() + update

    def _capacitance(self) -> Tensor:
        """``D^-1 + V.H L^-1 U``, a small matrix."""
        inside = matmul(self.v, self.base_operator.solve(self.u), adjoint_a=True)
        return self.diag_operator.inverse().add_to_tensor(inside)

    def _solve(self, rhs: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        left, right = (self.v, self.u) if adjoint else (self.u, self.v)
        operand = matrices.adjoint(rhs) if adjoint_arg else rhs
        found = self.base_operator.solve(operand, adjoint)
        few = matmul(right, found, adjoint_a=True)
        inside = matrices.solve(self._capacitance(), few, adjoint)
        return found - self.base_operator.solve(matmul(left, inside), adjoint)  # type: ignore[no-any-return]

    def _determinant(self) -> Tensor:
        inside = matrices.det(self._capacitance())
        return self.base_operator.determinant() * self.diag_operator.determinant() * inside

    def _log_abs_determinant(self) -> Tensor:
        inside = matrices.slogdet(self._capacitance())[1]
        others = self.base_operator, self.diag_operator
        return inside + others[0].log_abs_determinant() + others[1].log_abs_determinant()


def _claims_of(other: LinearOperator, *said: bool | None) -> dict[str, bool | None]:
    """What is said of an operator, and what is known of another where nothing is said."""
    known = {
        "is_non_singular": other.is_non_singular,
        "is_self_adjoint": other.is_self_adjoint,
        "is_positive_definite": other.is_positive_definite,
        "is_square": other._is_square,
    }
    pairs = zip(known.items(), said, strict=True)
    return {key: old if new is None else new for (key, old), new in pairs}


def _of_all(
    operator: LinearOperator, name: str, said: bool | None, known: Sequence[Any]
) -> bool | None:
    """What was said, else True where it holds for all.

    Raises:
        ValueError: it does, and it was said not to.
    """
    if said is False and known and all(known):
        raise operator._wrong(f"{name} is False, and what it is made of shows that it is True")
    return True if said is None and known and all(known) else said


def _is_with_its_adjoint(operators: Sequence[LinearOperator]) -> bool:
    """Whether operators are ``A, B, B.H, A.H``, so that their product is self-adjoint."""
    pairs = zip(operators, reversed(operators), strict=True)
    return len(operators) % 2 == 0 and all(a is b.H or b is a.H for a, b in pairs)


def _check_dtypes(operator: LinearOperator, others: Sequence[LinearOperator]) -> None:
    if not others:
        raise operator._wrong("at least one operator is needed")
    names = sorted({o.dtype.name for o in others})
    if len(names) > 1:
        raise TypeError(operator._text(f"operators of several dtypes: {', '.join(names)}"))


LinearOperator.made.update(
    product=LinearOperatorComposition,
    adjoint=LinearOperatorAdjoint,
    inverse=LinearOperatorInversion,
)
