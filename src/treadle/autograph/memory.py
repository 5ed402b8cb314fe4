"""Tables about code and functions, which keep none of them alive."""

from __future__ import annotations

import functools
import linecache
import types
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from treadle.core.caches import clears
from treadle.core.living import Living
from treadle.core.origin import LINE_MAPS

_R = TypeVar("_R")
_TWIN = "__treadle_twin__"
_with_twins: Living[types.FunctionType] = Living()
_memories: list[weakref.WeakKeyDictionary[types.CodeType, Any]] = []


def by_code() -> weakref.WeakKeyDictionary[types.CodeType, Any]:
    """A table of code objects that keeps none of them alive; `forget` empties it."""
    made: weakref.WeakKeyDictionary[types.CodeType, Any] = weakref.WeakKeyDictionary()
    _memories.append(made)
    return made


def per_code(fn: Callable[[types.CodeType], _R]) -> Callable[[types.CodeType], _R]:
    """`fn` called once per code object that is alive."""
    known: weakref.WeakKeyDictionary[types.CodeType, _R] = by_code()

    @functools.wraps(fn)
    def remembered(code: types.CodeType) -> _R:
        found = known.get(code, _memories)
        if found is _memories:
            found = known[code] = fn(code)
        return found  # type: ignore[return-value]

    return remembered


def twin_of(function: types.FunctionType) -> Any:
    """The converted form noted for a function and the code it was made from, or None.

    Kept on the function itself: a twin shares its closure cells, in which it may find itself, and
    a table from functions to twins would therefore keep such functions for ever.
    """
    known = function.__dict__.get(_TWIN)
    return None if known is None or known[0] is not function.__code__ else known


def note_twin(function: types.FunctionType, made: types.FunctionType | None) -> None:
    """Remember a function's converted form; None where there is nothing to convert."""
    function.__dict__[_TWIN] = (function.__code__, made)
    _with_twins.add(function)


def forget_with(code: types.CodeType, filename: str) -> None:
    """Let the text and the line map of a generated file go with its code."""
    weakref.finalize(code, _forget_file, filename).atexit = False


def _forget_file(filename: str) -> None:
    linecache.cache.pop(filename, None)
    LINE_MAPS.pop(filename, None)


@clears
def forget() -> None:
    """Forget all conversions; functions are converted again when they are traced again."""
    for function in _with_twins:
        function.__dict__.pop(_TWIN, None)
    _with_twins.clear()
    for known in _memories:
        known.clear()
