"""Masks of a pooled image's gradient become part of the winners.

    %w = max_pool_index(%y)                     ->  %m = greater(%y, 0)
    %g = max_pool_scatter(%dp, %w)                  %w = max_pool_masked_index(%y, %m)
    relu_grad(%g, %y)                               max_pool_scatter(%dp, %w)

The same for ``where(%m, %g, 0)`` with a mask that is computed from %y. Winners are found where the
image is pooled, so nothing needs the image afterwards: one byte for each window is kept instead.
Every element of the gradient is the same sum of the same numbers.
"""

from __future__ import annotations

import numpy as np

from treadle.graph.ir import Graph, Node, Region, Value, uses
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.broadcasting import BROADCAST_TO
from treadle.ops.conversion import CONST
from treadle.ops.elementwise.comparison import GREATER
from treadle.ops.elementwise.selection import WHERE
from treadle.ops.image.pooling import INDEX, MASKED_INDEX, SCATTER
from treadle.ops.image.pooling_lowering import MOST_UNROLLED
from treadle.ops.lowering import Compute
from treadle.ops.nn.activations import RELU_GRAD
from treadle.ops.shaping.creation import FILL
from treadle.ops.shaping.reshaping import RESHAPE

# Of a mask, which is computed once for every element of every window. No machine changes it: it
# compares few instructions with reading the image, or its mask, once more.
_MOST_NODES = 8


def mask_winners(graph: Graph) -> bool:
    """Move masks behind the scattering of gradients into the winners."""
    if not any(node.op is SCATTER for node in graph.walk()):
        return False
    return _Masker(graph).run()


class _Masker(Rewriter):
    def enter(self, region: Region) -> None:
        self.uses = uses(region)

    def visit(self, node: Node) -> Replacement:
        scatter = _masked_scatter(node)
        if scatter is None or self.uses.get(scatter.outputs[0], 0) != 1:
            return None
        gradient, winner = scatter.inputs
        index = winner.node
        if index is None or index.op is not INDEX or not _is_small(index):
            return None
        image = index.inputs[0]
        mask = self.mask_of(node, image)
        if mask is None:
            return None
        masked = self.emit(MASKED_INDEX, [image, mask], index.attrs)
        return [self.emit(SCATTER, [gradient, masked], scatter.attrs)]

    def mask_of(self, node: Node, image: Value) -> Value | None:
        """The mask of `node`, if it is computed from the image alone."""
        if node.op is WHERE:
            return node.inputs[0] if _is_made_of(node.inputs[0], image) else None
        if node.inputs[1] is not image:
            return None
        zero = self.constant(np.zeros((), image.spec.dtype.np_dtype))
        return self.emit(GREATER, [image, zero], {})


def _masked_scatter(node: Node) -> Node | None:
    """The scattering of gradients that `node` masks."""
    if node.op is WHERE:
        _, value, other = node.inputs
        if not _is_zero(other) or node.inputs[0].spec.dims != node.outputs[0].spec.dims:
            return None
    elif node.op is RELU_GRAD:
        value = node.inputs[0]
    else:
        return None
    source = value.node
    return source if source is not None and source.op is SCATTER else None


def _is_small(index: Node) -> bool:
    height, width = index.attrs["window"]
    return bool(height * width <= MOST_UNROLLED)


def _is_zero(value: Value) -> bool:
    """Whether it is the constant 0 (not -0) everywhere."""
    node = value.node
    while node is not None and node.op in (FILL, BROADCAST_TO, RESHAPE):
        node = node.inputs[0].node
    return node is not None and node.op is CONST and not any(node.attrs["value"].tobytes())


def _is_made_of(mask: Value, image: Value) -> bool:
    """Whether a mask is a few elementwise functions of the image and of single numbers."""
    stack, seen, found = [mask], {mask}, False
    while stack:
        value = stack.pop()
        if value is image:
            found = True
            continue
        if value.spec.rank == 0:
            continue
        node = value.node
        lower = node.op.lower if node is not None else None
        if node is None or not isinstance(lower, Compute) or lower.kind != "elementwise":
            return False
        seen.update(node.inputs)
        stack += node.inputs
        if len(seen) > _MOST_NODES:
            return False
    return found
