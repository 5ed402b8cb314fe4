"""The text that a code object was compiled from, also where files have changed since."""

from __future__ import annotations

import dis
import linecache
import os
import types
from collections import OrderedDict
from typing import Any

from treadle.autograph import shell_history
from treadle.autograph.errors import SourceNotFoundError
from treadle.core.origin import STARTED

_MOST_TEXTS = 32
# The code objects of texts by (file name, text), the oldest first.
_known: OrderedDict[tuple[str, str], list[types.CodeType]] = OrderedDict()


def text_of(function: types.FunctionType) -> tuple[str, list[str]]:
    """The name and the lines of the text that has a function's source.

    Raises:
        SourceNotFoundError: nothing knows the text.
    """
    code = function.__code__
    name = code.co_filename
    linecache.checkcache(name)
    lines = linecache.getlines(name, function.__globals__)
    if lines and not (name.startswith("<") and as_in_text(code, "".join(lines)) is None):
        return name, lines
    typed = shell_history.find_text(code)
    if typed is not None:
        name = shell_history.keep(typed)
        return name, linecache.getlines(name)
    raise SourceNotFoundError(
        f"AutoGraph needs the source code of {describe(code)} and there is none: it was made by "
        "exec, in a shell that keeps no history, or its file is gone. Put the function into a "
        "file, or keep its text with linecache, or mark it with "
        "@td.autograph.experimental.do_not_convert if it has no tensor-dependent control flow."
    )


def describe(code: types.CodeType) -> str:
    return f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"


def may_have_changed(filename: str) -> bool:
    """Whether a file was written after this process began to use treadle."""
    try:
        return os.stat(filename).st_mtime >= STARTED
    except OSError:
        return False


def as_in_text(code: types.CodeType, text: str) -> types.CodeType | None:
    """The code object in `text` that equals `code`, perhaps on other lines."""
    key = code.co_filename, text
    codes = _known.get(key)
    if codes is None:
        codes = _known[key] = list(shell_history.codes_in(text, code))
        if len(_known) > _MOST_TEXTS:
            _known.popitem(last=False)
    alike = [c for c in codes if c.co_name == code.co_name]
    alike.sort(key=lambda c: abs(c.co_firstlineno - code.co_firstlineno))
    wanted = _sketch(code) if alike else None
    return next((c for c in alike if c == code or _sketch(c) == wanted), None)


# Instructions that differ where `code` was compiled without the imports above it in the text.
_CALLING = frozenset({"LOAD_METHOD", "LOAD_ATTR", "PUSH_NULL", "PRECALL", "CALL", "CACHE"})


def _sketch(code: types.CodeType) -> tuple[Any, ...]:
    """The instructions of the code, without line numbers."""
    steps = [
        (i.opname, None if i.opcode in dis.hasjrel or i.opcode in dis.hasjabs else i.argval)
        for i in dis.get_instructions(code)
        if i.opname not in _CALLING
    ]
    steps = [(op, None if isinstance(v, types.CodeType) else v) for op, v in steps]
    inner = [_sketch(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return (names, repr(steps), inner)
