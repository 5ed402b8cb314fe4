"""``except``: in jitted functions what the compiler raises while it traces is nobody's to catch.

Before::

    try:
        y = f(x)
    except Exception:
        y = 0

After::

    try:
        with ag__.trying(lambda: Exception):
            y = f(x)
    except Exception:
        ag__.pass_on()
        y = 0

A loop that cannot be one of the graph, a value that only the run has, a ``raise`` under a condition
that only the run knows: the operator raises such an error again, where Python's handler would have
taken it for one of the program. The body knows what the handlers would catch: the program raises
that where it would go on with another value.
"""

from __future__ import annotations

import copy
from typing import Any

import gast

from treadle.autograph import build
from treadle.autograph.analysis.activity import TRIES
from treadle.autograph.analysis.jumps import BRANCHING, statements
from treadle.autograph.analysis.walking import walk


def guard_handlers(root: Any) -> None:
    """Begin every handler in a tree with the operator."""
    for node in walk(root):
        if isinstance(node, gast.ExceptHandler):
            call = build.place(gast.Expr(build.operator("pass_on")), node.body[0])
            node.body.insert(0, call)
        if isinstance(node, gast.Try) and node.handlers:
            _tell(node)


def refuse_of_branches(body: list[Any]) -> None:
    """Begin the handlers of a function's own statements with the operator `caught`, where the
    ``try`` block may trace: none may catch an exception that leaves a branch or loop of the graph.
    """
    for statement in statements(body):
        if not isinstance(statement, TRIES) or not _may_trace(statement.body):
            continue
        for handler in statement.handlers:
            if not build.is_operator(getattr(handler.body[0], "value", None), "pass_on"):
                call = build.place(gast.Expr(build.operator("caught")), handler.body[0])
                handler.body.insert(0, call)


def _may_trace(body: list[Any]) -> bool:
    """Whether `body` has a branch or loop that may be one of the graph, or calls what may."""
    return any(
        getattr(n, "id", None) == build.AG or (isinstance(n, BRANCHING) and not n.in_python)
        for s in body
        for n in walk(s)
        if not isinstance(n, BRANCHING) or hasattr(n, "in_python")
    )


def _tell(node: Any) -> None:
    """Have the body of a ``try`` statement know what its handlers catch."""
    kinds: list[Any] = []
    for handler in node.handlers:
        kind = handler.type
        if kind is None:
            kind = build.load("BaseException")
        kinds += kind.elts if isinstance(kind, gast.Tuple) else [kind]
    caught = kinds[0] if len(kinds) == 1 else gast.Tuple(kinds, gast.Load())
    nothing = gast.arguments([], [], None, [], [], None, [])
    told = gast.Lambda(nothing, copy.deepcopy(caught))
    item = gast.withitem(build.operator("trying", told), None)
    node.body = [build.place(gast.With([item], node.body, None), node.body[0])]
