"""Images looked up at places that a matrix gives, between pixels and beyond the border."""

from __future__ import annotations

from typing import Any

import treadle as td

FILL_MODES = ("reflect", "wrap", "constant", "nearest")
INTERPOLATIONS = ("nearest", "bilinear")


def projected(
    images: td.Tensor, rows: td.Tensor, interpolation: str, fill_mode: str, fill_value: float,
    size: Any = None,
) -> td.Tensor:  # fmt: skip
    """Images [batch, height, width, channels] whose pixel at (x, y) is that of the given image at
    ``((a x + b y + c) / k, (d x + e y + f) / k)``, where k is 1 or ``g x + h y + 1``.

    Args:
        rows: [batch, 6]: a to f of each image; or [batch, 8]: a to h.
        interpolation: "bilinear" between four pixels, or the "nearest" one.
        fill_mode: what lies beyond the border, see `RandomZoom`.
        fill_value: for "constant".
        size: the height and width of the results, as of the images where it is None.
    """
    shape = td.shape(images)
    high, wide = (shape[1], shape[2]) if size is None else size
    known = images.shape if size is None else [images.shape[0], high, wide, images.shape[3]]
    x = td.cast(td.range(wide), rows.dtype)[None, None]
    y = td.cast(td.range(high), rows.dtype)[None, :, None]
    a, b, c, d, e, f, *far = (part[:, None, None] for part in td.unstack(rows, axis=1))
    right, below = a * x + b * y + c, d * x + e * y + f
    if far:
        distance = far[0] * x + far[1] * y + 1.0
        right, below = right / distance, below / distance
    across, down = _inside(right, shape[2], fill_mode), _inside(below, shape[1], fill_mode)
    pixels = td.reshape(images, [-1, shape[3]])

    def at(row: td.Tensor, column: td.Tensor) -> td.Tensor:
        """The pixels at whole places, `fill_value` where there are none."""
        top, left = shape[1] - 1, shape[2] - 1
        r, k = td.cast(row, td.int32), td.cast(column, td.int32)
        there = (r >= 0) & (r <= top) & (k >= 0) & (k <= left)
        first = (td.range(shape[0]) * shape[1] * shape[2])[:, None, None]
        places = first + td.clip_by_value(r, 0, top) * shape[2] + td.clip_by_value(k, 0, left)
        found = td.gather(pixels, places)
        return td.where(there[..., None], found, td.cast(fill_value, images.dtype))

    if interpolation == "nearest":
        return td.ensure_shape(at(_rounded(down), _rounded(across)), known)
    top, left = td.floor(down), td.floor(across)
    parts = (down - top)[..., None], (across - left)[..., None]
    low, right = (td.cast(part, images.dtype) for part in parts)
    above = at(top, left) * (1 - right) + at(top, left + 1) * right
    below = at(top + 1, left) * (1 - right) + at(top + 1, left + 1) * right
    return td.ensure_shape(above * (1 - low) + below * low, known)


def _rounded(x: td.Tensor) -> td.Tensor:
    """To the next whole number, halves away from 0."""
    return td.sign(x) * td.floor(td.abs(x) + 0.5)


def _inside(x: td.Tensor, size: Any, fill_mode: str) -> td.Tensor:
    """Coordinates from 0 to size - 1 for those beyond, which "constant" leaves as they are."""
    if fill_mode == "constant":
        return x
    n = td.cast(size, x.dtype)
    if fill_mode == "reflect":  # abcd|dcba|abcd ...: 2 n coordinates repeat
        period = 2.0 * n
        turns = td.where(x < 0, td.floor(-x / period), -td.floor(x / period))
        near = x + turns * period
        x = td.where(
            x < 0,
            td.where(near < -n, near + period, -near - 1.0),
            td.where(near >= n, period - near - 1.0, near),
        )
    elif fill_mode == "wrap":  # as TensorFlow counts the turns: by n - 1
        turns = td.where(x < 0, td.floor(-x / (n - 1.0)) + 1.0, -td.floor(x / (n - 1.0)))
        x = td.where((x < 0) | (x > n - 1.0), x + n * turns, x)
    return td.clip_by_value(x, 0.0, n - 1.0)
