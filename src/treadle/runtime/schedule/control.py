"""Branches and loops of a schedule, and the lists that they carry.

Loop variables that change their size live in buffers that grow; their sizes are registers. An array
of a loop whose size has a bound is planned with room for the bound (`Place.most`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from treadle.core import dtypes
from treadle.core.shapes import Dim, compound, dim_symbols, symbol_name
from treadle.core.spec import ListSpec, ResourceSpec
from treadle.graph.ir import Node, Region, Value
from treadle.graph.trip_count import counts_to, ending_flags, pace, trip_count
from treadle.runtime.fusion.fuse import Fusion, Unit
from treadle.runtime.fusion.takeovers import storage
from treadle.runtime.schedule.builder import Builder
from treadle.runtime.schedule.facts import Unsupported
from treadle.runtime.schedule.lists import Ragged
from treadle.runtime.schedule.order import Order
from treadle.runtime.schedule.steps import (
    Block,
    Branch,
    Carried,
    Counted,
    Loop,
    Operand,
    Paced,
    Place,
    Sizes,
    Step,
    is_same_memory,
    places_of,
)
from treadle.runtime.symbols import unknown_symbols

# Schedules a region, given its units and their order, and where arrays of it are to go.
Inside: TypeAlias = Callable[[Region, tuple[Fusion, Order], Mapping[Value, Place]], Block]


_COUNTED = (dtypes.int32, dtypes.int64)


class ControlFlow:
    """Schedules the nodes of a region that have regions themselves."""

    def __init__(
        self, program: Builder, region: Region, order: Order, block: Block,
        wanted: dict[Value, Place], output: Callable[[Value], Operand],
        call: Callable[[Unit, str], None], inside: Inside,
        until_failure: Callable[[Value, list[Step], bool, bool], Operand],
    ) -> None:  # fmt: skip
        """
        Args:
            region, order: the region that the nodes are in, and the order of its units.
            block: where steps are added.
            wanted: where arrays of the region are to go.
            output: gives the place of a value that the host makes.
            call: adds the steps that let the interpreter run a unit, with the reason.
            inside: schedules a region of a node, whose parameters are bound.
            until_failure: gives the condition of a loop that a failed check may end.
        """
        self.program, self.region, self.order, self.block = program, region, order, block
        self.wanted, self.output, self.call, self.inside = wanted, output, call, inside
        self.until_failure = until_failure

    def cond(self, unit: Unit) -> None:
        """A branch."""
        self._natively(unit, self._cond)

    def _natively(self, unit: Unit, build: Callable[[Unit], None]) -> None:
        """Build control flow; where that cannot be done the interpreter runs the node."""
        program = self.program
        before = set(program.known), set(program.late), set(program.fetched)
        mark = len(self.block.steps)
        try:
            build(unit)
        except Unsupported as reason:
            if any(isinstance(v.spec, ListSpec) for v in unit.nodes[0].inputs):
                raise
            del self.block.steps[mark:]
            program.known, program.late, program.fetched = before
            self.call(unit, str(reason))

    def _cond(self, unit: Unit) -> None:
        node = unit.nodes[0]
        program = self.program
        known = set(program.known)
        results = [self._result(v) for v in node.outputs]
        blocks = [self._branch(region, unit, results) for region in node.regions]
        program.known = known
        self._learn(node.outputs)
        alone = node in program.residence.alone
        if alone:
            predicate = program.operand(node.inputs[0])
        else:
            predicate = program.on_host(node.inputs[0], self.block.steps)
        reads, writes = places_of([predicate]), places_of(results)
        self.block.steps.append(
            Branch(
                predicate, blocks[0], blocks[1], results, alone, node, reads=reads, writes=writes
            )
        )

    def _result(self, value: Value) -> Operand:
        """Where a branch's result goes; where its size depends on the branch, each allocates."""
        program = self.program
        if not unknown_symbols([value], program.known) or isinstance(value.spec, ListSpec):
            return self.output(value)
        place = program.place("joined", value.spec)
        program.places[value] = place
        return Operand(value, place)

    def _branch(self, region: Region, unit: Unit, results: Sequence[Operand]) -> Block:
        program, node = self.program, unit.nodes[0]
        known = set(program.known)
        sizes = self._bind(region.params, node.inputs[1:])
        targets = []
        for inner, out in zip(region.results, results, strict=True):
            joined = out.place is not None and out.place.kind == "joined"
            targets.append(program.place("late", inner.spec) if joined else out.place)
        wanted = {
            inner: target
            for inner, out, target in zip(region.results, results, targets, strict=True)
            if target is not None and out.value not in self.order.taken
        }
        lists = [
            param
            for number, param in enumerate(region.params, 1)
            if (unit, number) in self.order.owned
        ]
        scheduled = program.schedule(region, self._owned(region, node), lists)
        block = self.inside(region, scheduled, wanted)
        block.steps[:0] = sizes
        if program.native_lists:
            block.copied = _lists_of_others(region, lists)
        for number, target in enumerate(targets):
            if target is None:
                block.results[number] = program.on_host(region.results[number], block.steps)
        taken = [
            t for t, out in zip(targets, results, strict=True) if out.value in self.order.taken
        ]
        # A result in memory that another result takes over moves away before the other is written.
        for number, operand in enumerate(block.results):
            inside = operand.place is not None and operand.place in taken
            if inside and targets[number] in taken and operand.place is not targets[number]:
                moved = Operand(operand.value, program.temporary(operand.value.spec))
                assert moved.place is not None
                block.steps.append(program.copy(operand, moved.place))
                block.results[number] = moved
        numbers = sorted(range(len(targets)), key=lambda n: targets[n] in taken)
        for number in numbers:
            operand, target = block.results[number], targets[number]
            if target is not None and operand.place is not target:
                if target.kind == "late":
                    program.require_known([operand.value], "the result")
                block.steps.append(program.copy(operand, target))
                block.results[number] = Operand(operand.value, target)
        program.known = known
        return block

    def _learn(self, values: Sequence[Value]) -> None:
        """The sizes of values are known from here on."""
        new = unknown_symbols([v for v in values if not _is_list(v)], self.program.known)
        plain = {symbol_name(d) for v in values for d in v.spec.dims}
        if not new <= plain:
            self.program.require_known(values, "the result")
        self.program.known |= new
        self.program.late |= new

    def _owned(self, region: Region, node: Node) -> dict[Value, Value]:
        """The parameters of a branch whose memory a result takes over: param -> result."""
        owned = {}
        for out, result in zip(node.outputs, region.results, strict=True):
            source = self.order.taken.get(out)
            if source is not None:
                owned[region.params[node.inputs.index(source) - 1]] = result
        return owned

    def _bind(self, params: Sequence[Value], inputs: Sequence[Value]) -> list[Step]:
        """Let region parameters stand for outer values; gives the step that sets the symbols which
        only the parameters have."""
        program = self.program
        pairs: dict[str, Dim] = {}
        for param, value in zip(params, inputs, strict=True):
            if isinstance(value.spec, ResourceSpec):
                program.variables[param] = program.variables[value]
                continue
            register = program.is_register(param)
            operand = (
                self.program.on_host(value, self.block.steps)
                if register
                else program.operand(value)
            )
            if operand.place is None:
                program.same[param] = operand.value
            else:
                program.places[param] = operand.place
                if value in program.fetched and self._is_here(value):
                    program.same[param] = program.same.get(value, value)
                    program.fetched.add(param)
            pairs |= self._equal_sizes(param, value)
        return self._define(pairs)

    def _is_here(self, value: Value) -> bool:
        """Whether a value belongs to the region whose steps are being built."""
        return self.region in (value.producer, value.node and value.node.region)

    def _equal_sizes(self, param: Value, value: Value) -> dict[str, Dim]:
        """Symbols of `param` without a value -> the sizes of `value`."""
        if param.spec is value.spec or _is_list(param):
            return {}
        return {
            name: dim
            for name, dim in zip(map(symbol_name, param.spec.dims), value.spec.dims, strict=True)
            if name is not None and name not in self.program.known and name not in dim_symbols(dim)
        }

    def _define(self, pairs: dict[str, Dim]) -> list[Step]:
        if not pairs:
            return []
        self.program.known |= set(pairs)
        self.program.late |= set(pairs)
        return [Sizes(list(pairs.items()))]

    def loop(self, unit: Unit) -> None:
        """A loop."""
        self._natively(unit, self._loop)

    def _loop(self, unit: Unit) -> None:
        node = unit.nodes[0]
        program = self.program
        condition, body = node.regions
        count = len(body.results)
        known = set(program.known)
        before = self._bind(body.params[count:], node.inputs[count:])
        moving = []
        for param, start, result in zip(body.params, node.inputs, body.results, strict=False):
            if result is param:  # handed on unchanged: it is the outer value itself
                before += self._bind([param], [start])
            else:
                moving.append((param, start, result))
        pairs = {p: r for p, _, r in moving if not (_is_list(p) or program.is_register(p))}
        lists = [p for p, _, _ in moving if _is_list(p)]
        if program.native_lists:
            self._check_lists(body, moving, lists)
        inside = set(program.known)
        self._learn([p for p, _, _ in moving])
        opened = program.known - inside
        _check_sizes(moving, opened)
        self._bound_sizes(node, moving, opened)
        scheduled = program.schedule(body, pairs, lists)
        taken = {body.params[v.index] for v in node.outputs if v in self.order.taken}
        carried = [
            self._carry(p, i, r, scheduled, p in taken, opened, node.outputs[p.index])
            for p, i, r in moving
        ]
        self._mark_copied(unit, node, body, carried)
        wanted = {
            r: c.other
            for (_, _, r), c in zip(reversed(moving), reversed(carried), strict=True)
            if c.other is not None
        }
        within, checks = set(program.known), len(program.status.findings)
        program.loops += 1
        block = self._body(body, scheduled, wanted, moving, carried)
        program.loops -= 1
        program.known = within
        inner = program.status.findings[checks:]
        endless = program.integers.trips(node) is None and counts_to(node) is None
        asserted = endless and any("asserts" in c.node.op.tags for c in inner)
        alone = node in program.residence.alone
        test = self._condition(condition, body, asserted, alone)
        program.known = known | (within - inside)
        for step in before:
            self.block.steps.append(step)
        starts = [c.start.place for c in carried if c.start.place is not None]
        written = [c.place for c in carried if c.place is not None]
        loop = Loop(test, block, carried, trip_count(node), reads=starts, writes=written)
        loop.most, loop.counted = program.integers.most_trips(node), self._counted(node)
        loop.paced = None if loop.counted is not None else self._paced(node)
        ending = {body.params[number] for number in ending_flags(node)}
        loop.flags = [c for c in carried if c.param in ending and c.place is None]
        loop.exact, loop.alone, loop.of = bool(node.attrs.get("rolled")), alone, node
        plain = program.native_lists and not any(
            isinstance(program.element_dims.get(v), Ragged) for v in _lists_in(body)
        )
        loop.rows = program.facts.rows(loop) if plain else None
        self.block.steps.append(loop)
        for step in self._bind(node.outputs, body.params[:count]):
            self.block.steps.append(step)

    def _bound_sizes(
        self, loop: Node, moving: Sequence[tuple[Value, Value, Value]], opened: set[str]
    ) -> None:
        """Ranges of sizes that each iteration changes by a number, in loops that count."""
        trips = self.program.integers.trips(loop)
        for param, start, result in moving if trips is not None else ():
            if _is_list(param):
                continue
            for dim, a, b in zip(param.spec.dims, start.spec.dims, result.spec.dims, strict=True):
                name, change = symbol_name(dim), b - dim
                if name in opened and isinstance(change, int) and trips is not None:
                    most = compound("max", a + change * trips, a) if change > 0 else a
                    self.program.ranges.add(name, a if change >= 0 else 0, most)

    def _counted(self, node: Node) -> Counted | None:
        """The counter and the limit of a loop that counts by ones to a limit known before it."""
        found = counts_to(node)
        if found is None:
            return None
        number, limit = found
        counter = node.regions[1].params[number]
        dtype = counter.spec.dtype
        if dtype.kind != "i":
            return None
        if isinstance(limit, int):
            return Counted(counter, limit)
        operand = self.program.operand(limit)
        if operand.place is not None or dtype is not operand.value.spec.dtype:
            return None
        return Counted(counter, operand.value)

    def _paced(self, node: Node) -> Paced | None:
        """A counter that moves evenly towards a limit, both in registers of the host."""
        found = pace(node)
        if found is None:
            return None
        counter = node.regions[1].params[found.number]
        if counter.spec.dtype not in _COUNTED:
            return None
        numbers: list[Value | int] = []
        for number in (found.step, found.limit):
            if not isinstance(number, int):
                operand = self.program.operand(number)
                if operand.place is not None or number.spec.dtype is not counter.spec.dtype:
                    return None
                number = operand.value
            numbers.append(number)
        step, limit = numbers
        return Paced(counter, step, found.falls, found.relation, limit, found.test)

    def _mark_copied(
        self, unit: Unit, node: Node, body: Region, carried: Sequence[Carried]
    ) -> None:
        """Lists that somebody else needs are copied before the loop changes them."""
        for number, value in enumerate(node.inputs[: len(body.results)]):
            owned = (unit, number) in self.order.owned
            if _is_list(value) and not owned and self.program.native_lists:
                for c in carried:
                    c.copied |= c.param is body.params[number]

    def _check_lists(self, body: Region, moving: Sequence[Any], lists: Sequence[Value]) -> None:
        """Every iteration must leave a list of its own in every loop variable that is a list."""
        results = [r for _, _, r in moving if isinstance(r.spec, ListSpec)]
        fresh = all(r.node is not None and r.node.region is body for r in results)
        if len(set(results)) != len(results) or not fresh:
            raise Unsupported("lists change places in a loop")
        self.program.stable_lists.update(
            p for p in body.params if isinstance(p.spec, ListSpec) and p not in lists
        )

    def _carry(
        self, param: Value, start: Value, result: Value, scheduled: tuple[Fusion, Order],
        taken: bool, opened: set[str], output: Value,
    ) -> Carried:  # fmt: skip
        """A loop variable. `output`: its value after the loop."""
        program = self.program
        if isinstance(param.spec, ListSpec) or program.is_register(param):
            return Carried(param, self.program.on_host(start, self.block.steps), None)
        if param.spec.symbols() & opened:
            return self._grown(param, start, result, scheduled[1])
        if scheduled[1].stays(storage(result), param):
            old = program.operand(start).place
            wanted = self.wanted.pop(output, None) if output.spec is param.spec else None
            place = old if taken and old is not None else wanted or program.temporary(param.spec)
            program.places[param] = place
            return Carried(param, program.operand(start), place)
        halves = (program.temporary(param.spec), program.temporary(param.spec))
        number = halves[0].number
        place = Place("pair", number, param.spec.dtype, param.spec.dims, halves)
        other = Place("pair'", number, param.spec.dtype, param.spec.dims, halves)
        program.places[param] = place
        return Carried(param, program.operand(start), place, other)

    def _grown(self, param: Value, start: Value, result: Value, order: Order) -> Carried:
        """A loop variable whose size changes."""
        program = self.program
        program.require_known([start], "the loop variable")
        if order.stays(storage(result), param):
            place = program.place("buffer", param.spec)
            program.places[param] = place
            return Carried(param, program.operand(start), place)
        place = program.place("grown", param.spec)
        other = Place("grown'", place.number, param.spec.dtype, result.spec.dims)
        program.places[param] = place
        return Carried(param, program.operand(start), place, other)

    def _body(
        self, body: Region, scheduled: tuple[Fusion, Order], wanted: dict[Value, Place],
        moving: Sequence[tuple[Value, Value, Value]], carried: Sequence[Carried],
    ) -> Block:  # fmt: skip
        program = self.program
        block = self.inside(body, scheduled, wanted)
        results = []
        for (_, _, result), c in zip(moving, carried, strict=True):
            target = c.place if c.other is None else c.other
            operand = program.operand(result)
            if target is None:
                operand = program.on_host(result, block.steps)
            if target is not None and target.kind == "grown'":
                program.require_known([result], "the loop variable")
            if target is not None and not is_same_memory(operand.place, target):
                block.steps.append(program.copy(operand, target))
            results.append(operand)
        block.results = results
        return block

    def _condition(self, condition: Region, body: Region, asserted: bool, alone: bool) -> Block:
        """The block of the condition, which sees the loop variables as the body does.

        asserted, alone: see `Checks.until_failure`.
        """
        sizes = self._bind(condition.params, body.params)
        block = self.inside(condition, self.program.schedule(condition), {})
        block.steps[:0] = sizes
        (result,) = condition.results
        block.results = [self.until_failure(result, block.steps, asserted, alone)]
        return block


