"""From a graph to a block of steps: fusion and order of every region, places for every array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from treadle.core import dtypes
from treadle.core.shapes import Dim, dim_symbols, substitute
from treadle.core.spec import ListSpec, ResourceSpec, Spec
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.graph.rewrite import attr_symbols
from treadle.kernel.ir import Kernel, const
from treadle.runtime.fusion.expressions import Names
from treadle.runtime.fusion.fuse import Fusion, Unit, fuse
from treadle.runtime.fusion.kernels import BuiltKernel, build_kernel
from treadle.runtime.fusion.roles import Role, literal, splat
from treadle.runtime.schedule.order import Order, order_units
from treadle.runtime.schedule.segments import merge_segments
from treadle.runtime.schedule.steps import (
    Block,
    Branch,
    Callback,
    Carried,
    Check,
    Copy,
    Deliver,
    Evaluate,
    Guard,
    Launch,
    LibraryCall,
    ListStep,
    LoadScalar,
    Loop,
    Operand,
    Place,
    Step,
    SegmentedLaunch,
)  # fmt: skip
from treadle.runtime.symbols import guarded_dims, plain_symbol, symbol_sources, unknown_symbols


class Needs(NamedTuple):
    """Bytes of workspace that a kernel needs: for its threads together, and shared by them."""

    scratch: Dim
    shared: Dim


class Backend(Protocol):
    """What the schedule must know of the machine."""

    def routine_bytes(self, node: Node) -> Dim | None:
        """Workspace of the library routine for a node; None where there is none."""

    def kernel_needs(self, kernel: Kernel) -> Needs | None:
        """Workspace of a kernel; None where it has no code."""


NATIVE_LIST_OPS = frozenset(
    {"list_new", "list_push", "list_get", "list_set", "list_length", "list_truncate",
     "list_extend", "list_stack", "list_unstack"}
)  # fmt: skip


def has_native_lists(graph: Region) -> bool:
    """Whether every list in the graph has elements of one known shape and only native ops."""
    return all(
        _is_native_list(v.spec) and (node.op.name in NATIVE_LIST_OPS or bool(node.regions))
        for node in graph.walk()
        for v in (*node.inputs, *node.outputs, *(p for r in node.regions for p in r.params))
        if isinstance(v.spec, ListSpec)
    )


def _is_native_list(spec: Spec) -> bool:
    return not spec.dtype.is_complex and all(isinstance(d, int) for d in spec.dims)


class Unsupported(Exception):
    """The region cannot be compiled; the message says why."""


class Builder:
    """Builds the schedule of one graph.

    Attributes:
        constants: the literal arrays, by number.
        captured: by number of the constant, for captured tensors bound when compiling.
        fusions: what fusion made of every region, outermost first (for `inspect`).
    """

    def __init__(self, graph: Graph, backend: Backend, fusing: bool = True) -> None:
        self.graph, self.backend, self.fusing = graph, backend, fusing
        self.native_lists = has_native_lists(graph)
        self.stable_lists: set[Value] = set()  # lists that do not change while a loop runs
        self.names = Names()
        self.places: dict[Value, Place] = {}
        self.same: dict[Value, Value] = {}  # a register that is another one
        self.variables: dict[Value, int] = {}  # handle -> number
        self.constants: list[Any] = []
        self.temporaries: list[Place] = []
        self.delivered: list[int] = []  # results whose size is not known on entry
        self.late: set[str] = set()  # symbols that get their value while the program runs
        self.arguments: list[Place] = []
        self.slots = 0
        self.fusions: list[tuple[Fusion, Order]] = []
        self.known: set[str] = set()

    def build(self) -> Block:
        """The schedule of the graph.

        Raises:
            Unsupported: the graph needs the interpreter.
        """
        self.known = {s.name for s in symbol_sources(self.graph.params)}
        at_entry = set(self.known)
        block = Block()
        for number, param in enumerate(self.graph.params):
            self._bind_param(number, param, block)
        targets = [self._target(n, v, at_entry) for n, v in enumerate(self.graph.results)]
        wanted: dict[Value, Place] = {}
        for value, target in zip(self.graph.results, targets, strict=True):
            if target is not None:
                wanted.setdefault(value, target)
        inner = self.region(self.graph, wanted)
        block.steps += inner.steps
        for number, (operand, target) in enumerate(zip(inner.results, targets, strict=True)):
            if target is None:
                reads = [] if operand.place is None else [operand.place]
                block.steps.append(Deliver(number, operand, reads=reads))
            elif operand.place is not target:
                block.steps.append(self._copy(operand, target))
        return block

    def _target(self, number: int, value: Value, at_entry: set[str]) -> Place | None:
        """Where a result goes; None for one whose size is not known on entry."""
        if isinstance(value.spec, ListSpec | ResourceSpec):
            raise Unsupported(f"the result {value} is no tensor")
        if unknown_symbols([value], at_entry):
            self.delivered.append(number)
            return None
        return Place("output", number, value.spec.dtype, value.spec.dims)

    def _bind_param(self, number: int, param: Value, block: Block) -> None:
        spec = param.spec
        if isinstance(spec, ListSpec):
            raise Unsupported("a list is an argument")
        self._require_known([param], "the parameter")
        if isinstance(spec, ResourceSpec):
            self.variables[param] = number
            return
        captured = number - len(self.graph.params) + len(self.graph.captures)
        if captured >= 0:
            self._bind_capture(param, self.graph.captures[captured], block)
            return
        place = Place("argument", number, spec.dtype, spec.dims)
        self.arguments.append(place)
        if spec.rank == 0:
            block.steps.append(LoadScalar(param, place, reads=[place]))
        else:
            self.places[param] = place

    def _bind_capture(self, param: Value, capture: Any, block: Block) -> None:
        """A captured tensor never changes: it is a constant."""
        if capture.is_symbolic:
            raise Unsupported(f"the capture {param} is symbolic")
        place = self.constant_place(capture._array, param.spec)
        if param.spec.rank == 0:
            block.steps.append(LoadScalar(param, place, reads=[place]))
        else:
            self.places[param] = place

    def constant_place(self, array: Any, spec: Spec) -> Place:
        place = Place("constant", len(self.constants), spec.dtype, spec.dims)
        self.constants.append(array)
        return place

    def _require_known(self, values: Sequence[Value], what: str) -> None:
        missing = unknown_symbols([v for v in values if not isinstance(v.spec, ListSpec)], self.known)
        if missing:
            raise Unsupported(f"{what} {values[0]} has a size that only the running program knows")

    # -- operands ----------------------------------------------------------------------------

    def operand(self, value: Value) -> Operand:
        place = self.places.get(value)
        return Operand(self.same.get(value, value), place)

    def temporary(self, spec: Spec) -> Place:
        kind = "late" if spec.symbols() & self.late else "temporary"
        place = Place(kind, len(self.temporaries), spec.dtype, spec.dims)
        self.temporaries.append(place)
        return place

    def scratch(self, size: Dim) -> Place:
        """Bytes that one step uses."""
        kind = "late" if dim_symbols(size) & self.late else "temporary"
        place = Place(kind, len(self.temporaries), dtypes.uint8, (size,))
        self.temporaries.append(place)
        return place

    def _copy(self, source: Operand, target: Place) -> Copy:
        reads = [] if source.place is None else [source.place]
        return Copy(source, target, reads=reads, writes=[target])

    def _variable(self, handle: Value) -> Place:
        return Place("variable", self.variables[handle], handle.spec.dtype, handle.spec.dims)

    # -- regions -----------------------------------------------------------------------------

    def region(
        self,
        region: Region,
        wanted: Mapping[Value, Place],
        carried: Mapping[Value, Value] | None = None,
    ) -> Block:
        """The steps of a region whose parameters are bound.

        Args:
            wanted: where results should be written, when something here computes them.
            carried: see `order_units`.
        """
        fusion = fuse(region, self.names, self.fusing)
        order = order_units(fusion, carried)
        self.fusions.append((fusion, order))
        return _RegionBuilder(self, region, fusion, order, wanted).run()


class _RegionBuilder:
    def __init__(
        self, program: Builder, region: Region, fusion: Fusion, order: Order,
        wanted: Mapping[Value, Place],
    ) -> None:  # fmt: skip
        self.program, self.region, self.fusion, self.order = program, region, fusion, order
        self.wanted = dict(wanted)
        for value, place in wanted.items():  # an alias of what is computed here
            while value.node is not None and value.node.region is region and _moves_memory(value):
                value = value.node.inputs[0]
                self.wanted.setdefault(value, place)
        self.block = Block()

    def run(self) -> Block:
        for unit in self.order.units:
            _HANDLERS[unit.role](self, unit)
        if self.program.fusing:
            merged = merge_segments(self.block.steps)
            self.block.steps = merged if self._has_code(merged) else self.block.steps
        self.block.results = [self.program.operand(v) for v in self.region.results]
        return self.block

    def _has_code(self, steps: Sequence[Step]) -> bool:
        kernels = [s.kernel for s in steps if isinstance(s, SegmentedLaunch)]
        return all(self.program.backend.kernel_needs(k) is not None for k in kernels)

    def emit(self, step: Step) -> None:
        self.block.steps.append(step)

    def place_for(self, value: Value) -> Place:
        """Where a new array goes: where the region's user wants it, else a temporary."""
        program = self.program
        old = self.order.in_place.get(value)
        handle = self.order.assigned.get(value)
        if handle is not None:
            place = program._variable(handle)
        elif old is not None:
            place = program.places[old]
        else:
            place = self.wanted.pop(value, None) or program.temporary(value.spec)
        program.places[value] = place
        return place

    def output(self, value: Value) -> Operand:
        if isinstance(value.spec, ListSpec) or value.spec.rank == 0:
            return Operand(value, None)
        return Operand(value, self.place_for(value))

    def known(self, node: Node) -> None:
        """The sizes of the outputs must be known before the node runs."""
        self.program._require_known(node.outputs, f"{node.op.name}:")

    def discover(self, node: Node) -> None:
        """New symbols in the outputs get their values when the node has run."""
        tensors = [v for v in node.outputs if not isinstance(v.spec, ListSpec)]
        new = unknown_symbols(tensors, self.program.known)
        plain = {plain_symbol(d) for v in tensors for d in v.spec.dims}
        if not new <= plain:
            self.known(node)  # says so
        self.program.known |= new
        self.program.late |= new

    # -- the kinds of units ------------------------------------------------------------------

    def constant(self, unit: Unit) -> None:
        (value,) = unit.nodes[0].outputs
        number = splat(value)
        if value.spec.rank == 0 and number is not None:
            self.emit(Evaluate(value, const(number, value.spec.dtype), {}))
            return
        place = self.program.constant_place(literal(value), value.spec)
        if value.spec.rank == 0:
            self.emit(LoadScalar(value, place, reads=[place]))
        else:
            self.program.places[value] = place

    def alias(self, unit: Unit) -> None:
        source, out = unit.nodes[0].inputs[0], unit.nodes[0].outputs[0]
        operand = self.program.operand(source)
        if operand.place is not None and out.spec.rank:
            self.program.places[out] = operand.place
        elif operand.place is not None:
            self.emit(LoadScalar(out, operand.place, reads=[operand.place]))
        elif out.spec.rank == 0:
            self.program.same[out] = operand.value
        else:
            place = self.place_for(out)
            self.emit(self.program._copy(operand, place))

    def scalar(self, unit: Unit) -> None:
        for value in unit.nodes[0].outputs:
            expr, buffers = self.fusion.scalars[value]
            inputs = {b.name: self.program.operand(v) for b, v in buffers.items()}
            self.emit(Evaluate(value, expr, inputs, reads=_places(list(inputs.values()))))

    def array(self, unit: Unit) -> None:
        group, stores = unit.group, self.fusion.stores[unit]
        assert group is not None
        for node in unit.nodes:
            self.known(node)
            self._guard(node)
        if not stores:
            return
        targets: dict[Value, list[Operand]] = {}
        for value in stores:
            targets[value] = [self.output(value)]
            extra = self.wanted.pop(value, None)
            if extra is not None and value.spec.rank:
                targets[value].append(Operand(value, extra))
        copies = {v: len(t) for v, t in targets.items()}
        built = build_kernel(group, stores, copies, self.order.in_place)
        stored = built.kernel.outputs
        operands, outputs = [], []
        for position, (value, copy) in enumerate(built.operands):
            if built.kernel.buffers[position] in stored:
                outputs.append(position)
                if value in targets:
                    operands.append(targets[value][copy])
                    continue
            operands.append(self.program.operand(value))
        self._launch(built, operands, outputs)
        for value in stores:  # what the region's user wanted stays where it is
            self.program.places.update(
                {value: t.place for t in targets[value][:1] if t.place is not None}
            )

    def _guard(self, node: Node) -> None:
        """Compare sizes that the shape rule took for equal and that are known only now."""
        for a, b in guarded_dims(node):
            if (dim_symbols(a) | dim_symbols(b)) & self.program.late:
                self.emit(Guard(node, (a, b)))

    def _launch(self, built: BuiltKernel, operands: list[Operand], outputs: list[int]) -> None:
        needs = self.program.backend.kernel_needs(built.kernel)
        step = Launch(built.kernel, operands, outputs, built.extent, native=needs is not None)
        if needs is not None:
            size = {"n": built.extent} if built.extent is not None else {}
            scratch, shared = (substitute(d, size) for d in needs)
            step.scratch = None if scratch == 0 else self.program.scratch(scratch)
            step.shared = None if shared == 0 else self.program.scratch(shared)
        extra = [p for p in (step.scratch, step.shared) if p is not None]
        step.reads = _places(operands)
        step.writes = [*_places([operands[i] for i in outputs]), *extra]
        self.emit(step)

    def library(self, unit: Unit) -> None:
        node = unit.nodes[0]
        size = self.program.backend.routine_bytes(node)
        if size is None:
            self.call(unit, "the library has no such routine")
            return
        self.known(node)
        inputs = [self.program.operand(v) for v in node.inputs]
        outputs = [self.output(v) for v in node.outputs]
        scratch = None if size == 0 else self.program.scratch(size)
        written = [*_places(outputs), *([] if scratch is None else [scratch])]
        self.emit(
            LibraryCall(node, inputs, outputs, scratch, reads=_places(inputs), writes=written)
        )

    def read(self, unit: Unit) -> None:
        node = unit.nodes[0]
        (value,) = node.outputs
        place = self.program._variable(node.inputs[0])
        if value.spec.rank == 0:
            self.emit(LoadScalar(value, place, reads=[place]))
        elif value in self.order.snapshots:
            target = self.place_for(value)
            self.emit(self.program._copy(Operand(value, place), target))
        else:
            self.program.places[value] = place

    def assign(self, unit: Unit) -> None:
        handle, value = unit.nodes[0].inputs
        if value in self.order.assigned:
            return
        target = self.program._variable(handle)
        self.emit(self.program._copy(self.program.operand(value), target))

    def call(self, unit: Unit, reason: str = "") -> None:
        node = unit.nodes[0]
        mentioned = sorted(_attribute_symbols(node) & self.program.late)
        self.discover(node)
        inputs = [self.program.operand(v) for v in node.inputs]
        outputs = [self.output(v) for v in node.outputs]
        sized = [bool(o.value.spec.symbols() & self.program.late) for o in inputs]
        callback = Callback(
            node, inputs, outputs, reason, sized, mentioned,
            reads=_places(inputs), writes=_places(outputs),
        )  # fmt: skip
        if node.op.name == "check":  # its first input is the verdict on the others
            inner = Callback(
                node.attrs["of"], inputs[1:], [], reason, sized[1:], reads=callback.reads
            )
            self.emit(Check(inputs[0], inner, reads=callback.reads))
        elif node.op.name == "assert":
            self.emit(Check(inputs[0], callback, reads=callback.reads))
        else:
            self.emit(callback)

    def cond(self, unit: Unit) -> None:
        self._natively(unit, self._cond)

    def _natively(self, unit: Unit, build: Any) -> bool:
        """Build control flow; where that cannot be done the interpreter runs the node."""
        before = set(self.program.known), set(self.program.late)
        mark = len(self.block.steps)
        try:
            build(unit)
            return True
        except Unsupported as reason:
            if any(isinstance(v.spec, ListSpec) for v in unit.nodes[0].inputs):
                raise
            del self.block.steps[mark:]
            self.program.known, self.program.late = before
            self.call(unit, str(reason))
            return False

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
                if out.place is not None
            }
            block = program.region(region, wanted)
            for operand, out in zip(block.results, results, strict=True):
                if out.place is not None and operand.place is not out.place:
                    block.steps.append(program._copy(operand, out.place))
            blocks.append(block)
        predicate = program.operand(node.inputs[0])
        self.emit(Branch(predicate, blocks[0], blocks[1], results, writes=_places(results)))

    def list_op(self, unit: Unit) -> None:
        """An op on lists: native, or as Python objects behind numbers."""
        node = unit.nodes[0]
        program = self.program
        if not program.native_lists:
            self.call(unit)
            return
        self.discover(node)
        inputs = [program.operand(v) for v in node.inputs]
        if node.op.name == "list_get" and node.inputs[0] in program.stable_lists:
            outputs = [self._element(node.outputs[0])]
        else:
            outputs = [self.output(v) for v in node.outputs]
        self.emit(
            ListStep(
                node, inputs, outputs, unit in self.order.owned,
                reads=_places(inputs), writes=_places(outputs),
            )
        )  # fmt: skip

    def _element(self, value: Value) -> Operand:
        """An element of a list that stays as it is: no copy."""
        if value.spec.rank == 0:
            return Operand(value, None)
        place = Place("element", len(self.program.temporaries), value.spec.dtype, value.spec.dims)
        self.program.places[value] = place
        return Operand(value, place)

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
        fusion_order = self._body_order(body, pairs, lists)
        carried = [self._carry(p, i, r, fusion_order) for p, i, r in moving]
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
        block = self._body(body, fusion_order, wanted, moving, carried)
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

    def _body_order(
        self, body: Region, pairs: Mapping[Value, Value], lists: Sequence[Value]
    ) -> tuple[Fusion, Order]:
        program = self.program
        fusion = fuse(body, program.names, program.fusing)
        order = order_units(fusion, pairs, lists)
        program.fusions.append((fusion, order))
        return fusion, order

    def _carry(
        self, param: Value, start: Value, result: Value, scheduled: tuple[Fusion, Order]
    ) -> Carried:
        program = self.program
        if param.spec.rank == 0 or isinstance(param.spec, ListSpec):
            return Carried(param, program.operand(start), None)
        program._require_known([param], "the loop variable")
        if scheduled[1].in_place.get(result) is param:
            place = program.temporary(param.spec)
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
        program = self.program
        block = _RegionBuilder(program, body, *scheduled, wanted).run()
        results = []
        for (_, _, result), c in zip(moving, carried, strict=True):
            operand = program.operand(result)
            if c.other is not None and operand.place is not c.other:
                block.steps.append(program._copy(operand, c.other))
            results.append(operand)
        block.results = results
        return block

    def _condition(self, condition: Region, body: Region, node: Node) -> Block:
        """The test sees the loop variables as the body does."""
        self._bind(condition.params, body.params)
        return self.program.region(condition, {})


def _moves_memory(value: Value) -> bool:
    from treadle.runtime.fusion.roles import is_alias

    node = value.node
    return node is not None and is_alias(node) and node.inputs[0].spec.rank > 0


def _places(operands: Sequence[Operand]) -> list[Place]:
    return [o.place for o in operands if o.place is not None]


_HANDLERS: dict[Role, Any] = {
    Role.CONSTANT: _RegionBuilder.constant,
    Role.ALIAS: _RegionBuilder.alias,
    Role.SCALAR: _RegionBuilder.scalar,
    Role.ARRAY: _RegionBuilder.array,
    Role.LIBRARY: _RegionBuilder.library,
    Role.READ: _RegionBuilder.read,
    Role.ASSIGN: _RegionBuilder.assign,
    Role.COND: _RegionBuilder.cond,
    Role.WHILE: _RegionBuilder.loop,
    Role.CALL: _RegionBuilder.call,
    Role.LIST: _RegionBuilder.list_op,
}


def _attribute_symbols(node: Node) -> set[str]:
    """The symbols in the attributes of a node and of those inside it."""
    inner = [n for region in node.regions for n in region.walk()]
    return set().union(*(attr_symbols(n.attrs) for n in (node, *inner)))
