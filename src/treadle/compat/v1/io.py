"""``td.compat.v1.io`` and ``python_io``: `td.io` as graphs have it, and files of records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treadle.compat.v1.mirrored import fallback
from treadle.compat.v1.queues import (
    PaddingFIFOQueue,
    PriorityQueue,
    QueueBase,
    RandomShuffleQueue,
)
from treadle.io.records import TFRecordOptions, TFRecordWriter, records

__all__ = [
    "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue",
    "TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator",
]  # fmt: skip


class TFRecordCompressionType:
    """How `TFRecordOptions` are told that records are compressed."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """The records of a file, in order.

    Args:
        path: the file's name.
        options: `TFRecordOptions`, or how the file is compressed.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: a record is damaged.
    """
    return records(path, TFRecordOptions.get_compression_type_string(options))


__getattr__ = fallback(__name__, "treadle.io")
