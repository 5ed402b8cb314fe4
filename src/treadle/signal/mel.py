"""Spectra on the mel scale of perceived pitch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.dims import dims_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.unary import rsqrt
from treadle.signal.spectra import dct

_BREAK_HERTZ, _FACTOR = 700.0, 1127.0


def _mel(hertz: Any) -> Any:
    return _FACTOR * np.log(1.0 + np.asarray(hertz) / _BREAK_HERTZ)


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20, num_spectrogram_bins: int = 129, sample_rate: float = 8000,
    lower_edge_hertz: float = 125.0, upper_edge_hertz: float = 3800.0,
    dtype: Any = dtypes.float32, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Weights that make mel spectra of spectra: ``spectrogram @ matrix``.

    Returns:
        [num_spectrogram_bins, num_mel_bins]: each column is a triangle over the frequencies, whose
        corners are equally far apart in mel.

    Raises:
        ValueError: a count is not positive, or the edges do not rise from 0 to half the rate.
    """
    if (
        num_mel_bins < 1
        or num_spectrogram_bins < 1
        or not (0.0 <= lower_edge_hertz < upper_edge_hertz <= sample_rate / 2)
    ):
        raise ValueError(
            f"linear_to_mel_weight_matrix: {num_mel_bins} mel bins of {num_spectrogram_bins} bins, "
            f"from {lower_edge_hertz} to {upper_edge_hertz} Hz at a rate of {sample_rate} Hz"
            f"{at(user_origin())}"
        )
    # The bin of frequency 0 has no pitch.
    frequencies = np.linspace(0.0, sample_rate / 2, num_spectrogram_bins)[1:, None]
    corners = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), num_mel_bins + 2)
    lower, middle, upper = corners[:-2], corners[1:-1], corners[2:]
    pitch = _mel(frequencies)
    rising, falling = (pitch - lower) / (middle - lower), (upper - pitch) / (upper - middle)
    weights = np.maximum(0.0, np.minimum(rising, falling))
    return constant(np.pad(weights, [[1, 0], [0, 0]]), dtypes.as_dtype(dtype))


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """Mel frequency cepstral coefficients: cosine transforms of logarithms of mel spectra.

    Args:
        log_mel_spectrograms: [..., mel bins] floats.

    Raises:
        ValueError: the last axis is empty.
    """
    x = convert_to_tensor(log_mel_spectrograms)
    size = x.dims[-1]
    if size == 0:
        text = f"mfccs_from_log_mel_spectrograms: no mel bins in shape {x.shape}"
        raise ValueError(f"{text}{at(user_origin())}")
    if isinstance(size, int):
        return dct(x, type=2) * math.sqrt(0.5 / size)
    return dct(x, type=2) * rsqrt(2.0 * cast(dims_tensor(size, dtypes.int64), x.dtype))
