"""Summaries of numbers, images, distributions, texts and sounds."""

from __future__ import annotations

import functools
import io
import re
import wave
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.context import naming
from treadle.core.errors import InvalidArgumentError
from treadle.core.interrupts import during
from treadle.core.origin import at, user_origin
from treadle.core.records import record
from treadle.core.tensor import NDArray, Tensor
from treadle.debugging import assert_non_negative
from treadle.image.adjusting import convert_image_dtype
from treadle.ops.control.control_flow import cond
from treadle.ops.control.ordering import get_current_name_scope
from treadle.ops.control.summaries import WRITE_SUMMARY
from treadle.ops.conversion import constant, convert_to_tensor, is_symbolic
from treadle.ops.elementwise.casting import cast
from treadle.ops.image.codecs import ENCODE_PNG
from treadle.ops.registry import run
from treadle.ops.scalars import integer
from treadle.ops.strings.texts import string_tensor
from treadle.summary.event_file import EventFile
from treadle.summary.messages import message_module, metadata_of
from treadle.summary.writers import chosen_step, is_recording, state

_BUCKETS = 30
_NOT_IN_SCOPES = re.compile(r"[^-_/.A-Za-z0-9]")


@record(frozen=True)
class _Written:
    """What writes a tensor at a step.

    Attributes:
        encode: makes the array that is written of the tensor's.
    """

    file: EventFile
    tag: str
    metadata: bytes
    encode: Callable[[NDArray], NDArray] | None

    def __call__(self, step: NDArray, value: NDArray) -> None:
        encoded = value if self.encode is None else self.encode(value)
        self.file.add_tensor(self.tag, self.metadata, step, encoded)


class summary_scope(during):
    """The name scope of a summary, and its tag.

    The ``with`` statement binds (tag, scope). The tag is the name, whatever is in it, behind the
    scopes around it; scopes have letters, digits and ``_.-/`` only.

    Args:
        name: of the summary.
        default_name: the name where `name` is empty or None, and the scope where no character of
            the name may be in one.
        values: accepted for TensorFlow programs.
    """

    __slots__ = ()

    def __init__(
        self, name: str | None, default_name: str = "summary", values: Any = None
    ) -> None:
        name = name or default_name
        outer = get_current_name_scope()
        scope = f"{naming.scope}{_NOT_IN_SCOPES.sub('', name) or default_name}/"
        tag = f"{outer}/{name}" if outer else name
        super().__init__(naming, "scope", scope, gives=(tag, scope))


def write(
    tag: str, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None
) -> Tensor:
    """Write a summary of any kind to this thread's default writer.

    Args:
        tag: the summary's name, as `summary_scope` gives it.
        tensor: a tensor of any dtype and shape, or a function of no arguments that gives it, which
            is called only where there is a writer and `record_if` says so.
        step: an integer scalar; None: that of `td.summary.experimental.set_step`.
        metadata: a message SummaryMetadata, or its bytes, also as an eager tensor: it names
            TensorBoard's plugin.

    Returns:
        a scalar bool: whether it was written.

    Raises:
        ValueError: something is written but there is no step, or the step is no scalar.
        TypeError: the step is no integer, or the metadata are something else.
    """
    return _write(tag, tensor, step, lambda: _metadata_bytes(metadata))


def _metadata_bytes(metadata: Any) -> bytes:
    if metadata is None:
        return b""
    if isinstance(metadata, Tensor) and not is_symbolic(metadata):
        metadata = metadata.numpy()
    if hasattr(metadata, "SerializeToString"):
        return bytes(metadata.SerializeToString())
    if isinstance(metadata, str):
        return metadata.encode()
    if not isinstance(metadata, bytes):
        raise TypeError(f"write: metadata are a message or bytes, not {metadata!r}")
    return metadata


def _write(
    tag: str, tensor: Any, step: Any, metadata: Callable[[], bytes],
    encode: Callable[[NDArray], NDArray] | None = None,
) -> Tensor:  # fmt: skip
    """See `write`; `encode` makes what is written of the tensor's array."""
    writer = state.writer
    if writer is None:
        return constant(False)
    written = _Written(writer.file, tag, metadata(), encode)

    def put() -> Tensor:
        chosen = chosen_step(step)  # which the condition may have changed
        value = convert_to_tensor(tensor() if callable(tensor) else tensor)
        return run(WRITE_SUMMARY, chosen, value, write=written)  # type: ignore[no-any-return]

    return _where_recording(put)


def _where_recording(put: Callable[[], Tensor]) -> Tensor:
    """What `put` gives, where summaries are written; else False."""
    recording = is_recording()
    if isinstance(recording, Tensor):
        return cond(recording, put, lambda: constant(False))  # type: ignore[no-any-return]
    return put() if recording else constant(False)


