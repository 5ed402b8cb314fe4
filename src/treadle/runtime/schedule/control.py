"""Branches and loops of a schedule, and the lists that they carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from treadle.core.spec import ListSpec, ResourceSpec
from treadle.graph.ir import Node, Region, Value
from treadle.runtime.fusion.fuse import Fusion, Unit
from treadle.runtime.fusion.takeovers import storage
from treadle.runtime.schedule.backend import Unsupported
from treadle.runtime.schedule.order import Order
from treadle.runtime.schedule.steps import (
    Block,
    Branch,
    Carried,
    Loop,
    Operand,
    Place,
    Step,
    places_of,
)

if TYPE_CHECKING:
    from treadle.runtime.schedule.build import Builder


class ControlFlow:
    """The part of a `RegionBuilder` that schedules nodes with regions."""

    program: Builder
    order: Order
    block: Block

    if TYPE_CHECKING:

        def emit(self, step: Step) -> None: ...
        def known(self, node: Node) -> None: ...
        def output(self, value: Value) -> Operand: ...
        def call(self, unit: Unit, reason: str = "") -> None: ...

    def cond(self, unit: Unit) -> None:
        """A branch."""
        self._natively(unit, self._cond)

    def _natively(self, unit: Unit, build: Callable[[Unit], None]) -> None:
        """Build control flow; where that cannot be done the interpreter runs the node."""
        before = set(self.program.known), set(self.program.late)
        mark = len(self.block.steps)
        try:
            build(unit)
        except Unsupported as reason:
            if any(isinstance(v.spec, ListSpec) for v in unit.nodes[0].inputs):
                raise
            del self.block.steps[mark:]
            self.program.known, self.program.late = before
            self.call(unit, str(reason))

    def _cond(self, unit: Unit) -> None:
        node = unit.nodes[0]
        program = self.program
        self.known(node)
        blocks = []
        results = [self.output(v) for v in node.outputs]
        for region in node.regions:
            self._bind(region.params, node.inputs[1:])
            wanted = {
                inner: out.place
                for inner, out in zip(region.results, results, strict=True)
                if out.place is not None and out.value not in self.order.taken
            }
            block = program.region(region, wanted, self._owned(region, node))
            for operand, out in zip(block.results, results, strict=True):
                if out.place is not None and operand.place is not out.place:
                    block.steps.append(program.copy(operand, out.place))
            blocks.append(block)
        predicate = program.operand(node.inputs[0])
        self.emit(Branch(predicate, blocks[0], blocks[1], results, writes=places_of(results)))

    def _owned(self, region: Region, node: Node) -> dict[Value, Value]:
        """The parameters of a branch whose memory a result takes over: param -> result."""
        owned = {}
        for out, result in zip(node.outputs, region.results, strict=True):
            source = self.order.taken.get(out)
            if source is not None:
                owned[region.params[node.inputs.index(source) - 1]] = result
        return owned

    def _bind(self, params: Sequence[Value], inputs: Sequence[Value]) -> None:
        """Region parameters stand for outer values."""
        program = self.program
        for param, value in zip(params, inputs, strict=True):
            if isinstance(value.spec, ResourceSpec):
                program.variables[param] = program.variables[value]
                continue
            operand = program.operand(value)
            if operand.place is not None:
                program.places[param] = operand.place
            else:
                program.same[param] = operand.value

    def loop(self, unit: Unit) -> None:
        """A loop."""
        self._natively(unit, self._loop)

    def _loop(self, unit: Unit) -> None:
        node = unit.nodes[0]
        program = self.program
        self.known(node)
        condition, body = node.regions
        count = len(body.results)
        self._bind(body.params[count:], node.inputs[count:])
        moving = [
            (p, i, r)
            for p, i, r in zip(body.params, node.inputs, body.results, strict=False)
            if not self._invariant(p, i, r)
        ]
        pairs = {p: r for p, _, r in moving if p.spec.rank and not isinstance(p.spec, ListSpec)}
        lists = [p for p, _, _ in moving if isinstance(p.spec, ListSpec)]
        if program.native_lists:
            self._check_lists(body, moving, lists)
        scheduled = program.schedule(body, pairs, lists)
        taken = {body.params[v.index] for v in node.outputs if v in self.order.taken}
        carried = [self._carry(p, i, r, scheduled, p in taken) for p, i, r in moving]
        for number, value in enumerate(node.inputs[:count]):
            owned = (unit, number) in self.order.owned
            if isinstance(value.spec, ListSpec) and not owned and program.native_lists:
                for c in carried:
                    c.copied |= c.param is body.params[number]
        wanted = {
            r: c.other
            for (_, _, r), c in zip(reversed(moving), reversed(carried), strict=True)
            if c.other is not None
        }
        block = self._body(body, scheduled, wanted, moving, carried)
        test = self._condition(condition, body, node)
        for value, param in zip(node.outputs, body.params, strict=False):
            operand = program.operand(param)
            if operand.place is not None:
                program.places[value] = operand.place
            else:
                program.same[value] = operand.value
        starts = [c.start.place for c in carried if c.start.place is not None]
        written = [c.place for c in carried if c.place is not None]
        self.emit(Loop(test, block, carried, reads=starts, writes=written))

    def _invariant(self, param: Value, start: Value, result: Value) -> bool:
        """A loop variable that the body hands on unchanged is the outer value itself."""
        if result is not param:
            return False
        self._bind([param], [start])
        return True

    def _check_lists(self, body: Region, moving: Sequence[Any], lists: Sequence[Value]) -> None:
        """Every carried list must go on as one of its own."""
        results = [r for _, _, r in moving if isinstance(r.spec, ListSpec)]
        fresh = all(r.node is not None and r.node.region is body for r in results)
        if len(set(results)) != len(results) or not fresh:
            raise Unsupported("lists change places in a loop")
        self.program.stable_lists.update(
            p for p in body.params if isinstance(p.spec, ListSpec) and p not in lists
        )

    def _carry(
        self, param: Value, start: Value, result: Value, scheduled: tuple[Fusion, Order],
        taken: bool,
    ) -> Carried:  # fmt: skip
        program = self.program
        if param.spec.rank == 0 or isinstance(param.spec, ListSpec):
            return Carried(param, program.operand(start), None)
        program.require_known([param], "the loop variable")
        if scheduled[1].stays(storage(result), param):
            old = program.operand(start).place
            place = old if taken and old is not None else program.temporary(param.spec)
            program.places[param] = place
            return Carried(param, program.operand(start), place)
        halves = (program.temporary(param.spec), program.temporary(param.spec))
        number = halves[0].number
        place = Place("pair", number, param.spec.dtype, param.spec.dims, halves)
        other = Place("pair'", number, param.spec.dtype, param.spec.dims, halves)
        program.places[param] = place
        return Carried(param, program.operand(start), place, other)

    def _body(
        self, body: Region, scheduled: tuple[Fusion, Order], wanted: dict[Value, Place],
        moving: Sequence[tuple[Value, Value, Value]], carried: Sequence[Carried],
    ) -> Block:  # fmt: skip
        from treadle.runtime.schedule.region import RegionBuilder

        program = self.program
        block = RegionBuilder(program, body, *scheduled, wanted).run()
        results = []
        for (_, _, result), c in zip(moving, carried, strict=True):
            operand = program.operand(result)
            target = c.place if c.other is None else c.other
            if target is not None and operand.place is not target:
                block.steps.append(program.copy(operand, target))
            results.append(operand)
        block.results = results
        return block

    def _condition(self, condition: Region, body: Region, node: Node) -> Block:
        """The test sees the loop variables as the body does."""
        self._bind(condition.params, body.params)
        return self.program.region(condition, {})
