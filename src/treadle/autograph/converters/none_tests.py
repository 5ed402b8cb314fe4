"""Comparisons with None that the program may have to decide.

==========================  ================================
before                      after
==========================  ================================
``x is None``               ``ag__.is_none(x)``
``x is not None``           ``not ag__.is_none(x)``
==========================  ================================

Only functions whose variables may be None in some runs, those of ``td.jit``, are converted so. To
others a variable is None or is not while they are traced.
"""

from __future__ import annotations

from typing import Any

import gast

from treadle.autograph.build import operator


class NoneTests(gast.NodeTransformer):  # type: ignore[misc]
    """Converts the comparisons of one function, and of those inside of it."""

    def visit_Compare(self, node: Any) -> Any:
        node = self.generic_visit(node)
        if len(node.ops) != 1 or not isinstance(node.ops[0], gast.Is | gast.IsNot):
            return node
        sides = [node.left, node.comparators[0]]
        others = [s for s in sides if not isinstance(s, gast.Constant)]
        if len(others) != 1 or not any(_is_none(s) for s in sides):
            return node
        found = gast.copy_location(operator("is_none", others[0]), node)
        if isinstance(node.ops[0], gast.Is):
            return found
        return gast.copy_location(gast.UnaryOp(gast.Not(), found), node)


def _is_none(node: Any) -> bool:
    return isinstance(node, gast.Constant) and node.value is None
