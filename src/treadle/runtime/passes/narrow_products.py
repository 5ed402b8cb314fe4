"""Products and convolutions of 16-bit floats that the machine computes as they are, without
conversions around them.

    cast(matmul(cast(%a, f32), cast(%b, f32)), bf16)   ->   matmul(%a, %b)

The pass `products` writes the left form, which every machine computes. Where conversions were
moved away from a product (out of a loop, say) it stays as it is.
"""

from __future__ import annotations

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.graph.ir import Graph, Node, Value
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.elementwise.casting import CAST
from treadle.ops.lowering import Library
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
        if node.op is not CAST:
            return None
        dtype = node.outputs[0].spec.dtype
        if dtype not in (dtypes.bfloat16, dtypes.float16):
            return None
        wide = node.inputs[0].node
        if wide is None or not isinstance(wide.op.lower, Library):
            return None
        factors = [_before_cast(v, dtype) for v in wide.inputs]
        narrow = [v for v in factors if v is not None]
        if len(narrow) < 2:
            return None
        product = Node(wide.op, narrow, wide.attrs, [node.outputs[0].spec], (), node.origin)
        if self.facts.routine_bytes(product) is None:
            return None
        self.place(product)
        return [product.outputs[0]]


def _before_cast(value: Value, dtype: DType) -> Value | None:
    """The operand of the conversion that a value is, if it has that dtype."""
    node = value.node
    if node is None or node.op is not CAST or value.spec.dtype is not dtypes.float32:
        return None
    source = node.inputs[0]
    return source if source.spec.dtype is dtype else None
