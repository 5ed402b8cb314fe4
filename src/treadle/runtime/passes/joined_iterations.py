"""Loops that change an array as a whole do several iterations in one pass over it.

    while(%k < 32, %y) body:                        while(%k < 32, %y) body:
        return %k + 1, %y + w[k] * x[k : k + n]         %1 = %y + w[k] * x[k : k + n]
                                                ->      %2 = %1 + w[k + 1] * x[k + 1 : k + 1 + n]
                                                        ...
                                                        return %k + 16, %16

An element of the array then stays in a register for several iterations, where each of them read it
from memory and stored it. Every element sees the same operations in the same order as before. That
is done where iterations need of the array only the element that they change, and count from a
constant to a constant. Beside that they may read parts of other arrays.

Where the number of iterations is no multiple of those that are joined, the rest of them comes
before the loop. A loop that would be left with one iteration is written out as a whole: the loop
around it may then join its own iterations, as where an image is filtered by a few rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from treadle.core.shapes import Dim, SymbolicDim, substitute, symbol_name
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph, Node, Region, Value, clone_node, uses
from treadle.graph.passes.choices import takes_few_instructions
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.rewrite import Replacement, Rewriter, map_attr
from treadle.graph.trip_count import counter, position, step_of, trip_count
from treadle.ops.control.control_flow import WHILE
from treadle.ops.dims import AS_DIM
from treadle.ops.indexing.elements import ELEMENT
from treadle.ops.indexing.index import INDEX
from treadle.ops.lowering import Compute, Structure
from treadle.runtime.schedule.facts import Facts

# No machine changes these: of more than 16 iterations each reads much more than they
# share, and of many more operations fusion makes several kernels (`fusion.group.MAX_BUFFERS`).
MOST_JOINED = 16
MOST_OPERATIONS = 36
MIN_EXACT = 4  # bytes of the smallest floating numbers that kernels compute with as they are


def join_iterations(graph: Graph, facts: Facts) -> bool:
    """Join iterations of the loops of a graph."""
    if not any(node.op is WHILE for node in graph.walk()):
        return False
    cleaned = eliminate_dead_code(graph)  # nodes that `parts` has replaced would be joined too
    return _Joiner(graph).run() or cleaned


class _Joiner(Rewriter):
    def visit(self, node: Node) -> Replacement:
        trips = trip_count(node) if node.op is WHILE else None
        if not trips or not _changes_arrays(node) or not _is_elementwise(node):
            return None
        times = joined_of(trips, _operations(node))
        moves = _moves(node) if times > 1 else None
        if moves is None:
            return None
        if trips // times == 1:
            self.erase()
            return self.write_out(node, trips, moves)
        node.inputs[: len(node.outputs)] = self.write_out(node, trips % times, moves)
        _join(node, times, moves)
        self.changed = True
        return None

    def write_out(self, loop: Node, trips: int, moves: dict[str, tuple[int, int]]) -> list[Value]:
        """Put the first iterations of a loop before it; gives its variables after them."""
        body = loop.regions[1]
        needed = _needed(loop)
        values = loop.inputs[: len(loop.outputs)]
        for number in range(trips):
            places = {name: first + step * number for name, (first, step) in moves.items()}
            mapping = dict(zip(body.params, [*values, *loop.inputs[len(values) :]], strict=True))
            copies = Region()
            for node in body.nodes:
                if node in needed:
                    _shift(clone_node(node, copies, mapping), places)
            for node in copies.nodes:
                self.place(node)
            values = [self.next(loop, v, number + 1, mapping) for v in range(len(values))]
        return values

    def next(self, loop: Node, number: int, trips: int, mapping: dict[Value, Value]) -> Value:
        """The value of a loop variable after some iterations: a constant if it counts."""
        found = counter(loop, number)
        if found is None:
            return mapping[loop.regions[1].results[number]]
        count = np.array((found.start + trips * found.step) % 2**64, np.uint64)
        return self.constant(count.astype(loop.outputs[number].spec.dtype.np_dtype))


def joined_of(trips: int, operations: int) -> int:
    """How many of the iterations of a loop are joined, each of so many operations.

    A number that divides the iterations needs no code for the rest of them, but must not be small.
    """
    most = min(MOST_JOINED, MOST_OPERATIONS // max(operations, 1), trips)
    for times in range(most, max(most // 2, 2) - 1, -1):
        if trips % times == 0:
            return times
    return -(-trips // -(-trips // most)) if most > 1 else 1


def _needed(loop: Node) -> set[Node]:
    """The nodes of a loop's body but those that only count or tell positions."""
    body = loop.regions[1]
    wanted = {v for number, v in enumerate(body.results) if counter(loop, number) is None}
    found = set[Node]()
    for node in reversed(body.nodes):
        if not wanted.isdisjoint(node.outputs):
            found.add(node)
            wanted.update(node.inputs)
    return found