def write_raw_pb(tensor: Any, step: Any = None, name: str | None = None) -> Tensor:
    """Write a message Summary to this thread's default writer.

    Args:
        tensor: a string, the message's bytes, or several, which are written as one message.
        step: an integer scalar; None: that of `set_step`.

    Returns:
        a scalar bool: whether it was written.

    Raises:
        ValueError, TypeError: as `td.summary.write` does.
        DataLossError: the bytes are no such message.
    """
    writer = state.writer
    if writer is None:
        return constant(False)
    write = writer.file.add_summary
    return _where_recording(
        lambda: run(WRITE_SUMMARY, chosen_step(step), string_tensor(tensor), write=write)
    )


def import_event(tensor: Any, name: str | None = None) -> None:
    """Write a message Event to this thread's default writer, whatever `record_if` says.

    Args:
        tensor: a scalar string, the message's bytes.

    Raises:
        ValueError: there is no default writer.
        DataLossError: the bytes are no such message.
    """
    if state.writer is None:
        raise ValueError(f"import_event: there is no default writer{at(user_origin())}")
    run(WRITE_SUMMARY, string_tensor(tensor), write=state.writer.file.add_event)


# -- kinds -----------------------------------------------------------------------------------------


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Write a number, a point of a curve in TensorBoard.

    Args:
        name: of the curve, behind the name scopes around the call.
        data: a scalar of any numeric dtype; it is written as float32.
        step: an integer scalar; None: that of `td.summary.experimental.set_step`.
        description: what is shown beside it, in Markdown.

    Returns:
        a scalar bool: whether it was written; False where there is no default writer.

    Raises:
        ValueError: `data` is no scalar; there is a writer but no step.
    """
    with summary_scope(name, "scalar_summary") as (tag, _):
        number = convert_to_tensor(data)
        if number.shape.rank not in (0, None):
            raise ValueError(
                f"Expected scalar shape, saw shape: {number.shape}.{at(user_origin())}"
            )
        number = cast(number, dtypes.float32)
        return _write(tag, number, step, lambda: metadata_of("scalar", description))


def histogram(
    name: str, data: Any, step: Any = None, buckets: Any = None, description: str | None = None
) -> Tensor:
    """Write how the elements of a tensor are distributed.

    What is written is float64 [buckets, 3]: the left and right edges of buckets of equal widths,
    and how many elements are in each; the last bucket has its right edge. All elements equal: they
    are in the last bucket. There are none: zeros. NaN and infinite elements are in no bucket.

    Args:
        name: of the summary, behind the name scopes around the call.
        data: a tensor of any shape and of numbers or bools.
        step: an integer scalar; None: that of `td.summary.experimental.set_step`.
        buckets: how many, 30 if not given.
        description: what is shown beside it, in Markdown.

    Returns:
        a scalar bool: whether it was written.

    Raises:
        ValueError: there is a writer but no step.
        TypeError: `buckets` is no integer, or `data` are strings.
    """
    with summary_scope(name, "histogram_summary") as (tag, _):
        count = _BUCKETS if buckets is None else max(integer("histogram: buckets", buckets), 0)
        metadata = functools.partial(metadata_of, "histogram", description)
        return _write(tag, lambda: _numbers(data), step, metadata, _Buckets(count))


def _numbers(data: Any) -> Tensor:
    found = convert_to_tensor(data)
    if not (found.dtype.is_numeric or found.dtype is dtypes.bool):
        raise TypeError(f"a histogram is of numbers, not {found.dtype.name}{at(user_origin())}")
    return cast(found, dtypes.float64) if found.dtype.is_complex else found


@record(frozen=True)
class _Buckets:
    """Counts the elements of an array in buckets of equal widths."""

    count: int

    def __call__(self, array: NDArray) -> NDArray:
        values, count = array.reshape(-1).astype(np.float64), self.count
        found = np.zeros((count, 3))
        if not values.size or not count:
            return found
        low, high = values.min(), values.max()
        if low == high:
            found[:, :2] = high
            found[-1, 2] = values.size
            return found
        width = (high - low) / count
        places = np.floor((values - low) / width)
        places = np.minimum(places[np.isfinite(places)], count - 1).astype(np.int64)
        edges = np.linspace(low, high, count + 1)
        edges[0], edges[-1] = low, high  # also where one of them is infinite
        found[:, 0], found[:, 1] = edges[:-1], edges[1:]
        found[:, 2] = np.bincount(places, minlength=count)
        return found


def image(
    name: str, data: Any, step: Any = None, max_outputs: Any = 3, description: str | None = None
) -> Tensor:
    """Write images, as PNG files.

    Args:
        name: of the summary, behind the name scopes around the call.
        data: [images, height, width, channels] with 1 to 4 channels: gray, gray and opacity, RGB,
            RGB and opacity. Floats are from 0 to 1, others are cut there; integers are scaled from
            the range of their dtype.
        step: an integer scalar; None: that of `td.summary.experimental.set_step`.
        max_outputs: how many images are written at most, the first ones.
        description: what is shown beside it, in Markdown.

    Returns:
        a scalar bool: whether they were written.

    Raises:
        ValueError: `data` has another rank; there is a writer but no step.
        AttributeError: `data` are neither floats nor integers.
        InvalidArgumentError: another number of channels; `max_outputs` is negative.
        ImportError: Pillow is not installed, which comes with tensorboard.
    """
    with summary_scope(name, "image_summary") as (tag, _):

        def pixels() -> Tensor:
            given = _of_rank(4, "image", data)
            if not (given.dtype.is_floating or given.dtype.is_integer):
                raise AttributeError(
                    f"images are floats or integers, not {given.dtype.name}{at(user_origin())}"
                )
            assert_non_negative(max_outputs)
            return convert_image_dtype(given[:max_outputs], dtypes.uint8, saturate=True)

        metadata = functools.partial(metadata_of, "image", description)
        return _write(tag, pixels, step, metadata, _png_files)


def _of_rank(rank: int, what: str, data: Any) -> Tensor:
    found = convert_to_tensor(data)
    if found.shape.rank not in (rank, None):
        raise ValueError(
            f"{what}: the tensor must have rank {rank}. Received rank {found.shape.rank}, shape "
            f"{found.shape}{at(user_origin())}"
        )
    return found


def _png_files(images: NDArray) -> NDArray:
    """Width, height and a file for each image, all of them strings."""
    height, width = images.shape[1:3]
    files = [png_file(image) for image in images]
    return np.array([b"%d" % width, b"%d" % height, *files], object)


def png_file(image: NDArray) -> bytes:
    """A PNG file of an image [height, width, channels] of bytes."""
    assert ENCODE_PNG.eager is not None
    return bytes(ENCODE_PNG.eager(image, compression=-1).item())


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Write strings, which TensorBoard shows as Markdown: those of a vector or matrix as a table.

    Args:
        name: of the summary, behind the name scopes around the call.
        data: strings of any shape.
        step: an integer scalar; None: that of `td.summary.experimental.set_step`.
        description: what is shown beside it, in Markdown.

    Returns:
        a scalar bool: whether they were written.

    Raises:
        TypeError: `data` are no strings.
        ValueError: there is a writer but no step.
    """
    with summary_scope(name, "text_summary") as (tag, _):
        strings = convert_to_tensor(data)
        if strings.dtype is not dtypes.string:
            raise TypeError(
                f"a text is of strings, not {strings.dtype.name}: td.strings.as_string writes "
                f"numbers{at(user_origin())}"
            )
        return _write(tag, strings, step, lambda: metadata_of("text", description))


