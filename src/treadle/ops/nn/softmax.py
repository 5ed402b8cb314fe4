"""Softmax and log-softmax: one pass over each row, one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.core import errors
from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import (
    Affine,
    Axis,
    Expr,
    Index,
    Reduce,
    apply,
    as_index,
    const,
    index_axes,
)  # fmt: skip
from treadle.ops.axes import known_axis
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.elementwise.unary import exp
from treadle.ops.indexing.transposing import transpose
from treadle.ops.lowering import Access, Compute, LowerCall
from treadle.ops.op_makers import require_kinds
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.registry import Op, OpCall, register, run


class Row(NamedTuple):
    """A row being reduced: its axis, and the parts of ``exp(x - max(x))`` along it."""

    axis: Axis
    value: Expr  # x along the axis
    highest: Expr  # its maximum
    exp: Expr  # exp(x - highest) along the axis
    total: Expr  # the sum of exp


def row_axis(call: LowerCall, index: Sequence[Index], axis: int, extent: Any) -> Axis:
    """The output's own axis where it runs along the row, which stays in cache; or a new one."""
    along = index[axis]
    if isinstance(along, Affine) and along.offset == 0:
        outer = {a for place, i in enumerate(index) if place != axis for a in index_axes(i)}
        for candidate, coefficient in along.terms[:1]:
            own = len(along.terms) == 1 and coefficient == 1 and candidate not in outer
            if own and candidate.extent == extent:
                return candidate
    return call.axis(extent)


def at_axis(index: Sequence[Index], axis: int, position: Index) -> list[Index]:
    """`index` with the place `axis` replaced."""
    changed = list(index)
    changed[axis] = position
    return changed


def read_row(access: Access, index: Sequence[Index], place: int, axis: Axis) -> Row:
    """The row of `access` through `index`, running along `axis` at `place`."""
    value = access(at_axis(index, place, as_index(axis)))
    highest = Reduce("max", (axis,), value)
    shifted = apply("exp", apply("sub", value, highest))
    return Row(axis, value, highest, shifted, Reduce("sum", (axis,), shifted))


def probability(x: Expr, row: Row) -> Expr:
    """The softmax at the element `x` of a row."""
    inverse = apply("div", const(1, row.total.dtype), row.total)
    return apply("mul", apply("exp", apply("sub", x, row.highest)), inverse)


def _infer(x: TensorSpec, *, axis: int) -> TensorSpec:
    require_kinds("f", x)
    if not 0 <= axis < x.rank:
        raise errors.InvalidArgumentError(None, None, f"axis {axis} is outside shape {x.shape}")
    return x


def wide(x: NDArray, *others: NDArray) -> NDArray:
    """16-bit floats as float32, in which they are computed.

    Raises TypeError, which the shape rule then explains, where `x` is not floating or another
    operand has another dtype: NumPy would compute in a dtype of its own choice.
    """
    if x.dtype.kind in "iubc" or any(y.dtype != x.dtype for y in others):
        raise TypeError("operands must have one floating dtype")
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def shifted_exp(x: NDArray, axis: int) -> tuple[NDArray, NDArray, NDArray]:
    """``x - max``, its exp and the sum of that along `axis` (kept)."""
    shifted = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    e = np.exp(shifted)
    return shifted, e, np.sum(e, axis=axis, keepdims=True)


def probabilities(x: NDArray, axis: int) -> NDArray:
    """The softmax along `axis`. One division a row: the total is at least 1."""
    _, e, total = shifted_exp(x, axis)
    with np.errstate(divide="ignore"):  # rows without elements
        return np.multiply(e, np.reciprocal(total), out=e)


def _eager_softmax(x: NDArray, *, axis: int) -> NDArray:
    _check_axis(x, axis)
    return probabilities(wide(x), axis).astype(x.dtype, copy=False)


def _check_axis(x: NDArray, axis: int) -> None:
    if not 0 <= axis < x.ndim:
        raise errors.InvalidArgumentError(None, None, f"axis {axis} is outside shape {x.shape}")


def _eager_log_softmax(x: NDArray, *, axis: int) -> NDArray:
    _check_axis(x, axis)
    shifted, _, total = shifted_exp(wide(x), axis)
    return (shifted - np.log(total)).astype(x.dtype, copy=False)


def _lower(finish: Callable[[Expr, Row], Expr]) -> Compute:
    """``finish(x, row)`` gives the output element from its input element and the row."""

    def rule(call: LowerCall, index: Sequence[Index]) -> Expr:
        place = call.attrs["axis"]
        axis = row_axis(call, index, place, call.out.dims[place])
        row = read_row(call.inputs[0], index, place, axis)
        return finish(call.inputs[0](index), row)

    return Compute(rule, "reduce")


def _finish_softmax(x: Expr, row: Row) -> Expr:
    return probability(x, row)


def _finish_log_softmax(x: Expr, row: Row) -> Expr:
    return apply("sub", apply("sub", x, row.highest), apply("log", row.total))


def _grad_softmax(call: OpCall, dy: Tensor) -> list[Tensor]:
    y, axis = call.outputs[0], call.attrs["axis"]
    return [(dy - reduce_sum(dy * y, axis, keepdims=True)) * y]


def _grad_log_softmax(call: OpCall, dy: Tensor) -> list[Tensor]:
    y, axis = call.outputs[0], call.attrs["axis"]
    return [dy - exp(y) * reduce_sum(dy, axis, keepdims=True)]


SOFTMAX = register(Op("softmax", _infer, _eager_softmax, _grad_softmax, _lower(_finish_softmax)))
LOG_SOFTMAX = register(
    Op("log_softmax", _infer, _eager_log_softmax, _grad_log_softmax, _lower(_finish_log_softmax))
)


def normal_axis(axis: Any, rank: int) -> int:
    """`axis` counted from the front; what is out of range is left for the shape rule to refuse."""
    number = -1 if axis is None else known_axis(axis) if has_dtype(axis) else int(axis)
    return number + rank if number < 0 else number


def along_last(op: Op, x: Tensor, axis: int) -> Tensor:
    """`op` along any axis; one that is too long for blocks of columns is made the last."""
    if axis == x.ndim - 1 or not 0 <= axis < x.ndim or _stays(x.spec.dims, axis):
        return run(op, x, axis=axis)  # type: ignore[no-any-return]

    order = [i for i in range(x.ndim) if i != axis]
    moved = run(op, transpose(x, [*order, axis]), axis=x.ndim - 1)
    return transpose(moved, [*range(axis), x.ndim - 1, *range(axis, x.ndim - 1)])


def _stays(dims: Sequence[Dim], axis: int) -> bool:
    """Whether there are whole vectors of columns, whose blocks stay in cache."""
    columns, length = product(dims[axis + 1 :]), dims[axis]
    if not isinstance(columns, int) or not isinstance(length, int):
        return True
    return columns >= 32 and length <= 4096


def softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """``exp(logits) / sum(exp(logits), axis)`` without overflow; the last axis by default.

    Raises:
        InvalidArgumentError: the axis is out of range.
        TypeError: the dtype is not floating.
    """
    x = convert_to_tensor(logits)
    return along_last(SOFTMAX, x, normal_axis(axis, x.ndim))


def log_softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """``log(softmax(logits))`` without underflow; the last axis by default."""
    x = convert_to_tensor(logits)
    return along_last(LOG_SOFTMAX, x, normal_axis(axis, x.ndim))
