"""Reductions: sum, mean, max, any, argmax and their like over some or all axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Axis, Expr, Index, Reduce, apply, as_index, cast, const
from treadle.kernel.reference import neutral
from treadle.ops.axes import normalize_axes, normalize_axis, reduced_dims
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.composed import composed
from treadle.ops.conversion import convert_to_tensor, truths
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import squared_difference
from treadle.ops.elementwise.casting import cast as cast_tensor
from treadle.ops.elementwise.complex_numbers import conj, real
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import exp, is_finite, log, sqrt, stop_gradient
from treadle.ops.lowering import Compute, LowerCall, dim_expr
from treadle.ops.op_makers import guard, require_kinds
from treadle.ops.properties import Dims
from treadle.ops.reductions.scan import cumprod
from treadle.ops.registry import Gradient, Op, OpCall, register, run
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.sizes import Pairs, at_least_one

# -- shape rule and lowering shared by all -------------------------------------------------------


def reduction_infer(kinds: str) -> Callable[..., TensorSpec]:
    def infer(x: TensorSpec, *, axis: tuple[int, ...], keepdims: bool) -> TensorSpec:
        require_kinds(kinds, x)
        return TensorSpec(reduced_dims(x.dims, axis, keepdims), x.dtype)

    return infer


def reduced_index(
    call: LowerCall, index: Sequence[Index], axes: Sequence[int], keepdims: bool
) -> tuple[tuple[Axis, ...], list[Index]]:
    """The new axes that are reduced over, and the input's index in terms of them.

    A dim of 1 needs no axis: reducing it changes nothing.
    """
    kept = list(index)
    over: list[Axis] = []
    full: list[Any] = []
    for position, dim in enumerate(call.specs[0].dims):
        own = kept.pop(0) if keepdims or position not in axes else None
        if position not in axes:
            full.append(own)
        elif dim == 1:
            full.append(as_index(0))
        else:
            over.append(call.axis(dim))
            full.append(as_index(over[-1]))
    return tuple(over), full


def _lower_reduction(kind: str, finish: Callable[[LowerCall, Expr], Expr] | None = None) -> Compute:
    def rule(call: LowerCall, index: Sequence[Index]) -> Expr:
        axes = call.attrs["axis"]
        over, full = reduced_index(call, index, axes, call.attrs["keepdims"])
        value = call.inputs[0](full)
        total = Reduce(kind, over, value) if over else value
        return finish(call, total) if finish else total

    return Compute(rule, "reduce")


def _count(dims: Sequence[Dim], axes: Sequence[int]) -> Dim:
    return product(dims[a] for a in axes)


def _lower_mean(call: LowerCall, total: Expr) -> Expr:
    count = cast(dim_expr(_count(call.specs[0].dims, call.attrs["axis"])), total.dtype)
    return apply("div" if total.dtype.is_floating else "truncdiv", total, count)


# -- NumPy implementations -----------------------------------------------------------------------


def wide(x: NDArray) -> NDArray:
    """16-bit floats as float32, in which they accumulate."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x


def _accumulating(fn: Callable[..., Any]) -> Callable[..., NDArray]:
    def eager(x: NDArray, *, axis: tuple[int, ...], keepdims: bool) -> NDArray:
        source = wide(x)
        result = fn(source, axis=axis, dtype=source.dtype, keepdims=keepdims)
        return np.asarray(result).astype(x.dtype, copy=False)

    return eager


def _extreme(fn: Callable[..., Any], name: str) -> Callable[..., NDArray]:
    def eager(x: NDArray, *, axis: tuple[int, ...], keepdims: bool) -> NDArray:
        if x.size:
            return fn(x, axis=axis, keepdims=keepdims)  # type: ignore[no-any-return]
        shape = reduced_dims(x.shape, axis, keepdims)
        return np.full(shape, neutral(name, dtypes.from_numpy(x.dtype)), x.dtype)

    return eager


