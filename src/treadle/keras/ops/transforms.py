"""`keras.ops`: spectra, segments, ranks and special functions (the module `math` of Keras)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.keras.config import floatx
from treadle.keras.ops.conversion import tensor, tensors
from treadle.keras.ops.operations import operation
from treadle.keras.promotion import result_type

_operation = functools.partial(operation, "math")


# -- segments --------------------------------------------------------------------------------------


def _segments(
    data: Any, segment_ids: Any, num_segments: Any, sorted: bool, name: str
) -> Any:
    x, ids = tensor(data), tensor(segment_ids)
    if len(ids.shape) != 1:
        raise ValueError(
            f"Argument `segment_ids` should be an 1-D vector, got shape: {ids.shape}. Consider "
            "either flatten input with segment_ids.reshape((-1)) and data.reshape((-1, ) + "
            "data.shape[len(segment_ids.shape):]) or vectorize with vmap."
        )
    if sorted:
        if num_segments is not None:
            raise ValueError(
                "Argument `num_segments` cannot be set when sorted is True. Received: "
                f"num_segments={num_segments}, sorted={sorted}."
            )
        return getattr(td.math, f"segment_{name}")(x, ids)
    if num_segments is None:
        num_segments = td.cast(td.reduce_max(ids), td.int32) + 1
    return getattr(td.math, f"unsorted_segment_{name}")(x, ids, num_segments)


@_operation("data", "segment_ids")
def segment_sum(
    data: Any, segment_ids: Any, num_segments: Any = None, sorted: bool = False
) -> Any:
    """The sums of rows that have one number of a segment.

    Args:
        num_segments: how many segments there are; by the greatest number when omitted.
        sorted: the numbers are in ascending order.
    """
    return _segments(data, segment_ids, num_segments, sorted, "sum")


@_operation("data", "segment_ids")
def segment_max(
    data: Any, segment_ids: Any, num_segments: Any = None, sorted: bool = False
) -> Any:
    """The greatest elements of rows that have one number of a segment."""
    return _segments(data, segment_ids, num_segments, sorted, "max")


@_operation("data", "segment_ids")
def segment_min(
    data: Any, segment_ids: Any, num_segments: Any = None, sorted: bool = False
) -> Any:
    """The least elements of rows that have one number of a segment."""
    return _segments(data, segment_ids, num_segments, sorted, "min")


@_operation("data", "segment_ids")
def segment_prod(
    data: Any, segment_ids: Any, num_segments: Any = None, sorted: bool = False
) -> Any:
    """The products of rows that have one number of a segment."""
    return _segments(data, segment_ids, num_segments, sorted, "prod")


# -- ranks and sums --------------------------------------------------------------------------------


@_operation("x")
def top_k(x: Any, k: int, sorted: bool = True) -> Any:
    """The k greatest elements of each row, and their positions."""
    return td.math.top_k(tensor(x), k, sorted=sorted)


@_operation("targets", "predictions")
def in_top_k(targets: Any, predictions: Any, k: int) -> Any:
    """Whether the targets are among the k greatest of each row."""
    return td.math.in_top_k(tensor(targets), tensor(predictions), k)


@_operation("x")
def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The logarithm of the sum of exponentials."""
    axis = list(axis) if isinstance(axis, tuple) else axis
    return td.reduce_logsumexp(tensor(x), axis, keepdims)


@_operation("x", "y", name="CDist")
def cdist(x: Any, y: Any) -> Any:
    """The distances of each row of x from each row of y.

    Raises:
        ValueError: they are no matrices of rows of one length.
    """
    a, b = tensors(x, y)
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise ValueError("`cdist` inputs must have rank >= 2")
    if a.shape[-1] != b.shape[-1]:
        raise ValueError("Last dimension of inputs to `cdist` must match")
    return td.sqrt(td.reduce_sum(td.square(a[..., :, None, :] - b[..., None, :, :]), -1))


