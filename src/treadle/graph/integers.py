"""Integers of a graph as dims: scalars written as expressions over symbols, with their ranges.

In ``while i < n: ... x[:i + 1] ...`` the counter i becomes a symbol between its start and n - 1,
and ``i + 1`` the dim ``i + 1``: sizes of parts can then be compared, and shown to lie inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from treadle.core import dtypes
from treadle.core.ranges import Ranges
from treadle.core.shapes import Dim, SymbolicDim, compound, fresh_symbol, symbol_name
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.trip_count import bounding, conjuncts, position, step_of, trip_count
from treadle.ops.control.control_flow import COND, WHILE
from treadle.ops.conversion import CONST
from treadle.ops.dims import AS_DIM, DIM, SHAPE
from treadle.ops.elementwise.arithmetic import MAXIMUM, MINIMUM, MOD, MULTIPLY
from treadle.ops.elementwise.casting import CAST
from treadle.ops.elementwise.selection import WHERE
from treadle.ops.elementwise.unary import IDENTITY
from treadle.ops.shaping.joining import STACK
from treadle.ops.shaping.reshaping import RESHAPE
from treadle.ops.shaping.slicing import STRIDED_SLICE

_WIDE = (dtypes.int32, dtypes.int64)  # arithmetic of narrower integers wraps around
_SHORT = 64  # elements of a constant that are looked at one by one
_SMALL = 16  # factors of positions that are read as sums
_CLAMPS = 4  # minima and maxima of one another that are looked through


class Integers:
    """The scalars of one graph.

    Args:
        results: also find the ranges of counters after their loops. The symbols for these
            are not to be bound.

    Attributes:
        ranges: of the symbols that stand for scalars.
        leaves: symbol -> the scalar that it is the value of, as long as no node tells.
        sources: new symbol -> the scalar from which it was made.
    """

    def __init__(self, graph: Graph, results: bool = False) -> None:
        self.results = results
        self.ranges = Ranges()
        self.leaves: dict[str, Value] = {}
        self.sources: dict[str, Value] = {}
        self._dims: dict[Value, Dim | None] = {}
        self._exact: dict[Value, bool] = {}
        self._sums: dict[Value, bool] = {}
        self._owners: dict[Region, Node] = {}
        for node in graph.walk():
            self._owners.update(dict.fromkeys(node.regions, node))
            if node.op is AS_DIM:
                self._learn(node)

    def dim(self, value: Value) -> Dim | None:
        """The value of an integer scalar as a dim; None where nothing tells that it is none."""
        if value not in self._dims:
            self._dims[value] = None  # a value that a loop computes from itself is not known
            self._dims[value] = self._find(value)
        return self._dims[value]

    def leaf(self, value: Value, least: Dim, most: Dim | None) -> Dim:
        """A new symbol for a scalar that is known to be in a range, which is not negative."""
        symbol = fresh_symbol("k")
        (((name,), _),) = symbol.terms
        assert isinstance(name, str)
        self.leaves[name] = self.sources[name] = value
        self.ranges.add(name, least, most)
        self._dims[value] = symbol
        return symbol

    def trips(self, loop: Node) -> Dim | None:
        """The most iterations of a loop that counts by one; the dim may be negative for none."""
        known = trip_count(loop)
        if known is not None:
            return known
        for number in range(len(loop.outputs)):
            start = self.dim(loop.inputs[number]) if step_of(loop, number) == 1 else None
            for test in conjuncts(loop.regions[0].results[0]) if start is not None else ():
                _, high = self._tested(loop, test, number)
                if high is not None and start is not None:
                    return high + 1 - start
        return None

    def most_trips(self, loop: Node) -> int | None:
        """A bound on the iterations of a counting loop, for all sizes; None where there is none."""
        found = [t for number in range(len(loop.outputs)) for t in self._trips(loop, number)]
        known = trip_count(loop)
        return min(found, default=None) if known is None else known

    def _trips(self, loop: Node, number: int) -> Iterator[int]:
        """Bounds of the number of iterations by the tests of one counter."""
        step = step_of(loop, number)
        start = self.dim(loop.inputs[number]) if step else None
        for test in conjuncts(loop.regions[0].results[0]) if start is not None else ():
            low, high = self._tested(loop, test, number)
            assert step is not None and start is not None
            end = high if step > 0 else low
            if end is None:
                continue
            distance = self.ranges.most((end - start) * (1 if step > 0 else -1), frozenset())
            if isinstance(distance, int):
                yield max(0, distance // abs(step) + 1)

    def lies_inside(self, value: Value, least: Dim, size: Dim) -> bool:
        """Whether a scalar is proved to be in [least, size), with all that wraps around on the way
        to it: sums and products of numbers that are exact are right where they end up in range."""
        dim = self.dim(value)
        return (
            dim is not None
            and self._is_sum(value)
            and self.ranges.is_less_equal(least, dim)
            and self.ranges.is_less_equal(dim + 1, size)
        )

    def are_clamped(self, value: Value, least: Dim, most: Dim) -> bool:
        """Whether minima and maxima are proved to keep elements of an array in [least, most]."""
        low, high = self._ends(value, _CLAMPS)
        return (
            low is not None
            and high is not None
            and self.ranges.is_less_equal(least, low)
            and self.ranges.is_less_equal(high, most)
        )

    def _ends(self, value: Value, depth: int) -> tuple[Dim | None, Dim | None]:
        """The least and the most that minima and maxima leave of the elements of a value."""
        if not value.spec.rank:
            dim = self.dim(value) if self._is_exact(value) else None
            return dim, dim
        node = value.node
        if node is None or not depth or node.op not in (MAXIMUM, MINIMUM):
            return None, None
        lows, highs = zip(*(self._ends(v, depth - 1) for v in node.inputs), strict=True)
        if node.op is MAXIMUM:
            return _extreme("max", lows, any), _extreme("max", highs, all)
        return _extreme("min", lows, all), _extreme("min", highs, any)

    def is_not_negative(self, value: Value) -> bool:
        """Whether a scalar is proved not to be negative, however it is computed."""
        dim = self.dim(value)
        return dim is not None and self._is_exact(value) and self.ranges.is_non_negative(dim)

    def _is_sum(self, value: Value) -> bool:
        """Whether a scalar is made of exact ones by additions, subtractions and products."""
        if value not in self._sums:
            node = value.node
            inner = node is not None and "ring" in node.op.tags
            self._sums[value] = (
                all(map(self._is_sum, node.inputs))
                if node is not None and inner
                else self._is_exact(value)
            )
        return self._sums[value]

    def _is_exact(self, value: Value) -> bool:
        """Whether a scalar is its dim: no product on the way to it may have wrapped around."""
        if value not in self._exact:
            self._exact[value] = False  # what is made of itself, by an outer loop, is not proved
            self._exact[value] = self._find_exact(value)
        return self._exact[value]

    def _find_exact(self, value: Value) -> bool:
        node = value.node
        if node is None:
            region = value.producer
            owner = self._owners.get(region) if isinstance(region, Region) else None
            return owner is None or all(map(self._is_exact, _makers(owner, value.index)))
        if node.op is WHILE:
            return all(map(self._is_exact, _makers(node, value.index)))
        if node.op is MULTIPLY and not (_is_scaled(node) or self._fits(value)):
            return False
        scalars = (v for v in node.inputs if not v.spec.rank)
        return node.op in (CONST, DIM) or all(map(self._is_exact, scalars))

    def _fits(self, value: Value) -> bool:
        """Whether a dim is proved to be a number of its scalar's dtype."""
        dim = self.dim(value)
        limits = np.iinfo(value.spec.dtype.np_dtype)
        ends = () if dim is None else (self.ranges.most(d, frozenset()) for d in (dim, -dim))
        return dim is not None and all(isinstance(e, int) and e <= limits.max for e in ends)

    def bind(self) -> None:
        """Put the nodes into the graph that give the new symbols their values."""
        for name, value in self.leaves.items():
            least, most = self.ranges.of[name]
            dim = SymbolicDim.symbol(name)
            attrs = {"dim": dim, "least": least, "most": most}
            maker = value.node
            region = value.producer if maker is None else maker.region
            assert isinstance(region, Region)
            origin = None if maker is None else maker.origin
            if origin is None and region in self._owners:
                origin = self._owners[region].origin
            node = Node(AS_DIM, [value], attrs, [TensorSpec([dim], dtypes.bool)], (), origin)
            node.region = region
            region.nodes.insert(0 if maker is None else region.nodes.index(maker) + 1, node)
        self.leaves = {}

    def _learn(self, node: Node) -> None:
        dim = node.attrs["dim"]
        for name in dim.symbols() if isinstance(dim, SymbolicDim) else ():
            self.ranges.add(name, node.attrs["least"], node.attrs["most"])
        self._dims[node.inputs[0]] = dim

    def _find(self, value: Value) -> Dim | None:
        if value.spec.rank or value.spec.dtype not in _WIDE:
            return None
        node = value.node
        if node is None:
            return self._parameter(value)
        op = node.op
        if op is CONST:
            return int(node.attrs["value"])
        if op is DIM:
            dim: Dim = node.attrs["dim"]
            return dim
        if op in (CAST, RESHAPE) or "as_is" in op.tags:
            return self._same(node.inputs[0])
        if op.on_dims is not None:
            a, b = map(self.dim, node.inputs)
            return None if a is None or b is None else op.on_dims(a, b)
        if op is WHERE:
            return self._chosen(node)
        if op is MOD:
            return self._remainder(value, node.inputs[1])
        return self._left(node, value.index) if op is WHILE and self.results else None

    def _chosen(self, node: Node) -> Dim | None:
        """The larger or the smaller of two numbers, chosen by comparing them."""
        test, a, b = node.inputs
        asked = test.node
        relation = None if asked is None else asked.op.relation
        if asked is None or relation is None or not relation.is_order:
            return None
        if asked.inputs not in ([a, b], [b, a]):
            return None
        larger = relation.is_greater == (asked.inputs[0] is a)
        x, y = self.dim(a), self.dim(b)
        return None if x is None or y is None else compound("max" if larger else "min", x, y)

    def _remainder(self, value: Value, divisor: Value) -> Dim | None:
        """A remainder of a division by a positive number has its sign."""
        size = self.dim(divisor)
        return self.leaf(value, 0, size - 1) if isinstance(size, int) and size > 0 else None

    def _left(self, loop: Node, number: int) -> Dim | None:
        """A counter after its loop: its start, or one step after its value in an iteration."""
        step, start = step_of(loop, number), self.dim(loop.inputs[number])
        inside = self.dim(loop.regions[1].params[number])
        name = None if inside is None else symbol_name(inside)
        if not step or start is None or name not in self.ranges.of:
            return None
        least, most = self.ranges.of[name]
        if step > 0:
            ends = start, None if most is None else compound("max", start, most + step)
        else:
            ends = compound("min", start, least + step), start
        symbol = fresh_symbol("k")  # the counter may have become negative: this has not
        shift = max(0, -step)
        low, high = ends[0] + shift, None if ends[1] is None else ends[1] + shift
        if not self.ranges.is_non_negative(low):
            return None
        self.ranges.add(str(symbol), low, high)
        self.sources[str(symbol)] = loop.outputs[number]
        return symbol - shift

    def _same(self, value: Value) -> Dim | None:
        """The only element of the operand of a cast or reshape."""
        if value.spec.rank == 0:
            return self.dim(value)
        found = self.elements(value)
        return found[0] if found is not None and len(found) == 1 else None

    def elements(self, value: Value) -> list[Dim | None] | None:
        """The elements of a short vector, as a shape is."""
        node = value.node
        if node is None or value.spec.rank != 1:
            return None
        if node.op is SHAPE:
            return [*node.inputs[0].spec.dims]
        if node.op is STACK:
            return [self.dim(v) for v in node.inputs]
        if node.op in (CAST, IDENTITY):
            return self.elements(node.inputs[0])
        if node.op is CONST:
            short = node.attrs["value"].size < _SHORT and value.spec.dtype in _WIDE
            return [int(x) for x in node.attrs["value"]] if short else None
        return self._part(node) if node.op is STRIDED_SLICE else None

    def _part(self, node: Node) -> list[Dim | None] | None:
        found = self.elements(node.inputs[0])
        (begin,), (size,), (stride,) = (node.attrs[k] for k in ("begin", "size", "strides"))
        if found is None or not (isinstance(begin, int) and isinstance(size, int)):
            return None
        return [found[begin + k * stride] for k in range(size)]

    def _parameter(self, value: Value) -> Dim | None:
        region = value.producer
        owner = self._owners.get(region) if isinstance(region, Region) else None
        if owner is None:
            return None
        if owner.op is COND:
            given = self.dim(owner.inputs[1 + value.index])
            return self._asked_before(owner, value) if given is None else given
        if owner.op is not WHILE:
            return None
        condition, body = owner.regions
        number = value.index
        fixed = number >= len(body.results) or body.results[number] is body.params[number]
        if fixed:
            return self.dim(owner.inputs[number])
        return None if region is condition else self._counter(owner, number)

    def _asked_before(self, owner: Node, param: Value) -> Dim | None:
        """A symbol for a scalar that a branch is only taken with where it is not negative."""
        if param.producer is not owner.regions[0]:
            return None
        given = owner.inputs[1 + param.index]
        least, most = self._since_start(given)
        for test in conjuncts(owner.inputs[0]):
            low, high = self._compared(test, lambda v: v is given)
            least, most = (least if low is None else low), (most if high is None else high)
        if least is None or not self.ranges.is_non_negative(least):
            return None
        return self.leaf(param, least, most)

    def _since_start(self, value: Value) -> tuple[Dim | None, Dim | None]:
        """The least and the most of a counter while the test of its loop is computed."""
        region = value.producer
        loop = self._owners.get(region) if isinstance(region, Region) else None
        if loop is None or loop.op is not WHILE or value.index >= len(loop.outputs):
            return None, None
        step, start = step_of(loop, value.index), self.dim(loop.inputs[value.index])
        if step is None or start is None:
            return None, None
        return (start if step >= 0 else None), (start if step <= 0 else None)

    def _counter(self, loop: Node, number: int) -> Dim | None:
        """A symbol for a loop variable that counts and is never negative in the body."""
        step, param = step_of(loop, number), loop.regions[1].params[number]
        if not step:
            return None
        start = self.dim(loop.inputs[number])
        least = start if step > 0 else None
        most = start if step < 0 else None
        for test in conjuncts(loop.regions[0].results[0]):
            low, high = self._tested(loop, test, number)
            least = low if least is None else least
            most = high if most is None else most
        counted = _constants(loop, param)
        if counted is not None:
            least, most = counted
        if least is None or not self.ranges.is_non_negative(least):
            return None
        return self.leaf(param, least, most)

    def _tested(self, loop: Node, test: Node, number: int) -> tuple[Dim | None, Dim | None]:
        """The least and the most that a test of a loop leaves of a loop variable."""
        condition = loop.regions[0]
        return self._compared(test, lambda v: v.producer is condition and v.index == number)

    def _compared(
        self, test: Node, is_meant: Callable[[Value], bool]
    ) -> tuple[Dim | None, Dim | None]:
        """The least and the most that a comparison leaves of a value."""
        relation = bounding(test)
        if relation is None:
            return None, None
        left, right = test.inputs
        if not is_meant(left):
            left, right, relation = right, left, relation.mirrored
        if not is_meant(left):
            return None, None
        limit = self.dim(right)
        if limit is None:
            return None, None
        if relation.is_less:
            return None, limit if relation.holds_of_equals else limit - 1
        if relation.is_greater:
            return limit if relation.holds_of_equals else limit + 1, None
        return None, None


