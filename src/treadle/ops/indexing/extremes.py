"""Scatters that keep the larger or the smaller one of two elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.arithmetic import maximum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import is_nan
from treadle.ops.indexing.bad_positions import kept
from treadle.ops.indexing.scatter import (
    fit_updates,
    gather_nd,
    infer_update,
    parts_at,
    scattered,
    tensor_scatter_nd_add,
)
from treadle.ops.op_makers import inferred, require_kinds
from treadle.ops.properties import Part, PartKind, PartUse
from treadle.ops.registry import Op, OpCall, register, run


def _infer(x: TensorSpec, indices: TensorSpec, updates: TensorSpec) -> TensorSpec:
    require_kinds("fiu", x)
    return infer_update(x, indices, updates)


def _eager(combine: np.ufunc) -> Callable[..., NDArray]:
    def eager(x: NDArray, indices: NDArray, updates: NDArray) -> NDArray:
        result = x.copy()
        fit_updates(indices, updates, x.shape)
        combine.at(*parts_at(result, indices), updates)
        return result

    return inferred(_infer, eager)


def _gradient(call: OpCall, dz: Tensor) -> list[Any]:
    """Shared equally between the element that was there and the updates, if they are the result."""
    x, indices, updates = call.inputs
    z, zero = call.outputs[0], convert_to_tensor(0, dz.dtype)
    old, new = x == z, updates == gather_nd(z, indices)
    count = tensor_scatter_nd_add(cast(old, dz.dtype), indices, cast(new, dz.dtype))
    share = dz / maximum(count, 1)  # nothing is equal to NaN
    return [where(old, share, zero), None, where(new, gather_nd(share, indices), zero)]


def _extreme(name: str, combine: np.ufunc, use: PartUse) -> Op:
    part = Part(PartKind.ROWS, use, 2)
    return register(Op(name, _infer, _eager(combine), _gradient, sizes=scattered, part=part))


SCATTER_MAX = _extreme("tensor_scatter_nd_max", np.maximum, PartUse.MAX)
SCATTER_MIN = _extreme("tensor_scatter_nd_min", np.minimum, PartUse.MIN)


def tensor_scatter_nd_max(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
) -> Tensor:
    """`tensor` with each element at `indices` replaced by an update that is larger.

    An update that is NaN changes nothing, and an element that is NaN stays.

    Args:
        bad_indices_policy: "IGNORE" leaves positions outside of the tensor out.

    Raises:
        InvalidArgumentError: a position outside the tensor, or updates of another shape.
    """
    return _scatter(SCATTER_MAX, tensor, indices, updates, -np.inf, bad_indices_policy)


def tensor_scatter_nd_min(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
) -> Tensor:
    """`tensor` with each element at `indices` replaced by an update that is smaller.

    An update that is NaN changes nothing, and an element that is NaN stays.

    Args:
        bad_indices_policy: "IGNORE" leaves positions outside of the tensor out.

    Raises:
        InvalidArgumentError: a position outside the tensor, or updates of another shape.
    """
    return _scatter(SCATTER_MIN, tensor, indices, updates, np.inf, bad_indices_policy)


def _scatter(
    op: Op, tensor: Any, indices: Any, updates: Any, neutral: float, policy: str
) -> Tensor:
    x = convert_to_tensor(tensor)
    new = convert_to_tensor(updates, x.dtype)
    if x.dtype.is_floating:
        new = where(is_nan(new), convert_to_tensor(neutral, x.dtype), new)
    return run(op, x, *kept(convert_to_tensor(indices), new, x.dims, policy))  # type: ignore[no-any-return]
