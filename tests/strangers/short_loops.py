"""Loops of others' programs that end early: what they repeat is known after a few passes.

`shortened` rewrites the loops of a part. One that has gone on for `SECONDS` of processor time, a
tenth of the program's, and has run its body `PASSES` times, ends as if its values were used up or
its condition false. Loops that are traced, and those of generators, which feed others, are left as
they are: so a program computes what it computed before, but for training and searches that take
long.
"""

from __future__ import annotations

import ast
import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

SECONDS, PASSES = float(os.environ.get("STRANGERS_LIMIT", "60")) / 10, 2
FEW, BEGIN, ON = "few_passes__", "loop_begins__", "loop_goes_on__"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def shortened(code: str, part: str) -> str:
    """A part whose loops end early; the text itself where it has none, or is no Python.

    Args:
        code: the text.
        part: its name, by which its loops are told from those of others.
    """
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return code
    loops = _Loops(part)
    changed = loops.visit(tree)
    return ast.unparse(ast.fix_missing_locations(changed)) if loops.number else code


class _Loops(ast.NodeTransformer):
    """Puts the calls into loops.

    Attributes:
        number: how many loops were changed.
    """

    def __init__(self, part: str) -> None:
        self.part = part
        self.number = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node if _is_generator(node) else self.generic_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        self.number += 1
        node.iter = _call(FEW, node.iter)
        return node

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        self.generic_visit(node)
        self.number += 1
        name = ast.Constant(f"{self.part}, loop {self.number}")
        node.test = ast.BoolOp(ast.And(), [_call(ON, name), node.test])
        return [ast.Expr(_call(BEGIN, name)), node]


def _is_generator(function: ast.FunctionDef) -> bool:
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, _FUNCTIONS):
            todo += ast.iter_child_nodes(node)
    return False


def _call(name: str, argument: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [argument], [])


class _Patience:
    """How long a loop has gone on."""

    def __init__(self) -> None:
        self.passes, self.began = -1, time.process_time()

    def ends(self) -> bool:
        """Whether a further pass is too much, asked before each."""
        self.passes += 1
        return self.passes >= PASSES and time.process_time() - self.began > SECONDS


def names(tf: Any) -> dict[str, Any]:
    """The functions that rewritten loops call, for the library that is imported as tensorflow."""
    running: dict[str, _Patience] = {}

    def few(values: Iterable[Any]) -> Any:
        return values if tf.inside_function() else passes(values)

    def passes(values: Iterable[Any]) -> Iterator[Any]:
        patience = _Patience()
        for value in values:
            if patience.ends():
                return
            yield value

    def begin(name: str) -> None:
        running[name] = _Patience()

    def on(name: str) -> bool:
        return tf.inside_function() or not running[name].ends()

    given = {FEW: few, BEGIN: begin, ON: on}
    return {name: tf.autograph.experimental.do_not_convert(f) for name, f in given.items()}
