"""The state of a schedule that is being built: places of values, known sizes, fusion and order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.locks import cached_property
from treadle.core.ranges import Ranges
from treadle.core.shapes import Dim, dim_symbols, product
from treadle.core.spec import ListSpec, Spec, TensorSpec
from treadle.core.switches import is_on
from treadle.graph.integers import Integers
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.kernel.ir import Const, Kernel
from treadle.ops.control.checks import NOTE
from treadle.runtime.bounds import Sizes
from treadle.runtime.fusion.expressions import Names
from treadle.runtime.fusion.fuse import Fusion, fuse
from treadle.runtime.fusion.kernels import BuiltKernel
from treadle.runtime.fusion.lifting import Lifting
from treadle.runtime.fusion.limits import Limits
from treadle.runtime.roles import is_number
from treadle.runtime.schedule.facts import Facts, Unsupported
from treadle.runtime.schedule.lists import element_dims
from treadle.runtime.schedule.order import Order, order_units
from treadle.runtime.schedule.residence import Residence, find_residence
from treadle.runtime.schedule.status import Status
from treadle.runtime.schedule.steps import Copy, Evaluate, Fetch, Measure, Operand, Place, Step
from treadle.runtime.schedule.steps import Sizes as SizesStep
from treadle.runtime.symbols import symbol_sources, unknown_symbols

# Steps of the host alone on a device with memory of its own.
_OF_HOST = (Evaluate, Measure, SizesStep)


class Builder:
    """The state of building the schedule of one graph (`build.py` begins).

    Attributes:
        constants: the literal arrays, by number.
        fusions: the units of every region and their order, outermost first (for `inspect`).
    """

    def __init__(self, graph: Graph, facts: Facts) -> None:
        self.graph, self.facts = graph, facts
        self.fusing, self.limits = is_on("fusion"), Limits.of(facts.tuning, facts.even_columns)
        dims = element_dims(graph, {s.name for s in symbol_sources(graph.params)})
        self.native_lists = dims is not None
        self.element_dims = dims or {}  # of native lists
        self.stable_lists: set[Value] = set()  # lists that do not change while a loop runs
        self.names = Names()
        self.places: dict[Value, Place] = {}
        self.same: dict[Value, Value] = {}  # a register that is another one
        self.fetched: set[Value] = set()  # numbers with a place that are in a register as well
        self.variables: dict[Value, int] = {}  # handle -> number
        self.constants: list[Any] = []
        self.temporaries: list[Place] = []
        self.delivered: list[int] = []  # results whose size is not known on entry
        self.late: set[str] = set()  # symbols that get their value while the program runs
        self.integers = Integers(graph)
        self.ranges = Ranges()  # of late symbols
        self.sizes = Sizes()  # equal sizes, where steps are being built
        self.loops = 0  # around the steps that are being built
        self.arguments: list[Place] = []
        self.fusions: list[tuple[Fusion, Order]] = []
        self.known: set[str] = set()
        self.status = Status()  # of the checks that the device makes
        self.lift = Lifting()
        self.numbers: dict[Const, Operand] = {}  # constants that are operands

    def constant_place(self, array: Any, spec: Spec) -> Place:
        """The place of an array that never changes."""
        place = Place("constant", len(self.constants), spec.dtype, spec.dims)
        self.constants.append(array)
        return place

    def lifted(self, built: BuiltKernel) -> tuple[Kernel, list[Const]]:
        """A kernel, and the constants that are operands of it."""
        if built.extent is None or not is_on("lifting"):
            return built.kernel, []
        return self.lift(built.kernel)

    def constant_operand(self, constant: Const) -> Operand:
        """A number as an operand."""
        if constant not in self.numbers:
            spec = TensorSpec([], constant.dtype)
            place = self.constant_place(
                np.asarray(constant.value).astype(spec.dtype.np_dtype), spec
            )
            self.numbers[constant] = self.at(place)
        return self.numbers[constant]

    def require_known(self, values: Sequence[Value], what: str) -> None:
        """Unsupported where a size is found out only while the program runs."""
        tensors = [v for v in values if not isinstance(v.spec, ListSpec)]
        missing = unknown_symbols(tensors, self.known)
        if missing:
            raise Unsupported(f"{what} {values[0]} has a size that only the running program knows")

    @cached_property
    def noted(self) -> set[Node]:
        """The nodes whose operands notes are about: they raise no errors themselves."""
        return {n.attrs["of"] for n in self.graph.walk() if n.op is NOTE}

    # -- operands ----------------------------------------------------------------------------

    @cached_property
    def residence(self) -> Residence:
        """Where the numbers of the graph reside."""
        sizes = None if self.facts.unified else {s.name for s in symbol_sources(self.graph.params)}
        return find_residence(self.graph, self.native_lists, sizes, self.facts.runs)

    def is_register(self, value: Value) -> bool:
        """Whether a value is a number in a register of the host."""
        return is_number(value) and (self.facts.unified or value in self.residence.host)

    def on_host(self, value: Value, steps: list[Step]) -> Operand:
        """A value as the host reads it: a number in a register, into which it is fetched where it
        is on the device only. Since the last fetch among `steps` the device may have done nothing:
        then the host reads this number along with those, and waits once."""
        place = self.places.get(value)
        if self.facts.unified or not is_number(value) or place is None:
            return self.operand(value)
        if value not in self.fetched:
            self.fetched.add(value)
            last = next((s for s in reversed(steps) if not isinstance(s, _OF_HOST)), None)
            if not isinstance(last, Fetch):
                last = Fetch([], [])
                steps.append(last)
            last.values.append(value)
            last.sources.append(place)
            last.reads.append(place)
        return Operand(self.same.get(value, value), None)

    def operand(self, value: Value) -> Operand:
        """Where a value is: a place, or the register that holds it."""
        place = self.places.get(value)
        return Operand(self.same.get(value, value), place)

    def temporary(self, spec: Spec) -> Place:
        """Memory for an array of this spec."""
        return self._temporary(spec.dtype, spec.dims)

    def _temporary(self, dtype: DType, dims: tuple[Dim, ...]) -> Place:
        late = set().union(*map(dim_symbols, dims)) & self.late
        most = self._most(dims) if late and self.loops else None
        kind = "late" if late and most is None else "temporary"
        place = Place(kind, len(self.temporaries), dtype, dims)
        place.most = None if most is None else most * dtype.size
        self.temporaries.append(place)
        return place

    def _most(self, dims: Sequence[Dim]) -> Dim | None:
        """The most elements that an array in a loop has, by the ranges of the symbols."""
        entry = self.known - self.late
        bounds = [self.ranges.most(d, entry) for d in dims]
        return None if None in bounds else product(d for d in bounds if d is not None)

    def unnamed(self, dims: Sequence[Dim], dtype: DType) -> Value:
        """A value that no node of the graph makes."""
        return Value(TensorSpec(dims, dtype), self.graph, -1)

    def at(self, place: Place) -> Operand:
        """The array at a place that no node of the graph fills."""
        return Operand(self.unnamed(place.dims, place.dtype), place)

    def array(self, dims: Sequence[Dim], dtype: DType) -> Operand:
        """Memory for an array that no node of the graph makes."""
        return self.at(self._temporary(dtype, tuple(dims)))

    def place(self, kind: str, spec: Spec) -> Place:
        """A place for an array whose memory is found while the program runs."""
        place = Place(kind, len(self.temporaries), spec.dtype, spec.dims)
        self.temporaries.append(place)
        return place

    def scratch(self, size: Dim) -> Place:
        """Bytes that one step uses."""
        return self._temporary(dtypes.uint8, (size,))

    def copy(self, source: Operand, target: Place) -> Copy:
        """The step that copies an operand."""
        reads = [] if source.place is None else [source.place]
        return Copy(source, target, reads=reads, writes=[target])

    def variable(self, handle: Value) -> Place:
        """The buffer of a variable."""
        return Place("variable", self.variables[handle], handle.spec.dtype, handle.spec.dims)

    # -- regions -----------------------------------------------------------------------------

    def keeps_apart(self, node: Node) -> bool:
        """Whether the routine for a node runs an epilogue on blocks in its workspace."""
        return self.facts.routine_bytes(node, apart=True) is not None

    def schedule(
        self,
        region: Region,
        carried: Mapping[Value, Value] | None = None,
        lists: Sequence[Value] = (),
    ) -> tuple[Fusion, Order]:
        """Fusion and order of a region; see `order_units`."""
        facts = self.facts
        fusion = fuse(
            region, self.names, self.limits, self.fusing, carried, facts.takes_epilogue,
            self.keeps_apart, facts.takes_views, self.is_register,
        )  # fmt: skip
        order = order_units(fusion, carried, lists, facts.unified)
        self.fusions.append((fusion, order))
        return fusion, order