# -- special functions -----------------------------------------------------------------------------


@_operation("x")
def rsqrt(x: Any) -> Any:
    """One over the square root."""
    return td.math.rsqrt(tensor(x))


@_operation("x")
def erf(x: Any) -> Any:
    """The error function."""
    return td.math.erf(tensor(x))


@_operation("x")
def erfc(x: Any) -> Any:
    """One less the error function."""
    return td.math.erfc(tensor(x))


@_operation("x")
def erfinv(x: Any) -> Any:
    """The inverse of the error function."""
    x = tensor(x)
    return td.cast(td.math.erfinv(td.cast(x, result_type(x.dtype, "float32"))), x.dtype)


# -- spectra ---------------------------------------------------------------------------------------


def _pair(x: Any) -> td.Tensor:
    """The complex numbers of a pair of real and imaginary parts.

    Raises:
        ValueError: it is no such pair.
    """
    if not isinstance(x, tuple | list) or len(x) != 2:
        raise ValueError(
            "Input `x` should be a tuple of two tensors - real and imaginary. "
            f"Received: x={x}"
        )  # fmt: skip
    real, imaginary = tensor(x[0]), tensor(x[1])
    if not real.shape.is_compatible_with(imaginary.shape):
        raise ValueError(
            "Input `x` should be a tuple of two tensors - real and imaginary. Both the real and "
            f"imaginary parts should have the same shape. Received: {real.shape} and "
            f"{imaginary.shape}"
        )
    if not real.dtype.is_floating or not imaginary.dtype.is_floating:
        raise ValueError(f"At least one tensor in input `x` is not of type float. Received: x={x}.")
    return td.complex(real, imaginary)


def _parts(z: td.Tensor) -> tuple[td.Tensor, td.Tensor]:
    return td.math.real(z), td.math.imag(z)


@_operation("x", name="FFT")
def fft(x: Any) -> Any:
    """The spectrum along the last axis, of and as a pair of real and imaginary parts."""
    return _parts(td.signal.fft(_pair(x)))


@_operation("x", name="FFT2")
def fft2(x: Any) -> Any:
    """The spectrum along the last two axes, of and as a pair of real and imaginary parts."""
    return _parts(td.signal.fft2d(_pair(x)))


@_operation("x", name="IFFT2")
def ifft2(x: Any) -> Any:
    """What `fft2` was given, as a pair of real and imaginary parts."""
    return _parts(td.signal.ifft2d(_pair(x)))


def _length(fft_length: Any) -> Any:
    return None if fft_length is None else [fft_length]


@_operation("x", name="RFFT")
def rfft(x: Any, fft_length: int | None = None) -> Any:
    """The spectrum of real numbers, as a pair of real and imaginary parts."""
    x = tensor(x)
    x = x if x.dtype.is_floating else td.cast(x, floatx())
    return _parts(td.signal.rfft(x, _length(fft_length)))


@_operation("x", name="IRFFT")
def irfft(x: Any, fft_length: int | None = None) -> Any:
    """The real numbers whose `rfft` is x."""
    return td.signal.irfft(_pair(x), _length(fft_length))


@_operation("x")
def extract_sequences(x: Any, sequence_length: int, sequence_stride: int) -> Any:
    """Parts of one length along the last axis, a stride apart."""
    return td.signal.frame(tensor(x), sequence_length, sequence_stride)


def _window(
    window: Any, length: int, fft_length: int, dtype: Any
) -> Callable[..., td.Tensor] | None:
    """The window of a name, or the given one, with zeros around it."""
    if window is None:
        return None
    if isinstance(window, str):
        if window not in ("hann", "hamming"):
            raise ValueError(
                'If a string is passed to `window`, it must be one of `"hann"`, `"hamming"`. '
                f"Received: window={window}"
            )
        made = td.signal.hann_window if window == "hann" else td.signal.hamming_window
        values = made(length, periodic=True, dtype=dtype)
    else:
        values = tensor(window, dtype)
    if len(values.shape) != 1 or values.shape[0] != length:
        raise ValueError(
            "The shape of `window` must be equal to [sequence_length]. Received: window "
            f"shape={values.shape}"
        )
    before = (fft_length - length) // 2
    padded = td.pad(values, [[before, fft_length - length - before]])
    return lambda *args, **kwargs: padded


