"""Refuses statements that AutoGraph does not convert, before anything is rewritten."""

from __future__ import annotations

import ast
from typing import Any

from treadle.autograph.errors import UnsupportedSyntaxError
from treadle.autograph.parsing import Source

_REASONS: dict[type, str] = {
    ast.Yield: "a generator cannot become a graph; collect the values in a list or td.TensorArray",
    ast.YieldFrom: "a generator cannot become a graph; collect the values in a list",
    ast.Await: "asynchronous code cannot become a graph",
    ast.AsyncFor: "asynchronous code cannot become a graph",
    ast.AsyncWith: "asynchronous code cannot become a graph",
}
_NAMES = {
    ast.Yield: "yield", ast.YieldFrom: "yield from", ast.Await: "await",
    ast.AsyncFor: "async for", ast.AsyncWith: "async with",
}  # fmt: skip


def check(source: Source) -> None:
    """Raise UnsupportedSyntaxError for the first statement that cannot be converted."""
    if isinstance(source.node, ast.AsyncFunctionDef):
        raise refusal(source, source.node, "async def", "asynchronous code cannot become a graph")
    body = source.node.body
    for node in body if isinstance(body, list) else [body]:
        _visit(node, source)


def _visit(node: ast.AST, source: Source) -> None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return  # a scope of its own
    if type(node) in _REASONS:
        raise refusal(source, node, _NAMES[type(node)], _REASONS[type(node)])
    for child in ast.iter_child_nodes(node):
        _visit(child, source)


def refusal(source: Source, node: Any, what: str, why: str) -> UnsupportedSyntaxError:
    text = source.lines[node.lineno - 1].strip()
    return UnsupportedSyntaxError(
        f"AutoGraph does not convert `{what}`: {why}.\n"
        f"  at {source.filename}:{node.lineno}: {text}\n"
        "Mark the function with @td.autograph.experimental.do_not_convert to run it as it is."
    )
