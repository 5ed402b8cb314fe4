"""Strength reduction: powers with small constant exponents become multiplications.

    pow(x, 2) -> square(x)    pow(x, 3) -> x * square(x)    pow(x, -1) -> reciprocal(x)

At most 1.5 ULP from the exact power, where `pow` promises 2.
"""

from __future__ import annotations

from treadle.graph.ir import Graph, Node, Value
from treadle.graph.rewrite import Replacement, Rewriter, constant_of
from treadle.ops.elementwise.arithmetic import MULTIPLY
from treadle.ops.elementwise.powers import POW
from treadle.ops.elementwise.unary import RECIPROCAL, SQUARE


def reduce_powers(graph: Graph) -> bool:
    """Replace ``pow`` with a scalar constant exponent of 2, 3, 4 or -1."""
    return _Reducer(graph).run()


class _Reducer(Rewriter):
    def visit(self, node: Node) -> Replacement:
        if node.op is not POW or node.inputs[0].spec is not node.outputs[0].spec:
            return None
        exponent = constant_of(node.inputs[1])
        if exponent is None or exponent.size == 0 or (exponent != exponent.flat[0]).any():
            return None
        power = self.power(node.inputs[0], complex(exponent.flat[0]))
        return None if power is None else [power]

    def power(self, x: Value, exponent: complex) -> Value | None:
        if exponent == 2:
            return self.square(x)
        if exponent == 3:
            return self.emit(MULTIPLY, [x, self.square(x)], {})
        if exponent == 4:
            return self.square(self.square(x))
        if exponent == -1 and x.spec.dtype.is_floating:
            return self.emit(RECIPROCAL, [x], {})
        return None

    def square(self, x: Value) -> Value:
        return self.emit(SQUARE, [x], {})
