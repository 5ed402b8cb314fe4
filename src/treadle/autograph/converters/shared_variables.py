"""Variables of a function that functions inside it read, and that its branches or loops assign.

Such a function reads the variable wherever it is called, also in a body that became a function of
its own. So the body assigns the variable itself, as if it had declared it ``nonlocal``::

    scale = 1.0                                 # scale = 1.0
    add = lambda v: v + scale                   # add = lambda v: v + scale
                                                # for _ in range(n):
    def body(_, x):                             #     scale = 2.0 * scale
        nonlocal scale                          #     x = add(x)
        scale = 2.0 * scale
        x = add(x)
        return x

    x = ag__.for_stmt(range(n), body, x, places=[ag__.outer(lambda: scale)])
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gast

from treadle.autograph.analysis.activity import (
    FUNCTIONS,
    activity,
    free_names,
    parameters,
    writes,
)
from treadle.autograph.analysis.jumps import BRANCHING, statements
from treadle.autograph.analysis.walking import walk
from treadle.autograph.converters.left_to_python import kept_functions

_ASSIGNMENTS = (gast.Assign, gast.AugAssign, gast.AnnAssign)


def shared_variables(function: Any) -> frozenset[str]:
    """The names of these variables, as far as a reader and a value are there before the branch or
    loop, and nothing but assignments gives them others."""
    body = function.body
    readers = [f for s in body for f in kept_functions(s)]
    others = [f for s in statements(body) for f in kept_functions(s)]
    shared = set().union(*map(free_names, readers))
    shared -= set().union(*(free_names(f) for f in others if not any(f is r for r in readers)))
    if not shared:
        return frozenset()
    shared -= _bound_otherwise(body) | set(activity(body).declared)
    bound, read = set(parameters(function.args)), set[str]()
    found, unbound = set[str](), set[str]()
    for statement in body:
        if isinstance(statement, _ASSIGNMENTS):
            bound |= writes(statement)
        inside = [n for n in statements([statement]) if isinstance(n, BRANCHING)]
        assigned = shared & set().union(*map(writes, inside))
        found |= assigned & read
        unbound |= assigned - bound
        read |= set().union(*map(free_names, kept_functions(statement)))
    return frozenset(found - unbound)


def _bound_otherwise(body: list[Any]) -> set[str]:
    """Names that targets of loops, imports, definitions, deletions and the like bind."""
    names, assigned = set[str](), set[int]()
    for statement in statements(body):
        if isinstance(statement, _ASSIGNMENTS):
            one = not isinstance(statement, gast.Assign)
            targets = [statement.target] if one else statement.targets
            assigned.update(id(n) for target in targets for n in walk(target))
        elif isinstance(statement, gast.FunctionDef | gast.AsyncFunctionDef | gast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, gast.Import | gast.ImportFrom):
            names |= writes(statement)
    stored = (n for n in _names(body) if not isinstance(n.ctx, gast.Load))
    return names | {n.id for n in stored if id(n) not in assigned}


def _names(body: list[Any]) -> Iterator[Any]:
    """The names in a function's own scope."""
    nodes = list(body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, gast.Name):
            yield node
        elif not isinstance(node, (*FUNCTIONS, gast.ClassDef)):
            nodes += gast.iter_child_nodes(node)
