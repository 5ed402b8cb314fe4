"""`keras.ops.image`: colours, sizes, patches, and pixels looked up at other places."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.keras.layers.preprocessing.images import (
    cropped_to_aspect,
    padded_to_aspect,
    resized,
)
from treadle.keras.layers.preprocessing.projections import FILL_MODES, INTERPOLATIONS, projected
from treadle.keras.layers.spatial import format_name
from treadle.keras.ops.arrays import moved
from treadle.keras.ops.conversion import tensor, tensors
from treadle.keras.ops.core import shape as shape_of
from treadle.keras.ops.networks import conv
from treadle.keras.ops.operations import operation
from treadle.keras.promotion import result_type
from treadle.keras.random import draw_seed

_operation = functools.partial(operation, "image")


def _of(images: Any, data_format: str | None, function: Callable[[Any], Any]) -> Any:
    """What a function makes of a batch of images with the channels last.

    Raises:
        ValueError: it is neither an image nor a batch of them.
    """
    x = tensor(images)
    rank = len(x.shape)
    if rank not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received input with shape: images.shape={x.shape}"
        )
    last = format_name(data_format) == "channels_last"
    x = x if rank == 4 else x[None]
    found = function(x if last else td.transpose(x, [0, 2, 3, 1]))
    if not last:
        found = td.transpose(found, [0, 3, 1, 2, *range(4, len(found.shape))])
    return found if rank == 4 else found[0]


def _known(value: str, known: Any, name: str) -> None:
    if value not in known:
        raise ValueError(
            f"Invalid value for argument `{name}`. Expected of one {tuple(known)}. "
            f"Received: {name}={value}"
        )


# -- colours ---------------------------------------------------------------------------------------


@_operation("images", name="RGBToGrayscale")
def rgb_to_grayscale(images: Any, data_format: str | None = None) -> Any:
    """Grey images of coloured ones, with one channel.

    Raises:
        ValueError: there are neither one nor three channels.
    """

    def grey(x: td.Tensor) -> td.Tensor:
        if x.shape[-1] not in (1, 3):
            raise ValueError(
                "Invalid channel size: expected 3 (RGB) or 1 (Grayscale). Received input with "
                f"shape: images.shape={x.shape}"
            )
        if x.shape[-1] == 1:
            return x
        floats = td.cast(x, result_type(x.dtype, float))
        weights = td.constant([[0.2989], [0.5870], [0.1140]], floats.dtype)
        return td.cast(td.tensordot(floats, weights, [[-1], [0]]), x.dtype)

    return _of(images, data_format, grey)


def _colours(images: Any, data_format: str | None, function: Callable[[Any], Any]) -> Any:
    x = tensor(images)
    if not x.dtype.is_floating:
        raise ValueError(
            f"Invalid images dtype: expected float dtype. Received: images.dtype={x.dtype.name}"
        )
    return _of(x, data_format, function)


@_operation("images", name="RGBToHSV")
def rgb_to_hsv(images: Any, data_format: str | None = None) -> Any:
    """Hue, saturation and value of colours from 0 to 1."""
    return _colours(images, data_format, td.image.rgb_to_hsv)


@_operation("images", name="HSVToRGB")
def hsv_to_rgb(images: Any, data_format: str | None = None) -> Any:
    """Colours of hue, saturation and value."""
    return _colours(images, data_format, td.image.hsv_to_rgb)


# -- sizes -----------------------------------------------------------------------------------------

_RESIZING = ("bilinear", "nearest", "lanczos3", "lanczos5", "bicubic", "area")


@_operation("images")
def resize(
    images: Any, size: Any, interpolation: str = "bilinear", antialias: bool = False,
    crop_to_aspect_ratio: bool = False, pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant", fill_value: float = 0.0, data_format: str | None = None,
) -> Any:  # fmt: skip
    """Images of another size.

    Args:
        size: (height, width).
        interpolation: "bilinear", "nearest", "bicubic", "lanczos3", "lanczos5" or "area".
        antialias: average where images become smaller.
        crop_to_aspect_ratio: cut margins off instead of distorting the images.
        pad_to_aspect_ratio: add margins of `fill_value` instead of distorting the images.
        fill_mode: "constant".

    Raises:
        ValueError: an argument is none of these.
    """
    _known(interpolation, _RESIZING, "interpolation")
    _known(fill_mode, ("constant",), "fill_mode")
    if pad_to_aspect_ratio and crop_to_aspect_ratio:
        raise ValueError(
            "Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`."
        )  # fmt: skip
    if len(size) != 2:
        raise ValueError(
            "Argument `size` must be a tuple of two elements (height, width). "
            f"Received: size={size}"
        )  # fmt: skip
    height, width = (int(s) for s in size)

    def changed(x: td.Tensor) -> td.Tensor:
        if crop_to_aspect_ratio:
            x = cropped_to_aspect(x, height, width)
        elif pad_to_aspect_ratio:
            x = padded_to_aspect(x, height, width, fill_value)
        return resized(x, height, width, interpolation, antialias)

    return _of(images, data_format, changed)


def _margins(kind: str, given: tuple[Any, ...], target: Any, size: Any) -> tuple[Any, Any, Any]:
    """(before, after, what is between) of one axis, of which two are given."""
    before, after = given
    if (before, after, target).count(None) != 1:
        raise ValueError(
            f"Must specify exactly two of the {kind} before, the {kind} after and the target size "
            f"of each axis. Received: {before}, {after}, {target}"
        )
    sign = 1 if kind == "padding" else -1
    if before is None:
        before = (target - size) * sign - after
    if after is None:
        after = (target - size) * sign - before
    if target is None:
        target = size + sign * (before + after)
    if any(isinstance(v, int) and v < 0 for v in (before, after, target)):
        raise ValueError(
            f"The {kind} and what is left must be >= 0. Received: {before}, {after} and {target}"
        )
    return before, after, target


@_operation("images")
def pad_images(
    images: Any, top_padding: Any = None, left_padding: Any = None, bottom_padding: Any = None,
    right_padding: Any = None, target_height: Any = None, target_width: Any = None,
    data_format: str | None = None,
) -> Any:  # fmt: skip
    """Images with margins of zeros, by two of: margin before, margin after, whole size.

    Raises:
        ValueError: of an axis not just two are given, or a margin is negative.
    """

    def padded(x: td.Tensor) -> td.Tensor:
        _, height, width, _ = shape_of(x)
        top, bottom, _ = _margins("padding", (top_padding, bottom_padding), target_height, height)
        left, right, _ = _margins("padding", (left_padding, right_padding), target_width, width)
        return td.pad(x, [[0, 0], [top, bottom], [left, right], [0, 0]])

    return _of(images, data_format, padded)


@_operation("images")
def crop_images(
    images: Any, top_cropping: Any = None, left_cropping: Any = None, bottom_cropping: Any = None,
    right_cropping: Any = None, target_height: Any = None, target_width: Any = None,
    data_format: str | None = None,
) -> Any:  # fmt: skip
    """Images without margins, by two of: margin before, margin after, size that is left.

    Raises:
        ValueError: of an axis not just two are given, or one is negative.
    """

    def cropped(x: td.Tensor) -> td.Tensor:
        _, height, width, _ = shape_of(x)
        top, _, tall = _margins("cropping", (top_cropping, bottom_cropping), target_height, height)
        left, _, wide = _margins("cropping", (left_cropping, right_cropping), target_width, width)
        part = x[:, top : top + tall, left : left + wide]
        sizes = [size if isinstance(size, int) else None for size in (tall, wide)]
        return td.ensure_shape(part, [x.shape[0], *sizes, x.shape[3]])

    return _of(images, data_format, cropped)


# -- patches ---------------------------------------------------------------------------------------


def _patches(
    images: Any, sizes: list[int], strides: Any, dilation_rate: Any, padding: str,
    data_format: str | None,
) -> Any:  # fmt: skip
    """Windows as channels, by a convolution with ones and zeros."""
    x, name = tensor(images), format_name(data_format)
    batched = len(x.shape) == len(sizes) + 2
    x = x if batched else x[None]
    channels = x.shape[-1 if name == "channels_last" else 1]
    count = math.prod(sizes) * channels
    kernel = td.constant(np.eye(count).reshape(*sizes, channels, count), x.dtype)
    found = conv(x, kernel, strides or tuple(sizes), padding, data_format, dilation_rate)
    return found if batched else found[0]


@_operation("images")
def extract_patches(
    images: Any, size: Any, strides: Any = None, dilation_rate: Any = 1, padding: str = "valid",
    data_format: str | None = None,
) -> Any:  # fmt: skip
    """The patches of images, or of volumes where three sizes are given, as channels.

    Args:
        size: (height, width), or an int for both.
        strides: the steps between patches, their size when omitted.
    """
    if not isinstance(size, int | tuple | list):
        raise TypeError(
            "Invalid `size` argument. Expected an int or a tuple. "
            f"Received: size={size} of type {type(size).__name__}"
        )
    sizes = [size] * 2 if isinstance(size, int) else list(size)
    if len(sizes) not in (2, 3):
        raise ValueError(
            "Invalid `size` argument. Expected a tuple of length 2 or 3. "
            f"Received: size={size} with length {len(sizes)}"
        )
    return _patches(images, sizes, strides, dilation_rate, padding, data_format)


def extract_patches_3d(
    volumes: Any, size: Any, strides: Any = None, dilation_rate: Any = 1, padding: str = "valid",
    data_format: str | None = None,
) -> Any:  # fmt: skip
    """`extract_patches` of volumes [batch, depth, height, width, channels]."""
    sizes = (size,) * 3 if isinstance(size, int) else tuple(size)
    if len(sizes) != 3:
        raise TypeError(
            "Invalid `size` argument. Expected an int or a tuple of length 3. "
            f"Received: size={size}"
        )  # fmt: skip
    return extract_patches(volumes, sizes, strides, dilation_rate, padding, data_format)


# -- looked up -------------------------------------------------------------------------------------


@_operation("images", "transform")
def affine_transform(
    images: Any, transform: Any, interpolation: str = "bilinear", fill_mode: str = "constant",
    fill_value: float = 0, data_format: str | None = None,
) -> Any:  # fmt: skip
    """Images whose pixel at (x, y) is that at ``((a x + b y + c) / k, (d x + e y + f) / k)`` with
    ``k = g x + h y + 1``.

    Args:
        transform: [a, ..., h], or such a row for each image.
        interpolation: "bilinear" or "nearest".
        fill_mode: what lies beyond the border: "constant" (`fill_value`), "nearest", "wrap" or
            "reflect".

    Raises:
        ValueError: an argument is none of these.
    """
    _known(interpolation, INTERPOLATIONS, "interpolation")
    _known(fill_mode, FILL_MODES, "fill_mode")
    rows = tensor(transform, td.float32)
    if len(rows.shape) not in (1, 2):
        raise ValueError(
            "Invalid transform rank: expected rank 1 (single transform) or rank 2 (batch of "
            f"transforms). Received input with shape: transform.shape={rows.shape}"
        )
    return _of(
        images, data_format, lambda x: _projected(x, rows, interpolation, fill_mode, fill_value)
    )  # fmt: skip


def _projected(
    x: td.Tensor, rows: td.Tensor, interpolation: str, fill_mode: str, fill_value: Any
) -> td.Tensor:
    rows = rows if len(rows.shape) == 2 else rows[None]
    rows = td.broadcast_to(rows, [td.shape(x)[0], 8])
    floats = x if x.dtype in (td.float32, td.float64) else td.cast(x, td.float32)
    found = projected(floats, td.cast(rows, floats.dtype), interpolation, fill_mode, fill_value)
    return td.cast(found, x.dtype)


@_operation("images", "start_points", "end_points")
def perspective_transform(
    images: Any, start_points: Any, end_points: Any, interpolation: str = "bilinear",
    fill_value: float = 0, data_format: str | None = None,
) -> Any:  # fmt: skip
    """Images seen from elsewhere: four points of each come to lie at four others.

    Args:
        start_points, end_points: [4, 2], or such points for each image.

    Raises:
        ValueError: the points have another shape.
    """
    _known(interpolation, INTERPOLATIONS, "interpolation")
    start, end = (tensor(p, td.float32) for p in (start_points, end_points))
    for name, points in (("start_points", start), ("end_points", end)):
        if len(points.shape) not in (2, 3) or points.shape.as_list()[-2:] != [4, 2]:
            raise ValueError(
                f"Invalid {name} shape: expected (4,2) for a single image or (N,4,2) for a batch. "
                f"Received shape: {points.shape}"
            )
    if start.shape.as_list() != end.shape.as_list():
        raise ValueError(
            "start_points and end_points must have the same shape. Received "
            f"start_points.shape={start.shape}, end_points.shape={end.shape}"
        )
    rows = homography(*(p if len(p.shape) == 3 else p[None] for p in (start, end)))
    return _of(
        images, data_format, lambda x: _projected(x, rows, interpolation, "constant", fill_value)
    )  # fmt: skip


def homography(start: td.Tensor, end: td.Tensor) -> td.Tensor:
    """The rows a to h that take the points `end` to `start`."""
    x, y = end[..., 0], end[..., 1]
    one, zero = td.ones_like(x), td.zeros_like(x)
    across = [x, y, one, zero, zero, zero, -start[..., 0] * x, -start[..., 0] * y]
    down = [zero, zero, zero, x, y, one, -start[..., 1] * x, -start[..., 1] * y]
    matrix = td.stack([td.stack(across, -1), td.stack(down, -1)], 2)
    matrix = td.reshape(matrix, [-1, 8, 8])
    return td.linalg.solve(matrix, td.reshape(start, [-1, 8, 1]))[..., 0]


_BEYOND = ("constant", "nearest", "wrap", "mirror", "reflect")


def _inside(place: td.Tensor, size: Any, fill_mode: str) -> td.Tensor:
    """The index in an axis of that size for one beyond it."""
    if fill_mode in ("constant", "nearest"):
        return td.clip_by_value(place, 0, size - 1)
    if fill_mode == "wrap":
        return td.math.floormod(place, size)
    if fill_mode == "mirror":  # the last element is not repeated
        turns = 2 * (size - 1)
        near = td.math.floormod(td.abs(place), turns)
        return td.where(near < size, near, turns - near)
    near = td.math.floormod(place, 2 * size)
    return td.where(near < size, near, 2 * size - 1 - near)


@_operation("inputs", "coordinates")
def map_coordinates(
    inputs: Any, coordinates: Any, order: int, fill_mode: str = "constant", fill_value: Any = 0
) -> Any:
    """The elements at coordinates, of which there is one tensor for each axis.

    Args:
        order: 0 for the nearest element, 1 for what lies between elements.
        fill_mode: what lies beyond: "constant" (`fill_value`), "nearest", "wrap", "mirror" or
            "reflect".

    Raises:
        ValueError: an argument is none of these, or there are not as many coordinates as axes.
        NotImplementedError: a higher order.
    """
    x, places = tensor(inputs), tensor(coordinates)
    if places.shape[0] != len(x.shape):
        raise ValueError(
            "First dim of `coordinates` must be the same as the rank of `inputs`. Received inputs "
            f"with shape: {x.shape} and coordinate leading dim of {places.shape[0]}"
        )
    if len(places.shape) < 2:
        raise ValueError(
            "Invalid coordinates rank: expected at least rank 2. Received input with shape: "
            f"{places.shape}"
        )
    _known(fill_mode, _BEYOND, "fill_mode")
    if order not in (0, 1):
        raise NotImplementedError("map_coordinates currently requires order<=1")
    kind = places.dtype if places.dtype.is_floating else td.float32
    each = []
    for place, size in zip(td.unstack(places, axis=0), shape_of(x), strict=True):
        at = td.cast(place, kind)
        lower = td.round(at) if order == 0 else td.math.floor(at)
        share = at - lower
        near = [(td.cast(lower, td.int32), 1 - share), (td.cast(lower, td.int32) + 1, share)]
        each.append([
            (_inside(index, size, fill_mode), (index >= 0) & (index < size), weight)
            for index, weight in (near if order else [(near[0][0], td.ones_like(at))])
        ])  # fmt: skip
    found = None
    for corner in itertools.product(*each):
        value = td.cast(td.gather_nd(x, td.stack([index for index, _, _ in corner], -1)), kind)
        if fill_mode == "constant":
            there = functools.reduce(td.logical_and, [t for _, t, _ in corner])
            value = td.where(there, value, tensor(fill_value, kind))
        value = value * functools.reduce(td.multiply, [weight for _, _, weight in corner])
        found = value if found is None else found + value
    return td.cast(td.round(found) if x.dtype.is_integer else found, x.dtype)


def _bell(size: Any, sigma: Any, dtype: Any) -> td.Tensor:
    """Weights of a normal distribution, whose sum is 1."""
    x = td.cast(td.range(size), dtype) - (size - 1) / 2
    weights = td.exp(-0.5 * td.square(x / tensor(sigma, dtype)))
    return weights / td.reduce_sum(weights)


@_operation("images")
def gaussian_blur(
    images: Any, kernel_size: Any = (3, 3), sigma: Any = (1.0, 1.0), data_format: str | None = None
) -> Any:
    """Images whose pixels are means of their neighbours, with the weights of a bell.

    Args:
        kernel_size: how many rows and columns of neighbours.
        sigma: the widths of the bell.
    """

    def blurred(x: td.Tensor) -> td.Tensor:
        rows, columns = (
            _bell(int(size), width, x.dtype)
            for size, width in zip(kernel_size, sigma, strict=True)
        )  # fmt: skip
        kernel = columns[:, None] * rows[None, :]
        kernel = td.reshape(kernel, [int(kernel_size[0]), int(kernel_size[1]), 1, 1])
        kernel = td.tile(kernel, [1, 1, x.shape[-1], 1])
        return td.nn.depthwise_conv2d(x, kernel, [1, 1, 1, 1], "SAME")

    return _of(images, data_format, blurred)


@_operation("images")
def elastic_transform(
    images: Any, alpha: Any = 20.0, sigma: Any = 5.0, interpolation: str = "bilinear",
    fill_mode: str = "reflect", fill_value: float = 0.0, seed: Any = None,
    data_format: str | None = None,
) -> Any:  # fmt: skip
    """Images whose pixels are moved by random distances, which vary slowly.

    Args:
        alpha: how far.
        sigma: how slowly.
        seed: an int, a `SeedGenerator` or None.
    """
    _known(interpolation, INTERPOLATIONS, "interpolation")
    _known(fill_mode, FILL_MODES, "fill_mode")
    drawn = draw_seed(seed)
    size = int(6 * int(sigma)) | 1

    def moved_pixels(x: td.Tensor) -> td.Tensor:
        return displaced(
            x, float(alpha), float(sigma), size, drawn, interpolation, fill_mode, fill_value
        )

    return _of(images, data_format, moved_pixels)


def displaced(
    x: td.Tensor, alpha: Any, sigma: Any, size: int, seed: Any, interpolation: str, fill_mode: str,
    fill_value: float,
) -> td.Tensor:  # fmt: skip
    """The pixels of images [batch, height, width, channels], moved by smooth random distances.

    Args:
        alpha, sigma: how far, and how wide the bell is that smooths the distances: numbers or
            scalars.
        size: how many rows and columns of neighbours the bell covers.
        seed: two ints.
    """
    batch, height, width, channels = shape_of(x)
    noise = td.random.stateless_normal([batch, height, width, 1], seed, dtype=td.float32)
    shift = gaussian_blur(noise * sigma, (size, size), (sigma, sigma), "channels_last")
    shift = shift[..., 0] * alpha
    first = td.cast(td.range(batch), td.float32)[:, None, None] + td.zeros_like(shift)
    down = td.cast(td.range(height), td.float32)[None, :, None] + shift
    across = td.cast(td.range(width), td.float32)[None, None, :] + shift
    places, order = td.stack([first, down, across]), INTERPOLATIONS.index(interpolation)
    parts = [
        map_coordinates(x[..., c], places, order, fill_mode, fill_value) for c in range(channels)
    ]
    return td.stack(parts, -1)


# -- scaled ----------------------------------------------------------------------------------------


def _triangle(x: td.Tensor) -> td.Tensor:
    return td.maximum(td.zeros_like(x), 1 - x)


def _cubic(x: td.Tensor) -> td.Tensor:
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return td.where(x >= 2.0, td.zeros_like(x), td.where(x >= 1.0, far, near))


def _lanczos(radius: float, x: td.Tensor) -> td.Tensor:
    away = td.where(x > 1e-3, x, td.ones_like(x))
    waves = td.sin(math.pi * x) * td.sin(math.pi * x / radius) * radius
    found = td.where(x > 1e-3, waves / (math.pi**2 * td.square(away)), td.ones_like(x))
    return td.where(x > radius, td.zeros_like(x), found)


_KERNELS: dict[str, Callable[[td.Tensor], td.Tensor]] = {
    **dict.fromkeys(("linear", "bilinear", "trilinear"), _triangle),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), _cubic),
    "lanczos3": functools.partial(_lanczos, 3.0), "lanczos5": functools.partial(_lanczos, 5.0),
}  # fmt: skip


def _weights(
    size: Any, count: Any, scale: td.Tensor, translation: td.Tensor,
    kernel: Callable[[td.Tensor], td.Tensor], antialias: bool,
) -> td.Tensor:  # fmt: skip
    """How much each of `size` elements counts for each of `count` new ones."""
    inverse = 1.0 / scale
    wide = td.maximum(inverse, td.ones_like(inverse)) if antialias else td.ones_like(inverse)
    places = (td.cast(td.range(count), scale.dtype) + 0.5 - translation) * inverse - 0.5
    apart = td.abs(places[None, :] - td.cast(td.range(size), scale.dtype)[:, None]) / wide
    weights = kernel(apart)
    total = td.reduce_sum(weights, 0, keepdims=True)
    enough = td.abs(total) > 1000.0 * float(np.finfo(np.float32).eps)
    weights = td.where(enough, weights / td.where(enough, total, td.ones_like(total)), 0.0)
    last = td.cast(size, scale.dtype) - 0.5
    within = (places >= -0.5) & (places <= last)
    return td.where(within[None, :], weights, td.zeros_like(weights))


@_operation("images", "output_shape", "scale", "translation")
def scale_and_translate(
    images: Any, output_shape: Any, scale: Any, translation: Any, spatial_dims: Any, method: str,
    antialias: bool = True,
) -> Any:  # fmt: skip
    """An array scaled and moved along axes.

    Args:
        output_shape: of the result.
        scale, translation: for each of the axes.
        spatial_dims: the axes.
        method: "linear", "cubic", "lanczos3" or "lanczos5".
        antialias: average where it becomes smaller.
    """
    _known(method, _KERNELS, "method")
    x = tensor(images)
    factors, shifts = tensors(scale, translation)
    found = td.cast(x, td.float32) if x.dtype.is_integer else x
    for i, axis in enumerate(spatial_dims):
        weights = _weights(
            shape_of(x)[axis], output_shape[axis], factors[i], shifts[i], _KERNELS[method],
            antialias,
        )  # fmt: skip
        found = td.tensordot(found, td.cast(weights, found.dtype), [[axis], [0]])
        found = moved(found, -1, axis)
    if not x.dtype.is_integer:
        return found
    low, high = (td.cast(f(x), found.dtype) for f in (td.reduce_min, td.reduce_max))
    return td.cast(td.clip_by_value(td.round(found), low, high), x.dtype)


# -- edges and likeness ----------------------------------------------------------------------------


@_operation("images")
def sobel_edges(images: Any, data_format: str | None = None) -> Any:
    """The changes from row to row and from column to column, along a new last axis."""
    return _of(images, data_format, td.image.sobel_edges)


@_operation("image1", "image2", name="SSIM")
def ssim(
    image1: Any, image2: Any, max_val: float = 1.0, filter_size: int = 11,
    filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03, data_format: str | None = None,
) -> Any:  # fmt: skip
    """How alike the structures of two images are, 1 at most."""
    a, b = tensor(image1), tensor(image2)
    kind = result_type(a.dtype, float)

    def last(x: td.Tensor) -> td.Tensor:
        if len(x.shape) not in (3, 4):
            raise ValueError(
                "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
                f"Received input with shape: {x.shape}"
            )
        first = format_name(data_format) == "channels_first"
        return moved(td.cast(x, kind), -3, -1) if first else td.cast(x, kind)

    found = td.image.ssim(last(a), last(b), max_val, filter_size, filter_sigma, k1, k2)
    return td.cast(found, a.dtype)
