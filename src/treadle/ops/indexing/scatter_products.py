"""Scatters that multiply or divide the elements that are there, for variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.arithmetic import truncatediv
from treadle.ops.indexing.scatter import fit_updates, infer_update, parts_at, scattered
from treadle.ops.op_makers import require_kinds
from treadle.ops.properties import Part, PartKind, PartUse
from treadle.ops.registry import Op, register, run
from treadle.ops.shaping.creation import ones_like


def _op(name: str, kinds: str, combine: np.ufunc, use: PartUse) -> Op:
    def infer(x: TensorSpec, indices: TensorSpec, updates: TensorSpec) -> TensorSpec:
        require_kinds(kinds, x)
        return infer_update(x, indices, updates)

    part = Part(PartKind.ROWS, use, 2)
    why = "its result is assigned to a variable, which ends the way of gradients"
    return register(
        Op(name, infer, _eager(combine), sizes=scattered, part=part, no_gradient=why)
    )


def _eager(combine: np.ufunc) -> Callable[..., NDArray]:
    def eager(x: NDArray, indices: NDArray, updates: NDArray) -> NDArray:
        result = x.copy()
        fit_updates(indices, updates, x.shape)
        combine.at(*parts_at(result, indices), updates)
        return result

    return eager


SCATTER_MUL = _op("scatter_mul", "fiu", np.multiply, PartUse.MUL)
SCATTER_DIV = _op("scatter_div", "f", np.divide, PartUse.DIV)


def scatter_mul(x: Tensor, indices: Any, updates: Any) -> Tensor:
    """`x` with each element at `indices` multiplied by its updates, one after the other.

    Raises:
        InvalidArgumentError: a position outside the tensor, or updates of another shape.
    """
    return run(SCATTER_MUL, x, convert_to_tensor(indices), updates)  # type: ignore[no-any-return]


def scatter_div(x: Tensor, indices: Any, updates: Any) -> Tensor:
    """`x` with each element at `indices` divided by its updates, one after the other.

    Integers are rounded towards zero. As ``x / a / b`` is then ``x / (a * b)``, they are divided
    once, by the product of their updates.

    Raises:
        InvalidArgumentError: a position outside the tensor, updates of another shape, or an integer
            divided by zero.
    """
    if x.dtype.is_integer:
        return truncatediv(x, scatter_mul(ones_like(x), indices, updates))
    return run(SCATTER_DIV, x, convert_to_tensor(indices), updates)  # type: ignore[no-any-return]
