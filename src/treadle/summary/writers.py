"""Writers of summaries, and the default ones of a thread, with its step and its condition."""

from __future__ import annotations

import os
import threading
from typing import Any

from treadle.core import dtypes
from treadle.core.context import context
from treadle.core.interrupts import during, is_mode
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.control.summaries import WRITE_SUMMARY
from treadle.ops.conversion import constant, convert_to_tensor, has_dtype, is_symbolic
from treadle.ops.elementwise.casting import cast
from treadle.ops.registry import run
from treadle.ops.shaping.reshaping import reshape
from treadle.summary.event_file import EventFile


class _State(threading.local):
    """Attributes:
        writer: the default writer of this thread.
        step: what summaries take that are given none.
        condition: what `record_if` was given: a bool, a scalar of it, or a function of nothing.
    """

    writer: FileWriter | None = None
    step: Any = None
    condition: Any = None


state = is_mode(_State())


class SummaryWriter:
    """Writes summaries into a file of events, which TensorBoard reads.

    `td.summary.create_file_writer` makes one. Functions are traced with the default writer of that
    moment, and write with it from then on.
    """

    def set_as_default(self, step: Any = None) -> None:
        """From now on this thread's summaries go here.

        Args:
            step: the step of summaries that are given none; None: as it is.

        Raises:
            RuntimeError: the writer is closed.
        """
        raise NotImplementedError

    def as_default(self, step: Any = None) -> Any:
        """The same inside a ``with`` block, at whose end the writer is flushed.

        Raises:
            RuntimeError: the writer is closed.
        """
        raise NotImplementedError

    def init(self) -> None:
        """Make the file; it is made with the writer.

        Raises:
            RuntimeError: the writer is closed.
        """
        raise NotImplementedError

    def flush(self) -> None:
        """Write what waits; in a function each time it runs. Nothing where the writer is closed."""
        raise NotImplementedError

    def close(self) -> None:
        """Write what waits and end the file."""
        raise NotImplementedError


class FileWriter(SummaryWriter):
    """The writer of one file of events."""

    def __init__(self, file: EventFile) -> None:
        self.file = file

    def set_as_default(self, step: Any = None) -> None:
        self.as_default(step).__enter__()

    def as_default(self, step: Any = None) -> Any:
        self.init()
        return _Default(self, step)

    def init(self) -> None:
        if context.recorder is None and self.file.is_closed:
            raise RuntimeError(f"{self!r} is already closed{at(user_origin())}")

    def flush(self) -> None:
        run(WRITE_SUMMARY, write=self.file.flush)

    def close(self) -> None:
        run(WRITE_SUMMARY, write=self.file.close)

    def __repr__(self) -> str:
        return f"<SummaryWriter of {self.file.path!r}>"


class _Default:
    """A block in which a writer is the default one, and there is a default step."""

    def __init__(self, writer: FileWriter, step: Any) -> None:
        self._writer, self._step = writer, step

    def __enter__(self) -> FileWriter:
        self._before = state.writer, state.step
        state.writer = self._writer
        if self._step is not None:
            state.step = self._step
        return self._writer

    def __exit__(self, *error: object) -> None:
        writer = state.writer
        state.writer, step = self._before
        if self._step is not None:
            state.step = step
        if writer is not None:
            writer.flush()  # which fails where the disk is full


class NoopWriter(SummaryWriter):
    """A writer that does nothing, and changes no default writer."""

    def set_as_default(self, step: Any = None) -> None:
        pass

    def as_default(self, step: Any = None) -> Any:
        return during(state, "writer", state.writer)

    def init(self) -> None:
        pass

    flush = close = init


