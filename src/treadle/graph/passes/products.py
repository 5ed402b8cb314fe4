"""Products in forms that the runtime's library computes.

    matmul(%a: bf16, %b: bf16)         ->  cast(matmul(cast(%a, f32), cast(%b, f32)), bf16)
    byte_matmul(%a: i8, %b: u8)        ->  matmul(cast(%a, i32), cast(%b, i32))
    matmul(%a: [4, 1, 2, 3], %b: [5, 3, 6])  ->  with both broadcast to 4 x 5 matrices

The library has tiles for 32 and 64 bits. Conversions to them are elementwise nodes, which fuse with
their neighbours, are merged and leave loops; 16-bit floats are added up in float32 and rounded
once, as the eager ops do, and small integers wrap around in the end as they do on the way.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, product
from treadle.graph.ir import Graph, Node, Value
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.broadcasting import BROADCAST_TO
from treadle.ops.elementwise.casting import CAST
from treadle.ops.linalg.matrices import BYTE_MATMUL, MATMUL
from treadle.ops.lowering import Library

_WIDER = {
    dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32,
    dtypes.int8: dtypes.int32, dtypes.int16: dtypes.int32,
    dtypes.uint8: dtypes.uint32, dtypes.uint16: dtypes.uint32,
}  # fmt: skip


def prepare_products(graph: Graph) -> bool:
    """Rewrite products and convolutions of narrow types, and products of mixed batches."""
    return _Preparer(graph).run()


def rows_joined(node: Node) -> tuple[Dim, Dim] | None:
    """The batch and the rows of a matmul whose matrices of A are joined where they meet the same
    matrix of B: [4, 5, 2, 3] by [4, 1, 3, 6] is a batch of 4 with 10 rows."""
    a, b = (v.spec.dims for v in node.inputs)
    if node.attrs["transpose_a"]:
        return None
    own = b[:-2]
    while own and own[-1] == 1:
        own = own[:-1]
    if own and (len(a) != len(b) or own != a[: len(own)]):
        return None
    return product(own), product(a[len(own) : -1])


class _Preparer(Rewriter):
    def visit(self, node: Node) -> Replacement:
        if not isinstance(node.op.lower, Library):
            return None
        if node.op is BYTE_MATMUL:
            wide = [self.emit(CAST, [v], {"dtype": dtypes.int32}) for v in node.inputs]
            return [self.emit(MATMUL, wide, node.attrs)]
        wider = _WIDER.get(node.outputs[0].spec.dtype)
        if wider is not None:
            return [self.widened(node, wider)]
        if node.op is MATMUL:
            found = self.batches_filled(node)
            return None if found is None else [found]
        return None

    def widened(self, node: Node, wider: DType) -> Value:
        inputs = [self.emit(CAST, [v], {"dtype": wider}) for v in node.inputs]
        wide = self.emit(node.op, inputs, node.attrs)
        return self.emit(CAST, [wide], {"dtype": node.outputs[0].spec.dtype})

    def batches_filled(self, node: Node) -> Value | None:
        """Operands that lack matrices, where one matrix does not serve all, get copies of them."""
        batch = node.outputs[0].spec.dims[:-2]
        if (
            rows_joined(node)
            or product(batch) == 1
            or all(map(_has_stride, node.inputs, [batch] * 2))
        ):
            return None
        inputs = [
            v if _has_stride(v, batch) else self.filled(v, (*batch, *v.spec.dims[-2:]))
            for v in node.inputs
        ]
        return self.emit(node.op, inputs, node.attrs)

    def filled(self, value: Value, dims: tuple[Dim, ...]) -> Value:
        return self.emit(BROADCAST_TO, [value], {"shape": dims})


def _has_stride(value: Value, batch: Sequence[Dim]) -> bool:
    """Whether the value has a matrix for each of the batch, or one for all."""
    own = value.spec.dims[:-2]
    return own == batch or all(d == 1 for d in own)
