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
``assert c, m``             ``ag__.assert_stmt(c, lambda: m)``
==========================  ======================================================
"""

from __future__ import annotations

from typing import Any

import gast

from treadle.autograph import build
from treadle.autograph.analysis.activity import COMPREHENSIONS, writes
from treadle.autograph.analysis.evident import is_python_test
from treadle.autograph.build import operator, thunk
from treadle.autograph.resolution import Resolver

# Builtins with an operator of the same name that also takes tensors.
OVERLOADED = {
    "all", "any", "enumerate", "filter", "float", "int", "len", "map", "max", "min",
    "range", "reversed", "sorted", "sum", "zip",
}  # fmt: skip

_ITERATORS = {"enumerate", "range", "reversed", "zip"}  # only where a `for` iterates them


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
        if len(node.ops) == 1 or is_python_test(node) or writes(node):
            return self.generic_visit(node)
        operands = [self.visit(v) for v in (node.left, *node.comparators)]
        simple = all(isinstance(v, gast.Name | gast.Constant) for v in operands[1:-1])
        names = [f"v{i}" for i in range(len(operands))]
        parts = operands if simple else [build.load(n) for n in names]
        pairs = zip(parts, node.ops, parts[1:], strict=False)
        tests = [thunk(gast.Compare(a, [op], [b])) for a, op, b in pairs]
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

    def visit_For(self, node: Any) -> Any:
        self._mark_iterable(node.iter)
        return self.generic_visit(node)

    def _mark_iterable(self, node: Any) -> None:
        if isinstance(node, gast.Call):
            node.iterated = True
            for argument in node.args:
                self._mark_iterable(argument)

    def visit_Call(self, node: Any) -> Any:
        func = node.func
        name = self.resolver.builtin(func)
        node = self.generic_visit(node)
        overloaded = name in OVERLOADED and (name not in _ITERATORS or hasattr(node, "iterated"))
        if overloaded and node.args and not all(map(_is_literal, node.args)):
            node.func = gast.Attribute(build.load(build.AG), name, gast.Load())
        elif self.recursive and not self._stays(func, name):
            node.func = gast.copy_location(operator("call", node.func), node.func)
        return node

    def _stays(self, func: Any, builtin: str | None) -> bool:
        if builtin is not None or _is_operator(func):
            return True
        if isinstance(func, gast.Lambda):
            return True
        if isinstance(func, gast.Name) and func.id in self.converted_locals:
            return True
        return self.resolver.needs_no_conversion(func)


def _is_literal(node: Any) -> bool:
    if isinstance(node, gast.UnaryOp):
        return _is_literal(node.operand)
    return isinstance(node, (gast.Constant, gast.List, gast.Set, gast.Dict, *COMPREHENSIONS))


def _is_operator(func: Any) -> bool:
    return isinstance(func, gast.Attribute) and (
        isinstance(func.value, gast.Name) and func.value.id == build.AG
    )
