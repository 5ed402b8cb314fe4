"""The checks of a region that a device makes, until steps note their failures in the status."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from treadle.core import dtypes
from treadle.graph.ir import Value
from treadle.kernel.ir import Buffer, Kernel, apply, const, load
from treadle.runtime.fusion.group import MAX_BUFFERS
from treadle.runtime.schedule.builder import Builder
from treadle.runtime.schedule.joining import Pending, join_earlier
from treadle.runtime.schedule.status import WORD, goes_on, keeping, noting
from treadle.runtime.schedule.steps import (
    Callback,
    Check,
    Evaluate,
    Finding,
    Guard,
    Launch,
    ListStep,
    Note,
    Operand,
    OpLoops,
    Place,
    Position,
    Step,
    memory,
    places_of,
)

# Steps at which a run may end with an error of the host.
_ENDING = (Callback, Check, Guard, ListStep, Note, OpLoops, Position)


class Checks:
    """The checks of one region that no step notes yet.

    One launch notes all waiting checks, before a step that may end the program or overwrites their
    operands. The kernels that compute their verdicts become part of it where they can wait, too.

    Args:
        steps: of the region, as far as they are built.
        launch: gives the launch of a kernel on operands.
    """

    def __init__(
        self, program: Builder, steps: list[Step], launch: Callable[[Kernel, list[Operand]], Launch]
    ) -> None:
        self.program, self.steps, self.launch = program, steps, launch
        self.waiting: list[Finding] = []

    def add(self, check: Finding) -> None:
        """Let a check wait."""
        operands = sum(1 + len(c.elements) for c in (*self.waiting, check))
        if operands > MAX_BUFFERS // 2:
            self.note()
        self.program.status.add(check)
        self.waiting.append(check)

    def precede(self, step: Step) -> None:
        """Note the waiting checks if a step comes that must follow them."""
        if not self.waiting:
            return
        found = {memory(p) for c in self.waiting for p in places_of([c.holds, *c.elements])}
        if isinstance(step, _ENDING) or not found.isdisjoint(map(memory, step.writes)):
            self.note()

    def note(self) -> None:
        """Note the checks that wait."""
        checks, self.waiting = self.waiting, []
        if not checks:
            return
        status = self.program.status
        kept: Mapping[Place, Operand] = {p: self.program.at(p) for p in status.places}
        arrays = any(p.dims for c in checks for p in c.kept)
        now = self.program.array((), WORD) if arrays else None
        launches = [self._joined(self.steps, *noting(checks, kept[status.word], kept, now))]
        last = None if now is None else keeping(checks, kept, now)
        if last is not None:
            launches.append(self.launch(*last))
        reads = [p for launch in launches for p in launch.reads]
        writes = [p for launch in launches for p in launch.writes]
        self.steps.append(Note(checks, launches, reads=reads, writes=writes))

    def until_failure(
        self, condition: Value, steps: list[Step], asserted: bool, alone: bool
    ) -> Operand:
        """The condition of a loop, for the end of its block: where a check has failed, a loop that
        a number of the device ends goes on no longer, for nothing else may end it.

        asserted: nor does one that the host ends, for an assertion may be all that ends it.
        alone: the device runs the loop by itself, so the condition stays there.
        """
        program, status = self.program, self.program.status
        if program.facts.unified or not status.findings:
            return program.operand(condition) if alone else program.on_host(condition, steps)
        on_device = program.places.get(condition) is not None and condition not in program.fetched
        if alone or on_device:
            out = program.array((), dtypes.bool)
            operands = program.operand(condition), program.at(status.word), out
            steps.append(self._joined(steps, *goes_on(*operands)))
            return out if alone else self._fetched(out, steps)
        holds = program.on_host(condition, steps)
        if not asserted:
            return holds
        inputs = {"holds": holds, "word": self._fetched(program.at(status.word), steps)}
        loads = [load(Buffer(name, o.value.spec.dtype, ())) for name, o in inputs.items()]
        both = apply("and", loads[0], apply("eq", loads[1], const(0, WORD)))
        made = program.unnamed((), dtypes.bool)
        steps.append(Evaluate(made, both, inputs))
        return Operand(made, None)

    def _joined(self, steps: list[Step], kernel: Kernel, operands: list[Operand]) -> Launch:
        """The launch of a kernel together with the kernels of `steps` that compute its operands."""
        facts = self.program.facts

        def fits(joined: Pending) -> bool:
            return len(joined[1]) <= MAX_BUFFERS and facts.kernel_needs(joined[0]) is not None

        return self.launch(*join_earlier(steps, kernel, operands, fits))

    def _fetched(self, number: Operand, steps: list[Step]) -> Operand:
        """A number of the device, which the host reads after these steps."""
        assert number.place is not None
        self.program.places[number.value] = number.place
        return self.program.on_host(number.value, steps)
