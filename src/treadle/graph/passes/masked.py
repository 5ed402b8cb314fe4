"""Reductions of the elements that a mask selects, and assignments to them, without collecting them.

    reduce_sum(compress(%x, %mask))               ->   reduce_sum(where(%mask, %x, 0))
    expand_masked(%f(compress(%x, %mask)), %mask)  ->   where(%mask, %f(%x), 0)

The elements are added up in another grouping, so sums may round differently. The second rule is
for ``x[mask] = f(x[mask], y[mask])``, where f is computed element by element and refuses nothing:
it is computed for all elements then, which takes less time than to collect some and put them
back. That as many elements are assigned as selected is known to hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from treadle.core import dtypes
from treadle.core.shapes import Dim
from treadle.graph.ir import Graph, Node, Value
from treadle.graph.passes.invariants import cannot_fail
from treadle.graph.rewrite import Replacement, Rewriter, constant_of
from treadle.ops.broadcasting import BROADCAST_TO
from treadle.ops.control.io import ASSERT
from treadle.ops.dims import DIM
from treadle.ops.elementwise.arithmetic import DIVIDE
from treadle.ops.elementwise.casting import CAST
from treadle.ops.elementwise.selection import NONZERO, WHERE
from treadle.ops.indexing.gather import GATHER
from treadle.ops.indexing.masks import COMPRESS, EXPAND
from treadle.ops.properties import Relation
from treadle.ops.reductions.reduction import (
    REDUCE_MEAN,
    REDUCE_SUM,
)  # fmt: skip
from treadle.ops.registry import infer_outputs
from treadle.ops.shaping.reshaping import RESHAPE

# The most nodes of f. No machine changes it: a node costs less than a vector instruction or two
# for each element, collecting and putting back about a hundred.
MOST_NODES = 24


def use_masks(graph: Graph) -> bool:
    """Let reductions of masked elements and assignments to them use whole arrays and the mask."""
    return _Masker(graph).run()


class _Masker(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.masks: dict[Dim, Value] = {}  # by the symbols for the numbers of true elements

    def visit(self, node: Node) -> Replacement:
        if node.op in (COMPRESS, NONZERO):
            self.masks[node.outputs[0].spec.dims[0]] = node.inputs[-1]
        if node.op is EXPAND:
            return self.assignment(node)
        if node.op is ASSERT and constant_of(node.inputs[0]) is not None:
            return self.assertion(node)
        if node.op.relation is Relation.EQUAL:
            return self.comparison(node)
        return self.reduction(node)

    def comparison(self, node: Node) -> Replacement:
        """Whether a mask has as many true elements as an array collected with it has rows."""
        total, count = (v.node for v in node.inputs)
        if total is None or count is None or total.op is not REDUCE_SUM or count.op is not DIM:
            return None
        cast, mask = total.inputs[0].node, self.masks.get(count.attrs["dim"])
        if cast is None or cast.op is not CAST or cast.inputs[0] is not mask:
            return None
        return [self.constant(np.array(True))] if node.outputs[0].spec.rank == 0 else None

    def assertion(self, node: Node) -> Replacement:
        """Nothing, where the condition is known to hold."""
        condition = constant_of(node.inputs[0])
        if condition is not None and condition.all():
            self.erase()
        return None

    def assignment(self, node: Node) -> Replacement:
        values, mask = node.inputs
        # The elements have the axes that they had before they were made one row, if all had them.
        for form in dict.fromkeys((_before_reshape(mask), mask)):
            function = _Function(self.masks, mask, form.spec.dims)
            whole = function.of_all(values)
            if whole is not values and whole is not None:
                return self.chosen(node, form, function.nodes, whole)
        return None

    def chosen(
        self, node: Node, mask: Value, computed: Sequence[Node], whole: Value
    ) -> Replacement:
        for copy in computed:
            self.place(copy)
        spec = node.outputs[0].spec
        rest = spec.dims[1:]
        if whole.spec.dims != (*mask.spec.dims, *rest):
            whole = self.emit(BROADCAST_TO, [whole], {"shape": (*mask.spec.dims, *rest)})
        chosen = mask
        if rest:
            chosen = self.emit(RESHAPE, [mask], {"shape": (*mask.spec.dims, *[1] * len(rest))})
        other = self.constant(np.zeros((), spec.dtype.np_dtype))
        result = self.emit(WHERE, [chosen, whole, other], {})
        return [self.emit(RESHAPE, [result], {"shape": spec.dims})]

    def reduction(self, node: Node) -> Replacement:
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


class _Function:
    """Computes for all elements of arrays what is computed, element by element, from those that a
    mask selects.

    Attributes:
        dims: of the axes that stand for the mask's one axis.
        nodes: the new nodes, in order; they are not in the graph yet.
    """

    def __init__(self, masks: Mapping[Dim, Value], mask: Value, dims: Sequence[Dim]) -> None:
        self.masks, self.mask, self.dims = masks, mask, dims
        self.nodes: list[Node] = []
        self.known: dict[Value, Value] = {}  # values for all elements, by those for the selected

    def of_all(self, value: Value) -> Value | None:
        """The value for all elements: itself where no elements were selected for it, None where it
        is not computed element by element, or could fail for elements that were not selected."""
        node = value.node
        if not any(self.masks.get(d) is self.mask for d in value.spec.dims):
            return value
        if value in self.known or node is None:
            return self.known.get(value)
        row = self._source(node)
        if row is None:
            return self._computed(node, value.index)
        wanted = (*self.dims, *row.spec.dims[1:])
        for source in (_before_reshape(row), row):
            if source.spec.dims == wanted:
                self.known[value] = source
                return source
        return None

    def _computed(self, node: Node, output: int) -> Value | None:
        if not node.op.is_elementwise or not node.is_pure or "shape" in node.attrs:
            return None
        inputs: list[Value] = []
        for value in node.inputs:
            whole = self.of_all(value)
            if whole is None:
                return None
            inputs.append(whole)
        specs = infer_outputs(node.op, [v.spec for v in inputs], node.attrs)
        copy = Node(node.op, inputs, node.attrs, specs, (), node.origin)
        if not cannot_fail(copy) or len(self.nodes) == MOST_NODES:
            return None
        self.nodes.append(copy)
        self.known.update(zip(node.outputs, copy.outputs, strict=True))
        return copy.outputs[output]

    def _source(self, node: Node) -> Value | None:
        """The array, where the node collects the elements of an array that the mask selects."""
        if node.op is COMPRESS and node.inputs[1] is self.mask:
            return node.inputs[0]
        if node.op is not GATHER or node.attrs["axis"] or node.attrs["batch_dims"]:
            return None
        positions = node.inputs[1].node
        found = positions.inputs[0].node if positions is not None and positions.inputs else None
        if positions is None or positions.op is not RESHAPE or found is None:
            return None
        return node.inputs[0] if found.op is NONZERO and found.inputs[0] is self.mask else None


def _before_reshape(value: Value) -> Value:
    node = value.node
    return node.inputs[0] if node is not None and node.op is RESHAPE else value
