"""`FileWriter`: a file of events whose summaries a session gives."""

from __future__ import annotations

import os
from typing import Any

from treadle.compat.graph_messages import message
from treadle.compat.v1 import logging
from treadle.compat.v1.functions import executing_eagerly
from treadle.compat.v1.graph import Graph
from treadle.compat.v1.summary.graphs import graph_message
from treadle.core import locks
from treadle.core.errors import DataLossError
from treadle.core.origin import at, user_origin
from treadle.summary.event_file import EventFile


class FileWriter:
    """Writes summaries that sessions give, events and graphs into a file for TensorBoard.

    Args:
        logdir: the folder, which is made where it is not there.
        graph: is written at once, as by `add_graph`.
        max_queue: how many events may wait until they are written.
        flush_secs: the seconds that they may wait for.
        graph_def: accepted; give `graph`.
        filename_suffix: the end of the file's name.
        session: accepted for TensorFlow programs.

    Raises:
        RuntimeError: functions are called at once.
        ImportError: the package tensorboard is not installed.
        FailedPreconditionError: the folder's name is that of a file.
    """

    def __init__(self, logdir: Any, graph: Graph | None = None, max_queue: int = 10,
                 flush_secs: float = 120, graph_def: Any = None, filename_suffix: str | None = None,
                 session: Any = None) -> None:  # fmt: skip
        if executing_eagerly():
            raise RuntimeError(
                "tf.summary.FileWriter is not compatible with eager execution. Use "
                f"tf.contrib.summary instead.{at(user_origin())}"
            )
        folder = os.fsdecode(logdir)
        self._about = folder, max_queue, int(flush_secs * 1000), filename_suffix or ""
        self._described: set[str] = set()  # tags whose metadata were written
        self._file = EventFile(*self._about)
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)

    def get_logdir(self) -> str:
        """The folder."""
        return self._about[0]

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write a message Summary, or the bytes of one that a run gave, for a step.

        Raises:
            DataLossError: the bytes are no such message.
        """
        kind = message("Summary")
        try:
            made = kind.FromString(_bytes_of(summary))
        except Exception as error:
            raise DataLossError(
                None, None, f"add_summary: the bytes are no message Summary: {error}"
                f"{at(user_origin())}",
            ) from None  # fmt: skip
        for value in made.value:
            if value.tag in self._described:
                value.ClearField("metadata")
            elif value.HasField("metadata"):
                self._described.add(value.tag)
        self._add(message("Event")(summary=made), global_step)

    def add_event(self, event: Any) -> None:
        """Write a message Event."""
        if self._file.is_closed:
            logging.warning("Attempting to use a closed FileWriter: it writes nothing (see reopen)")
        else:
            self._file.add(event)

    def _add(self, event: Any, step: Any) -> None:
        if step is not None:
            event.step = int(step)
        self.add_event(event)

    def add_graph(self, graph: Any = None, global_step: Any = None, graph_def: Any = None) -> None:
        """Write a graph, which TensorBoard draws.

        Raises:
            TypeError: it is no graph.
        """
        given = graph if graph is not None else graph_def
        if isinstance(given, Graph):
            given = graph_message(given)
        elif type(given).__name__ != "GraphDef":  # this module's, or that of another package
            raise TypeError(f"add_graph takes a tf.Graph, not {given!r}{at(user_origin())}")
        self._add(message("Event")(graph_def=_bytes_of(given)), global_step)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Write a message SessionLog."""
        made = message("SessionLog").FromString(_bytes_of(session_log))
        self._add(message("Event")(session_log=made), global_step)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Write what a run noted under a tag.

        Raises:
            ValueError: there is one of this tag.
        """
        if f"run {tag}" in self._described:
            raise ValueError(f"The provided tag was already used for this event type: {tag}")
        self._described.add(f"run {tag}")
        made = message("TaggedRunMetadata")(tag=tag)
        if hasattr(run_metadata, "SerializeToString"):
            made.run_metadata = _bytes_of(run_metadata)
        self._add(message("Event")(tagged_run_metadata=made), global_step)

    def flush(self) -> None:
        """Write what waits."""
        self._file.flush()

    def close(self) -> None:
        """Write what waits and end the file."""
        self._file.close()

    def reopen(self) -> None:
        """Go on in a new file, where this one is closed."""
        if self._file.is_closed:
            self._file = EventFile(*self._about)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _bytes_of(given: Any) -> bytes:
    """Those of a message of any package's class, or the bytes themselves."""
    return bytes(given.SerializeToString() if hasattr(given, "SerializeToString") else given)


class FileWriterCache:
    """Writers by their folders."""

    _lock = locks.reentrant_lock()
    _found: dict[str, FileWriter] = {}

    @staticmethod
    def get(logdir: Any) -> FileWriter:
        """The writer of a folder, which is made where there is none."""
        path = os.fspath(logdir)
        with FileWriterCache._lock:
            if path not in FileWriterCache._found:
                FileWriterCache._found[path] = FileWriter(path)
            return FileWriterCache._found[path]

    @staticmethod
    def clear() -> None:
        """Close and forget them all."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._found.values():
                writer.close()
            FileWriterCache._found.clear()
