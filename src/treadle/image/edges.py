"""Differences between neighbouring pixels, and windows of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.image.batches import refusal
from treadle.ops.composed import composed
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.unary import abs as magnitude
from treadle.ops.image.convolution import depthwise_conv2d
from treadle.ops.image.windows import Span, span
from treadle.ops.indexing.gather import gathered
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.shaping.creation import zeros
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.padding import pad
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.shaping.reshaping import expand_dims, reshape_to, tile


def _steps(x: Tensor, axis: int) -> Tensor:
    """What each element adds to the one before it along an axis."""
    after = (slice(None),) * axis + (slice(1, None),)
    before = (slice(None),) * axis + (slice(None, -1),)
    return x[after] - x[before]


@composed
def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """The differences to the next row and to the next column, 0 at the last: (dy, dx).

    Args:
        image: [batch, height, width, channels] of any numbers; the results have its shape.

    Raises:
        ValueError: another rank.
    """
    x = convert_to_tensor(image)
    if x.ndim != 4:
        raise refusal(
            f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {x.shape}."
        )
    return _steps_and_zeros(x, 1), _steps_and_zeros(x, 2)


def _steps_and_zeros(x: Tensor, axis: int) -> Tensor:
    last = [1 if n == axis else dims_tensor(d, dtypes.int64) for n, d in enumerate(x.dims)]
    return concat([_steps(x, axis), zeros(last, x.dtype)], axis)


@composed
def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of the absolute differences between neighbouring pixels.

    Args:
        images: [batch, height, width, channels], or [height, width, channels].

    Returns:
        [batch], or a scalar for one image.

    Raises:
        ValueError: another rank.
    """
    x = convert_to_tensor(images)
    if x.ndim not in (3, 4):
        raise refusal("'images' must be either 3 or 4-dimensional.")
    axes = [-3, -2, -1]
    rows, columns = (_steps(x, axis) for axis in (x.ndim - 3, x.ndim - 2))
    return reduce_sum(magnitude(rows), axes) + reduce_sum(magnitude(columns), axes)


_SOBEL = np.array([[[-1, -2, -1], [0, 0, 0], [1, 2, 1]], [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]])


@composed
def sobel_edges(image: Any) -> Tensor:
    """Sobel's estimates of the slopes, (dy, dx) of each pixel and channel.

    Args:
        image: [batch, height, width, channels] floats.

    Returns:
        [batch, height, width, channels, 2]

    Raises:
        InvalidArgumentError: another rank.
    """
    x = convert_to_tensor(image)
    if x.ndim != 4:
        raise refusal(f"sobel_edges: rank 4 is needed, the shape is {x.shape}")
    kernels = constant(np.moveaxis(_SOBEL, 0, 2)[:, :, None], x.dtype)
    kernels = tile(kernels, [1, 1, dims_tensor(x.dims[3], dtypes.int64), 1])
    padded = pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    found = depthwise_conv2d(padded, kernels, [1, 1, 1, 1], "VALID")
    return reshape_to(found, (*x.dims, 2))


@composed
def extract_patches(
    images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """The windows of images, one after the other.

    Args:
        images: [batch, height, width, channels] of any numbers.
        sizes, strides, rates: [1, rows, columns, 1]: the windows' size, the way from one to the
            next, and the way from one of their pixels to the next.
        padding: "VALID": windows inside the images; "SAME": one at each stride, with zeros around.

    Returns:
        [batch, windows in a column, windows in a row, rows * columns * channels]

    Raises:
        InvalidArgumentError: another rank, padding or form of these lists.
    """
    x = convert_to_tensor(images)
    lists = [[_whole(n) for n in v] for v in (sizes, strides, rates)]
    fits = all(len(v) == 4 and v[0] == v[3] == 1 and min(v) > 0 for v in lists)
    if x.ndim != 4 or padding not in ("SAME", "VALID") or not fits:
        raise refusal(
            f"extract_patches: sizes={sizes}, strides={strides}, rates={rates}, "
            f"padding={padding!r} for shape {x.shape}; rank 4, lists [1, rows, columns, 1] of "
            f"positive ints and the paddings SAME and VALID are known"
        )
    rows, columns = (
        span(x.dims[n], lists[0][n], lists[1][n], lists[2][n], padding) for n in (1, 2)
    )
    if padding == "SAME":
        x = pad(x, [[0, 0], [rows.before, rows.after], [columns.before, columns.after], [0, 0]])
    x = gathered(gathered(x, _places(rows), 1), _places(columns), 3)
    x = permute(x, (0, 1, 3, 2, 4, 5))
    return reshape_to(x, (*x.dims[:3], product(x.dims[3:])))


def _whole(number: Any) -> Any:
    """A float that is a whole number as an int, as TensorFlow takes it."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _places(windows: Span) -> Tensor:
    """The positions of the elements of each window: [windows, elements]."""
    first = number_range(dims_tensor(windows.count, dtypes.int64)) * windows.stride
    return expand_dims(first, 1) + number_range(windows.window, dtype="int64") * windows.dilation
