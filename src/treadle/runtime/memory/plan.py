"""Offsets of temporaries in one workspace: those that are never in use together share memory."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import field

from treadle.core.records import record
from treadle.core.shapes import Dim
from treadle.core.switches import is_on
from treadle.runtime.memory.lifetimes import Interval, lifetimes
from treadle.runtime.memory.occupied import Occupied
from treadle.runtime.schedule.steps import Block, Place

ALIGNMENT = 64


@record
class MemoryPlan:
    """Where the temporaries are.

    Attributes:
        offsets: of the temporaries of known size.
        slots: for the others, the number of the slot that temporaries of equal size share.
        slot_sizes: the slots' sizes in bytes; they follow the first `static_bytes` one by one,
            each rounded up to the alignment.
    """

    offsets: dict[Place, int] = field(default_factory=dict)
    slots: dict[Place, int] = field(default_factory=dict)
    slot_sizes: list[Dim] = field(default_factory=list)
    static_bytes: int = 0
    live: dict[Place, Interval] = field(default_factory=dict)

    @property
    def bytes(self) -> Dim:
        """The size of the workspace."""
        return self._start_of_slot(len(self.slot_sizes))

    def offset(self, place: Place) -> Dim:
        """Where a temporary begins, in bytes from the beginning of the workspace."""
        if place in self.offsets:
            return self.offsets[place]
        return self._start_of_slot(self.slots[place])

    def _start_of_slot(self, number: int) -> Dim:
        start: Dim = self.static_bytes
        for size in self.slot_sizes[:number]:
            start = start + (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT
        return start


def plan_memory(block: Block) -> MemoryPlan:
    """Assign every temporary of the schedule its place in the workspace."""
    live, heirs = lifetimes(block)
    plan = MemoryPlan(live=live)
    spans = _spans(live, heirs)
    occupied = Occupied(1 + max((span.last for span in spans.values()), default=0))
    static = [p for p in spans if isinstance(p.room, int)]
    for place in sorted(static, key=lambda p: (-p.room, p.number)):
        size = rounded(place.room)
        offset = plan.offsets[place] = occupied.take(spans[place], size)
        plan.static_bytes = max(plan.static_bytes, offset + size)
    slots: dict[Dim, list[tuple[int, list[int]]]] = {}
    for place in spans:
        if not isinstance(place.room, int):
            plan.slots[place] = _slot(place, plan, spans[place], slots.setdefault(place.room, []))
    for place, source in heirs.items():  # in the order of the schedule
        where: dict[Place, int] = plan.offsets if source in plan.offsets else plan.slots
        where[place] = where[source]
    return plan


def _spans(live: dict[Place, Interval], heirs: dict[Place, Place]) -> dict[Place, Interval]:
    """The temporaries that need memory of their own -> how long they and their heirs use it."""
    spans = {p: Interval(i.first, i.last) for p, i in live.items() if p not in heirs}
    if not is_on("sharing"):
        last = max((span.last for span in spans.values()), default=0)
        spans = {place: Interval(0, last) for place in spans}
    roots: dict[Place, Place] = {}
    for place, source in heirs.items():  # in the order of the schedule
        root = roots[place] = roots.get(source, source)
        spans[root].last = max(spans[root].last, live[place].last)
    return spans


def rounded(size: Dim) -> int:
    assert isinstance(size, int)
    return -(-size // ALIGNMENT) * ALIGNMENT


def _slot(
    place: Place, plan: MemoryPlan, span: Interval, slots: list[tuple[int, list[int]]]
) -> int:
    """The number of a slot of the place's size that is free. `slots` has the slots of this size:
    number, and firsts and lasts of the intervals in which it is taken, in order."""
    for number, taken in slots:
        at = bisect_left(taken, span.first)
        if at % 2 == 0 and (at == len(taken) or taken[at] > span.last):
            taken[at:at] = [span.first, span.last]
            return number
    plan.slot_sizes.append(place.room)
    slots.append((len(plan.slot_sizes) - 1, [span.first, span.last]))
    return slots[-1][0]
