"""Which jumps (break, continue, return) leave a piece of code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gast

from treadle.autograph.analysis.activity import LOOPS, TRIES

Kinds = frozenset[str]
NONE: Kinds = frozenset()
BRANCHING = (gast.If, *LOOPS)


def blocks(node: Any) -> Iterator[list[Any]]:
    """The statement lists directly inside a compound statement (not of nested functions)."""
    if isinstance(node, gast.FunctionDef | gast.AsyncFunctionDef | gast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def statements(body: list[Any]) -> Iterator[Any]:
    """Every statement under `body`, outer ones first, nested functions not entered."""
    for node in body:
        yield node
        for block in blocks(node):
            yield from statements(block)


def jumps(body: list[Any]) -> Kinds:
    """The kinds of jump in `body` that leave it."""
    return _jumps(body, converted_only=False)


def converted_jumps(body: list[Any]) -> Kinds:
    """The kinds of jump that leave `body` from inside a statement that is to be converted."""
    return _jumps(body, converted_only=True)


def _jumps(body: list[Any], converted_only: bool) -> Kinds:
    kinds = NONE
    for node in body:
        kind = {gast.Break: "break", gast.Continue: "continue", gast.Return: "return"}.get(
            type(node)
        )
        if kind is not None:
            kinds |= NONE if converted_only else {kind}
            continue
        deep = converted_only and not (isinstance(node, BRANCHING) and not node.in_python)
        for block in blocks(node):
            inner = _jumps(block, converted_only=deep)
            of_loop = isinstance(node, LOOPS) and block is node.body
            kinds |= inner & {"return"} if of_loop else inner
    return kinds


def always_jumps(body: list[Any]) -> bool:
    """True where `body` never falls off its end."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, gast.Return | gast.Break | gast.Continue | gast.Raise):
        return True
    if isinstance(last, gast.If):
        return always_jumps(last.body) and always_jumps(last.orelse)
    if isinstance(last, gast.With):
        return always_jumps(last.body)
    return isinstance(last, TRIES) and bool(last.finalbody) and always_jumps(last.finalbody)
