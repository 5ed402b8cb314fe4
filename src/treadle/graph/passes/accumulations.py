"""Products that a loop adds up, taken together after it.

    for i < T: s += matmul(%a_i, %b_i) {transpose_a}   ->   for i < T: %bs[i] = %b_i
                                                            s += matmul(%as, %bs) {transpose_a}

The gradients of a recurrent network's weights are the case in mind: each is a sum over time of
products with few rows. Put under each other the rows make one product that runs near the machine's
limit. Factors that are slices of an array or elements of a list are there already; others are
collected. The sums of rows (gradients of biases) go the same way, and so do sums of several such
terms, each in a place of its own: the gradient of an array whose parts a loop uses. Only loops with
a known number of iterations are rewritten. Sums are added up in another order, so they may round
differently; rolled loops, which have the bits of their iterations one after the other, stay as they
are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from treadle.core.records import record
from treadle.core.shapes import product
from treadle.core.spec import is_static
from treadle.graph.ir import Graph, Node, Value, uses
from treadle.graph.passes.row_sums import added_up
from treadle.graph.rewrite import Replacement, Rewriter, add_carried
from treadle.graph.trip_count import counts_through, counts_within, invariants, trip_count
from treadle.ops.collections.lists import LIST_GET, LIST_NEW, LIST_PUSH, LIST_SET, LIST_STACK
from treadle.ops.control.control_flow import WHILE
from treadle.ops.elementwise.arithmetic import ADD, ADD_N
from treadle.ops.indexing.index import INDEX
from treadle.ops.linalg.matrices import MATMUL
from treadle.ops.reductions.reduction import REDUCE_SUM
from treadle.ops.shaping.permuting import TRANSPOSE
from treadle.ops.shaping.reshaping import RESHAPE
from treadle.ops.shaping.slicing import SLICE_GRAD, STRIDED_SLICE

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
        first: the least position, where the loop leaves out some of an array's rows.
    """

    kind: str
    value: Value
    place: Value | None = None
    way: int = 0
    axis: int = 0
    first: int = 0


@record
class _Term:
    """What a loop adds up: a product or a sum of rows, or a node that adds such terms or moves one.

    Attributes:
        parts: the terms that the node adds or moves.
        rows: where the factors of a product or sum of rows are.
    """

    node: Node
    parts: list[_Term]
    rows: list[_Rows]

    def all_rows(self) -> Iterator[_Rows]:
        """Those of the term and its parts."""
        yield from self.rows
        for part in self.parts:
            yield from part.all_rows()


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
        found = [(i, t) for i in range(self.carried) if (t := self._added(i)) is not None]
        if not found:
            return None
        for _, term in found:
            for rows in term.all_rows():
                if rows.kind == "collect":
                    self._collect(rows)
        self.rewriter.place(self.node)
        self.rewriter.erase()  # it has just been put in its place
        results: list[Value] = list(self.node.outputs)
        for number, term in found:
            total = self._total(term)
            start = self.node.inputs[number]
            results[number] = self.rewriter.emit(ADD, [start, total], {})
            self.body.results[number] = self.body.params[number]
        return results

    # -- products that can be taken out

    def _added(self, number: int) -> _Term | None:
        """What variable `number` adds up, where that can be computed after the loop."""
        node = added_up(self.node, number, self.asked, self.uses)
        return None if node is None else self._term(node)

    def _term(self, node: Node | None) -> _Term | None:
        """A node of the body as a term."""
        if node is None or node.region is not self.body:
            return None
        if not all(is_static(v.spec) for v in (*node.inputs, *node.outputs)):
            return None
        if _adds_rows(node):
            rows = self._factors(node)
            return None if rows is None else _Term(node, [], rows)
        if not _is_linear(node) or any(self.uses[v] != 1 for v in node.inputs):
            return None
        parts = []
        for value in node.inputs:
            part = self._term(value.node)
            if part is None:
                return None
            parts.append(part)
        return _Term(node, parts, [])

    def _factors(self, node: Node) -> list[_Rows] | None:
        """Where the factors of a product are, where they can be put under each other."""
        rows = [self._rows(v) for v in node.inputs]
        ways = {r.way for r in rows if r.way}
        found = self._place(rows)
        if len(ways) > 1 or found is None:
            return None
        for part in rows:
            if part.kind == "collect":
                part.place, part.way = found
        return rows if self._fits(rows) else None

    def _rows(self, value: Value) -> _Rows:
        """Where the rows of a factor are."""
        made = value.node
        source = None if made is None or not made.inputs else self.outer.get(made.inputs[0])
        if made is not None and source is not None and made.op is INDEX:
            axis = made.attrs["axis"]
            found = counts_within(self.node, made.inputs[1], source.spec.dims[axis])
            if found is not None and is_static(source.spec):
                return _Rows("array", source, made.inputs[1], found[1], axis, found[0])
        if made is not None and source is not None and made.op is LIST_GET:
            way = counts_through(self.node, made.inputs[1], _length(source))
            if way is not None:
                return _Rows("list", source, made.inputs[1], way)
        return _Rows("collect", value)

    def _place(self, rows: list[_Rows]) -> tuple[Value, int] | None:
        """The position at which collected rows are put, and the direction in which it moves: that
        of the rows that lie in a stack already."""
        for part in rows:
            if part.place is not None and not part.first:
                return part.place, part.way
        ways = {part.way for part in rows if part.way} or {1, -1}
        variables = [*self.body.params[: self.carried], *self.body.results]
        for value in variables:
            if value.spec.dtype.is_integer and not value.spec.rank:
                way = counts_through(self.node, value, self.trips)
                if way in ways:
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
        if part.kind == "array" and stack.spec.dims[part.axis] != self.trips:
            begin, size = [0] * stack.spec.rank, list(stack.spec.dims)
            begin[part.axis], size[part.axis] = part.first, self.trips
            attrs = {"begin": tuple(begin), "size": tuple(size), "strides": (1,) * len(size)}
            stack = emit(STRIDED_SLICE, [stack], attrs)
        if part.kind == "array" and part.axis:
            rest = [i for i in range(stack.spec.rank) if i != part.axis]
            stack = emit(TRANSPOSE, [stack], {"perm": (part.axis, *rest)})
        elif part.kind != "array":
            if part.kind == "collect":
                stack = self.node.outputs[self.collected[part.value, part.way]]
            stack = emit(LIST_STACK, [stack], {"dims": stack.spec.dims, "count": self.trips})
        dims = stack.spec.dims
        return emit(RESHAPE, [stack], {"shape": (product(dims[:2]), *dims[2:])})

    def _total(self, term: _Term) -> Value:
        """The sum of a term over all iterations."""
        operands = [self._stacked(r) for r in term.rows] or [self._total(p) for p in term.parts]
        return self.rewriter.emit(term.node.op, operands, term.node.attrs)


def _is_linear(node: Node) -> bool:
    """Whether a node gives for a sum what its results for the terms add up to."""
    return node.op in (ADD, ADD_N, SLICE_GRAD) or "moves" in node.op.tags


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