def _extreme(
    kind: str, found: Sequence[Dim | None], needs: Callable[[Iterable[bool]], bool]
) -> Dim | None:
    """The "max" or "min" of two bounds; `needs` tells whether both must be known, or one."""
    known = [d for d in found if d is not None]
    if not needs(d is not None for d in found):
        return None
    return known[0] if len(known) == 1 else compound(kind, known[0], known[1])


def _is_scaled(node: Node) -> bool:
    """Whether a product is a number times a small constant, as good as a few sums."""
    constants = [v.node.attrs["value"] for v in node.inputs if v.node and v.node.op is CONST]
    return any(abs(int(c)) <= _SMALL for c in constants)


def _makers(owner: Node, number: int) -> Iterator[Value]:
    """The operands of a branch or loop that decide the range of a parameter of its regions."""
    if owner.op is COND:
        given = owner.inputs[1 + number]
        yield given
        tests = [t for t in conjuncts(owner.inputs[0]) if bounding(t) is not None]
        yield from (v for t in tests if given in t.inputs for v in t.inputs if v is not given)
        return
    yield owner.inputs[number]
    condition = owner.regions[0]
    for test in conjuncts(condition.results[0]) if number < len(owner.outputs) else ():
        for limit in test.inputs if bounding(test) is not None else ():
            if limit.node is not None:
                yield limit
            elif limit.index != number:
                yield owner.inputs[limit.index]


def _constants(loop: Node, param: Value) -> tuple[Dim, Dim] | None:
    """The range of a loop variable in a loop that runs a known number of times."""
    trips, found = trip_count(loop), position(loop, param)
    if not trips or found is None:
        return None
    ends = found[0], found[0] + found[1] * (trips - 1)
    return min(ends), max(ends)
