"""The order of axes, and of the elements along them: permute, reverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.kernel.ir import Expr, Index
from treadle.ops.axes import normalize_axes
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.lowering import Compute, LowerCall, add_index, scale_index
from treadle.ops.registry import Op, OpCall, register, run


def _lower_transpose(call: LowerCall, index: Sequence[Index]) -> Expr:
    source: list[Any] = [None] * len(index)
    for position, axis in enumerate(call.attrs["perm"]):
        source[axis] = index[position]
    return call.inputs[0](source)


def _grad_transpose(call: OpCall, dy: Tensor) -> list[Any]:
    perm = call.attrs["perm"]
    return [permute(dy, [perm.index(i) for i in range(len(perm))])]


TRANSPOSE = register(
    Op(
        "transpose",
        lambda x, *, perm: TensorSpec((x.dims[p] for p in perm), x.dtype),
        lambda x, *, perm: x.transpose(perm),
        _grad_transpose,
        Compute(_lower_transpose, "view"),
        tags=frozenset({"any_elements", "moves", "numpy_view"}),
    )
)


def permute(x: Tensor, order: Sequence[int]) -> Tensor:
    """`x` with its axes in this order; x itself where they are.

    Args:
        order: every number in [0, rank) once.
    """
    perm = tuple(order)
    return x if perm == tuple(range(x.ndim)) else run(TRANSPOSE, x, perm=perm)


def swap_last(x: Tensor) -> Tensor:
    """`x` with its last two axes exchanged."""
    order = list(range(x.ndim))
    order[-2:] = order[-1], order[-2]
    return permute(x, order)


def _lower_reverse(call: LowerCall, index: Sequence[Index]) -> Expr:
    dims, axes = call.specs[0].dims, call.attrs["axis"]
    return call.inputs[0](
        [
            add_index(scale_index(i, -1), dims[n] - 1) if n in axes else i
            for n, i in enumerate(index)
        ]
    )


REVERSE = register(
    Op(
        "reverse",
        lambda x, *, axis: x,
        lambda x, *, axis: np.flip(x, axis),
        lambda call, dy: [reverse(dy, call.attrs["axis"])],
        Compute(_lower_reverse, "view"),
        tags=frozenset({"any_elements", "moves"}),
    )
)


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """`tensor` with the order of elements reversed along the given axes."""
    x = convert_to_tensor(tensor)
    return run(REVERSE, x, axis=normalize_axes(axis, x.ndim))  # type: ignore[no-any-return]
