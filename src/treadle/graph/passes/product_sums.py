"""Sums over the rows of a product, which are products of sums of rows.

    reduce_mean(add(%x, matmul(%a: [8, 5, 2], %w)), axis=1)
      ->  add(reduce_mean(%x, axis=1), matmul(reduce_mean(%a, axis=1), %w))

where nothing else reads the product, as in models that average over time after a linear layer.
Sums are added up in another order, so they may round differently.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from treadle.core.shapes import product
from treadle.graph.ir import Graph, Node, Value, uses
from treadle.graph.passes.repeated_rows import EXACT_ENOUGH
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.elementwise.arithmetic import ADD, MULTIPLY, SUBTRACT
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.reductions.reduction import REDUCE_MEAN, REDUCE_SUM
from treadle.ops.registry import Op
from treadle.ops.shaping.reshaping import RESHAPE

Axes: TypeAlias = "tuple[int, ...]"

# No machine changes these: a product of a fourth of the rows, and sums before it, are less work on
# all of them; sums of more terms would make the graph longer.
LEAST_ROWS = 4  # that become one
MOST_TERMS = 16


def add_rows_first(graph: Graph) -> bool:
    """Rewrite sums and means over rows of products."""
    return _Adder(graph).run()


class _Adder(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.uses = uses(graph)

    def visit(self, node: Node) -> Replacement:
        if node.op not in (REDUCE_SUM, REDUCE_MEAN):
            return None
        x, axes = node.inputs[0], node.attrs["axis"]
        rows = product(x.spec.dims[a] for a in axes)
        if x.spec.dtype not in EXACT_ENOUGH or not isinstance(rows, int) or rows < LEAST_ROWS:
            return None
        terms = list(self.terms(x))
        if len(terms) > MOST_TERMS or not all(_is_reducible(t, x, axes) for t in terms):
            return None
        if not any(self.is_product(t, x, axes) for t in terms):
            return None
        total = self.total(x, node)
        return [self.emit(RESHAPE, [total], {"shape": node.outputs[0].spec.dims})]

    def terms(self, x: Value) -> Iterator[Value]:
        """The operands of the sum `x`."""
        if self.is_sum(x):
            assert x.node is not None
            for operand in x.node.inputs:
                yield from self.terms(operand)
        else:
            yield x

    def is_sum(self, x: Value) -> bool:
        return x.node is not None and x.node.op in (ADD, SUBTRACT) and self.uses.get(x, 0) == 1

    def is_product(self, term: Value, x: Value, axes: Axes) -> bool:
        """Whether a term of `x` is a product read by nothing else, and `axes` are of its rows."""
        node = term.node
        if node is None or node.op is not MATMUL or self.uses.get(term, 0) != 1:
            return False
        a, b = node.inputs
        last = x.spec.rank - 1
        rows = range(last) if b.spec.rank == 2 else (last - 1,)
        whole = term.spec.dims == x.spec.dims and a.spec.rank == x.spec.rank
        return whole and not node.attrs["transpose_a"] and all(i in rows for i in axes)

    def total(self, term: Value, reduction: Node) -> Value:
        """The sum or mean of a term, with dims of 1 for the axes."""
        x, axes = reduction.inputs[0], reduction.attrs["axis"]
        node = term.node
        if node is not None and self.is_sum(term):
            return self.emit(node.op, [self.total(v, reduction) for v in node.inputs], {})
        if node is not None and self.is_product(term, x, axes):
            a, b = node.inputs
            return self.emit(MATMUL, [self.reduced(a, reduction.op, axes), b], node.attrs)
        missing = x.spec.rank - term.spec.rank
        own = tuple(a for a in axes if a >= missing and term.spec.dims[a - missing] != 1)
        few = self.reduced(term, reduction.op, tuple(a - missing for a in own))
        times = product(x.spec.dims[a] for a in axes if a not in own)
        if reduction.op is REDUCE_MEAN or times == 1:
            return few
        number = self.constant(np.array(times, x.spec.dtype.np_dtype))
        return self.emit(MULTIPLY, [few, number], {})

    def reduced(self, x: Value, op: Op, axes: Axes) -> Value:
        return self.emit(op, [x], {"axis": axes, "keepdims": True}) if axes else x


def _is_reducible(term: Value, x: Value, axes: Axes) -> bool:
    """Whether it is known along which axes a term of `x` is repeated."""
    missing = x.spec.rank - term.spec.rank
    return all(a < missing or term.spec.dims[a - missing] in (1, x.spec.dims[a]) for a in axes)
