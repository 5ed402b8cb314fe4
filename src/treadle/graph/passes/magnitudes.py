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
from treadle.ops.complex_functions import SCALE_LIMITS
from treadle.ops.registry import OPS

_TURNED = {
    "less": "greater", "less_equal": "greater_equal",
    "greater": "less", "greater_equal": "less_equal",
}  # fmt: skip


def compare_squares(graph: Graph) -> bool:
    """Compare squares where a magnitude is compared with a constant."""
    return _Comparisons(graph).run()


class _Comparisons(Rewriter):
    def visit(self, node: Node) -> Replacement:
        if node.op.name not in _TURNED:
            return None
        left, right = node.inputs
        found = self.square(node.op.name, left, right)
        found = found or self.square(_TURNED[node.op.name], right, left)
        return None if found is None else [found]

    def square(self, name: str, size: Value, bound: Value) -> Value | None:
        """The comparison of squares, if `size` is a magnitude and `bound` a constant."""
        number, made_by = constant_of(bound), size.node
        if made_by is None or made_by.op.name != "complex_abs" or number is None:
            return None
        if number.size != 1 or number.ndim > size.spec.rank or not _is_moderate(number):
            return None
        x, y = made_by.inputs
        return self.compared(name, x, y, number)

    def compared(self, name: str, x: Value, y: Value, bound: Any) -> Value:
        squares = [self.binary("multiply", part, part) for part in (x, y)]
        total = self.binary("add", *squares)
        found = self.binary(name, total, self.constant(_square_for(name, bound)))
        if name in ("less", "less_equal"):
            return found
        # An infinite part makes the magnitude infinite, whatever the other is.
        for part in (x, y):
            infinite = self.emit(OPS["is_inf"], [part], {})
            found = self.binary("logical_or", found, infinite)
        return found

    def binary(self, name: str, a: Value, b: Value) -> Value:
        return self.emit(OPS[name], [a, b], {})


def _is_moderate(bound: Any) -> bool:
    """Whether squares near that of the bound are neither infinite nor denormal."""
    limit = 2.0 ** SCALE_LIMITS[bound.dtype.itemsize]
    return bool(1 / limit < bound.flat[0] < limit)


def _square_for(name: str, bound: Any) -> Any:
    """The number with which to compare squares: the largest whose root is <= the bound where that
    decides (`less_equal`, `greater`), else the smallest whose root is >= the bound."""
    up, down = bound.dtype.type(math.inf), bound.dtype.type(-math.inf)
    square = bound * bound
    if name in ("less_equal", "greater"):
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
