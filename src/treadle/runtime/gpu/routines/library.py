"""Which routine computes a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core.shapes import ANY
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Node
from treadle.ops.lowering import Library, Rows
from treadle.runtime.fusion.strided import View
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.routines.arrays import TRANSFORMS, transform_routine
from treadle.runtime.gpu.routines.convolutions import convolution_routine
from treadle.runtime.gpu.routines.exchanges import exchange_routine
from treadle.runtime.gpu.routines.integers import integer_product
from treadle.runtime.gpu.routines.products import product_routine
from treadle.runtime.gpu.routines.routine import Routine
from treadle.runtime.gpu.routines.rows import row_routine

ANY_GPU = Gpu("any", "sm_80")


def routine_for(
    node: Node, views: Sequence[View] = (), gpu: Gpu = ANY_GPU
) -> Routine | None:
    """The routine that computes a node of an op whose lowering is `Library` or `Rows`, or None
    where there is none.

    Args:
        views: of which memory the operands are views; none where each has memory of its own.
        gpu: what its code is fitted to; a device that it is prepared for may be another one.
    """
    specs = [v.spec for v in (*node.inputs, *node.outputs)]
    if not all(isinstance(s, TensorSpec) and ANY not in s.dims for s in specs):
        return None
    lower = node.op.lower
    if isinstance(lower, Library) and lower.name in _PLANS:
        return _PLANS[lower.name](node, views, gpu)
    if isinstance(lower, Rows) and not views:
        return row_routine(node, gpu)
    return None


def _product(node: Node, views: Sequence[View], gpu: Gpu) -> Routine | None:
    dtype = node.outputs[0].spec.dtype
    if dtype.is_floating or dtype.is_complex:
        return product_routine(node, views)
    return None if views else integer_product(node, gpu)


def _convolution(node: Node, views: Sequence[View], gpu: Gpu) -> Routine | None:
    return None if views else convolution_routine(node, gpu)


def _exchange(node: Node, views: Sequence[View], gpu: Gpu) -> Routine | None:
    return None if views else exchange_routine(node)


_PLANS: dict[str, Callable[[Node, Sequence[View], Gpu], Routine | None]] = {
    "matmul": _product,
    "conv2d": _convolution,
    "conv2d_backprop_input": _convolution,
    "conv2d_backprop_filter": _convolution,
    **dict.fromkeys(TRANSFORMS, transform_routine),
    **dict.fromkeys(("all_reduce", "reduce_among", "stack_among", "common"), _exchange),
}
