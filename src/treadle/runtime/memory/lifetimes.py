"""When the temporaries of a schedule are in use."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.runtime.schedule.steps import (
    Block,
    Branch,
    Loop,
    Operand,
    Place,
    Step,
)  # fmt: skip


@dataclass
class Interval:
    """First and last position at which a temporary is in use, both included."""

    first: int
    last: int

    def overlaps(self, other: Interval) -> bool:
        return self.first <= other.last and other.first <= self.last


def lifetimes(block: Block) -> dict[Place, Interval]:
    """The interval of every temporary that the schedule touches, in a numbering of its steps."""
    walk = _Walk()
    walk.block(block)
    return walk.found


class _Walk:
    def __init__(self) -> None:
        self.found: dict[Place, Interval] = {}
        self.now = 0

    def touch(self, place: Place | None, first: int | None = None) -> None:
        if place is None:
            return
        for part in place.parts:
            self.touch(part, first)
        if place.kind != "temporary":
            return
        interval = self.found.setdefault(place, Interval(self.now, self.now))
        interval.last = max(interval.last, self.now)
        if first is not None:
            interval.first = min(interval.first, first)

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
        """What lives before the loop and is used in it stays for all iterations."""
        start = self.now
        outside = set(self.found)
        carried = [p for c in step.carried for p in (c.place, c.other)]
        for place in carried:
            self.touch(place, start)
        self.block(step.condition)
        self.block(step.body)
        self.now += 1
        for place in carried:
            self.touch(place)
        for place in outside:
            if self.found[place].last > start:
                self.touch(place)
