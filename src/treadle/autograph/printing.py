"""Writes a converted function as text, line by line with the source line each comes from.

Statements that were not changed are copied from the user's file; the others are unparsed.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import gast

from treadle.autograph.analysis.activity import TRIES
from treadle.autograph.analysis.walking import walk
from treadle.autograph.unparsing import unparse, unparse_statement
from treadle.core.records import record

_WIDTH = 100
_INDENT = "    "


@record
class Printed:
    """Generated text.

    Attributes:
        lines: the lines, without newlines.
        origins: for each of them, the line of the source it comes from.
    """

    lines: list[str] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def print_function(node: Any, source: list[str]) -> Printed:
    """The text of a function definition or lambda."""
    printer = _Printer(source)
    if isinstance(node, gast.Lambda):
        printer.line(unparse(node), 0, node.lineno)
    else:
        printer.function(node, 0)
    return printer.out


class _Printer:
    def __init__(self, source: list[str]) -> None:
        self.source = source
        self.out = Printed()
        self.begins = False  # whether the last line is a header

    def line(self, text: str, depth: int, origin: int) -> None:
        self.out.lines.append(_INDENT * depth + text if text else "")
        self.out.origins.append(origin)
        self.begins = text.endswith(":")

    def blank(self, origin: int) -> None:
        if self.out.lines and self.out.lines[-1] and not self.begins:
            self.line("", 0, origin)

    def comments(self, found: Any, depth: int) -> None:
        for origin, text in found or ():
            if text:
                self.line(text, depth, origin)
            else:
                self.blank(origin)

    def block(self, body: list[Any], depth: int) -> None:
        after_definition = False
        for node in body:
            generated = getattr(node, "generated", False) and isinstance(node, gast.FunctionDef)
            if generated or after_definition:
                self.blank(node.lineno)
            self.statement(node, depth)
            after_definition = generated

    def statement(self, node: Any, depth: int) -> None:
        self.comments(getattr(node, "leading", None), depth)
        if isinstance(node, gast.FunctionDef):
            self.function(node, depth)
        elif isinstance(node, gast.ClassDef) and hasattr(node, "converted"):
            self.class_definition(node, depth)
        elif isinstance(node, gast.If):
            self.branches(node, depth, "if")
        elif isinstance(node, gast.While | gast.For | gast.With):
            self.header(node, depth)
            self.block(node.body, depth + 1)
            self.orelse(getattr(node, "orelse", []), depth)
        elif isinstance(node, TRIES):
            self.attempt(node, depth)
        elif isinstance(node, gast.Match):
            self.match(node, depth)
        else:
            self.simple(node, depth)
        self.comments(getattr(node, "closing", None), depth)

    def function(self, node: Any, depth: int) -> None:
        shell = gast.FunctionDef(
            node.name, node.args, [gast.Pass()], node.decorator_list, node.returns, None,
            getattr(node, "type_params", []),
        )  # fmt: skip
        *head, _ = unparse(shell).split("\n")
        for text in head:
            last = text is head[-1]
            self.wrapped(text + (_behind(node) if last else ""), depth, node.lineno)
        self.begins = True
        self.block(node.body, depth + 1)

    def class_definition(self, node: Any, depth: int) -> None:
        fields = {f: getattr(node, f, []) for f in node._fields}
        *head, _ = unparse(gast.ClassDef(**{**fields, "body": [gast.Pass()]})).split("\n")
        for text in head:
            self.line(text, depth, node.lineno)
        self.block(node.body, depth + 1)

    def header(self, node: Any, depth: int, word: str = "") -> None:
        fields = {f: getattr(node, f, None) for f in node._fields}
        shell = type(node)(**{**fields, "body": [gast.Pass()]})
        if "orelse" in fields:
            shell.orelse = []
        text = unparse(shell).split("\n")[0]
        if word == "elif":
            text = "el" + text
        self.wrapped(text + _behind(node), depth, node.lineno)
        self.begins = True

    def branches(self, node: Any, depth: int, word: str) -> None:
        self.header(node, depth, word)
        self.block(node.body, depth + 1)
        only = node.orelse[0] if len(node.orelse) == 1 else None
        if isinstance(only, gast.If) and not any(t for _, t in getattr(only, "leading", ())):
            self.branches(only, depth, "elif")
        else:
            self.orelse(node.orelse, depth)

    def orelse(self, body: list[Any], depth: int) -> None:
        if body:
            self.line("else:", depth, body[0].lineno)
            self.block(body, depth + 1)

    def attempt(self, node: Any, depth: int) -> None:
        self.line("try:", depth, node.lineno)
        self.block(node.body, depth + 1)
        star = "*" if type(node).__name__ == "TryStar" else ""
        for handler in node.handlers:
            text = f"except{star}"
            if handler.type is not None:
                text += " " + unparse(handler.type)
            if handler.name is not None:
                text += f" as {getattr(handler.name, 'id', handler.name)}"
            self.line(text + ":", depth, handler.lineno)
            self.block(handler.body, depth + 1)
        self.orelse(node.orelse, depth)
        if node.finalbody:
            self.line("finally:", depth, node.finalbody[0].lineno)
            self.block(node.finalbody, depth + 1)

    def match(self, node: Any, depth: int) -> None:
        self.line(f"match {unparse(node.subject)}:", depth, node.lineno)
        for case in node.cases:
            shell = gast.Match(
                node.subject, [gast.match_case(case.pattern, case.guard, [gast.Pass()])]
            )
            text = unparse(shell).split("\n")[1].strip()
            self.line(text, depth + 1, case.body[0].lineno)
            self.block(case.body, depth + 2)

    def simple(self, node: Any, depth: int) -> None:
        text = unparse_statement(node)
        if text == getattr(node, "canonical", None) and self.copy(node, depth):
            return
        self.wrapped(text + _behind(node), depth, node.lineno)

    def copy(self, node: Any, depth: int) -> bool:
        """Copy the statement from the file; False where moving it would change a string."""
        first, last = node.lineno, node.end_lineno
        lines = [line.rstrip("\n") for line in self.source[first - 1 : last]]
        shift = node.col_offset - len(_INDENT) * depth
        if shift and first != last and _has_long_string(node):
            return False
        lines[-1] = lines[-1].encode()[: node.end_col_offset].decode()
        lines[0] = lines[0].encode()[node.col_offset :].decode()
        self.line(lines[0] + (_behind(node) if first == last else ""), depth, first)
        for number, text in enumerate(lines[1:], first + 1):
            kept = text if not _has_long_string(node) or number == first else text
            moved = kept[shift:] if shift > 0 and not kept[:shift].strip() else " " * -shift + kept
            ending = _behind(node) if number == last else ""
            self.line((moved if kept.strip() else "") + ending, 0, number)
        return True

    def wrapped(self, text: str, depth: int, origin: int) -> None:
        """One line, or the last call's arguments on a line of their own where it is too long."""
        parts = _split(text) if len(text) + len(_INDENT) * depth > _WIDTH else None
        if parts is None:
            for piece in text.split("\n"):
                self.line(piece, depth, origin)
            return
        head, arguments, tail = parts
        self.line(head, depth, origin)
        one = ", ".join(arguments)
        if len(one) + len(_INDENT) * (depth + 1) <= _WIDTH:
            self.line(one, depth + 1, origin)
        else:
            for argument in arguments:
                self.line(argument + ",", depth + 1, origin)
        self.line(tail, depth, origin)


