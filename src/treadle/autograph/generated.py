"""From the text of a converted function to its code object.

The text may come from disk: nothing of it runs here, also where it is not the expected text. The
result is a function with the original's parameters, or an error.
"""

from __future__ import annotations
import __future__

import ast
import types
from collections.abc import Iterable

from treadle.autograph.analysis.walking import walk

AG = "ag__"  # the name under which generated code finds the operators
_FACTORY_NAME = "ag__function"


def parsed(text: str, moved: Iterable[tuple[int, int]], filename: str) -> ast.stmt:
    """The tree of a generated function.

    Args:
        text: one function definition or lambda.
        moved: expressions that have another line number than the line they are printed on: their
            places in `ast.walk`, and the numbers. Their columns are unknown.

    Raises:
        SyntaxError, ValueError, MemoryError, RecursionError: the text is no Python.
    """
    (statement,) = ast.parse(text, filename).body
    lines = dict(moved)
    for place, node in enumerate(walk(statement) if lines else ()):
        if place in lines:
            node.lineno = node.end_lineno = lines[place]
            node.col_offset = node.end_col_offset = 0
    return statement


def moved_lines(statement: ast.stmt, text: str) -> list[tuple[int, int]]:
    """For `parsed`: the line numbers of a tree that differ from those of its text."""
    printed = walk(ast.parse(text).body[0])
    return [
        (place, node.lineno)
        for place, (node, before) in enumerate(zip(walk(statement), printed, strict=True))
        if getattr(node, "lineno", 0) != getattr(before, "lineno", 0)
    ]


def code_of(statement: ast.stmt, filename: str, original: types.CodeType) -> types.CodeType:
    """The code object of a generated function, with the original's free variables free.

    Raises:
        SyntaxError, ValueError, MemoryError, RecursionError: the tree is no function of such
            parameters, or cannot be compiled.
    """
    made = _compiled(statement, filename, original)
    if _form(made) != _form(original):
        raise ValueError("a function of other parameters")
    return made


def _compiled(statement: ast.stmt, filename: str, original: types.CodeType) -> types.CodeType:
    free = sorted({*original.co_freevars, AG})
    module = ast.parse("def factory():\n    cells = None\n")
    body = module.body[0].body  # type: ignore[attr-defined]
    (cells,) = body[0].targets
    body[0].targets = [ast.copy_location(ast.Name(n, ast.Store()), cells) for n in free]
    if isinstance(statement, ast.FunctionDef):
        _strip(statement)
        statement.name = _FACTORY_NAME  # its own name must stay a global one
        body.append(statement)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Lambda):
        _strip_defaults(statement.value.args)
        body.append(ast.copy_location(ast.Return(statement.value), statement))
    else:
        raise ValueError("neither a function nor a lambda")
    outer = compile(module, filename, "exec", dont_inherit=True, flags=_future(original))
    inner = _inner(outer, "factory")
    made = _inner(inner, _FACTORY_NAME, "<lambda>")
    return made.replace(co_name=original.co_name, co_qualname=original.co_qualname)


def _inner(code: types.CodeType, *names: str) -> types.CodeType:
    """The code of a function that is defined in `code`."""
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name in names)


def _future(code: types.CodeType) -> int:
    known: list[int] = [getattr(__future__, n).compiler_flag for n in __future__.all_feature_names]
    return code.co_flags & sum(set(known)) & ~0x10  # 0x10: CO_NESTED, the flag of nested_scopes


def _strip(node: ast.FunctionDef) -> None:
    """Defaults and annotations are taken from the original, not evaluated again."""
    node.returns = None
    if hasattr(node, "type_params"):
        node.type_params = []  # a scope of their own; the body has them in cells
    _strip_defaults(node.args)
    a = node.args
    for argument in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg):
        if argument is not None:
            argument.annotation = None


def _strip_defaults(arguments: ast.arguments) -> None:
    arguments.defaults = []
    arguments.kw_defaults = [None] * len(arguments.kw_defaults)


def _form(code: types.CodeType) -> tuple[int, ...]:
    """How many parameters of which kinds there are: a call must lay them out alike."""
    variadic = code.co_flags & (0x4 | 0x8)  # CO_VARARGS, CO_VARKEYWORDS
    return code.co_posonlyargcount, code.co_argcount, code.co_kwonlyargcount, variadic