def _checked(sequence_length: int, sequence_stride: int, fft_length: int) -> None:
    if not isinstance(sequence_stride, int) or sequence_stride <= 0:
        raise ValueError(
            "`sequence_stride` must be a positive integer. Received: "
            f"sequence_stride={sequence_stride}"
        )
    if fft_length < sequence_length:
        raise ValueError(
            "`fft_length` must equal or larger than `sequence_length`. Received: "
            f"sequence_length={sequence_length}, fft_length={fft_length}"
        )


@_operation("x", name="STFT")
def stft(
    x: Any, sequence_length: int, sequence_stride: int, fft_length: int, window: Any = "hann",
    center: bool = True,
) -> Any:  # fmt: skip
    """The spectra of parts of a signal, as a pair of real and imaginary parts.

    Args:
        sequence_length: of the parts.
        sequence_stride: how far they are apart.
        fft_length: of the spectra's inputs; parts are filled up with zeros.
        window: "hann", "hamming", a vector that parts are multiplied by, or None.
        center: parts are around their places; the signal is mirrored at its ends.

    Raises:
        ValueError: the lengths do not fit.
        TypeError: the signal is no float32 or float64.
    """
    _checked(sequence_length, sequence_stride, fft_length)
    x = tensor(x)
    if x.dtype not in (td.float32, td.float64):
        raise TypeError(
            f"Invalid input type. Expected `float32` or `float64`. Received: input type={x.dtype}"
        )
    if center:
        around = [[0, 0]] * (len(x.shape) - 1) + [[fft_length // 2] * 2]
        x = td.pad(x, around, "REFLECT")
    found = td.signal.stft(
        x, fft_length, sequence_stride, fft_length,
        _window(window, sequence_length, fft_length, x.dtype),
    )  # fmt: skip
    return _parts(found)


@_operation("x", name="ISTFT")
def istft(
    x: Any, sequence_length: int, sequence_stride: int, fft_length: int, length: int | None = None,
    window: Any = "hann", center: bool = True,
) -> Any:  # fmt: skip
    """The signal whose `stft` is x.

    Args:
        length: of the signal.
    """
    _checked(sequence_length, sequence_stride, fft_length)
    z = _pair(x)
    forward = _window(window, sequence_length, fft_length, td.math.real(z).dtype)
    backward = None if forward is None else td.signal.inverse_stft_window_fn(
        sequence_stride, forward
    )  # fmt: skip
    found = td.signal.inverse_stft(z, fft_length, sequence_stride, fft_length, backward)
    start = fft_length // 2 if center else 0
    if length is not None:
        return found[..., start : start + length]
    return found[..., start:-start] if center else found


@_operation("x")
def view_as_complex(x: Any) -> Any:
    """The complex numbers of pairs along the last axis.

    Raises:
        ValueError: there are not two numbers along it.
    """
    x = tensor(x)
    if not len(x.shape) or x.shape[-1] != 2:
        raise ValueError(
            "Last dimension of input must be size 2 (real and imaginary). "
            f"Received shape: {x.shape}"
        )
    parts = td.cast(x, td.float64 if x.dtype == td.float64 else td.float32)
    return td.cast(td.complex(parts[..., 0], parts[..., 1]), td.complex64)


@_operation("x")
def view_as_real(x: Any) -> Any:
    """Real and imaginary parts, as pairs along a new last axis."""
    return td.stack(_parts(tensor(x)), -1)
