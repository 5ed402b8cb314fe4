"""Decides which statements stay Python's own.

- A condition or iterable that evidently is Python's is left alone, unless a jump inside depends on
  a condition that may be a tensor.
- A statement that cannot be made functional stays Python's and has its condition guarded: it works
  for Python values, and a tensor gives an error with the reason (`guard`).
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import gast

from treadle.autograph.analysis.activity import LOOPS, activity, free_names, writes
from treadle.autograph.analysis.evident import (
    is_python_iterable,
    is_python_test,
    may_be_rolled,
)
from treadle.autograph.analysis.jumps import BRANCHING, converted_jumps, jumps, statements
from treadle.autograph.analysis.liveness import liveness
from treadle.autograph.analysis.walking import walk

_FRAME_FUNCTIONS = {"locals", "vars", "eval", "exec", "dir"}


def decide_python(body: list[Any], declared: set[str], in_cells: Set[str]) -> None:
    """Set `in_python` and `guard` on every if, while and for of a function body.

    Args:
        declared: the names in its ``global`` and ``nonlocal`` statements.
        in_cells: its own names that bodies assign in the same way (`shared_variables`).
    """
    obstacles = Obstacles(body, declared, in_cells)
    for node in statements(body):
        if isinstance(node, BRANCHING):
            node.in_python, node.guard = False, obstacles.of(node)
    _force(body)
    for node in reversed(list(statements(body))):
        if isinstance(node, gast.If):
            node.in_python = bool(node.guard) or is_python_test(node.test)
        elif isinstance(node, LOOPS):
            node.in_python = bool(node.guard) or _is_python_loop(node)


def _is_python_loop(node: Any) -> bool:
    if isinstance(node, gast.While):
        python = is_python_test(node.test)
    else:
        python = is_python_iterable(node.iter) and not may_be_rolled(node.iter)
    return python and not converted_jumps(node.body)


def _force(body: list[Any]) -> None:
    """Statements that jump out of a guarded loop must be Python's, too."""
    for node in statements(body):
        if isinstance(node, LOOPS) and node.guard:
            for inner in statements(node.body):
                if isinstance(inner, BRANCHING) and jumps([inner]) and not inner.guard:
                    inner.guard = node.guard


def _repeated(function: Any, loops: list[Any]) -> bool:
    """Whether a function that is defined further down may exist already, from an iteration."""
    return any(_is_inside(function, loop) for loop in loops)


def _shared_names(body: list[Any]) -> dict[str, list[Any]]:
    """Names that functions kept in this scope share with it, and the functions."""
    shared: dict[str, list[Any]] = {}
    for node in statements(body):
        for function in kept_functions(node):
            for name in free_names(function):
                shared.setdefault(name, []).append(function)
    return shared


def kept_functions(node: Any) -> list[Any]:
    """Functions that outlive the statement: definitions and stored lambdas."""
    if isinstance(node, gast.FunctionDef | gast.AsyncFunctionDef):
        return [node]
    if isinstance(node, gast.Assign | gast.Return | gast.AnnAssign | gast.AugAssign):
        value = node.value
    elif isinstance(node, gast.Expr) and _is_storing_call(node.value):
        return [n for a in node.value.args for n in walk(a) if isinstance(n, gast.Lambda)]
    else:
        return []
    return [n for n in _stored(value) if isinstance(n, gast.Lambda)]


def _stored(value: Any) -> list[Any]:
    if isinstance(value, gast.Tuple | gast.List | gast.Set):
        return [n for e in value.elts for n in _stored(e)]
    if isinstance(value, gast.Dict):
        return [n for e in value.values for n in _stored(e)]
    return [value]


def _is_storing_call(node: Any) -> bool:
    return (
        isinstance(node, gast.Call)
        and isinstance(node.func, gast.Attribute)
        and node.func.attr in {"append", "add", "insert", "appendleft", "setdefault", "put"}
    )


class Obstacles:
    """Why statements cannot be made functional: others see the variables that they assign."""

    def __init__(
        self, body: list[Any], declared: set[str], in_cells: Set[str] = frozenset()
    ) -> None:
        self.declared, self.in_cells = declared, in_cells
        self.live = liveness(body)
        self.shared = _shared_names(body)
        self.loops = [n for n in statements(body) if isinstance(n, LOOPS)]

    def of(self, node: Any) -> str | None:
        """The reason for an if, while or for, or None."""
        found = activity(node)
        if isinstance(node, gast.For) and (outer := sorted(writes(node.target) & self.declared)):
            return f"its target {outer[0]!r} is declared global or nonlocal"
        if calls := sorted(set(found.reads) & _FRAME_FUNCTIONS):
            return f"it calls {calls[0]}(), which looks at the variables of the running frame"
        if found.deletes:
            return f"it deletes {next(iter(found.deletes))!r}"
        reasons = (self.of_write(node, name) for name in found.writes)
        return next((r for r in reasons if r), None) or self._of_handlers(node, set(found.writes))

    def of_write(self, node: Any, name: str) -> str | None:
        """The reason that lies in an assignment to `name` inside `node`, if there is one."""
        if name in self.in_cells:
            return None
        after = self.live.after[id(node)]
        for function in self._earlier(node, name):
            if not _is_inside(function, node):
                return f"the function in line {function.lineno} uses {name!r}, which it assigns"
            kept = getattr(function, "name", None)
            carried = self.live.header.get(id(node), after) | after
            if isinstance(node, LOOPS) and (kept is None or kept in carried):
                return f"the function in line {function.lineno} keeps {name!r}, which it assigns"
        return None

    def for_update(self, node: Any, name: str) -> bool:
        """Whether an assignment to an item of `name` inside `node` would be an obstacle."""
        return bool(self.of_write(node, name) or self._of_handlers(node, {name}))

    def _of_handlers(self, node: Any, written: set[str]) -> str | None:
        if seen := sorted(written & self.live.handlers.get(id(node), frozenset())):
            return f"an except or finally block may read {seen[0]!r}, which it assigns"
        return None

    def _earlier(self, node: Any, name: str) -> list[Any]:
        """The functions kept before `node` ends that share a name with its scope."""
        shared = self.shared.get(name, ())
        around = [n for n in self.loops if _is_inside(node, n)] if shared else []
        return [
            f for f in shared
            if f.lineno <= node.end_lineno or _repeated(f, around)
        ]  # fmt: skip


def _is_inside(function: Any, node: Any) -> bool:
    return any(n is function for n in walk(node))