def _mean(x: NDArray, *, axis: tuple[int, ...], keepdims: bool) -> NDArray:
    source = wide(x)
    add: Any = np.add.reduce
    total = np.asarray(add(source, axis=axis, dtype=source.dtype, keepdims=keepdims))
    count = _count(x.shape, axis)
    if x.dtype.kind in "iu":
        return _truncated(total, int(count))  # type: ignore[arg-type]
    if x.dtype.kind == "c":  # parts by parts: NumPy would divide by a complex number
        total.real /= count
        total.imag /= count
        return total
    return np.asarray(total / source.dtype.type(count)).astype(x.dtype, copy=False)


def _truncated(total: NDArray, count: int) -> NDArray:
    """Integers divided without their way through floats; 0 where there is nothing to divide by."""
    divisor = np.asarray(count).astype(total.dtype)  # which may wrap around, as in TensorFlow
    if not divisor:
        return np.zeros_like(total)
    quotient = total // divisor
    rest = total - quotient * divisor
    upward = (rest != 0) & ((total < 0) != (divisor < 0))
    return np.asarray(quotient + upward.astype(total.dtype))


# -- gradients -----------------------------------------------------------------------------------


def restore_axes(y: Tensor, call: OpCall) -> Tensor:
    """A reduction's output or its gradient with the reduced axes put back as dims of 1."""
    x = call.inputs[0]
    return reshape_to(y, reduced_dims(x.dims, call.attrs["axis"], True))


def _grad_sum(call: OpCall, dy: Tensor) -> list[Any]:
    return [broadcast_dims(restore_axes(dy, call), call.inputs[0].dims)]


def _grad_mean(call: OpCall, dy: Tensor) -> list[Any]:
    x = call.inputs[0]
    count = dim_tensor(_count(x.dims, call.attrs["axis"]), dy.dtype)
    return [broadcast_dims(restore_axes(dy / count, call), x.dims)]


def dim_tensor(dim: Dim, dtype: DType) -> Tensor:
    """The run-time value of a dim as a scalar tensor."""
    if isinstance(dim, int):
        return convert_to_tensor(dim, dtype)

    return cast_tensor(dims_tensor(dim, dtypes.int64), dtype)


def _grad_extreme(call: OpCall, dy: Tensor) -> list[Any]:
    """Shared equally between the elements that attain the extreme."""
    x, axes = call.inputs[0], call.attrs["axis"]
    hits = cast_tensor(x == restore_axes(call.outputs[0], call), x.dtype)
    return [hits * (restore_axes(dy, call) / reduce_sum(hits, axes, keepdims=True))]


def _grad_prod(call: OpCall, dy: Tensor) -> list[Any]:
    """dy times the product of all other elements, right also where some are 0."""
    x, axes = call.inputs[0], call.attrs["axis"]
    kept = [a for a in range(x.ndim) if a not in axes]
    order = [*kept, *axes]
    moved = permute(x, order)
    rows = reshape_to(moved, (*(x.dims[a] for a in kept), _count(x.dims, axes)))
    others = cumprod(rows, -1, exclusive=True) * cumprod(rows, -1, exclusive=True, reverse=True)
    back = [order.index(a) for a in range(x.ndim)]
    others = permute(reshape_to(others, moved.dims), back)
    return [conj(others) * restore_axes(dy, call)]


# -- the ops -------------------------------------------------------------------------------------


def _over_ones(dims: Dims, attrs: Mapping[str, Any]) -> Dims | None:
    """A reduction over axes of size 1."""
    axes = set(attrs["axis"])
    if any(dims[a] != 1 for a in axes):
        return None
    return dims if attrs["keepdims"] else tuple(d for i, d in enumerate(dims) if i not in axes)


