"""Loops whose iterations leave one another's elements alone are done at once.

    while(%k < 30, %y) body:                           %s: f64[30, 4] = strided_slice(%y)
        %s = strided_slice(%y) {begin=(k, 0)}    ->    %t = exp(multiply(range(30), %a)) ...
        %t = exp(multiply(%k, %a)) ...                 slice_update(%y, %t)
        return %k + 1, slice_update(%y, %t) {begin=(k, 0)}

Every value of the body that differs between iterations gets an axis for them, the last one where
columns are changed, else the first one. The kernels then see all of them: they compute along the
direction in which elements lie side by side, where one iteration of a loop over columns strides
over memory; functions of the counter are computed for as many iterations as a vector has lanes;
and nothing is called per iteration.

That is done where an iteration changes an array in one position of an axis, another one every
time, and reads it there or where no iteration writes. Nothing is computed that could fail, as the
loop may run zero times, and no array becomes much larger than those that the loop uses.

Of other loops that run a known number of times the costly functions of the counter are computed
before (`counter_functions`).

Sums may be added in another order; rolled loops, which have the bits of their iterations one after
the other, are left alone where they add floating numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from treadle.core.errors import OpError
from treadle.core.shapes import Dim, product, symbol_name
from treadle.core.spec import TensorSpec
from treadle.graph.integers import Integers
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.passes.choices import takes_few_instructions
from treadle.graph.passes.counter_functions import counter_functions
from treadle.graph.passes.dead_code import eliminate_dead_code
from treadle.graph.passes.invariants import cannot_fail
from treadle.graph.passes.moving_parts import (
    READS,
    UPDATES,
    Dependent,
    MovingParts,
    Part,
    Place,
    refuse,
)  # fmt: skip
from treadle.graph.rewrite import Replacement, Rewriter, attr_symbols, read_slices
from treadle.graph.trip_count import conjuncts, step_of, trip_count
from treadle.ops.broadcasting import BROADCAST_TO
from treadle.ops.control.control_flow import WHILE
from treadle.ops.control.raising import RAISE
from treadle.ops.conversion import CONST
from treadle.ops.dims import AS_DIM, DIM, POSITION
from treadle.ops.elementwise.arithmetic import ADD, MULTIPLY, SUBTRACT
from treadle.ops.indexing.updates import SLICE_UPDATE
from treadle.ops.lowering import Compute
from treadle.ops.reductions.reduction import REDUCE_ALL
from treadle.ops.registry import Op, infer_outputs
from treadle.ops.shaping.permuting import TRANSPOSE
from treadle.ops.shaping.ranges import RANGE
from treadle.ops.shaping.reshaping import RESHAPE
from treadle.ops.shaping.slicing import STRIDED_SLICE

_T = TypeVar("_T")
MOST_GROWTH = 4  # times the elements that the loop reads and writes, in an array: bounds memory


def do_iterations_at_once(graph: Graph) -> bool:
    """Replace loops of independent iterations, inner loops first."""
    if not any(node.op is WHILE for node in graph.walk()):
        return False
    cleaned = eliminate_dead_code(graph)  # nodes that `parts` has replaced use arrays, too
    return _AtOnce(graph).run() or cleaned


class _AtOnce(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.integers = Integers(graph)
        self.known: list[set[str]] = [set()]  # symbols that have a value, for each region
        self.regions: list[Region] = []  # around the node being visited
        self.mentioned = set[str]()  # by the rewritten loops

    def enter(self, region: Region) -> None:
        self.known.append({*self.known[-1], *(s for p in region.params for s in p.spec.symbols())})
        self.regions.append(region)

    def leave(self, region: Region) -> None:
        self.known.pop()
        self.regions.pop()

    def finish(self) -> None:
        """Give values to the symbols of outer counters that no node told before."""
        leaves = self.integers.leaves
        self.integers.leaves = {k: v for k, v in leaves.items() if k in self.mentioned}
        self.integers.bind()

    def has_value(self, name: str) -> bool:
        """Whether a symbol has a value where the visited node is, or can be given one."""
        value = self.integers.leaves.get(name)
        if value is None:
            return name in self.known[-1]
        return (value.producer if value.node is None else value.node.region) in self.regions

    def visit(self, node: Node) -> Replacement:
        if node.op is not WHILE:
            self.known[-1].update(s for v in node.outputs for s in v.spec.symbols())
            return None
        results = self.attempt(lambda: _Loop(self, node).write())
        if results is None:
            self.attempt(lambda: self.tabulate(node))
            return None
        self.erase()
        return results

    def attempt(self, write: Callable[[], _T]) -> _T | None:
        """Try to write a loop in another way. Where that cannot be done the graph is as before, and
        the answer is None."""
        count, changed, mentioned = len(self._nodes), self.changed, set(self.mentioned)
        try:
            return write()
        except (Dependent, OpError):
            del self._nodes[count:]
            self.changed, self.mentioned = changed, mentioned
            return None

    def tabulate(self, loop: Node) -> None:
        """Compute costly functions of the counter before the loop, which reads them by position."""
        found = counter_functions(loop)
        if found is None:
            refuse()
        iterations = _Loop(self, loop, whole=False)
        for node in found.made_of:
            iterations.write_node(node)
        place = loop.regions[1].params[found.counter]
        tables = {n: (iterations.new[n.outputs[0]].value, place) for n in found.functions}
        read_slices(loop, tables)
        self.changed = True


class _New(NamedTuple):
    """A value of the body as it is outside.

    Attributes:
        each: whether it has an axis for the iterations; else it is the same for all.
        root: the number of the loop variable that it is a version of, if it is one.
    """

    value: Value
    each: bool = False
    root: int | None = None


class _Loop:
    """One loop, written as operations on all its iterations.

    Raises `Dependent` where that cannot be, from any method.
    """

    def __init__(self, at: _AtOnce, loop: Node, whole: bool = True) -> None:
        self.at, self.loop, self.whole = at, loop, whole
        self.parts = MovingParts(at.integers, at.has_value, at.mentioned)
        self.body = loop.regions[1]
        self.exact = bool(loop.attrs.get("rolled"))
        self.writes: dict[int, list[list[Place]]] = {}
        self.reads: dict[int, list[list[Place]]] = {}
        self.moved: list[Dim] = []  # elements of all parts that are read and written
        self.made: list[Dim] = []  # elements of each array that is computed
        self.pays = False
        self.ends: dict[int, Dim] = {}  # number of a counter -> its value after the loop
        self.trips = self.parts.trips = self._trips()
        self.new = self._parameters()
        nodes = self.body.nodes if whole else ()
        written = [self._written(node) for node in nodes if node.op in UPDATES]
        if any(place.step < 0 for places in written for place in places):
            self.parts.turn()
        self.last = any(map(_is_column, written))  # the axis of the iterations

    # -- the loop --------------------------------------------------------------------------------

    def write(self) -> list[Value]:
        """The loop's results."""
        for node in self.body.nodes:
            self.write_node(node)
        results = [self._result(number) for number in range(len(self.loop.outputs))]
        self._check()
        return results

    def _trips(self) -> Dim:
        trips = trip_count(self.loop)
        if trips is not None:
            return trips if trips > 0 else refuse()
        tests = conjuncts(self.loop.regions[0].results[0])
        relation = tests[0].op.relation if len(tests) == 1 else None
        if relation is None or not relation.is_less:
            refuse()
        counter, limit = tests[0].inputs
        integers, condition = self.at.integers, self.loop.regions[0]
        ends = [
            self.loop.inputs[v.index] if v.producer is condition else v for v in (counter, limit)
        ]
        count = integers.trips(self.loop)
        exact = all(integers.is_not_negative(v) for v in ends)
        if count is None or not exact or not integers.ranges.is_non_negative(count):
            refuse()
        return self.parts.outside(count)

    def _parameters(self) -> dict[Value, _New]:
        """The values of all iterations for the body's parameters; counters are known by symbols."""
        found = dict[Value, _New]()
        for number, (param, start) in enumerate(
            zip(self.body.params, self.loop.inputs, strict=True)
        ):
            if number >= len(self.body.results) or self.body.results[number] is param:
                found[param] = _New(start)
            elif (step := step_of(self.loop, number)) is not None:
                first, symbol = self.at.integers.dim(start), self.at.integers.dim(param)
                name = None if symbol is None else symbol_name(symbol)
                if first is None or name is None or not step:
                    refuse()
                self.parts.count(name, first, step)
                self.ends[number] = first + self.trips * step
            elif isinstance(param.spec, TensorSpec) and param.spec.rank:
                found[param] = _New(start, root=number)
                self.writes[number], self.reads[number] = [], []
            elif self.whole:
                refuse()
        return found

    def _result(self, number: int) -> Value:
        """The value of a loop variable after the loop."""
        result, out = self.body.results[number], self.loop.outputs[number].spec
        if number in self.ends:
            return self.at.emit(DIM, [], {"dim": self.ends[number], "out_type": out.dtype})
        new = self.new.get(result)
        if new is None or new.root != (number if number in self.writes else None):
            refuse()
        return new.value if new.value.spec is out else refuse()

    def _check(self) -> None:
        """Refuse a loop whose new form would be wrong, too large or no gain."""
        ranges = self.at.integers.ranges
        for root, writes in self.writes.items():
            others = [*writes, *self.reads[root]]
            apart = all(self.parts.never_meet(a, b) for a in writes for b in others)
            if not (writes and apart):
                refuse()
        most: Dim = 0
        for elements in self.moved:
            most = most + elements * MOST_GROWTH
        large = [n for n in self.made if n not in self.moved]
        if not all(ranges.is_less_equal(n, most) for n in large) or not self.pays:
            refuse()

    # -- nodes -----------------------------------------------------------------------------------

    def write_node(self, node: Node) -> None:
        """A node of the body, outside of the loop."""
        if node.op is AS_DIM:
            self._name_dim(node)
            return
        if node.op is RAISE:
            self._raise(node)
            return
        if self._only_counts(node):
            return  # a counter, or a position: written where something else reads it
        if node.regions or not node.is_pure or len(node.outputs) != 1:
            refuse()
        read, written = READS.get(node.op), UPDATES.get(node.op)
        lower = node.op.lower
        if written is not None:
            new = self._update(node, written(self.parts, node))
        elif read is not None and not self._value(node.inputs[0]).each:
            new = self._read(node, read(self.parts, node))
        elif node.op is CONST:
            new = self._same(node)
        elif (
            not isinstance(lower, Compute)
            or not all(map(self.at.has_value, attr_symbols(node.attrs)))
            or not cannot_fail(node)
        ):
            refuse()
        elif lower.kind == "elementwise":
            new = self._elementwise(node)
        elif lower.kind in ("reduce", "view"):
            new = self._along_rows(node)
        else:
            refuse()
        self.new[node.outputs[0]] = new
        if new.each and new.root is None:
            self.made.append(product(new.value.spec.dims))

    def _raise(self, node: Node) -> None:
        """An error that some iteration raises, which does not say which one it was."""
        (condition,) = node.inputs if len(node.inputs) == 1 else refuse()
        holds = self._array(condition)
        if not self._value(condition).each:
            refuse()  # the loop may run zero times
        axes = tuple(range(holds.spec.rank))
        holds = self.at.emit(REDUCE_ALL, [holds], {"axis": axes, "keepdims": False})
        self.at.place(Node(RAISE, [holds], node.attrs, [], (), node.origin))

    def _name_dim(self, node: Node) -> None:
        """A symbol for a counter goes; a symbol for a value that all iterations share stays."""
        name = symbol_name(node.attrs["dim"])
        if name in self.parts.counters:
            return
        source = self.new.get(node.inputs[0])
        if source is None or source.each or name is None:
            refuse()
        copy = Node(AS_DIM, [source.value], node.attrs, [node.outputs[0].spec], (), node.origin)
        self.at.place(copy)
        self.at.known[-1].add(name)

    def _only_counts(self, node: Node) -> bool:
        """Whether a node's result changes by the same number in each iteration, as counters do."""
        if node.op not in _COUNTING or all(v in self.new for v in node.inputs):
            return False
        return self.parts.moves(node.outputs[0]) is not None

    def _value(self, value: Value) -> _New:
        """A value of the body outside; counters become the numbers that they go through."""
        if value not in self.new:
            first, step = self.parts.moves(value) or refuse()
            self.parts.outside(first)
            attrs = {"start": first, "delta": step, "size": self.trips, "dtype": value.spec.dtype}
            self.new[value] = _New(self.at.emit(RANGE, [], attrs), True)
        return self.new[value]

    def _same(self, node: Node) -> _New:
        """A node that does not differ between iterations, before them."""
        inputs = [self._array(v) for v in node.inputs]
        specs = [v.spec for v in node.outputs]
        for spec in specs:
            self.parts.outside(*spec.dims)
        copy = Node(node.op, inputs, node.attrs, specs, (), node.origin)
        self.at.place(copy)
        return _New(copy.outputs[0])

    def _array(self, value: Value) -> Value:
        """An operand that is no version of an array that the loop changes."""
        new = self._value(value)
        return new.value if new.root is None else refuse()

    def _elementwise(self, node: Node) -> _New:
        if node.op is POSITION:  # which programs check
            refuse()
        rank = node.outputs[0].spec.rank
        inputs = [self._array(v) for v in node.inputs]
        each = [self._value(v).each for v in node.inputs]
        if not any(each):
            return self._same(node)
        inputs = [self._aligned(v, rank, e) for v, e in zip(inputs, each, strict=True)]
        self.pays |= rank > 0 or not takes_few_instructions(node)
        return self._made(node, inputs, node.attrs)

    def _along_rows(self, node: Node) -> _New:
        """A view, or a reduction, of the array of each iteration."""
        if not any(self._value(v).each for v in node.inputs):
            return self._same(node)
        rule = _VIEWS.get(node.op)
        (given,) = node.inputs if len(node.inputs) == 1 else refuse()
        value, attrs = self._array(given), dict(node.attrs)
        if rule is not None:
            if node.op is BROADCAST_TO:
                value = self._aligned(value, node.outputs[0].spec.rank, True)
            attrs = rule(self, attrs)
        elif attrs.keys() == {"axis", "keepdims"} and isinstance(attrs["axis"], tuple):
            dtype = given.spec.dtype
            if self.exact and not (dtype.is_integer or dtype.is_bool):
                refuse()
            attrs["axis"] = tuple(a if self.last else a + 1 for a in attrs["axis"])
            self.pays = True
        else:
            refuse()
        return self._made(node, [value], attrs)

    def _made(self, node: Node, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> _New:
        """A node on all iterations, each of which must see the operands that it had in the loop."""
        (spec,) = infer_outputs(node.op, [v.spec for v in inputs], attrs)
        self.parts.outside(*node.outputs[0].spec.dims)
        own = node.outputs[0].spec
        if spec != TensorSpec(self.of_all(own.dims), own.dtype):
            refuse()
        copy = Node(node.op, inputs, attrs, [spec], (), node.origin)
        self.at.place(copy)
        return _New(copy.outputs[0], True)

    def of_all(self, dims: Sequence[Any], iterations: Any = None) -> tuple[Any, ...]:
        """Dims (or the like) of one iteration, and beside them that of the axis of iterations."""
        number = self.trips if iterations is None else iterations
        return (*dims, number) if self.last else (number, *dims)

    def _aligned(self, value: Value, rank: int, each: bool) -> Value:
        """An operand with its axes under the axes of a result of `rank`, and of the iterations."""
        dims = value.spec.dims
        if each and not self.last:
            return self._shaped(value, (dims[0], *[1] * (rank + 1 - len(dims)), *dims[1:]))
        if dims and not each and self.last:
            return self._shaped(value, (*dims, 1))
        return value

    # -- parts of arrays -------------------------------------------------------------------------

    def _read(self, node: Node, part: Part) -> _New:
        array = self._value(node.inputs[0])
        places = self.parts.places(part)
        if array.root is not None:
            self.reads[array.root].append(places)
        if not any(p.step for p in places):
            shape = node.outputs[0].spec.dims
            self.parts.outside(*shape)
            attrs = self.parts.inside(array.value, part)
            return _New(self._shaped(self.at.emit(STRIDED_SLICE, [array.value], attrs), shape))
        place, attrs = self.parts.together(array.value, part, places)
        read = self.at.emit(STRIDED_SLICE, [array.value], attrs)
        axes = [a for a in range(len(places)) if a != place.axis]
        read = self._transposed(read, self.of_all(axes, place.axis))
        self.moved.append(product(read.spec.dims))
        self.pays |= node.outputs[0].spec.rank > 0
        return _New(self._shaped(read, self.of_all(node.outputs[0].spec.dims)), True)

    def _update(self, node: Node, part: Part) -> _New:
        array, new = self._value(node.inputs[0]), self._value(node.inputs[-1])
        if array.root is None or new.root is not None:
            refuse()
        places = self.parts.places(part)
        place, attrs = self.parts.together(array.value, part, places)
        self.writes[array.root].append(places)
        axes = [a for a in range(len(part.size)) if a != place.axis]
        rows = tuple(part.size[a] for a in axes)
        value = new.value
        if not new.each:
            value = self._shaped(value, self.of_all(rows, 1))
            value = self.at.emit(BROADCAST_TO, [value], {"shape": self.of_all(rows)})
        order = self.of_all(axes, place.axis)  # the axes of the array, as the value has them
        value = self._shaped(value, self.of_all(rows))
        value = self._transposed(value, tuple(map(order.index, range(len(order)))))
        self.moved.append(product(value.spec.dims))
        self.pays |= product(rows) != 1
        del attrs["size"]
        updated = self.at.emit(SLICE_UPDATE, [array.value, value], attrs)
        return _New(updated, root=array.root)

    def _written(self, node: Node) -> list[Place]:
        return self.parts.places(UPDATES[node.op](self.parts, node))

    def _transposed(self, value: Value, perm: tuple[int, ...]) -> Value:
        if perm == tuple(range(len(perm))):
            return value
        return self.at.emit(TRANSPOSE, [value], {"perm": perm})

    def _shaped(self, value: Value, dims: Sequence[Dim]) -> Value:
        if value.spec.dims == tuple(dims):
            return value
        return self.at.emit(RESHAPE, [value], {"shape": tuple(dims)})


_COUNTING = frozenset({ADD, SUBTRACT, MULTIPLY})


def _is_column(places: list[Place]) -> bool:
    """Whether iterations have several elements each, and are side by side in the last axis."""
    *others, last = places
    return bool(last.step) and any(p.size != 1 for p in others)


def _with_iterations(*names: str) -> Callable[[_Loop, dict[str, Any]], dict[str, Any]]:
    """A rule for the attributes of a view of all iterations; those named are lists over axes."""

    def rule(loop: _Loop, attrs: dict[str, Any]) -> dict[str, Any]:
        whole = {"shape": loop.trips, "size": loop.trips, "begin": 0, "strides": 1}
        return {k: loop.of_all(v, whole[k]) if k in names else v for k, v in attrs.items()}

    return rule


def _transposed(loop: _Loop, attrs: dict[str, Any]) -> dict[str, Any]:
    perm = attrs["perm"]
    return {"perm": (*perm, len(perm)) if loop.last else (0, *(p + 1 for p in perm))}


_VIEWS: dict[Op, Callable[[_Loop, dict[str, Any]], dict[str, Any]]] = {
    RESHAPE: _with_iterations("shape"),
    BROADCAST_TO: _with_iterations("shape"),
    STRIDED_SLICE: _with_iterations("begin", "size", "strides"),
    TRANSPOSE: _transposed,
}
