"""Max and average pooling of NHWC images, and the ops that their gradients are made of.

The gradient of max pooling goes to the first maximum of each window. `max_pool_index` gives each
window's winner as its number in the window, a byte where the window allows. Two linear ops go by
these: `max_pool_scatter` sends gradients there and `max_pool_gather`, its transpose, reads from
there. `max_pool_masked_index` leaves out winners for which a mask of the image is false; their
number is the dtype's largest, and gradients are sent nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.image.pooling_lowering import (
    lower_avg,
    lower_avg_grad,
    lower_gather,
    lower_index,
    lower_masked_index,
    lower_max,
    lower_scatter,
)  # fmt: skip
from treadle.ops.image.pooling_numpy import (
    eager_avg,
    eager_avg_grad,
    eager_gather,
    eager_index,
    eager_masked_index,
    eager_max,
    eager_scatter,
    pool_spans,
    winner_dtype,
)  # fmt: skip
from treadle.ops.image.windows import (
    Padding,
    Pair,
    Span,
    check_format,
    check_images,
    check_windows,
    from_nhwc,
    padding_attr,
    pair,
    to_nhwc,
)  # fmt: skip
from treadle.ops.lowering import Compute
from treadle.ops.op_makers import inferred, require_kinds
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.ranges import RANGE
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.sizes import Pairs, at_least_one


def _infer(x: TensorSpec, *, window: Pair, strides: Pair, padding: Padding) -> TensorSpec:
    require_kinds("fiu", x)
    check_images(x)
    found = pool_spans(x.dims[1:3], window, strides, padding)
    check_windows(found)
    return TensorSpec((x.dims[0], *(s.count for s in found), x.dims[3]), x.dtype)


# -- max: records ----------------------------------------------------------------------------------


def _infer_index(x: TensorSpec, *, window: Pair, strides: Pair, padding: Padding) -> TensorSpec:
    pooled = _infer(x, window=window, strides=strides, padding=padding)
    return TensorSpec(pooled.dims, winner_dtype(window))


def _infer_masked_index(
    x: TensorSpec, mask: TensorSpec, *, window: Pair, strides: Pair, padding: Padding
) -> TensorSpec:
    require_kinds("b", mask)
    if mask.dims != x.dims:
        raise ValueError(f"shapes {x.shape} and {mask.shape} differ")
    return _infer_index(x, window=window, strides=strides, padding=padding)


def _infer_scatter(
    dy: TensorSpec,
    winner: TensorSpec,
    *,
    image: tuple[Dim, Dim],
    window: Pair,
    strides: Pair,
    padding: Padding,
) -> TensorSpec:
    check_images(dy)
    return TensorSpec((dy.dims[0], *image, dy.dims[3]), dy.dtype)


def _infer_gather(
    x: TensorSpec, winner: TensorSpec, *, window: Pair, strides: Pair, padding: Padding
) -> TensorSpec:
    return _infer(x, window=window, strides=strides, padding=padding)


def _attrs_of(call: OpCall) -> dict[str, Any]:
    return {key: call.attrs[key] for key in ("window", "strides", "padding")}


def _grad_max(call: OpCall, dy: Tensor) -> list[Any]:
    x, attrs = call.inputs[0], _attrs_of(call)
    winner = run(INDEX, x, **attrs)
    return [run(SCATTER, dy, winner, image=tuple(x.dims[1:3]), **attrs)]


def _grad_scatter(call: OpCall, g: Tensor) -> list[Any]:
    return [run(GATHER, g, call.inputs[1], **_attrs_of(call)), None]


def _grad_gather(call: OpCall, dy: Tensor) -> list[Any]:
    x, winner = call.inputs
    return [run(SCATTER, dy, winner, image=tuple(x.dims[1:3]), **_attrs_of(call)), None]


def _windows_of(image: tuple[Dim, Dim], windows: Sequence[Dim], attrs: Mapping[str, Any]) -> Pairs:
    """There is an element for every window of an image."""
    found = pool_spans(image, attrs["window"], attrs["strides"], attrs["padding"])
    yield from zip((s.count for s in found), windows, strict=True)


def _scatter_sizes(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    for spec in specs:
        yield from _windows_of(attrs["image"], spec.dims[1:3], attrs)
        yield spec.dims[0], outs[0].dims[0]
        yield spec.dims[3], outs[0].dims[3]


def _gather_sizes(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    x, *_, winner = specs
    yield from _windows_of(x.dims[1:3], winner.dims[1:3], attrs)
    yield x.dims[0], winner.dims[0]
    yield x.dims[3], winner.dims[3]


def _pool_sizes(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    """A window fits into the image, which has elements."""
    dims = specs[0].dims[1:3]
    found = pool_spans(dims, attrs["window"], attrs["strides"], attrs["padding"])
    yield from (at_least_one(s.count) for s in found if not isinstance(s.count, int))
    for other in specs[1:]:
        yield from zip(other.dims, specs[0].dims, strict=True)


SCATTER = register(
    Op(
        "max_pool_scatter", _infer_scatter, eager_scatter, _grad_scatter,
        Compute(lower_scatter, "gather"), sizes=_scatter_sizes,
    )
)  # fmt: skip
MAX = register(
    Op(
        "max_pool", _infer, inferred(_infer, eager_max), _grad_max, Compute(lower_max, "reduce"),
        sizes=_pool_sizes,
    )
)  # fmt: skip
INDEX = register(
    Op(
        "max_pool_index", _infer_index, eager_index, lower=Compute(lower_index, "reduce"),
        sizes=_pool_sizes,
    )
)  # fmt: skip
MASKED_INDEX = register(
    Op(
        "max_pool_masked_index", _infer_masked_index, eager_masked_index,
        lower=Compute(lower_masked_index, "reduce"), sizes=_pool_sizes,
    )
)  # fmt: skip
GATHER = register(
    Op(
        "max_pool_gather", _infer_gather, eager_gather, _grad_gather,
        Compute(lower_gather, "gather"), sizes=_gather_sizes,
    )
)  # fmt: skip


# -- average ---------------------------------------------------------------------------------------


def _infer_avg(x: TensorSpec, *, window: Pair, strides: Pair, padding: Padding) -> TensorSpec:
    require_kinds("f", x)
    return _infer(x, window=window, strides=strides, padding=padding)


def _infer_avg_grad(
    dy: TensorSpec, *, image: tuple[Dim, Dim], window: Pair, strides: Pair, padding: Padding
) -> TensorSpec:
    check_images(dy)
    require_kinds("f", dy)
    return TensorSpec((dy.dims[0], *image, dy.dims[3]), dy.dtype)


def _grad_avg(call: OpCall, dy: Tensor) -> list[Any]:
    return [run(AVG_GRAD, dy, image=tuple(call.inputs[0].dims[1:3]), **_attrs_of(call))]


AVG = register(
    Op(
        "avg_pool", _infer_avg, eager_avg, _grad_avg, Compute(lower_avg, "reduce"),
        sizes=_pool_sizes,
    )
)  # fmt: skip
AVG_GRAD = register(
    Op(
        "avg_pool_grad", _infer_avg_grad, eager_avg_grad,
        lambda call, g: [run(AVG, g, **_attrs_of(call))], Compute(lower_avg_grad, "gather"),
        sizes=_scatter_sizes,
    )
)  # fmt: skip


# -- public functions ------------------------------------------------------------------------------


def _pool(op: Op, input: Any, ksize: Any, strides: Any, padding: Any, data_format: Any) -> Tensor:
    data_format = check_format(data_format)
    x = to_nhwc(convert_to_tensor(input), data_format)
    window = pair(ksize, "ksize", data_format)
    steps = pair(ksize if strides is None else strides, "strides", data_format)
    pads = padding_attr(padding, data_format)
    return from_nhwc(run(op, x, window=window, strides=steps, padding=pads), data_format)


def max_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The maximum of each window; its gradient goes to the window's first maximum.

    Args:
        input: [batch, height, width, channels], or NCHW by `data_format`.
        ksize: the window: an int or a list of 1, 2 or 4. Of 4 the one of the channels may be more
            than 1 where all others are 1: the maximum of each group of channels.
        strides: as ksize; None takes ksize.
        padding: "SAME", "VALID" or four (before, after) pairs; padding never wins.
        data_format: "NHWC" or "NCHW".
        name: accepted for TensorFlow programs.

    Raises:
        InvalidArgumentError: sizes that are none, or windows that do not fit.
        UnimplementedError: windows over channels and over other axes, or that overlap, or that do
            not divide the channels evenly.
    """
    group = _group_of_channels(ksize, strides, check_format(data_format))
    if group == 1:
        return _pool(MAX, input, ksize, strides, padding, data_format)
    x = to_nhwc(convert_to_tensor(input), check_format(data_format))
    padding_attr(padding, check_format(data_format))
    *whole, channels = x.dims
    if x.ndim != 4 or not isinstance(channels, int) or channels % group:
        text = f"max_pool2d: windows of {group} channels do not evenly divide {x.shape}"
        raise errors.UnimplementedError(None, None, f"{text}{at(user_origin())}")
    groups = reshape_to(x, (product(whole), channels // group, group, 1))
    window = (1, group)
    highest = run(MAX, groups, window=window, strides=window, padding="VALID")
    return from_nhwc(reshape_to(highest, (*whole, channels // group)), check_format(data_format))


def _group_of_channels(ksize: Any, strides: Any, data_format: str) -> int:
    """How many channels a window has.

    Raises:
        UnimplementedError: it has several, and they overlap, or the window has other elements.
    """
    sizes, steps = ksize, ksize if strides is None else strides
    if not all(isinstance(each, list | tuple) and len(each) == 4 for each in (sizes, steps)):
        return 1
    place = data_format.index("C")
    group = int(sizes[place])
    if group == 1:
        return 1  # another stride is refused with the sizes
    others = [int(n) for each in (sizes, steps) for i, n in enumerate(each) if i != place]
    if any(n != 1 for n in others) or int(steps[place]) != group or group < 1:
        raise errors.UnimplementedError(
            None, None,
            f"max_pool2d: ksize {sizes} and strides {steps}: a window over several channels has "
            f"one element along the other axes, and the stride of its size{at(user_origin())}",
        )  # fmt: skip
    return group


def avg_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window over the elements that lie in the image; arguments as max_pool2d."""
    return _pool(AVG, input, ksize, strides, padding, data_format)


class MaxPoolWithArgmax(NamedTuple):
    """The maxima of windows, and where they are."""

    output: Tensor
    argmax: Tensor


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    output_dtype: Any = dtypes.int64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> MaxPoolWithArgmax:
    """The maximum of each window, and where the first one is.

    Args:
        input, ksize, strides, padding, data_format: as for `max_pool2d`; "NHWC" only.
        output_dtype: int64 or int32, of the positions.
        include_batch_in_index: whether positions count on from image to image.

    Returns:
        The maxima, and of each its position ``(row * width + column) * channels + channel``.

    Raises:
        InvalidArgumentError: another format, or windows that do not fit.
        TypeError: positions of another dtype.
    """
    kind = dtypes.as_dtype(output_dtype)
    if kind not in (dtypes.int32, dtypes.int64):
        text = f"max_pool_with_argmax: positions are int32 or int64, not {kind.name}"
        raise errors.DtypeError(None, None, f"{text}{at(user_origin())}")
    if data_format not in (None, "NHWC"):
        text = f"max_pool_with_argmax: data_format is NHWC, not {data_format!r}"
        raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    x = convert_to_tensor(input)
    window, steps = pair(ksize, "ksize", "NHWC"), pair(strides, "strides", "NHWC")
    attrs: dict[str, Any] = {"window": window, "strides": steps}
    attrs["padding"] = padding_attr(padding, "NHWC")
    highest = run(MAX, x, **attrs)
    winner = cast(run(INDEX, x, **attrs), dtypes.int64)
    rows, columns = pool_spans(x.dims[1:3], window, steps, attrs["padding"])
    down, across = winner // window[1], winner % window[1]
    row = reshape_to(_starts(rows), (rows.count, 1, 1)) + down
    column = reshape_to(_starts(columns), (columns.count, 1)) + across
    width, channels = (dims_tensor(d, dtypes.int64) for d in x.dims[2:])
    position = (row * width + column) * channels + _numbers(x.dims[3])
    if include_batch_in_index:
        each = dims_tensor(product(x.dims[1:]), dtypes.int64)
        position = position + reshape_to(_numbers(x.dims[0]) * each, (x.dims[0], 1, 1, 1))
    return MaxPoolWithArgmax(highest, cast(position, kind))


def _numbers(count: Dim) -> Tensor:
    """0, 1, 2 ... as int64."""
    return run(RANGE, start=0, delta=1, size=count, dtype=dtypes.int64)  # type: ignore[no-any-return]


def _starts(s: Span) -> Tensor:
    """Where the windows along an axis begin; in the padding before it positions are negative."""
    return _numbers(s.count) * s.stride - dims_tensor(s.before, dtypes.int64)
