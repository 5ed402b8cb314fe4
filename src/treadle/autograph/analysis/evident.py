"""Conditions and iterables that are plain Python's for all values of variables."""

from __future__ import annotations

import ast
from typing import Any

import gast

from treadle.autograph.unparsing import unparse

FEWEST = 6  # iterations of a Python loop that is rolled

_PREDICATES = {"isinstance", "issubclass", "hasattr", "callable"}
_IDENTITY = (gast.Is, gast.IsNot)
_HASHED = (gast.Constant, gast.JoinedStr, gast.Dict, gast.Set, gast.SetComp, gast.DictComp)


def is_python_test(node: Any) -> bool:
    """True for a condition that never is a tensor."""
    match node:
        case gast.Constant():
            return True
        case gast.UnaryOp(op=gast.Not()):
            return is_python_test(node.operand)
        case gast.BoolOp():
            return all(map(is_python_test, node.values))
        case gast.Call(func=gast.Name(id=name)):
            return name in _PREDICATES
        case gast.Compare():
            operands = [node.left, *node.comparators]
            return any(map(_is_none, operands)) or all(
                isinstance(op, _IDENTITY)
                or (isinstance(op, gast.In | gast.NotIn) and isinstance(right, _HASHED))
                for op, right in zip(node.ops, node.comparators, strict=True)
            )
    return False


def _is_none(node: Any) -> bool:
    return isinstance(node, gast.Constant) and node.value is None


def is_python_iterable(node: Any) -> bool:
    """True for an iterable that never is a tensor: literals and ranges of literals."""
    match node:
        case gast.Constant():
            return True
        case gast.Tuple() | gast.List() | gast.Set() | gast.Dict():
            return True
        case gast.ListComp() | gast.SetComp() | gast.DictComp() | gast.GeneratorExp():
            return is_python_comprehension(node)
        case gast.Call(func=gast.Name(id="range"), args=args):
            return all(map(_is_literal, args))
        case gast.Call(func=gast.Name(id="enumerate" | "zip" | "reversed"), args=args):
            return bool(args) and all(map(is_python_iterable, args))
        case gast.Call(func=gast.Attribute(attr="items" | "keys"), args=[]):
            return not getattr(node, "keyed", False)  # of a dict that may be one of the graph
    return False


def may_be_rolled(node: Any) -> bool:
    """True for a Python iterable that is long enough to be a loop of the graph."""
    size = _length(node)
    return size is not None and size >= FEWEST


def _length(node: Any) -> int | None:
    """How many items ranges, displays, and `enumerate`, `zip` and `reversed` of them have; None
    for other iterables."""
    match node:
        case gast.Tuple(elts=items) | gast.List(elts=items):
            return None if any(isinstance(e, gast.Starred) for e in items) else len(items)
        case gast.Call(func=gast.Name(id="range"), args=args) if args and not node.keywords:
            try:
                return len(range(*(ast.literal_eval(unparse(a)) for a in args)))
            except (TypeError, ValueError):
                return None
        case gast.Call(func=gast.Name(id="enumerate" | "zip" | "reversed"), args=args):
            sizes = [size for size in map(_length, args) if size is not None]
            return min(sizes) if sizes else None
    return None


def is_python_comprehension(node: Any) -> bool:
    """True for a comprehension whose iterables and conditions never are tensors."""
    return all(
        is_python_iterable(g.iter) and all(map(is_python_test, g.ifs)) for g in node.generators
    )


def _is_literal(node: Any) -> bool:
    if isinstance(node, gast.UnaryOp):
        return _is_literal(node.operand)
    return isinstance(node, gast.Constant)
