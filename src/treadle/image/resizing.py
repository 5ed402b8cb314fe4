"""Images of another size: `resize` and `resize_with_pad`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.tensor import Tensor
from treadle.image.batches import image_tensor, refusal
from treadle.image.cropping import pad_to_bounding_box
from treadle.image.samples import (
    float_of,
    nearest_positions,
    neighbours,
    resampled,
    samples,
)
from treadle.ops.composed import composed
from treadle.ops.conversion import convert_to_tensor, has_dtype
from treadle.ops.dims import size_of, sizes_of
from treadle.ops.elementwise.arithmetic import maximum, minimum
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.unary import floor
from treadle.ops.elementwise.unary import round as rounded
from treadle.ops.indexing.gather import gathered
from treadle.ops.shaping.reshaping import reshape_to, with_dims


class ResizeMethod:
    """The names of the methods of `resize`."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


_METHODS = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian",
            "mitchellcubic")  # fmt: skip
# The kernels of methods that have another name where they smooth.
_SMOOTH = {"bilinear": "triangle", "bicubic": "keyscubic"}


@composed
def resize(
    images: Any, size: Any, method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False, antialias: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Images of another height and width; pixels are squares whose centres are sampled.

    Args:
        images: [batch, height, width, channels] or [height, width, channels], any real dtype.
        size: the new (height, width), ints or an integer tensor, which may be known late.
        method: one of `ResizeMethod`.
        preserve_aspect_ratio: the result has the images' ratio of height to width and fits into
            `size`.
        antialias: kernels of a method are as wide as the pixels of the result where these are
            larger than those of the images. It changes nothing for "nearest" and "area".

    Returns:
        float32, but for the method "nearest" the dtype of the images.

    Raises:
        ValueError: another rank, method, or form of `size`.
        InvalidArgumentError: a size that is not positive.
    """
    x = convert_to_tensor(images)
    if x.ndim not in (3, 4):
        raise refusal(f"resize: images have rank 3 or 4, the shape is {x.shape}")
    if x.dtype.is_bool or x.dtype.is_complex or not x.dtype.is_numeric:
        text = f"resize takes real numbers, not {x.dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    if method not in _METHODS:
        raise refusal(f"Resize method is not implemented: {method}; there are {list(_METHODS)}")
    high, wide = x.dims[-3:-1]
    height, width = _new_size(size)
    if preserve_aspect_ratio:
        height, width = _in_ratio(high, wide, height, width)
    for old, new in ((high, height), (wide, width)):
        if old == 0 or new == 0:
            text = f"resize: sizes must be positive: {x.shape} to {[height, width]}"
            raise errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    return _resized(x, height, width, method, antialias)


def _new_size(size: Any) -> tuple[Dim, Dim]:
    count: Dim
    if isinstance(size, list | tuple):
        count = len(size)
    else:
        size = convert_to_tensor(size)
        if size.ndim == 1 and not isinstance(size.dims[0], int):
            size = with_dims(size, (2,))
        count = size.dims[0] if size.ndim == 1 else -1
    whole = not has_dtype(size) or convert_to_tensor(size).dtype.is_integer
    if count != 2 or not whole:
        raise refusal("'size' must be a 1-D tensor of 2 integers: new_height, new_width")
    try:
        height, width = sizes_of(size, "resize: size")
    except TypeError as error:
        raise refusal(f"'size' must be a 1-D tensor of 2 integers: {error}") from None
    return height, width


def _in_ratio(height: Dim, width: Dim, most_high: Dim, most_wide: Dim) -> tuple[Dim, Dim]:
    """The largest size in the ratio of height to width that fits."""
    sizes = (height, width, most_high, most_wide)
    known = [np.float32(d) for d in sizes if isinstance(d, int)]
    if len(known) == 4:
        scale = min(known[2] / known[0], known[3] / known[1])
        return int(np.round(scale * known[0])), int(np.round(scale * known[1]))
    h, w, high, wide = map(float_of, sizes)
    found = minimum(high / h, wide / w)
    return _dim(rounded(found * h)), _dim(rounded(found * w))


def _dim(number: Tensor, least: int = 1) -> Dim:
    return size_of(cast(number, dtypes.int64), "resize: size", least=least)


def _resized(x: Tensor, height: Dim, width: Dim, method: str, antialias: bool) -> Tensor:
    down, along = x.ndim - 3, x.ndim - 2
    if method == ResizeMethod.NEAREST_NEIGHBOR:
        rows = nearest_positions(x.dims[down], height)
        return gathered(gathered(x, rows, down), nearest_positions(x.dims[along], width), along)
    if x.dtype is not dtypes.float32:
        x = cast(x, dtypes.float32)
    if method == ResizeMethod.BILINEAR and not antialias:
        return _blended(_blended(x, along, width), down, height)
    kernel = _SMOOTH.get(method, method) if antialias else method
    for axis, size in ((down, height), (along, width)):
        x = resampled(x, axis, samples(x.dims[axis], size, kernel, antialias))
    return x


def _blended(x: Tensor, axis: int, size: Dim) -> Tensor:
    """Between the two nearest elements along an axis; equal ones give exactly their value."""
    low, high, share = neighbours(x.dims[axis], size)
    first = gathered(x, low, axis)
    share = reshape_to(share, (size, *(1,) * (x.ndim - 1 - axis)))
    return first + (gathered(x, high, axis) - first) * share


@composed
def resize_with_pad(
    image: Any, target_height: Any, target_width: Any, method: str = ResizeMethod.BILINEAR,
    antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Images resized in their ratio of height to width until they fit, with zeros around them.

    Args:
        image: [batch, height, width, channels] or [height, width, channels].
        target_height, target_width: the size of the result.
        method, antialias: see `resize`.

    Raises:
        ValueError: a size that is not positive, another rank.
    """

    def resized(x: Tensor, size: list[Dim]) -> Tensor:
        return resize(x, size, method, antialias=antialias)

    return padded_around(image, target_height, target_width, resized)


def padded_around(
    image: Any, target_height: Any, target_width: Any,
    resized: Callable[[Tensor, list[Dim]], Tensor],
) -> Tensor:  # fmt: skip
    """`resize_with_pad` with another way to resize, which gets the images and their size."""
    x = image_tensor("resize_with_pad", image)
    high = _positive("resize_with_pad: target_height", target_height)
    wide = _positive("resize_with_pad: target_width", target_width)
    *_, height, width, _ = x.dims
    size, (top, left) = _fitted(height, width, high, wide)
    return pad_to_bounding_box(resized(x, size), top, left, high, wide)


def _positive(what: str, value: Any) -> Dim:
    if isinstance(value, int) and value <= 0:
        raise refusal(f"{what} must be > 0.")
    return size_of(value, what, least=1)


def _fitted(height: Dim, width: Dim, high: Dim, wide: Dim) -> tuple[list[Dim], list[Dim]]:
    """The size of the largest image that fits, and where it begins."""
    sizes = (height, width, high, wide)
    known: list[Any] = [np.float32(d) for d in sizes if isinstance(d, int)]
    h, w, most_high, most_wide = known if len(known) == 4 else map(float_of, sizes)
    larger: Any = max if len(known) == 4 else maximum
    ratio = larger(w / most_wide, h / most_high)
    new = [h / ratio, w / ratio]
    free = [(most_high - new[0]) / 2, (most_wide - new[1]) / 2]
    if len(known) == 4:
        return [math.floor(n) for n in new], [math.floor(max(n, 0.0)) for n in free]
    return [_dim(floor(n)) for n in new], [_dim(floor(maximum(n, 0.0)), 0) for n in free]
