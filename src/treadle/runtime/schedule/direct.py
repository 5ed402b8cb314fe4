"""Kernels that store into a part of an array: the update of the part is no step of its own.

    %v = kernel(...)                      kernel(...) stores at x[begin + i * stride]
    slice_update in x by %v         ->

That is so where the update happens in place, nothing else reads %v or touches x in between, and
the kernel reads of x only the elements that it writes, or parts that are shown to lie apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from treadle.core.records import record
from treadle.core.shapes import Dim, dim_symbols
from treadle.core.switches import is_on
from treadle.graph.ir import Node, Region, Value
from treadle.kernel.ir import Affine, Index, Load, postorder
from treadle.ops.lowering import add_index, scale_index
from treadle.ops.properties import PartKind, PartUse
from treadle.runtime.fusion.expressions import ZERO
from treadle.runtime.fusion.fuse import Fusion, Unit
from treadle.runtime.fusion.kernels import Part
from treadle.runtime.fusion.takeovers import storage
from treadle.runtime.roles import Role, squeezed
from treadle.runtime.schedule.builder import Builder
from treadle.runtime.schedule.order import Order
from treadle.runtime.schedule.steps import Place

FARTHEST = 256  # units between a kernel and the update that it does
_PLACES = frozenset({"temporary", "output", "pair", "pair'"})


@record
class DirectStores:
    """Finds the updates of a region that kernels do; `done` are those found so far."""

    region: Region
    fusion: Fusion
    order: Order
    program: Builder
    done: set[Unit] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.number = {u: i for i, u in enumerate(self.order.units)}
        self.memory: dict[Value, Value] = {}  # by `_memory`
        self.users: dict[Value, list[Unit]] = {}
        for unit in self.order.units:
            for value in self.fusion.loads[unit]:
                self.users.setdefault(value, []).append(unit)

    def find(self, unit: Unit, stores: Sequence[Value]) -> dict[Value, Part]:
        """The stored values of a kernel that go straight into parts of arrays."""
        found: dict[Value, Part] = {}
        if unit.group is None or not is_on("direct"):
            return found
        for value in stores:
            target = self._target(unit, value)
            if target is None:
                continue
            update, part = target
            if self._agrees(unit, stores, value, part):
                found[value] = part
                self.done.add(update)
        return found

    def is_element(self, value: Value) -> bool:
        """Whether a number is only written into arrays, as one element of them; it may have dims of
        1 in between."""
        users = self.users.get(value, ())
        alone = value not in self.region.results and bool(users)
        return alone and all(
            self.is_element(u.nodes[0].outputs[0])
            if u.role is Role.ALIAS
            else u.role is Role.UPDATE
            and _is_slice(u.nodes[0])
            and u.nodes[0].inputs[1] is value
            for u in users
        )

    def _target(self, unit: Unit, value: Value) -> tuple[Unit, Part] | None:
        """The update that alone uses a value, and where it puts the value's elements."""
        axes: list[int | None] = list(range(value.spec.rank))  # of the value, for every dim
        last = value
        while True:
            users = self.users.get(last, ())
            if len(users) != 1 or last in self.region.results:
                return None
            node = users[0].nodes[0]
            if users[0].role is Role.UPDATE:
                break
            places = squeezed(node) if users[0].role is Role.ALIAS else None
            if places is None:
                return None
            moved: list[int | None] = [None] * node.outputs[0].spec.rank
            for axis, place in zip(axes, places, strict=True):
                if place is not None:
                    moved[place] = axis
            axes, last = moved, node.outputs[0]
        if not _is_slice(node) or node.inputs[1] is not last or node.inputs[0] is last:
            return None
        if not self._is_free(unit, users[0]):
            return None
        assert unit.group is not None
        own = unit.group.index[value]
        index = [ZERO if a is None else own[a] for a in axes]
        steps = zip(index, node.attrs["begin"], node.attrs["strides"], strict=True)
        at = [add_index(scale_index(i, s), b) for i, b, s in steps]
        if not all(isinstance(i, Affine) for i in at):
            return None
        target = tuple(i for i in at if isinstance(i, Affine))
        if not all(dim_symbols(i.offset) <= self.program.known for i in target):
            return None
        return users[0], Part(node.inputs[0], target, _adds(node))

    def _is_free(self, unit: Unit, update: Unit) -> bool:
        """Whether the kernel may write when it runs: the array is there, the update overwrites it
        in place, and nobody touches it in between."""
        node = update.nodes[0]
        array, out = node.inputs[0], node.outputs[0]
        place = self.program.places.get(array)
        if out not in self.order.taken or place is None or place.kind not in _PLACES:
            return False
        first, last = self.number[unit], self.number[update]
        if not first <= last <= first + FARTHEST:
            return False
        memory = self._memory(array)
        for between in self.order.units[first + 1 : last]:
            touched = (*self.fusion.loads[between], *(v for n in between.nodes for v in n.outputs))
            if any(self._is_at(v, memory, place) for v in touched):
                return False
        return True

    def _is_at(self, value: Value, memory: Value, place: Place | None) -> bool:
        """Whether a value is in the memory that another one named first."""
        if self._memory(value) is memory:
            return True
        return place is not None and self.program.places.get(value) is place

    def _memory(self, value: Value) -> Value:
        """The value that first named the memory, before all updates in place."""
        chain = []
        while value not in self.memory:
            chain.append(value)
            named = storage(value)
            before = self.order.taken.get(named) or self.order.in_place.get(named)
            if before is None:
                self.memory[value] = named
            else:
                value = before
        found = self.memory[value]
        self.memory.update(dict.fromkeys(chain, found))
        return found

    def _agrees(self, unit: Unit, stores: Sequence[Value], value: Value, part: Part) -> bool:
        """Whether the kernel reads of the array only the element that it writes, or other parts."""
        group = unit.group
        assert group is not None
        same = part.adds
        for load in self._loads(unit, stores, part.array):
            if load.index == part.index and load.valid is None:
                same = True
            elif not self._apart(load.index, part.index):
                return False
        if not same:
            return True
        if any(group.index[v] != group.index[value] for v in stores):
            return False
        return not group.reduced or (group.rowwise and len(stores) == 1)

    def _loads(self, unit: Unit, stores: Sequence[Value], array: Value) -> Iterator[Load]:
        """The loads of a kernel from the memory of an array."""
        group = unit.group
        assert group is not None
        memory, place = self._memory(array), self.program.places.get(array)
        for expr in postorder([group.values[v] for v in stores]):
            if isinstance(expr, Load):
                source = group.build.buffers[expr.buffer]
                if self._is_at(source, memory, place):
                    yield expr

    def _apart(self, a: Sequence[Index], b: Sequence[Index]) -> bool:
        """Whether two indices never meet: along one axis one is always before the other."""
        for one, other in zip(a, b, strict=True):
            first, second = _extent(one), _extent(other)
            if first is not None and second is not None:
                (low_a, high_a), (low_b, high_b) = first, second
                if self.program.ranges.is_less_equal(high_a + 1, low_b):
                    return True
                if self.program.ranges.is_less_equal(high_b + 1, low_a):
                    return True
        return False


def _extent(index: Index) -> tuple[Dim, Dim] | None:
    """The least and the largest position of an index; None where it is computed."""
    if not isinstance(index, Affine):
        return None
    low = high = index.offset
    for axis, factor in index.terms:
        if not isinstance(factor, int):
            return None
        span = (axis.extent - 1) * factor
        low, high = (low, high + span) if factor > 0 else (low + span, high)
    return low, high


def _is_slice(node: Node) -> bool:
    """Whether an update is of a part with known bounds."""
    return node.op.part is not None and node.op.part.kind is PartKind.SLICE


def _adds(node: Node) -> bool:
    return node.op.part is not None and node.op.part.use is PartUse.ADD
