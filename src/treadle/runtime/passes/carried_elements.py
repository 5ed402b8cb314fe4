"""Elements that one iteration of a loop writes and a later one reads are loop variables.

    while(%i, %y) body:                        while(%i, %y, %c = y[i0 - 1]) body:
        %1 = index(%y, %i - 1)                     %2 = f(%c)
        %2 = f(%1)                       ->        return ..., index_update(%y, %i, %2), %2
        return ..., index_update(%y, %i, %2)

A processor takes several times as long to load what it has just stored as to use a register, and
recurrences are as slow as this chain. Positions are compared as dims over the loops' counters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treadle.core.shapes import Dim, SymbolicDim, dim_symbols, substitute, symbol_name
from treadle.core.spec import TensorSpec
from treadle.graph.integers import Integers
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import Replacement, Rewriter, add_carried, replace_reads
from treadle.graph.trip_count import step_of
from treadle.ops.control.control_flow import WHILE
from treadle.ops.elementwise.arithmetic import ADD, MAXIMUM, MINIMUM
from treadle.ops.indexing.elements import ELEMENT, ELEMENT_UPDATE
from treadle.ops.indexing.index import INDEX
from treadle.ops.indexing.updates import INDEX_UPDATE
from treadle.runtime.schedule.facts import Facts

# Iterations between the one that writes and the one that reads. No machine changes it: from farther
# away, what was stored has arrived in the cache.
FARTHEST = 4


class _Access(NamedTuple):
    """A read or a write of one element: its position along every axis, as values and as dims."""

    node: Node
    values: list[Value]
    dims: list[Dim | None]


class _Source(NamedTuple):
    """The write that made an element, so many iterations ago."""

    write: int
    ago: int


def carry_elements(graph: Graph, facts: Facts) -> bool:
    """Give loops the elements that they read back as loop variables, in half the registers."""
    if not any(node.op is WHILE for node in graph.walk()):
        return False
    return _Carrier(graph, facts.tuning.registers // 2).run()


class _Carrier(Rewriter):
    """Rewrites loops.

    Args:
        most: loop variables that one array adds to a loop.
    """

    def __init__(self, graph: Graph, most: int) -> None:
        super().__init__(graph)
        self.most = most
        self._integers: Integers | None = None

    def visit(self, node: Node) -> Replacement:
        if node.op is WHILE:
            body = node.regions[1]
            for param, result in list(zip(body.params, body.results, strict=False)):
                writes = _writes(param, result)
                if writes:
                    self._carry(node, param, writes)
        return None

    @property
    def integers(self) -> Integers:
        if self._integers is None:
            self._integers = Integers(self.graph)
        return self._integers

    def _carry(self, loop: Node, array: Value, nodes: list[Node]) -> None:
        """Replace the reads of one array that is written element by element."""
        body = loop.regions[1]
        versions = {array: 0} | {n.outputs[0]: k for k, n in enumerate(nodes, 1)}
        reads = [n for n in body.nodes if _reads_element(n) and n.inputs[0] in versions]
        if not reads:
            return
        writes = [self._access(n) for n in nodes]
        carried: dict[_Source, Value] = {}
        replaced: dict[Value, Value] = {}
        for node in reads:
            read = self._access(node)
            source = self._source(loop, read, versions[node.inputs[0]], writes)
            if source is None or len(carried) + source.ago > self.most:
                continue
            value = writes[source.write].node.inputs[-1]
            for ago in range(1, source.ago + 1):
                step = _Source(source.write, ago)
                if step not in carried:
                    start = self._at_start(loop, array, read, source.ago - ago)
                    carried[step] = add_carried(loop, start)
                    body.results.insert(carried[step].index, value)
                value = carried[step]
            replaced[node.outputs[0]] = value
        if replaced:
            replace_reads(body, replaced)
            self.changed = True

    def _access(self, node: Node) -> _Access:
        last = None if node.op in (INDEX, ELEMENT) else -1
        positions = node.inputs[1:last]
        return _Access(node, positions, [self.integers.dim(v) for v in positions])

    def _source(
        self, loop: Node, read: _Access, version: int, writes: list[_Access]
    ) -> _Source | None:
        """Which write made the element that is read, if every iteration reads one made so."""
        sizes = read.node.inputs[0].spec.dims
        inside = map(self.integers.lies_inside, read.values, (0,) * len(sizes), sizes)
        if not all(inside):
            return None
        for ago in range(FARTHEST + 1):
            for number in reversed(range(len(writes) if ago else version)):
                earlier = self._earlier(loop, writes[number].dims, ago)
                if earlier == read.dims:
                    can_start = self._runs(loop, ago) or _has_elements(read.node.inputs[0])
                    return _Source(number, ago) if can_start else None
                if not self._differ(read, writes[number], earlier):
                    return None
        return None

    def _earlier(self, loop: Node, dims: list[Dim | None], ago: int) -> list[Dim | None]:
        """Positions as they were so many iterations ago; None for a position that is not known."""
        if not ago:
            return dims
        body, before = loop.regions[1], dict[str, Dim]()
        moving = _moving_sizes(loop)
        made = _made_inside(body)
        moving |= {name for name, value in self.integers.sources.items() if value in made}
        for number, param in enumerate(body.params[: len(body.results)]):
            dim = self.integers.dim(param)
            name = None if dim is None else symbol_name(dim)
            if name is not None and body.results[number] is not param:
                step = step_of(loop, number)
                if step is None:
                    moving.add(name)
                else:
                    before[name] = SymbolicDim.symbol(name) - step * ago
        moving -= before.keys()
        return [
            None if d is None or dim_symbols(d) & moving else substitute(d, before) for d in dims
        ]

    def _differ(self, read: _Access, write: _Access, dims: list[Dim | None]) -> bool:
        """Whether a write, at positions `dims`, is proved to leave the element of a read alone."""
        axes = zip(read.dims, write.values, dims, read.node.inputs[0].spec.dims, strict=True)
        for mine, value, other, size in axes:
            if mine is None or other is None:
                continue
            distance = mine - other
            if not isinstance(distance, int) or distance == 0:
                continue
            # A position that counts from the end is less by the size.
            if isinstance(size, int) and distance % size:
                return True
            if self.integers.lies_inside(value, 0, size):
                return True
        return False

    def _runs(self, loop: Node, times: int) -> bool:
        """Whether a loop is proved to have that many iterations."""
        trips = self.integers.trips(loop)
        return trips is not None and self.integers.ranges.is_less_equal(times, trips)

    def _at_start(self, loop: Node, array: Value, read: _Access, later: int) -> Value:
        """The element that iteration `later` would read of the array that the loop begins with."""
        positions = [self._outer(loop, v, later) for v in read.values]
        if not self._runs(loop, later + 1):  # then nobody sees the element: any one will do
            axes = zip(positions, array.spec.dims, strict=True)
            positions = [self._clamped(p, d) for p, d in axes]
        start = loop.inputs[array.index]
        if read.node.op is INDEX:
            return self.emit(INDEX, [start, *positions], {"axis": 0})
        return self.emit(ELEMENT, [start, *positions], {})

    def _clamped(self, position: Value, size: Dim) -> Value:
        dtype = position.spec.dtype.np_dtype
        low, high = (self.constant(np.asarray(n, dtype)) for n in (0, size - 1))
        return self.emit(MINIMUM, [self.emit(MAXIMUM, [position, low], {}), high], {})

    def _outer(self, loop: Node, value: Value, later: int) -> Value:
        """A position of the body as it is in iteration number `later`, computed before the loop."""
        body, node = loop.regions[1], value.node
        if node is None:
            start = loop.inputs[value.index]
            moves = value.index < len(body.results) and body.results[value.index] is not value
            step = step_of(loop, value.index) if moves else 0
            assert step is not None
            if not step * later:
                return start
            shift = self.constant(np.asarray(step * later, value.spec.dtype.np_dtype))
            return self.emit(ADD, [start, shift], {})
        inputs = [self._outer(loop, v, later) for v in node.inputs]
        return self.emit(node.op, inputs, node.attrs)


def _moving_sizes(loop: Node) -> set[str]:
    """Symbols of sizes that may differ from one iteration to the next."""
    body = loop.regions[1]
    made = {s for n in body.walk() for v in n.outputs for s in v.spec.symbols()}
    pairs = list(zip(body.params, loop.inputs, strict=True))
    opened = {s for p, v in pairs if p.spec is not v.spec for s in p.spec.symbols()}
    stable = {s for p, v in pairs if p.spec is v.spec for s in p.spec.symbols()}
    return (made - stable) | opened


def _made_inside(body: Region) -> set[Value]:
    """All values that a loop's body computes, nested regions included."""
    made = {*body.params}
    for node in body.walk():
        made.update(node.outputs)
        for region in node.regions:
            made.update(region.params)
    return made


def _reads_element(node: Node) -> bool:
    return node.op is ELEMENT or (node.op is INDEX and node.outputs[0].spec.rank == 0)


def _writes(array: Value, result: Value) -> list[Node]:
    """The updates of single elements that make a loop variable's next value, in their order;
    none where anything else has a part in it."""
    spec = array.spec
    if type(spec) is not TensorSpec or not spec.rank or spec.dtype.is_complex:
        return []
    if spec.dtype.is_floating and spec.dtype.size < np.dtype(np.float32).itemsize:
        return []  # registers of narrow floats are wider than memory
    found: list[Node] = []
    while result is not array:
        node = result.node
        if node is None or node.op not in (INDEX_UPDATE, ELEMENT_UPDATE):
            return []
        if node.inputs[-1].spec.rank:
            return []
        found.append(node)
        result = node.inputs[0]
    return found[::-1]


def _has_elements(array: Value) -> bool:
    return all(isinstance(d, int) and d > 0 for d in array.spec.dims)