def _check_sizes(moving: Sequence[tuple[Value, Value, Value]], opened: set[str]) -> None:
    """Every size that changes must be a symbol, and one symbol always the same size."""
    found: dict[str, tuple[Dim, Dim]] = {}
    for param, start, result in moving:
        if _is_list(param):
            continue
        for dim, *sizes in zip(param.spec.dims, start.spec.dims, result.spec.dims, strict=True):
            if not dim_symbols(dim) & opened:
                continue
            name = symbol_name(dim)
            if name is None or found.setdefault(name, (sizes[0], sizes[1])) != tuple(sizes):
                raise Unsupported("loop variables share a size that changes")


def _lists_of_others(region: Region, own: Sequence[Value]) -> list[int]:
    """The numbers of a branch's results that are lists which somebody else has, too: each list that
    a branch gives is one of its own."""
    results = region.results
    return [
        number
        for number, value in enumerate(results)
        if _is_list(value)
        and (value in results[:number] or (value in region.params and value not in own))
    ]


def _lists_in(body: Region) -> Iterator[Value]:
    """The lists that a loop body works on."""
    for node in body.walk():
        yield from filter(_is_list, (*node.inputs, *node.outputs))


def _is_list(value: Value) -> bool:
    return isinstance(value.spec, ListSpec)
