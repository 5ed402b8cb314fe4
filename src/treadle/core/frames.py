"""The user's part of a call stack: no frames of treadle, generated code shown as its source.

AutoGraph splits a function into helpers (``body``, ``then``, lambdas) that its operators call;
here they count as the one function that the user wrote.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from types import CodeType, FrameType, TracebackType
from typing import Any

from treadle.core.origin import (
    LINE_MAPS,
    Origin,
    Stack,
    forced_origin,
    is_internal,
    place_of,
    user_origin,
)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OPERATORS = os.path.join(_PACKAGE, "autograph", "operators") + os.sep
# The operators that call helpers of generated code at once, in the caller's stead.
_CONTROL_FLOW = {
    _OPERATORS + f"{name}.py" for name in ("conditionals", "loops", "logical", "assertions")
}
_TRACE = os.path.join(_PACKAGE, "tracing", "trace.py")
_trace_code: list[CodeType | None] = [None]  # that of the function that traces, once it was met

Entry = tuple[CodeType, int]  # the line
_last: list[tuple[Any, ...]] = [()]  # frames of the last origin, shared by the ops of a function


def recorded_origin() -> Origin | None:
    """The place that is now running with the calls that led to it, back to where tracing began.

    Tracing calls this for every op: the frames are only noted here, `callers` makes sense of them.
    """
    if forced_origin() is not None:
        return forced_origin()
    found: list[Any] = []
    note = found.append
    users: FrameType | None = None
    trace = _trace_code[0]
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code is trace:
            break
        if users is None and not is_internal(code.co_filename):
            users = frame
        if trace is None and code.co_name == "trace" and code.co_filename == _TRACE:
            _trace_code[0] = code
            break
        note(code)
        note(frame.f_lasti)
        frame = frame.f_back
    origin = user_origin() if users is None else place_of(users.f_code, users.f_lineno)
    if origin is None or frame is None:  # without a frame the graph is built by hand
        return origin
    frames, last = tuple(found), _last[0]  # once: another thread that traces replaces it, too
    if frames != last:
        _last[0] = last = frames
    return Origin(*origin[:3], Stack(last))


def forget_last() -> None:
    """A trace has ended: its code must be able to go."""
    _last[0] = ()


def callers(origin: Origin) -> list[Origin]:
    """The places of the calls that led to `origin`, outermost first."""
    if origin.stack is None:
        return []
    frames, caller = origin.stack
    entries = [
        (code, _line(code, instruction))
        for code, instruction in zip(frames[-2::-2], frames[::-2], strict=True)
    ]
    before = [] if caller is None else [*callers(caller), caller]
    return before + [place for _, place in visible(entries)][:-1]


def called_from(caller: Origin | None, origin: Origin | None) -> Origin | None:
    """`origin`, which was recorded in a trace that is now called at `caller`."""
    if caller is None or origin is None:
        return origin
    frames, outer = origin.stack or ((), None)
    return origin._replace(stack=Stack(frames, called_from(caller, outer) or caller))


def _line(code: CodeType, instruction: int) -> int:
    ranges = (line for start, end, line in code.co_lines() if start <= instruction < end)
    return next(ranges, None) or code.co_firstlineno


def visible(entries: Iterable[Entry]) -> list[tuple[list[int], Origin]]:
    """The user's places among `entries` (code, line), outermost first.

    Each comes with the numbers of its entries: several where generated helpers stand for one
    function.
    """
    shown: list[tuple[list[int], Origin]] = []
    last = ""  # the file of the last shown entry
    first_hidden = ""  # the file of the first treadle frame since then
    for number, (code, line) in enumerate(entries):
        file = code.co_filename
        if is_internal(file):
            first_hidden = first_hidden or file
            continue
        place, numbers = place_of(code, line), [number]
        if file == last and file in LINE_MAPS and first_hidden in _CONTROL_FLOW:
            outer, before = shown.pop()
            place, numbers = place._replace(function=before.function), [*outer, number]
        elif code.co_name.startswith("<") and file in LINE_MAPS:  # a lambda or comprehension
            place = place._replace(function=code.co_name)
        shown.append((numbers, place))
        last, first_hidden = file, ""
    return shown


def filtered(traceback: TracebackType | None, then: Origin | None = None) -> TracebackType | None:
    """`traceback` as plain Python would show it.

    Args:
        then: where the error came up, if that code ran inside a compiled program: the user's
            frames there are added.
    """
    links: list[TracebackType] = []
    while traceback is not None:
        links.append(traceback)
        traceback = traceback.tb_next
    shown: list[tuple[FrameType, int, int]] = []
    for numbers, place in visible([(x.tb_frame.f_code, x.tb_lineno) for x in links]):
        link = links[numbers[0]]
        if link.tb_frame.f_code.co_filename in LINE_MAPS:
            stand_in = _stand_in(place, [links[n].tb_frame for n in numbers])
            shown.append((stand_in, 0, place.line))
        else:
            shown.append((link.tb_frame, link.tb_lasti, link.tb_lineno))
    if then is not None:
        shown += [(_stand_in(p, []), 0, p.line) for p in (*callers(then), then)]
    result: TracebackType | None = None
    for entry in reversed(shown):
        result = TracebackType(result, *entry)
    return result


def _stand_in(place: Origin, originals: list[FrameType]) -> FrameType:
    """A frame of the user's function at `place`, for tracebacks and debuggers to show.

    It has the variables of `originals`, the frames that ran.
    """
    made = compile("__treadle_frame__ = __treadle_getframe__()", place.file, "exec")
    code = made.replace(
        co_name=place.function,
        co_qualname=place.function,
        co_firstlineno=place.line,
        co_linetable=_no_columns(len(made.co_code) // 2),
    )
    space: dict[str, Any] = originals[0].f_globals if originals else {}
    scope = {k: v for f in originals for k, v in f.f_locals.items() if k != "ag__"}
    scope["__treadle_getframe__"] = sys._getframe
    exec(code, space, scope)
    del scope["__treadle_getframe__"]
    return scope.pop("__treadle_frame__")  # type: ignore[no-any-return]


def _no_columns(units: int) -> bytes:
    """A line table that says "the first line, columns unknown" for so many code units."""
    table = bytearray()
    while units > 0:
        count = min(units, 8)
        table += bytes([0x80 | 13 << 3 | count - 1, 0])  # kind 13, line difference 0
        units -= count
    return bytes(table)
