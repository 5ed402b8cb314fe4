"""The steps of a region as they are written: places of values, launches, checks and sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from treadle.core.shapes import Dim, dim_symbols, product, substitute, symbol_name
from treadle.core.spec import ListSpec, TensorSpec
from treadle.core.switches import is_on
from treadle.graph.ir import Node, Region, Value, uses
from treadle.graph.rewrite import attr_symbols
from treadle.kernel.ir import Expr, Kernel
from treadle.ops.collections.lists import LIST_GET
from treadle.runtime.bounds import Sizes, Unproved, unproved
from treadle.runtime.fusion.fuse import Unit
from treadle.runtime.fusion.kernels import BuiltKernel, with_extent
from treadle.runtime.roles import Role, is_alias
from treadle.runtime.schedule.builder import Builder
from treadle.runtime.schedule.checks import Checks
from treadle.runtime.schedule.lists import puts_element
from treadle.runtime.schedule.order import Order
from treadle.runtime.schedule.steps import (
    Block,
    Callback,
    Check,
    Evaluate,
    Guard,
    Launch,
    ListStep,
    Measure,
    Operand,
    Place,
    Step,
    places_of,
)
from treadle.runtime.symbols import guarded_dims, told_symbol, unknown_symbols

BEYOND = "an element would be read or written {} beyond an axis of its array"


class Emission:
    """The steps of one region that are written so far, and what the next ones may rely on.

    Attributes:
        block: the steps.
        made: the values that are there.
        wanted: where the owner of the region wants values; each is taken out when it has a place.
        placed: list ops whose slot was made ready.
    """

    def __init__(
        self, program: Builder, region: Region, order: Order, wanted: Mapping[Value, Place]
    ) -> None:
        self.program, self.region, self.order = program, region, order
        self.wanted = dict(wanted)
        for value, place in wanted.items():  # operands in the same memory
            while (below := self._below(value)) is not None:
                value = below
                self.wanted.setdefault(value, place)
        self.block = Block()
        self.made: set[Value] = set(region.params)
        apart = Role.SCALAR, Role.ALIAS  # their handlers compare no sizes
        grouped = {n for u in order.units if u.role not in apart for n in u.nodes}
        self.unguarded = [n for n in region.nodes if n not in grouped and any(guarded_dims(n))]
        self.placed: set[Unit] = set()
        self.pushes = element_slots(region, order) if program.native_lists else {}
        self.checks = Checks(program, self.block.steps, self.launch_alone)

    def _below(self, value: Value) -> Value | None:
        """The operand whose memory a value of this region names or takes over."""
        node = value.node
        if node is None or node.region is not self.region:
            return None
        return node.inputs[0] if _moves_memory(value) else self.order.taken.get(value)

    def emit(self, step: Step) -> None:
        """Add a step, after the checks that must not come later."""
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

    def known_sizes(self) -> Sizes:
        """The sizes that are known to be equal here, and the ranges of symbols."""
        self.program.sizes.add_ranges(self.program.ranges)
        return self.program.sizes

    def check_bounds(self, node: Node, condition: Unproved) -> None:
        """Compare sizes when the program runs, unless they are known to keep inside a buffer."""
        if self.known_sizes().is_zero(condition.excess):
            return
        self.emit(Guard(node, (condition.excess, 0), BEYOND))
        self.program.sizes.add([(condition.excess, 0)])

    def guard(self, node: Node) -> None:
        """Compare sizes that the shape rule took for equal and that are known only now."""
        for a, b in guarded_dims(node):
            late = (dim_symbols(a) | dim_symbols(b)) & self.program.late
            if late and not self.program.ranges.are_equal(a, b):
                said = node.attrs.get("text")  # of what a public function requires
                if said is None:
                    said = node.op.sizes_differ
                else:
                    said = said.replace("{", "{{").replace("}", "}}")
                self.emit(Guard(node, (a, b), said))
            self.program.sizes.add([(a, b)])

    def guard_inlined(self) -> None:
        """Compare the sizes of nodes that have no unit (views, scalars and nodes that are computed
        again, inside of their consumers), and of those that are another value under a new name, as
        soon as the program knows these sizes."""
        waiting: list[Node] = []
        for node in self.unguarded:
            pairs = list(guarded_dims(node))
            named = {s for pair in pairs for d in pair for s in dim_symbols(d)}
            if named <= self.program.known:
                self.guard(node)
            else:
                waiting.append(node)
        self.unguarded = waiting

    def launch(self, built: BuiltKernel, operands: list[Operand], outputs: list[int]) -> Launch:
        """A kernel on its operands, of which it writes those numbered in `outputs`."""
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

    def launch_alone(self, kernel: Kernel, operands: list[Operand]) -> Launch:
        """The launch of a kernel that was written for these operands."""
        built = BuiltKernel(kernel, tuple((o.value, 0) for o in operands))
        outputs = [n for n, b in enumerate(kernel.buffers) if b in kernel.outputs]
        return self.launch(built, operands, outputs)

    def compute(self, kernel: Kernel, node: Node, operands: list[Operand]) -> None:
        """Launch a kernel that stores into its last operand."""
        conditions, _ = unproved(kernel, self.known_sizes())
        for condition in conditions:
            self.check_bounds(node, condition)
        built = BuiltKernel(kernel, tuple((o.value, 0) for o in operands))
        self.emit(self.launch(built, operands, [len(operands) - 1]))

    def refusal(self, node: Node, inputs: list[Operand]) -> Callback:
        """The call of the NumPy implementation that raises its error."""
        mentioned = sorted(attribute_symbols(node) & self.program.late)
        return Callback(
            node, inputs, [], "", self.sized(inputs), mentioned, reads=places_of(inputs)
        )

    def sized(self, operands: Sequence[Operand]) -> list[bool]:
        """Which are arrays of sizes that the program finds out. A list is handed over as it is."""
        late = self.program.late
        specs = [o.value.spec for o in operands]
        return [isinstance(s, TensorSpec) and bool(s.symbols() & late) for s in specs]

    def refuse_unless(self, node: Node, holds: Expr, inputs: Mapping[str, Operand]) -> None:
        """Let the NumPy implementation of a node raise its error, unless a number is true."""
        refusal = self.refusal(node, [self.program.operand(v) for v in node.inputs])
        self.emit(Check(self.evaluated(holds, inputs), refusal, reads=refusal.reads))

    def evaluated(self, expr: Expr, inputs: Mapping[str, Operand]) -> Operand:
        """A number of the host that no node of the graph computes."""
        value = self.program.unnamed([], expr.dtype)
        self.emit(Evaluate(value, expr, dict(inputs)))
        return Operand(value, None)

    def measured(self, dim: Dim, expr: Expr, inputs: Mapping[str, Operand]) -> Dim:
        """A new symbol gets its value from a number of the host."""
        self.emit(Measure(str(dim), self.evaluated(expr, inputs)))
        self.program.known.add(str(dim))
        self.program.late.add(str(dim))
        return dim


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


def _moves_memory(value: Value) -> bool:
    node = value.node
    return node is not None and is_alias(node) and node.inputs[0].spec.rank > 0


def attribute_symbols(node: Node) -> set[str]:
    """The symbols in the attributes of a node and of those inside it."""
    inner = [n for region in node.regions for n in region.walk()]
    return set().union(*(attr_symbols(n.attrs) for n in (node, *inner)))
