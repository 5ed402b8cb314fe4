"""From a Python function to its syntax tree, with positions of the file it was written in."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Iterator
from typing import Any

from treadle.autograph.errors import SourceNotFoundError
from treadle.autograph.sources import as_in_text, describe, may_have_changed, text_of
from treadle.core.records import record

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_MOST_FILES = 64
Functions = dict[int, list[tuple[FunctionNode, str | None]]]


@record(frozen=True)
class Source:
    """Where a function was found.

    Attributes:
        node: its `ast` node, with the line numbers of the file.
        lines: the lines of the whole file.
        filename: as in the function's code object.
        class_name: the class whose body the function is written in, for name mangling.
    """

    node: FunctionNode
    lines: list[str]
    filename: str
    class_name: str | None


def find(function: types.FunctionType) -> Source:
    """The source of a function or lambda.

    Raises:
        SourceNotFoundError: there is no source text, or it no longer matches the function.
    """
    filename, lines = text_of(function)
    code = _as_now(function.__code__, filename, "".join(lines))
    functions = _parse("".join(lines), filename)
    candidates = [p for p in functions.get(code.co_firstlineno, ()) if _matches(p[0], code)]
    if len(candidates) > 1:
        candidates = [_innermost(candidates, code)]
    if not candidates:
        raise _changed(code)
    node, class_name = candidates[0]
    return Source(node, lines, filename, class_name)


def _as_now(code: types.CodeType, filename: str, text: str) -> types.CodeType:
    """The code, with the position that it has in its text by now."""
    if not filename.startswith("<") and not may_have_changed(filename):
        return code
    found = as_in_text(code, text)
    if found is None:
        raise _changed(code)
    return found


def _changed(code: types.CodeType) -> SourceNotFoundError:
    return SourceNotFoundError(
        f"{describe(code)} is not in its file as Python loaded it: the file was changed since. "
        "Reload the module, or restart Python."
    )


@functools.lru_cache(maxsize=_MOST_FILES)
def _parse(text: str, filename: str) -> Functions:
    """The functions of a file by the line in which their code begins."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise SourceNotFoundError(
            f"{filename} does not parse any more ({error.msg}, line {error.lineno}): the file was "
            "changed since Python loaded it."
        ) from None
    found: Functions = {}
    for pair in _functions(tree):
        found.setdefault(_first_line(pair[0]), []).append(pair)
    return found


def _functions(tree: ast.AST) -> Iterator[tuple[FunctionNode, str | None]]:
    """Every function and lambda of a tree in the order of the text, with the class it is written
    in. (A generator for each node, as `ast` has them, would take three times as long.)"""
    waiting: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while waiting:
        node, class_name = waiting.pop()
        if isinstance(node, FunctionNode):
            yield node, class_name
        elif isinstance(node, ast.ClassDef):
            class_name = node.name
        below: list[tuple[ast.AST, str | None]] = []
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                below.append((value, class_name))
            elif isinstance(value, list):
                below += [(item, class_name) for item in value if isinstance(item, ast.AST)]
        waiting += reversed(below)


def _matches(node: FunctionNode, code: types.CodeType) -> bool:
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    return name == code.co_name and _same_arguments(node, code)


def _first_line(node: FunctionNode) -> int:
    """The line where its code object begins: a decorator's, where it has any."""
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *(d.lineno for d in decorators)])


def _same_arguments(node: FunctionNode, code: types.CodeType) -> bool:
    a = node.args
    names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    names += [x.arg for x in (a.vararg, a.kwarg) if x is not None]
    found = code.co_varnames[: len(names)]
    return len(found) == len(names) and all(
        name == varname or varname.endswith(name)
        for name, varname in zip(names, found, strict=True)
    )


def _innermost(
    candidates: list[tuple[FunctionNode, str | None]], code: types.CodeType
) -> tuple[FunctionNode, str | None]:
    """Of several functions that begin on one line, the one whose columns the bytecode names."""
    marks = [
        (line, column)
        for line, _, column, end in code.co_positions()
        if line is not None and column is not None and (column, end) != (0, 0)
    ]

    def holds(pair: tuple[Any, str | None]) -> bool:
        body = pair[0].body if isinstance(pair[0], ast.Lambda) else pair[0]
        start = (body.lineno, body.col_offset)
        end = (body.end_lineno, body.end_col_offset)
        return all(start <= mark < end for mark in marks)

    def size(pair: tuple[Any, str | None]) -> tuple[int, int]:
        node = pair[0]
        return node.end_lineno - node.lineno, node.end_col_offset - node.col_offset

    return min(filter(holds, candidates), key=size, default=candidates[0])
