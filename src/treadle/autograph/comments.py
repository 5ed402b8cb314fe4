"""Keeps comments, blank lines and the way literals were written, which a syntax tree drops.

Statements get these attributes:

- `leading`: (line, text) of the comment and blank lines above it,
- `trailing`: the comment behind it (behind its header, for a compound statement),
- `closing`: (line, text) of the comments below it that end its block,
- `canonical`: its unparsed text, to see later whether it was changed.
"""

from __future__ import annotations

import tokenize
from typing import Any

import gast

from treadle.autograph.analysis.jumps import blocks
from treadle.autograph.analysis.walking import walk
from treadle.autograph.unparsing import unparse_statement

Lines = list[tuple[int, str]]


class _Text(str):
    """A string that prints as it was written."""

    source: str

    def __repr__(self) -> str:
        return self.source


class _Number(float):
    source: str

    def __repr__(self) -> str:
        return self.source


def attach(function: Any, lines: list[str]) -> None:
    """Set the attributes on every statement of a function. `lines` are the lines of its file."""
    _keep_literals(function, lines)
    own, behind = _comments(function, lines)
    _Attach(own, behind, lines).block(function.body, _header_end(function, lines))
    function.trailing = behind.get(_header_end(function, lines), "")


def _comments(
    function: Any, lines: list[str]
) -> tuple[dict[int, tuple[int, str]], dict[int, str]]:
    """Comments on lines of their own (with their column), and behind code."""
    own: dict[int, tuple[int, str]] = {}
    behind: dict[int, str] = {}
    for number, column in _beginnings(function, lines):
        line = lines[number - 1]
        text = line[column:].rstrip("\r\n")
        if line[:column].strip():
            behind[number] = text
        else:
            own[number] = (column, text)
    return own, behind


def _beginnings(function: Any, lines: list[str]) -> list[tuple[int, int]]:
    """The lines and columns where the comments of a function begin. Only where a ``#`` may be in a
    literal Python's tokenizer is asked: making its tables takes longer than converting a function.
    """
    numbers = range(function.lineno, function.end_lineno + 1)
    found = {n: lines[n - 1].index("#") for n in numbers if "#" in lines[n - 1]}
    for node in walk(function) if found else ():
        is_text = isinstance(getattr(node, "value", None), str | bytes)
        if (is_text or isinstance(node, gast.JoinedStr)) and not found.keys().isdisjoint(
            range(node.lineno, node.end_lineno + 1)
        ):
            return _tokenized(lines, function.lineno, function.end_lineno)
    return list(found.items())


def _tokenized(lines: list[str], first: int, last: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    try:
        for token in tokenize.generate_tokens(iter(lines[first - 1 : last]).__next__):
            if token.type == tokenize.COMMENT:
                found.append((token.start[0] + first - 1, token.start[1]))
    except (tokenize.TokenError, IndentationError):
        pass  # comments are a nicety: the code itself has been parsed
    return found


def _header_end(node: Any, lines: list[str]) -> int:
    """The last line of a compound statement's header."""
    fields = ("test", "iter", "items", "args", "subject", "returns")
    parts = [p for f in fields for p in _as_list(getattr(node, f, None))]
    ends = [n.end_lineno for p in parts for n in walk(p) if hasattr(n, "end_lineno")]
    header: int = max([node.lineno, *ends])
    first: int = max(_first_line(node), node.lineno)
    return min(header, first)


def _first_line(node: Any) -> int:
    """The line of the first statement inside."""
    return int(next(block[0].lineno for block in _inner_blocks(node) if block))


def _inner_blocks(node: Any) -> list[list[Any]]:
    return [node.body] if hasattr(node, "body") else [case.body for case in node.cases]


def _as_list(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


class _Attach:
    def __init__(
        self, own: dict[int, tuple[int, str]], behind: dict[int, str], lines: list[str]
    ) -> None:
        self.own, self.behind, self.lines = own, behind, lines

    def block(self, body: list[Any], above: int) -> int:
        """Attach within a block that begins below line `above`; gives its last line."""
        for node in body:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            node.leading = self.between(above, first)
            above = self.inside(node)
        if body:
            body[-1].closing = self.closing(above, body[0].col_offset)
            above += len(body[-1].closing)
        return above

    def inside(self, node: Any) -> int:
        nested = isinstance(node, gast.FunctionDef)
        inner = [node.body] if nested else list(blocks(node))
        if not inner:
            node.trailing = self.behind.get(node.end_lineno, "")
            node.canonical = unparse_statement(node)
            return int(node.end_lineno)
        header = _header_end(node, self.lines)
        node.trailing = self.behind.get(header, "")
        for block in inner:
            if block:
                header = self.block(block, header)
        return max(header, int(node.end_lineno))

    def between(self, above: int, below: int) -> Lines:
        found: Lines = []
        for line in range(above + 1, below):
            if line in self.own:
                found.append((line, self.own[line][1]))
            elif not self.lines[line - 1].strip() and not (found and not found[-1][1]):
                found.append((line, ""))
        return found

    def closing(self, above: int, column: int) -> Lines:
        found: Lines = []
        while (line := above + 1 + len(found)) in self.own and self.own[line][0] >= column:
            found.append((line, self.own[line][1]))
        return found


def _keep_literals(function: Any, lines: list[str]) -> None:
    for node in walk(function):
        if isinstance(node, gast.JoinedStr):
            for part in walk(node):
                part.in_string = True
        if not isinstance(node, gast.Constant) or hasattr(node, "in_string"):
            continue
        if not hasattr(node, "lineno") or node.lineno != node.end_lineno:
            continue
        line = lines[node.lineno - 1].encode()
        source = line[node.col_offset : node.end_col_offset].decode()
        if type(node.value) is float:
            node.value = _Number(node.value)
        elif type(node.value) is str:
            node.value = _Text(node.value)
        else:
            continue
        node.value.source = source
