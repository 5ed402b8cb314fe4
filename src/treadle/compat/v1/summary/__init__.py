"""``td.compat.v1.summary``: operations that give messages Summary, and the writer of their files.

The package tensorboard has the messages: ``pip install 'treadle[summary]'``.
"""

from __future__ import annotations

from typing import Any

from treadle.compat.v1.summary.kinds import (
    audio,
    histogram,
    image,
    merge,
    merge_all,
    scalar,
    tensor_summary,
    text,
)
from treadle.compat.v1.summary.writers import FileWriter, FileWriterCache
from treadle.names import missing_name
from treadle.summary.messages import message_module

__all__ = [
    "FileWriter",
    "FileWriterCache",
    "audio",
    "get_summary_description",
    "histogram",
    "image",
    "merge",
    "merge_all",
    "scalar",
    "tensor_summary",
    "text",
]

# Messages, and the modules of tensorboard that have them; loaded when a program names one.
MESSAGES = {
    "Summary": "summary_pb2", "SummaryDescription": "summary_pb2", "SummaryMetadata": "summary_pb2",
    "HistogramProto": "summary_pb2", "Event": "event_pb2", "SessionLog": "event_pb2",
    "TaggedRunMetadata": "event_pb2", "LogMessage": "event_pb2",
}  # fmt: skip


def message(name: str) -> Any:
    """A class of messages by its name.

    Raises:
        ImportError: the package tensorboard is not installed.
    """
    return getattr(message_module(f"compat.proto.{MESSAGES[name]}"), name)


def get_summary_description(node_def: Any) -> Any:
    """The message SummaryDescription of the operation of a `tensor_summary`.

    Raises:
        ValueError: it is another operation.
    """
    if node_def.op != "TensorSummaryV2":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    return message("SummaryDescription")()


def __getattr__(name: str) -> Any:
    if name in MESSAGES:
        return message(name)
    raise missing_name(__name__, name)
