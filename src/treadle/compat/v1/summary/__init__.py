"""``td.compat.v1.summary``: operations that give messages Summary, and the writer of their files.

Files are written with the package tensorboard: ``pip install 'treadle[summary]'``.
"""

from __future__ import annotations

from typing import Any

from treadle.compat.graph_messages import message
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

MESSAGES = (
    "Summary", "SummaryDescription", "SummaryMetadata", "HistogramProto", "Event", "SessionLog",
    "TaggedRunMetadata", "LogMessage",
)  # fmt: skip


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
