"""Images resized as TensorFlow 1 does: the samples of a result are taken from the corner of the
image on, or with `align_corners` from corner to corner. `td.image.resize` takes those of the
centres of pixels."""

from __future__ import annotations

from typing import Any

import treadle as td


def _places(count: Any, size: Any, align_corners: bool) -> Any:
    """Where along an axis of `count` pixels the samples are."""
    count, size = td.cast(count, td.float32), td.cast(size, td.float32)
    if align_corners:
        # One sample is that of the first pixel.
        step = td.where(size > 1, (count - 1) / td.maximum(size - 1, 1.0), count / size)
    else:
        step = count / size
    return td.range(size, dtype=td.float32) * step


def bilinear(images: Any, size: Any, align_corners: bool) -> Any:
    """Images [batch, height, width, channels] of another size, interpolated: float32."""
    x = td.cast(images, td.float32)
    for axis in (1, 2):
        count = td.shape(x)[axis]
        places = _places(count, size[axis - 1], align_corners)
        low = td.floor(places)
        shares = td.reshape(places - low, [-1, 1, 1] if axis == 1 else [-1, 1])
        below = td.minimum(td.cast(low, td.int32), count - 1)
        above = td.minimum(below + 1, count - 1)
        first = td.gather(x, below, axis=axis)
        x = first + (td.gather(x, above, axis=axis) - first) * shares
    return x


def nearest(images: Any, size: Any, align_corners: bool) -> Any:
    """Images of another size, of the nearest pixels: in their dtype."""
    x = images
    for axis in (1, 2):
        count = td.shape(x)[axis]
        places = _places(count, size[axis - 1], align_corners)
        # Halves go up, as in C.
        chosen = td.floor(places + 0.5) if align_corners else td.floor(places)
        x = td.gather(x, td.minimum(td.cast(chosen, td.int32), count - 1), axis=axis)
    return x


def bicubic(images: Any, size: Any, align_corners: bool) -> Any:
    """Images [batch, height, width, channels] of another size, of four pixels along each axis, of
    which those beyond the borders are the nearest ones: float32."""
    x = td.cast(images, td.float32)
    for axis in (1, 2):
        count = td.shape(x)[axis]
        places = _places(count, size[axis - 1], align_corners)
        low = td.floor(places)
        shares = td.round((places - low) * _STEPS) / _STEPS
        first = td.cast(low, td.int32)
        total: Any = 0.0
        for distance, step in ((shares + 1, -1), (shares, 0), (1 - shares, 1), (2 - shares, 2)):
            weights = _near(distance) if step in (0, 1) else _far(distance)
            pixels = td.gather(x, td.clip_by_value(first + step, 0, count - 1), axis=axis)
            total = total + pixels * td.reshape(weights, [-1, 1, 1] if axis == 1 else [-1, 1])
        x = total
    return x


# TensorFlow 1 reads the weights of cubic samples from a table of so many shares of a pixel.
_STEPS = 1024.0
_SHARPNESS = -0.75  # the slope of the weights at a distance of one pixel


def _near(distance: Any) -> Any:
    """The weight of a pixel that is at most one pixel away."""
    a = _SHARPNESS
    return ((a + 2) * distance - (a + 3)) * distance * distance + 1


def _far(distance: Any) -> Any:
    """The weight of a pixel that is one or two pixels away."""
    a = _SHARPNESS
    return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
