"""Convolutions and pools of volumes: three spatial axes.

A convolution takes the windows along the depth apart and is one of images then, whose channels are
those of all planes of a window. A pool is one of the planes and one along the depth.
"""

from __future__ import annotations

from typing import Any

from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import partial_dims
from treadle.ops.image.axis_windows import add_windows, take_windows
from treadle.ops.image.convolution import CONV2D, CONV2D_INPUT
from treadle.ops.image.pooling import AVG, MAX
from treadle.ops.image.windows import (
    axis_numbers,
    one_batch,
    padding_of_axes,
    several_batches,
)
from treadle.ops.registry import Op, run
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.reshaping import reshape_to

FORMATS = ("NDHWC", "NCDHW")


def _wrong(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")


def _format(name: str, data_format: str | None) -> str:
    found = data_format or "NDHWC"
    if found not in FORMATS:
        raise _wrong(f'{name}: data_format must be "NDHWC" or "NCDHW", got {data_format!r}')
    return found


def _channels_last(x: Tensor, data_format: str) -> Tensor:
    return permute(x, [0, 2, 3, 4, 1]) if data_format == "NCDHW" else x


def _formatted(x: Tensor, data_format: str) -> Tensor:
    return permute(x, [0, 4, 1, 2, 3]) if data_format == "NCDHW" else x


class _Settings:
    """Strides, padding and dilations, of the depth and of the planes."""

    def __init__(self, strides: Any, padding: Any, dilations: Any, data_format: str) -> None:
        steps = axis_numbers(strides, "strides", data_format)
        spread = axis_numbers(1 if dilations is None else dilations, "dilations", data_format)
        pads = padding_of_axes(padding, data_format)
        depth, planes = (pads, pads) if isinstance(pads, str) else (pads[0], pads[1:])
        self.depth: dict[str, Any] = {"stride": steps[0], "dilation": spread[0], "padding": depth}
        self.planes: dict[str, Any] = {"strides": steps[1:], "padding": planes}
        self.planes["dilations"] = spread[1:]


def _filters(name: str, filters: Any, channels: Dim) -> tuple[Tensor, int, int]:
    """Filters of planes, [height, width, depth * in, out], their depth and the groups.

    Grouped filters keep the order of an image's channels: those of a group are side by side.
    """
    w = convert_to_tensor(filters)
    sizes = [d for d in w.dims if isinstance(d, int)]
    if w.ndim != 5 or len(sizes) != 5:
        text = "filters must be [depth, height, width, in, out], all known"
        raise _wrong(f"{name}: {text}, their shape is {w.shape}")
    depth, height, width, inner, outer = sizes
    if isinstance(channels, int) and (inner == 0 or channels == 0 or channels % inner):
        raise _wrong(f"{name}: volumes of {channels} channels and filters that take {inner}")
    groups = channels // inner if isinstance(channels, int) else 1
    planes = permute(w, [1, 2, 0, 3, 4])
    return reshape_to(planes, (height, width, depth * inner, outer)), depth, groups


def _joined(windows: Tensor, groups: int) -> Tensor:
    """[batch, depth, height, width, window, channels] as images with the channels of a window."""
    *outer, height, width, window, channels = windows.dims
    if groups > 1:
        inner = channels // groups
        windows = reshape_to(windows, (*outer, height, width, window, groups, inner))
        windows = permute(windows, [0, 1, 2, 3, 5, 4, 6])
    return reshape_to(windows, (product(outer), height, width, window * channels))


def conv3d(
    input: Any, filters: Any, strides: Any, padding: Any, data_format: str | None = "NDHWC",
    dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Three-dimensional convolution (cross-correlation).

    Args:
        input: [batch ..., depth, height, width, channels], or NCDHW by `data_format`.
        filters: [depth, height, width, in, out]; `in` divides the channels (groups).
        strides: an int or a list of 1, 3 or 5.
        padding: "SAME", "VALID" or five (before, after) pairs.
        data_format: "NDHWC" or "NCDHW".
        dilations: as strides.

    Raises:
        InvalidArgumentError: ranks, channels or sizes do not fit together.
        TypeError: the dtypes are not one floating dtype.
    """
    kind = _format("conv3d", data_format)
    given, batch = one_batch(convert_to_tensor(input), 5, "conv3d")
    x = _channels_last(given, kind)
    settings = _Settings(strides, padding, dilations, kind)
    w, depth, groups = _filters("conv3d", filters, x.dims[4])
    windows = take_windows(x, 1, depth, **settings.depth)
    y: Tensor = run(CONV2D, _joined(windows, groups), w, **settings.planes)
    whole = reshape_to(y, (*windows.dims[:2], *y.dims[1:]))
    return several_batches(_formatted(whole, kind), batch)


def conv3d_transpose(
    input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME",
    data_format: str | None = "NDHWC", dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of `conv3d` with respect to its input, used as a layer.

    Args:
        input: [batch, depth, height, width, in], or NCDHW by `data_format`.
        filters: [depth, height, width, out, in].
        output_shape: the result's shape, five dims.
        strides, padding, data_format, dilations: as for `conv3d`.

    Raises:
        InvalidArgumentError: ranks, channels or sizes do not fit together.
    """
    kind = _format("conv3d_transpose", data_format)
    y = convert_to_tensor(input)
    given = partial_dims(output_shape, "conv3d_transpose: output_shape")
    dims = [d for d in given if d is not None]
    if len(dims) != 5 or y.ndim != 5:
        raise _wrong(
            f"conv3d_transpose: five dims known while tracing or from td.shape are expected, and "
            f"an input with five axes, not {output_shape} and {y.shape}"
        )
    y = _channels_last(y, kind)
    if kind == "NCDHW":
        dims = [dims[0], *dims[2:], dims[1]]
    settings = _Settings(strides, padding, dilations, kind)
    w, depth, groups = _filters("conv3d_transpose", filters, dims[4])
    planes = reshape_to(y, (product(y.dims[:2]), *y.dims[2:]))
    image = (*dims[2:4], depth * dims[4])
    x: Tensor = run(CONV2D_INPUT, w, planes, image=image, **settings.planes)
    *_, channels = dims
    windows = (*y.dims[:2], *dims[2:4])
    if groups > 1:
        x = reshape_to(x, (*windows, groups, depth, channels // groups))
        x = permute(x, [0, 1, 2, 3, 5, 4, 6])
    x = reshape_to(x, (*windows, depth, channels))
    return _formatted(add_windows(x, 1, dims[1], depth, **settings.depth), kind)


def _pool(
    op: Op, name: str, input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None
) -> Tensor:
    kind = _format(name, data_format)
    x = convert_to_tensor(input)
    if x.ndim != 5:
        raise _wrong(f"{name}: an input with five axes is expected, not {x.shape}")
    x = _channels_last(x, kind)
    window = axis_numbers(ksize, "ksize", kind)
    settings = _Settings(ksize if strides is None else strides, padding, None, kind)
    batch, depth, *_ = x.dims
    images = reshape_to(x, (batch * depth, *x.dims[2:]))
    given = {key: settings.planes[key] for key in ("strides", "padding")}
    planes: Tensor = run(op, images, window=window[1:], **given)
    _, height, width, channels = planes.dims
    columns = reshape_to(planes, (batch, depth, height * width, channels))
    pads = settings.depth["padding"]
    pads = pads if isinstance(pads, str) else (pads, (0, 0))
    steps = (settings.depth["stride"], 1)
    pooled: Tensor = run(op, columns, window=(window[0], 1), strides=steps, padding=pads)
    return _formatted(reshape_to(pooled, (*pooled.dims[:2], height, width, channels)), kind)


def max_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The maximum of each window; its gradient goes to the window's first maximum.

    Args:
        input: [batch, depth, height, width, channels], or NCDHW by `data_format`.
        ksize: the window: an int or a list of 1, 3 or 5.
        strides: as ksize; None takes ksize.
        padding: "SAME", "VALID" or five (before, after) pairs; padding never wins.

    Raises:
        InvalidArgumentError: ranks or sizes do not fit together.
    """
    return _pool(MAX, "max_pool3d", input, ksize, strides, padding, data_format)


def avg_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NDHWC",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window over the elements in the volume; arguments as for `max_pool3d`."""
    return _pool(AVG, "avg_pool3d", input, ksize, strides, padding, data_format)
