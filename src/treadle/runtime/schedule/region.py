"""The steps of a region, from its units in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from treadle.core import dtypes
from treadle.core.records import record
from treadle.core.shapes import (
    Dim,
    dim_symbols,
    fresh_symbol,
    product,
    substitute,
    symbol_name,
)
from treadle.core.spec import ListSpec, TensorSpec
from treadle.core.switches import is_on
from treadle.graph.ir import Node, Region, Value, uses
from treadle.graph.rewrite import attr_symbols, mentioned_symbols
from treadle.kernel.ir import Expr, Kernel, apply, const
from treadle.ops.collections.lists import LIST_GET, LIST_STACK
from treadle.ops.control.checks import CHECK, NOTE, PLACE
from treadle.ops.lowering import Compaction, dim_expr
from treadle.ops.properties import PartKind, PartUse
from treadle.runtime.bounds import Sizes, Unproved, outside, unproved
from treadle.runtime.fusion.fuse import Fusion, Unit
from treadle.runtime.fusion.group import MAX_BUFFERS
from treadle.runtime.fusion.kernels import BuiltKernel, Part, bounded, build_kernel, with_extent
from treadle.runtime.fusion.strided import View
from treadle.runtime.reach import Reach, is_checked_before, routine_conditions, update_conditions
from treadle.runtime.roles import Role, bounds_in_data, is_alias, literal, splat
from treadle.runtime.schedule import compaction, slices
from treadle.runtime.schedule.builder import Builder
from treadle.runtime.schedule.checks import Checks
from treadle.runtime.schedule.control import ControlFlow
from treadle.runtime.schedule.direct import DirectStores
from treadle.runtime.schedule.lists import Ragged, puts_element
from treadle.runtime.schedule.order import Order
from treadle.runtime.schedule.residence import host_reads, may_refuse
from treadle.runtime.schedule.scatters import scatter_kernel
from treadle.runtime.schedule.segments import merge_segments
from treadle.runtime.schedule.slices import Bounds
from treadle.runtime.schedule.status import finding_of
from treadle.runtime.schedule.steps import (
    Append,
    Block,
    Callback,
    Check,
    Evaluate,
    Guard,
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
    is_same_memory,
    places_of,
)
from treadle.runtime.schedule.steps import (
    Sizes as SizesStep,
)
from treadle.runtime.symbols import guarded_dims, told_symbol, unknown_symbols

# Roles of units that a device computes without the host.
_COMPUTING = (Role.ALIAS, Role.ARRAY, Role.COMPACTION, Role.CONSTANT, Role.LIBRARY, Role.SCALAR)

BEYOND = "an element would be read or written {} beyond an axis of its array"


@record(eq=False)
class Selection:
    """The elements that a mask selects, once they are counted.

    counts: of each part of the mask; `ends`: their running sums; `total`: their sum, a number.
    """

    node: Node
    lower: Compaction
    mask: Operand
    spans: list[compaction.Span]
    counts: Operand
    ends: Operand
    total: Operand


class RegionBuilder:
    """Builds the steps of one region whose parameters are bound."""

    def __init__(
        self, program: Builder, region: Region, fusion: Fusion, order: Order,
        wanted: Mapping[Value, Place],
    ) -> None:  # fmt: skip
        self.program, self.region, self.fusion, self.order = program, region, fusion, order
        self.wanted = dict(wanted)
        for value, place in wanted.items():  # operands in the same memory
            while (below := self._below(value)) is not None:
                value = below
                self.wanted.setdefault(value, place)
        self.block = Block()
        self.made: set[Value] = set(region.params)
        grouped = {n for u in order.units if u.role is not Role.SCALAR for n in u.nodes}
        self.unguarded = [n for n in region.nodes if n not in grouped and any(guarded_dims(n))]
        self.placed: set[Unit] = set()  # list ops whose slot was made ready
        self.direct = DirectStores(region, fusion, order, program)
        self.bounds: dict[object, Bounds] = {}  # of parts, by their bounds and array
        self.pushes = element_slots(region, order) if program.native_lists else {}
        self.checks = Checks(program, self.block.steps, self._launched)
        self.selections: list[Selection] = []  # whose sizes the host has not read yet

    def _below(self, value: Value) -> Value | None:
        """The operand whose memory a value of this region names or takes over."""
        node = value.node
        if node is None or node.region is not self.region:
            return None
        return node.inputs[0] if _moves_memory(value) else self.order.taken.get(value)

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
        self._guard_inlined()
        for unit in self.order.units:
            before = len(self.program.late)
            if self.selections and not self._is_independent(unit):
                self._read_counts()
            _HANDLERS[unit.role](self, unit)
            self.made.update(v for n in unit.nodes for v in n.outputs)
            if len(self.program.late) > before:
                self._guard_inlined()
        if self.selections:
            self._read_counts()
            self._guard_inlined()
        self.checks.note()
        if self.program.fusing and is_on("segments"):
            merged = merge_segments(self.block.steps)
            self.block.steps = merged if self._has_code(merged) else self.block.steps
        self.block.results = [self.program.operand(v) for v in self.region.results]
        return self.block

    def _has_code(self, steps: Sequence[Step]) -> bool:
        kernels = [s.kernel for s in steps if isinstance(s, SegmentedLaunch)]
        return all(self.program.facts.kernel_needs(k) is not None for k in kernels)

    def emit(self, step: Step) -> None:
        self.checks.precede(step)
        self.block.steps.append(step)

    def place_for(self, value: Value) -> Place:
        """The place of a new array: where the owner of the region wants it, else a temporary."""
        program = self.program
        old = self.order.in_place.get(value) or self.order.taken.get(value)
        handle = self.order.assigned.get(value)
        if handle is not None:
            place = program.variable(handle)
        elif old is not None:
            place = program.places[old]
        else:
            wanted = self.wanted.pop(value, None) or self._slot(value)
            place = program.temporary(value.spec) if wanted is None else wanted
        program.places[value] = place
        return place

    def _slot(self, value: Value) -> Place | None:
        """A place in the list that is to get the value, made ready now."""
        unit = self.pushes.get(value)
        if unit is None:
            return None
        node = unit.nodes[0]
        items, *index, _ = node.inputs
        if not self.made.issuperset((items, *index)) or value.spec.symbols() & self.program.late:
            return None
        place = self.program.place("slot", value.spec)
        inputs = [*map(self.program.operand, (items, *index)), Operand(value, place)]
        outputs = [Operand(v, None) for v in node.outputs]
        self.emit(ListStep(node, inputs, outputs, True, place))
        self.placed.add(unit)
        return place

    def on_host(self, value: Value) -> Operand:
        """A value as the host reads it."""
        return self.program.on_host(value, self.block.steps)

    def operands(self, node: Node, read: Sequence[Value]) -> list[Operand]:
        """The operands of a node; the host reads those among `read`."""
        return [self.on_host(v) if v in read else self.program.operand(v) for v in node.inputs]

    def output(self, value: Value) -> Operand:
        """The register or the place of a value that the host makes."""
        if isinstance(value.spec, ListSpec) or self.program.is_register(value):
            return Operand(value, None)
        return Operand(value, self.place_for(value))

    def computed(self, value: Value) -> Operand:
        """The place of a value that a kernel or a routine makes; a register of the host on a device
        whose registers are the host's."""
        if self.program.facts.unified:
            return self.output(value)
        return Operand(value, self.place_for(value))

    def known(self, node: Node) -> None:
        """The sizes of the outputs must be known before the node runs."""
        self.program.require_known(node.outputs, f"{node.op.name}:")

    def discover(self, node: Node) -> None:
        """New symbols in the outputs get their values when the node has run."""
        tensors = [v for v in node.outputs if not isinstance(v.spec, ListSpec)]
        new = unknown_symbols(tensors, self.program.known)
        dims = [d for v in tensors for d in v.spec.dims]
        told = {symbol_name(d) for d in dims}
        if node.op is LIST_GET:
            told |= {t[0] for d in dims if (t := told_symbol(d, self.program.known)) is not None}
        if not new <= told:
            self.known(node)  # says so
        self.program.known |= new
        self.program.late |= new

    # -- the kinds of units ------------------------------------------------------------------

    def branch(self, unit: Unit) -> None:
        self.checks.note()  # those inside come later
        self._control().cond(unit)

    def loop(self, unit: Unit) -> None:
        self.checks.note()
        self._control().loop(unit)

    def _control(self) -> ControlFlow:
        """Schedules nodes with regions into this block."""
        return ControlFlow(
            self.program, self.region, self.order, self.block, self.wanted, self.output, self.call,
            self.inside, self.checks.until_failure,
        )  # fmt: skip

    def constant(self, unit: Unit) -> None:
        (value,) = unit.nodes[0].outputs
        number, register = splat(value), self.program.is_register(value)
        if register and number is not None:
            self.emit(Evaluate(value, const(number, value.spec.dtype), {}))
            return
        place = self.program.constant_place(literal(value), value.spec)
        if register:
            self.emit(LoadScalar(value, place, reads=[place]))
        else:
            self.program.places[value] = place

    def alias(self, unit: Unit) -> None:
        source, out = unit.nodes[0].inputs[0], unit.nodes[0].outputs[0]
        register = self.program.is_register(out)
        operand = self.on_host(source) if register else self.program.operand(source)
        if operand.place is not None and register:
            self.emit(LoadScalar(out, operand.place, reads=[operand.place]))
        elif operand.place is not None and source.spec.rank:
            self.program.places[out] = operand.place
        elif operand.place is None and (register or self.direct.is_element(out)):
            self.program.same[out] = operand.value
        else:
            place = self.place_for(out)
            self.emit(self.program.copy(operand, place))

    def scalar(self, unit: Unit) -> None:
        for value in unit.nodes[0].outputs:
            expr, buffers = self.fusion.scalars[value]
            for condition in outside(expr, self._known_sizes()):
                self._check_bounds(unit.nodes[0], condition)
            inputs = {b.name: self.on_host(v) for b, v in buffers.items()}
            self.emit(Evaluate(value, expr, inputs, reads=places_of(list(inputs.values()))))

    def array(self, unit: Unit) -> None:
        self._check_sizes(unit)
        stores = self.fusion.stores[unit]
        if not stores:
            return
        parts = self.direct.find(unit, stores)
        targets = self._targets([v for v in stores if v not in parts])
        built, operands, outputs = self._kernel(unit, targets, parts=parts)
        self._check_kernel(unit, built)
        self.emit(self._launch(built, operands, outputs))
        self._stay(targets)

    def _known_sizes(self) -> Sizes:
        """The sizes that are known to be equal here, and the ranges of symbols."""
        self.program.sizes.add_ranges(self.program.ranges)
        return self.program.sizes

    def _check_kernel(self, unit: Unit, built: BuiltKernel) -> None:
        """Compare sizes, where it is not proved that a kernel stays inside its buffers."""
        for condition in built.conditions:
            named = [n for n, b in enumerate(built.kernel.buffers) if b.name == condition.buffer]
            value = built.operands[named[0]][0] if named else None
            node = next((n for n in unit.nodes if value in n.inputs), unit.nodes[0])
            if built.extent is not None:
                excess = substitute(condition.excess, {"n": built.extent})
                condition = Unproved(condition.buffer, excess)
            self._check_bounds(node, condition)

    def _check_bounds(self, node: Node, condition: Unproved) -> None:
        if self._known_sizes().is_zero(condition.excess):
            return
        self.emit(Guard(node, (condition.excess, 0), BEYOND))
        self.program.sizes.add([(condition.excess, 0)])

    def _check_sizes(self, unit: Unit) -> None:
        for node in unit.nodes:
            self.known(node)
            self._guard(node)

    def _targets(self, stores: Sequence[Value]) -> dict[Value, list[Operand]]:
        """The targets of every stored value: its place, and the place where the owner of the region
        wants it."""
        targets: dict[Value, list[Operand]] = {}
        for value in stores:
            targets[value] = [self.computed(value)]
            extra = self.wanted.pop(value, None)
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
        built = bounded(built, self._known_sizes())
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

    def _guard(self, node: Node) -> None:
        """Compare sizes that the shape rule took for equal and that are known only now."""
        for a, b in guarded_dims(node):
            late = (dim_symbols(a) | dim_symbols(b)) & self.program.late
            if late and not self.program.ranges.are_equal(a, b):
                self.emit(Guard(node, (a, b)))
            self.program.sizes.add([(a, b)])

    def _guard_inlined(self) -> None:
        """Compare the sizes of nodes that have no unit (views, scalars and nodes that are computed
        again, inside of their consumers) as soon as the program knows these sizes."""
        waiting: list[Node] = []
        for node in self.unguarded:
            pairs = list(guarded_dims(node))
            named = {s for pair in pairs for d in pair for s in dim_symbols(d)}
            if named <= self.program.known:
                self._guard(node)
            else:
                waiting.append(node)
        self.unguarded = waiting

    def _launch(self, built: BuiltKernel, operands: list[Operand], outputs: list[int]) -> Launch:
        kernel, constants = self.program.lifted(built)
        kernel, extent = self._bounded(kernel, built.extent), built.extent
        size = extent if self.program.loops and isinstance(extent, int) else None
        if size is not None and self.program.facts.is_vector(kernel, size):
            # Many launches of few elements: code for just these is worth more than shared code.
            kernel, extent = with_extent(kernel, size), None
        operands = [*operands, *map(self.program.constant_operand, constants)]
        needs = self.program.facts.kernel_needs(kernel)
        step = Launch(kernel, operands, outputs, extent, native=needs is not None)
        if needs is not None:
            symbols = {"n": extent} if extent is not None else {}
            scratch, shared = (substitute(d, symbols) for d in needs)
            step.scratch = None if scratch == 0 else self.program.scratch(scratch)
            step.shared = None if shared == 0 else self.program.scratch(shared)
        extra = [p for p in (step.scratch, step.shared) if p is not None]
        step.reads = places_of(operands)
        step.writes = [*places_of([operands[i] for i in outputs]), *extra]
        return step

    def _bounded(self, kernel: Kernel, extent: Dim | None) -> Kernel:
        """A kernel of late sizes that are never large is marked as one of few points."""
        dims = [extent] if extent is not None else [a.extent for a in kernel.axes]
        late = set().union(*map(dim_symbols, dims)) & self.program.late
        bounds = [self.program.ranges.most(d, frozenset()) for d in dims] if late else []
        points = product(d for d in bounds if d is not None)
        few = bool(bounds) and None not in bounds and isinstance(points, int)
        if few and isinstance(points, int) and self.program.facts.is_few(kernel, points):
            return replace(kernel, few=True)
        return kernel

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
            outputs = [targets[v][0] for v in over] or [self.computed(v) for v in node.outputs]
        for value in [node.outputs[0]] if apart else over.values():
            self.program.places[value] = places_of(outputs)[0]
        written = [*places_of(outputs), *([] if scratch is None else [scratch])]
        step = LibraryCall(
            node, inputs, outputs, scratch, apart=apart is not None, views=views,
            reads=places_of(inputs), writes=written,
        )  # fmt: skip
        self.emit(step)
        if targets:
            self._follow(unit, step, targets, over)
            self._stay(targets)

    def _check_reaches(
        self, node: Node, reaches: Sequence[Reach | None], views: Sequence[View]
    ) -> None:
        """Compare sizes, where it is not proved that a routine stays inside its arrays."""
        for condition in routine_conditions(node, reaches, views, self._known_sizes()):
            self._check_bounds(node, condition)

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
        """Give a call its epilogue; where there is no code for blocks, a kernel that follows."""
        built, operands, outputs = self._kernel(unit, targets, over, blocked=True)
        needs = self.program.facts.kernel_needs(built.kernel)
        if needs is None or needs.scratch != 0:
            built, operands, outputs = self._kernel(unit, targets, over)
            self._check_kernel(unit, built)
            self.emit(self._launch(built, operands, outputs))
            return
        last = self.block.steps.pop()
        self._check_kernel(unit, built)
        self.emit(last)
        launch = step.epilogue = self._launch(built, operands, outputs)
        step.reads = [*step.reads, *launch.reads]
        step.writes = [*step.writes, *launch.writes]

    def read(self, unit: Unit) -> None:
        node = unit.nodes[0]
        (value,) = node.outputs
        place = self.program.variable(node.inputs[0])
        if self.program.is_register(value):
            self.emit(LoadScalar(value, place, reads=[place]))
        elif value in self.order.snapshots:
            target = self.place_for(value)
            self.emit(self.program.copy(Operand(value, place), target))
        else:
            self.program.places[value] = place

    def assign(self, unit: Unit) -> None:
        handle, value = unit.nodes[0].inputs
        if self.order.assigned.get(value) is handle:
            return  # its kernel wrote it there
        target = self.program.variable(handle)
        self.emit(self.program.copy(self.program.operand(value), target))

    def call(self, unit: Unit, reason: str = "") -> None:
        node = unit.nodes[0]
        noted = not self.program.facts.unified and node in self.program.residence.noted
        if noted or node.op is NOTE:
            self._check(node, noted)
            return
        mentioned = sorted(_attribute_symbols(node) & self.program.late)
        known = set(self.program.known)
        self.discover(node)
        inputs = self.operands(node, node.inputs[:1] if may_refuse(node) else node.inputs)
        for value in node.outputs:
            target = self.wanted.get(value)
            own = target is not None and target.kind == "late"  # the call gives memory of its own
            if own or value.spec.symbols() - known:  # or the size: no place is ready
                self.wanted.pop(value, None)
        outputs = [self.output(v) for v in node.outputs]
        sized = self._sized(inputs)
        callback = Callback(
            node, inputs, outputs, reason, sized, mentioned,
            reads=places_of(inputs), writes=places_of(outputs),
        )  # fmt: skip
        if node.op is CHECK:  # its first input is the verdict on the others
            inner = Callback(
                node.attrs["of"], inputs[1:], [], reason, sized[1:], reads=callback.reads
            )
            self.emit(Check(inputs[0], inner, reads=callback.reads))
        elif node.op is PLACE:
            inner = Callback(
                node.attrs["of"], inputs[1:], [], reason, sized[1:], reads=callback.reads
            )
            (place,), size, wraps = node.outputs, node.attrs["size"], node.attrs["wraps"]
            self.emit(Position(place, inputs[0], size, wraps, inner, reads=callback.reads))
        elif "asserts" in node.op.tags:
            self.emit(Check(inputs[0], callback, reads=callback.reads))
        else:
            self.emit(callback)

    def _check(self, node: Node, noted: bool) -> None:
        """A check whose failure the device notes, or the host, which has its verdict, raises."""
        if not noted:
            check = finding_of(node, [self.on_host(node.inputs[0]), *self.operands(node, ())[1:]])
            self.emit(Note([check], [], reads=places_of(check.elements)))
            return
        self.checks.add(finding_of(node, self.operands(node, ())))

    def _launched(self, kernel: Kernel, operands: list[Operand]) -> Launch:
        """The launch of a kernel that was written for these operands."""
        built = BuiltKernel(kernel, tuple((o.value, 0) for o in operands))
        outputs = [n for n, b in enumerate(kernel.buffers) if b in kernel.outputs]
        return self._launch(built, operands, outputs)

    def update(self, unit: Unit) -> None:
        """An update of a part: in the array's memory, or in a copy."""
        node = unit.nodes[0]
        program = self.program
        self.known(node)
        self._guard(node)
        for condition in update_conditions(node, self._known_sizes()):
            self._check_bounds(node, condition)
        (value,) = node.outputs
        if unit in self.direct.done:
            program.places[value] = program.places[node.inputs[0]]
            return
        inputs = [program.operand(v) for v in node.inputs]
        target = self.place_for(value)
        checked = is_checked_before(node) or (not program.facts.unified and node in program.noted)
        refuse = None if checked else self._refusal(node, inputs)
        if not is_same_memory(inputs[0].place, target):
            self.emit(program.copy(inputs[0], target))
        part = node.op.part
        if part is not None and part.kind is PartKind.DYNAMIC_SLICE:
            bounds = self._bounds(node, value, inputs[-1].value)
            dims = value.spec.dims, inputs[-1].value.spec.dims
            kernel = slices.slice_kernel(*dims, value.spec.dtype, bounds, part.use.combine)
            self._computed(kernel, node, [inputs[-1], Operand(value, target)])
            return
        launch = self._scatter(node, inputs, Operand(value, target))
        reads = places_of(inputs)
        self.emit(Update(node, inputs, target, refuse, launch, reads=reads, writes=[target]))

    def _scatter(self, node: Node, inputs: Sequence[Operand], out: Operand) -> Launch | None:
        """The launch that stores rows at places which data tells."""
        found = scatter_kernel(node)
        if found is None:
            return None
        kernel, numbers = found
        operands = [*(inputs[n] for n in numbers), out]
        built = BuiltKernel(kernel, tuple((o.value, 0) for o in operands))
        return self._launch(built, operands, [2])

    def append(self, unit: Unit) -> None:
        """Rows at the end of an array: in its own buffer, or in a copy."""
        node = unit.nodes[0]
        program = self.program
        self.known(node)
        (value,) = node.outputs
        inputs = [program.operand(v) for v in node.inputs]
        old = inputs[0].place
        if value in self.order.taken and old is not None and old.kind == "buffer":
            place = Place("buffer", old.number, value.spec.dtype, value.spec.dims)
            program.places[value] = place
        else:
            self.order.taken.pop(value, None)
            place = self.place_for(value)
        output = Operand(value, place)
        self.emit(Append(inputs, output, reads=places_of(inputs), writes=[place]))

    def _refusal(self, node: Node, inputs: list[Operand]) -> Callback:
        """The call of the NumPy implementation that raises its error."""
        mentioned = sorted(_attribute_symbols(node) & self.program.late)
        return Callback(
            node, inputs, [], "", self._sized(inputs), mentioned, reads=places_of(inputs)
        )

    def _sized(self, operands: Sequence[Operand]) -> list[bool]:
        """Which are arrays of sizes that the program finds out. A list is handed over as it is."""
        late = self.program.late
        specs = [o.value.spec for o in operands]
        return [isinstance(s, TensorSpec) and bool(s.symbols() & late) for s in specs]

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
        self.emit(Measure(name, self.on_host(node.inputs[0])))

    def compaction(self, unit: Unit) -> None:
        """An op that selects elements by a mask: the counts of the mask's parts tell the size of
        the result and where each part writes. A device counts other masks, too, before the host
        reads all sizes at once."""
        node = unit.nodes[0]
        lower = node.op.lower
        assert isinstance(lower, Compaction)
        self._guard(node)
        mask = self.program.operand(node.inputs[lower.mask])
        elements = product(mask.value.spec.dims)
        spans = compaction.spans_of(elements)
        parts = sum(span.count for span in spans)
        counts, ends = (self.program.array([parts], dtypes.int64) for _ in range(2))
        total = self.computed(self.program.unnamed([], dtypes.int64))
        for span in spans:
            self._computed(compaction.counting(elements, span, parts), node, [mask, counts])
        self._computed(compaction.totalling(parts), node, [counts, total])
        self._computed(compaction.adding(parts), node, [counts, ends])
        self.selections.append(Selection(node, lower, mask, spans, counts, ends, total))
        if self.program.facts.unified:
            self._read_counts()

    def _is_independent(self, unit: Unit) -> bool:
        """Whether a unit can be done before the host reads how many elements masks select: it needs
        no such number, cannot end the program, and overwrites no array."""
        noted = unit.nodes[0] in self.program.residence.noted
        if unit.role not in _COMPUTING and not noted:
            return False
        order, nodes = self.order, self.fusion.computed(unit)
        values = [v for n in unit.nodes for v in n.outputs]
        cells = order.in_place, order.taken, order.assigned
        if any(v in memory for v in values for memory in cells):
            return False
        selected = [s.node.outputs[0] for s in self.selections]
        symbols = set().union(*(v.spec.symbols() for v in selected)) - self.program.known
        mentioned = set().union(*map(mentioned_symbols, nodes), *(v.spec.symbols() for v in values))
        return mentioned.isdisjoint(symbols) and set(self.fusion.loads[unit]).isdisjoint(selected)

    def _read_counts(self) -> None:
        """Read how many elements masks select, and write these."""
        selections, self.selections = self.selections, []
        for found in selections:
            name = symbol_name(found.node.outputs[0].spec.dims[0])
            assert name is not None
            self.discover(found.node)
            self.emit(Measure(name, self.on_host(found.total.value)))
        for found in selections:
            self._write_selected(found)

    def _write_selected(self, found: Selection) -> None:
        node, mask, lower = found.node, found.mask, found.lower
        out = node.outputs[0]
        elements, parts = product(mask.value.spec.dims), sum(span.count for span in found.spans)
        made, count = self.computed(out), out.spec.dims[0]
        positions = lower.rows is None
        flat = positions and out.spec.rank == 2 and out.spec.dims[1] != 1
        target = self.program.array([count], dtypes.int64) if flat else made
        rows = [] if lower.rows is None else [self.program.operand(node.inputs[lower.rows])]
        row = 1 if positions else product(out.spec.dims[1:])
        for span in found.spans:
            kernel = compaction.writing(
                elements, span, parts, out.spec.dtype, row, count, positions
            )
            operands = [mask, found.counts, found.ends, *rows, target]
            self._computed(kernel, node, operands)
        if flat:
            kernel = compaction.dividing(mask.value.spec.dims, count)
            self._computed(kernel, node, [target, made])

    def slice(self, unit: Unit) -> None:
        """A part whose bounds are data is read, or placed among zeros."""
        node = unit.nodes[0]
        self._guard(node)
        source, out = self.program.operand(node.inputs[0]), node.outputs[0]
        assert node.op.part is not None
        if node.op.part.use is PartUse.READ:
            bounds = self._bounds(node, source.value, out)
            if self.uses[out]:  # for some parts only their size is needed
                dims = source.value.spec.dims, out.spec.dims
                kernel = slices.slice_kernel(*dims, out.spec.dtype, bounds, None)
                self._computed(kernel, node, [source, self.computed(out)])
            return
        self.known(node)
        bounds = self._bounds(node, out, source.value)
        made = self.computed(out)
        self._computed(slices.zeros_kernel(out.spec.dims, out.spec.dtype), node, [made])
        dims = out.spec.dims, source.value.spec.dims
        kernel = slices.slice_kernel(*dims, out.spec.dtype, bounds, "set")
        self._computed(kernel, node, [source, made])

    @cached_property
    def uses(self) -> Counter[Value]:
        """How often each value is used in the region."""
        return Counter(uses(self.region))

    def _bounds(self, node: Node, whole: Value, part: Value) -> Bounds:
        """Where the part of an array begins that a node reads or stores, its step and its size. A
        part that is stored must have this size; one that is read gets it here."""
        axis, given = node.attrs["axis"], node.attrs["given"]
        key = (*bounds_in_data(node), given, axis, whole.spec.dims)
        size, known = part.spec.dims[axis], self.program.known
        open_size = part is node.outputs[0] and not dim_symbols(size) <= known
        found = self.bounds.get(key)
        if found is None:
            found = self._new_bounds(node, whole, size if part is node.outputs[0] else None)
            self.bounds[key] = found
        elif open_size:
            self.discover(node)
            self.emit(SizesStep([(str(size), found.count)]))
        if part is not node.outputs[0] and size != found.count:
            self._refuse_unless(node, apply("eq", dim_expr(found.count), dim_expr(size)), {})
        return found

    def _new_bounds(self, node: Node, whole: Value, size: Dim | None) -> Bounds:
        """The same, computed here from the bounds.

        size: of a part that is read, a number where it is known.
        """
        axis, given = node.attrs["axis"], node.attrs["given"]
        read = map(self.on_host, bounds_in_data(node))
        inputs = {name: next(read) for name, g in zip(slices.NAMES, given, strict=True) if g}
        step: Dim | None = None
        if given[2]:
            value = slices.step_of()
            self._refuse_unless(node, apply("ne", value, const(0, dtypes.int64)), inputs)
            step = self._measured(fresh_symbol("step"), value, inputs)
        extent = whole.spec.dims[axis]
        begin, count = slices.begin_and_count(given, extent, step)
        first = self._measured(fresh_symbol("begin"), begin, inputs)
        if step is None:
            self.program.ranges.add(str(first), 0, extent)
        found = fresh_symbol("count") if size is None else size
        if not dim_symbols(found) <= self.program.known:
            self.program.ranges.add(str(found), 0, extent)
            self._measured(found, count, inputs)
        return Bounds(axis, first, found, step)

    def _refuse_unless(self, node: Node, holds: Expr, inputs: Mapping[str, Operand]) -> None:
        """Let the NumPy implementation of a node raise its error, unless a number is true."""
        refusal = self._refusal(node, [self.program.operand(v) for v in node.inputs])
        self.emit(Check(self._evaluated(holds, inputs), refusal, reads=refusal.reads))

    def _evaluated(self, expr: Expr, inputs: Mapping[str, Operand]) -> Operand:
        """A number of the host that no node of the graph computes."""
        value = self.program.unnamed([], expr.dtype)
        self.emit(Evaluate(value, expr, dict(inputs)))
        return Operand(value, None)

    def _measured(self, dim: Dim, expr: Expr, inputs: Mapping[str, Operand]) -> Dim:
        """A new symbol gets its value from a number of the host."""
        self.emit(Measure(str(dim), self._evaluated(expr, inputs)))
        self.program.known.add(str(dim))
        self.program.late.add(str(dim))
        return dim

    def _computed(self, kernel: Kernel, node: Node, operands: list[Operand]) -> None:
        """Launch a kernel that stores into its last operand."""
        conditions, _ = unproved(kernel, self._known_sizes())
        for condition in conditions:
            self._check_bounds(node, condition)
        built = BuiltKernel(kernel, tuple((o.value, 0) for o in operands))
        self.emit(self._launch(built, operands, [len(operands) - 1]))

    def loops(self, unit: Unit) -> None:
        """An op whose loops are part of the program."""
        node = unit.nodes[0]
        self._guard(node)
        inputs = [self.program.operand(v) for v in node.inputs]
        refuse = self._refusal(node, inputs)
        self.discover(node)
        outputs = [self.computed(v) for v in node.outputs]
        reads, writes = places_of(inputs), places_of(outputs)
        launch = self._scatter(node, inputs, outputs[0])
        self.emit(OpLoops(node, inputs, outputs, refuse, launch, reads=reads, writes=writes))

    def list_op(self, unit: Unit) -> None:
        """An op on lists: native, or as Python objects behind numbers."""
        node = unit.nodes[0]
        program = self.program
        if not program.native_lists:
            self.call(unit)
            return
        if unit in self.placed:
            return
        self.discover(node)
        inputs = self.operands(node, list(host_reads(node, True)))
        if self._is_shown(unit):
            outputs = [self._element(node.outputs[0])]
        else:
            outputs = [self.output(v) for v in node.outputs]
        self.emit(
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


def element_slots(region: Region, order: Order) -> dict[Value, Unit]:
    """Values that can be computed in the lists that get them: value -> the list op.

    The list is a loop variable that nothing else reads, and goes on to the next iteration as the
    op leaves it: it does not move while the iteration runs.
    """
    if not is_on("slots"):
        return {}
    found: dict[Value, Unit] = {}
    units = [u for u in order.units if u in order.owned and puts_element(u.nodes[0])]
    counts = uses(region) if units else {}
    for unit in units:
        node = unit.nodes[0]
        items, value, out = node.inputs[0], node.inputs[-1], node.outputs[0]
        alone = counts[items] == counts[out] == 1 and out in region.results
        if alone and items.producer is region and value.spec.rank and not node.attrs.get("grow"):
            found.setdefault(value, unit)
    return found


def _same_memory(a: Value, b: Value) -> bool:
    """Whether arrays have the same elements at the same places."""
    return a.spec.dtype is b.spec.dtype and a.spec.dims == b.spec.dims


def _moves_memory(value: Value) -> bool:
    node = value.node
    return node is not None and is_alias(node) and node.inputs[0].spec.rank > 0


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
    Role.COMPACTION: RegionBuilder.compaction,
    Role.SLICE: RegionBuilder.slice,
    Role.LOOPS: RegionBuilder.loops,
    Role.APPEND: RegionBuilder.append,
}


def _attribute_symbols(node: Node) -> set[str]:
    """The symbols in the attributes of a node and of those inside it."""
    inner = [n for region in node.regions for n in region.walk()]
    return set().union(*(attr_symbols(n.attrs) for n in (node, *inner)))
