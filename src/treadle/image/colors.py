"""Colour spaces of images, hue and saturation; at random too."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.image.adjusting import convert_image_dtype, in_floats, largest_delta, limits
from treadle.image.batches import refusal
from treadle.ops.composed import composed
from treadle.ops.control.io import Assert
from treadle.ops.conversion import constant, convert_to_tensor, is_symbolic
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import maximum, minimum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.selection import where
from treadle.ops.elementwise.unary import abs as magnitude
from treadle.ops.elementwise.unary import clip_by_value, floor
from treadle.ops.linalg.matrices import tensordot
from treadle.ops.random.distributions import stateless_uniform, uniform
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.scalars import number
from treadle.ops.shaping.joining import stack
from treadle.ops.shaping.reshaping import broadcast_to, expand_dims, with_dim
from treadle.ops.sizes import may_be

_TO_YIQ = [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617],
           [0.114, -0.32134392, 0.31119955]]  # fmt: skip
_FROM_YIQ = [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021],
             [0.6208248, -0.64720424, 1.70423049]]  # fmt: skip
_TO_YUV = [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512],
           [0.114, 0.43601035, -0.10001026]]  # fmt: skip
_FROM_YUV = [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]]


def _three_channels(name: str, image: Any) -> Tensor:
    """A floating tensor whose last dim is 3."""
    x = convert_to_tensor(image)
    if not x.dtype.is_floating:
        text = f"{name} takes floats in [0, 1], not {x.dtype.name}: use convert_image_dtype"
        raise errors.DtypeError(None, None, f"{text}{at(user_origin())}")
    return with_channels(name, x)


def with_channels(name: str, x: Tensor) -> Tensor:
    """`x`, whose last dim is 3.

    Raises:
        InvalidArgumentError: it is not.
    """
    if x.ndim < 1 or not may_be(x.dims[-1], 3):
        text = f"{name}: the last dim must be 3, the shape is {x.shape}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    return with_dim(x, x.ndim - 1, 3)


@composed
def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """The brightness of RGB images: [..., 3] to [..., 1], in their dtype.

    Raises:
        InvalidArgumentError: the last dim is not 3.
    """
    x = with_channels("rgb_to_grayscale", convert_to_tensor(images))
    dtype = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
    floats = convert_image_dtype(x, dtype)
    weights = np.array([0.2989, 0.587, 0.114], np.float32).astype(dtype.np_dtype)
    return convert_image_dtype(reduce_sum(floats * weights, -1, keepdims=True), x.dtype)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Images [..., 1] with their channel three times: [..., 3], in any dtype.

    Raises:
        ValueError: a last dim other than 1, or a rank below 2.
    """
    x = convert_to_tensor(images)
    if x.ndim < 2:
        raise refusal(f"A grayscale image must be at least two-dimensional: {x.shape}")
    if not may_be(x.dims[-1], 1):
        raise refusal("Last dimension of a grayscale image should be size 1.")
    x = with_dim(x, x.ndim - 1, 1)
    shape = [dims_tensor(d, dtypes.int64) for d in x.dims[:-1]]
    return broadcast_to(x, [*shape, 3])


def _linear(name: str, images: Any, matrix: Any) -> Tensor:
    x = _three_channels(name, images)
    return tensordot(x, constant(matrix, x.dtype), 1)


@composed
def rgb_to_yiq(images: Any) -> Tensor:
    """RGB images as luma and two chromas: floats, [..., 3].

    Raises:
        InvalidArgumentError: the last dim is not 3.
        TypeError: the images are not floats.
    """
    return _linear("rgb_to_yiq", images, _TO_YIQ)


@composed
def yiq_to_rgb(images: Any) -> Tensor:
    """The inverse of `rgb_to_yiq`."""
    return _linear("yiq_to_rgb", images, _FROM_YIQ)


@composed
def rgb_to_yuv(images: Any) -> Tensor:
    """RGB images as luma and two colour differences: floats, [..., 3].

    Raises:
        InvalidArgumentError: the last dim is not 3.
        TypeError: the images are not floats.
    """
    return _linear("rgb_to_yuv", images, _TO_YUV)


@composed
def yuv_to_rgb(images: Any) -> Tensor:
    """The inverse of `rgb_to_yuv`."""
    return _linear("yuv_to_rgb", images, _FROM_YUV)


# -- hue -------------------------------------------------------------------------------------------


