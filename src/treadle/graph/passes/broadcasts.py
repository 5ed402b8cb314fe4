"""Broadcasts sink towards their users: a number that is spread is computed once.

multiply(%x, broadcast_to(%b))            ->  multiply(%x, %b)
multiply(fill(%a, [B]), %b: scalar)       ->  fill(multiply(%a, %b), [B])
reshape(fill(%a, [6]), [2, 3])            ->  fill(%a, [2, 3])
"""

from __future__ import annotations

from typing import Any

from treadle.core import errors
from treadle.core.shapes import broadcast
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Node, Value
from treadle.graph.rewrite import Rewriter
from treadle.ops.broadcasting import BROADCAST_TO
from treadle.ops.shaping.creation import FILL
from treadle.ops.shaping.reshaping import RESHAPE


def sink_broadcasts(rewriter: Rewriter, node: Node) -> Value | None:
    """The rules above; None where none fits."""
    if "moves" in node.op.tags:
        return _moved_fill(rewriter, node)
    if not is_elementwise(node):
        return None
    sources = [_before_broadcast(v) for v in node.inputs]
    if all(s is v for s, v in zip(sources, node.inputs, strict=True)):
        return None
    if all(map(_is_single, sources)):
        scalars = [_scalar(rewriter, s) for s in sources]
        return _fill(rewriter, rewriter.emit(node.op, scalars, node.attrs), node.outputs[0])
    return _with_source(rewriter, node, sources)


def is_elementwise(node: Node) -> bool:
    """Elementwise, with an output of the shape that the inputs broadcast to."""
    if not node.op.is_elementwise or len(node.outputs) != 1 or not node.inputs:
        return False
    return bool(broadcast(*(v.spec.dims for v in node.inputs)) == node.outputs[0].spec.dims)


def _before_broadcast(value: Value) -> Value:
    node = value.node
    if node is not None and node.op in (BROADCAST_TO, FILL):
        return node.inputs[0]
    return value


def _with_source(rewriter: Rewriter, node: Node, sources: list[Value]) -> Value | None:
    """One operand before its broadcast, where the others alone give the full shape."""
    out = node.outputs[0].spec
    for i, source in enumerate(sources):
        rest = [v for j, v in enumerate(node.inputs) if j != i]
        if source is node.inputs[i] or all(v.spec.dims != out.dims for v in rest):
            continue
        if not _broadcasts(node, i):
            continue
        if broadcast(source.spec.dims, *(v.spec.dims for v in rest)) == out.dims:
            inputs = [source if j == i else v for j, v in enumerate(node.inputs)]
            return rewriter.emit(node.op, inputs, node.attrs)
    return None


def _broadcasts(node: Node, number: int) -> bool:
    """Whether the op takes a scalar beside the other operands: some want equal shapes."""
    specs: list[Any] = [v.spec for v in node.inputs]
    specs[number] = TensorSpec((), specs[number].dtype)
    try:
        node.op.infer(*specs, **node.attrs)
    except (errors.OpError, TypeError, ValueError):
        return False
    return True


def _moved_fill(rewriter: Rewriter, node: Node) -> Value | None:
    """A moved fill is a fill; so is the broadcast of one element."""
    x, out = node.inputs[0], node.outputs[0]
    source = _before_broadcast(x)
    spreads = node.op is BROADCAST_TO and not _is_single(out)
    if _is_single(source) and (source is not x or spreads):
        return _fill(rewriter, _scalar(rewriter, source), out)
    return None


def _is_single(value: Value) -> bool:
    return all(d == 1 for d in value.spec.dims)


def _scalar(rewriter: Rewriter, value: Value) -> Value:
    """The single element of `value` with rank 0."""
    if value.spec.rank == 0:
        return value
    return rewriter.emit(RESHAPE, [value], {"shape": ()})


def _fill(rewriter: Rewriter, scalar: Value, like: Value) -> Value:
    return rewriter.emit(FILL, [scalar], {"shape": like.spec.dims})
