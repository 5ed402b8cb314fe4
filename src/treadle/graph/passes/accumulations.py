"""Products that a loop adds up, taken together after it.

    for i < T: s += matmul(%a_i, %b_i) {transpose_a}   ->   for i < T: %bs[i] = %b_i
                                                            s += matmul(%as, %bs) {transpose_a}

The gradients of a recurrent network's weights are the case in mind: each is a sum over time of
products with few rows. Put under each other the rows make one product that runs near the machine's
limit. Factors that are slices of an array or elements of a list are there already; others are
collected. The sums of rows (gradients of biases) go the same way. Only loops with a known number
of iterations are rewritten. Sums are added up in another order, so they may round differently;
rolled loops, which have the bits of their iterations one after the other, stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.records import record
from treadle.core.shapes import product
from treadle.core.spec import is_static
from treadle.graph.ir import Graph, Node, Value, uses
from treadle.graph.passes.row_sums import added_up
from treadle.graph.rewrite import Replacement, Rewriter, add_carried
from treadle.graph.trip_count import counts_through, invariants, trip_count
from treadle.ops.collections.lists import LIST_GET, LIST_NEW, LIST_PUSH, LIST_SET, LIST_STACK
from treadle.ops.control.control_flow import WHILE
from treadle.ops.elementwise.arithmetic import ADD
from treadle.ops.indexing.index import INDEX
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.reductions.reduction import REDUCE_SUM
from treadle.ops.shaping.permuting import TRANSPOSE
from treadle.ops.shaping.reshaping import RESHAPE

LEAST_TRIPS = 4  # whose products become one: a fourth of the calls, on any machine
MOST_ROWS = 256  # of one product: larger ones fill the tiles of any machine on their own
MOST_BYTES = 1 << 27  # of the factors that are collected for a loop: memory, beyond all caches


def gather_accumulations(graph: Graph) -> bool:
    """Take sums of products out of ``while`` nodes."""
    return _Gatherer(graph).run()


@record
class _Rows:
    """Where the rows of a factor are after the loop: in an array, a list, or to be collected.

    Attributes:
        value: the outer array or list; the value of the body where it is to be collected.
        place: the position in the stack, a value of the body; None: any order will do.
        way: 1 or -1, the direction in which `place` moves.
    """

    kind: str
    value: Value
    place: Value | None = None
    way: int = 0
    axis: int = 0


class _Gatherer(Rewriter):
    def visit(self, node: Node) -> Replacement:
        if node.op is not WHILE or node.attrs.get("rolled"):
            return None
        trips = trip_count(node)
        if trips is None or trips < LEAST_TRIPS:
            return None
        return _Loop(self, node, trips).rewrite()


class _Loop:
    """The rewriting of one loop."""

    def __init__(self, rewriter: Rewriter, node: Node, trips: int) -> None:
        self.rewriter, self.node, self.trips = rewriter, node, trips
        self.condition, self.body = node.regions
        self.carried = len(self.body.results)
        self.uses = uses(self.body)
        self.asked = uses(self.condition)
        self.outer = invariants(node)
        self.collected: dict[tuple[Value, int], int] = {}  # -> the number of the output
        self.bytes = 0

    def rewrite(self) -> Replacement:
        found = [(i, f) for i in range(self.carried) if (f := self._factors(i)) is not None]
        if not found:
            return None
        for _, (_, rows) in found:
            for part in rows:
                if part.kind == "collect":
                    self._collect(part)
        self.rewriter.place(self.node)
        self.rewriter.erase()  # it has just been put in its place
        results: list[Value] = list(self.node.outputs)
        for number, (term, rows) in found:
            total = self._total(term, [self._stacked(r) for r in rows])
            start = self.node.inputs[number]
            results[number] = self.rewriter.emit(ADD, [start, total], {})
            self.body.results[number] = self.body.params[number]
        return results

    # -- products that can be taken out

    def _factors(self, number: int) -> tuple[Node, list[_Rows]] | None:
        """The node whose results variable `number` adds up, and where its factors are."""
        term = added_up(self.node, number, self.asked, self.uses)
        if term is None or not _adds_rows(term):
            return None
        if not all(is_static(v.spec) for v in (*term.inputs, *term.outputs)):
            return None
        rows = [self._rows(v) for v in term.inputs]
        ways = {r.way for r in rows if r.way}
        found = self._place(rows)
        if len(ways) > 1 or found is None:
            return None
        for part in rows:
            if part.kind == "collect":
                part.place, part.way = found
        return (term, rows) if self._fits(rows) else None

    def _rows(self, value: Value) -> _Rows:
        """Where the rows of a factor are."""
        made = value.node
        source = None if made is None or not made.inputs else self.outer.get(made.inputs[0])
        if made is not None and source is not None and made.op is INDEX:
            axis = made.attrs["axis"]
            way = counts_through(self.node, made.inputs[1], source.spec.dims[axis])
            if way is not None and is_static(source.spec):
                return _Rows("array", source, made.inputs[1], way, axis)
        if made is not None and source is not None and made.op is LIST_GET:
            way = counts_through(self.node, made.inputs[1], _length(source))
            if way is not None:
                return _Rows("list", source, made.inputs[1], way)
        return _Rows("collect", value)

    def _place(self, rows: list[_Rows]) -> tuple[Value, int] | None:
        """The position at which collected rows are put, and the direction in which it moves."""
        for part in rows:
            if part.place is not None:
                return part.place, part.way
        variables = [*self.body.params[: self.carried], *self.body.results]
        for value in variables:
            if value.spec.dtype.is_integer and not value.spec.rank:
                way = counts_through(self.node, value, self.trips)
                if way is not None:
                    return value, way
        return None

    def _fits(self, rows: list[_Rows]) -> bool:
        """Whether the collected rows have place in memory."""
        more = {(r.value, r.way) for r in rows if r.kind == "collect"} - self.collected.keys()
        size = sum(_bytes(v) for v, _ in more) * self.trips
        if self.bytes + size > MOST_BYTES:
            return False
        self.bytes += size
        self.collected.update(dict.fromkeys(more, -1))
        return True

    # -- the new nodes

    def _collect(self, part: _Rows) -> None:
        """Carry a list that gets the factor of every iteration."""
        assert part.place is not None
        key = part.value, part.way
        if self.collected[key] >= 0:
            return
        spec = part.value.spec
        size = self.rewriter.constant(np.array(self.trips, np.int32))
        attrs = {"dims": spec.dims, "dtype": spec.dtype, "capacity": None, "unset": True}
        start = self.rewriter.emit(LIST_NEW, [size], attrs)
        items = add_carried(self.node, start)
        put = Node(
            LIST_SET, [items, part.place, part.value], {"grow": False}, [items.spec], (),
            self.node.origin,
        )  # fmt: skip
        self.body.append(put)
        self.body.results.append(put.outputs[0])
        self.collected[key] = len(self.node.outputs) - 1

    def _stacked(self, part: _Rows) -> Value:
        """All rows under each other, after the loop."""
        emit, stack = self.rewriter.emit, part.value
        if part.kind == "array" and part.axis:
            rest = [i for i in range(stack.spec.rank) if i != part.axis]
            stack = emit(TRANSPOSE, [stack], {"perm": (part.axis, *rest)})
        elif part.kind != "array":
            if part.kind == "collect":
                stack = self.node.outputs[self.collected[part.value, part.way]]
            stack = emit(LIST_STACK, [stack], {"dims": stack.spec.dims, "count": self.trips})
        dims = stack.spec.dims
        return emit(RESHAPE, [stack], {"shape": (product(dims[:2]), *dims[2:])})

    def _total(self, term: Node, stacks: list[Value]) -> Value:
        if term.op is MATMUL:
            return self.rewriter.emit(MATMUL, stacks, term.attrs)
        return self.rewriter.emit(REDUCE_SUM, stacks, term.attrs)


def _adds_rows(term: Node) -> bool:
    """Whether a node sums over the first dims of its operands."""
    spec = term.inputs[0].spec if term.inputs else None
    if spec is None or not isinstance(spec.dims[:1], tuple) or spec.rank < 1:
        return False
    rows: Any = spec.dims[0]
    if not isinstance(rows, int) or not 0 < rows <= MOST_ROWS:
        return False
    if term.op is MATMUL:
        turned = term.attrs["transpose_a"] and not term.attrs["transpose_b"]
        return turned and all(v.spec.rank == 2 for v in term.inputs)
    return term.op is REDUCE_SUM and term.attrs["axis"] == (0,) and not term.attrs["keepdims"]


def _length(items: Value) -> int | None:
    """The length of a list that a loop made of one element for every iteration."""
    loop = items.node
    if loop is None or loop.op is not WHILE:
        return None
    start, body = loop.inputs[items.index].node, loop.regions[1]
    push = body.results[items.index].node
    if start is None or start.op is not LIST_NEW or start.inputs or push is None:
        return None
    once = push.op is LIST_PUSH and push.inputs[0] is body.params[items.index]
    return trip_count(loop) if once else None


def _bytes(value: Value) -> int:
    size = product(value.spec.dims)
    assert isinstance(size, int)
    return size * int(value.spec.dtype.size)
