"""``x[i]`` with a scalar tensor i, and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Expr, Index, apply, cast, const
from treadle.ops.lowering import (
    Compute,
    LowerCall,
    dim_expr,
    index_expr,
)
from treadle.ops.op_makers import require_kinds
from treadle.ops.properties import Part, PartKind, PartUse, Refusal
from treadle.ops.registry import Op, OpCall, register, run


def check_positions(indices: NDArray, size: int, low: int = 0, what: str = "index") -> None:
    """InvalidArgumentError naming the first index outside [low, size).

    Raises TypeError, which the shape rule then explains, for positions that are no integers.
    """
    if indices.dtype.kind not in "iu":
        raise TypeError("positions must be integers")
    if not indices.size or (indices.min() >= low and indices.max() < size):
        return
    wrong = indices[(indices < low) | (indices >= size)].reshape(-1)[0]
    raise errors.InvalidArgumentError(
        None, None, f"{what} {int(wrong)} is out of range for a dim of {size}: [{low}, {size})"
    )


def _infer_index(x: TensorSpec, i: TensorSpec, *, axis: int) -> TensorSpec:
    require_kinds("iu", i)
    return TensorSpec((*x.dims[:axis], *x.dims[axis + 1 :]), x.dtype)


def _eager_index(x: NDArray, i: NDArray, *, axis: int) -> NDArray:
    check_positions(np.atleast_1d(i), x.shape[axis], -x.shape[axis])
    return x[(slice(None),) * axis + (int(i),)]


def _lower_index(call: LowerCall, index: Sequence[Index]) -> Expr:
    axis = call.attrs["axis"]
    position = cast(call.inputs[1](()), dtypes.int64)
    if not call.specs[1].dtype.is_unsigned:
        wrapped = apply("add", position, dim_expr(call.specs[0].dims[axis]))
        position = apply("select", apply("lt", position, const(0, dtypes.int64)), wrapped, position)
    return call.inputs[0]([*index[:axis], position, *index[axis:]])


def _grad_index(call: OpCall, dy: Tensor) -> list[Any]:
    x, i = call.inputs
    return [run(INDEX_GRAD, dy, i, axis=call.attrs["axis"], size=x.dims[call.attrs["axis"]]), None]


INDEX = register(
    Op(
        "index", _infer_index, _eager_index, _grad_index, Compute(_lower_index, "gather"),
        tags=frozenset({"any_elements", "numpy_view", "selects"}),
        refuses=Refusal.WRAPPING_POSITION, part=Part(PartKind.INDEX, PartUse.READ),
    )
)  # fmt: skip


def _eager_index_grad(dy: NDArray, i: NDArray, *, axis: int, size: int) -> NDArray:
    result = np.zeros((*dy.shape[:axis], size, *dy.shape[axis:]), dy.dtype)
    result[(slice(None),) * axis + (int(i),)] = dy
    return result


def _lower_index_grad(call: LowerCall, index: Sequence[Index]) -> Expr:
    axis = call.attrs["axis"]
    place = cast(call.inputs[1](()), dtypes.int64)
    wrapped = apply("add", place, dim_expr(call.attrs["size"]))
    place = apply("select", apply("lt", place, const(0, dtypes.int64)), wrapped, place)
    here = apply("eq", index_expr(index[axis]), place)
    value = call.inputs[0]([*index[:axis], *index[axis + 1 :]])
    return apply("select", here, value, const(0, value.dtype))


def _grad_index_grad(call: OpCall, dz: Tensor) -> list[Any]:
    return [run(INDEX, dz, call.inputs[1], axis=call.attrs["axis"]), None]


INDEX_GRAD = register(
    Op(
        "index_grad",
        lambda dy, i, *, axis, size: TensorSpec((*dy.dims[:axis], size, *dy.dims[axis:]), dy.dtype),
        _eager_index_grad,
        _grad_index_grad,
        Compute(_lower_index_grad, "gather"),
        part=Part(PartKind.INDEX, PartUse.PLACE, 0),
    )
)
