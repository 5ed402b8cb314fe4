"""Checks a finished schedule: the host reads numbers in its registers only, where a step put them.

Where the host computes in the memory of the device, registers must be written before they are read,
and nothing is fetched. Elsewhere nothing but `Fetch` reads a number of the device for the host, and
kernels and routines leave theirs in memory. It runs with TREADLE_VERIFY=1 and in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable

from treadle.graph.ir import Value
from treadle.runtime.roles import is_number
from treadle.runtime.schedule.builder import Builder
from treadle.runtime.schedule.residence import host_reads
from treadle.runtime.schedule.steps import (
    Append,
    Block,
    Branch,
    Callback,
    Check,
    Copy,
    Deliver,
    Evaluate,
    Fetch,
    Launch,
    LibraryCall,
    ListStep,
    LoadScalar,
    Loop,
    Measure,
    Note,
    Operand,
    OpLoops,
    Position,
    SegmentedLaunch,
    Step,
    Update,
)


class ResidenceError(Exception):
    """A number is read where it is not."""


def verify_residence(builder: Builder, block: Block) -> None:
    """Go through a schedule.

    Raises:
        ResidenceError: a step reads a register that nothing wrote, or the host reads a number that
            is on the device only.
    """
    _Verifier(builder.facts.unified).block(block, set())


class _Verifier:
    def __init__(self, unified: bool) -> None:
        self.unified = unified

    def block(self, block: Block, written: set[Value]) -> None:
        """Go through steps that find some registers `written`, and add theirs."""
        for step in block.steps:
            self.step(step, written)

    def step(self, step: Step, written: set[Value]) -> None:
        match step:
            case Evaluate():
                self.given(step, step.inputs.values(), written, host=True)
                written.add(step.value)
            case LoadScalar() | Fetch():
                if self.unified is isinstance(step, Fetch):
                    raise ResidenceError(f"{step} is no step for this device")
                written.update(step.values if isinstance(step, Fetch) else [step.value])
            case Check():
                self.given(step, [step.holds], written, host=True)
                for launch in step.told:
                    self.launch(launch, written)
                self.given(step, step.callback.inputs, written)
            case Position():
                self.given(step, [step.source], written, host=True)
                self.given(step, step.callback.inputs, written)
                written.add(step.value)
            case Note(launches=[]):
                (check,) = step.findings
                self.given(step, [check.holds], written, host=True)
                self.given(step, check.elements, written)
            case Note():
                for launch in step.launches:
                    self.launch(launch, written)
            case Measure():
                self.given(step, [step.source], written, host=True)
            case Callback():
                self.given(step, step.inputs, written, host=True)
                self.made(step, step.outputs, written, host=True)
            case ListStep():
                read = set(host_reads(step.node, native_lists=True))
                pairs = list(zip(step.node.inputs, step.inputs, strict=True))
                self.given(step, [o for v, o in pairs if v in read], written, host=True)
                self.given(step, [o for v, o in pairs if v not in read], written)
                self.made(step, step.outputs, written, host=True)
            case Launch():
                self.launch(step, written)
            case SegmentedLaunch():
                for segment in step.segments:
                    self.launch(segment, written)
            case LibraryCall() | OpLoops():
                self.given(step, step.inputs, written)
                self.made(step, step.outputs, written)
                last = step.epilogue if isinstance(step, LibraryCall) else step.launch
                if last is not None:
                    self.launch(last, written)
            case Update() | Append():
                self.given(step, step.inputs, written)
            case Copy() | Deliver():
                self.given(step, [step.source], written)
            case Branch():
                self.branch(step, written)
            case Loop():
                self.loop(step, written)

    def launch(self, step: Launch, written: set[Value]) -> None:
        outputs = [step.operands[n] for n in step.outputs]
        self.given(step, [o for o in step.operands if o not in outputs], written)
        self.made(step, outputs, written)

    def branch(self, step: Branch, written: set[Value]) -> None:
        self.given(step, [step.predicate], written, host=not step.alone)
        merged = [n for n, o in enumerate(step.results) if o.place is None]
        for block in (step.then, step.otherwise):
            inside = set(written)
            self.block(block, inside)
            self.given(step, [block.results[n] for n in merged], inside, host=True)
        self.made(step, step.results, written, host=True)

    def loop(self, step: Loop, written: set[Value]) -> None:
        carried = [n for n, c in enumerate(step.carried) if c.place is None]
        for c in step.carried:
            self.given(step, [c.start], written, host=c.place is None)
        written.update(step.carried[n].param for n in carried)
        test, inside = set(written), set(written)
        self.block(step.condition, test)
        self.given(step, step.condition.results, test, host=not step.alone)
        self.block(step.body, inside)
        self.given(step, [step.body.results[n] for n in carried], inside, host=True)

    def given(
        self, step: Step, operands: Iterable[Operand], written: set[Value], host: bool = False
    ) -> None:
        """Operands of a step; `host`: the host reads them."""
        for operand in operands:
            if not is_number(operand.value):
                continue
            if operand.place is None and operand.value not in written:
                raise ResidenceError(f"nothing wrote the register of {operand.value} for {step}")
            if operand.place is not None and host and not self.unified:
                raise ResidenceError(f"the host reads {operand.value} of the device for {step}")

    def made(
        self, step: Step, operands: Iterable[Operand], written: set[Value], host: bool = False
    ) -> None:
        """Results of a step; `host`: the host writes them."""
        for operand in operands:
            if operand.place is None and is_number(operand.value):
                if not (host or self.unified):
                    raise ResidenceError(f"{step} leaves {operand.value} in a register of the host")
                written.add(operand.value)