def _operations(loop: Node) -> int:
    """How many operations an iteration does on the elements of arrays."""
    return sum(node.op.is_elementwise for node in _needed(loop))


def _changes_arrays(loop: Node) -> bool:
    """Whether all variables of a loop are arrays and counters, and one is an array."""
    body, arrays = loop.regions[1], 0
    for number, result in enumerate(body.results):
        spec = body.params[number].spec
        if type(spec) is not TensorSpec:
            return False
        arrays += spec.rank > 0
        if spec.dtype.is_floating and spec.dtype.size < MIN_EXACT:
            return False  # kernels keep more of them until they store them
        specs = [result.spec, loop.inputs[number].spec, loop.outputs[number].spec]
        if any(s is not spec for s in specs) or (not spec.rank and step_of(loop, number) is None):
            return False
    return arrays > 0


def _is_elementwise(loop: Node) -> bool:
    """Whether iterations are cheap, and an element of an array that they change is computed from
    the elements at its own place of these arrays only."""
    body = loop.regions[1]
    carried = body.params[: len(body.results)]
    changed = {p: p.spec for p in carried if p.spec.rank}
    for node in body.nodes:
        if node.regions or not node.is_pure or len(node.outputs) != 1:
            return False
        (out,) = node.outputs
        read = [v for v in node.inputs if v in changed]
        lower, elementwise = node.op.lower, node.op.is_elementwise
        if elementwise and not takes_few_instructions(node):
            return False
        if read and not (elementwise and all(changed[v] is out.spec for v in read)):
            return False
        if read:
            changed[out] = out.spec
        moved = isinstance(lower, Compute) and lower.kind == "view"
        known = node.op in (INDEX, ELEMENT, AS_DIM) or lower is Structure.CONSTANT
        if not (elementwise or moved or known):
            return False
    return True


def _moves(loop: Node) -> dict[str, tuple[int, int]] | None:
    """The symbols of positions in a loop's body, each with its first number and the number that an
    iteration adds to it; None where it adds no constant."""
    body, found = loop.regions[1], dict[str, tuple[int, int]]()
    reads = uses(body)
    for node in body.nodes:
        if node.op is AS_DIM:
            name, place = symbol_name(node.attrs["dim"]), position(loop, node.inputs[0])
            if name is None or place is None or reads.get(node.outputs[0]):
                return None
            found[name] = place
    return found


def _join(loop: Node, times: int, moves: dict[str, tuple[int, int]]) -> None:
    """Append the next iterations to the first one of the body."""
    body = loop.regions[1]
    first, results = list(body.nodes), list(body.results)
    last = list(results)
    for ago in range(1, times):
        places = {n: SymbolicDim.symbol(n) + step * ago for n, (_, step) in moves.items()}
        mapping: dict[Value, Value] = {p: p for p in body.params}
        mapping |= zip(body.params, last, strict=False)
        for node in first:
            if node.op is not AS_DIM:
                _shift(clone_node(node, body, mapping), places)
        last = [mapping[r] for r in results]
    body.results = last
    for node in first:
        if node.op is AS_DIM:  # of the first of the joined iterations only
            step = moves[symbol_name(node.attrs["dim"]) or ""][1] * (times - 1)
            low, high = node.attrs["least"], node.attrs["most"]
            node.attrs["least"], node.attrs["most"] = low - min(step, 0), high - max(step, 0)


def _shift(node: Node, places: Mapping[str, Dim]) -> None:
    """Put a node's positions where a later iteration has them."""

    def later(dim: Dim) -> Dim:
        return substitute(dim, places)

    node.attrs = {k: map_attr(v, later) for k, v in node.attrs.items()}
    for value in node.outputs:
        if value.spec.symbols() & places.keys():
            value.spec = value.spec.with_dims(map(later, value.spec.dims))
