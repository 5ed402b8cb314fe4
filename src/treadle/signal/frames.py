"""Signals as overlapping frames, and frames added up to signals."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, compound, product
from treadle.core.tensor import Tensor
from treadle.ops.axes import normalize_axis
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor, size_of
from treadle.ops.indexing.gather import gathered, unsorted_segment_sum
from treadle.ops.shaping.padding import pad
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.ranges import range as number_range
from treadle.ops.shaping.reshaping import expand_dims, reshape_to


def frame(
    signal: Any, frame_length: Any, frame_step: Any, pad_end: bool = False, pad_value: Any = 0,
    axis: int = -1, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Windows of `frame_length` elements along an axis, each `frame_step` after the one before.

    Args:
        signal: [..., samples, ...]
        pad_end: a frame begins at every step within the signal; missing elements are `pad_value`.
            Otherwise only whole frames are given.

    Returns:
        [..., frames, frame_length, ...]

    Raises:
        InvalidArgumentError: a length or step is not positive.
    """
    x = convert_to_tensor(signal)
    place = normalize_axis(axis, x.ndim)
    length = _positive("frame: frame_length", frame_length)
    step = _positive("frame: frame_step", frame_step)
    size = x.dims[place]
    if pad_end:
        count = -(-size // step)
        missing = compound("max", length + step * (count - 1) - size, 0)
        widths: list[Any] = [[0, 0] for _ in range(x.ndim)]
        widths[place] = [0, missing]
        x = pad(x, widths, constant_values=pad_value)
    else:
        count = compound("max", 1 + (size - length) // step, 0)
    starts = number_range(dims_tensor(count, dtypes.int64)) * step
    within = number_range(dims_tensor(length, dtypes.int64))
    return gathered(x, expand_dims(starts, 1) + within, place)


def _positive(what: str, value: Any) -> Dim:
    found = size_of(value, what)
    if isinstance(found, int) and found < 1:
        text = f"{what} must be positive, not {found}{at(user_origin())}"
        raise errors.InvalidArgumentError(None, None, text)
    return found


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """The sum of frames that begin `frame_step` after one another.

    Args:
        signal: [..., frames, frame_length]

    Returns:
        [..., (frames - 1) * frame_step + frame_length]
    """
    x = convert_to_tensor(signal)
    if x.ndim < 2:
        text = f"overlap_and_add: two axes are needed, the shape is {x.shape}{at(user_origin())}"
        raise ValueError(text)
    step = _positive("overlap_and_add: frame_step", frame_step)
    count, length = x.dims[-2:]
    outer, size = x.dims[:-2], (count - 1) * step + length
    flat = reshape_to(x, (product(outer), product((count, length))))
    starts = number_range(dims_tensor(count, dtypes.int64)) * step
    places = expand_dims(starts, 1) + number_range(dims_tensor(length, dtypes.int64))
    summed = unsorted_segment_sum(
        permute(flat, (1, 0)), reshape_to(places, (product((count, length)),)), size
    )
    return reshape_to(permute(summed, (1, 0)), (*outer, size))
