"""Profiles: `start`, `stop`, and what is noted in between."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any, NamedTuple

from treadle.core import errors, locks
from treadle.core.context import add_watcher, remove_watcher
from treadle.core.devices import Device
from treadle.core.origin import at, is_internal, user_origin
from treadle.core.spec import spec_text
from treadle.graph.ir import Graph
from treadle.profiler.chrome import Event, write_profile
from treadle.runtime.step_times import StepTime, step_times

_PROGRAMS, _OPERATIONS = 1, 2  # levels from which they are noted


class ProfilerOptions(NamedTuple):
    """What a profile notes.

    Attributes:
        host_tracer_level: 0: only what `Trace` names; 1: compiled programs as well; 2 and more:
            eager operations, and the kernels of programs.
        python_tracer_level: 1: calls of Python functions of the thread that begins the profile, but
            for those of libraries.
        device_tracer_level: accepted for TensorFlow programs: what runs on a GPU is noted as
            programs, without their kernels.
        delay_ms: the profile begins so many milliseconds after `start`.
    """

    host_tracer_level: int = 2
    python_tracer_level: int = 0
    device_tracer_level: int = 1
    delay_ms: int | None = None


class _Session:
    """A profile that is being made."""

    def __init__(self, logdir: str, options: ProfilerOptions) -> None:
        self.logdir, self.level = logdir, options.host_tracer_level
        self.python = bool(options.python_tracer_level)
        self.events: list[Event] = []
        self.names: dict[int, dict[str, None]] = {}  # of threads, by their numbers
        self.begins = time.perf_counter_ns() + 1_000_000 * (options.delay_ms or 0)
        self._calls: list[tuple[FrameType, int]] = []  # of Python functions at work

    def start(self) -> None:
        if self.level >= _OPERATIONS:
            step_times.begin()
        if self.level >= _PROGRAMS:
            add_watcher(self)
        if self.python:
            sys.setprofile(self._python)

    def end(self) -> None:
        """Note no more, and take what programs wrote down."""
        if self.python:
            sys.setprofile(None)
        remove_watcher(self)
        if self.level >= _OPERATIONS:
            steps, lost = step_times.end()
            self.events += map(_step_event, steps)
            if lost:
                _log.warning("the profile has no room for %d runs of kernels, the last ones", lost)
        self.events = [e for e in self.events if e.begin >= self.begins]

    def ran(self, name: str, device: Device, since: int, of: Any) -> None:
        if isinstance(of, Graph):
            texts = {"program": f"{len(of.nodes)} operations", "device": device.name}
        elif self.level < _OPERATIONS:
            return
        else:
            inputs, outputs = of
            texts = {"inputs": _shapes(inputs), "outputs": _shapes(outputs), "device": device.name}
        kind = "program" if isinstance(of, Graph) else "operation"
        self.add(kind, name, since, texts)

    def add(self, kind: str, name: str, since: int, texts: dict[str, str]) -> None:
        """Note what began at `since` and ends now."""
        now, thread = time.perf_counter_ns(), threading.get_ident()
        self.names.setdefault(thread, {})[threading.current_thread().name] = None
        self.events.append(Event(kind, name, thread, since, now, texts))

    def _python(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if is_internal(code.co_filename) or not os.path.isfile(code.co_filename):
            return
        if event == "call":
            self._calls.append((frame, time.perf_counter_ns()))
        elif event == "return" and self._calls and self._calls[-1][0] is frame:
            _, since = self._calls.pop()
            place = f"{code.co_filename}:{code.co_firstlineno}"
            self.add("python", code.co_qualname, since, {"line": place})


def _shapes(values: Sequence[Any]) -> str:
    return ", ".join(spec_text(x.spec) for x in values)


def _step_event(step: StepTime) -> Event:
    texts = {"program": step.program, **step.step.texts}
    return Event("kernel", step.step.name, step.thread, step.begin, step.end, texts)


class _Current:
    session: _Session | None = None


_lock = locks.lock()
_log = logging.getLogger("treadle")


def start(logdir: Any, options: ProfilerOptions | None = None) -> None:
    """Begin a profile of all threads.

    Functions run programs that look at the clock around each kernel, which are compiled when they
    are first called in a profile. Functions that nobody profiles are as fast as before.

    Args:
        logdir: the folder for TensorBoard; `stop` writes the profile there.
        options: what is noted.

    Raises:
        AlreadyExistsError: a profile is being made.
    """
    with _lock:
        if _Current.session is not None:
            raise errors.AlreadyExistsError(
                None, None, f"Another profiler is running.{at(user_origin())}"
            )
        _Current.session = _Session(os.fsdecode(logdir), options or ProfilerOptions())
        _Current.session.start()


def stop(save: bool = True) -> None:
    """End the profile.

    Args:
        save: write it: ``plugins/profile/TIME/HOST.trace.json.gz`` in the folder, where TensorBoard
            looks for profiles, and beside it ``HOST.trace.json``, which chrome://tracing and
            https://ui.perfetto.dev open.

    Raises:
        UnavailableError: there is none.
        PermissionDeniedError, ResourceExhaustedError: the files cannot be written.
    """
    with _lock:
        session, _Current.session = _Current.session, None
    if session is None:
        raise errors.UnavailableError(
            None, None,
            "Cannot export profiling results. No profiler is running."
            f"{at(user_origin())}",
        )  # fmt: skip
    session.end()
    if save:
        # A thread may have the number of one that has ended.
        names = {thread: ", ".join(found) for thread, found in session.names.items()}
        write_profile(session.logdir, session.events, names)


class Profile:
    """A profile of what runs in the ``with`` block; see `start` and `stop`."""

    def __init__(self, logdir: Any, options: ProfilerOptions | None = None) -> None:
        self._logdir, self._options = logdir, options

    def __enter__(self) -> None:
        start(self._logdir, self._options)

    def __exit__(self, *error: object) -> None:
        stop()


class Trace:
    """Names what runs in the ``with`` block in the profile that is being made, if there is one.

    Args:
        name: what the profile shows.
        kwargs: what it shows beside it, as ``step_num=3``.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self._name, self._texts = name, kwargs
        self._since = time.perf_counter_ns()

    def __enter__(self) -> Trace:
        return self

    def set_metadata(self, **kwargs: Any) -> None:
        """Show more beside the name."""
        self._texts |= kwargs

    def __exit__(self, *error: object) -> None:
        session = _Current.session
        if session is not None:
            texts = {key: str(value) for key, value in self._texts.items()}
            session.add("trace", self._name, self._since, texts)
