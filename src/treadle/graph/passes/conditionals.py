"""Conditionals with a constant predicate become the branch they take.

%1 = cond(const True, %x) then(%a) { %0 = tanh(%a); return %0 } ...   ->   %1 = tanh(%x)
"""

from __future__ import annotations

from treadle.graph.ir import Graph, Node
from treadle.graph.rewrite import Replacement, Rewriter, constant_of
from treadle.ops.control.control_flow import COND


def inline_conditionals(graph: Graph) -> bool:
    """Replace ``cond`` nodes whose predicate is a constant."""
    return _Inliner(graph).run()


class _Inliner(Rewriter):
    def visit(self, node: Node) -> Replacement:
        if node.op is not COND:
            return None
        predicate = constant_of(node.inputs[0])
        if predicate is None:
            return None
        self.erase()
        return self.inline(node.regions[0 if predicate else 1], node.inputs[1:])
