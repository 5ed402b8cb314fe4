"""Products and convolutions of 16-bit floats, and products of integers of 8 bits, that the machine
computes as they are, without conversions around them.

    cast(matmul(cast(%a, f32), cast(%b, f32)), bf16)   ->   matmul(%a, %b)
    matmul(cast(%a: i8, i32), cast(%b: u8, i32))       ->   byte_matmul(%a, %b)

The pass `products` writes the left form, which every machine computes. Where conversions were
moved away from a product (out of a loop, say) it stays as it is.
"""

from __future__ import annotations

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph, Node, Value
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.broadcasting import BROADCAST_TO
from treadle.ops.elementwise.casting import CAST
from treadle.ops.linalg.matrices import BYTE_MATMUL, MATMUL
from treadle.ops.lowering import Library
from treadle.ops.shaping.permuting import TRANSPOSE
from treadle.ops.shaping.reshaping import RESHAPE
from treadle.runtime.schedule.facts import Facts

_MOVES = (TRANSPOSE, RESHAPE, BROADCAST_TO)  # elements as they are, in other places


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
        if node.op is MATMUL:
            return self.of_bytes(node)
        return self.of_floats(node) if node.op is CAST else None

    def of_bytes(self, node: Node) -> Replacement:
        """A product of integers of 32 bits that had 8. As int32 its sums wrap around to the same
        bits as those of uint32."""
        dtype = node.outputs[0].spec.dtype
        if dtype not in (dtypes.int32, dtypes.uint32):
            return None
        moves: list[list[Node]] = [[], []]
        factors = [_of_8_bits(v, into) for v, into in zip(node.inputs, moves, strict=True)]
        found = [v for v in factors if v is not None]
        if len(found) < 2:
            return None
        bytes_ = [self.moved(v, nodes) for v, nodes in zip(found, moves, strict=True)]
        spec = TensorSpec(node.outputs[0].spec.dims, dtypes.int32)
        product = Node(BYTE_MATMUL, bytes_, node.attrs, [spec], (), node.origin)
        if self.facts.routine_bytes(product) is None:
            return None
        self.place(product)
        (result,) = product.outputs
        return [result if dtype is dtypes.int32 else self.emit(CAST, [result], {"dtype": dtype})]

    def moved(self, value: Value, nodes: list[Node]) -> Value:
        """What some nodes, the last one first, make of a value before its conversion."""
        for node in reversed(nodes):
            value = self.emit(node.op, [value], node.attrs)
        return value

    def of_floats(self, node: Node) -> Replacement:
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


def _of_8_bits(value: Value, moves: list[Node]) -> Value | None:
    """The operand of the conversion to 32 bits that a value is, if that has 8 bits. Below zero its
    bits as uint32 are those as int32.

    Args:
        moves: gets what moves elements between the conversion and the value, the last node first.
    """
    node = value.node
    while node is not None and node.op in _MOVES and len(node.inputs) == 1:
        moves.append(node)
        node = node.inputs[0].node
    if node is None or node.op is not CAST:
        return None
    source = node.inputs[0]
    return source if source.spec.dtype in (dtypes.int8, dtypes.uint8) else None


def _before_cast(value: Value, dtype: DType) -> Value | None:
    """The operand of the conversion that a value is, if it has that dtype."""
    node = value.node
    if node is None or node.op is not CAST or value.spec.dtype is not dtypes.float32:
        return None
    source = node.inputs[0]
    return source if source.spec.dtype is dtype else None
