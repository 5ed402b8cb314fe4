"""The steps of a region, from its units in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from treadle.core.shapes import Dim, substitute, symbol_name
from treadle.core.switches import is_on
from treadle.graph.ir import Node, Region, Value
from treadle.kernel.ir import const
from treadle.ops.collections.lists import LIST_GET, LIST_STACK
from treadle.ops.control.checks import CHECK, NOTE, PLACE
from treadle.ops.properties import PartKind
from treadle.runtime.bounds import Unproved, outside
from treadle.runtime.fusion.fuse import Fusion, Unit
from treadle.runtime.fusion.group import MAX_BUFFERS
from treadle.runtime.fusion.kernels import BuiltKernel, Part, bounded, build_kernel
from treadle.runtime.fusion.strided import View
from treadle.runtime.reach import Reach, is_checked_before, routine_conditions, update_conditions
from treadle.runtime.roles import Role, literal, splat
from treadle.runtime.schedule import slices
from treadle.runtime.schedule.builder import Builder
from treadle.runtime.schedule.direct import DirectStores
from treadle.runtime.schedule.emission import Emission, attribute_symbols
from treadle.runtime.schedule.lists import Ragged
from treadle.runtime.schedule.order import Order
from treadle.runtime.schedule.parts import Parts
from treadle.runtime.schedule.residence import host_reads, may_refuse
from treadle.runtime.schedule.scatters import scatter_kernel
from treadle.runtime.schedule.segments import merge_segments
from treadle.runtime.schedule.selections import Selections
from treadle.runtime.schedule.side_by_side import join_side_by_side
from treadle.runtime.schedule.status import finding_of
from treadle.runtime.schedule.steps import (
    Append,
    Block,
    Callback,
    Check,
    Evaluate,
    Launch,
    LibraryCall,
    ListStep,
    LoadScalar,
    Measure,
    Note,
    Operand,
    OpLoops,
    Place,
    Position,
    SegmentedLaunch,
    Step,
    Update,
    checked_buffers,
    is_same_memory,
    places_of,
)
from treadle.runtime.schedule.stored_rows import compute_where_stored

if TYPE_CHECKING:
    from treadle.runtime.schedule.control import ControlFlow


class RegionBuilder:
    """Builds the steps of one region whose parameters are bound."""

    def __init__(
        self, program: Builder, region: Region, fusion: Fusion, order: Order,
        wanted: Mapping[Value, Place],
    ) -> None:  # fmt: skip
        self.program, self.region, self.fusion, self.order = program, region, fusion, order
        self.steps = Emission(program, region, order, wanted)
        self.selections = Selections(self.steps, fusion)
        self.parts = Parts(self.steps)
        self.direct = DirectStores(region, fusion, order, program)

    def run(self) -> Block:
        outer = self.program.sizes
        self.program.sizes = outer.copy()  # sizes that are found out here are known here only
        try:
            return self._run()
        finally:
            self.program.sizes = outer

    def inside(
        self, region: Region, scheduled: tuple[Fusion, Order], wanted: Mapping[Value, Place]
    ) -> Block:
        """The steps of a region of one of the nodes, whose parameters are bound."""
        return RegionBuilder(self.program, region, *scheduled, wanted).run()

    def _run(self) -> Block:
        self.steps.guard_inlined()
        for unit in self.order.units:
            if self.selections.waiting and not self.selections.is_independent(unit):
                self._read_counts()
            before = len(self.program.late)
            _HANDLERS[unit.role](self, unit)
            self.steps.made.update(v for n in unit.nodes for v in n.outputs)
            if len(self.program.late) > before:
                self.steps.guard_inlined()
        if self.selections.waiting:
            self._read_counts()
        self.steps.checks.note()
        if self.program.fusing and is_on("segments"):
            merged = merge_segments(self.steps.block.steps)
            self.steps.block.steps = merged if self._has_code(merged) else self.steps.block.steps
        facts = self.program.facts
        if self.program.fusing and facts.unified and is_on("stored_rows"):
            results = [self.program.operand(v) for v in self.region.results]
            self.steps.block.steps = compute_where_stored(
                self.steps.block.steps, results, self.steps.launch_alone
            )
        if self.program.fusing and not facts.unified and is_on("side_by_side"):
            self.steps.block.steps = join_side_by_side(self.steps.block.steps, facts)
        self.steps.block.results = [self.program.operand(v) for v in self.region.results]
        return self.steps.block

    def _read_counts(self) -> None:
        """Let the host read the sizes of selections, which what follows may depend on."""
        self.selections.read_counts()
        self.steps.guard_inlined()

    def _has_code(self, steps: Sequence[Step]) -> bool:
        kernels = [s.kernel for s in steps if isinstance(s, SegmentedLaunch)]
        return all(self.program.facts.kernel_needs(k) is not None for k in kernels)

    # -- the kinds of units ------------------------------------------------------------------

    def branch(self, unit: Unit) -> None:
        self.steps.checks.note()  # those inside come later
        self._control().cond(unit)

    def loop(self, unit: Unit) -> None:
        self.steps.checks.note()
        self._control().loop(unit)

    def _control(self) -> ControlFlow:
        """Schedules nodes with regions into this block."""
        from treadle.runtime.schedule.control import ControlFlow  # most programs have no such nodes

        steps = self.steps
        return ControlFlow(
            self.program, self.region, self.order, steps.block, steps.wanted, steps.output,
            self.call, self.inside, steps.checks.until_failure,
        )  # fmt: skip

    def constant(self, unit: Unit) -> None:
        (value,) = unit.nodes[0].outputs
        number, register = splat(value), self.program.is_register(value)
        if register and number is not None:
            self.steps.emit(Evaluate(value, const(number, value.spec.dtype), {}))
            return
        place = self.program.constant_place(literal(value), value.spec)
        if register:
            self.steps.emit(LoadScalar(value, place, reads=[place]))
        else:
            self.program.places[value] = place

    def alias(self, unit: Unit) -> None:
        source, out = unit.nodes[0].inputs[0], unit.nodes[0].outputs[0]
        register = self.program.is_register(out)
        operand = self.steps.on_host(source) if register else self.program.operand(source)
        if operand.place is not None and register:
            self.steps.emit(LoadScalar(out, operand.place, reads=[operand.place]))
        elif operand.place is not None and source.spec.rank:
            self.program.places[out] = operand.place
        elif operand.place is None and (register or self.direct.is_element(out)):
            self.program.same[out] = operand.value
        else:
            place = self.steps.place_for(out)
            self.steps.emit(self.program.copy(operand, place))

    def scalar(self, unit: Unit) -> None:
        for value in unit.nodes[0].outputs:
            expr, buffers = self.fusion.scalars[value]
            inputs = {b.name: self.steps.on_host(v) for b, v in buffers.items()}
            step = Evaluate(value, expr, inputs, reads=places_of(list(inputs.values())))
            for condition in outside(expr, self.steps.known_sizes(), checked_buffers(step)):
                self.steps.check_bounds(unit.nodes[0], condition)
            self.steps.emit(step)

    def array(self, unit: Unit) -> None:
        self._check_sizes(unit)
        stores = self.fusion.stores[unit]
        if not stores:
            return
        parts = self.direct.find(unit, stores)
        targets = self._targets([v for v in stores if v not in parts])
        built, operands, outputs = self._kernel(unit, targets, parts=parts)
        self._check_kernel(unit, built)
        self.steps.emit(self.steps.launch(built, operands, outputs))
        self._stay(targets)

    def _check_kernel(self, unit: Unit, built: BuiltKernel) -> None:
        """Compare sizes, where it is not proved that a kernel stays inside its buffers."""
        for condition in built.conditions:
            named = [n for n, b in enumerate(built.kernel.buffers) if b.name == condition.buffer]
            value = built.operands[named[0]][0] if named else None
            node = next((n for n in unit.nodes if value in n.inputs), unit.nodes[0])
            if built.extent is not None:
                excess = substitute(condition.excess, {"n": built.extent})
                condition = Unproved(condition.buffer, excess)
            self.steps.check_bounds(node, condition)

    def _check_sizes(self, unit: Unit) -> None:
        for node in unit.nodes:
            self.steps.known(node)
            self.steps.guard(node)

    def _targets(self, stores: Sequence[Value]) -> dict[Value, list[Operand]]:
        """The targets of every stored value: its place, and the place where the owner of the region
        wants it."""
        targets: dict[Value, list[Operand]] = {}
        for value in stores:
            targets[value] = [self.steps.computed(value)]
            extra = self.steps.wanted.pop(value, None)
            if extra is not None and targets[value][0].place is not None:
                targets[value].append(Operand(value, extra))
        return targets

    def _stay(self, targets: Mapping[Value, list[Operand]]) -> None:
        """The place of each value is its own one, not that of the copy for the region's owner."""
        for value, (target, *_) in targets.items():
            if target.place is not None:
                self.program.places[value] = target.place

    def _kernel(
        self, unit: Unit, targets: Mapping[Value, list[Operand]],
        over: Mapping[Value, Value] | None = None, blocked: bool = False,
        parts: Mapping[Value, Part] | None = None,
    ) -> tuple[BuiltKernel, list[Operand], list[int]]:  # fmt: skip
        """The kernel of a group, its operands, and which of them it writes.

        over: stored value -> the routine's result that it overwrites.
        parts: stored value -> the part of an array that it is.
        """
        assert unit.group is not None
        copies = {v: len(t) for v, t in targets.items()}
        in_place = self.order.in_place | dict(over or {})
        built = build_kernel(unit.group, list(targets), copies, in_place, blocked, parts)
        built = bounded(built, self.steps.known_sizes())
        stored = built.kernel.outputs
        operands, outputs = [], []
        for position, (value, copy) in enumerate(built.operands):
            if built.kernel.buffers[position] in stored:
                outputs.append(position)
                if value in targets:
                    operands.append(targets[value][copy])
                    continue
            operands.append(self.program.operand(value))
        return built, operands, outputs

    def library(self, unit: Unit) -> None:
        node = unit.nodes[0]
        views = self.fusion.views.get(node, ())
        size = self.program.facts.routine_bytes(node, views=views)
        if size is None:
            self.call(unit, "the library has no such routine")
            return
        self._check_sizes(unit)
        self._check_reaches(node, self.program.facts.reaches(node, views=views), views)
        targets = self._targets(self.fusion.stores.get(unit, ()))
        bases = [v.base for v in views] or node.inputs
        inputs = [self.program.operand(v) for v in bases]
        over = self._overwritten(unit, targets)
        apart = None if over else self._bytes_apart(unit, targets)
        scratch = self.program.scratch(apart or size) if apart or size != 0 else None
        if apart is not None and scratch is not None:
            outputs = [Operand(node.outputs[0], scratch)]
        else:
            outputs = [targets[v][0] for v in over] or list(map(self.steps.computed, node.outputs))
        for value in [node.outputs[0]] if apart else over.values():
            self.program.places[value] = places_of(outputs)[0]
        written = [*places_of(outputs), *([] if scratch is None else [scratch])]
        step = LibraryCall(
            node, inputs, outputs, scratch, apart=apart is not None, views=views,
            reads=places_of(inputs), writes=written,
        )  # fmt: skip
        self.steps.emit(step)
        if targets:
            self._follow(unit, step, targets, over)
            self._stay(targets)

    def _check_reaches(
        self, node: Node, reaches: Sequence[Reach | None], views: Sequence[View]
    ) -> None:
        """Compare sizes, where it is not proved that a routine stays inside its arrays."""
        for condition in routine_conditions(node, reaches, views, self.steps.known_sizes()):
            self.steps.check_bounds(node, condition)

    def _bytes_apart(self, unit: Unit, targets: Mapping[Value, list[Operand]]) -> Dim | None:
        """The workspace of a routine that keeps its result there, in blocks for the epilogue; None
        where another unit needs the result, or there is no such routine."""
        node = unit.nodes[0]
        made = node.outputs[0]
        if not targets or made in self.fusion.needed:
            return None
        views = self.fusion.views.get(node, ())
        size = self.program.facts.routine_bytes(node, True, views)
        if size is None:
            return None
        # The kernel is the same wherever the result is.
        self.program.places[made] = Place("temporary", -1, made.spec.dtype, made.spec.dims)
        built, operands, _ = self._kernel(unit, targets, {}, blocked=True)
        del self.program.places[made]
        needs = self.program.facts.kernel_needs(built.kernel)
        fits = needs is not None and needs.scratch == 0 and len(operands) <= MAX_BUFFERS
        return size if fits else None

    def _overwritten(
        self, unit: Unit, targets: Mapping[Value, list[Operand]]
    ) -> dict[Value, Value]:
        """A result of the epilogue -> the routine's result that it overwrites, where both have one
        size and no other unit needs the routine's result."""
        made = unit.nodes[0].outputs[0]
        if made in self.fusion.needed:
            return {}
        cells = {**self.order.in_place, **self.order.assigned}
        for value in targets:
            if value not in cells and _same_memory(value, made):
                return {value: made}
        return {}

    def _follow(
        self, unit: Unit, step: LibraryCall, targets: Mapping[Value, list[Operand]],
        over: Mapping[Value, Value],
    ) -> None:  # fmt: skip
        """Give a call its epilogue; where there is no code for it, a kernel that follows."""
        facts = self.program.facts
        built, operands, outputs = self._kernel(unit, targets, over, blocked=facts.in_blocks)
        needs = facts.kernel_needs(built.kernel)
        if needs is None or needs.scratch != 0:
            built, operands, outputs = self._kernel(unit, targets, over)
            self._check_kernel(unit, built)
            self.steps.emit(self.steps.launch(built, operands, outputs))
            return
        last = self.steps.block.steps.pop()
        self._check_kernel(unit, built)
        self.steps.emit(last)
        launch = step.epilogue = self.steps.launch(built, operands, outputs)
        step.reads = [*step.reads, *launch.reads]
        step.writes = [*step.writes, *launch.writes]

    def read(self, unit: Unit) -> None:
        node = unit.nodes[0]
        (value,) = node.outputs
        place = self.program.variable(node.inputs[0])
        if self.program.is_register(value):
            self.steps.emit(LoadScalar(value, place, reads=[place]))
        elif value in self.order.snapshots:
            target = self.steps.place_for(value)
            self.steps.emit(self.program.copy(Operand(value, place), target))
        else:
            self.program.places[value] = place

    def assign(self, unit: Unit) -> None:
        handle, value = unit.nodes[0].inputs
        if self.order.assigned.get(value) is handle:
            return  # its kernel wrote it there
        target = self.program.variable(handle)
        self.steps.emit(self.program.copy(self.program.operand(value), target))

    def call(self, unit: Unit, reason: str = "") -> None:
        node = unit.nodes[0]
        noted = not self.program.facts.unified and node in self.program.residence.noted
        if noted or node.op is NOTE:
            self._check(node, noted)
            return
        mentioned = sorted(attribute_symbols(node) & self.program.late)
        known = set(self.program.known)
        self.steps.discover(node)
        inputs = self.steps.operands(node, node.inputs[:1] if may_refuse(node) else node.inputs)
        for value in node.outputs:
            target = self.steps.wanted.get(value)
            own = target is not None and target.kind == "late"  # the call gives memory of its own
            if own or value.spec.symbols() - known:  # or the size: no place is ready
                self.steps.wanted.pop(value, None)
        outputs = [self.steps.output(v) for v in node.outputs]
        sized = self.steps.sized(inputs)
        callback = Callback(
            node, inputs, outputs, reason, sized, mentioned,
            reads=places_of(inputs), writes=places_of(outputs),
        )  # fmt: skip
        if node.op is CHECK:  # its first input is the verdict on the others
            inner = Callback(
                node.attrs["of"], inputs[1:], [], reason, sized[1:], reads=callback.reads
            )
            self.steps.emit(Check(inputs[0], inner, reads=callback.reads))
        elif node.op is PLACE:
            inner = Callback(
                node.attrs["of"], inputs[1:], [], reason, sized[1:], reads=callback.reads
            )
            (place,), size, wraps = node.outputs, node.attrs["size"], node.attrs["wraps"]
            self.steps.emit(Position(place, inputs[0], size, wraps, inner, reads=callback.reads))
        elif "asserts" in node.op.tags:
            self.steps.emit(Check(inputs[0], callback, reads=callback.reads))
        else:
            self.steps.emit(callback)

    def _check(self, node: Node, noted: bool) -> None:
        """A check whose failure the device notes, or the host, which has its verdict, raises."""
        if not noted:
            verdict = self.steps.on_host(node.inputs[0])
            check = finding_of(node, [verdict, *self.steps.operands(node, ())[1:]])
            self.steps.emit(Note([check], [], reads=places_of(check.elements)))
            return
        self.steps.checks.add(finding_of(node, self.steps.operands(node, ())))

    def update(self, unit: Unit) -> None:
        """An update of a part: in the array's memory, or in a copy."""
        node = unit.nodes[0]
        program = self.program
        self.steps.known(node)
        self.steps.guard(node)
        for condition in update_conditions(node, self.steps.known_sizes()):
            self.steps.check_bounds(node, condition)
        (value,) = node.outputs
        if unit in self.direct.done:
            program.places[value] = program.places[node.inputs[0]]
            return
        inputs = [program.operand(v) for v in node.inputs]
        target = self.steps.place_for(value)
        checked = is_checked_before(node) or (not program.facts.unified and node in program.noted)
        refuse = None if checked else self.steps.refusal(node, inputs)
        if not is_same_memory(inputs[0].place, target):
            self.steps.emit(program.copy(inputs[0], target))
        part = node.op.part
        if part is not None and part.kind is PartKind.DYNAMIC_SLICE:
            bounds = self.parts.bounds(node, value, inputs[-1].value)
            dims = value.spec.dims, inputs[-1].value.spec.dims
            kernel = slices.slice_kernel(*dims, value.spec.dtype, bounds, part.use.combine)
            self.steps.compute(kernel, node, [inputs[-1], Operand(value, target)])
            return
        launch = self._scatter(node, inputs, Operand(value, target))
        reads = places_of(inputs)
        self.steps.emit(Update(node, inputs, target, refuse, launch, reads=reads, writes=[target]))

    def _scatter(self, node: Node, inputs: Sequence[Operand], out: Operand) -> Launch | None:
        """The launch that stores rows at places which data tells."""
        found = scatter_kernel(node)
        if found is None:
            return None
        kernel, numbers = found
        operands = [*(inputs[n] for n in numbers), out]
        built = BuiltKernel(kernel, tuple((o.value, 0) for o in operands))
        return self.steps.launch(built, operands, [2])

    def append(self, unit: Unit) -> None:
        """Rows at the end of an array: in its own buffer, or in a copy."""
        node = unit.nodes[0]
        program = self.program
        self.steps.known(node)
        (value,) = node.outputs
        inputs = [program.operand(v) for v in node.inputs]
        old = inputs[0].place
        if value in self.order.taken and old is not None and old.kind == "buffer":
            place = Place("buffer", old.number, value.spec.dtype, value.spec.dims)
            program.places[value] = place
        else:
            self.order.taken.pop(value, None)
            place = self.steps.place_for(value)
        output = Operand(value, place)
        self.steps.emit(Append(inputs, output, reads=places_of(inputs), writes=[place]))

    def size(self, unit: Unit) -> None:
        """A symbol gets its value; nobody reads the elements of an array of that size."""
        node = unit.nodes[0]
        dim, program = node.attrs["dim"], self.program
        name = symbol_name(dim)
        if name is None or name in program.known:
            return
        program.ranges.add(name, node.attrs["least"], node.attrs["most"])
        program.known.add(name)
        program.late.add(name)
        self.steps.emit(Measure(name, self.steps.on_host(node.inputs[0])))

    def loops(self, unit: Unit) -> None:
        """An op whose loops are part of the program."""
        node = unit.nodes[0]
        self.steps.guard(node)
        inputs = [self.program.operand(v) for v in node.inputs]
        refuse = self.steps.refusal(node, inputs)
        self.steps.discover(node)
        outputs = [self.steps.computed(v) for v in node.outputs]
        reads, writes = places_of(inputs), places_of(outputs)
        launch = self._scatter(node, inputs, outputs[0])
        self.steps.emit(OpLoops(node, inputs, outputs, refuse, launch, reads=reads, writes=writes))

    def list_op(self, unit: Unit) -> None:
        """An op on lists: native, or as Python objects behind numbers."""
        node = unit.nodes[0]
        program = self.program
        if not program.native_lists:
            self.call(unit)
            return
        if unit in self.steps.placed:
            return
        self.steps.discover(node)
        inputs = self.steps.operands(node, list(host_reads(node, True)))
        if self._is_shown(unit):
            outputs = [self._element(node.outputs[0])]
        else:
            outputs = [self.steps.output(v) for v in node.outputs]
        self.steps.emit(
            ListStep(
                node, inputs, outputs, unit in self.order.owned,
                reads=places_of(inputs), writes=places_of(outputs),
            )
        )  # fmt: skip

    def _is_shown(self, unit: Unit) -> bool:
        """Whether the array that an op takes from a list is the list's own memory."""
        node = unit.nodes[0]
        if node.op not in (LIST_GET, LIST_STACK):
            return False
        items = node.inputs[0]
        elements = self.program.element_dims[items]
        if isinstance(elements, Ragged) and (elements.holes or node.op is LIST_STACK):
            return False
        if node.op is LIST_GET:
            return items in self.program.stable_lists
        return unit in self.order.shown

    def _element(self, value: Value) -> Operand:
        """The element of a list that does not change, where it is: no copy."""
        if self.program.is_register(value):
            return Operand(value, None)
        place = Place("element", len(self.program.temporaries), value.spec.dtype, value.spec.dims)
        self.program.places[value] = place
        return Operand(value, place)


def _same_memory(a: Value, b: Value) -> bool:
    """Whether arrays have the same elements at the same places."""
    return a.spec.dtype is b.spec.dtype and a.spec.dims == b.spec.dims


_HANDLERS: dict[Role, Callable[[RegionBuilder, Unit], None]] = {
    Role.CONSTANT: RegionBuilder.constant,
    Role.ALIAS: RegionBuilder.alias,
    Role.SCALAR: RegionBuilder.scalar,
    Role.ARRAY: RegionBuilder.array,
    Role.LIBRARY: RegionBuilder.library,
    Role.READ: RegionBuilder.read,
    Role.ASSIGN: RegionBuilder.assign,
    Role.COND: RegionBuilder.branch,
    Role.WHILE: RegionBuilder.loop,
    Role.CALL: RegionBuilder.call,
    Role.LIST: RegionBuilder.list_op,
    Role.UPDATE: RegionBuilder.update,
    Role.SIZE: RegionBuilder.size,
    Role.COMPACTION: lambda builder, unit: builder.selections.count(unit),
    Role.SLICE: lambda builder, unit: builder.parts.compute(unit),
    Role.LOOPS: RegionBuilder.loops,
    Role.APPEND: RegionBuilder.append,
}
