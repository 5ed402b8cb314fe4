"""Dilation and erosion: the largest sum, and the smallest difference, of a window and a filter."""

from __future__ import annotations

from typing import Any

from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.ops.conversion import common_dtype
from treadle.ops.elementwise.selection import where
from treadle.ops.image.axis_windows import take_windows
from treadle.ops.image.pooling import MAX
from treadle.ops.image.pooling_numpy import lowest
from treadle.ops.image.windows import pair
from treadle.ops.registry import run
from treadle.ops.shaping.creation import ones
from treadle.ops.shaping.permuting import reverse
from treadle.ops.shaping.reshaping import reshape_to


def dilation2d(
    input: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The largest sum of a window of an image and the filter, for each channel by itself.

    Args:
        input: [batch, height, width, channels], any real dtype.
        filters: [height, width, channels] of the same dtype.
        strides, dilations: an int or a list of 1, 2 or 4.
        padding: "SAME" or "VALID"; padding never wins.
        data_format: "NHWC".

    Returns:
        Images of the input's dtype; the gradient goes to the first largest sum.

    Raises:
        ValueError: another data format.
        InvalidArgumentError: ranks, channels or sizes do not fit together.
    """
    if data_format != "NHWC":
        text = f"dilation2d: data_format must be 'NHWC', got {data_format!r}{at(user_origin())}"
        raise ValueError(text)
    x, f = common_dtype("dilation2d", input, filters)
    sizes = f.dims[:2]
    if (
        x.ndim != 4 or f.ndim != 3 or padding not in ("SAME", "VALID")
        or not all(isinstance(d, int) for d in sizes)
        or not x.shape[3:].is_compatible_with(f.shape[2:])
    ):  # fmt: skip
        raise errors.InvalidArgumentError(
            None, None,
            f"dilation2d: images of shape {x.shape}, filters of shape {f.shape} and padding "
            f"{padding!r} do not fit together{at(user_origin())}",
        )  # fmt: skip
    steps, spread = pair(strides, "strides", "NHWC"), pair(dilations, "dilations", "NHWC")
    settings = tuple(zip(sizes, steps, spread, strict=True))
    sums = _windows(x, settings, padding, "lowest") + f
    if padding == "SAME" and not x.dtype.is_floating:  # whole numbers have none below all others
        inside = _windows(ones((1, *x.dims[1:3], 1), x.dtype), settings, padding, "zero")
        sums = where(inside > 0, sums, lowest(x.dtype))
    batch, height, width, *window, channels = sums.dims
    columns = reshape_to(sums, (batch * height * width, product(window), 1, channels))
    size = (product(window), 1)
    highest = run(MAX, columns, window=size, strides=(1, 1), padding="VALID")
    return reshape_to(highest, (batch, height, width, channels))


def _windows(x: Tensor, settings: Any, padding: str, fill: str) -> Tensor:
    """[batch, height, width, rows, columns, channels]: the elements of every window."""
    for axis, (size, stride, dilation) in enumerate(settings, 1):
        x = take_windows(x, axis, size, stride, dilation, padding, fill)
    return x


def erosion2d(
    value: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The smallest difference of a window of an image and the filter turned around, for each
    channel by itself; arguments and errors as for `dilation2d`."""
    x, f = common_dtype("erosion2d", value, filters)
    turned = reverse(f, [0, 1])
    return -dilation2d(-x, turned, strides, padding, data_format, dilations)
