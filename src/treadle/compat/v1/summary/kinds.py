"""Operations whose values are messages Summary, as bytes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import treadle as td
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.functions import executing_eagerly, name_scope
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.recording import in_graphs, recorded, writes_into
from treadle.compat.v1.summary import encoding
from treadle.core.origin import at, user_origin
from treadle.summary.messages import message_module, metadata_for

_NOT_IN_TAGS = re.compile(r"[^-/\w.]")


def bytes_of(encode: Callable[..., bytes], *values: Any) -> Any:
    """A scalar string: what `encode` gives for the values."""

    def call(*arrays: Any) -> Any:
        return encode(*arrays)

    found = td.numpy_function(call, values, td.string, stateful=False)
    return td.ensure_shape(found, ()) if td.inside_function() else found


@contextmanager
def summary_scope(name: Any, family: str | None) -> Iterator[tuple[str, str]]:
    """The name scope of a summary: its tag and the scope itself."""
    name = _NOT_IN_TAGS.sub("_", str(name)).lstrip("/")
    with name_scope(f"{family}/{name}" if family else name) as scope:
        tag = scope.rstrip("/")
        yield (f"{family}/{tag}" if family else tag), scope


def written_down(
    function: Callable[..., Any], type_: str, name: Any, family: str | None, collections: Any,
    *args: Any, **kwargs: Any,
) -> Any:  # fmt: skip
    """The call ``function(tag, *args)`` in a scope of the summary's name, in `collections`."""
    with summary_scope(name, family) as (tag, scope):
        given = recorded(function, type_, type_)(tag, *args, name=scope, **kwargs)
    if writes_into(given) is not None:
        default = [GraphKeys.SUMMARIES] if collections is None else collections
        get_default_graph().add_to_collections(default, given)
    return given


def scalar(name: str, tensor: Any, collections: Any = None, family: str | None = None) -> Any:
    """A number, a point of a curve in TensorBoard.

    Args:
        name: of the curve, behind the name scopes around the call.
        tensor: a scalar of any real dtype; it is written as float32.
        collections: those of the graph that the operation is added to; None: the one that
            `merge_all` takes.
        family: what the name begins with in TensorBoard.

    Returns:
        a scalar string: the bytes of a message Summary.

    Raises:
        ValueError: `tensor` is no scalar.
    """
    return written_down(number, "ScalarSummary", name, family, collections, tensor)


def number(tag: str, tensor: Any) -> Any:
    """See `scalar`."""
    value = td.cast(td.convert_to_tensor(tensor), td.float32)
    if value.shape.rank not in (0, None):
        raise ValueError(
            f"tags and values are not the same shape: [] != {value.shape} (tag {tag!r})"
            f"{at(user_origin())}"
        )
    return bytes_of(functools.partial(encoding.scalar, tag), value)


def histogram(name: str, values: Any, collections: Any = None, family: str | None = None) -> Any:
    """How the elements of a tensor of real numbers are distributed: see `scalar`.

    Raises:
        InvalidArgumentError: in a run, an element is not finite.
    """
    return written_down(distribution, "HistogramSummary", name, family, collections, values)


def distribution(tag: str, values: Any) -> Any:
    """See `histogram`."""
    found = td.convert_to_tensor(values)
    if not (found.dtype.is_floating or found.dtype.is_integer):
        raise TypeError(f"a histogram is of numbers, not {found.dtype.name}{at(user_origin())}")
    return bytes_of(functools.partial(encoding.histogram, tag), found)


def image(name: str, tensor: Any, max_outputs: int = 3, collections: Any = None,
          family: str | None = None) -> Any:  # fmt: skip
    """Images [images, height, width, 1, 3 or 4 channels]: see `scalar`.

    Bytes are written as they are. Floats are scaled: the largest becomes 255, or where some are
    negative, 0 becomes 128; pixels that are not finite are red.
    """
    return written_down(
        pictures, "ImageSummary", name, family, collections, tensor, max_outputs
    )


def pictures(
    tag: str, tensor: Any, most: int, bad_color: tuple[int, ...] = (255, 0, 0, 255)
) -> Any:
    """See `image`."""
    found = td.convert_to_tensor(tensor)
    if found.dtype not in (td.uint8, td.float16, td.float32, td.float64):
        raise TypeError(f"images are uint8 or floats, not {found.dtype.name}{at(user_origin())}")
    if found.shape.rank != 4 or found.shape[-1] not in (1, 3, 4, None):
        raise ValueError(
            f"Tensor must be 4-D with last dim 1, 3, or 4, not {found.shape}{at(user_origin())}"
        )
    if most < 1:
        raise ValueError(f"max_outputs must be at least 1, not {most}{at(user_origin())}")
    return bytes_of(functools.partial(encoding.images, tag, most, tuple(bad_color)), found)


