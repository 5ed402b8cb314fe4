"""Means and variances down the columns of an array that is read from memory once.

    %m = reduce_mean(%x, leading axes)
    %v = reduce_mean(squared_difference(%x, %m), leading axes)

On a device that needs more threads than there are columns each of several blocks has some of the
rows, and would read them for the mean, and again for the variance when the mean is known. So
several rows are taken as a long one. That gives shorter columns, each with a mean and a variance
of its own, for which a block keeps the elements that it has read. The mean is that of the means,
and the variance is the mean of the variances with the variance of the means.
"""

from __future__ import annotations

import math

from treadle.core.shapes import Dim
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.ops.elementwise.arithmetic import ADD, SQUARED_DIFFERENCE
from treadle.ops.reductions.reduction import REDUCE_MEAN
from treadle.ops.shaping.reshaping import RESHAPE
from treadle.runtime.schedule.facts import Facts


def take_moments_in_parts(graph: Graph, facts: Facts) -> bool:
    """Rewrite the pairs of mean and variance of which the facts say so."""
    return _Moments(graph, facts).run()


class _Moments(Rewriter):
    """Attributes:
    pairs: the mean that a variance needs.
    parts: for such a mean the variance of the means of short columns, and their variances.
    """

    def __init__(self, graph: Graph, facts: Facts) -> None:
        super().__init__(graph)
        self.facts = facts
        self.pairs: dict[Node, Node] = {}
        self.parts: dict[Node, tuple[Value, Value]] = {}

    def enter(self, region: Region) -> None:
        for node in region.nodes:
            mean = _mean_of(node)
            if mean is not None and mean in region.nodes:
                self.pairs[node] = mean

    def visit(self, node: Node) -> Replacement:
        if node in self.pairs.values():
            return self._mean(node)
        if self.pairs.get(node) in self.parts:
            return self._variance(node)
        return None

    def _mean(self, node: Node) -> Replacement:
        (x,) = node.inputs
        kept = len(node.attrs["axis"])
        sizes = [d for d in x.spec.dims if isinstance(d, int)]
        if len(sizes) < x.spec.rank or 0 in sizes:
            return None
        rows, columns = math.prod(sizes[:kept]), math.prod(sizes[kept:])
        count = self.facts.parts_of_rows(rows, columns, x.spec.dtype)
        if count is None:
            return None
        short = self._reshaped(x, (rows // count, count * columns))
        means = self._mean_down(short)
        squares = self.emit(SQUARED_DIFFERENCE, [short, means], {})
        variances = self._reshaped(self._mean_down(squares), (count, columns))
        means = self._reshaped(means, (count, columns))
        mean = self._mean_down(means)
        between = self._mean_down(self.emit(SQUARED_DIFFERENCE, [means, mean], {}))
        self.parts[node] = between, variances
        return [self._reshaped(mean, node.outputs[0].spec.dims)]

    def _variance(self, node: Node) -> Replacement:
        between, variances = self.parts[self.pairs[node]]
        within = self._mean_down(variances)
        variance = self.emit(ADD, [within, between], {})
        return [self._reshaped(variance, node.outputs[0].spec.dims)]

    def _mean_down(self, x: Value) -> Value:
        return self.emit(REDUCE_MEAN, [x], {"axis": (0,), "keepdims": True})

    def _reshaped(self, x: Value, dims: tuple[Dim, ...]) -> Value:
        return self.emit(RESHAPE, [x], {"shape": dims})


def _mean_of(node: Node) -> Node | None:
    """The mean that a node needs, if it is the variance down columns."""
    squares = node.inputs[0].node if node.op is REDUCE_MEAN else None
    if squares is None or squares.op is not SQUARED_DIFFERENCE:
        return None
    for x, other in (squares.inputs, squares.inputs[::-1]):
        mean, axes = other.node, node.attrs["axis"]
        if mean is None or mean.op is not REDUCE_MEAN or mean.inputs[0] is not x:
            continue
        leading = axes == tuple(range(len(axes))) and 0 < len(axes) < x.spec.rank
        if leading and mean.attrs["axis"] == axes and mean.attrs["keepdims"]:
            return mean
    return None
