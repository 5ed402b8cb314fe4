"""Which routine computes a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core.shapes import ANY
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Node
from treadle.ops.lowering import Library
from treadle.runtime.fusion.strided import View
from treadle.runtime.gpu.routines.products import product_routine
from treadle.runtime.gpu.routines.routine import Routine


def routine_for(node: Node, views: Sequence[View] = ()) -> Routine | None:
    """The routine that computes a node of an op whose lowering is `Library` or `Rows`, or None
    where there is none.

    Args:
        views: of which memory the operands are views; none where each has memory of its own.
    """
    specs = [v.spec for v in (*node.inputs, *node.outputs)]
    if not all(isinstance(s, TensorSpec) and ANY not in s.dims for s in specs):
        return None
    lower = node.op.lower
    if isinstance(lower, Library) and lower.name in _PLANS:
        return _PLANS[lower.name](node, views)
    return None


def _product(node: Node, views: Sequence[View]) -> Routine | None:
    dtype = node.outputs[0].spec.dtype
    if dtype.is_floating or dtype.is_complex:
        return product_routine(node, views)
    return None


_PLANS: dict[str, Callable[[Node, Sequence[View]], Routine | None]] = {"matmul": _product}
