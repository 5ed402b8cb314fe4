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
