"""Arrays as messages Summary of TensorFlow 1: one function for each kind, which gives the bytes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import treadle as td
from treadle.ops.strings.tensors import packed
from treadle.summary.messages import message_module
from treadle.summary.values import png_file, wav_file


def _messages() -> Any:
    return message_module("compat.proto.summary_pb2")


def _summary(*values: Any) -> bytes:
    return bytes(_messages().Summary(value=values).SerializeToString())


def merged(parts: Any) -> bytes:
    """The values of some summaries as one.

    Raises:
        InvalidArgumentError: two of them have the same tag.
        DataLossError: one is no such message.
    """
    found = _messages().Summary()
    seen = set()
    for part in parts:
        try:
            summary = _messages().Summary.FromString(part)
        except Exception as error:
            raise td.errors.DataLossError(None, None, f"no message Summary: {error}") from None
        for value in summary.value:
            if value.tag in seen:
                raise td.errors.InvalidArgumentError(
                    None, None, f"Duplicate tag {value.tag} found in summary inputs"
                )
            seen.add(value.tag)
        found.value.extend(summary.value)
    return bytes(found.SerializeToString())


def scalar(tag: str, value: Any) -> bytes:
    """A number."""
    return _summary(_messages().Summary.Value(tag=tag, simple_value=float(value)))


def tensor(tag: str, metadata: bytes, value: Any) -> bytes:
    """A tensor of any kind, with the bytes of a message SummaryMetadata."""
    array = np.asarray(value)
    made = _messages().Summary.Value(tag=tag)
    made.tensor.MergeFromString(packed(array, td.as_dtype(array.dtype)))
    made.metadata.MergeFromString(metadata)
    return _summary(made)


def images(tag: str, most: int, bad_color: tuple[int, ...], value: Any) -> bytes:
    """The first images of a batch as PNG files."""
    height, width, depth = value.shape[1:]
    values = []
    for number, pixels in enumerate(value[:most]):
        made = _messages().Summary.Image(height=height, width=width, colorspace=depth)
        made.encoded_image_string = png_file(_bytes_of_pixels(pixels, bad_color))
        name = f"{tag}/image/{number}" if most > 1 else f"{tag}/image"
        values.append(_messages().Summary.Value(tag=name, image=made))
    return _summary(*values)


def _bytes_of_pixels(pixels: Any, bad_color: tuple[int, ...]) -> Any:
    """Pixels from 0 to 255. Those of floats are scaled: the largest becomes 255, or where some are
    negative, 0 becomes 128 and the largest absolute value 1 or 255."""
    if pixels.dtype == np.uint8:
        return pixels
    is_finite = np.isfinite(pixels).all(axis=-1)
    found = pixels[is_finite].astype(np.float32)
    low, high = (found.min(), found.max()) if found.size else (np.inf, -np.inf)
    largest = max(abs(low), abs(high)) if low < 0 else high
    offset, span = (128.0, 127.0) if low < 0 else (0.0, 255.0)
    kind = pixels.dtype.type
    scale = kind(0.0 if largest < 1e-6 else span / np.float32(largest))
    given = np.empty(pixels.shape, np.uint8)
    given[is_finite] = (pixels[is_finite] * scale + kind(offset)).astype(np.uint8)
    given[~is_finite] = np.array(bad_color, np.uint8)[: pixels.shape[-1]]
    return given


def sounds(tag: str, most: int, value: Any, rate: Any) -> bytes:
    """The first sounds of a batch as WAV files."""
    values = []
    for number, sound in enumerate(value[:most]):
        sound = sound[:, None] if sound.ndim == 1 else sound
        made = _messages().Summary.Audio(
            sample_rate=float(rate), num_channels=sound.shape[1], length_frames=len(sound),
            encoded_audio_string=wav_file(sound, int(rate)), content_type="audio/wav",
        )  # fmt: skip
        name = f"{tag}/audio/{number}" if most > 1 else f"{tag}/audio"
        values.append(_messages().Summary.Value(tag=name, audio=made))
    return _summary(*values)


_LARGEST = float(np.finfo(np.float64).max)


@functools.cache
def _limits() -> Any:
    """The upper limits of a histogram's buckets, each 1.1 times the one before."""
    found, limit = [], 1e-12
    while limit < 1e20:
        found.append(limit)
        limit *= 1.1
    found.append(_LARGEST)
    return np.array([-x for x in reversed(found)] + [0.0] + found)


def histogram(tag: str, value: Any) -> bytes:
    """How the elements are distributed.

    Raises:
        InvalidArgumentError: one is not finite.
    """
    flat = value.reshape(-1).astype(np.float64)
    for name, bad in (("Nan", np.isnan(flat)), ("Infinity", np.isinf(flat))):
        if bad.any():
            raise td.errors.InvalidArgumentError(
                None, None, f"{name} in summary histogram for: {tag}"
            )
    limits = _limits()
    counts = np.bincount(np.searchsorted(limits, flat, side="right"), minlength=len(limits))
    # Of a run of empty buckets only the last one is written.
    is_end = np.append((counts[1:] > 0) | (counts[:-1] > 0), True)
    made = _messages().HistogramProto(
        min=flat.min() if flat.size else _LARGEST, max=flat.max() if flat.size else -_LARGEST,
        num=flat.size, sum=flat.sum(), sum_squares=np.square(flat).sum(),
        bucket_limit=limits[is_end], bucket=counts[is_end],
    )  # fmt: skip
    return _summary(_messages().Summary.Value(tag=tag, histo=made))
