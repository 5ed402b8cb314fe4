"""Tokens of the graph text format."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

_PATTERN = r"""
    (?P<space>[ \t\r\n]+)
  | (?P<comment>\#[ ][^\n]*)
  | (?P<digest>\#[0-9a-f]+)
  | (?P<value>%[\w.]+)
  | (?P<number>-?(?:inf\b|nan\b|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?))
  | (?P<word>[A-Za-z_]\w*)
  | (?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
  | (?P<mark>\.\.\.|\*\*|[()\[\]{}<>,:=*+?-])
"""


class Token(NamedTuple):
    kind: str
    text: str
    line: int


class GraphSyntaxError(ValueError):
    """The text is not a graph; the message gives the line."""


def tokenize(text: str) -> list[Token]:
    """All tokens, ended by one of kind ``end``."""
    tokens: list[Token] = []
    pattern = re.compile(_PATTERN, re.VERBOSE)  # when a text is read: it takes half a millisecond
    position, line = 0, 1
    while position < len(text):
        match = pattern.match(text, position)
        if match is None:
            raise GraphSyntaxError(f"line {line}: unexpected {text[position : position + 20]!r}")
        kind = str(match.lastgroup)
        if kind != "space":
            tokens.append(Token(kind, match.group(), line))
        line += match.group().count("\n")
        position = match.end()
    tokens.append(Token("end", "the end of the text", line))
    return tokens


class Reader:
    """Walks over tokens. Comments are skipped unless asked for."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0

    def _index(self, ahead: int) -> int:
        """Where the token stands that comes after `ahead` others, comments not counted."""
        index = self._position
        while self._tokens[index].kind == "comment" or ahead:
            ahead -= self._tokens[index].kind != "comment"
            index += 1
        return index

    def peek(self, ahead: int = 0) -> Token:
        return self._tokens[self._index(ahead)]

    def next(self) -> Token:
        index = self._index(0)
        self._position = index + 1
        return self._tokens[index]

    def comment(self) -> str | None:
        """The comment that ends the line of the token just read, if there is one."""
        before, token = self._tokens[self._position - 1], self._tokens[self._position]
        if token.kind == "comment" and token.line == before.line:
            self._position += 1
            return token.text[2:].strip()
        return None

    def at(self, *texts: str) -> bool:
        token = self.peek()
        return token.text in texts and token.kind != "string"

    def accept(self, text: str) -> bool:
        if self.at(text):
            self.next()
            return True
        return False

    def expect(self, text: str) -> Token:
        if not self.at(text):
            self.fail(f"expected {text!r}")
        return self.next()

    def expect_kind(self, kind: str) -> Token:
        if self.peek().kind != kind:
            self.fail(f"expected a {kind}")
        return self.next()

    def fail(self, message: str) -> NoReturn:
        token = self.peek()
        raise GraphSyntaxError(f"line {token.line}: {message}, found {token.text!r}")
