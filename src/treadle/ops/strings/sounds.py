"""WAV files decoded and encoded: 16-bit PCM, by Python's module `wave`."""

from __future__ import annotations

import io
import wave
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes
from treadle.core.origin import at, user_origin
from treadle.core.shapes import fresh_symbol
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.registry import Op, register, run
from treadle.ops.strings.texts import STRINGS, invalid, string_tensor

_SCALE = 32768.0  # of integers to [-1, 1)


class DecodeWav(NamedTuple):
    """Samples, float32 [samples, channels] from -1 to 1, and how many there are in a second."""

    audio: Tensor
    sample_rate: Tensor


def _infer_decode(
    contents: Spec, *, channels: int, samples: int
) -> tuple[TensorSpec, TensorSpec]:
    if contents.dims:
        raise invalid(f"contents must be scalar, got shape {contents.shape}")
    dims = (
        samples if samples >= 0 else fresh_symbol("samples"),
        channels if channels >= 0 else fresh_symbol("channels"),
    )
    return TensorSpec(dims, dtypes.float32), TensorSpec((), dtypes.int32)


def _decode(contents: NDArray, *, channels: int, samples: int) -> tuple[NDArray, NDArray]:
    try:
        with wave.open(io.BytesIO(contents.item())) as file:
            if file.getsampwidth() != 2:
                raise invalid(f"Can only read 16-bit WAV files, but received {_bits(file)}")
            rate, found = file.getframerate(), file.getnchannels()
            data = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, found)
    except (wave.Error, EOFError) as error:
        raise invalid(f"no WAV file: {error or 'it is too short'}") from None
    wanted = found if channels < 0 else channels
    count = len(data) if samples < 0 else samples
    audio = np.zeros((count, wanted), np.float32)
    # Channels that the file does not have repeat its last one; samples behind its end are silent.
    columns = np.minimum(np.arange(wanted), found - 1)
    audio[: len(data)] = data[:count, columns] / np.float32(_SCALE)
    return audio, np.array(rate, np.int32)


def _bits(file: wave.Wave_read) -> int:
    return 8 * file.getsampwidth()


DECODE_WAV = register(Op("decode_wav", _infer_decode, _decode, tags=STRINGS))


def decode_wav(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> DecodeWav:
    """The samples of a WAV file.

    Args:
        contents: the bytes of a file of 16-bit PCM, a scalar string.
        desired_channels: how many channels the result has; the file's by default. Those that the
            file does not have repeat its last one.
        desired_samples: how many samples it has; more than the file's are zeros.

    Returns:
        (audio, sample_rate): float32 [samples, channels] in [-1, 1), and an int32 scalar, in Hz.

    Raises:
        InvalidArgumentError: no WAV file of 16-bit PCM.
    """
    file = string_tensor(contents)
    if file.ndim != 0:
        raise invalid(f"contents must be scalar, got shape {file.shape}{at(user_origin())}")
    audio, rate = run(
        DECODE_WAV, file, channels=int(desired_channels),
        samples=int(desired_samples),
    )  # fmt: skip
    return DecodeWav(audio, rate)


def _infer_encode(audio: Spec, rate: Spec) -> TensorSpec:
    if len(audio.dims) != 2 or rate.dims:
        raise invalid(
            f"audio must be 2-dimensional and sample_rate a scalar, got {audio.shape} and "
            f"{rate.shape}"
        )
    return TensorSpec((), dtypes.string)


def _encode(audio: NDArray, rate: NDArray) -> NDArray:
    samples, channels = audio.shape
    if not channels or not samples or rate <= 0:
        raise invalid(f"no sound: {samples} samples of {channels} channels at {rate} Hz")
    scaled = audio.astype(np.float64) * _SCALE
    nearest = np.trunc(scaled + np.copysign(0.5, scaled))
    whole = np.clip(nearest, -_SCALE, _SCALE - 1).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(int(rate))
        file.writeframes(whole.tobytes())
    return np.array(buffer.getvalue(), object)


ENCODE_WAV = register(Op("encode_wav", _infer_encode, _encode, tags=STRINGS))


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Tensor:
    """A WAV file of 16-bit PCM.

    Args:
        audio: float32 [samples, channels]; numbers outside of [-1, 1] are clipped.
        sample_rate: how many samples there are in a second, an int32 scalar.

    Returns:
        the bytes of the file, a scalar string.

    Raises:
        InvalidArgumentError: another rank, no samples, or a rate that is not positive.
    """
    sound = convert_to_tensor(audio, dtypes.float32)
    rate = convert_to_tensor(sample_rate, dtypes.int32)
    if sound.ndim != 2:
        raise invalid(f"audio must be 2-dimensional, not of shape {sound.shape}{at(user_origin())}")
    return run(ENCODE_WAV, sound, rate)  # type: ignore[no-any-return]
