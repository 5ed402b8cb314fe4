"""Factors of products in loops, laid out once as the products read them.

    while(%w): ... matmul(%x, %w) {transpose_b=True}   ->   %t = transpose(%w)
                                                            while(%t): ... matmul(%x, %t)

A product with a transposed right factor begins with a copy of it in rows; a factor that is the same
in every iteration is copied before the loop. Every element keeps its sum's order.
"""

from __future__ import annotations

from collections.abc import Mapping

from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import Replacement, Rewriter, pass_in
from treadle.graph.trip_count import invariants
from treadle.ops.control.control_flow import WHILE
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.shaping.permuting import TRANSPOSE


def lay_out_factors(graph: Graph) -> bool:
    """Transpose invariant right factors before ``while`` nodes."""
    return _Layout(graph).run()


class _Layout(Rewriter):
    def visit(self, node: Node) -> Replacement:
        if node.op is WHILE:
            body = node.regions[1]
            known: dict[Value, Value] = {}
            fixed = invariants(node)
            for product in [n for n in body.nodes if _has_turned_factor(n, fixed)]:
                self.turn(node, body, product, known)
        return None

    def turn(self, loop: Node, body: Region, product: Node, known: dict[Value, Value]) -> None:
        factor = product.inputs[1]
        if factor not in known:
            outer = loop.inputs[factor.index]
            rank = outer.spec.rank
            order = (*range(rank - 2), rank - 1, rank - 2)
            known[factor] = pass_in(loop, body, self.emit(TRANSPOSE, [outer], {"perm": order}))
        product.inputs = [product.inputs[0], known[factor]]
        product.attrs = {**product.attrs, "transpose_b": False}


def _has_turned_factor(node: Node, fixed: Mapping[Value, Value]) -> bool:
    return node.op is MATMUL and node.attrs["transpose_b"] and node.inputs[1] in fixed
