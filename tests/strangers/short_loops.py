"""Loops of others' programs that end early: what they repeat is known after a few passes.

`shortened` rewrites the loops of a part. One that has gone on for `SECONDS` of processor time, a
tenth of the program's, and has run its body `PASSES` times, ends as if its values were used up or
its condition false. Loops that are traced, and those of generators, which feed others, are left as
they are: so a program computes what it computed before, but for training and searches that take
long.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

SECONDS, PASSES = float(os.environ.get("STRANGERS_LIMIT", "60")) / 10, 2
FEW, BEGIN, ON = "few_passes__", "loop_begins__", "loop_goes_on__"
ended: list[str] = []  # an entry for each loop that ended early: what it gives depends on speed
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def shortened(tree: ast.Module, name: str) -> ast.Module:
    """A module whose loops end early, at the lines where they are: what reads the text of its
    functions, as AutoGraph does, finds them as they were written.

    Args:
        tree: the module, which is changed.
        name: by which its loops are told from those of others.
    """
    _Loops(name).visit(tree)
    return ast.fix_missing_locations(tree)


class _Shortening(importlib.machinery.SourceFileLoader):
    """Loads modules with loops that end early, whether they were compiled or not."""

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        return compile(shortened(ast.parse(Path(path).read_bytes()), path), path, "exec")


def install(tf: Any, folder: Path) -> None:
    """Prepare a process for parts and for the modules below a folder that they import.

    Args:
        tf: the library that is imported as tensorflow.
        folder: whose modules are shortened.
    """
    vars(builtins).update(names(tf))
    kinds = (_Shortening, importlib.machinery.SOURCE_SUFFIXES)
    finder, folder = importlib.machinery.FileFinder.path_hook(kinds), folder.resolve()

    def below(path: str) -> Any:
        if folder not in (place := Path(path).resolve(), *place.parents):
            raise ImportError(f"{path} is not below {folder}")
        return finder(path)

    sys.path_hooks.insert(0, below)
    sys.path_importer_cache.clear()


class _Loops(ast.NodeTransformer):
    """Puts the calls into loops."""

    def __init__(self, part: str) -> None:
        self.part, self.number = part, 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node if _is_generator(node) else self.generic_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = _call(FEW, node.iter)
        return node

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        self.generic_visit(node)
        self.number += 1
        name = ast.Constant(f"{self.part}, loop {self.number}")
        node.test = ast.BoolOp(ast.And(), [_call(ON, name), node.test])
        return [ast.copy_location(ast.Expr(_call(BEGIN, name)), node), node]


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
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [argument], []), argument)


class _Patience:
    """How long a loop has gone on."""

    def __init__(self) -> None:
        self.passes, self.began = -1, time.process_time()

    def ends(self) -> bool:
        """Whether a further pass is too much, asked before each."""
        self.passes += 1
        ends = self.passes >= PASSES and time.process_time() - self.began > SECONDS
        if ends:
            ended.append("a loop")
        return ends


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
