"""Products of flattened rows have the shape that their rows are given back.

    reshape(matmul(%a: [8 * 5, 2], %w: [2, 3]), [8, 5, 3])
      ->  matmul(reshape(%a, [8, 5, 2]), %w)

The reshape moves to the other side of the product, where it usually meets the one that flattened
the rows: so do dense layers over sequences. The nodes behind it then run over the same dims as the
product, and can be its epilogue.
"""

from __future__ import annotations

from treadle.core.shapes import product
from treadle.graph.ir import Graph, Node, Value, uses
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.shaping.reshaping import RESHAPE


def unflatten_rows(graph: Graph) -> bool:
    """Rewrite reshapes of the rows of products that nothing else reads."""
    return _Unflattener(graph).run()


class _Unflattener(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.uses = uses(graph)

    def visit(self, node: Node) -> Replacement:
        if node.op is not RESHAPE:
            return None
        rows, dims = node.inputs[0], node.outputs[0].spec.dims
        if not self.is_plain_product(rows) or len(dims) < 3 or dims[-1] != rows.spec.dims[-1]:
            return None
        if product(dims[:-1]) != rows.spec.dims[0]:  # as of rows without elements
            return None
        assert rows.node is not None
        a, b = rows.node.inputs
        shaped = self.emit(RESHAPE, [a], {"shape": (*dims[:-1], a.spec.dims[-1])})
        return [self.emit(MATMUL, [shaped, b], rows.node.attrs)]

    def is_plain_product(self, value: Value) -> bool:
        """Whether a value is the product of two matrices, for one reader."""
        node = value.node
        return (
            node is not None
            and node.op is MATMUL
            and all(v.spec.rank == 2 for v in node.inputs)
            and not node.attrs["transpose_a"]
            and self.uses.get(value, 0) == 1
        )
