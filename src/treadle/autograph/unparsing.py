"""Text of gast nodes."""

from __future__ import annotations

import ast
from typing import Any

import gast


def unparse(node: Any) -> str:
    """The source text of a node; positions need not be set."""
    return ast.unparse(ast.fix_missing_locations(gast.gast_to_ast(node))).strip()


def unparse_statement(node: Any) -> str:
    """``return a, b`` and ``a, b = c, d`` without the parentheses that unparsing gives tuples."""
    text = unparse(node)
    value = getattr(node, "value", None)
    if (
        isinstance(node, gast.Return | gast.Assign)
        and isinstance(value, gast.Tuple)
        and len(value.elts) > 1
        and not any(isinstance(e, gast.Starred) for e in value.elts)
        and text.endswith(")")
    ):
        inner = unparse(value)
        if inner.startswith("(") and text.endswith(inner):
            return text[: -len(inner)] + inner[1:-1]
    return text
