"""What Python itself may raise in a ``try`` becomes a ``raise`` that a condition decides.

Before::

    try:
        y = a / b
    except ZeroDivisionError:
        y = 0.0

After::

    try:
        if ag__.divides_by_zero(b):
            raise ZeroDivisionError("division by zero")
        y = a / b
    except ZeroDivisionError:
        y = 0.0

Only the program knows `b`: no handler can see an error in the trace. The ``raise`` becomes a jump
to the handler (`caught`). This is done for divisions, functions of ``math`` and items in simple
statements, where operands are names, constants and arithmetic of them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import gast

from treadle.autograph.analysis.activity import FUNCTIONS
from treadle.autograph.analysis.jumps import blocks
from treadle.autograph.analysis.walking import walk
from treadle.autograph.build import constant, load, operator, place
from treadle.autograph.converters.caught import takes

_SIMPLE = (gast.Assign, gast.AugAssign, gast.AnnAssign, gast.Return, gast.Expr)
_DIVISIONS = (gast.Div, gast.FloorDiv, gast.Mod)
_DOMAIN = "sqrt log log2 log10 log1p acos asin acosh atanh sin cos tan fmod pow int"
_RANGE = "exp expm1 sinh cosh int"
_REFUSING = {"ValueError": frozenset(_DOMAIN.split()), "OverflowError": frozenset(_RANGE.split())}
_PURE = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "round"})
_LATER = (gast.IfExp, gast.BoolOp, gast.Lambda, gast.ListComp, gast.SetComp, gast.DictComp,
          gast.GeneratorExp)  # fmt: skip
_OPERANDS = (gast.Name, gast.Constant, gast.BinOp, gast.UnaryOp, gast.Attribute, gast.Subscript,
             gast.Tuple, gast.operator, gast.unaryop, gast.expr_context)  # fmt: skip


def write_raises(root: Any) -> None:
    """Write the ``raise`` statements into the bodies of the ``try`` statements in a tree."""
    for node in walk(root):
        if isinstance(node, gast.Try) and node.handlers:
            _block(node.body, node.handlers)


def _block(body: list[Any], handlers: list[Any]) -> None:
    out: list[Any] = []
    for node in body:
        if isinstance(node, _SIMPLE):
            out += _raises(node, handlers)
        elif not isinstance(node, (*FUNCTIONS, gast.ClassDef, gast.Try)):
            for block in blocks(node):
                _block(block, handlers)
        out.append(node)
    body[:] = out


def _raises(statement: Any, handlers: list[Any]) -> Iterator[Any]:
    """The conditions under which a statement raises what a handler catches."""
    for found in _evaluated(statement):
        for test, error, *args in _failures(found):
            if any(_takes(h, error) for h in handlers):
                raised = gast.Raise(gast.Call(load(error), args, []), None)
                yield place(gast.If(test, [place(raised, statement)], []), statement)


def _takes(handler: Any, error: str) -> bool:
    kind = handler.type
    return any(takes(k, error) for k in (kind.elts if isinstance(kind, gast.Tuple) else [kind]))


def _evaluated(node: Any) -> Iterator[Any]:
    """The expressions that a statement evaluates whatever their values are, inner ones first."""
    for field in gast.iter_child_nodes(node):
        if not isinstance(field, _LATER):
            yield from _evaluated(field)
    yield node


def _failures(node: Any) -> Iterator[tuple[Any, ...]]:
    """Conditions, each with the name and the arguments of the exception that Python raises."""
    if isinstance(node, gast.BinOp | gast.AugAssign) and isinstance(node.op, _DIVISIONS):
        divisor = node.right if isinstance(node, gast.BinOp) else node.value
        if _is_operand(divisor) and not isinstance(divisor, gast.Constant):
            test = operator("divides_by_zero", copy.deepcopy(divisor))
            dividend = node.left if isinstance(node, gast.BinOp) else node.target
            other = dividend if _is_operand(dividend) else divisor
            pair = (_reading(copy.deepcopy(part)) for part in (other, divisor))
            name = type(node.op).__name__.lower()
            yield test, "ZeroDivisionError", operator("refusal_of", constant(name), *pair)
    elif isinstance(node, gast.Call) and not node.keywords and all(map(_is_operand, node.args)):
        name = _function(node.func)
        for error, names in _REFUSING.items():
            if name in names:
                told = constant(name), constant(error), *copy.deepcopy(node.args)
                text = operator("refusal_of", *copy.deepcopy(told))
                yield operator("refuses", *told), error, text
    item = node.target if isinstance(node, gast.AugAssign) else node
    if isinstance(item, gast.Subscript) and (item is not node or isinstance(node.ctx, gast.Load)):
        parts = item.value, item.slice
        if all(map(_is_operand, parts)) and not isinstance(item.slice, gast.Constant):
            held, key = map(copy.deepcopy, parts)
            is_read = item is node and not isinstance(node, gast.AugAssign)
            text = operator("lacking_of", copy.deepcopy(held), constant(is_read))
            yield operator("lacks_position", held, key), "IndexError", text
            yield operator("lacks_key", held, key), "KeyError", copy.deepcopy(key)


def _reading(node: Any) -> Any:
    """An expression that may be one that is assigned, to read it."""
    if hasattr(node, "ctx"):
        node.ctx = gast.Load()
    return node


def _function(node: Any) -> str:
    """The name of a function of `math`, or of one of Python's own."""
    if isinstance(node, gast.Attribute) and isinstance(node.value, gast.Name):
        return str(node.attr) if node.value.id == "math" else ""
    return "int" if isinstance(node, gast.Name) and node.id == "int" else ""


def _is_operand(node: Any) -> bool:
    """Whether evaluating an expression once more changes nothing."""
    return all(
        isinstance(n, _OPERANDS)
        or (isinstance(n, gast.Call) and isinstance(n.func, gast.Name) and n.func.id in _PURE)
        for n in walk(node)
    )
