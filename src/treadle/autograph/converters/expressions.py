"""Expressions: and, or, not, conditional expressions, chained comparisons, calls, assert.

==========================  ======================================================
before                      after
==========================  ======================================================
``a and b``                 ``ag__.and_(lambda: a, lambda: b)``
``not a``                   ``ag__.not_(a)``
``a if c else b``           ``ag__.if_exp(c, lambda: a, lambda: b)``
``a < b < c``               ``ag__.and_(lambda: a < b, lambda: b < c)``
``f(x)``                    ``ag__.call(f)(x)`` where `f` may be the user's
``range(n)``, ``len(x)``    ``ag__.range(n)``, ``ag__.len(x)``
``a in b``                  ``ag__.in_(a, b)``
``assert c, m``             ``ag__.assert_stmt(c, lambda: m)``
``TABLE[i]``                ``ag__.get_item(TABLE, i)`` where `TABLE` may be an array or list
==========================  ======================================================
"""

from __future__ import annotations

from typing import Any

import gast

from treadle.autograph import build
from treadle.autograph.analysis.activity import writes
from treadle.autograph.analysis.evident import is_python_comprehension, is_python_test
from treadle.autograph.analysis.walking import walk
from treadle.autograph.build import operator, thunk
from treadle.autograph.converters import comprehensions
from treadle.autograph.resolution import Resolver

# Builtins with an operator of the same name that also takes tensors.
OVERLOADED = {
    "all", "any", "bool", "enumerate", "filter", "float", "int", "iter", "len", "list", "map",
    "max", "min", "range", "reversed", "sorted", "sum", "tuple", "zip",
}  # fmt: skip

_PAIRS = {"enumerate", "reversed", "zip"}  # Python's own where they are passed to a function


class Expressions(gast.NodeTransformer):  # type: ignore[misc]
    """Converts the expressions of one function; nested functions are converted on their own."""

    def __init__(self, resolver: Resolver, converted_locals: set[str], recursive: bool) -> None:
        self.resolver = resolver
        self.converted_locals = converted_locals
        self.recursive = recursive

    def visit_FunctionDef(self, node: Any) -> Any:
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        return node

    def visit_ClassDef(self, node: Any) -> Any:
        return node

    visit_AsyncFunctionDef = visit_ClassDef
    visit_JoinedStr = gast.NodeTransformer.generic_visit

    def visit_BoolOp(self, node: Any) -> Any:
        if is_python_test(node) or writes(node):
            return self.generic_visit(node)
        kind = "and_" if isinstance(node.op, gast.And) else "or_"
        parts = [thunk(self.visit(v)) for v in node.values]
        return gast.copy_location(operator(kind, *parts), node)

    def visit_UnaryOp(self, node: Any) -> Any:
        if isinstance(node.op, gast.Not) and not is_python_test(node):
            return gast.copy_location(operator("not_", self.visit(node.operand)), node)
        return self.generic_visit(node)

    def visit_IfExp(self, node: Any) -> Any:
        if is_python_test(node.test) or writes([node.body, node.orelse]):
            return self.generic_visit(node)
        branches = [thunk(self.visit(b)) for b in (node.body, node.orelse)]
        return gast.copy_location(operator("if_exp", self.visit(node.test), *branches), node)

    def visit_Compare(self, node: Any) -> Any:
        if is_python_test(node) or writes(node):
            return self.generic_visit(node)
        if len(node.ops) == 1:
            node = self.generic_visit(node)
            return gast.copy_location(
                _comparison(node.left, node.ops[0], node.comparators[0]), node
            )
        operands = [self.visit(v) for v in (node.left, *node.comparators)]
        simple = all(isinstance(v, gast.Name | gast.Constant) for v in operands[1:-1])
        names = [f"v{i}" for i in range(len(operands))]
        parts = operands if simple else [build.load(n) for n in names]
        pairs = zip(parts, node.ops, parts[1:], strict=False)
        tests = [thunk(_comparison(a, op, b)) for a, op, b in pairs]
        chain = operator("and_", *tests)
        if not simple:
            chain = gast.Call(thunk(chain, names), operands, [])
        return gast.copy_location(chain, node)

    def visit_Assert(self, node: Any) -> Any:
        if is_python_test(node.test):
            return self.generic_visit(node)
        args = [self.visit(node.test)] + ([thunk(self.visit(node.msg))] if node.msg else [])
        made = build.place(gast.Expr(operator("assert_stmt", *args)), node)
        made.trailing = getattr(node, "trailing", "")
        made.leading, made.closing = getattr(node, "leading", []), getattr(node, "closing", [])
        return made

    def visit_Subscript(self, node: Any) -> Any:
        array = getattr(node, "keyed", False) or self.resolver.may_be_indexed(node.value)
        node = self.generic_visit(node)
        if not array or not isinstance(node.ctx, gast.Load) or _is_fixed(node.slice):
            return node
        return gast.copy_location(operator("get_item", node.value, build.key(node.slice)), node)

    def visit_ListComp(self, node: Any) -> Any:
        evident = is_python_comprehension(node) and not getattr(node, "keyed", False)
        node = self.generic_visit(node)
        return node if evident else comprehensions.convert(node)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_Call(self, node: Any) -> Any:
        func = node.func
        name = self.resolver.builtin(func)
        overloaded = self._is_overloaded(node, name)
        if not overloaded:
            for argument in node.args:
                argument.passed_on = True
        node = self.generic_visit(node)
        if overloaded:
            node.func = gast.Attribute(build.load(build.AG), name, gast.Load())
        elif self.recursive and (getattr(node, "keyed", False) or not self._stays(func, name)):
            node.func = gast.copy_location(operator("call", node.func), node.func)
        return node

    def _is_overloaded(self, node: Any, name: str | None) -> bool:
        if name not in OVERLOADED or not node.args:
            return False
        passed_on = name in _PAIRS and getattr(node, "passed_on", False)
        return not passed_on and not all(map(_is_literal, node.args))

    def _stays(self, func: Any, builtin: str | None) -> bool:
        if builtin is not None or _is_operator(func):
            return True
        if isinstance(func, gast.Lambda):
            return True
        if isinstance(func, gast.Name) and func.id in self.converted_locals:
            return True
        return self.resolver.needs_no_conversion(func)


def _is_literal(node: Any) -> bool:
    match node:
        case gast.Constant():
            return True
        case gast.UnaryOp():
            return _is_literal(node.operand)
        case gast.List() | gast.Set() | gast.Tuple():
            return all(map(_is_literal, node.elts))
        case gast.Dict():
            return all(map(_is_literal, node.keys))
    return False


def _is_fixed(key: Any) -> bool:
    """An index without variables."""
    return not any(isinstance(n, gast.Name | gast.Call) for n in walk(key))


def _comparison(left: Any, op: Any, right: Any) -> Any:
    test = gast.Compare(left, [op], [right])
    if not isinstance(op, gast.In | gast.NotIn) or is_python_test(test):
        return test
    found = operator("in_", left, right)
    return found if isinstance(op, gast.In) else operator("not_", found)


def _is_operator(func: Any) -> bool:
    """Whether it is one of AutoGraph's operators, such as ``ag__.call``."""
    return isinstance(func, gast.Attribute) and (
        isinstance(func.value, gast.Name) and func.value.id == build.AG
    )
