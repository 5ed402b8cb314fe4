"""Products of a loop's slices, taken together: one large product before the loop.

    for i < T: ... matmul(index(%x, %i), %w)   ->   %y = matmul(%x, %w)
                                                    for i < T: ... index(%y, %i)

The input projections of a recurrent network are the case in mind: one product of T times as many
rows runs near the machine's limit, the small ones do not. Only loops that are known to use every
slice once are rewritten, so no product is made in vain. Every element keeps its sum's order.
"""

from __future__ import annotations

from collections.abc import Mapping

from treadle.core.spec import TensorSpec, is_static
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.conversion import CONST

LEAST_TRIPS = 4
MOST_ELEMENTS = 1 << 24  # of all products together


def batch_products(graph: Graph) -> bool:
    """Pull products of slices out of ``while`` nodes."""
    return _Batcher(graph).run()


class _Batcher(Rewriter):
    def visit(self, node: Node) -> Replacement:
        if node.op.name == "while":
            condition, body = node.regions
            counter = _counter(node, condition, body)
            if counter is not None:
                self.pull(node, body, *counter)
        return None

    def pull(self, loop: Node, body: Region, counter: Value, trips: int) -> None:
        carried = len(body.results)
        outer = dict(zip(body.params[carried:], loop.inputs[carried:], strict=True))
        replaced: dict[Value, Value] = {}
        nodes: list[Node] = []
        for node in body.nodes:
            node.inputs = [replaced.get(v, v) for v in node.inputs]
            piece = _product_of_slice(node, counter, trips, outer)
            if piece is None:
                nodes.append(node)
                continue
            whole = self.product(loop, body, node, piece, outer)
            index = Node(
                piece.op, [whole, counter], piece.attrs, [node.outputs[0].spec], (), node.origin
            )
            index.region = body
            nodes.append(index)
            replaced[node.outputs[0]] = index.outputs[0]
            self.changed = True
        body.nodes = nodes
        body.results = [replaced.get(v, v) for v in body.results]

    def product(
        self, loop: Node, body: Region, node: Node, piece: Node, outer: Mapping[Value, Value]
    ) -> Value:
        """The parameter of the body that holds the products of all slices."""
        slices, factor = outer[piece.inputs[0]], outer[node.inputs[1]]
        spec = node.outputs[0].spec
        stacked = TensorSpec((slices.spec.dims[0], *spec.dims), spec.dtype)
        whole = Node(node.op, [slices, factor], node.attrs, [stacked], (), node.origin)
        self.place(whole)
        loop.inputs.append(whole.outputs[0])
        params = [r.add_param(stacked) for r in loop.regions]
        return params[loop.regions.index(body)]


def _counter(loop: Node, condition: Region, body: Region) -> tuple[Value, int] | None:
    """The variable that counts 0, 1, 2 ... and ends the loop alone, and the number of trips."""
    test = condition.results[0].node
    if test is None or test.op.name != "less" or len(condition.nodes) > 2:
        return None
    place = test.inputs[0].index if test.inputs[0] in condition.params else None
    carried = len(body.results)
    if place is None or place >= carried:
        return None
    start, trips = _integer(loop.inputs[place]), _limit(loop, test.inputs[1], condition, carried)
    step = body.results[place].node
    counter = body.params[place]
    if start != 0 or trips is None or step is None or step.op.name != "add":
        return None
    others = [v for v in step.inputs if v is not counter]
    if len(others) != 1 or _integer(others[0]) != 1:
        return None
    return counter, trips


def _limit(loop: Node, value: Value, condition: Region, carried: int) -> int | None:
    """The integer that a value of the condition is, if it is the same in every iteration."""
    if value not in condition.params:
        return _integer(value)
    return _integer(loop.inputs[value.index]) if value.index >= carried else None


def _integer(value: Value) -> int | None:
    node = value.node
    if node is None or node.op is not CONST or value.spec.rank or not value.spec.dtype.is_integer:
        return None
    return int(node.attrs["value"])


def _product_of_slice(
    node: Node, counter: Value, trips: int, outer: Mapping[Value, Value]
) -> Node | None:
    """The ``index`` node whose slice is the left factor, where all slices can be multiplied."""
    if node.op.name != "matmul" or node.attrs["transpose_a"] or node.inputs[1] not in outer:
        return None
    piece = node.inputs[0].node
    if piece is None or piece.op.name != "index" or piece.attrs["axis"] != 0:
        return None
    slices, position = piece.inputs
    specs = [v.spec for v in (slices, node.inputs[1], node.outputs[0])]
    if slices not in outer or position is not counter or not all(map(is_static, specs)):
        return None
    if [s.rank for s in specs] != [3, 2, 2] or specs[0].dims[0] != trips:
        return None
    m, n = specs[2].dims
    assert isinstance(m, int) and isinstance(n, int)
    return piece if trips >= LEAST_TRIPS and 0 < trips * m * n <= MOST_ELEMENTS else None