def audio(
    name: str, data: Any, sample_rate: Any, step: Any = None, max_outputs: Any = 3,
    encoding: str | None = None, description: str | None = None,
) -> Tensor:  # fmt: skip
    """Write sounds, as WAV files of 16 bits.

    Args:
        name: of the summary, behind the name scopes around the call.
        data: [sounds, samples, channels] of floats from -1 to 1; others are cut there.
        sample_rate: samples in a second.
        step: an integer scalar; None: that of `td.summary.experimental.set_step`.
        max_outputs: how many sounds are written at most, the first ones.
        encoding: "wav", or None for it.
        description: what is shown beside it, in Markdown.

    Returns:
        a scalar bool: whether they were written.

    Raises:
        ValueError: another encoding; `data` has another rank; there is a writer but no step.
        TypeError: `data` are no floats.
        InvalidArgumentError: `sample_rate` is not positive, or `max_outputs` is negative.
    """
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}{at(user_origin())}")
    with summary_scope(name, "audio_summary") as (tag, _):

        def samples() -> Tensor:
            given = _of_rank(3, "audio", data)
            if not given.dtype.is_floating:
                raise TypeError(f"a sound is of floats, not {given.dtype.name}{at(user_origin())}")
            assert_non_negative(max_outputs)
            return given[:max_outputs]

        def metadata() -> bytes:
            wav = message_module("plugins.audio.metadata").Encoding.Value("WAV")
            return metadata_of("audio", description, encoding=wav)

        rate = integer("audio: sample_rate", sample_rate)
        if not 0 < rate < 1 << 32:
            raise InvalidArgumentError(
                None, None, f"sample_rate must be in (0, 2^32), got: {rate}{at(user_origin())}"
            )
        return _write(tag, samples, step, metadata, _WavFiles(rate))


@record(frozen=True)
class _WavFiles:
    """Makes of each sound a row: a file and an empty description."""

    rate: int

    def __call__(self, sounds: NDArray) -> NDArray:
        found = np.empty((len(sounds), 2), object)
        found[:, 0] = [wav_file(sound, self.rate) for sound in sounds]
        found[:, 1] = b""
        return found


def wav_file(sound: NDArray, rate: int) -> bytes:
    """A WAV file of 16 bits of a sound [samples, channels] of floats."""
    scaled = sound.astype(np.float64) * (1 << 15)
    rounded = np.trunc(scaled + np.copysign(0.5, scaled))  # halves away from zero
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((sound.shape[1], 2, rate, len(sound), "NONE", ""))
        file.writeframes(np.clip(rounded, -(1 << 15), (1 << 15) - 1).astype("<i2").tobytes())
    return buffer.getvalue()
