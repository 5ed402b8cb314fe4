"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Affine, Expr, Index, Scan, const
from treadle.ops.axes import normalize_axis
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.arithmetic import conj
from treadle.ops.families import guard, require_kinds
from treadle.ops.lowering import Compute, LowerCall
from treadle.ops.registry import Op, OpCall, register, run


def _infer(x: TensorSpec, *, axis: int, exclusive: bool, reverse: bool) -> TensorSpec:
    require_kinds("fciu", x)
    return x


def _eager(fn: Callable[..., Any], start: int) -> Callable[..., NDArray]:
    def eager(x: NDArray, *, axis: int, exclusive: bool, reverse: bool) -> NDArray:
        narrow = x.dtype.itemsize == 2 and x.dtype.kind not in "iu"
        source = x.astype(np.float32) if narrow else x
        source = np.flip(source, axis) if reverse else source
        if exclusive and x.shape[axis]:
            first = np.full_like(np.take(source, [0], axis), start)
            source = np.concatenate([first, np.take(source, range(x.shape[axis] - 1), axis)], axis)
        total = fn(source, axis=axis, dtype=source.dtype)
        result: NDArray = np.flip(total, axis) if reverse else total
        return result.astype(x.dtype, copy=False)

    return eager


def _lower(op: str, start: int) -> Compute:
    def rule(call: LowerCall, index: Sequence[Index]) -> Expr:
        attrs, place = call.attrs, index[call.attrs["axis"]]
        value = call.inputs[0](index)
        if not isinstance(place, Affine) or not place.terms:  # the only position of a dim of 1
            return const(start, value.dtype) if attrs["exclusive"] else value
        # Fusion asks for a scan's elements where they are made only: along axes of the kernel.
        ((axis, _),) = place.terms
        return Scan(op, axis, value, attrs["exclusive"], attrs["reverse"])

    return Compute(rule, "scan")


def _grad_cumsum(call: OpCall, dy: Tensor) -> list[Any]:
    attrs = call.attrs
    return [cumsum(dy, attrs["axis"], attrs["exclusive"], not attrs["reverse"])]


def _grad_cumprod(call: OpCall, dy: Tensor) -> list[Any]:
    """The products that have an element, without it: divided by it, or for the first zero with a 1
    in its place. What comes after a zero has no influence."""
    from treadle.ops.elementwise.casting import cast
    from treadle.ops.elementwise.selection import where

    axis, exclusive, reverse = (call.attrs[k] for k in ("axis", "exclusive", "reverse"))
    x, one = call.inputs[0], convert_to_tensor(1, call.inputs[0].dtype)
    zero = x == convert_to_tensor(0, x.dtype)
    before = cumsum(cast(zero, dtypes.int64), axis, True, reverse)
    first = zero & (before == convert_to_tensor(0, dtypes.int64))
    without = cumprod(where(first, one, x), axis, exclusive, reverse)

    def total(products: Tensor) -> Tensor:
        return cumsum(conj(products) * dy, axis, exclusive, not reverse)

    divided = total(call.outputs[0]) / conj(where(zero, one, x))
    return [where(first, total(without), divided)]


CUMSUM = register(
    Op("cumsum", _infer, guard("fciu", _eager(np.cumsum, 0)), _grad_cumsum, _lower("add", 0))
)
CUMPROD = register(
    Op("cumprod", _infer, guard("fciu", _eager(np.cumprod, 1)), _grad_cumprod, _lower("mul", 1))
)


def cumsum(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running sums along `axis`; `exclusive` leaves each element itself out."""
    return _run(CUMSUM, x, axis, exclusive, reverse)


def cumprod(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running products along `axis`; `exclusive` leaves each element itself out."""
    return _run(CUMPROD, x, axis, exclusive, reverse)


def _run(op: Op, x: Any, axis: Any, exclusive: bool, reverse: bool) -> Tensor:
    tensor = convert_to_tensor(x)
    position = normalize_axis(axis, tensor.ndim)
    return run(op, tensor, axis=position, exclusive=bool(exclusive), reverse=bool(reverse))  # type: ignore[no-any-return]