def _behind(node: Any) -> str:
    trailing = getattr(node, "trailing", "")
    return f"  {trailing}" if trailing else ""


def _has_long_string(node: Any) -> bool:
    return any(
        isinstance(n, gast.Constant | gast.JoinedStr) and n.lineno != n.end_lineno
        for n in walk(node)
        if hasattr(n, "end_lineno")
    )


def _split(text: str) -> tuple[str, list[str], str] | None:
    """Split at the bracket that closes last: ``head(``, its comma-separated parts, ``)``."""
    depth, quote, start = 0, "", -1
    commas: list[int] = []
    end = -1
    for i, c in enumerate(text):
        if quote:
            if c == quote and text[i - 1] != "\\":
                quote = ""
        elif c in "'\"":
            quote = c
        elif c == "#":
            break
        elif c in "([{":
            depth += 1
            if depth == 1:
                start, commas = i, []
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                end = i
        elif c == "," and depth == 1:
            commas.append(i)
    if start < 0 or end < start or text[start] != "(" or _names_no_call(text, start):
        return None
    cuts = [start, *commas, end]
    parts = [text[a + 1 : b].strip() for a, b in zip(cuts, cuts[1:], strict=False)]
    return text[: start + 1], [p for p in _join_lambdas(parts) if p], text[end:]


def _names_no_call(text: str, start: int) -> bool:
    return start == 0 or not (text[start - 1].isalnum() or text[start - 1] in "_)]")


def _join_lambdas(parts: list[str]) -> list[str]:
    """Put the parameters of a lambda back together: ``lambda a``, ``b: a + b``."""
    out: list[str] = []
    for part in parts:
        if out and _open_lambda(out[-1]):
            out[-1] += ", " + part
        else:
            out.append(part)
    return out


def _open_lambda(part: str) -> bool:
    at = part.rfind("lambda")
    return at >= 0 and ":" not in part[at:]
