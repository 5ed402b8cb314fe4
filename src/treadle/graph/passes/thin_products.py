"""Products with a vector of a size that a loop decides, as sums of products.

    %y = matmul(%a, %v)   a: f64[m, k], v: f64[k, 1]   ->   reduce_sum(multiply(%a, %v'), axis=1)

The routine for products shares its work among threads and is fitted to matrices that are large
enough for that. A row of a triangular factor takes less time than the sharing: one kernel computes
its product, together with the nodes that use it.
"""

from __future__ import annotations

from treadle.core.dtypes import DType
from treadle.core.shapes import Dim
from treadle.graph.ir import Graph, Node, Value
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.elementwise.arithmetic import MULTIPLY
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.reductions.reduction import REDUCE_SUM
from treadle.ops.shaping.reshaping import RESHAPE


def write_thin_products_out(graph: Graph) -> bool:
    """Write products of one row or one column, of sizes that symbols of loops give, as sums."""
    known = {s for p in graph.params for s in p.spec.symbols()}
    return _Thin(graph, known).run()


class _Thin(Rewriter):
    def __init__(self, graph: Graph, known: set[str]) -> None:
        super().__init__(graph)
        self.known = known  # on entry

    def visit(self, node: Node) -> Replacement:
        if node.op is not MATMUL or not _is_plain(node.outputs[0].spec.dtype):
            return None
        a, b = node.inputs
        if not (a.spec.symbols() | b.spec.symbols()) - self.known:
            return None
        *_, m, n = node.outputs[0].spec.dims
        if a.spec.rank != 2 or b.spec.rank != 2:
            return None
        if m == n == 1:
            total = self.sum(a, b)
        elif n == 1:
            total = self.sums(a, b, node.attrs["transpose_a"])
        elif m == 1:
            total = self.sums(b, a, not node.attrs["transpose_b"])
        else:
            return None
        return [self.emit(RESHAPE, [total], {"shape": node.outputs[0].spec.dims})]

    def sum(self, a: Value, b: Value) -> Value:
        """The product of two vectors."""
        length = a.spec.dims[0] if a.spec.dims[1] == 1 else a.spec.dims[1]
        a, b = (self.emit(RESHAPE, [v], {"shape": (length,)}) for v in (a, b))
        products = self.emit(MULTIPLY, [a, b], {})
        return self.emit(REDUCE_SUM, [products], {"axis": (0,), "keepdims": False})

    def sums(self, matrix: Value, vector: Value, down: bool) -> Value:
        """The products of a vector with the rows of a matrix, or with its columns."""
        length = matrix.spec.dims[0 if down else 1]
        shape: tuple[Dim, ...] = (length, 1) if down else (1, length)
        factor = self.emit(RESHAPE, [vector], {"shape": shape})
        products = self.emit(MULTIPLY, [matrix, factor], {})
        return self.emit(REDUCE_SUM, [products], {"axis": (0 if down else 1,), "keepdims": False})


def _is_plain(dtype: DType) -> bool:
    """Numbers that are summed up in their own dtype."""
    return not (dtype.is_complex or (dtype.is_floating and dtype.size == 2))
