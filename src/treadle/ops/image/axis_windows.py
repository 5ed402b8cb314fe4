"""Windows along one axis: what convolutions and pools of volumes take apart and put together.

`take_windows` gives the elements of each window side by side, before the channels. `add_windows`,
its transpose, adds them up where they came from. Each is the other's gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Expr, Index, Reduce, apply, as_index, const
from treadle.ops.image.pooling_numpy import lowest
from treadle.ops.image.windows import Pair, Span, span, static
from treadle.ops.lowering import (
    Compute,
    LowerCall,
    add_index,
    divide_index,
    index_expr,
    scale_index,
    sum_index,
)  # fmt: skip
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.slicing import both, in_range
from treadle.ops.sizes import Pairs, at_least_one

MOST_UNROLLED = 16  # longer windows are added up in loops


def span_along(size: Dim, attrs: Mapping[str, Any]) -> Span:
    """The windows that the attributes of these ops describe."""
    return span(size, attrs["window"], attrs["stride"], attrs["dilation"], attrs["padding"])


def fill_of(dtype: DType, attrs: Mapping[str, Any]) -> Any:
    """The elements beside the array."""
    return 0 if attrs["fill"] == "zero" else lowest(dtype)


def _infer_take(x: TensorSpec, **attrs: Any) -> TensorSpec:
    axis = attrs["axis"]
    found = span_along(x.dims[axis], attrs)
    if not found.fits:
        text = f"a window of {found.window} does not fit into axis {axis} of {found.size} elements"
        raise errors.InvalidArgumentError(None, None, text)
    dims = (*x.dims[:axis], found.count, *x.dims[axis + 1 : -1], attrs["window"], x.dims[-1])
    return TensorSpec(dims, x.dtype)


def _infer_add(y: TensorSpec, *, size: Dim, **attrs: Any) -> TensorSpec:
    axis = attrs["axis"]
    return TensorSpec((*y.dims[:axis], size, *y.dims[axis + 1 : -2], y.dims[-1]), y.dtype)


def _places(found: Span, axis: int) -> Iterator[tuple[slice[Any, Any, Any], ...]]:
    """Where the elements of all windows lie in a padded array, one place in the window after the
    other."""
    for k in range(found.window):
        start = k * found.dilation
        stop = start + max((static(found.count) - 1) * found.stride + 1, 0)
        yield (*(slice(None),) * axis, slice(start, stop, found.stride))


def _eager_take(x: NDArray, **attrs: Any) -> NDArray:
    axis = attrs["axis"]
    found = span_along(x.shape[axis], attrs)
    if not found.fits:
        raise ValueError("no windows along this axis")
    frame: Any = [(0, 0)] * x.ndim
    frame[axis] = (found.before, found.after)
    fill = fill_of(dtypes.from_numpy(x.dtype), attrs)
    padded = np.pad(x, frame, constant_values=x.dtype.type(fill))
    return np.stack([padded[place] for place in _places(found, axis)], -2)


def _eager_add(y: NDArray, *, size: int, **attrs: Any) -> NDArray:
    axis = attrs["axis"]
    found = span_along(size, attrs)
    if y.shape[axis] != found.count:
        raise ValueError("the windows do not fit")
    before, after = static(found.before), static(found.after)
    whole = (*y.shape[:axis], before + size + after, *y.shape[axis + 1 : -2], y.shape[-1])
    total = np.zeros(whole, y.dtype)
    for k, place in enumerate(_places(found, axis)):
        total[place] += y[..., k, :]
    return total[(*(slice(None),) * axis, slice(before, before + size))]


def _lower_take(call: LowerCall, index: Sequence[Index]) -> Expr:
    axis, attrs = call.attrs["axis"], call.attrs
    found = span_along(call.specs[0].dims[axis], attrs)
    *outer, place, channel = index
    within = scale_index(place, found.dilation)
    position = sum_index(scale_index(outer[axis], found.stride), within)
    valid = None
    if found.before != 0 or found.after != 0:
        position = add_index(position, -found.before)
        valid = in_range(position, found.size)
    source = [*outer[:axis], position, *outer[axis + 1 :], channel]
    return call.inputs[0](source, valid, fill_of(call.out.dtype, attrs))


def _lower_add(call: LowerCall, index: Sequence[Index]) -> Expr:
    found = span_along(call.attrs["size"], call.attrs)
    if found.window > MOST_UNROLLED:
        looped = call.axis(found.window)
        return Reduce("sum", (looped,), _part(call, index, found, as_index(looped)))
    total = _part(call, index, found, as_index(0))
    for k in range(1, found.window):
        total = apply("add", total, _part(call, index, found, as_index(k)))
    return total


def _part(call: LowerCall, index: Sequence[Index], found: Span, place: Index) -> Expr:
    """The element of a window that came from here, for the window in which it is at `place`."""
    axis, step = call.attrs["axis"], found.stride
    more = -(-found.window * found.dilation // step)  # windows, so that nothing is negative
    start = add_index(index[axis], found.before + more * step)
    begun, rest = divide_index(sum_index(start, scale_index(place, -found.dilation)), step)
    window = add_index(begun, -more)
    valid: Expr | None = in_range(window, found.count)
    if step != 1:
        valid = both(valid, apply("eq", index_expr(rest), index_expr(as_index(0))))
    source = [*index[:axis], window, *index[axis + 1 : -1], place, index[-1]]
    dy = call.inputs[0](source, valid, 0)
    return apply("select", valid, dy, const(0, dy.dtype)) if valid is not None else dy


def _given(call: OpCall) -> dict[str, Any]:
    return {k: call.attrs[k] for k in ("axis", "window", "stride", "dilation", "padding")}


def _grad_take(call: OpCall, dy: Tensor) -> list[Any]:
    return [run(ADD, dy, size=call.inputs[0].dims[call.attrs["axis"]], **_given(call))]


def _grad_add(call: OpCall, g: Tensor) -> list[Any]:
    return [run(TAKE, g, fill="zero", **_given(call))]


def _take_sizes(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    count = outs[0].dims[attrs["axis"]]
    if not isinstance(count, int) and attrs["padding"] != "SAME":
        yield at_least_one(count)


def _add_sizes(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    yield specs[0].dims[attrs["axis"]], span_along(attrs["size"], attrs).count


TAKE = register(
    Op(
        "take_windows", _infer_take, _eager_take, _grad_take, Compute(_lower_take, "view"),
        sizes=_take_sizes,
    )
)  # fmt: skip
ADD = register(
    Op(
        "add_windows", _infer_add, _eager_add, _grad_add, Compute(_lower_add, "gather"),
        sizes=_add_sizes,
    )
)  # fmt: skip


def take_windows(
    x: Tensor, axis: int, window: int, stride: int, dilation: int, padding: str | Pair,
    fill: str = "zero",
) -> Tensor:  # fmt: skip
    """The windows along an axis of [..., channels].

    Args:
        padding: "SAME", "VALID", or how many elements lie before and after.
        fill: "zero" or "lowest", the dtype's lowest number: what lies in the padding.

    Returns:
        The axis counts windows, and there is one more axis, of the elements of a window, before the
        channels.
    """
    attrs = {"window": window, "stride": stride, "dilation": dilation, "padding": padding}
    return run(TAKE, x, axis=axis, fill=fill, **attrs)  # type: ignore[no-any-return]


def add_windows(
    y: Tensor, axis: int, size: Dim, window: int, stride: int, dilation: int, padding: str | Pair
) -> Tensor:
    """The windows that `take_windows` gives for an axis of `size` elements, added up."""
    attrs = {"window": window, "stride": stride, "dilation": dilation, "padding": padding}
    return run(ADD, y, axis=axis, size=size, **attrs)  # type: ignore[no-any-return]
