"""``except`` in jitted functions: what the compiler raises while it traces is nobody's to catch.

Before::

    try:
        y = f(x)
    except Exception:
        y = 0

After::

    try:
        y = f(x)
    except Exception:
        ag__.pass_on()
        y = 0

A loop that cannot be one of the graph, a value that only the run has, a ``raise`` under a condition
that only the run knows: the operator raises such an error again, where Python's handler would have
taken it for one of the program.
"""

from __future__ import annotations

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
