"""Two-dimensional convolution and its two transposes, which are each other's gradients.

Images are NHWC, filters [height, width, in, out]. Where the image has g times the filter's input
channels the convolution is grouped: each of g groups of output channels sees its own channels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.inequalities import is_at_least
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import partial_dims
from treadle.ops.elementwise.casting import cast
from treadle.ops.image.windows import (
    Padding,
    Pair,
    Span,
    check_format,
    check_images,
    check_windows,
    from_nhwc,
    one_batch,
    padding_attr,
    pair,
    scatter_windows,
    several_batches,
    spans,
    to_nhwc,
    window_view,
)  # fmt: skip
from treadle.ops.lowering import Library
from treadle.ops.nn.softmax import wide
from treadle.ops.op_makers import needs, require_kinds
from treadle.ops.registry import Op, OpCall, register, run
from treadle.ops.shaping.reshaping import reshape, with_dims
from treadle.ops.sizes import Pairs, Sizes, at_least_one, at_most


def _check_filter(filters: TensorSpec) -> None:
    if filters.rank != 4:
        raise errors.InvalidArgumentError(
            None, None, f"filters must be [height, width, in, out], got shape {filters.shape}"
        )


def _check_channels(channels: Dim, filters: TensorSpec) -> None:
    inner, outer = filters.dims[2:]
    if channels == 0 or inner == 0:
        raise errors.InvalidArgumentError(
            None, None, f"images of {channels} channels and filters that take {inner}: a "
            "convolution needs at least one",
        )  # fmt: skip
    if not all(isinstance(d, int) for d in (channels, inner, outer)):
        return
    if channels % inner or outer % (channels // inner):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"the images have {channels} channels and the filters take {inner} and give {outer}: "
            "the first must be a multiple of the second, and the third of their ratio",
        )


def _infer(
    x: TensorSpec, filters: TensorSpec, *, strides: Pair, padding: Padding, dilations: Pair
) -> TensorSpec:
    require_kinds("f", x, filters)
    check_images(x)
    _check_filter(filters)
    _check_channels(x.dims[3], filters)
    found = spans(x.dims[1:3], filters.dims[:2], strides, padding, dilations)  # type: ignore[arg-type]
    check_windows(found)
    return TensorSpec((x.dims[0], *(s.count for s in found), filters.dims[3]), x.dtype)


def _infer_input(
    filters: TensorSpec,
    dy: TensorSpec,
    *,
    image: tuple[Dim, Dim, Dim],
    strides: Pair,
    padding: Padding,
    dilations: Pair,
) -> TensorSpec:
    whole = TensorSpec((dy.dims[0], *image), dy.dtype)
    _check_output(_infer(whole, filters, strides=strides, padding=padding, dilations=dilations), dy)
    return whole


def _infer_filter(
    x: TensorSpec,
    dy: TensorSpec,
    *,
    filters: tuple[int, int, int, int],
    strides: Pair,
    padding: Padding,
    dilations: Pair,
) -> TensorSpec:
    whole = TensorSpec(filters, x.dtype)
    _check_output(_infer(x, whole, strides=strides, padding=padding, dilations=dilations), dy)
    return whole


def _check_output(expected: TensorSpec, dy: TensorSpec) -> None:
    if not expected.shape.is_compatible_with(dy.shape) or expected.dtype is not dy.dtype:
        raise errors.InvalidArgumentError(
            None, None, f"the output gradient must be {expected}, got {dy}"
        )


# -- NumPy: patches and a matmul -------------------------------------------------------------------


def _groups(channels: int, inner: int) -> int:
    """How many groups; ValueError, which the shape rules explain, where there are none."""
    if not inner or not channels or channels % inner:
        raise ValueError("the channels do not fit the filters")
    return channels // inner


def _grouped_patches(view: NDArray, groups: int) -> NDArray:
    """[N, h, w, kh, kw, C] as [groups, N*h*w, kh*kw*C/groups]."""
    n, h, w, kh, kw, c = view.shape
    if groups == 1:
        return view.reshape(1, n * h * w, kh * kw * c)
    split = view.reshape(n * h * w, kh * kw, groups, c // groups)
    return np.ascontiguousarray(split.transpose(2, 0, 1, 3)).reshape(
        groups, n * h * w, kh * kw * (c // groups)
    )


def _grouped_filters(filters: NDArray, groups: int) -> NDArray:
    """[kh, kw, in, out] as [groups, kh*kw*in, out/groups]."""
    kh, kw, inner, outer = filters.shape
    split = filters.reshape(kh * kw * inner, groups, outer // groups)
    return np.ascontiguousarray(split.transpose(1, 0, 2))


def _grouped_outputs(dy: NDArray, groups: int) -> NDArray:
    """[N, h, w, out] as [groups, N*h*w, out/groups]."""
    split = dy.reshape(math.prod(dy.shape[:3]), groups, dy.shape[3] // groups)
    return np.ascontiguousarray(split.transpose(1, 0, 2))


def _eager(
    x: NDArray, filters: NDArray, *, strides: Pair, padding: Padding, dilations: Pair
) -> NDArray:
    groups = _groups(x.shape[3], filters.shape[2])
    rows, columns = spans(x.shape[1:3], filters.shape[:2], strides, padding, dilations)
    patches = _grouped_patches(window_view(wide(x, filters), rows, columns), groups)
    y = patches @ _grouped_filters(wide(filters), groups)
    shape: Any = (x.shape[0], rows.count, columns.count, filters.shape[3])
    return y.transpose(1, 0, 2).reshape(shape).astype(x.dtype, copy=False)


def _check_windows(dy: NDArray, rows: Span, columns: Span, channels: int) -> None:
    """ValueError, which the shape rules explain, unless there is an element for every window."""
    fits = rows.fits and columns.fits
    if not fits or dy.shape[1:] != (rows.count, columns.count, channels):
        raise ValueError("the output gradient does not fit")


def _eager_input(
    filters: NDArray,
    dy: NDArray,
    *,
    image: tuple[int, int, int],
    strides: Pair,
    padding: Padding,
    dilations: Pair,
) -> NDArray:
    kh, kw, inner, _ = filters.shape
    groups = _groups(image[2], inner)
    rows, columns = spans(image[:2], (kh, kw), strides, padding, dilations)
    _check_windows(dy, rows, columns, filters.shape[3])
    parts = _grouped_outputs(wide(dy, filters), groups) @ _grouped_filters(
        wide(filters), groups
    ).transpose(0, 2, 1)
    pixels = math.prod(dy.shape[:3])
    taps = parts.reshape(groups, pixels, kh * kw, inner).transpose(1, 2, 0, 3)
    view = taps.reshape(*dy.shape[:3], kh, kw, image[2])
    return scatter_windows(view, rows, columns).astype(dy.dtype, copy=False)


def _eager_filter(
    x: NDArray,
    dy: NDArray,
    *,
    filters: tuple[int, int, int, int],
    strides: Pair,
    padding: Padding,
    dilations: Pair,
) -> NDArray:
    groups = _groups(x.shape[3], filters[2])
    rows, columns = spans(x.shape[1:3], filters[:2], strides, padding, dilations)
    _check_windows(dy, rows, columns, filters[3])
    patches = _grouped_patches(window_view(wide(x, dy), rows, columns), groups)
    slope = patches.transpose(0, 2, 1) @ _grouped_outputs(wide(dy), groups)
    return slope.transpose(1, 0, 2).reshape(filters).astype(x.dtype, copy=False)


# -- gradients: each of the three is bilinear, and its slopes are the other two --------------------


def _images_and_windows(images: int, filters: int, outputs: int) -> Sizes:
    """What the routines of the op need; the numbers say where its images, filters and outputs
    are, -1 standing for the result. Images without height or width are left to NumPy."""

    def rule(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
        x, f, y = ((*specs, outs[0])[i].dims for i in (images, filters, outputs))
        yield x[0], y[0]
        yield from (at_least_one(d) for d in x[1:3] if not isinstance(d, int))
        if not isinstance(f[3], int) or y[3] != f[3]:
            yield f[3], y[3]
        found = spans(x[1:3], f[:2], attrs["strides"], attrs["padding"], attrs["dilations"])
        yield from zip((s.count for s in found), y[1:3], strict=True)
        least = 0 if attrs["padding"] == "SAME" else 1
        yield from (at_most(least, s.count) for s in found if not is_at_least(s.count, least))

    return rule


def _settings(call: OpCall) -> dict[str, Any]:
    return {key: call.attrs[key] for key in ("strides", "padding", "dilations")}


def _to_input(filters: Tensor, dy: Tensor, x: Tensor, settings: dict[str, Any]) -> Tensor:
    return run(CONV2D_INPUT, filters, dy, image=tuple(x.dims[1:]), **settings)  # type: ignore[no-any-return]


def _to_filter(x: Tensor, dy: Tensor, filters: Tensor, settings: dict[str, Any]) -> Tensor:
    return run(CONV2D_FILTER, x, dy, filters=tuple(filters.dims), **settings)  # type: ignore[no-any-return]


def _grad(call: OpCall, dy: Tensor) -> list[Any]:
    (x, filters), settings = call.inputs, _settings(call)
    return [
        _to_input(filters, dy, x, settings) if needs(call, 0) else None,
        _to_filter(x, dy, filters, settings) if needs(call, 1) else None,
    ]


def _grad_input(call: OpCall, g: Tensor) -> list[Any]:
    (filters, dy), settings = call.inputs, _settings(call)
    return [
        _to_filter(g, dy, filters, settings) if needs(call, 0) else None,
        run(CONV2D, g, filters, **settings) if needs(call, 1) else None,
    ]


def _grad_filter(call: OpCall, g: Tensor) -> list[Any]:
    (x, dy), settings = call.inputs, _settings(call)
    return [
        _to_input(g, dy, x, settings) if needs(call, 0) else None,
        run(CONV2D, x, g, **settings) if needs(call, 1) else None,
    ]


CONV2D = register(
    Op(
        "conv2d", _infer, _eager, _grad, Library("conv2d"),
        sizes=_images_and_windows(0, 1, -1),
    )
)  # fmt: skip
CONV2D_INPUT = register(
    Op(
        "conv2d_backprop_input", _infer_input, _eager_input, _grad_input,
        Library("conv2d_backprop_input"), sizes=_images_and_windows(-1, 0, 1),
    )
)  # fmt: skip
CONV2D_FILTER = register(
    Op(
        "conv2d_backprop_filter", _infer_filter, _eager_filter, _grad_filter,
        Library("conv2d_backprop_filter"), sizes=_images_and_windows(0, -1, 1),
    )
)  # fmt: skip


# -- public functions ------------------------------------------------------------------------------


def _attrs(strides: Any, padding: Any, dilations: Any, data_format: str) -> dict[str, Any]:
    return {
        "strides": pair(strides, "strides", data_format),
        "padding": padding_attr(padding, data_format),
        "dilations": pair(1 if dilations is None else dilations, "dilations", data_format),
    }


def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Two-dimensional convolution (cross-correlation, as in all such libraries).

    Args:
        input: [batch ..., height, width, channels], or NCHW by `data_format`.
        filters: [height, width, in, out]; `in` divides the image's channels (groups).
        strides: an int or a list of 1, 2 or 4.
        padding: "SAME", "VALID" or four (before, after) pairs.
        data_format: "NHWC" or "NCHW".
        dilations: as strides.
        name: accepted for TensorFlow programs.

    Raises:
        InvalidArgumentError: ranks, channels or sizes do not fit together.
        TypeError: the dtypes are not one floating dtype, or int32.
    """
    data_format = check_format(data_format)
    x, batch = one_batch(convert_to_tensor(input), 4, "conv2d")
    w = convert_to_tensor(filters)
    attrs = _attrs(strides, padding, dilations, data_format)
    y = _of_numbers(CONV2D, to_nhwc(x, data_format), w, attrs)
    return several_batches(from_nhwc(y, data_format), batch)


