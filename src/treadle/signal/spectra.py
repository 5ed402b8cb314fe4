"""Short-time Fourier transforms, and cosine transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.unary import square
from treadle.ops.indexing.gather import gather
from treadle.ops.linalg.matrices import matmul
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.shaping.padding import pad
from treadle.ops.shaping.reshaping import expand_dims, reshape, squeeze
from treadle.signal.frames import frame, overlap_and_add
from treadle.signal.transforms import irfft, rfft
from treadle.signal.windows import hann_window

Window = Callable[..., Any]


def _fft_length(frame_length: int, fft_length: Any) -> int:
    """The given size of the transforms, or the least power of two that a frame fits into."""
    return 1 << (frame_length - 1).bit_length() if fft_length is None else int(fft_length)


def stft(
    signals: Any, frame_length: Any, frame_step: Any, fft_length: Any = None,
    window_fn: Window | None = hann_window, pad_end: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The short-time Fourier transform.

    Args:
        signals: [..., samples] real numbers.
        frame_length, frame_step: ints, in samples.
        fft_length: the size of the transforms; by default the least power of two for a frame.
        window_fn: ``window_fn(frame_length, dtype=dtype)`` gives the weights of the samples of a
            frame; None: they are all 1.
        pad_end: see `frame`.

    Returns:
        [..., frames, fft_length // 2 + 1] complex numbers.
    """
    length, step = int(frame_length), int(frame_step)
    x = convert_to_tensor(signals)
    window = None if window_fn is None else window_fn(length, dtype=x.dtype)
    parts = frame(x, length, step, pad_end)
    if window is not None:
        parts = parts * window
    return rfft(parts, [_fft_length(length, fft_length)])


def inverse_stft(
    stfts: Any, frame_length: Any, frame_step: Any, fft_length: Any = None,
    window_fn: Window | None = hann_window, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Signals from their short-time Fourier transforms.

    To undo `stft`, give it `inverse_stft_window_fn` of the frame step as `window_fn`.

    Args:
        stfts: [..., frames, fft_length // 2 + 1] complex numbers; see `stft` for the others.

    Returns:
        [..., (frames - 1) * frame_step + frame_length] real numbers.
    """
    length, step = int(frame_length), int(frame_step)
    size = _fft_length(length, fft_length)
    parts = irfft(stfts, [size])[..., :length]
    window = None if window_fn is None else window_fn(length, dtype=parts.dtype)
    if length > size:
        parts = pad(parts, [[0, 0]] * (parts.ndim - 1) + [[0, length - size]])
    if window is not None:
        parts = parts * window
    return overlap_and_add(parts, step)


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Window = hann_window, name: str | None = None
) -> Window:
    """The window function for `inverse_stft` with which it undoes `stft` with
    `forward_window_fn`: that window over the sum of the squares of all that overlap."""
    step = int(frame_step)

    def window(frame_length: Any, dtype: Any) -> Tensor:
        length = int(frame_length)
        forward: Tensor = forward_window_fn(length, dtype=dtype)
        overlaps = -(-length // step)
        total = pad(square(forward), [[0, overlaps * step - length]])
        total = reduce_sum(reshape(total, [overlaps, step]), 0, keepdims=True)
        repeated = reshape(total * np.ones((overlaps, 1), total.dtype.np_dtype), [-1])
        return forward / repeated[:length]

    return window


def _check_dct(name: str, input: Any, kind: int, n: Any, axis: int, norm: str | None) -> Tensor:
    x = convert_to_tensor(input)
    if not x.dtype.is_floating or x.dtype.size < 4:
        text = f"{name} takes float32 or float64, not {x.dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    size = x.dims[-1] if x.ndim else 0
    if (
        axis != -1
        or kind not in (1, 2, 3, 4)
        or norm not in (None, "ortho")
        or (n is not None and not 1 <= n <= dtypes.int32.max)
        or not isinstance(size, int)
        or x.ndim < 1
    ):
        text = (
            f"{name}: type {kind}, n={n}, axis={axis}, norm={norm!r} for shape {x.shape}; "
            f"the types are 1 to 4, the norms None and 'ortho', the axis the last, of known size"
        )
        raise ValueError(f"{text}{at(user_origin())}")
    if kind == 1 and (norm is not None or (n or size) < 2):
        text = f"{name}: type 1 has no norm, and at least two elements{at(user_origin())}"
        raise ValueError(text)
    if n is not None and n < size:
        x = x[..., :n]
    elif n is not None and n > size:
        x = pad(x, [[0, 0]] * (x.ndim - 1) + [[0, n - size]])
    return x


def dct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The discrete cosine transform of type 1, 2, 3 or 4 over the last axis.

    Args:
        input: [..., size] floats; the size must be known.
        n: the size is cut off or zeros are appended to have this one.
        norm: None, or "ortho", which makes types 2, 3 and 4 orthonormal.

    Raises:
        ValueError: an argument is none of these.
    """
    x = _check_dct("dct", input, type, n, axis, norm)
    size = x.dims[-1]
    assert isinstance(size, int)
    if type == 1:
        mirrored = [*range(size), *range(size - 2, 0, -1)]
        found = rfft(gather(x, mirrored, axis=-1))
        return cast(found, x.dtype)
    if type == 2:
        # 2 sum x cos: the real part of a transform of twice the size, turned by half a step.
        turned = 2 * np.exp(-1j * np.pi / 2 / size * np.arange(size))
        found = rfft(x, [2 * size])[..., :size] * turned.astype(x.dtype.complex_dtype.np_dtype)
        y = cast(found, x.dtype)
        if norm == "ortho":
            weights = np.full(size, math.sqrt(0.5 / size))
            weights[0] = math.sqrt(0.25 / size)
            y = y * weights.astype(x.dtype.np_dtype)
        return y
    return _by_matrix(x, _cosines(type, size, norm))


def _cosines(kind: int, size: int, norm: str | None) -> Any:
    """The matrix of types 3 and 4, by definition."""
    k, j = np.arange(size)[:, None], np.arange(size)[None, :]
    if kind == 4:
        matrix = 2 * np.cos(np.pi / size * (k + 0.5) * (j + 0.5))
        return matrix * math.sqrt(0.5 / size) if norm else matrix
    matrix = 2 * np.cos(np.pi / size * j * (k + 0.5))
    matrix[:, 0] = 1.0
    if norm:
        matrix *= math.sqrt(0.5 / size)
        matrix[:, 0] = math.sqrt(1 / size)
    return matrix


def _by_matrix(x: Tensor, matrix: Any) -> Tensor:
    if x.ndim == 1:
        return squeeze(_by_matrix(expand_dims(x, 0), matrix), 0)
    return matmul(x, convert_to_tensor(matrix.T.astype(x.dtype.np_dtype)))


_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def idct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The inverse of `dct` of the same type, without the division: ``idct(dct(x))`` is x times
    ``2 * size`` (type 1: ``2 * (size - 1)``), or x where norm is "ortho"."""
    _check_dct("idct", input, type, n, axis, norm)
    if n is not None:
        raise ValueError(f"idct: n is not supported, as in TensorFlow{at(user_origin())}")
    return dct(input, _INVERSE[type], None, axis, norm)
