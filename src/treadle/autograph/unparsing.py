"""Text of gast nodes."""

from __future__ import annotations

import ast
from typing import Any

import gast


def unparse(node: Any) -> str:
    """The source text of a node; positions need not be set."""
    return ast.unparse(ast.fix_missing_locations(gast.gast_to_ast(node))).strip()
