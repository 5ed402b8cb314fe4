"""When the temporaries of a schedule are in use."""

from __future__ import annotations

from treadle.core.records import record
from treadle.core.switches import is_on
from treadle.runtime.schedule.steps import (
    Block,
    Branch,
    Launch,
    Loop,
    Operand,
    Place,
    Step,
)  # fmt: skip


@record
class Interval:
    """First and last position at which a temporary is in use, both included."""

    first: int
    last: int

    def overlaps(self, other: Interval) -> bool:
        return self.first <= other.last and other.first <= self.last


def lifetimes(block: Block) -> tuple[dict[Place, Interval], dict[Place, Place]]:
    """The interval of every temporary that the schedule touches, in a numbering of its steps;
    and temporary -> the one whose memory it may continue to use, as the schedule goes on.

    That is so for the result of a kernel that reads an operand for the last time, and element by
    element.
    """
    walk = _Walk()
    walk.block(block)
    heirs: dict[Place, Place] = {}
    inherited: set[Place] = set()
    for now, launch in walk.flat if is_on("inheritance") else ():
        for out in (launch.operands[i].place for i in launch.outputs):
            for operand in launch.operands:
                if walk.inherits(out, operand.place, now) and operand.place not in inherited:
                    assert out is not None and operand.place is not None
                    heirs[out] = operand.place
                    inherited.add(operand.place)
                    break
    return walk.found, heirs


class _Walk:
    def __init__(self) -> None:
        self.found: dict[Place, Interval] = {}
        self.born: dict[Place, int] = {}  # the step that touched it first
        self.inside: list[set[Place]] = [set()]  # touched in the loops around the current step
        self.flat: list[tuple[int, Launch]] = []  # kernels along one axis, by step
        self.now = 0

    def touch(self, place: Place | None, first: int | None = None) -> None:
        if place is None:
            return
        for part in place.parts:
            self.touch(part, first)
        if place.kind != "temporary":
            return
        interval = self.found.setdefault(place, Interval(self.now, self.now))
        self.born.setdefault(place, self.now)
        self.inside[-1].add(place)
        interval.last = max(interval.last, self.now)
        if first is not None:
            interval.first = min(interval.first, first)

    def inherits(self, out: Place | None, source: Place | None, now: int) -> bool:
        """Whether `out` begins where `source` ends, and has the size of its elements."""
        if out is None or source is None or out is source:
            return False
        if out not in self.found or source not in self.found:
            return False
        same = source.bytes == out.bytes and source.room == out.room
        same = same and source.dtype.size == out.dtype.size
        return same and self.found[source].last == now == self.found[out].first

    def block(self, block: Block) -> None:
        for step in block.steps:
            self.now += 1
            self.step(step)
        self.now += 1
        self.operands(block.results)

    def operands(self, operands: list[Operand]) -> None:
        for operand in operands:
            self.touch(operand.place)

    def step(self, step: Step) -> None:
        for place in (*step.reads, *step.writes):
            self.touch(place)
        if isinstance(step, Launch) and step.extent is not None and step.native:
            self.flat.append((self.now, step))
        if isinstance(step, Branch):
            self.branch(step)
        elif isinstance(step, Loop):
            self.loop(step)

    def branch(self, step: Branch) -> None:
        start = self.now
        self.block(step.then)
        self.block(step.otherwise)
        self.now += 1
        for operand in step.results:
            self.touch(operand.place, start)

    def loop(self, step: Loop) -> None:
        """A temporary from before the loop that the loop uses stays for all iterations."""
        start = self.now
        self.inside.append(set())
        carried = [p for c in step.carried for p in (c.place, c.other)]
        for place in carried:
            self.touch(place, start)
        self.block(step.condition)
        self.block(step.body)
        self.now += 1
        for place in carried:
            self.touch(place)
        touched = self.inside.pop()
        self.inside[-1] |= touched
        for place in touched:
            if self.born[place] <= start:
                self.touch(place)
            elif step.rows is not None:  # its threads are in different iterations
                self.touch(place, start)
