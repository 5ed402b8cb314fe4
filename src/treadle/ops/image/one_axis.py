"""Convolutions and pools along one axis, those of images of height 1; separable convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import shape_tensor
from treadle.ops.image.convolution import conv2d, conv2d_transpose, depthwise_conv2d
from treadle.ops.image.pooling import avg_pool2d, max_pool2d
from treadle.ops.image.windows import one_batch, several_batches
from treadle.ops.indexing.transposing import transpose
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.reshaping import expand_dims, squeeze
from treadle.ops.sizes import may_be

_FORMATS = ("NWC", "NCW")


def _row(name: str, input: Any, data_format: str | None) -> tuple[Tensor, bool]:
    """The input as images of height 1, channels last, and whether its channels come first."""
    x = convert_to_tensor(input)
    kind = data_format or "NWC"
    if kind not in _FORMATS or x.ndim < 3:
        text = (
            f"{name}: an input of shape {x.shape} with data_format {data_format!r}; three axes or "
            f"more, and NWC or NCW are expected{at(user_origin())}"
        )
        raise errors.InvalidArgumentError(None, None, text)
    if kind == "NCW":
        x = transpose(x, [0, 2, 1])
    return expand_dims(x, 1), kind == "NCW"


def _rank(name: str, x: Tensor, rank: int) -> None:
    if x.ndim != rank:
        text = f"{name}: {rank} axes are expected, the shape is {x.shape}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)


def _along(name: str, value: Any, data_format: str | None) -> list[int]:
    """As a list for height and width."""
    numbers = np.atleast_1d(np.asarray(1 if value is None else value)).tolist()
    if len(numbers) == 3:
        numbers = [numbers[2 if (data_format or "NWC") == "NCW" else 1]]
    if len(numbers) != 1:
        text = f"{name} must be an int or a list of 1 or 3, not {value!r}{at(user_origin())}"
        raise ValueError(text)
    return [1, int(numbers[0])]


def _padding(padding: Any) -> Any:
    """Explicit pairs with one more for the height."""
    if isinstance(padding, str):
        return padding
    pairs = [list(p) for p in padding]
    return [*pairs[:1], [0, 0], *pairs[1:]]


def _back(y: Tensor, channels_first: bool) -> Tensor:
    flat = squeeze(y, 1)
    return transpose(flat, [0, 2, 1]) if channels_first else flat


def conv1d(
    input: Any, filters: Any, stride: Any, padding: Any, data_format: str | None = "NWC",
    dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Convolution along one axis (cross-correlation).

    Args:
        input: [batch ..., width, channels], or NCW by `data_format`.
        filters: [width, in, out].
        stride, dilations: an int or a list of 1 or 3.
        padding: "SAME", "VALID" or three (before, after) pairs.

    Raises:
        InvalidArgumentError: ranks, channels or sizes do not fit together.
    """
    given, batch = one_batch(convert_to_tensor(input), 3, "conv1d")
    x, first = _row("conv1d", given, data_format)
    w = convert_to_tensor(filters)
    _rank("conv1d: the filters", w, 3)
    steps = _along("conv1d: stride", stride, data_format)
    spread = _along("conv1d: dilations", dilations, data_format)
    pairs = _pairs_last(padding, first)
    y = _back(conv2d(x, expand_dims(w, 0), steps, pairs, "NHWC", spread), first)
    return several_batches(y, batch)


def _pairs_last(padding: Any, channels_first: bool) -> Any:
    if not isinstance(padding, str) and channels_first and len(padding) == 3:
        batch, channels, width = padding
        padding = [batch, width, channels]
    return _padding(padding)


def conv1d_transpose(
    input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = "SAME",
    data_format: str | None = "NWC", dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of `conv1d` with respect to its input, used as a layer.

    Args:
        filters: [width, out, in].
        output_shape: the result's shape, three dims.
    """
    x, first = _row("conv1d_transpose", input, data_format)
    sizes = shape_tensor(output_shape)
    if first:
        sizes = concat([sizes[:1], sizes[2:], sizes[1:2]], 0)
    shape = concat([sizes[:1], [1], sizes[1:]], 0)
    steps = _along("conv1d_transpose: strides", strides, data_format)
    spread = _along("conv1d_transpose: dilations", dilations, data_format)
    w = expand_dims(convert_to_tensor(filters), 0)
    pairs = _pairs_last(padding, first)
    return _back(conv2d_transpose(x, w, shape, steps, pairs, "NHWC", spread), first)


def max_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The maximum of each window of `ksize` elements of [batch, width, channels]; see `conv1d`."""
    return _pool(max_pool2d, "max_pool1d", input, ksize, strides, padding, data_format)


def avg_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NWC",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of `ksize` elements of [batch, width, channels]; see `conv1d`."""
    return _pool(avg_pool2d, "avg_pool1d", input, ksize, strides, padding, data_format)


def _pool(
    pool: Any, name: str, input: Any, ksize: Any, strides: Any, padding: Any,
    data_format: str | None,
) -> Tensor:  # fmt: skip
    x, first = _row(name, input, data_format)
    window = _along(f"{name}: ksize", ksize, data_format)
    steps = _along(f"{name}: strides", strides, data_format)
    return _back(pool(x, window, steps, _pairs_last(padding, first)), first)


def separable_conv2d(
    input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any, padding: Any,
    data_format: str | None = None, dilations: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """A depthwise convolution, and one of single pixels that mixes its channels.

    Args:
        input: [batch, height, width, channels], or NCHW by `data_format`.
        depthwise_filter: [height, width, channels, multiplier].
        pointwise_filter: [1, 1, channels * multiplier, out].
        strides, padding, dilations: as for `conv2d`, of the first convolution.

    Raises:
        ValueError: the second filter is of more than one pixel.
    """
    mixing = convert_to_tensor(pointwise_filter)
    if not all(may_be(d, 1) for d in mixing.dims[:2]):
        text = "separable_conv2d: pointwise_filter must have shape [1, 1, in, out], not "
        raise ValueError(f"{text}{mixing.shape}{at(user_origin())}")
    y = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(y, mixing, 1, "VALID", data_format)


def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """`conv2d_transpose` whose filters reach every `rate`-th pixel."""
    return conv2d_transpose(value, filters, output_shape, 1, padding, dilations=rate)


def atrous_conv2d(
    value: Any, filters: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """`conv2d` whose filters take every `rate`-th pixel."""
    return conv2d(value, filters, 1, padding, dilations=rate)
