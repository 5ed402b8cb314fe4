"""Short-time Fourier transforms, and cosine transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim
from treadle.core.tensor import Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.arithmetic import divide_no_nan
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.complex_numbers import imag, real
from treadle.ops.elementwise.unary import square
from treadle.ops.linalg.matrices import matmul
from treadle.ops.reductions.reduction import reduce_sum
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.padding import pad
from treadle.ops.shaping.permuting import reverse
from treadle.ops.shaping.ranges import range as number_range
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
        return divide_no_nan(forward, repeated[:length])  # where no window reaches: 0

    return window


def _check_dct(name: str, input: Any, kind: int, n: Any, axis: int, norm: str | None) -> Tensor:
    x = convert_to_tensor(input)
    if not x.dtype.is_floating or x.dtype.size < 4:
        text = f"{name} takes float32 or float64, not {x.dtype.name}{at(user_origin())}"
        raise errors.DtypeError(None, None, text)
    size = x.dims[-1] if x.ndim else 0
    if axis != -1:
        text = f"{name}: axis {axis}; only the last one, -1, is transformed"
        raise NotImplementedError(f"{text}: move it there by transpose{at(user_origin())}")
    if (
        kind not in (1, 2, 3, 4)
        or norm not in (None, "ortho")
        or (n is not None and not 1 <= n <= dtypes.int32.max)
        or x.ndim < 1
    ):
        text = (
            f"{name}: type {kind}, n={n}, norm={norm!r} for shape {x.shape}; "
            f"the types are 1 to 4, the norms None and 'ortho'"
        )
        raise ValueError(f"{text}{at(user_origin())}")
    least = n or (size if isinstance(size, int) else 2)
    if kind == 1 and (norm is not None or least < 2):
        text = f"{name}: type 1 has no norm, and at least two elements{at(user_origin())}"
        raise ValueError(text)
    if n is None or n == size:
        return x
    more = max(n - size, 0) if isinstance(size, int) else n
    if more:
        x = pad(x, [[0, 0]] * (x.ndim - 1) + [[0, more]])
    return x[..., :n]


def dct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The discrete cosine transform of type 1, 2, 3 or 4 over the last axis.

    Args:
        input: [..., size] floats.
        n: the size is cut off or zeros are appended to have this one.
        norm: None, or "ortho", which makes types 2, 3 and 4 orthonormal.

    Raises:
        ValueError: an argument is none of these.
        NotImplementedError: another axis than the last one.
    """
    x = _check_dct("dct", input, type, n, axis, norm)
    size = x.dims[-1]
    if type == 1:
        return cast(rfft(concat([x, reverse(x[..., 1:-1], [-1])], -1)), x.dtype)
    if type == 2:
        return _of_transform(x, size, norm)
    return _by_matrix(x, _cosines(type, size, norm))


def _numbers(size: Dim) -> tuple[Any, Any]:
    """The positions along an axis and their number, as floats: of NumPy, or tensors where only a
    run knows the size."""
    if isinstance(size, int):
        return np.arange(size, dtype=np.float64), size
    count = dims_tensor(size, dtypes.int64)
    return cast(number_range(count), dtypes.float64), cast(count, dtypes.float64)


def _of_transform(x: Tensor, size: Dim, norm: str | None) -> Tensor:
    """Type 2, 2 sum x cos: the real part of a transform of twice the size, turned by half a
    step."""
    positions, count = _numbers(size)
    length = 2 * size if isinstance(size, int) else 2 * dims_tensor(size, dtypes.int32)
    found = rfft(x, [length])
    stop = size if isinstance(size, int) else dims_tensor(size, dtypes.int64)
    found = found[..., :stop]
    angle = np.pi / 2 / count * positions
    weights: Any = 2.0
    if norm:
        weights = np.where(positions == 0, 1.0, math.sqrt(2)) / np.sqrt(count)
    cosine, sine = (
        cast(convert_to_tensor(weights * f(angle)), x.dtype) for f in (np.cos, np.sin)
    )
    return real(found) * cosine + imag(found) * sine


def _cosines(kind: int, size: Dim, norm: str | None) -> Any:
    """The matrix of types 3 and 4, by definition."""
    j, count = _numbers(size)
    k = j[:, None]
    if kind == 4:
        matrix = 2 * np.cos(np.pi / count * (k + 0.5) * (j + 0.5))
        return matrix * np.sqrt(0.5 / count) if norm else matrix
    matrix = 2 * np.cos(np.pi / count * j * (k + 0.5))
    if norm:
        return np.where(j == 0, np.sqrt(1 / count), matrix * np.sqrt(0.5 / count))
    return np.where(j == 0, 1.0, matrix)


def _by_matrix(x: Tensor, matrix: Any) -> Tensor:
    if x.ndim == 1:
        return squeeze(_by_matrix(expand_dims(x, 0), matrix), 0)
    return matmul(x, cast(convert_to_tensor(matrix), x.dtype), transpose_b=True)


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
