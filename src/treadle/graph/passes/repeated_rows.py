"""Products that contract repeated rows: the rows that meet the same one are added up first.

    %r = broadcast_to(%g: [8, 1, 3])                    %s = reduce_sum(%a, axis=1)
    matmul(%a: [8 * 5, 2], reshape(%r, [8 * 5, 3]))  -> matmul(%s: [8, 2], %g: [8, 3])

Both transposed so that they contract their rows. The case in mind is the gradient of a weight
whose outputs are averaged over time or over an image: all steps get the same gradient. A sum of a
repeated array becomes a product with the number of repetitions. Sums are added up in another
order, so they may round differently.
"""

from __future__ import annotations

import numpy as np

from treadle.core import dtypes
from treadle.core.records import record
from treadle.core.shapes import Dim, product
from treadle.graph.ir import Graph, Node, Value
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.broadcasting import BROADCAST_TO
from treadle.ops.elementwise.arithmetic import MULTIPLY
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.reductions.reduction import REDUCE_SUM
from treadle.ops.shaping.reshaping import RESHAPE

EXACT_ENOUGH = (dtypes.float32, dtypes.float64)  # of narrower types sums would be rounded twice


def add_repeats_first(graph: Graph) -> bool:
    """Rewrite products that contract repeated rows, and sums of repeated arrays."""
    return _Adder(graph).run()


@record(frozen=True)
class _Repeated:
    """An array that `source` makes by repetition.

    Attributes:
        dims: of the array before it was reshaped.
        kept: of `source`, with a dim of 1 where it is repeated.
    """

    source: Value
    dims: tuple[Dim, ...]
    kept: tuple[Dim, ...]

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes along which it is repeated."""
        return tuple(i for i, (d, k) in enumerate(zip(self.dims, self.kept, strict=True)) if d != k)


class _Adder(Rewriter):
    def visit(self, node: Node) -> Replacement:
        if not node.outputs or node.outputs[0].spec.dtype not in EXACT_ENOUGH:
            return None
        found = None
        if node.op is MATMUL:
            found = self.contracted(node)
        elif node.op is REDUCE_SUM:
            found = self.multiplied(node)
        return None if found is None else [found]

    def contracted(self, node: Node) -> Value | None:
        """The product of the sums of rows, where one factor repeats rows."""
        flags = node.attrs["transpose_a"], node.attrs["transpose_b"]
        if flags != (True, False) or any(v.spec.rank != 2 for v in node.inputs):
            return None
        for position, factor in enumerate(node.inputs):
            rows = _repeated_rows(factor)
            if rows is not None and product(rows.dims[:-1]) == factor.spec.dims[0]:
                return self.few_rows(node, position, rows)
        return None

    def few_rows(self, node: Node, position: int, rows: _Repeated) -> Value:
        other = node.inputs[1 - position]
        count = product(rows.kept[:-1])
        shape = (*rows.dims[:-1], other.spec.dims[-1])
        split = self.emit(RESHAPE, [other], {"shape": shape})
        added = self.emit(REDUCE_SUM, [split], {"axis": rows.axes, "keepdims": True})
        operands = [
            self.emit(RESHAPE, [v], {"shape": (count, v.spec.dims[-1])})
            for v in (rows.source, added)
        ]
        return self.emit(MATMUL, operands if position == 0 else operands[::-1], node.attrs)

    def multiplied(self, node: Node) -> Value | None:
        """n * x where n copies of x are added up."""
        repeated = _repeated(node.inputs[0])
        if repeated is None or repeated.dims != node.inputs[0].spec.dims:
            return None
        axis = node.attrs["axis"]
        count = product(repeated.dims[a] for a in repeated.axes if a in axis)
        if count == 1 or not isinstance(count, int):
            return None
        dims = tuple(
            k if a in axis else d
            for a, (d, k) in enumerate(zip(repeated.dims, repeated.kept, strict=True))
        )
        if product(dims) != product(repeated.kept):
            return None  # still repeated along other axes
        few = self.emit(RESHAPE, [repeated.source], {"shape": dims})
        number = self.constant(np.array(count, few.spec.dtype.np_dtype))
        return self.emit(REDUCE_SUM, [self.emit(MULTIPLY, [few, number], {})], node.attrs)


def _repeated_rows(value: Value) -> _Repeated | None:
    """How a matrix repeats the rows of another one, with as many columns, if it does."""
    node, columns = value.node, value.spec.dims[-1]
    if node is not None and node.op is RESHAPE:
        value = node.inputs[0]
    found = _repeated(value)
    if found is None or not found.axes or found.dims[-1] != columns:
        return None
    return found if found.kept[-1] == columns else None


def _repeated(value: Value) -> _Repeated | None:
    """The array as a repetition of another."""
    node = value.node
    if node is None or node.op is not BROADCAST_TO:
        return None
    source, dims = node.inputs[0], value.spec.dims
    kept = (*(1 for _ in dims[source.spec.rank :]), *source.spec.dims)
    return _Repeated(source, dims, kept)
