"""Decides which statements stay Python's own.

- A condition or iterable that evidently is Python's is left alone, unless a jump inside depends on
  a condition that may be a tensor.
- A statement that cannot be made functional stays Python's and has its condition guarded: it works
  for Python values, and a tensor gives an error with the reason (`guard`). Variables that others
  see are none: bodies assign them themselves (`shared_variables`).
"""

from __future__ import annotations

from typing import Any

import gast

from treadle.autograph.analysis.activity import LOOPS, activity
from treadle.autograph.analysis.evident import (
    is_python_iterable,
    is_python_test,
    may_be_rolled,
)
from treadle.autograph.analysis.jumps import BRANCHING, converted_jumps, jumps, statements

_FRAME_FUNCTIONS = {"locals", "vars", "eval", "exec", "dir"}


def decide_python(body: list[Any]) -> None:
    """Set `in_python` and `guard` on every if, while and for of a function body."""
    for node in statements(body):
        if isinstance(node, BRANCHING):
            node.in_python, node.guard = False, _obstacle(node)
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


def _obstacle(node: Any) -> str | None:
    """Why an if, while or for cannot be made functional, or None."""
    found = activity(node)
    if calls := sorted(set(found.reads) & _FRAME_FUNCTIONS):
        return f"it calls {calls[0]}(), which looks at the variables of the running frame"
    if found.deletes:
        return f"it deletes {next(iter(found.deletes))!r}"
    return None
