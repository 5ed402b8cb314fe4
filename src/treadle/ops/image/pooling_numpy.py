"""Pooling in NumPy: one pass over the images for each element of the window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim
from treadle.core.tensor import NDArray
from treadle.ops.image.windows import Padding, Pair, Span, cropped, padded, spans, static, tap
from treadle.ops.nn.softmax import wide


def pool_spans(
    dims: Sequence[Dim], window: Pair, strides: Pair, padding: Padding
) -> tuple[Span, Span]:
    return spans(dims, window, strides, padding, (1, 1))


def lowest(dtype: DType) -> Any:
    return float("-inf") if dtype.is_floating else dtype.min


def winner_dtype(window: Pair) -> DType:
    """The dtype of numbers of elements in a window; its largest number stands for no element."""
    return dtypes.uint8 if window[0] * window[1] < dtypes.uint8.max else dtypes.int32


class _Windows:
    """The windows of images without what lies beyond all images, which may be most of them.

    Attributes:
        spans: rows and columns of the windows that are left.
    """

    def __init__(self, rows: Span, columns: Span) -> None:
        self.across = columns.window
        self.first = static(rows.offsets[0]), static(columns.offsets[0])
        self.spans = _trimmed(rows), _trimmed(columns)

    def places(self) -> Iterator[tuple[int, Place]]:
        """For every position in a window its number, and where it lies in the framed images."""
        (rows, columns), (top, left) = self.spans, self.first
        for i in range(rows.window):
            for j in range(columns.window):
                yield (i + top) * self.across + j + left, tap(i, j, rows, columns)

    def taps(self, x: NDArray, fill: Any = 0) -> Iterator[tuple[int, NDArray]]:
        """The elements of the windows, one window position after the other, with its number."""
        framed = padded(x, *self.spans, fill)
        for number, place in self.places():
            yield number, framed[place]

    def frame(self, n: int, channels: int, dtype: Any) -> NDArray:
        """Zeros for framed images."""
        rows, columns = self.spans
        image = np.zeros((n, static(rows.size), static(columns.size), channels), dtype)
        return padded(image, rows, columns)


Place: TypeAlias = "tuple[slice[Any, Any, Any], ...]"


def _trimmed(s: Span) -> Span:
    size, count = static(s.size), static(s.count)
    if count < 1:
        return replace(s, window=0, before=0, after=0)
    first, end = (static(d) for d in s.offsets)
    window, before = end - first, static(s.before) - first
    after = max((count - 1) * s.stride + window - size - before, 0)
    return replace(s, window=window, before=before, after=after)


def eager_max(x: NDArray, *, window: Pair, strides: Pair, padding: Padding) -> NDArray:
    rows, columns = pool_spans(x.shape[1:3], window, strides, padding)
    highest = _filled(x, rows, columns, lowest(dtypes.from_numpy(x.dtype)))
    for _, values in _Windows(rows, columns).taps(x, lowest(dtypes.from_numpy(x.dtype))):
        np.maximum(highest, values, out=highest)
    return highest


def _filled(x: NDArray, rows: Span, columns: Span, value: Any) -> NDArray:
    """One element a window."""
    shape = (x.shape[0], static(rows.count), static(columns.count), x.shape[3])
    return np.full(shape, value, x.dtype)


def eager_index(x: NDArray, *, window: Pair, strides: Pair, padding: Padding) -> NDArray:
    rows, columns = pool_spans(x.shape[1:3], window, strides, padding)
    highest = _filled(x, rows, columns, lowest(dtypes.from_numpy(x.dtype)))
    winner = np.zeros(highest.shape, winner_dtype(window).np_dtype)
    for number, values in _Windows(rows, columns).taps(x, lowest(dtypes.from_numpy(x.dtype))):
        winner[values > highest] = number
        np.maximum(highest, values, out=highest)
    return np.where(winner == 0, _first_numbers(rows, columns).astype(winner.dtype), winner)


def _first_numbers(rows: Span, columns: Span) -> NDArray:
    """The number of every window's first element in the image, [1, out_h, out_w, 1]: it wins where
    none is greater than padding."""
    i, j = (
        np.clip(static(s.before) - np.arange(static(s.count)) * s.stride, 0, s.window - 1)
        for s in (rows, columns)
    )
    numbers: NDArray = i[:, None] * columns.window + j
    return numbers[None, :, :, None]


def eager_masked_index(
    x: NDArray, mask: NDArray, *, window: Pair, strides: Pair, padding: Padding
) -> NDArray:
    attrs: dict[str, Any] = {"window": window, "strides": strides, "padding": padding}
    winner = eager_index(x, **attrs)
    winner[~eager_gather(mask, winner, **attrs)] = winner_dtype(window).max
    return winner


def eager_scatter(
    dy: NDArray, winner: NDArray, *, image: Pair, window: Pair, strides: Pair, padding: Padding
) -> NDArray:
    rows, columns = pool_spans(image, window, strides, padding)
    windows = _Windows(rows, columns)
    framed = windows.frame(dy.shape[0], dy.shape[3], dy.dtype)
    zero = dy.dtype.type(0)
    for number, place in windows.places():
        framed[place] += np.where(winner == number, dy, zero)
    return cropped(framed, *windows.spans)


def eager_gather(
    x: NDArray, winner: NDArray, *, window: Pair, strides: Pair, padding: Padding
) -> NDArray:
    rows, columns = pool_spans(x.shape[1:3], window, strides, padding)
    picked = np.zeros(winner.shape, x.dtype)
    for number, values in _Windows(rows, columns).taps(x):
        np.copyto(picked, values, where=winner == number)
    return picked


def _covered(s: Span) -> NDArray:
    """How many image elements each window along an axis covers."""
    start = np.arange(static(s.count)) * s.stride - static(s.before)
    covered: NDArray = np.minimum(start + s.window, static(s.size)) - np.maximum(start, 0)
    return covered


def _shares(rows: Span, columns: Span) -> NDArray:
    return (_covered(rows)[:, None] * _covered(columns))[None, :, :, None]


def eager_avg(x: NDArray, *, window: Pair, strides: Pair, padding: Padding) -> NDArray:
    rows, columns = pool_spans(x.shape[1:3], window, strides, padding)
    total = _filled(wide(x), rows, columns, -0.0)
    for _, values in _Windows(rows, columns).taps(wide(x)):
        total += values
    total /= _shares(rows, columns).astype(total.dtype)
    return total.astype(x.dtype, copy=False)


def eager_avg_grad(
    dy: NDArray, *, image: Pair, window: Pair, strides: Pair, padding: Padding
) -> NDArray:
    rows, columns = pool_spans(image, window, strides, padding)
    values = wide(dy)
    shares = values / _shares(rows, columns).astype(values.dtype)
    windows = _Windows(rows, columns)
    framed = windows.frame(dy.shape[0], dy.shape[3], values.dtype)
    for _, place in windows.places():
        framed[place] += shares
    return cropped(framed, *windows.spans).astype(dy.dtype, copy=False)
