"""A file of events, as TensorBoard reads it: records of messages, each with checksums."""

from __future__ import annotations

import atexit
import itertools
import os
import socket
import time
import warnings
from typing import Any

import numpy as np

from treadle.core import errors, locks
from treadle.core.context import recording, taping
from treadle.core.dtypes import as_dtype
from treadle.core.file_errors import file_error
from treadle.core.living import Living
from treadle.core.origin import at, user_origin
from treadle.core.tensor import NDArray
from treadle.io.records import pieces
from treadle.ops.strings.tensors import packed
from treadle.summary.messages import message_module

_numbers = itertools.count()  # of the files of this process


class EventFile:
    """Events that are written behind one another.

    They wait in a queue, which is written when it is full or old enough, and when it is flushed.
    Threads may add events at the same time.

    Args:
        logdir: the folder, which is made with all above it; the name of the file has time, host
            and process.
        max_queue: the events that may wait.
        flush_millis: the milliseconds that they may wait for, seen when the next one comes.
        suffix: of the name of the file.

    Raises:
        FailedPreconditionError: `logdir`, or something above it, is a file.
        PermissionDeniedError: the folder or file may not be made.
        ImportError: tensorboard is not installed.
    """

    def __init__(self, logdir: str, max_queue: int, flush_millis: int, suffix: str) -> None:
        self.logdir, self._max_queue, self._flush_seconds = logdir, max_queue, flush_millis / 1000
        self._events = message_module("compat.proto.event_pb2")
        self._summaries = message_module("compat.proto.summary_pb2")
        self._tensors = message_module("compat.proto.tensor_pb2")
        self._lock = locks.reentrant_lock()
        self._queue: list[bytes] = []
        self._written = time.monotonic()  # when the queue was written last
        parts = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
        self.path = os.path.join(logdir, f"events.out.tfevents.{parts}{suffix}")
        self._file: Any = None
        try:
            os.makedirs(logdir, exist_ok=True)
            self._file = open(self.path, "wb", buffering=0)  # noqa: SIM115  (closed by `close`)
        except OSError as error:
            raise file_error(error, self.path) from None
        _open.add(self)
        source = self._events.SourceMetadata(writer="treadle.summary")
        self.add(self._events.Event(file_version="brain.Event:2", source_metadata=source))
        self.flush()

    @property
    def is_closed(self) -> bool:
        return self._file is None or bool(self._file.closed)

    def add(self, event: Any) -> None:
        """Write an event; it happened now, where it does not say when.

        Raises:
            NotFoundError: the file is closed.
            ResourceExhaustedError: the disk is full.
        """
        event.wall_time = event.wall_time or time.time()
        with self._lock:
            self._check_open()
            self._queue.append(event.SerializeToString())
            age = time.monotonic() - self._written
            if len(self._queue) > self._max_queue or age > self._flush_seconds:
                self.flush()

    def _check_open(self) -> None:
        if self.is_closed:
            raise errors.NotFoundError(
                None, None, f"the writer of summaries in {self.logdir!r} is closed"
            )

    def flush(self) -> None:
        """Write what waits; nothing where the file is closed.

        Raises:
            ResourceExhaustedError: the disk is full. The file is as it was, and the events wait for
                the next time.
        """
        with self._lock:
            if self.is_closed:
                return
            self._written = time.monotonic()
            with recording(None), taping(()):  # checksums are computed by compiled functions
                parts = [part for event in self._queue for part in pieces(event)]
            end = self._file.tell()
            try:
                rest = memoryview(b"".join(parts))
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError as error:
                self._file.truncate(end)  # no reader sees a part of an event
                self._file.seek(end)
                raise file_error(error, self.path) from None
            self._queue = []

    def close(self) -> None:
        """Write what waits and end the file."""
        with self._lock:
            try:
                self.flush()
            finally:
                if self._file is not None:
                    self._file.close()

    def __del__(self) -> None:
        if self._file is not None:
            self.close()

    # -- kinds of events, as programs give them ----------------------------------------------------

    def add_tensor(self, tag: str, metadata: bytes, step: NDArray, value: NDArray) -> None:
        """Write a summary of one tensor."""
        tensor = self._tensors.TensorProto.FromString(packed(value, as_dtype(value.dtype)))
        summary = self._summaries.Summary()
        entry = summary.value.add(tag=tag, tensor=tensor)
        entry.metadata.MergeFromString(metadata)
        self.add(self._events.Event(step=int(step), summary=summary))

    def add_summary(self, step: NDArray, text: NDArray) -> None:
        """Write a message Summary, or several as one.

        Raises:
            DataLossError: the bytes are no such message.
        """
        found = self._summaries.Summary()
        for each in np.atleast_1d(text).reshape(-1):
            found.MergeFrom(_parsed(self._summaries.Summary, np.asarray(each, object)))
        self.add(self._events.Event(step=int(step), summary=found))

    def add_event(self, text: NDArray) -> None:
        """Write a message Event.

        Raises:
            DataLossError: the bytes are no such message.
        """
        self.add(_parsed(self._events.Event, text))

    def add_graph(self, graph: Any) -> None:
        """Write a message GraphDef."""
        self.add(self._events.Event(graph_def=graph.SerializeToString()))


def _parsed(kind: Any, text: NDArray) -> Any:
    try:
        return kind.FromString(text.item())
    except Exception as error:
        raise errors.DataLossError(
            None, None, f"the bytes are no message {kind.DESCRIPTOR.name}: {error}"
            f"{at(user_origin())}",
        ) from None  # fmt: skip


_open: Living[EventFile] = Living()


@atexit.register
def _close_all() -> None:
    for file in _open:
        try:
            file.close()
        except errors.OpError as error:  # the program has ended: a line, no traceback
            warnings.warn(f"Summaries are lost: {error.message}", stacklevel=1)
