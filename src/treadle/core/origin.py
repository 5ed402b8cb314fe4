"""Where in the user's program an operation was called."""

from __future__ import annotations

import linecache
import os
import sys
import threading
from types import FrameType
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_EXAMPLES = os.path.join(_PACKAGE, "examples") + os.sep  # written as users write

# Generated file -> {generated line: (source file, source line, function)}; AutoGraph fills it.
LINE_MAPS: dict[str, dict[int, tuple[str, int, str]]] = {}


class Origin(NamedTuple):
    """A place in the user's source."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def source(self) -> str:
        """The text of the line, or an empty string where the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def describe(self) -> str:
        """``file:line, in function: source text`` for error messages."""
        text = self.source
        return f"{self.file}:{self.line}, in {self.function}" + (f": {text}" if text else "")


def frame_origin(frame: FrameType) -> Origin:
    """The place a frame stands at, mapped back from generated code."""
    code = frame.f_code
    lines = LINE_MAPS.get(code.co_filename)
    if lines is not None and frame.f_lineno in lines:
        return Origin(*lines[frame.f_lineno])
    return Origin(code.co_filename, frame.f_lineno, code.co_name)


def is_internal(filename: str) -> bool:
    """True for treadle's own files; generated code counts as the user's."""
    inside = filename.startswith(_PACKAGE) and not filename.startswith(_EXAMPLES)
    return inside and filename not in LINE_MAPS


class _Forced(threading.local):
    origin: Origin | None = None


_forced = _Forced()


class attributed_to:
    """Operations inside the block count as called at `origin`: copies and gradients of others.

    None changes nothing.
    """

    __slots__ = ("_before", "_origin")

    def __init__(self, origin: Origin | None) -> None:
        self._origin = origin

    def __enter__(self) -> None:
        self._before = _forced.origin
        if self._origin is not None:
            _forced.origin = self._origin

    def __exit__(self, *error: object) -> None:
        _forced.origin = self._before


def user_origin() -> Origin | None:
    """The innermost frame outside treadle, or None when there is none."""
    if _forced.origin is not None:
        return _forced.origin
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_internal(frame.f_code.co_filename):
            return frame_origin(frame)
        frame = frame.f_back
    return None


def at(origin: Origin | None) -> str:
    """A suffix for messages: a line that names the user's place, or nothing."""
    return f"\n  at {origin.describe()}" if origin is not None else ""
