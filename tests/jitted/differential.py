"""Runs programs with NumPy and jitted, and compares results and what the arguments hold."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from tests.jitted.programs import program


def compiled_text(text: str, name: str) -> Any:
    """The function ``f`` of a program's text, whose source can be found."""
    filename = f"<random program {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    scope: dict[str, Any] = {"__name__": "random_program"}
    exec(compile(text, filename, "exec"), scope)
    return scope["f"]


def copies(arguments: list[Any]) -> list[Any]:
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]


def difference(
    seed: int, calls: int = 2, placed: Callable[[list[Any]], list[Any]] = copies
) -> str | None:
    """What differs between NumPy and the jitted program; None where nothing does.

    Programs that NumPy itself refuses must be refused jitted too.

    Args:
        placed: gives the arguments of the jitted program, where a test wants them to lie.
    """
    text, arguments = program(seed)
    function = compiled_text(text, str(seed))
    jitted = td.jit(function)
    branches = "if " in text or "while " in text
    narrow = "float32" in text or any(getattr(a, "dtype", None) == np.float32 for a in arguments)
    for _ in range(calls):
        expected, wanted = _run(function, copies(arguments))
        got, held = _run(jitted, placed(arguments))
        if isinstance(expected, Exception) or isinstance(got, Exception):
            if isinstance(expected, Exception) and isinstance(got, Exception):
                return None
            return f"NumPy: {_brief(expected)}\njitted: {_brief(got)}\n{text}"
        for place, a, b in [
            *(("argument", x, y) for x, y in zip(wanted, held, strict=True)),
            *(("result", x, y) for x, y in zip(expected, got, strict=True)),
        ]:
            problem = _differ(a, b, branches, narrow)
            if problem:
                return f"{place}: {problem}\n{text}"
    return None


def _run(function: Any, own: list[Any]) -> tuple[Any, list[Any]]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*own), own
        except Exception as error:
            return error, own


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _brief(value: Any) -> str:
    return f"{type(value).__name__}: {value}" if isinstance(value, Exception) else "a result"


def _differ(a: Any, b: Any, branches: bool, narrow: bool) -> str | None:
    x, y = np.asarray(a), np.asarray(b)
    if branches and x.dtype != y.dtype and np.can_cast(x.dtype, y.dtype):
        # A variable has one type on all paths: the one that holds the values of each.
        y = y.astype(x.dtype)
        a, b = x, y
    elif branches and (_is_number(a) or _is_number(b)):
        if _is_number(a) and np.result_type(a, y.dtype) == y.dtype:
            x = x.astype(y.dtype)  # a Python number on this path, a NumPy scalar on another
        a, b = x, y
    if type(a) is not type(b):
        return f"{type(a).__name__} {a!r} and {type(b).__name__} {b!r}"
    if x.dtype != y.dtype or x.shape != y.shape:
        return f"{x.dtype}{x.shape} and {y.dtype}{y.shape}"
    if x.dtype.kind not in "fc":
        return None if np.array_equal(x, y) else f"{x} and {y}"
    narrow = narrow or x.dtype.itemsize == 4
    scale = float(np.max(np.abs(np.where(np.isfinite(x), x, 0)), initial=1.0))
    near = np.allclose(x, y, 2e-4 if narrow else 1e-7, scale * (1e-5 if narrow else 1e-9), True)
    return None if near else f"{x} and {y}"
