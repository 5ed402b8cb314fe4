"""Running sums, products and logarithms of sums of exponentials along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Affine, Expr, Index, Scan, const
from treadle.kernel.reference import neutral
from treadle.ops.axes import normalize_axis
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import conj
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import exp, log
from treadle.ops.lowering import Compute, LowerCall
from treadle.ops.op_makers import guard, require_kinds
from treadle.ops.registry import Op, OpCall, register, run


def _infer(x: TensorSpec, *, axis: int, exclusive: bool, reverse: bool) -> TensorSpec:
    require_kinds("fciu", x)
    return x


def _infer_float(x: TensorSpec, *, axis: int, exclusive: bool, reverse: bool) -> TensorSpec:
    require_kinds("f", x)
    return x


def scanned(fn: np.ufunc, op: str) -> Callable[..., NDArray]:
    def eager(x: NDArray, *, axis: int, exclusive: bool, reverse: bool) -> NDArray:
        narrow = x.dtype.itemsize == 2 and x.dtype.kind not in "iu"
        source = x.astype(np.float32) if narrow else x
        source = np.flip(source, axis) if reverse else source
        if exclusive and x.shape[axis]:
            first = np.take(source, [0], axis)
            first = np.full_like(first, _before(op, dtypes.from_numpy(x.dtype)))
            source = np.concatenate([first, np.take(source, range(x.shape[axis] - 1), axis)], axis)
        total = fn.accumulate(source, axis=axis, dtype=source.dtype)
        result: NDArray = np.flip(total, axis) if reverse else total
        return result.astype(x.dtype, copy=False)

    return eager


def _before(op: str, dtype: DType) -> Any:
    """What stands before the first element."""
    return 0 if dtype.is_complex and op == "add" else 1 if dtype.is_complex else neutral(op, dtype)


def lower_scan(op: str) -> Compute:
    def rule(call: LowerCall, index: Sequence[Index]) -> Expr:
        attrs, place = call.attrs, index[call.attrs["axis"]]
        value = call.inputs[0](index)
        if not isinstance(place, Affine) or not place.terms:  # the only position of a dim of 1
            return const(_before(op, value.dtype), value.dtype) if attrs["exclusive"] else value
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


def _grad_logsumexp(call: OpCall, dy: Tensor) -> list[Any]:
    """The sum of ``dy * exp(x - y)`` over what has an element, where exp itself may overflow."""
    attrs, x, y = call.attrs, call.inputs[0], call.outputs[0]
    zero, nothing = convert_to_tensor(0, x.dtype), convert_to_tensor(-np.inf, x.dtype)

    def through(gradient: Tensor) -> Tensor:
        some = (gradient > zero) & (y > nothing)
        logs = where(some, log(where(some, gradient, convert_to_tensor(1, x.dtype))) - y, nothing)
        axis, exclusive, reverse = attrs["axis"], attrs["exclusive"], not attrs["reverse"]
        return exp(cumulative_logsumexp(logs, axis, exclusive, reverse) + x)

    return [through(dy) - through(-dy)]


CUMSUM = register(
    Op("cumsum", _infer, guard("fciu", scanned(np.add, "add")), _grad_cumsum, lower_scan("add"))
)
CUMPROD = register(
    Op(
        "cumprod",
        _infer,
        guard("fciu", scanned(np.multiply, "mul")),
        _grad_cumprod,
        lower_scan("mul"),
    )
)
CUMULATIVE_LOGSUMEXP = register(
    Op(
        "cumulative_logsumexp", _infer_float, guard("f", scanned(np.logaddexp, "logaddexp")),
        _grad_logsumexp, lower_scan("logaddexp"),
    )
)  # fmt: skip


def cumsum(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running sums along `axis`; `exclusive` leaves each element itself out."""
    return run_scan(CUMSUM, x, axis, exclusive, reverse)


def cumprod(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running products along `axis`; `exclusive` leaves each element itself out."""
    return run_scan(CUMPROD, x, axis, exclusive, reverse)


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """log(sum(exp(x))) of the elements so far along `axis`, without overflow.

    `exclusive` leaves each element itself out: the first one is -inf.

    Raises:
        TypeError: a tensor that is not floating.
    """
    return run_scan(CUMULATIVE_LOGSUMEXP, x, axis, exclusive, reverse)


def run_scan(op: Op, x: Any, axis: Any, exclusive: bool, reverse: bool) -> Tensor:
    tensor = convert_to_tensor(x)
    position = normalize_axis(axis, tensor.ndim)
    return run(op, tensor, axis=position, exclusive=bool(exclusive), reverse=bool(reverse))  # type: ignore[no-any-return]
