"""Pooling in NumPy: one pass over the images for each element of the window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim
from treadle.core.tensor import NDArray
from treadle.ops.softmax import wide
from treadle.ops.windows import Padding, Pair, Span, cropped, padded, spans, static, tap


def pool_spans(
    dims: Sequence[Dim], window: Pair, strides: Pair, padding: Padding
) -> tuple[Span, Span]:
    return spans(dims, window, strides, padding, (1, 1))


def lowest(dtype: DType) -> Any:
    return float("-inf") if dtype.is_floating else dtype.min


def winner_dtype(window: Pair) -> DType:
    """The dtype of numbers of elements in a window; its largest number stands for no element."""
    return dtypes.uint8 if window[0] * window[1] < dtypes.uint8.max else dtypes.int32


def _taps(x: NDArray, rows: Span, columns: Span) -> Iterator[NDArray]:
    """The elements of the windows, one window position after the other."""
    for i in range(rows.window):
        for j in range(columns.window):
            yield x[tap(i, j, rows, columns)]


def _framed(x: NDArray, rows: Span, columns: Span) -> NDArray:
    return padded(x, rows, columns, lowest(dtypes.from_numpy(x.dtype)))


def eager_max(x: NDArray, *, window: Pair, strides: Pair, padding: Padding) -> NDArray:
    rows, columns = pool_spans(x.shape[1:3], window, strides, padding)
    taps = _taps(_framed(x, rows, columns), rows, columns)
    highest = next(taps).copy()
    for values in taps:
        np.maximum(highest, values, out=highest)
    return highest


def eager_index(x: NDArray, *, window: Pair, strides: Pair, padding: Padding) -> NDArray:
    rows, columns = pool_spans(x.shape[1:3], window, strides, padding)
    taps = _taps(_framed(x, rows, columns), rows, columns)
    highest = next(taps).copy()
    winner = np.zeros(highest.shape, winner_dtype(window).np_dtype)
    for number, values in enumerate(taps, start=1):
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
    framed = padded(np.zeros((dy.shape[0], *image, dy.shape[3]), dy.dtype), rows, columns)
    zero = dy.dtype.type(0)
    for number, place in enumerate(_places(rows, columns)):
        framed[place] += np.where(winner == number, dy, zero)
    return cropped(framed, rows, columns)


def _places(rows: Span, columns: Span) -> Iterator[tuple[slice[Any, Any, Any], ...]]:
    for i in range(rows.window):
        for j in range(columns.window):
            yield tap(i, j, rows, columns)


def eager_gather(
    x: NDArray, winner: NDArray, *, window: Pair, strides: Pair, padding: Padding
) -> NDArray:
    rows, columns = pool_spans(x.shape[1:3], window, strides, padding)
    picked = np.zeros(winner.shape, x.dtype)
    for number, values in enumerate(_taps(padded(x, rows, columns), rows, columns)):
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
    taps = _taps(padded(wide(x), rows, columns), rows, columns)
    total = next(taps).copy()
    for values in taps:
        total += values
    total /= _shares(rows, columns).astype(total.dtype)
    return total.astype(x.dtype, copy=False)


def eager_avg_grad(
    dy: NDArray, *, image: Pair, window: Pair, strides: Pair, padding: Padding
) -> NDArray:
    rows, columns = pool_spans(image, window, strides, padding)
    values = wide(dy)
    shares = values / _shares(rows, columns).astype(values.dtype)
    framed = padded(np.zeros((dy.shape[0], *image, dy.shape[3]), values.dtype), rows, columns)
    for place in _places(rows, columns):
        framed[place] += shares
    return cropped(framed, rows, columns).astype(dy.dtype, copy=False)
