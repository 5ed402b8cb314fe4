"""``del name`` inside an if or loop becomes an assignment of the marker of undefined variables.

Statements behind it then see a variable without a value. As the last statement it is a ``del``.

Before::

    if x > 0:
        y = f(x)
        del y

After::

    if x > 0:
        y = f(x)
        y = ag__.undefined("y")
"""

from __future__ import annotations

from typing import Any

import gast

from treadle.autograph.analysis.activity import writes
from treadle.autograph.analysis.jumps import BRANCHING, blocks, statements
from treadle.autograph.build import assign, place, undefined


def mark_deletions(body: list[Any], inside: bool = False) -> None:
    """Rewrite a block in place; `inside`: it is part of an if or loop."""
    for k in range(len(body) - 1, -1, -1):
        node = body[k]
        for inner in blocks(node):
            mark_deletions(inner, inside or isinstance(node, BRANCHING))
        if inside and isinstance(node, gast.Delete):
            body[k : k + 1] = [_deletion(target, node) for target in node.targets]


def _deletion(target: Any, at: Any) -> Any:
    if not isinstance(target, gast.Name):
        return place(gast.Delete([target]), at)
    made = assign([target.id], undefined(target.id), at)
    made.deleted = target.id
    return made


def restore_deletions(body: list[Any], results: set[str]) -> None:
    """In the body of a generated function: ``del`` again for variables that it keeps to itself."""
    if not any(hasattr(s, "deleted") for s in statements(body)):
        return
    bound = {n for s in statements(body) if not hasattr(s, "deleted") for n in _bound(s)}
    for block in _all_blocks(body):
        for k, node in enumerate(block):
            name = getattr(node, "deleted", None)
            if name is not None and name not in results:
                made = gast.Delete([gast.Name(name, gast.Del(), None, None)])
                block[k] = place(made if name in bound else gast.Pass(), node)


def _bound(statement: Any) -> set[str]:
    return set() if any(blocks(statement)) else writes(statement)


def _all_blocks(body: list[Any]) -> list[list[Any]]:
    found = [body]
    for node in body:
        for inner in blocks(node):
            found += _all_blocks(inner)
    return found
