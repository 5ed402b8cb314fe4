"""Custom gradients are marks for differentiation, which is over when a graph is optimized.

%2 = custom_gradient(%1, %x) {count=1, gradient='f_0'}     ->  uses of %2 read %1
"""

from __future__ import annotations

from treadle.graph.ir import Graph, Node
from treadle.graph.rewrite import Replacement, Rewriter


def drop_custom_gradients(graph: Graph) -> bool:
    """Read the results of functions with custom gradients directly."""
    return _Dropper(graph).run()


class _Dropper(Rewriter):
    def visit(self, node: Node) -> Replacement:
        if "gradient_mark" in node.op.tags:
            return node.inputs[: node.attrs["count"]]
        return None
