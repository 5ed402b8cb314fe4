"""``td.compat.v1.contrib.summary``: summaries that are written at once, or when a graph runs.

A summary goes to the thread's default writer of `treadle.summary`, where a block of
`always_record_summaries` or the like says so; its step is the global step.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.compat.v1.functions import executing_eagerly
from treadle.compat.v1.graph import Graph, get_default_graph
from treadle.compat.v1.mirrored import checking
from treadle.compat.v1.recording import recorded, writes_into
from treadle.compat.v1.session import get_default_session
from treadle.compat.v1.summary import kinds
from treadle.compat.v1.summary.graphs import graph_message
from treadle.compat.v1.train.schedules import get_or_create_global_step
from treadle.compat.v1.values import Literal
from treadle.core.interrupts import during
from treadle.core.origin import at, user_origin
from treadle.names import missing_in
from treadle.summary.event_file import EventFile
from treadle.summary.writers import FileWriter, state

_COLLECTION = "_contrib_summaries"


class SummaryWriter(FileWriter):
    """Writes summaries into a file of events; in graphs `flush` and `close` are operations."""

    def as_default(self, step: Any = None) -> Any:
        """In the block this thread's summaries go here."""
        self.init()
        return during(state, "writer", self)

    def set_as_default(self, step: Any = None) -> None:
        """From now on this thread's summaries go here."""
        self.init()
        state.writer = self

    def init(self) -> Any:
        """The file is made with the writer."""
        super().init()
        return None if executing_eagerly() else _operation(_nothing, "init")

    def flush(self) -> Any:
        """Write what waits."""
        return _operation(super().flush, "flush")

    def close(self) -> Any:
        """Write what waits and end the file."""
        return _operation(super().close, "close")


def _nothing() -> None:
    pass


def _operation(function: Callable[..., Any], name: str, *args: Any) -> Any:
    """A call without results: made at once, or an operation of the default graph."""

    def call(*given: Any) -> None:
        function(*given)

    if writes_into(args) is None:
        return function(*args)
    return recorded(checking(call), name, name)(*args)


def create_file_writer(logdir: Any, max_queue: int | None = None, flush_millis: int | None = None,
                       filename_suffix: str | None = None, name: str | None = None) -> Any:
    """A writer of a file in a folder; None: summaries are written nowhere. See
    `td.summary.create_file_writer`."""
    if logdir is None:
        return td.summary.create_noop_writer()
    return SummaryWriter(
        EventFile(
            os.fspath(logdir), 10 if max_queue is None else int(max_queue),
            120_000 if flush_millis is None else int(flush_millis), filename_suffix or ".v2",
        )
    )  # fmt: skip


create_summary_file_writer = create_file_writer


def record_summaries(condition: Any) -> Any:
    """In the block summaries are written where a condition holds: a bool, a tensor, or a function
    that gives one."""
    return during(state, "condition", condition)


def always_record_summaries() -> Any:
    """In the block summaries are written."""
    return record_summaries(True)


def never_record_summaries() -> Any:
    """In the block no summaries are written."""
    return record_summaries(False)


def record_summaries_every_n_global_steps(n: int, global_step: Any = None) -> Any:
    """In the block summaries are written at steps that `n` divides."""
    step = get_or_create_global_step() if global_step is None else global_step
    if executing_eagerly():
        return record_summaries(lambda: td.equal(step % n, 0))
    return record_summaries(recorded(td.equal, "Equal", "Equal")(step % n, 0))


def should_record_summaries() -> Any:
    """Whether summaries are written here; False where no block says so."""
    condition = state.condition() if callable(state.condition) else state.condition
    return False if condition is None else condition


def _write(
    function: Callable[..., Any], type_: str, name: str, family: str | None, step: Any, *args: Any
) -> Any:
    """Write ``function(tag, *args)``, the bytes of a summary, with the default writer."""
    writer, condition = state.writer, should_record_summaries()
    if writer is None or condition is False:
        return None if executing_eagerly() else _operation(_nothing, "no_op")
    step = get_or_create_global_step() if step is None else step
    with kinds.summary_scope(name, family) as (tag, scope):
        call = recorded(checking(_put), type_, type_)
        found = call(
            Literal(writer), condition, step, Literal(function), tag, list(args), name=scope
        )
    if writes_into(args, step, condition) is not None:
        get_default_graph().add_to_collection(_COLLECTION, found)
    return found


