"""Comparisons of magnitudes with a number, as comparisons of squares.

    %m = complex_abs(%x, %y); %c = less(%m, 2.0)  ->  %c = less(%x * %x + %y * %y, 4.0)

The square that a kernel compares with is chosen so that the answer is that of the rounded root
(`complex_functions.magnitude`). Escape-time loops take no root then.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treadle.graph.ir import Graph, Node, Value
from treadle.graph.rewrite import Replacement, Rewriter, constant_of
from treadle.ops.complex_parts import MAGNITUDE
from treadle.ops.elementwise.arithmetic import ADD, MULTIPLY
from treadle.ops.elementwise.comparison import COMPARISONS
from treadle.ops.elementwise.complex_functions import SCALE_LIMITS
from treadle.ops.elementwise.logic import LOGICAL_OR
from treadle.ops.elementwise.unary import IS_INF
from treadle.ops.properties import Relation


def compare_squares(graph: Graph) -> bool:
    """Compare squares where a magnitude is compared with a constant."""
    return _Comparisons(graph).run()


class _Comparisons(Rewriter):
    def visit(self, node: Node) -> Replacement:
        relation = node.op.relation
        if relation is None or not relation.is_order:
            return None
        left, right = node.inputs
        found = self.square(relation, left, right)
        found = found or self.square(relation.mirrored, right, left)
        return None if found is None else [found]

    def square(self, relation: Relation, size: Value, bound: Value) -> Value | None:
        """The comparison of squares, if `size` is a magnitude and `bound` a constant."""
        number, made_by = constant_of(bound), size.node
        if made_by is None or made_by.op is not MAGNITUDE or number is None:
            return None
        if number.size != 1 or number.ndim > size.spec.rank or not _is_moderate(number):
            return None
        x, y = made_by.inputs
        return self.compared(relation, x, y, number)

    def compared(self, relation: Relation, x: Value, y: Value, bound: Any) -> Value:
        squares = [self.emit(MULTIPLY, [part, part], {}) for part in (x, y)]
        total = self.emit(ADD, squares, {})
        limit = self.constant(_square_for(relation, bound))
        found = self.emit(COMPARISONS[relation], [total, limit], {})
        if relation.is_less:
            return found
        # An infinite part makes the magnitude infinite, even where the other part is NaN.
        for part in (x, y):
            infinite = self.emit(IS_INF, [part], {})
            found = self.emit(LOGICAL_OR, [found, infinite], {})
        return found


def _is_moderate(bound: Any) -> bool:
    """Whether squares near the bound's square are neither infinite nor denormal."""
    limit = 2.0 ** SCALE_LIMITS[bound.dtype.itemsize]
    return bool(1 / limit < bound.flat[0] < limit)


def _square_for(relation: Relation, bound: Any) -> Any:
    """The number with which to compare squares: the largest whose root is <= the bound where that
    decides (``<=``, ``>``), else the smallest whose root is >= the bound."""
    up, down = bound.dtype.type(math.inf), bound.dtype.type(-math.inf)
    square = bound * bound
    if relation in (Relation.LESS_EQUAL, Relation.GREATER):
        while np.sqrt(square) <= bound:
            square = np.nextafter(square, up)
        while np.sqrt(square) > bound:
            square = np.nextafter(square, down)
    else:
        while np.sqrt(square) >= bound:
            square = np.nextafter(square, down)
        while np.sqrt(square) < bound:
            square = np.nextafter(square, up)
    return square
