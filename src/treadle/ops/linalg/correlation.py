"""Sliding products along the last axis: what convolutions and correlations of NumPy's are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import errors
from treadle.core.shapes import Dim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Expr, Index, Reduce, apply, as_index
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.lowering import Compute, LowerCall, sum_index
from treadle.ops.op_makers import guard, needs, require_kinds
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.padding import pad
from treadle.ops.shaping.permuting import reverse


def _infer(x: TensorSpec, weights: TensorSpec) -> TensorSpec:
    require_kinds("fciu", x, weights)
    if x.rank == 0 or x.dims[:-1] != weights.dims[:-1]:
        raise errors.InvalidArgumentError(None, None, "the operands must be vectors, or as many")
    n, m = x.dims[-1], weights.dims[-1]
    count: Dim = n - m + 1
    if isinstance(m, int) and m < 1 or isinstance(count, int) and count < 0:
        raise errors.InvalidArgumentError(None, None, f"{m} weights for {n} values")
    return TensorSpec((*x.dims[:-1], count), x.dtype)


def _eager(x: NDArray, weights: NDArray) -> NDArray:
    if x.shape[:-1] != weights.shape[:-1]:
        raise ValueError("the operands are not as many vectors")
    (*outer, n), m = x.shape, weights.shape[-1]
    found = np.zeros((*outer, max(n - m + 1, 0)), x.dtype)
    flipped = np.conj(weights) if weights.dtype.kind == "c" else weights
    for place in np.ndindex(*outer) if found.size else ():
        found[place] = np.correlate(x[place], flipped[place], "valid")
    return found


def _rule(call: LowerCall, index: Sequence[Index]) -> Expr:
    over = call.axis(call.specs[1].dims[-1])
    *outer, first = index
    place = as_index(over)
    value = call.inputs[0]([*outer, sum_index(first, place)])
    return Reduce("sum", (over,), apply("mul", value, call.inputs[1]([*outer, place])))


def _grad(call: OpCall, dy: Tensor) -> list[Any]:
    x, weights = call.inputs
    dx = None
    if needs(call, 0):
        more, last = weights.dims[-1] - 1, x.ndim - 1
        padded = pad(dy, [*[[0, 0]] * last, [more, more]])
        dx = sliding_products(padded, reverse(conj(weights), [last]))
    return [dx, sliding_products(conj(x), dy) if needs(call, 1) else None]


SLIDING = register(
    Op("sliding_products", _infer, guard("fciu", _eager), _grad, Compute(_rule, "reduce"))
)


def sliding_products(x: Tensor, weights: Tensor) -> Tensor:
    """``result[..., i] = sum(x[..., i + j] * weights[..., j] for j)`` for the ``n - m + 1`` places
    that fit."""
    return run(SLIDING, x, weights)  # type: ignore[no-any-return]
