"""Comparisons, items at fixed positions and f-strings: Python finds them, or the program has to.

==========================  ================================
before                      after
==========================  ================================
``x is None``               ``ag__.is_none(x)``
``x is not None``           ``not ag__.is_none(x)``
``x is True``               ``ag__.is_truth(x, True)``
``p == q``                  ``ag__.equal(p, q)``
``p != (i, j)``             ``ag__.unequal(p, (i, j))``
``p < q``                   ``ag__.ordered(p, "<", q)``
``n in {1, 2}``             ``ag__.in_(n, {1, 2})``
``a is b``                  ``ag__.is_same(a, b)``, of ``type(a)`` too
``a[-1]``, ``a[1:]``        ``ag__.get_item(a, -1)``, ``ag__.get_item(a, slice(1, None, None))``
``f"n={n:3d}"``             ``ag__.text("n=", (n, "", "3d"))``
``{a, b}``                  ``ag__.set_display(a, b)``
==========================  ================================

Only functions whose variables may be None in some runs, those of ``td.jit``, are converted so. To
others a variable is None or is not while they are traced. There alone lists become lists of the
graph, which other names than the one that changed it find by these operators, and lists of Python's
have elements that only the run knows.
"""

from __future__ import annotations

from typing import Any

import gast

from treadle.autograph.build import constant, key, operator

# What holds keys, or is a text: only Python's own values are looked up there without an operator.
_HASHED = (gast.Constant, gast.JoinedStr, gast.Dict, gast.Set, gast.SetComp, gast.DictComp)
_OPERATORS = {
    gast.Eq: ("equal",), gast.NotEq: ("unequal",), gast.Lt: ("ordered", "<"),
    gast.LtE: ("ordered", "<="), gast.Gt: ("ordered", ">"), gast.GtE: ("ordered", ">="),
}  # fmt: skip


class Comparisons(gast.NodeTransformer):  # type: ignore[misc]
    """Converts the comparisons of one function, and of those inside of it."""

    def visit_Compare(self, node: Any) -> Any:
        node = self.generic_visit(node)
        if len(node.ops) != 1:
            return node
        op, sides = node.ops[0], [node.left, node.comparators[0]]
        if isinstance(op, gast.Is | gast.IsNot) and sum(map(_is_none, sides)) == 1:
            (other,) = (s for s in sides if not _is_none(s))
            found = operator("is_none", other)
        elif isinstance(op, gast.Is | gast.IsNot) and sum(map(_is_truth, sides)) == 1:
            found = operator("is_truth", *sorted(sides, key=_is_truth))
        elif isinstance(op, gast.Is | gast.IsNot) and all(map(_is_named, sides)):
            found = operator("is_same", *sides)
        elif type(op) in _OPERATORS and _are_compared(op, sides):
            name, *symbol = _OPERATORS[type(op)]
            found = operator(name, sides[0], *map(constant, symbol), sides[1])
            return gast.copy_location(found, node)
        elif isinstance(op, gast.In | gast.NotIn) and isinstance(sides[1], _HASHED):
            found = operator("in_", *sides)
        else:
            return node
        gast.copy_location(found, node)
        if isinstance(op, gast.Is | gast.In):
            return found
        return gast.copy_location(gast.UnaryOp(gast.Not(), found), node)

    def visit_Set(self, node: Any) -> Any:
        node = self.generic_visit(node)
        if all(isinstance(e, gast.Constant) for e in node.elts):
            return node
        if any(isinstance(e, gast.Starred) for e in node.elts):
            return node
        return gast.copy_location(operator("set_display", *node.elts), node)

    def visit_JoinedStr(self, node: Any) -> Any:
        node = self.generic_visit(node)
        if not any(isinstance(v, gast.FormattedValue) for v in node.values):
            return node
        return gast.copy_location(operator("text", *map(_part, node.values)), node)

    def visit_Attribute(self, node: Any) -> Any:
        return self._of_item(node)

    def _of_item(self, node: Any) -> Any:
        """A part of ``a[0]``, which may be changed there: ``a[0][1] = x``, ``a[0].append(x)``."""
        if isinstance(node.value, gast.Subscript):
            node.value.is_owner = True
        return self.generic_visit(node)

    def visit_Subscript(self, node: Any) -> Any:
        node = self._of_item(node)
        if getattr(node, "is_owner", False):
            return node
        of_variable = isinstance(node.value, gast.Name) and isinstance(node.ctx, gast.Load)
        if not of_variable or not _is_position(node.slice):
            return node
        return gast.copy_location(operator("get_item", node.value, key(node.slice)), node)


def _is_position(node: Any) -> bool:
    """Whether an index is an int that is written down, or a slice of such."""
    if isinstance(node, gast.Slice):
        parts = node.lower, node.upper, node.step
        return all(part is None or _is_position(part) for part in parts)
    if isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.USub):
        node = node.operand
    return isinstance(node, gast.Constant) and type(node.value) is int


def _is_none(node: Any) -> bool:
    return isinstance(node, gast.Constant) and node.value is None


def _part(node: Any) -> Any:
    """A part of an f-string: a text, or a value with what it is formatted by."""
    if not isinstance(node, gast.FormattedValue):
        return node
    kind = chr(node.conversion) if node.conversion > 0 else ""
    spec = constant("") if node.format_spec is None else node.format_spec
    return gast.Tuple([node.value, constant(kind), spec], gast.Load())


def _is_named(node: Any) -> bool:
    """A name, or the type of something."""
    if isinstance(node, gast.Call):
        node = node.func
        return isinstance(node, gast.Name) and node.id == "type"
    return isinstance(node, gast.Name)


def _is_truth(node: Any) -> bool:
    return isinstance(node, gast.Constant) and isinstance(node.value, bool)


def _are_compared(op: Any, sides: list[Any]) -> bool:
    """Whether both sides may be lists or tuples, or one is asked for a value and may be None."""
    may_be = [_may_be_list(side) for side in sides]
    if all(may_be):
        return True
    is_value = any(isinstance(side, gast.Constant) for side in sides)
    return isinstance(op, gast.Eq | gast.NotEq) and any(may_be) and is_value


def _may_be_list(node: Any) -> bool:
    """Whether an expression may give a list or tuple."""
    if isinstance(node, gast.BinOp):
        return isinstance(node.op, gast.Add | gast.Mult) and any(
            map(_may_be_list, (node.left, node.right))
        )
    return isinstance(
        node, gast.Name | gast.Call | gast.Attribute | gast.Subscript | gast.List | gast.Tuple
        | gast.ListComp | gast.IfExp,
    )  # fmt: skip
