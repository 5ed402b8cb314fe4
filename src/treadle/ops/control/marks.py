"""Marks for values of the run in texts that are written while a function is traced.

``raise ValueError(f"x is {x:.2f}")`` and ``print(f"x is {x:.2f}")`` write a text before the value
of `x` is known. The text has a mark there (``<value 3:.2f>``), for which the run puts the value.
"""

from __future__ import annotations

import ast
import linecache
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import local
from types import FrameType
from typing import Any

from treadle.core.interrupts import during, is_mode

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_MARK = r"<value (\d+)(?::([^<>]*))?>"
_RAISE, _PRINT = "raise", "print"


class RaisesAlways(TypeError):
    """A text of an exception needs a value of the run, and nothing decides whether it is raised."""


class _Shown(local):
    """The values that texts have marks for.

    Attributes:
        raised: of the branch that this thread traces, for texts of exceptions.
        printed: of the function that it traces, for texts that are printed.
    """

    raised: list[Any] | None = None
    printed: list[Any] | None = None


_shown = is_mode(_Shown())


def marks() -> during:
    """While a branch is traced that may raise: gives the list of the values that got marks."""
    found: list[Any] = []
    return during(_shown, "raised", found, gives=found)


def printed_marks() -> during:
    """While a function is traced whose `print` the run does: gives the list of the values that got
    marks."""
    found: list[Any] = []
    return during(_shown, "printed", found, gives=found)


def values_printed() -> list[Any]:
    """The values that texts have marks for which are printed."""
    return _shown.printed or []


def mark(value: Any, spec: str = "") -> str | None:
    """What stands for a value in a text; None outside of ``raise`` and ``print``."""
    if _shown.raised is None and _shown.printed is None:
        return None  # of `td.function`
    kind = _kind_of_statement(sys._getframe(1))
    values = {_RAISE: _shown.raised, _PRINT: _shown.printed}.get(kind or "")
    if values is None:
        if kind == _RAISE and _shown.printed is not None:
            raise RaisesAlways("a function raises an exception whatever its arguments are")
        return None
    values.append(value)
    return f"<value {len(values) - 1}{':' if spec else ''}{spec}>"


def with_values(
    text: str, shown: Sequence[Any], made: Callable[[Any, str], Any]
) -> list[Any] | None:
    """The parts of a text: `made(value, format)` in the place of each mark. None where the text has
    none."""
    parts: list[Any] = []
    end = 0
    for found in re.finditer(_MARK, text):
        parts += [text[end : found.start()], made(shown[int(found[1])], found[2] or "")]
        end = found.end()
    return [*parts, text[end:]] if parts else None


def _kind_of_statement(frame: FrameType | None) -> str | None:
    """Whether the user's code is in a ``raise`` statement (or ``assert``) or a call of `print`."""
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    if frame is None:
        return None
    lines = linecache.getlines(frame.f_code.co_filename)
    return _kinds_of_lines("".join(lines)).get(frame.f_lineno)


@lru_cache(maxsize=64)
def _kinds_of_lines(text: str) -> dict[int, str]:
    """For the lines of raising and printing statements of a program, what they do.

    Generated text repeats some of its lines behind its end, for parts of statements that have lines
    of their own in the user's file.
    """
    lines, again = text.splitlines(keepends=True), []
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        end = (error.lineno or 1) - 1
        lines, again = lines[:end], lines[end:]
        try:
            tree = ast.parse("".join(lines))
        except SyntaxError:
            return {}
    found: dict[int, str] = {}
    texts = {
        argument.id for node in ast.walk(tree) if isinstance(node, ast.Raise)
        for argument in getattr(node.exc, "args", ()) if isinstance(argument, ast.Name)
    }  # fmt: skip
    for node in ast.walk(tree):
        kind = _kind(node)
        if isinstance(node, ast.Assign) and _writes_text(node.value):
            # ``text = f"..."`` for a ``raise ValueError(text)`` behind it
            kind = _RAISE if {getattr(t, "id", None) for t in node.targets} & texts else kind
        if kind is not None:
            last = getattr(node, "end_lineno", None) or node.lineno  # type: ignore[attr-defined]
            found.update(dict.fromkeys(range(node.lineno, last + 1), kind))  # type: ignore[attr-defined]
    for number, line in enumerate(again, len(lines) + 1):
        shown = lines.index(line) + 1 if line in lines else 0
        found |= {number: found[shown]} if shown in found else {}
    return found


def _writes_text(node: Any) -> bool:
    """Whether an expression is an f-string, also a jitted function's, or ``a % b``."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "text"
    return isinstance(node, ast.JoinedStr | ast.BinOp)


def _kind(node: Any) -> str | None:
    if isinstance(node, ast.Raise | ast.Assert):
        return _RAISE
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Name) and node.func.id == "print":
        return _PRINT
    is_assert = isinstance(node.func, ast.Attribute) and node.func.attr == "assert_stmt"
    return _RAISE if is_assert else None
