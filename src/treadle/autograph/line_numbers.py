"""Which of the user's lines and functions each line of generated text stands for."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

import gast

from treadle.autograph.analysis.walking import walk
from treadle.autograph.printing import Printed

# Expressions that Python names as the place of an error, with the same number in both trees.
_PLACED = ("Call", "BinOp", "Subscript", "Compare", "UnaryOp", "Attribute")


def names_by_line(tree: ast.stmt, root: Any) -> dict[int, str]:
    """The user's function that each line of the generated text belongs to, for nested ones."""
    found: dict[int, str] = {}
    made = [n for n in walk(tree) if isinstance(n, ast.FunctionDef)]
    known = [n for n in walk(root) if isinstance(n, gast.FunctionDef)]
    for node, original in zip(made, known, strict=True):  # outer ones first
        if not getattr(original, "generated", False):
            inner = range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
            found.update(dict.fromkeys(inner, node.name))
    return found


def separate_lines(tree: ast.stmt, root: Any, printed: Printed) -> list[tuple[int, int]]:
    """Give expressions that come from another source line than the line they are printed on a
    line number of their own, after the last one.

    Args:
        tree: of the printed text; its line numbers are changed.
        root: the tree that was printed, with the source's line numbers.

    Returns:
        (source line, printed line) for each of these numbers.
    """
    places = _Places(printed)
    made, known = _by_kind(walk(tree)), _by_kind(walk(root))
    for node, original in _pairs(made, known, "Lambda"):
        line = next((n.lineno for n in walk(original.body) if hasattr(n, "lineno")), None)
        shown = node.lineno
        for inner in walk(node.body):
            if isinstance(inner, ast.expr):
                places.put(inner, line, shown)
    for kind in _PLACED:
        for node, original in _pairs(made, known, kind):
            places.put(node, getattr(original, "lineno", None), node.lineno)
    return list(places.extra)


_Nodes = dict[str, list[Any]]


def _by_kind(nodes: Iterable[Any]) -> _Nodes:
    found: _Nodes = {}
    for node in nodes:
        found.setdefault(type(node).__name__, []).append(node)
    return found


def _pairs(made: _Nodes, known: _Nodes, kind: str) -> list[tuple[Any, Any]]:
    """The nodes of a kind in both trees, where there are as many in one as in the other."""
    ours, theirs = made.get(kind, []), known.get(kind, [])
    return list(zip(ours, theirs, strict=True)) if len(ours) == len(theirs) else []


class _Places:
    """The added line numbers, by the source line and the printed line they stand for."""

    def __init__(self, printed: Printed) -> None:
        self.printed = printed
        self.extra: dict[tuple[int, int], int] = {}

    def put(self, node: Any, line: int | None, shown: int) -> None:
        """Let `node`, printed on line `shown`, have come from the source line `line`."""
        if line is None or self.source_of(node.lineno) == line:
            return
        if shown > len(self.printed.origins):
            shown = next(s for (_, s), number in self.extra.items() if number == shown)
        if self.printed.origins[shown - 1] == line:
            number = shown
        else:
            first = len(self.printed.lines) + 1
            number = self.extra.setdefault((line, shown), first + len(self.extra))
        node.lineno = node.end_lineno = number
        node.col_offset = node.end_col_offset = 0  # unknown

    def source_of(self, number: int) -> int | None:
        if number <= len(self.printed.origins):
            return self.printed.origins[number - 1]
        return next((line for (line, _), added in self.extra.items() if added == number), None)
