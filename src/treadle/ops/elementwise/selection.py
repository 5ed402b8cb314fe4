"""`where`: choosing between tensors by a mask, and finding where a mask is true."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import broadcast_and_told, fresh_symbol
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import apply
from treadle.ops.broadcasting import unbroadcast
from treadle.ops.conversion import common_dtype, convert_to_tensor, truths
from treadle.ops.elementwise.comparison import not_equal
from treadle.ops.lowering import Compaction, elementwise_rule
from treadle.ops.op_makers import guard, needs
from treadle.ops.registry import Op, OpCall, register, run


def _infer_where(condition: TensorSpec, x: TensorSpec, y: TensorSpec) -> TensorSpec:
    if not condition.dtype.is_bool:
        raise TypeError(f"the condition must be bool, not {condition.dtype.name}")
    if x.dtype is not y.dtype:
        raise TypeError(f"dtypes {x.dtype.name} and {y.dtype.name} differ")
    return TensorSpec(broadcast_and_told(condition.dims, x.dims, y.dims), x.dtype)


def _grad_where(call: OpCall, dz: Tensor) -> list[Any]:
    condition, x, y = call.inputs
    zero = convert_to_tensor(0, dz.dtype)
    dx = unbroadcast(where(condition, dz, zero), x) if needs(call, 1) else None
    dy = unbroadcast(where(condition, zero, dz), y) if needs(call, 2) else None
    return [None, dx, dy]


WHERE = register(
    Op(
        "where",
        _infer_where,
        guard("b", np.where),
        _grad_where,
        elementwise_rule(lambda call, c, x, y: apply("select", c, x, y)),
        tags=frozenset({"any_elements", "cheap"}),
    )
)


def _infer_nonzero(x: TensorSpec) -> TensorSpec:
    return TensorSpec((fresh_symbol("nonzero"), x.rank), dtypes.int64)


def _eager_nonzero(x: NDArray) -> NDArray:
    if not x.ndim:
        return np.zeros((int(bool(x)), 0), np.int64)
    return np.argwhere(x)


NONZERO = register(
    Op(
        "nonzero",
        _infer_nonzero,
        _eager_nonzero,
        lower=Compaction(0),
        tags=frozenset({"dynamic"}),
    )
)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """`x` where the condition holds and `y` elsewhere, all three broadcast together.

    With the condition alone: the positions of its true elements, int64 of shape
    ``[count, rank]``.
    """
    if x is None and y is None:
        return _positions(convert_to_tensor(condition))
    if x is None or y is None:
        raise ValueError(f"where: give both x and y, or neither{at(user_origin())}")
    a, b = common_dtype("where", x, y)
    return run(WHERE, truths(condition), a, b)  # type: ignore[no-any-return]


def _positions(x: Tensor) -> Tensor:
    """Where elements are true or not 0."""
    if not x.dtype.is_bool and x.dtype is not dtypes.string:
        x = not_equal(x, convert_to_tensor(np.zeros((), x.dtype.np_dtype)))
    return run(NONZERO, x)  # type: ignore[no-any-return]
