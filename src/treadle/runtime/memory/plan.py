"""Offsets of temporaries in one workspace: those that are never in use together share memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.core.shapes import Dim
from treadle.core.switches import is_on
from treadle.runtime.memory.lifetimes import Interval, lifetimes
from treadle.runtime.schedule.steps import Block, Place

ALIGNMENT = 64


@dataclass
class Plan:
    """Where the temporaries are.

    Attributes:
        offsets: of the temporaries of known size.
        slots: for the others, the number of the slot that they share with those of equal size.
        slot_sizes: the slots' sizes in bytes; they follow the first `static_bytes` one by one,
            each rounded up to the alignment.
    """

    offsets: dict[Place, int] = field(default_factory=dict)
    slots: dict[Place, int] = field(default_factory=dict)
    slot_sizes: list[Dim] = field(default_factory=list)
    static_bytes: int = 0
    live: dict[Place, Interval] = field(default_factory=dict)


def plan_memory(block: Block) -> Plan:
    """Assign every temporary of the schedule its place in the workspace."""
    live, heirs = lifetimes(block)
    plan = Plan(live=live)
    spans = _spans(live, heirs)
    static = [p for p in spans if isinstance(p.room, int)]
    for place in sorted(static, key=lambda p: (-p.room, p.number)):
        offset = _first_fit(place, plan, spans)
        plan.offsets[place] = offset
        plan.static_bytes = max(plan.static_bytes, offset + rounded(place.room))
    for place in spans:
        if not isinstance(place.room, int):
            plan.slots[place] = _slot(place, plan, spans)
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
    for place in heirs:
        root = place
        while root in heirs:
            root = heirs[root]
        spans[root].last = max(spans[root].last, live[place].last)
    return spans


def rounded(size: Dim) -> int:
    assert isinstance(size, int)
    return -(-size // ALIGNMENT) * ALIGNMENT


def _first_fit(place: Place, plan: Plan, spans: dict[Place, Interval]) -> int:
    """The lowest offset that no temporary in use at the same time occupies."""
    taken = sorted(
        (offset, offset + rounded(other.room))
        for other, offset in plan.offsets.items()
        if spans[other].overlaps(spans[place])
    )
    size, offset = rounded(place.room), 0
    for start, end in taken:
        if offset + size <= start:
            break
        offset = max(offset, end)
    return offset


def _slot(place: Place, plan: Plan, spans: dict[Place, Interval]) -> int:
    for number, size in enumerate(plan.slot_sizes):
        if size == place.room and not any(
            spans[other].overlaps(spans[place])
            for other, slot in plan.slots.items()
            if slot == number
        ):
            return number
    plan.slot_sizes.append(place.room)
    return len(plan.slot_sizes) - 1
