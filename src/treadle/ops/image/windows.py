"""Sliding windows over images: what convolution and pooling share.

Attributes of these ops, all for the two spatial axes (height, width) of NHWC data: `strides` and
`dilations` are pairs of ints, `padding` is "SAME", "VALID" or ((top, bottom), (left, right)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from treadle.core import errors
from treadle.core.inequalities import is_at_least
from treadle.core.origin import at, user_origin
from treadle.core.records import record
from treadle.core.shapes import Dim, compound, product
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.indexing.transposing import transpose
from treadle.ops.shaping.reshaping import reshape_to

MOST = 1 << 31  # of windows, strides, dilations and padding: products of these do not overflow
Pair: TypeAlias = tuple[int, int]
Padding: TypeAlias = "str | tuple[Pair, Pair]"


@record(frozen=True)
class Span:
    """Windows along one axis: `count` of them, over `size` elements with padding before them.

    same: the padding is that of "SAME", with which there may be no windows where there is no image.
    """

    size: Dim
    window: int
    stride: int
    dilation: int
    before: Dim
    after: Dim
    count: Dim
    same: bool = False

    @property
    def fits(self) -> bool:
        """Whether there are windows, or need not be any; True where only a run can tell."""
        return not isinstance(self.count, int) or self.count > 0 or (self.same and self.size == 0)

    @property
    def offsets(self) -> tuple[Dim, Dim]:
        """First and end of the offsets in a window (without dilation) at which some window meets
        the image; a window may reach far beyond it."""
        first = self.before - (self.count - 1) * self.stride
        end = self.before + self.size
        return _between(first, 0, self.window), _between(end, 0, self.window)


def _between(dim: Dim, low: int, high: int) -> Dim:
    if isinstance(dim, int):
        return min(max(dim, low), high)
    if is_at_least(low, dim):
        return low
    if is_at_least(dim, high):
        return high
    return compound("min", compound("max", dim, low), high)


def span(size: Dim, window: int, stride: int, dilation: int, padding: str | Pair) -> Span:
    """The windows along an axis; InvalidArgumentError when none fits."""
    reach = (window - 1) * dilation + 1
    if padding == "SAME":
        count: Dim = (size + (stride - 1)) // stride
        total = compound("max", (count - 1) * stride + reach - size, 0)
        before = total // 2
        return Span(size, window, stride, dilation, before, total - before, count, True)
    before, after = (0, 0) if padding == "VALID" else (int(padding[0]), int(padding[1]))
    count = (size + (before + after - reach)) // stride + 1
    if isinstance(count, int) and count < 0:
        count = 0
    return Span(size, window, stride, dilation, before, after, count)


def spans(
    image: Sequence[Dim], window: Sequence[int], strides: Pair, padding: Padding, dilations: Pair
) -> tuple[Span, Span]:
    """The spans of height and width."""
    pads = (padding, padding) if isinstance(padding, str) else padding
    first, second = (span(image[i], window[i], strides[i], dilations[i], pads[i]) for i in range(2))
    return first, second


def static(dim: Dim) -> int:
    """A dim of arrays at hand."""
    assert isinstance(dim, int)
    return dim


def padded(x: NDArray, rows: Span, columns: Span, fill: Any = 0) -> NDArray:
    """NHWC `x` with its frame of padding.

    Raises ValueError, which the ops' shape rules explain, where a window does not fit.
    """
    if x.ndim != 4 or not (rows.fits and columns.fits):
        raise ValueError("no windows in these images")
    frame: Any = ((0, 0), (rows.before, rows.after), (columns.before, columns.after), (0, 0))
    if not any(any(p) for p in frame):
        return x
    return np.pad(x, frame, constant_values=fill)


def window_view(x: NDArray, rows: Span, columns: Span, fill: Any = 0) -> NDArray:
    """A view [N, out_h, out_w, window_h, window_w, C] of the (padded) images."""
    x = padded(x, rows, columns, fill)
    n, h, w, c = x.strides
    counts: Any = (rows.count, columns.count)
    shape = (x.shape[0], *counts, rows.window, columns.window, x.shape[3])
    steps = (
        n, h * rows.stride, w * columns.stride, h * rows.dilation, w * columns.dilation, c,
    )  # fmt: skip
    return np.lib.stride_tricks.as_strided(x, shape, steps, writeable=False)


def scatter_windows(parts: NDArray, rows: Span, columns: Span) -> NDArray:
    """The adjoint of `window_view`: [N, out_h, out_w, window_h, window_w, C] added up to NHWC."""
    (r, c), (n, channels) = (rows, columns), (parts.shape[0], parts.shape[-1])
    height, width = static(r.size + r.before + r.after), static(c.size + c.before + c.after)
    total = np.zeros((n, height, width, channels), parts.dtype)
    for i in range(r.window):
        for j in range(c.window):
            total[tap(i, j, r, c)] += parts[:, :, :, i, j]
    return cropped(total, r, c)


def tap(i: int, j: int, rows: Span, columns: Span) -> tuple[slice[Any, Any, Any], ...]:
    """Where element (i, j) of every window lies in the padded images."""
    return slice(None), _strided(i, rows), _strided(j, columns)


def _strided(i: int, s: Span) -> slice[Any, Any, Any]:
    start = i * s.dilation
    return slice(start, start + max((static(s.count) - 1) * s.stride + 1, 0), s.stride)


def cropped(x: NDArray, rows: Span, columns: Span) -> NDArray:
    """Padded images without their frame."""
    top, left = static(rows.before), static(columns.before)
    return x[:, top : top + static(rows.size), left : left + static(columns.size)]


# -- arguments as TensorFlow programs give them ----------------------------------------------------


def _wrong(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message + at(user_origin()))


def axis_numbers(value: Any, what: str, data_format: str) -> tuple[int, ...]:
    """A number for each spatial axis, from an int or a list of 1, of as many, or of two more."""
    axes = len(data_format) - 2
    numbers = [int(v) for v in (value if isinstance(value, list | tuple) else [value])]
    if any(abs(v) > MOST for v in numbers):
        raise _wrong(f"{what} must be below {MOST}, got {value}")
    if len(numbers) == 1:
        numbers *= axes
    if len(numbers) == axes + 2:
        at = _first_axis(data_format)
        if any(v != 1 for i, v in enumerate(numbers) if not at <= i < at + axes):
            raise _wrong(f"{what} must be 1 in the batch and channel axes, got {value}")
        numbers = numbers[at : at + axes]
    if len(numbers) != axes or min(numbers) < 1:
        raise _wrong(f"{what} must be 1, {axes} or {axes + 2} positive ints, got {value}")
    return tuple(numbers)


def pair(value: Any, what: str, data_format: str) -> Pair:
    """(height, width) from an int or a list of 1, 2 or 4 ints."""
    height, width = axis_numbers(value, what, data_format)
    return height, width


def _first_axis(data_format: str) -> int:
    """The first spatial axis."""
    return 2 if data_format.startswith("NC") else 1


def padding_of_axes(padding: Any, data_format: str) -> str | tuple[Pair, ...]:
    """The attribute for "SAME", "VALID" or a list of (before, after) pairs for all axes."""
    if isinstance(padding, str):
        name = padding.upper()
        if name not in ("SAME", "VALID"):
            raise _wrong(f'padding must be "SAME", "VALID" or a list of pairs, got {padding!r}')
        return name
    try:
        pairs = [(int(a), int(b)) for a, b in padding]
    except (TypeError, ValueError):
        pairs = []
    axes, at = len(data_format) - 2, _first_axis(data_format)
    if any(not 0 <= v < MOST for pair in pairs for v in pair):
        raise _wrong(f"explicit padding must be from 0 to {MOST - 1}, got {padding}")
    others = [p for i, p in enumerate(pairs) if not at <= i < at + axes]
    if len(pairs) != axes + 2 or any(p != (0, 0) for p in others):
        text = f"explicit padding needs {axes + 2} pairs, zero for batch and channels: {padding}"
        raise _wrong(text)
    return tuple(pairs[at : at + axes])


def padding_attr(padding: Any, data_format: str) -> Padding:
    """The padding of height and width."""
    return padding_of_axes(padding, data_format)  # type: ignore[return-value]


def one_batch(x: Tensor, rank: int, name: str) -> tuple[Tensor, tuple[Dim, ...]]:
    """An input with its batch axes joined to one, so that it has `rank` axes, and their sizes."""
    more = x.ndim - rank + 1
    if more < 1:
        raise _wrong(f"{name}: an input of {rank} axes or more is expected, its shape is {x.shape}")
    batch = x.dims[:more]
    return reshape_to(x, (product(batch), *x.dims[more:])) if more > 1 else x, batch


def several_batches(y: Tensor, batch: tuple[Dim, ...]) -> Tensor:
    """The batch axis apart again."""
    return reshape_to(y, (*batch, *y.dims[1:])) if len(batch) > 1 else y


def check_format(data_format: str | None) -> str:
    data_format = data_format or "NHWC"
    if data_format not in ("NHWC", "NCHW"):
        raise _wrong(f'data_format must be "NHWC" or "NCHW", got {data_format!r}')
    return data_format


def to_nhwc(x: Tensor, data_format: str) -> Tensor:
    if data_format == "NHWC":
        return x

    return transpose(x, [0, 2, 3, 1])


def from_nhwc(x: Tensor, data_format: str) -> Tensor:
    if data_format == "NHWC":
        return x

    return transpose(x, [0, 3, 1, 2])


def check_images(spec: Any, what: str = "the images") -> None:
    if spec.rank != 4:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{what} must have 4 axes (batch, height, width, channels), got {spec.shape}",
        )


def check_windows(found: Sequence[Span]) -> None:
    """InvalidArgumentError where the window is larger than the padded image."""
    for s, name in zip(found, ("height", "width"), strict=True):
        if not s.fits:
            raise errors.InvalidArgumentError(
                None, None, f"a window of {s.window} does not fit into the {name} {s.size}"
            )
