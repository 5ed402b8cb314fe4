"""Profiles as files that TensorBoard, chrome://tracing and Perfetto read."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from treadle.core.file_errors import file_error


class Event(NamedTuple):
    """Something that ran.

    Attributes:
        kind: "trace", "python", "program", "operation" or "kernel".
        thread: the number of the thread (``threading.get_ident``).
        begin, end: in nanoseconds of ``time.perf_counter_ns``.
        texts: what is known besides, by what it is called.
    """

    kind: str
    name: str
    thread: int
    begin: int
    end: int
    texts: Mapping[str, str]


def write_profile(logdir: str, events: Sequence[Event], names: Mapping[int, str]) -> None:
    """Write a profile into the folder of TensorBoard.

    Args:
        names: of threads, as far as they are known.

    Raises:
        PermissionDeniedError, ResourceExhaustedError: the files cannot be written; none of them is
            left, for TensorBoard would list what is cut.
    """
    folder = os.path.join(logdir, "plugins", "profile", time.strftime("%Y_%m_%d_%H_%M_%S"))
    path = os.path.join(folder, f"{socket.gethostname()}.trace.json")
    text = json.dumps(trace(events, names)).encode()
    contents = {path: text, f"{path}.gz": gzip.compress(text)}
    try:
        os.makedirs(folder, exist_ok=True)
        for name, content in contents.items():
            Path(name).write_bytes(content)
    except OSError as error:
        with contextlib.suppress(OSError):
            for name in contents:
                Path(name).unlink(missing_ok=True)
            os.rmdir(folder)
        raise file_error(error, path) from None


def trace(events: Sequence[Event], names: Mapping[int, str]) -> dict[str, Any]:
    """The events in Chrome's format; times are microseconds from the first one."""
    first = min((e.begin for e in events), default=0)
    threads = {ident: number for number, ident in enumerate({e.thread: None for e in events}, 1)}
    process = os.getpid()
    found: list[dict[str, Any]] = [_name("process_name", process, 0, "treadle")]
    for ident, number in threads.items():
        found.append(_name("thread_name", process, number, names.get(ident, f"thread {number}")))
    for event in sorted(events, key=lambda e: (e.begin, -e.end)):
        found.append(
            {
                "ph": "X", "pid": process, "tid": threads[event.thread],
                "name": event.name, "cat": event.kind,
                "ts": (event.begin - first) / 1000, "dur": (event.end - event.begin) / 1000,
                "args": dict(event.texts),
            }
        )  # fmt: skip
    return {"displayTimeUnit": "ns", "traceEvents": found}


def _name(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": thread, "name": what, "args": {"name": name}}
