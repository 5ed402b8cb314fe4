"""Reductions of what a mask selects, without collecting it.

    reduce_sum(compress(%x, %mask))   ->   reduce_sum(where(%mask, %x, 0))

The elements are added up in another grouping, so sums may round differently.
"""

from __future__ import annotations

import numpy as np

from treadle.core import dtypes
from treadle.graph.ir import Graph, Node, Value
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.elementwise.arithmetic import DIVIDE
from treadle.ops.elementwise.casting import CAST
from treadle.ops.elementwise.selection import WHERE
from treadle.ops.indexing.gather import COMPRESS
from treadle.ops.reductions.reduction import (
    REDUCE_MEAN,
    REDUCE_SUM,
)  # fmt: skip


def reduce_under_masks(graph: Graph) -> bool:
    """Let reductions over all that a mask selects read the array and the mask."""
    return _Masker(graph).run()


class _Masker(Rewriter):
    def visit(self, node: Node) -> Replacement:
        neutral = node.op.of_nothing
        if neutral is None or node.inputs[0].node is None:
            return None
        selected = node.inputs[0].node
        whole = node.inputs[0].spec.rank == 1 and tuple(node.attrs["axis"]) == (0,)
        if selected.op is not COMPRESS or not whole:
            return None
        x, mask = selected.inputs
        dtype = x.spec.dtype.np_dtype
        other = self.constant(np.asarray(neutral(dtype)).astype(dtype))
        kept = self.emit(WHERE, [mask, x, other], {})
        if node.op is not REDUCE_MEAN:
            return [self.emit(node.op, [kept], dict(node.attrs))]
        return self.mean(node, kept, mask)

    def mean(self, node: Node, kept: Value, mask: Value) -> Replacement:
        dtype = kept.spec.dtype
        if not dtype.is_floating or dtype.size == 2:
            return None
        total = self.emit(REDUCE_SUM, [kept], dict(node.attrs))
        counted = self.emit(CAST, [mask], {"dtype": dtypes.int64})
        count = self.emit(REDUCE_SUM, [counted], dict(node.attrs))
        return [self.emit(DIVIDE, [total, self.emit(CAST, [count], {"dtype": dtype})], {})]
