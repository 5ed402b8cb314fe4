"""Lists whose lengths and positions are known: TensorArrays of counted loops.

    %l = list_unstack(%x); for i < T: list_get(%l, %i)   ->   for i < T: index(%x, %i)
    list_stack(%l) of a list of 5 elements               ->   an array whose first dim is 5
    for i < T: list_get(%g, %i); %g = list_set(%g, %i, 0), and nobody reads %g any more
                                                         ->   for i < T: list_get(%g, %i)

Other passes look for slices of arrays and known dims. The last form is the gradient of a list that
a loop writes: nobody looks at the elements again that it clears.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treadle.core.locks import cached_property
from treadle.core.spec import is_static
from treadle.graph.ir import Graph, Node, Region, Value, uses
from treadle.graph.rewrite import Replacement, Rewriter, constant_of, read_slices
from treadle.graph.trip_count import counted_range, invariants, position, trip_count
from treadle.ops.collections.lists import (
    LIST_GET,
    LIST_NEW,
    LIST_PUSH,
    LIST_SET,
    LIST_STACK,
    LIST_UNSTACK,
)
from treadle.ops.control.control_flow import WHILE


def resolve_counted_lists(graph: Graph) -> bool:
    """Replace reads and writes of lists whose lengths and positions are known."""
    return _Resolver(graph).run()


class _Resolver(Rewriter):
    @cached_property
    def uses(self) -> dict[Value, int]:
        """How often each value was read before the pass."""
        return uses(self.graph)

    def visit(self, node: Node) -> Replacement:
        if node.op is WHILE and trip_count(node) is not None:
            self.read_arrays(node, node.regions[1])
            for number in range(len(node.outputs)):
                self.drop_clearing(node, number)
        if node.op is LIST_STACK and node.attrs.get("count") is None:
            count = list_length(node.inputs[0])
            if count is not None:
                return [self.emit(LIST_STACK, node.inputs, {**node.attrs, "count": count})]
        return None

    def read_arrays(self, loop: Node, body: Region) -> None:
        """Read slices of the array that a list was made of."""
        fixed = invariants(loop)
        arrays = [(node, _array_read(loop, fixed, node)) for node in body.nodes]
        found = {node: (array, node.inputs[1]) for node, array in arrays if array is not None}
        if found:
            read_slices(loop, found)
            self.changed = True

    def drop_clearing(self, loop: Node, number: int) -> None:
        """Leave out writes to a list that are never read."""
        body = loop.regions[1]
        param, write = body.params[number], body.results[number].node
        if write is None or write.op is not LIST_SET or write.attrs.get("grow"):
            return
        if write.inputs[0] is not param or self.uses.get(loop.outputs[number]):
            return
        counts = uses(body)
        if counts[write.outputs[0]] != 1 or uses(loop.regions[0]).get(
            loop.regions[0].params[number]
        ):
            return
        reads = [n for n in body.nodes if param in n.inputs and n is not write]
        where = position(loop, write.inputs[1])
        same = all(n.op is LIST_GET and n.inputs[1] is write.inputs[1] for n in reads)
        if same and where is not None and where[1] and counts[param] == len(reads) + 1:
            body.results[number] = param
            self.changed = True


def _array_read(loop: Node, fixed: Mapping[Value, Value], node: Node) -> Value | None:
    """The array whose slice a ``list_get`` reads."""
    if node.op is not LIST_GET:
        return None
    items, place = node.inputs
    made = fixed[items].node if items in fixed else None
    if made is None or made.op is not LIST_UNSTACK:
        return None
    array, found = made.inputs[0], counted_range(loop, place)
    if not is_static(array.spec) or found is None:
        return None
    size: Any = array.spec.dims[0]
    inside = found[0] >= 0 and found[1] < size
    return array if inside and node.outputs[0].spec.dims == array.spec.dims[1:] else None


def list_length(items: Value) -> int | None:
    """How many elements a list has, where that is known."""
    node = items.node
    if node is None:
        return None
    if node.op is LIST_NEW:
        size = constant_of(node.inputs[0]) if node.inputs else None
        return (int(size) if size is not None else None) if node.inputs else 0
    if node.op is LIST_UNSTACK:
        size_of_array = node.inputs[0].spec.dims[0]
        return size_of_array if isinstance(size_of_array, int) else None
    if node.op in (LIST_SET, LIST_PUSH):
        root, more = _steps(items, None)
        before = list_length(root) if root is not items else None
        return None if before is None else before + more
    if node.op is WHILE:
        body = node.regions[1]
        root, more = _steps(body.results[items.index], body.params[items.index])
        trips = 0 if not more else trip_count(node)
        before = list_length(node.inputs[items.index])
        if root is body.params[items.index] and trips is not None and before is not None:
            return before + more * trips
    return None


def _steps(items: Value, stop: Value | None) -> tuple[Value, int]:
    """The list before the pushes and writes that lead to `items`, and the number of pushes."""
    pushes = 0
    while items is not stop:
        node = items.node
        if node is None or node.op not in (LIST_SET, LIST_PUSH) or node.attrs.get("grow"):
            break
        pushes += node.op is LIST_PUSH
        items = node.inputs[0]
    return items, pushes
