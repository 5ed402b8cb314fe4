"""The text of functions typed into a shell, where `linecache` does not have it.

Python 3.11 and 3.12 keep a session's text only as readline's history, line by line; IPython's
``%time`` and ``%%time`` run code under a name of their own; the text of ``python -c`` is an
argument of the process. In all of them a statement is found by compiling text until that gives
the function's very code object.
"""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Iterator
from typing import Any

SHELL = "<stdin>"
COMMAND = "<string>"  # the file name of ``python -c``
_FUTURE_FLAGS = 0x1FE0000  # `from __future__` features, which a shell keeps for later statements
_MOST_LINES = 400  # of a statement
_MOST_CELLS = 400  # looked at
_CONTINUED = ("else", "elif", "except", "finally", "case", ")", "]", "}", "#", "@", "def", "class")


def find_text(code: types.CodeType) -> str | None:
    """The statement or cell that `code` was compiled from, if it was typed in this session."""
    if code.co_filename == SHELL and "readline" in sys.modules:
        return _typed_statement(code, sys.modules["readline"])
    if code.co_filename == COMMAND and "-c" in sys.orig_argv[:-1] and sys.argv[:1] == ["-c"]:
        text = sys.orig_argv[sys.orig_argv.index("-c") + 1]
        return text if any(c == code for c in codes_in(text, code)) else None
    shell = _ipython()
    return None if shell is None else _cell(code, shell)


def keep(text: str) -> str:
    """Give the text a file name of its own in `linecache`; returns the name."""
    number = 1
    while (name := f"<shell-{number}>") in linecache.cache:
        if "".join(linecache.getlines(name)) == text:
            return name
        number += 1
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return name


def codes_in(text: str, code: types.CodeType, mode: str = "exec") -> Iterator[types.CodeType]:
    """The code objects of the functions in `text`, compiled as `code` was; none if it does not
    compile."""
    flags = code.co_flags & _FUTURE_FLAGS
    try:
        compiled = compile(text, code.co_filename, mode, flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return
    todo = [compiled]
    while todo:
        inner = [c for c in todo.pop().co_consts if isinstance(c, types.CodeType)]
        yield from inner
        todo += inner


def _typed_statement(code: types.CodeType, readline: Any) -> str | None:
    count = readline.get_current_history_length()
    lines = [readline.get_history_item(i + 1) or "" for i in range(count)]
    for start in range(count - code.co_firstlineno, -1, -1):
        if _may_begin(lines[start + code.co_firstlineno - 1], code):
            found = _statement_from(lines, start, code)
            if found is not None:
                return found
    return None


def _may_begin(line: str, code: types.CodeType) -> bool:
    """Whether the function can begin on this line."""
    word = "lambda" if code.co_name == "<lambda>" else code.co_name
    return word in line or line.lstrip().startswith("@")


def _statement_from(lines: list[str], start: int, code: types.CodeType) -> str | None:
    """The statement that begins at `start`, if the function is in it."""
    for end in range(start + 1, min(len(lines), start + _MOST_LINES) + 1):
        text = "\n".join(lines[start:end]) + "\n"
        if code in codes_in(text, code, "single"):
            return text
        following = lines[end] if end < len(lines) else ""
        if not (following[:1].isspace() or following.startswith(_CONTINUED)):
            return None
    return None


def _ipython() -> Any:
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None else None


def _cell(code: types.CodeType, shell: Any) -> str | None:
    cells = shell.history_manager.input_hist_raw[-_MOST_CELLS:]
    for cell in reversed(cells):
        for text in (cell, cell.partition("\n")[2], cell.partition(" ")[2]):
            if code in codes_in(shell.transform_cell(text), code):
                return str(shell.transform_cell(text))
    return None
