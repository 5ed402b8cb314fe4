"""How much two images are alike: psnr, ssim and ssim_multiscale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import product
from treadle.core.tensor import Tensor
from treadle.image.adjusting import convert_image_dtype
from treadle.image.batches import refusal
from treadle.ops.composed import composed
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import squared_difference
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.unary import log, square
from treadle.ops.image.convolution import depthwise_conv2d
from treadle.ops.image.pooling import avg_pool2d
from treadle.ops.nn.activations import relu
from treadle.ops.reductions.reduction import reduce_mean, reduce_prod
from treadle.ops.requirements import require
from treadle.ops.shaping.joining import stack
from treadle.ops.shaping.reshaping import reshape_to, tile
from treadle.ops.sizes import at_most, may_be


def _floats(name: str, a: Any, b: Any, max_val: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Both images and the largest value in float32.

    Raises:
        ValueError: shapes whose last three dims differ, or that do not broadcast.
    """
    x, y = convert_to_tensor(a), convert_to_tensor(b)
    if x.ndim < 3 or y.ndim < 3:
        raise refusal(f"{name}: the rank must be at least 3; shapes {x.shape} and {y.shape}")
    pairs = list(zip(x.dims[-3:], y.dims[-3:], strict=True))
    if not all(may_be(m, n) for m, n in pairs):
        raise refusal(f"{name}: the images are not compatible: {x.shape} and {y.shape}")
    x = require(x, pairs, f"{name}: the images are not compatible")
    y = reshape_to(y, (*y.dims[:-3], *x.dims[-3:]))
    limit = convert_image_dtype(cast(max_val, x.dtype), dtypes.float32)
    return convert_image_dtype(x, dtypes.float32), convert_image_dtype(y, dtypes.float32), limit


@composed
def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """The ratio of the largest value to the differences, in decibels.

    Args:
        a, b: [..., height, width, channels]; outer axes broadcast.
        max_val: the largest value that images of this dtype may have.

    Returns:
        float32, the outer shape.

    Raises:
        ValueError: shapes that do not fit; InvalidArgumentError where a run tells.
    """
    x, y, limit = _floats("psnr", a, b, max_val)
    error = reduce_mean(squared_difference(x, y), [-3, -2, -1])
    return 20.0 * log(limit) / math.log(10.0) - float(np.float32(10 / np.log(10))) * log(error)


@composed
def ssim(
    img1: Any, img2: Any, max_val: Any, filter_size: int = 11, filter_sigma: float = 1.5,
    k1: float = 0.01, k2: float = 0.03, return_index_map: bool = False,
) -> Tensor:  # fmt: skip
    """The structural similarity of images: 1 for equal ones.

    Args:
        img1, img2: [..., height, width, channels]; outer axes broadcast.
        max_val: the largest value that images of this dtype may have.
        filter_size, filter_sigma: of the Gauss windows that are compared.
        k1, k2: small numbers that keep quotients finite.
        return_index_map: the value of each window instead of their mean.

    Returns:
        float32, the outer shape; with `return_index_map` windows' rows and columns behind it.

    Raises:
        ValueError: shapes that do not fit.
        InvalidArgumentError: images smaller than the windows.
    """
    x, y, limit = _floats("ssim", img1, img2, max_val)
    found, _ = _of_channels(x, y, limit, filter_size, filter_sigma, k1, k2)
    return reduce_mean(found if return_index_map else reduce_mean(found, [-3, -2]), [-1])


def _of_channels(
    x: Tensor, y: Tensor, limit: Tensor, size: int, sigma: float, k1: float, k2: float
) -> tuple[Tensor, Tensor]:
    """The similarity of the windows, and its part that does not depend on brightness:
    [..., rows, columns, channels]."""
    if size < 1:
        raise refusal(f"ssim: filter_size must be at least 1, not {size}")
    text = f"ssim: images must be at least as large as the windows, {size} x {size}"
    for dim in x.dims[-3:-1]:
        if isinstance(dim, int) and dim < size:
            raise refusal(f"{text}; the shape is {x.shape}")
        if not isinstance(dim, int):
            x = require(x, [at_most(size, dim)], text)
    weights = constant(_gauss(size, sigma)[:, None, None, None])
    column = tile(weights, [1, 1, dims_tensor(x.dims[-1], dtypes.int64), 1])
    row = reshape_to(column, (1, size, x.dims[-1], 1))

    def mean(z: Tensor) -> Tensor:
        found = reshape_to(z, (product(z.dims[:-3]), *z.dims[-3:]))
        for kernel in (column, row):  # which are far fewer terms than those of a whole window
            found = depthwise_conv2d(found, kernel, [1, 1, 1, 1], "VALID")
        return reshape_to(found, (*z.dims[:-3], *found.dims[1:]))

    c1, c2 = (k1 * limit) ** 2, (k2 * limit) ** 2
    mean0, mean1 = mean(x), mean(y)
    both, squares = mean0 * mean1 * 2.0, square(mean0) + square(mean1)
    luminance = (both + c1) / (squares + c1)
    crossed = mean(x * y) * 2.0
    contrast = (crossed - both + c2) / (mean(square(x) + square(y)) - squares + c2)
    return luminance * contrast, contrast


def _gauss(size: int, sigma: float) -> Any:
    """The weights of a row or column of a window, which add up to 1. Those of an element of the
    window are the products of its row's and its column's."""
    places = np.arange(size) - (size - 1) / 2
    weights = np.exp(-0.5 * np.square(places) / sigma**2)
    return (weights / weights.sum()).astype(np.float32)


_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


@composed
def ssim_multiscale(
    img1: Any, img2: Any, max_val: Any, power_factors: Sequence[float] = _WEIGHTS,
    filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
) -> Tensor:  # fmt: skip
    """The product of structural similarities of images at several scales, each half the one before.

    Args:
        img1, img2: [..., height, width, channels] of equal shapes.
        power_factors: the exponent of each scale.
        max_val, filter_size, filter_sigma, k1, k2: see `ssim`.

    Returns:
        float32, the outer shape.

    Raises:
        ValueError: shapes that do not fit.
        InvalidArgumentError: images smaller than the windows at one of the scales.
    """
    x, y, limit = _floats("ssim_multiscale", img1, img2, max_val)
    found, similarity = [], x
    for scale in range(len(power_factors)):
        if scale:
            x, y = _halved(x), _halved(y)
        windows, contrasts = _of_channels(x, y, limit, filter_size, filter_sigma, k1, k2)
        similarity = reduce_mean(windows, [-3, -2])
        found.append(relu(reduce_mean(contrasts, [-3, -2])))
    powers = constant(np.array(power_factors, np.float32))
    factors = stack([*found[:-1], relu(similarity)], -1) ** powers
    return reduce_mean(reduce_prod(factors, [-1]), [-1])


def _halved(x: Tensor) -> Tensor:
    """The means of squares of four pixels, of fewer at the end of an odd row or column."""
    flat = reshape_to(x, (product(x.dims[:-3]), *x.dims[-3:]))
    smaller = avg_pool2d(flat, 2, 2, "SAME")
    return reshape_to(smaller, (*x.dims[:-3], *smaller.dims[1:]))
