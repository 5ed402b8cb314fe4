"""Kernels that only the message of an error needs run where the error is raised.

    %rows = kernel(columns)                     %y, %bad = kernel(columns, x)
    %y, %bad = kernel(columns, x)        ->     check not %bad
    check not %bad for gather of %rows            on failure: %rows = kernel(columns)

A check calls the NumPy implementation that raises the error of eager execution, on the operands of
its node. Where a kernel reads what such an operand is made of, as positions `columns[a:b] + 1` that
a gather computes while it reads, nothing else needs the operand in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import (
    Block,
    Branch,
    Check,
    Copy,
    Evaluate,
    Guard,
    Launch,
    LibraryCall,
    LoadScalar,
    Loop,
    Measure,
    Place,
    Position,
    Sizes,
    Step,
    memory,
)

# Steps that write what they say, and run no code of the user.
_PLAIN = (Check, Copy, Evaluate, Guard, Launch, LibraryCall, LoadScalar, Measure, Position, Sizes)


def postpone_to_failures(block: Block) -> None:
    """Move kernels whose results only checks show to where these fail, in a block and in those
    inside it."""
    if any(isinstance(step, Check) for step in all_steps(block)):
        postponing = _Postponing(block)
        for inner in postponing.blocks:
            postponing.block(inner)


class _Postponing:
    """
    Attributes:
        blocks: the block and those inside it.
        uses: the steps that read or write each place; None stands for what blocks, branches and
            loops hand on.
    """

    def __init__(self, block: Block) -> None:
        self.blocks = list(_blocks(block))
        self.uses: dict[Place, list[Step | None]] = {}
        for step in all_steps(block):
            for place in dict.fromkeys((*step.reads, *step.writes)):
                self._note(place, step)
            for handed_on in _handed_on(step):
                self._note(handed_on, None)
        for inner in self.blocks:
            for operand in inner.results:
                self._note(operand.place, None)

    def _note(self, place: Place | None, step: Step | None) -> None:
        if place is not None:
            self.uses.setdefault(place, []).append(step)
            for part in place.parts:
                self._note(part, None)

    def block(self, block: Block) -> None:
        """Go through the steps of a block, last ones first, so that what computes operands of a
        kernel that moves can follow it."""
        position = {step: n for n, step in enumerate(block.steps)}
        moved: set[Step] = set()
        for number in range(len(block.steps) - 1, -1, -1):
            step = block.steps[number]
            if not isinstance(step, Launch) or not step.native:
                continue
            checks = self._only_checks(step)
            if not checks or any(c not in position for c in checks):
                continue
            between = block.steps[number + 1 : max(position[c] for c in checks)]
            if self._stays(step, [s for s in between if s not in moved]):
                self._move(step, checks)
                moved.add(step)
        if moved:
            block.steps = [s for s in block.steps if s not in moved]

    def _only_checks(self, step: Launch) -> list[Check]:
        """The checks that read what a kernel writes, if nothing else does."""
        found: dict[Check, None] = {}
        for place in step.writes:
            if place.kind != "temporary":
                return []
            for user in self.uses[place]:
                if isinstance(user, Check):
                    found[user] = None
                elif user is not step:
                    return []
        places = [step.operands[n].place for n in step.outputs]
        return [] if None in places else list(found)

    def _stays(self, step: Launch, between: Sequence[Step]) -> bool:
        """Whether what a kernel reads stays as it is during some steps."""
        read = {memory(p) for p in step.reads}
        return all(
            isinstance(s, _PLAIN) and read.isdisjoint(map(memory, s.writes)) for s in between
        )

    def _move(self, step: Launch, checks: Sequence[Check]) -> None:
        for check in checks:
            check.told.insert(0, step)
            check.reads = [*check.reads, *step.reads]
            check.writes = [*check.writes, *step.writes]
        for place in dict.fromkeys((*step.reads, *step.writes)):
            users = self.uses[place]
            users.remove(step)
            users += [c for c in checks if c not in users]


def _blocks(block: Block) -> Iterator[Block]:
    """A block and those inside it."""
    yield block
    for step in block.steps:
        if isinstance(step, Branch):
            yield from _blocks(step.then)
            yield from _blocks(step.otherwise)
        elif isinstance(step, Loop):
            yield from _blocks(step.condition)
            yield from _blocks(step.body)


def _handed_on(step: Step) -> Iterator[Place | None]:
    """The places of what a branch gives, and of the variables of a loop."""
    if isinstance(step, Branch):
        yield from (o.place for o in step.results)
    elif isinstance(step, Loop):
        yield from (p for c in step.carried for p in (c.start.place, c.place, c.other))
