"""The modified discrete cosine transform."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.permuting import reverse
from treadle.ops.shaping.splitting import split
from treadle.signal.frames import frame, overlap_and_add
from treadle.signal.spectra import dct
from treadle.signal.windows import vorbis_window

Window = Callable[..., Any]
_FLAT = 1 / math.sqrt(2)  # the weight of every sample without a window


def mdct(
    signals: Any, frame_length: int, window_fn: Window | None = vorbis_window,
    pad_end: bool = False, norm: str | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The modified discrete cosine transform: frames that overlap by half.

    Args:
        signals: [..., samples] floats.
        frame_length: in samples, a multiple of 4.
        window_fn: ``window_fn(frame_length, dtype=dtype)`` gives the weights of the samples of a
            frame; None: they are all ``1 / sqrt(2)``.
        pad_end: see `frame`.
        norm: None, or "ortho" for an orthonormal transform.

    Returns:
        [..., frames, frame_length // 2]

    Raises:
        ValueError: another frame length or norm, or a scalar.
    """
    x, length = convert_to_tensor(signals), int(frame_length)
    if not x.ndim:
        raise ValueError(f"mdct: a scalar has no samples{at(user_origin())}")
    if not x.dtype.is_floating:
        raise ValueError(f"mdct: the samples must be floats, not {x.dtype.name}{at(user_origin())}")
    if length % 4:
        raise ValueError(f"mdct: The frame length must be a multiple of 4{at(user_origin())}")
    window = _FLAT if window_fn is None else window_fn(length, dtype=x.dtype)
    framed = frame(x, length, length // 2, pad_end) * window
    a, b, c, d = split(framed, 4, axis=-1)
    folded = concat([-reverse(c, [-1]) - d, a - reverse(b, [-1])], -1)
    return dct(folded, type=4, norm=norm)


def inverse_mdct(
    mdcts: Any, window_fn: Window | None = vorbis_window, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The samples of which `mdct` gave the spectra, but for the first and last half of a frame.

    Args:
        mdcts: [..., frames, frame_length // 2] floats.
        window_fn, norm: as in `mdct`.

    Returns:
        [..., (frames + 1) * frame_length // 2]

    Raises:
        ValueError: another norm, or a tensor of less than two axes.
    """
    x = convert_to_tensor(mdcts)
    if x.ndim < 2:
        raise ValueError(f"inverse_mdct: {x.spec} is not frames of spectra{at(user_origin())}")
    half = x.dims[-1]
    if not isinstance(half, int):
        text = "inverse_mdct: the size of the frames must be known while tracing"
        raise ValueError(f"{text}{at(user_origin())}")
    found = dct(x, type=4, norm=norm)
    if norm is None:
        found = found * (0.5 / half)
    first, second = split(found, 2, axis=-1)
    unfolded = [second, -reverse(second, [-1]), -reverse(first, [-1]), -first]
    frames = concat(unfolded, -1)
    frames = frames * (_FLAT if window_fn is None else window_fn(2 * half, dtype=frames.dtype))
    return overlap_and_add(frames, half)
