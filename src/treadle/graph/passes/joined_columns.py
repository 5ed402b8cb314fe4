"""What is computed from the columns of a product is computed before they are split into groups.

    add(reshape(matmul(%x, %w): [8, 10], [8, 2, 5]), %b: [2, 5])
      ->  reshape(add(matmul(%x, %w), reshape(%b, [10])), [8, 2, 5])

So do the heads of attention, whose kernels have two axes of columns. The nodes then run over the
same dims as the product, and can be its epilogue; the reshape behind them moves no elements. A node
that only scales the product stays, as the rate times the gradient of a weight: it belongs to the
update of the weight, which has the weight's dims.
"""

from __future__ import annotations

from treadle.core.shapes import product
from treadle.graph.ir import Graph, Node, Value
from treadle.graph.passes.broadcasts import is_elementwise
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.shaping.reshaping import RESHAPE


def join_columns(graph: Graph) -> bool:
    """Move elementwise nodes before reshapes that split the columns of products."""
    return _Joiner(graph).run()


class _Joiner(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.moved: set[Value] = set()  # what was computed before a reshape

    def visit(self, node: Node) -> Replacement:
        if not is_elementwise(node):
            return None
        split = next((v for v in node.inputs if self._is_split(v)), None)
        if split is None or split.spec.dims != node.outputs[0].spec.dims:
            return None
        assert split.node is not None
        whole = split.node.inputs[0]
        groups = split.spec.dims[whole.spec.rank - 1 :]
        others = [v for v in node.inputs if v is not split]
        if any(v.spec.rank and v.spec.dims != groups for v in others):
            return None
        if whole not in self.moved and not any(v.spec.rank for v in others):
            return None
        columns = {"shape": (whole.spec.dims[-1],)}
        operands = [
            whole if v is split else self.emit(RESHAPE, [v], columns) if v.spec.rank else v
            for v in node.inputs
        ]
        found = self.emit(node.op, operands, node.attrs)
        self.moved.add(found)
        return [self.emit(RESHAPE, [found], {"shape": node.outputs[0].spec.dims})]

    def _is_split(self, value: Value) -> bool:
        """Whether a value is a product with its columns in groups, or computed from one."""
        node = value.node
        if node is None or node.op is not RESHAPE:
            return False
        whole = node.inputs[0]
        if whole not in self.moved and (whole.node is None or whole.node.op is not MATMUL):
            return False
        rank, dims = whole.spec.rank, value.spec.dims
        return (
            len(dims) > rank
            and dims[: rank - 1] == whole.spec.dims[:-1]
            and product(dims[rank - 1 :]) == whole.spec.dims[-1]
        )