def _hue_and_limits(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The hue in [0, 1), and the largest and smallest of the three channels."""
    r, g, b = x[..., 0], x[..., 1], x[..., 2]
    high = maximum(maximum(r, g), b)
    low = minimum(minimum(r, g), b)
    spread = high - low
    some = spread > 0
    norm = 1.0 / (6.0 * where(some, spread, 1.0))
    hue = where(
        high == r,
        norm * (g - b),
        where(high == g, norm * (b - r) + 2.0 / 6.0, norm * (r - g) + 4.0 / 6.0),
    )
    hue = where(some, hue, 0.0)
    return where(hue < 0, hue + 1.0, hue), high, low


def _shares(hue: Tensor) -> Tensor:
    """How far each of the channels R, G, B is from the smallest to the largest: [..., 3]."""
    kind = hue.dtype.np_dtype
    signs, centres, offsets = (
        np.array(v, np.float32).astype(kind) for v in ([1, -1, -1], [3, 2, 4], [-1, 2, 2])
    )
    far = magnitude(expand_dims(hue, -1) * 6.0 - centres)
    return clip_by_value(signs * far + offsets, 0.0, 1.0)


@composed
def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """RGB images as hue, saturation and value: floats in [0, 1], [..., 3].

    Raises:
        InvalidArgumentError: the last dim is not 3.
        TypeError: the images are not floats.
    """
    hue, high, low = _hue_and_limits(_three_channels("rgb_to_hsv", images))
    some = high > 0
    return stack([hue, where(some, (high - low) / where(some, high, 1.0), 0.0), high], -1)


@composed
def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """The inverse of `rgb_to_hsv`."""
    x = _three_channels("hsv_to_rgb", images)
    return _of_hsv(x[..., 0], x[..., 1:2], x[..., 2:3])


def _of_hsv(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    return (1.0 - saturation + saturation * _shares(hue)) * value


@composed
def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """RGB images with `delta` added to their hue, which wraps around at 1.

    Args:
        image: [..., height, width, 3]; integers are scaled to floats and back.
        delta: a scalar in [-1, 1].

    Raises:
        ValueError: a delta outside of [-1, 1]; InvalidArgumentError where a run tells.
    """
    turn = number("adjust_hue: delta", delta)
    if is_symbolic(turn):
        inside = (turn >= -1) & (turn <= 1)
        Assert(inside, ["delta must be in the interval [-1, 1], not", turn])
    elif not -1 <= turn <= 1:
        raise refusal("delta must be in the interval [-1, 1]")

    def adjust(x: Tensor) -> Tensor:
        hue, high, low = _hue_and_limits(_image_of_colors("adjust_hue", x))
        moved = hue + cast(turn, x.dtype)
        low = expand_dims(low, -1)
        return low + (expand_dims(high, -1) - low) * _shares(moved - floor(moved))

    return in_floats(image, adjust, saturate=False)


@composed
def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """RGB images with their saturation multiplied, and kept in [0, 1].

    Args:
        image: [..., height, width, 3]; integers are scaled to floats and back.
        saturation_factor: a scalar.
    """

    def adjust(x: Tensor) -> Tensor:
        hue, high, low = _hue_and_limits(_image_of_colors("adjust_saturation", x))
        some = high > 0
        saturation = where(some, (high - low) / where(some, high, 1.0), 0.0)
        saturation = clip_by_value(saturation * cast(saturation_factor, x.dtype), 0.0, 1.0)
        return _of_hsv(hue, expand_dims(saturation, -1), expand_dims(high, -1))

    return in_floats(image, adjust, saturate=False)


def _image_of_colors(name: str, x: Tensor) -> Tensor:
    if x.ndim < 3:
        raise refusal(f"{name}: an image of at least rank 3 is needed, the shape is {x.shape}")
    return with_channels(name, x)


def random_hue(image: Any, max_delta: Any, seed: int | None = None) -> Tensor:
    """`adjust_hue` by a delta drawn uniformly from [-max_delta, max_delta).

    Args:
        max_delta: in [0, 0.5].
        seed: a stream of its own, combined with the global seed.

    Raises:
        ValueError: another `max_delta`.
    """
    delta = largest_delta(max_delta, 0.5)
    return adjust_hue(image, uniform([], -delta, delta, seed=seed))


def stateless_random_hue(image: Any, max_delta: Any, seed: Any) -> Tensor:
    """`random_hue` as a pure function of `seed`, two ints, as in TensorFlow."""
    delta = largest_delta(max_delta, 0.5)
    return adjust_hue(image, stateless_uniform([], seed, -delta, delta))


def random_saturation(image: Any, lower: Any, upper: Any, seed: int | None = None) -> Tensor:
    """`adjust_saturation` by a factor drawn uniformly from [lower, upper).

    Args:
        seed: a stream of its own, combined with the global seed.

    Raises:
        ValueError: a negative `lower`, or an `upper` that is not greater.
    """
    return adjust_saturation(image, uniform([], *limits(lower, upper), seed=seed))


def stateless_random_saturation(image: Any, lower: Any, upper: Any, seed: Any = None) -> Tensor:
    """`random_saturation` as a pure function of `seed`, two ints, as in TensorFlow."""
    return adjust_saturation(image, stateless_uniform([], seed, *limits(lower, upper)))