def _of_numbers(op: Op, a: Tensor, b: Tensor, attrs: Mapping[str, Any]) -> Tensor:
    """The op on floats, or on int32 numbers: float64 holds sums of their products exactly."""
    if not (a.dtype is dtypes.int32 and b.dtype is dtypes.int32):
        return run(op, a, b, **attrs)  # type: ignore[no-any-return]
    y = run(op, cast(a, dtypes.float64), cast(b, dtypes.float64), **attrs)
    return cast(cast(y, dtypes.int64), dtypes.int32)


def conv2d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv2d` with respect to its input, used as a layer.

    Args:
        input: [batch, height, width, in].
        filters: [height, width, out, in].
        output_shape: the result's shape, four dims.
        strides, padding, data_format, dilations, name: as for `conv2d`.

    Raises:
        InvalidArgumentError: ranks, channels or sizes do not fit together.
        TypeError: the dtypes are not one floating dtype, or int32.
    """
    data_format = check_format(data_format)
    image = _image("conv2d_transpose: output_shape", output_shape, data_format)
    x, w = to_nhwc(convert_to_tensor(input), data_format), convert_to_tensor(filters)
    attrs = {"image": image, **_attrs(strides, padding, dilations, data_format)}
    return from_nhwc(_of_numbers(CONV2D_INPUT, w, x, attrs), data_format)


def _image(what: str, shape: Any, data_format: str) -> tuple[Dim, Dim, Dim]:
    """Height, width and channels of a shape of images."""
    dims = [d for d in partial_dims(shape, what) if d is not None]
    if len(dims) != 4:
        raise ValueError(
            f"{what} must name four dims that are known while tracing or come from td.shape, "
            f"got {shape}{at(user_origin())}"
        )
    height, width, channels = dims[1:] if data_format == "NHWC" else (dims[2], dims[3], dims[1])
    return height, width, channels


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Each channel convolved with its own filters.

    Args:
        input: [batch, height, width, channels], or NCHW by `data_format`.
        filter: [height, width, channels, multiplier]; the result has channels * multiplier.
        strides, padding, data_format, dilations, name: as for `conv2d`.
    """
    data_format = check_format(data_format)
    x, w = to_nhwc(convert_to_tensor(input), data_format), convert_to_tensor(filter)
    grouped = _grouped("depthwise_conv2d", w, x.dims[3] if x.ndim == 4 else None)
    attrs = _attrs(strides, padding, dilations, data_format)
    return from_nhwc(run(CONV2D, x, grouped, **attrs), data_format)


def _grouped(name: str, w: Tensor, channels: Dim | None) -> Tensor:
    """Filters [height, width, channels, multiplier] as those of groups of one channel each."""
    fits = w.ndim == 4
    if fits and isinstance(w.dims[2], int) and isinstance(channels, int):
        fits = w.dims[2] == channels
    if not fits:
        raise errors.InvalidArgumentError(
            None, None,
            f"{name}: a filter of shape {w.shape} does not fit images of {channels} channels"
            f"{at(user_origin())}",
        )  # fmt: skip
    if channels is not None:
        w = with_dims(w, (*w.dims[:2], channels, w.dims[3]))
    return reshape(w, (w.dims[0], w.dims[1], 1, product(w.dims[2:])))


def depthwise_conv2d_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d` with respect to its input.

    Args:
        input_sizes: the input's shape, four dims.
        filter: [height, width, channels, multiplier].
        out_backprop: the gradient of the result.
        strides, padding, data_format, dilations: as for `depthwise_conv2d`.

    Raises:
        InvalidArgumentError: sizes do not fit together.
    """
    data_format = check_format(data_format)
    image = _image("depthwise_conv2d_backprop_input: input_sizes", input_sizes, data_format)
    grouped = _grouped("depthwise_conv2d_backprop_input", convert_to_tensor(filter), image[2])
    dy = to_nhwc(convert_to_tensor(out_backprop), data_format)
    attrs = _attrs(strides, padding, dilations, data_format)
    return from_nhwc(run(CONV2D_INPUT, grouped, dy, image=image, **attrs), data_format)


def depthwise_conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d` with respect to its filter, whose shape is
    `filter_sizes`; see `depthwise_conv2d_backprop_input`."""
    data_format = check_format(data_format)
    given = partial_dims(filter_sizes, "depthwise_conv2d_backprop_filter: filter_sizes")
    sizes = [d for d in given if isinstance(d, int)]
    if len(sizes) != 4 or len(given) != 4:
        raise errors.InvalidArgumentError(
            None, None,
            "depthwise_conv2d_backprop_filter: filter_sizes must be four dims that are known "
            f"while tracing, not {filter_sizes}{at(user_origin())}",
        )  # fmt: skip
    x = to_nhwc(convert_to_tensor(input), data_format)
    dy = to_nhwc(convert_to_tensor(out_backprop), data_format)
    grouped = (sizes[0], sizes[1], 1, sizes[2] * sizes[3])
    attrs = _attrs(strides, padding, dilations, data_format)
    return reshape(run(CONV2D_FILTER, x, dy, filters=grouped, **attrs), sizes)
