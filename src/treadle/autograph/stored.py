"""Conversions on disk: a process that meets a known function does not import the converters.

A conversion depends on the text of the file, on the code object that stands for one function in it,
on some facts about the function's names (`facts`), and on the versions of what makes it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import linecache
import marshal
import os
import sys
import types
from typing import Any

from treadle.autograph.facts import Facts, hold
from treadle.autograph.sources import may_have_changed
from treadle.core.object_cache import default_cache, stores_programs
from treadle.core.sources import sources

Record = tuple[Any, ...]  # the fields of a template


def key_of(function: types.FunctionType, recursive: bool) -> str | None:
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
    words = [repr((*_versions(), name, place, recursive)), "".join(lines)]
    digest = hashlib.sha256("\n".join(words).encode("utf-8", "surrogatepass"))
    digest.update(code.co_code + code.co_linetable)
    return digest.hexdigest()[:40]


@functools.cache
def _versions() -> tuple[Any, ...]:
    spec = importlib.util.find_spec("gast")
    origin = "" if spec is None or spec.origin is None else spec.origin
    status = os.stat(origin) if os.path.exists(origin) else None
    written = None if status is None else (status.st_size, status.st_mtime_ns)
    return "conversion", sources(), sys.version, origin, written


def load(key: str, function: types.FunctionType) -> Record | None:
    """What is kept under a key, if the names of the function have the facts it was made for."""
    data = default_cache().load(key)
    if data is None:
        return None
    *record, asked = marshal.loads(data)
    if not hold(function, asked):
        return None
    return (*record, {path: Facts(*facts) for path, facts in asked.items()})


def keep(key: str, record: Record) -> None:
    """Keep the fields of a template, the last of which are the facts."""
    *fields, asked = record
    plain = {path: tuple(facts) for path, facts in asked.items()}
    default_cache().store(key, marshal.dumps((*fields, plain)))