def _lowest(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype.kind not in "iu" else np.iinfo(dtype).min


def _highest(dtype: np.dtype[Any]) -> Any:
    return np.inf if dtype.kind not in "iu" else np.iinfo(dtype).max


def _reduction(
    name: str, eager: Any, kinds: str, lower: Compute, grad: Gradient | None,
    of_nothing: Callable[[np.dtype[Any]], Any],
) -> Op:  # fmt: skip
    return register(
        Op(
            name, reduction_infer(kinds), guard(kinds, eager), grad, lower,
            tags=frozenset({"reduces"}), of_nothing=of_nothing,
            same_elements=_over_ones if kinds != "b" else None,
        )
    )  # fmt: skip


NUMBERS = "fciu"
REDUCE_SUM = _reduction(
    "reduce_sum",
    _accumulating(np.add.reduce),
    NUMBERS,
    _lower_reduction("sum"),
    _grad_sum,
    lambda _: 0,
)
REDUCE_MEAN = _reduction(
    "reduce_mean", _mean, NUMBERS, _lower_reduction("sum", _lower_mean), _grad_mean, lambda _: 0
)
REDUCE_PROD = _reduction(
    "reduce_prod",
    _accumulating(np.multiply.reduce),
    NUMBERS,
    _lower_reduction("prod"),
    _grad_prod,
    lambda _: 1,
)
REDUCE_MAX = _reduction(
    "reduce_max", _extreme(np.max, "max"), "fiu", _lower_reduction("max"), _grad_extreme, _lowest
)
REDUCE_MIN = _reduction(
    "reduce_min", _extreme(np.min, "min"), "fiu", _lower_reduction("min"), _grad_extreme, _highest
)
REDUCE_ANY = _reduction("reduce_any", np.any, "b", _lower_reduction("any"), None, lambda _: False)
REDUCE_ALL = _reduction("reduce_all", np.all, "b", _lower_reduction("all"), None, lambda _: True)


def _public(op: Op, doc: str) -> Callable[..., Tensor]:
    def reduce(
        input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
    ) -> Tensor:
        of_truths = op is REDUCE_ANY or op is REDUCE_ALL
        x = truths(input_tensor) if of_truths else convert_to_tensor(input_tensor)
        return run(op, x, axis=axes_of(op.name, axis, x), keepdims=bool(keepdims))  # type: ignore[no-any-return]

    reduce.__name__ = reduce.__qualname__ = op.name
    reduce.__doc__ = doc + " over `axis` (an int, several, or None for all axes)."
    return reduce


def axes_of(name: str, axis: Any, x: Tensor) -> tuple[int, ...]:
    """The axes, or an error that also names the op and the shape."""
    try:
        return normalize_axes(axis, x.ndim)
    except errors.InvalidArgumentError as error:
        text = f"{name} of shape {x.shape}: {error.message}"
        raise type(error)(None, None, text) from None


reduce_sum = _public(REDUCE_SUM, "The sum")
_mean_of = _public(REDUCE_MEAN, "The mean")


def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean over `axis` (an int, several, or None for all axes). That of integers is truncated;
    the sum of those of less than 64 bits does not wrap around."""
    x = convert_to_tensor(input_tensor)
    if not x.dtype.is_integer or x.dtype.size == 8:
        return _mean_of(x, axis, keepdims)
    wide = dtypes.uint64 if x.dtype.is_unsigned else dtypes.int64
    return cast_tensor(_mean_of(cast_tensor(x, wide), axis, keepdims), x.dtype)


reduce_prod = _public(REDUCE_PROD, "The product")
reduce_max = _public(REDUCE_MAX, "The largest element")
reduce_min = _public(REDUCE_MIN, "The smallest element")
reduce_any = _public(REDUCE_ANY, "Whether any element is true")
reduce_all = _public(REDUCE_ALL, "Whether all elements are true")

# -- compositions --------------------------------------------------------------------------------


@composed
def reduce_logsumexp(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """log(sum(exp(x))) over `axis`, without overflow."""
    x = convert_to_tensor(input_tensor)
    largest = stop_gradient(reduce_max(x, axis, keepdims=True))
    shift = where(is_finite(largest), largest, convert_to_tensor(0, x.dtype))
    total = log(reduce_sum(exp(x - shift), axis, keepdims=True)) + shift
    axes = axes_of("reduce_logsumexp", axis, x)
    return total if keepdims else reshape_to(total, reduced_dims(x.dims, axes, False))


@composed
def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean of the squared distance from the mean over `axis`."""
    x = convert_to_tensor(input_tensor)
    if x.dtype.is_integer:
        raise TypeError(
            f"reduce_variance: the input must be floating, not {x.dtype.name}{at(user_origin())}"
        )
    deviation = squared_difference(x, reduce_mean(x, axis, keepdims=True))
    return reduce_mean(real(deviation), axis, keepdims)


@composed
def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of `reduce_variance`."""
    return sqrt(reduce_variance(input_tensor, axis, keepdims))


def count_nonzero(
    input: Any, axis: Any = None, keepdims: bool | None = None, dtype: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """How many elements differ from 0 over `axis`; strings count unless they are empty."""
    x = convert_to_tensor(input)
    zero = "" if x.dtype is dtypes.string else 0
    mask = x if x.dtype.is_bool else x != convert_to_tensor(zero, x.dtype)
    return reduce_sum(cast_tensor(mask, dtype), axis, bool(keepdims))


# -- positions -----------------------------------------------------------------------------------


def _infer_position(x: TensorSpec, *, axis: int, output_type: DType) -> TensorSpec:
    require_kinds("fiub", x)
    if x.dims[axis] == 0:
        raise errors.InvalidArgumentError(None, None, f"axis {axis} of shape {x.shape} is empty")
    return TensorSpec(reduced_dims(x.dims, (axis,), False), output_type)


def _eager_position(fn: Callable[..., Any]) -> Callable[..., NDArray]:
    def eager(x: NDArray, *, axis: int, output_type: DType) -> NDArray:
        if not x.shape[axis]:
            raise errors.InvalidArgumentError(None, None, f"axis {axis} of {x.shape} is empty")
        return np.asarray(fn(wide(x), axis=axis)).astype(output_type.np_dtype)

    return eager


def _lower_position(kind: str) -> Compute:
    def rule(call: LowerCall, index: Sequence[Index]) -> Expr:
        over, full = reduced_index(call, index, (call.attrs["axis"],), False)
        if not over:
            return const(0, call.out.dtype)
        value = call.inputs[0](full)
        value = cast(value, dtypes.uint8) if value.dtype.is_bool else value
        return Reduce(kind, over, value, call.out.dtype)

    return Compute(rule, "reduce")


def _some(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """There is something to find the largest of."""
    yield at_least_one(specs[0].dims[attrs["axis"]])


def _position_op(name: str, fn: Callable[..., Any]) -> Op:
    eager, lower = guard("fiub", _eager_position(fn)), _lower_position(name)
    return register(Op(name, _infer_position, eager, lower=lower, sizes=_some))


ARGMAX = _position_op("argmax", np.argmax)
ARGMIN = _position_op("argmin", np.argmin)


def argmax(
    input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """The position of the first largest element along `axis`, the first one by default."""
    return _position(ARGMAX, input, axis, output_type)


def argmin(
    input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """The position of the first smallest element along `axis`, the first one by default."""
    return _position(ARGMIN, input, axis, output_type)


def _position(op: Op, input: Any, axis: Any, output_type: Any) -> Tensor:
    x = convert_to_tensor(input)
    (position,) = axes_of(op.name, 0 if axis is None else normalize_axis(axis, max(x.ndim, 1)), x)
    dtype = dtypes.int64 if output_type is None else dtypes.as_dtype(output_type)
    if not dtype.is_integer:
        text = f"{op.name}: output_type must be an integer dtype, not {dtype.name}"
        raise errors.DtypeError(None, None, f"{text}{at(user_origin())}")
    return run(op, x, axis=position, output_type=dtype)  # type: ignore[no-any-return]
