"""All nodes of a syntax tree."""

from __future__ import annotations

from ast import AST
from collections.abc import Iterator
from typing import Any


def walk(root: Any) -> Iterator[Any]:
    """The nodes of a tree of `ast` or `gast` in the order of `ast.walk`: level by level.

    A conversion goes through its tree dozens of times. `ast.walk` makes two generators for every
    node, and takes three times as long.
    """
    nodes = [root]
    for node in nodes:  # the list grows meanwhile
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, AST):
                nodes.append(value)
            elif isinstance(value, list):
                nodes += [item for item in value if isinstance(item, AST)]
        yield node
