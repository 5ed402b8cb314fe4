"""Products of bfloat16 that the machine computes as they are, without conversions around them.

    cast(matmul(cast(%a, f32), cast(%b, f32)), bf16)   ->   matmul(%a, %b)

The pass `products` writes the left form, which every machine computes. Where conversions were
moved away from a product (out of a loop, say) it stays as it is.
"""

from __future__ import annotations

from treadle.core import dtypes
from treadle.graph.ir import Graph, Node, Value
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.elementwise.casting import CAST
from treadle.ops.linalg.matrices import MATMUL
from treadle.runtime.schedule.facts import Facts


def narrow_products(graph: Graph, facts: Facts) -> bool:
    """Rewrite the products for which the machine has a routine."""
    changed = _Narrower(graph, facts).run()
    if changed:
        eliminate_dead_code(graph)
    return changed


class _Narrower(Rewriter):
    def __init__(self, graph: Graph, facts: Facts) -> None:
        super().__init__(graph)
        self.facts = facts

    def visit(self, node: Node) -> Replacement:
        if node.op is not CAST or node.outputs[0].spec.dtype is not dtypes.bfloat16:
            return None
        wide = node.inputs[0].node
        if wide is None or wide.op is not MATMUL:
            return None
        factors = [_before_cast(v) for v in wide.inputs]
        narrow = [v for v in factors if v is not None]
        if len(narrow) < 2:
            return None
        product = Node(wide.op, narrow, wide.attrs, [node.outputs[0].spec], (), node.origin)
        if self.facts.routine_bytes(product) is None:
            return None
        self.place(product)
        return [product.outputs[0]]


def _before_cast(value: Value) -> Value | None:
    """The operand of the conversion that a value is, if it is bfloat16."""
    node = value.node
    if node is None or node.op is not CAST or value.spec.dtype is not dtypes.float32:
        return None
    source = node.inputs[0]
    return source if source.spec.dtype is dtypes.bfloat16 else None
