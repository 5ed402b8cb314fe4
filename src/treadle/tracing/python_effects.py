"""Side effects of a function in plain Python, which happen once a trace."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from treadle.autograph.api import plain_function
from treadle.autograph.errors import AutoGraphError

# Methods that change their object, on objects that are not made in the function.
_CHANGING = frozenset({
    "add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove",
    "setdefault", "update", "write",
})  # fmt: skip
_BUILTINS = frozenset({"print", "input", "open", "setattr", "delattr", "exec", "next"})


class PythonEffect(NamedTuple):
    """One place: its source text and line."""

    text: str
    line: int


def python_effects(fn: Any) -> list[PythonEffect]:
    """The places in a function's own source that have an effect in Python: prints, changes of
    objects from outside, of globals and of attributes. Functions that it calls are not looked at.

    Empty where there is no source.
    """
    from treadle.autograph.parsing import find

    function = plain_function(fn)
    if function is None:
        return []
    try:
        node = find(function).node
    except AutoGraphError:
        return []
    found = sorted(set(_places(node, function)))
    return [PythonEffect(text, line) for line, text in found]


def _places(node: Any, function: types.FunctionType) -> Iterator[tuple[int, str]]:
    local = _local_names(node)
    outside = {n for s in ast.walk(node) if isinstance(s, ast.Global | ast.Nonlocal)
               for n in s.names}  # fmt: skip
    parts: Iterator[Any] = ast.walk(node)
    for part in parts:
        if _is_call(part, local, function) or _stores(part, outside):
            yield part.lineno, ast.unparse(part)


def _local_names(node: Any) -> set[str]:
    """Names assigned in the function or in one inside it."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)
            and isinstance(n.ctx, ast.Store)}  # fmt: skip


def _is_call(part: Any, local: set[str], function: types.FunctionType) -> bool:
    """A call of ``print`` and the like, or of a method that changes an outer object."""
    if not isinstance(part, ast.Call):
        return False
    target = part.func
    if isinstance(target, ast.Name):
        name = target.id
        return name in _BUILTINS and name not in local and name not in function.__globals__
    if not isinstance(target, ast.Attribute) or target.attr not in _CHANGING:
        return False
    owner: ast.expr = target.value
    if isinstance(owner, ast.Name) and isinstance(
        function.__globals__.get(owner.id), types.ModuleType
    ):
        return False  # td.add(...)
    while isinstance(owner, ast.Attribute | ast.Subscript):
        owner = owner.value
    return isinstance(owner, ast.Name) and owner.id not in local


def _stores(part: Any, outside: set[str]) -> bool:
    """An assignment to a global or nonlocal name or to an attribute."""
    if isinstance(part, ast.Assign):
        targets = part.targets
    elif isinstance(part, ast.AugAssign | ast.AnnAssign):
        targets = [part.target]
    else:
        return False
    names = [n for t in targets for n in ast.walk(t)]
    return any(
        (isinstance(n, ast.Name) and n.id in outside)
        or (isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
        for n in names
    )