def create_file_writer(
    logdir: Any, max_queue: int | None = None, flush_millis: int | None = None,
    filename_suffix: str | None = None, name: str | None = None,
    experimental_trackable: bool = False, experimental_mesh: Any = None,
) -> SummaryWriter:  # fmt: skip
    """A writer of a new file of events; in a function it is made while that is traced.

    Args:
        logdir: the folder for the file, which is made where it is not there.
        max_queue: how many summaries may wait until they are written (10).
        flush_millis: the milliseconds that they may wait for (120000).
        filename_suffix: the end of the file's name (".v2").
        name, experimental_trackable: accepted for TensorFlow programs.
        experimental_mesh: None; there are no meshes.

    Raises:
        ValueError: there is no `logdir`, or it is a tensor of the function that is being traced.
        FailedPreconditionError: the folder's name is that of a file.
        PermissionDeniedError: the file may not be made.
        ImportError: the package tensorboard is not installed.
    """
    if logdir is None:
        raise ValueError(f"create_file_writer: give the folder, logdir{at(user_origin())}")
    if experimental_mesh is not None:
        raise ValueError(f"create_file_writer: there are no meshes{at(user_origin())}")
    if is_symbolic(logdir):
        raise ValueError(
            f"create_file_writer: the writer is made while the function is traced, where {logdir!r}"
            f" has no value yet{at(user_origin())}"
        )
    if isinstance(logdir, Tensor):
        logdir = logdir.numpy()
    return FileWriter(
        EventFile(
            os.fsdecode(logdir),
            10 if max_queue is None else int(max_queue),
            120_000 if flush_millis is None else int(flush_millis),
            ".v2" if filename_suffix is None else filename_suffix,
        )
    )


def create_noop_writer() -> SummaryWriter:
    """A writer that does nothing, for programs that need one."""
    return NoopWriter()


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Write what waits in a writer, the default one if none is given.

    Raises:
        ValueError: something else than a writer.
    """
    writer = state.writer if writer is None else writer
    if writer is None:
        return
    if not isinstance(writer, SummaryWriter):
        raise ValueError(f"Invalid argument to flush(): {writer!r}{at(user_origin())}")
    writer.flush()


# -- step and condition ----------------------------------------------------------------------------


def get_step() -> Any:
    """The step of summaries that are given none, as it was set; None at first."""
    return state.step


def set_step(step: Any) -> None:
    """Set the step of this thread's summaries that are given none.

    Args:
        step: an integer, a tensor of one, or None. Functions keep the one that they are traced
            with, but read a variable when they run.
    """
    state.step = step


def chosen_step(step: Any) -> Tensor:
    """The step of a summary, an int64 scalar.

    Args:
        step: what the call was given; None: the one that was set.

    Raises:
        ValueError: there is none, or it is no scalar.
        TypeError: it is no integer.
    """
    step = state.step if step is None else step
    if step is None:
        raise ValueError(
            "No step set. Please specify one either through the `step` argument or through "
            f"td.summary.experimental.set_step(){at(user_origin())}"
        )
    tensor = convert_to_tensor(step, None if has_dtype(step) else dtypes.int64)
    if not tensor.dtype.is_integer:
        raise TypeError(f"the step of a summary is an integer, not {step!r}{at(user_origin())}")
    if tensor.shape.num_elements() not in (1, None):
        raise ValueError(
            "Argument `step` must be a scalar. "
            f"Received step with shape {tensor.shape}.{at(user_origin())}"
        )
    return cast(reshape(tensor, ()), dtypes.int64)


def record_if(condition: Any) -> during:
    """Inside the ``with`` block this thread writes summaries only where `condition` is true.

    Args:
        condition: a bool, a scalar tensor of bool, or a function of no arguments that gives one. A
            function is called by each summary; where a ``td.function`` writes it, while that is
            traced, so that a tensor it gives is computed whenever the function runs.
    """
    return during(state, "condition", condition)


def is_recording() -> bool | Tensor:
    """Whether summaries are written now; a tensor of the graph where only a run tells.

    Raises:
        TypeError: the condition is no bool.
    """
    if state.writer is None:
        return False
    condition = state.condition() if callable(state.condition) else state.condition
    if condition is None or isinstance(condition, bool):
        return condition is not False
    tensor = convert_to_tensor(condition)
    if tensor.dtype is not dtypes.bool:
        raise TypeError(
            f"record_if: the condition must be a bool, not {condition!r}{at(user_origin())}"
        )
    return tensor if is_symbolic(tensor) else bool(tensor)


def should_record_summaries() -> Tensor:
    """A scalar bool tensor: whether this thread has a default writer, and the condition of
    `record_if` is true.

    Raises:
        TypeError: the condition is no bool.
    """
    found = is_recording()
    return found if isinstance(found, Tensor) else constant(found)