def audio(name: str, tensor: Any, sample_rate: Any, max_outputs: int = 3, collections: Any = None,
          family: str | None = None) -> Any:  # fmt: skip
    """Sounds [sounds, samples] or [sounds, samples, channels] of floats from -1 to 1: see `scalar`.

    `sample_rate` is the number of samples in a second, also a tensor.
    """
    return written_down(
        recordings, "AudioSummaryV2", name, family, collections, tensor, sample_rate, max_outputs
    )


def recordings(tag: str, tensor: Any, rate: Any, most: int) -> Any:
    """See `audio`."""
    found = td.cast(td.convert_to_tensor(tensor), td.float32)
    if found.shape.rank not in (2, 3):
        raise ValueError(f"sounds have rank 2 or 3, not shape {found.shape}{at(user_origin())}")
    rate = td.cast(td.convert_to_tensor(rate), td.float32)
    return bytes_of(functools.partial(encoding.sounds, tag, most), found, rate)


def tensor_summary(name: str, tensor: Any, summary_description: Any = None, collections: Any = None,
                   summary_metadata: Any = None, family: str | None = None,
                   display_name: str | None = None) -> Any:  # fmt: skip
    """A tensor of any dtype and shape: see `scalar`.

    Args:
        summary_description: a message whose text is shown beside it.
        summary_metadata: a message SummaryMetadata, which names TensorBoard's plugin.
        display_name: what it is called in TensorBoard.
    """
    made = message_module("compat.proto.summary_pb2").SummaryMetadata()
    if summary_metadata is not None:
        made.CopyFrom(summary_metadata)
    if display_name is not None:
        made.display_name = display_name
    if summary_description is not None:
        made.summary_description = str(getattr(summary_description, "_name", summary_description))
    return written_down(
        whole, "TensorSummaryV2", name, family, collections, tensor, made.SerializeToString()
    )


def whole(tag: str, tensor: Any, metadata: bytes) -> Any:
    """See `tensor_summary`."""
    found = td.convert_to_tensor(tensor)
    return bytes_of(functools.partial(encoding.tensor, tag, metadata), found)


def text(name: str, tensor: Any, collections: Any = None) -> Any:
    """Strings, which TensorBoard shows as Markdown: see `scalar`.

    Raises:
        ValueError: `tensor` has no strings.
    """
    dtype = getattr(tensor, "dtype", None) or td.convert_to_tensor(tensor).dtype
    if dtype is not td.string:
        raise ValueError(
            f"Expected tensor {tensor} to have dtype string, got {dtype.name}{at(user_origin())}"
        )
    return written_down(
        whole, "TensorSummaryV2", name, None, collections, tensor, metadata_for("text")
    )


def merge(inputs: Any, collections: Any = None, name: str | None = None) -> Any:
    """One summary of several ones.

    Raises:
        RuntimeError: functions are called at once.
        TypeError: `inputs` is no list of tensors.
        InvalidArgumentError: in a run, two of them have the same tag.
    """
    _check_graph()
    if not isinstance(inputs, list | tuple):
        raise TypeError(f"merge takes a list of summaries, not {inputs!r}{at(user_origin())}")
    with name_scope(name, "Merge"):
        found = recorded(joined, "MergeSummary", "MergeSummary")(list(inputs))
    get_default_graph().add_to_collections(collections or [], found)
    return found


def joined(inputs: Any) -> Any:
    """See `merge`."""
    return bytes_of(encoding.merged, td.stack([td.reshape(x, ()) for x in inputs]))


def merge_all(key: Any = GraphKeys.SUMMARIES, scope: str | None = None,
              name: str | None = None) -> Any:  # fmt: skip
    """One summary of all in a collection of the default graph; None where there are none.

    Args:
        scope: a pattern with which their names begin.

    Raises:
        RuntimeError: functions are called at once.
    """
    _check_graph()
    found = get_default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None


def _check_graph() -> None:
    if executing_eagerly():
        raise RuntimeError(
            "Merging tf.summary.* ops is not compatible with eager execution. Use "
            f"tf.contrib.summary instead.{at(user_origin())}"
        )


in_graphs(number, distribution, pictures, recordings, whole, joined)