def _put(
    writer: Any, condition: Any, step: Any, function: Any, tag: str, args: list[Any]
) -> None:
    if type(writer) is Literal:  # it is called at once
        writer, function = writer.value, function.value
    with during(state, "writer", writer), during(state, "condition", condition):
        td.summary.experimental.write_raw_pb(function(tag, *args), step)


def scalar(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """A number: see `tf.summary.scalar`."""
    return _write(kinds.number, "WriteScalarSummary", name, family, step, tensor)


def histogram(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """How numbers are distributed: see `tf.summary.histogram`."""
    return _write(kinds.distribution, "WriteHistogramSummary", name, family, step, tensor)


def image(name: str, tensor: Any, bad_color: Any = None, max_images: int = 3,
          family: str | None = None, step: Any = None) -> Any:  # fmt: skip
    """Images: see `tf.summary.image`; pixels that are not finite have `bad_color` (RGBA)."""
    color = (255, 0, 0, 255) if bad_color is None else tuple(int(c) for c in bad_color)
    return _write(
        kinds.pictures, "WriteImageSummary", name, family, step, tensor, max_images, color
    )


def audio(name: str, tensor: Any, sample_rate: Any, max_outputs: int, family: str | None = None,
          step: Any = None) -> Any:  # fmt: skip
    """Sounds: see `tf.summary.audio`."""
    return _write(
        kinds.recordings, "WriteAudioSummary", name, family, step, tensor, sample_rate, max_outputs
    )


def generic(name: str, tensor: Any, metadata: Any = None, family: str | None = None,
            step: Any = None) -> Any:  # fmt: skip
    """A tensor of any kind, with a message SummaryMetadata or its bytes."""
    if metadata is not None and not isinstance(metadata, bytes):
        metadata = metadata.SerializeToString()
    return _write(kinds.whole, "WriteSummary", name, family, step, tensor, metadata or b"")


def import_event(tensor: Any, name: str | None = None) -> Any:
    """Write the bytes of a message Event."""
    writer = state.writer

    def call(event: Any) -> None:
        with during(state, "writer", writer):
            td.summary.import_event(event)

    return _operation(call, "import_event", tensor)


def graph(param: Any, step: Any = None, name: str | None = None) -> None:
    """Write a graph with the default writer.

    Raises:
        TypeError: it is no graph.
    """
    if state.writer is None:
        return
    given = graph_message(param) if isinstance(param, Graph) else param
    if not hasattr(given, "SerializeToString"):
        raise TypeError(f"graph takes a tf.Graph, not {param!r}{at(user_origin())}")
    state.writer.file.add_graph(given)


def flush(writer: Any = None, name: str | None = None) -> Any:
    """Write what waits in a writer, the default one if none is given."""
    chosen = state.writer if writer is None else writer
    return None if chosen is None else chosen.flush()


def all_summary_ops() -> Any:
    """The operations of the default graph that write; None where calls are made at once."""
    if executing_eagerly():
        return None
    return get_default_graph().get_collection(_COLLECTION)


def summary_writer_initializer_op() -> list[Any]:
    """Operations that make writers ready: none, they are made with their files.

    Raises:
        RuntimeError: calls are made at once.
    """
    if executing_eagerly():
        raise RuntimeError(
            "tf.contrib.summary.summary_writer_initializer_op is only supported in graph mode."
        )
    return []


def initialize(graph: Any = None, session: Any = None) -> None:
    """Make writing ready, and write a graph.

    Raises:
        RuntimeError: there is no default writer.
        ValueError: there is no session.
    """
    if executing_eagerly():
        return
    if state.writer is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found")
    if session is None and get_default_session() is None:
        raise ValueError("Argument `session must be passed if no default session exists")
    if graph is not None:
        globals()["graph"](graph)


def eval_dir(model_dir: Any, name: str | None = None) -> str:
    """The folder of an evaluation's summaries."""
    return os.path.join(os.fspath(model_dir), "eval" if not name else f"eval_{name}")


__getattr__ = missing_in(__name__)
