"""Counters after loops, and room for their lists, where the number of iterations is known.

    %i, %n = while(0, ...) i < 100: ... i + 1     ->   uses of %i read the constant 100

Lists that get one element in every iteration are made large enough at once.
"""

from __future__ import annotations

import numpy as np

from treadle.core.locks import cached_property
from treadle.graph.ir import Graph, Node, Value, uses
from treadle.graph.rewrite import Replacement, Rewriter
from treadle.graph.trip_count import counter, trip_count
from treadle.ops.collections.lists import LIST_NEW, LIST_PUSH
from treadle.ops.control.control_flow import WHILE


def apply_trip_counts(graph: Graph) -> bool:
    """Replace counters after loops by constants, and reserve memory for lists."""
    return _Trips(graph).run()


class _Trips(Rewriter):
    @cached_property
    def uses(self) -> dict[Value, int]:
        """How often each value was read before the pass."""
        return uses(self.graph)

    def visit(self, node: Node) -> Replacement:
        trips = trip_count(node) if node.op is WHILE else None
        if trips is None:
            return None
        for number in range(len(node.outputs)):
            self.reserve(node, number, trips)
        return [self.final(node, v, trips) for v in node.outputs]

    def reserve(self, loop: Node, number: int, trips: int) -> None:
        """Tell an empty list how many elements it will get."""
        made, body = loop.inputs[number].node, loop.regions[1]
        if made is None or made.op is not LIST_NEW or made.inputs:
            return
        push = body.results[number].node
        if push is None or push.op is not LIST_PUSH:
            return
        if push.inputs[0] is body.params[number] and made.attrs.get("capacity") != trips:
            made.attrs = {**made.attrs, "capacity": trips}
            self.changed = True

    def final(self, loop: Node, output: Value, trips: int) -> Value:
        """The value of a counter when the loop has ended."""
        found = counter(loop, output.index) if self.uses.get(output) else None
        if found is None:
            return output
        dtype = output.spec.dtype.np_dtype
        last = found.start + trips * found.step
        limits = np.iinfo(dtype)
        if not limits.min <= last <= limits.max:
            return output
        return self.constant(np.array(last, dtype))
