"""Conversions on disk: a process that meets a known function does not import the converters.

A conversion depends on the text of the file, on the code object that stands for one function in it,
on some facts about the function's names (`facts`), and on the versions of treadle and Python.
"""

from __future__ import annotations

import functools
import importlib.util
import linecache
import os
import sys
import types
from typing import Any

from treadle.autograph.facts import Facts, hold
from treadle.autograph.generated import code_of, parsed
from treadle.autograph.sources import may_have_changed
from treadle.autograph.template import Template
from treadle.core.digests import Digest
from treadle.core.object_cache import default_cache, stores_programs
from treadle.core.plain_data import from_bytes, to_bytes
from treadle.core.sources import sources

KIND = "conversion"  # of objects on disk


def key_of(
    function: types.FunctionType, recursive: bool, optional: bool, stacked: bool = False
) -> str | None:
    """Names the conversion of a function; None for functions that are not in a file as it was when
    this process began, and where nothing is kept."""
    code = function.__code__
    name = code.co_filename
    if name.startswith("<") or not stores_programs() or may_have_changed(name):
        return None
    linecache.checkcache(name)
    lines = linecache.getlines(name, function.__globals__)
    if not lines:
        return None
    place = code.co_qualname, code.co_firstlineno, code.co_flags, code.co_freevars
    words = [repr((*_versions(), name, place, recursive, optional, stacked)), "".join(lines)]
    found = Digest("\n".join(words))
    found.update(code.co_code + code.co_linetable)
    return found.text


@functools.cache
def _versions() -> tuple[Any, ...]:
    spec = importlib.util.find_spec("gast")
    origin = "" if spec is None or spec.origin is None else spec.origin
    status = os.stat(origin) if os.path.exists(origin) else None
    written = None if status is None else (status.st_size, status.st_mtime_ns)
    return "conversion", sources("autograph"), sys.version, origin, written


def load(key: str, function: types.FunctionType, filename: str) -> Template | None:
    """The template under a key, if the names of the function have the facts it was made for.

    Args:
        filename: of the generated code.
    """
    data = default_cache().load(KIND, key)
    if data is None:
        return None
    try:
        return _record(from_bytes(data), function, filename)
    except (TypeError, ValueError, SyntaxError, MemoryError, RecursionError):
        return None  # damaged


def _record(plain: Any, function: types.FunctionType, filename: str) -> Template | None:
    text, source, extra, (numbers, names), converted, asked, moved = plain
    facts = {path: Facts(*map(bool, found)) for path, found in dict(asked).items()}
    if not all(type(word) is str for word in (text, source, *extra, *names, *facts)):
        raise TypeError("names are strings")
    if not all(type(line) is int for line in numbers):
        raise TypeError("lines are ints")
    if not all(type(place) is int and 0 < line <= len(numbers) for place, line in moved):
        raise ValueError("expressions on lines that do not exist")
    if not hold(function, facts):
        return None
    lines = [*_lines(text), *extra]
    origins = list(zip(numbers, names, strict=True))
    if not converted:
        return Template(text, source, lines, origins, None, facts, moved)
    tree = parsed(text, moved, filename)
    code = code_of(tree, filename, function.__code__)
    return Template(text, source, lines, origins, code, facts, moved)


def keep(key: str, template: Template) -> None:
    """Keep the fields of a template. Its code is compiled again when it is loaded: that takes less
    time than to find out from which text a code object was compiled."""
    text, source, lines, origins, code, asked, moved = template
    extra = lines[len(_lines(text)) :]
    columns = [line for line, _ in origins], [name for _, name in origins]
    facts = {path: tuple(found) for path, found in asked.items()}
    plain = (text, source, extra, columns, code is not None, facts, moved)
    default_cache().store(KIND, key, to_bytes(plain))


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")[:-1]]
