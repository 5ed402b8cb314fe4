"""Right factors of products in loops, laid out once in panels as the products read them.

    while(%w): ... matmul(%x, %w)   ->   %p = panels(%w)
                                         while(%p): ... matmul_panels(%x, %p)

A product of a few rows reads a matrix as it lies, in short runs from rows that are far apart, and
one of many rows begins with a copy of it. A factor that is the same in every iteration is copied
before the loop. Every element keeps its sum's order.
"""

from __future__ import annotations

from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import Replacement, Rewriter, pass_in, replace_reads
from treadle.graph.trip_count import invariants, trip_count
from treadle.ops.control.control_flow import WHILE
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.linalg.panels import MATMUL_PANELS, PANELS
from treadle.runtime.schedule.facts import Facts


def lay_out_panels(graph: Graph, facts: Facts) -> bool:
    """Lay invariant right factors out before ``while`` nodes, where the machine reads panels."""
    return _Layout(graph, facts).run()


class _Layout(Rewriter):
    def __init__(self, graph: Graph, facts: Facts) -> None:
        super().__init__(graph)
        self.facts = facts

    def visit(self, node: Node) -> Replacement:
        if node.op is WHILE:
            self.move_out(node, node.regions[1])
            self.lay_out(node, node.regions[1])
        return None

    def move_out(self, loop: Node, body: Region) -> None:
        """Panels for inner loops, of a factor that no iteration of this loop changes either."""
        fixed = invariants(loop)
        moved = [n for n in body.nodes if n.op is PANELS and n.inputs[0] in fixed]
        replaced = {
            n.outputs[0]: pass_in(loop, body, self.emit(PANELS, [fixed[n.inputs[0]]], n.attrs))
            for n in moved
        }
        if moved:
            body.nodes = [n for n in body.nodes if n not in moved]
            replace_reads(body, replaced)
            self.changed = True

    def lay_out(self, loop: Node, body: Region) -> None:
        fixed, trips = invariants(loop), trip_count(loop)
        known: dict[tuple[Value, int], Value] = {}
        for product in body.nodes:
            if product.op is not MATMUL or product.inputs[1] not in fixed:
                continue
            width = self.facts.panel_width(product, trips)
            if width is None:
                continue
            rows, factor = product.inputs
            if (factor, width) not in known:
                panels = self.emit(PANELS, [fixed[factor]], {"width": width})
                known[factor, width] = pass_in(loop, body, panels)
            product.op, product.inputs = MATMUL_PANELS, [rows, known[factor, width]]
            product.attrs = {"columns": product.outputs[0].spec.dims[-1]}
            self.changed = True
