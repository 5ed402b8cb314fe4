"""Spectra of signals, as results of layers."""

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar

import treadle as td
from treadle.keras import initializers
from treadle.keras.config import epsilon
from treadle.keras.layers.base import Layer
from treadle.keras.layers.input_spec import InputSpec
from treadle.keras.layers.spatial import format_name, padding_name

_MODES = ("log", "magnitude", "psd", "real", "imag", "angle", "stft")


class STFTSpectrogram(Layer):
    """The spectra of parts of signals, by two convolutions whose filters may be trained.

    Args:
        mode: "log", "magnitude", "psd", "real", "imag", "angle" or "stft" (both parts).
        frame_length: of the parts.
        frame_step: how far they are apart, half of their length when omitted.
        fft_length: of the spectra, the next power of two when omitted.
        window: what parts are multiplied by, see `keras.initializers.STFT`.
        periodic, scaling: of the window.
        padding: "valid" or "same".
        expand_dims: channels and frequencies have axes of their own.
        data_format: "channels_last" or "channels_first".

    Raises:
        ValueError: an argument is none of these.
    """

    has_shape_rule: ClassVar[bool] = False
    _config_names: ClassVar[tuple[str, ...]] = (
        "mode", "frame_length", "frame_step", "fft_length", "window", "periodic", "scaling",
        "padding", "data_format", "expand_dims",
    )  # fmt: skip

    def __init__(
        self, mode: str = "log", frame_length: int = 256, frame_step: int | None = None,
        fft_length: int | None = None, window: Any = "hann", periodic: bool = False,
        scaling: str | None = "density", padding: str = "valid", expand_dims: bool = False,
        data_format: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        if frame_step is not None and not 1 <= frame_step <= frame_length:
            raise ValueError(
                "`frame_step` should be a positive integer not greater than `frame_length`. "
                f"Received frame_step={frame_step}, frame_length={frame_length}"
            )
        if fft_length is not None and fft_length < frame_length:
            raise ValueError(
                "`fft_length` should be not less than `frame_length`. Received "
                f"fft_length={fft_length}, frame_length={frame_length}"
            )
        if fft_length is not None and fft_length & -fft_length != fft_length:
            warnings.warn(
                f"`fft_length` is recommended to be a power of two. Received {fft_length}",
                stacklevel=2,
            )
        if mode not in _MODES:
            raise ValueError(
                f"Output mode is invalid, it must be one of {', '.join(_MODES)}. "
                f"Received: mode={mode}"
            )  # fmt: skip
        super().__init__(**kwargs)
        self._real = initializers.STFT("real", window, scaling, periodic)
        self._imaginary = initializers.STFT("imag", window, scaling, periodic)
        self.mode, self.frame_length, self.frame_step = mode, frame_length, frame_step
        self.fft_length, self.window, self.periodic = fft_length, window, periodic
        self.scaling, self.padding, self.expand_dims = scaling, padding_name(padding), expand_dims
        self.data_format = format_name(data_format)
        self.input_spec = InputSpec(ndim=3)

    def build(self, input_shape: Any) -> None:
        length = self.fft_length or 2 ** math.ceil(math.log2(self.frame_length))
        shape = (self.frame_length, 1, length // 2 + 1)
        self.real_kernel = self.imag_kernel = None
        if self.mode != "imag":
            self.real_kernel = self._new_weight(shape, self._real, name="real_kernel")
        if self.mode != "real":
            self.imag_kernel = self._new_weight(shape, self._imaginary, name="imag_kernel")

    def _part(self, inputs: td.Tensor, kernel: Any) -> td.Tensor:
        """One part of the spectra, [batch, channels, frequencies, time]."""
        channels = inputs.shape[1]
        rows = td.reshape(inputs, [-1, td.shape(inputs)[2], 1])
        step = self.frame_step or self.frame_length // 2
        found = td.nn.conv1d(rows, kernel.read_value(), step, self.padding.upper())
        found = td.transpose(found, [0, 2, 1])
        return td.reshape(found, [-1, channels, kernel.shape[-1], td.shape(found)[2]])

    def _shaped(self, x: td.Tensor) -> td.Tensor:
        last = self.data_format == "channels_last"
        if self.expand_dims:
            return td.transpose(x, [0, 3, 2, 1] if last else [0, 1, 3, 2])
        joined = td.reshape(x, [-1, x.shape[1] * x.shape[2], td.shape(x)[3]])
        return td.transpose(joined, [0, 2, 1]) if last else joined

    def call(self, inputs: Any) -> td.Tensor:
        if not inputs.dtype.is_floating:
            raise TypeError(f"STFTSpectrogram takes floats, got {inputs.dtype.name}")
        if self.data_format == "channels_last":
            inputs = td.transpose(inputs, [0, 2, 1])
        parts = [None if kernel is None else self._part(inputs, kernel)
                 for kernel in (self.real_kernel, self.imag_kernel)]  # fmt: skip
        real, imaginary = parts
        if real is None or imaginary is None:
            return self._shaped(next(part for part in parts if part is not None))
        if self.mode == "angle":
            return self._shaped(td.math.atan2(imaginary, real))
        if self.mode == "stft":
            return self._shaped(td.concat([real, imaginary], 2))
        power = td.square(real) + td.square(imaginary)
        if self.mode == "psd":
            inner = td.pad(power[:, :, 1:-1], [[0, 0], [0, 0], [1, 1], [0, 0]])
            return self._shaped(power + inner)
        magnitude = self._shaped(td.sqrt(td.maximum(power, epsilon())))
        return magnitude if self.mode == "magnitude" else td.math.log(
            td.maximum(magnitude, epsilon())
        )


class MelSpectrogram(Layer):
    """The spectra of parts of signals over bands that ears tell apart, in decibels: (..., bands,
    time).

    Args:
        fft_length: of the spectra.
        sequence_stride: how far the parts are apart.
        sequence_length: of the parts, `fft_length` when omitted.
        window: what parts are multiplied by.
        sampling_rate: numbers of a signal in a second.
        num_mel_bins: the number of bands.
        min_freq, max_freq: of the bands, in hertz; half of the sampling rate when omitted.
        power_to_db: give decibels.
        top_db: how far below the largest they go.
        mag_exp: the power of the magnitudes: 1 for energies, 2 for powers.
        min_power: smaller powers count as this one.
        ref_power: what is 0 decibels.

    Raises:
        ValueError: parts are longer than `fft_length`.
    """

    has_shape_rule: ClassVar[bool] = False
    _config_names: ClassVar[tuple[str, ...]] = (
        "fft_length", "sequence_stride", "sequence_length", "window", "sampling_rate",
        "num_mel_bins", "min_freq", "max_freq", "power_to_db", "top_db", "mag_exp", "min_power",
        "ref_power",
    )  # fmt: skip

    def __init__(
        self, fft_length: int = 2048, sequence_stride: int = 512,
        sequence_length: int | None = None, window: Any = "hann", sampling_rate: int = 16000,
        num_mel_bins: int = 128, min_freq: float = 20.0, max_freq: float | None = None,
        power_to_db: bool = True, top_db: float = 80.0, mag_exp: float = 2.0,
        min_power: float = 1e-10, ref_power: float = 1.0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.fft_length, self.sequence_stride = fft_length, sequence_stride
        self.sequence_length = sequence_length or fft_length
        if fft_length < self.sequence_length:
            raise ValueError(
                "`fft_length` must be greater than or equal to `sequence_length`. Received: "
                f"`sequence_length`={self.sequence_length}, `fft_length`={fft_length}."
            )
        self.window, self.sampling_rate, self.num_mel_bins = window, sampling_rate, num_mel_bins
        self.min_freq, self.max_freq = min_freq, max_freq or int(sampling_rate / 2)
        self.power_to_db, self.top_db, self.mag_exp = power_to_db, top_db, mag_exp
        self.min_power, self.ref_power = min_power, ref_power
        self._build_at_init()

    def call(self, inputs: Any) -> td.Tensor:
        exact = self.compute_dtype if self.compute_dtype == "float64" else "float32"
        real, imaginary = td.keras.ops.stft(
            td.cast(inputs, exact), self.sequence_length, self.sequence_stride, self.fft_length,
            self.window,
        )  # fmt: skip
        found = td.sqrt(td.square(real) + td.square(imaginary)) ** self.mag_exp
        bands = td.signal.linear_to_mel_weight_matrix(
            self.num_mel_bins, self.fft_length // 2 + 1, self.sampling_rate, self.min_freq,
            self.max_freq, exact,
        )  # fmt: skip
        found = td.tensordot(found, bands, 1)
        if self.power_to_db:
            found = 10.0 * td.keras.ops.log10(td.maximum(found, self.min_power))
            found -= 10.0 * math.log10(max(abs(self.ref_power), self.min_power))
            found = td.maximum(found, td.reduce_max(found) - self.top_db)
        return td.cast(td.linalg.matrix_transpose(found), self.compute_dtype)
