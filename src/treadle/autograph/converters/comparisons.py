"""Comparisons that Python decides itself and that the program may have to decide.

==========================  ================================
before                      after
==========================  ================================
``x is None``               ``ag__.is_none(x)``
``x is not None``           ``not ag__.is_none(x)``
``x is True``               ``ag__.is_truth(x, True)``
``p == (i, j)``             ``ag__.equal(p, (i, j))``
``p != (i, j)``             ``not ag__.equal(p, (i, j))``
==========================  ================================

Only functions whose variables may be None in some runs, those of ``td.jit``, are converted so. To
others a variable is None or is not while they are traced.
"""

from __future__ import annotations

from typing import Any

import gast

from treadle.autograph.build import operator


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
        elif isinstance(op, gast.Eq | gast.NotEq) and any(map(_is_tuple, sides)):
            found = operator("equal", *sides)
        else:
            return node
        gast.copy_location(found, node)
        if isinstance(op, gast.Is | gast.Eq):
            return found
        return gast.copy_location(gast.UnaryOp(gast.Not(), found), node)


def _is_none(node: Any) -> bool:
    return isinstance(node, gast.Constant) and node.value is None


def _is_truth(node: Any) -> bool:
    return isinstance(node, gast.Constant) and isinstance(node.value, bool)


def _is_tuple(node: Any) -> bool:
    """Whether an expression is the display of a tuple of several parts."""
    return isinstance(node, gast.Tuple) and len(node.elts) > 1
