"""Products of a loop's slices, taken together: one large product before the loop.

    for i < T: ... matmul(index(%x, %i), %w)   ->   %y = matmul(%x, %w)
                                                    for i < T: ... index(%y, %i)

The input projections of a recurrent network are the case in mind: one product of T times as many
rows runs near the machine's limit, the small ones do not. Only loops that are known to use nearly
every slice, and each once, are rewritten, so few products are made in vain: a loop that begins with
the second step leaves one out. Every element keeps its sum's order.
"""

from __future__ import annotations

from collections.abc import Mapping

from treadle.core.spec import TensorSpec, is_static
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import Replacement, Rewriter, read_slices
from treadle.graph.trip_count import counts_within, invariants, trip_count
from treadle.ops.control.control_flow import WHILE
from treadle.ops.indexing.index import INDEX
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.shaping.permuting import TRANSPOSE

LEAST_TRIPS = 4  # whose products become one: a fourth of the calls, on any machine
LEAST_SHARE = 0.75  # of the slices that the loop uses: a ratio of work, on any machine
MOST_ELEMENTS = 1 << 24  # of all products together: a bound on memory, beyond all caches


def batch_products(graph: Graph) -> bool:
    """Pull products of slices out of ``while`` nodes."""
    return _Batcher(graph).run()


class _Batcher(Rewriter):
    def visit(self, node: Node) -> Replacement:
        trips = trip_count(node) if node.op is WHILE else None
        if trips is not None and trips >= LEAST_TRIPS:
            self.pull(node, node.regions[1], trips)
        return None

    def pull(self, loop: Node, body: Region, trips: int) -> None:
        outer, found = invariants(loop), dict[Node, tuple[Value, Value]]()
        for node in body.nodes:
            piece = _product_of_slice(loop, node, trips, outer)
            if piece is not None:
                found[node] = self.product(node, piece, outer), piece.inputs[1]
        read_slices(loop, found)

    def product(self, node: Node, piece: Node, outer: Mapping[Value, Value]) -> Value:
        """The products of all slices, the slices along the first axis."""
        slices, factor = outer[piece.inputs[0]], outer[node.inputs[1]]
        axis = piece.attrs["axis"]
        if axis:
            rest = [i for i in range(slices.spec.rank) if i != axis]
            slices = self.emit(TRANSPOSE, [slices], {"perm": (axis, *rest)})
        spec = node.outputs[0].spec
        stacked = TensorSpec((slices.spec.dims[0], *spec.dims), spec.dtype)
        whole = Node(node.op, [slices, factor], node.attrs, [stacked], (), node.origin)
        self.place(whole)
        return whole.outputs[0]


def _product_of_slice(
    loop: Node, node: Node, trips: int, outer: Mapping[Value, Value]
) -> Node | None:
    """The ``index`` node whose slice is the left factor, where all slices can be multiplied."""
    if node.op is not MATMUL or node.attrs["transpose_a"] or node.inputs[1] not in outer:
        return None
    piece = node.inputs[0].node
    if piece is None or piece.op is not INDEX:
        return None
    slices, position = piece.inputs
    specs = [v.spec for v in (slices, node.inputs[1], node.outputs[0])]
    if slices not in outer or not all(map(is_static, specs)):
        return None
    size = specs[0].dims[piece.attrs["axis"]]
    if [s.rank for s in specs] != [3, 2, 2] or counts_within(loop, position, size) is None:
        return None
    m, n = specs[2].dims
    assert isinstance(size, int) and isinstance(m, int) and isinstance(n, int)
    return piece if trips >= LEAST_SHARE * size and 0 < size * m * n <= MOST_ELEMENTS else None
