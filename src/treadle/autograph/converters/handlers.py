"""``except`` in jitted functions: what the compiler raises while it traces is nobody's to catch.

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
from treadle.autograph.analysis.walking import walk


def guard_handlers(root: Any) -> None:
    """Begin every handler in a tree with the operator."""
    for node in walk(root):
        if isinstance(node, gast.ExceptHandler):
            call = build.place(gast.Expr(build.operator("pass_on")), node.body[0])
            node.body.insert(0, call)
        if isinstance(node, gast.Try) and node.handlers:
            _tell(node)


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
