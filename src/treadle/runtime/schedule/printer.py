"""The schedule and its memory plan as readable text."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from treadle.core.shapes import Dim
from treadle.core.spec import spec_text
from treadle.graph.ir import Value
from treadle.kernel.ir import Kernel
from treadle.kernel.printer import kernel_hash, kernel_text
from treadle.runtime.schedule.lists import changes_list
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
    Finding,
    Guard,
    Launch,
    LibraryCall,
    ListStep,
    LoadScalar,
    Loop,
    Measure,
    Note,
    Operand,
    OpLoops,
    Place,
    Position,
    SegmentedLaunch,
    Sizes,
    Step,
    Update,
    Verdict,
)  # fmt: skip

if TYPE_CHECKING:
    from treadle.runtime.memory.plan import MemoryPlan


def schedule_text(block: Block, plan: MemoryPlan, host: Collection[Value]) -> str:
    """One line a step, indented inside branches and loops; then where the temporaries are.

    Args:
        host: the numbers that reside on the host, which are marked where they are made.
    """
    lines = [*_Printer(host).block(block, 0), "", *_memory(plan)]
    return "\n".join(lines)


def kernels_text(block: Block) -> str:
    """Every kernel of the schedule, each once."""
    texts: dict[str, str] = {}
    for kernel in all_kernels(block):
        texts.setdefault(kernel_hash(kernel), kernel_text(kernel))
    return "\n\n".join(f"; {name}\n{text}" for name, text in texts.items())


def all_steps(block: Block) -> Iterator[Step]:
    """The steps of a block and of the blocks inside it, in order."""
    for step in block.steps:
        yield step
        if isinstance(step, Branch):
            yield from all_steps(step.then)
            yield from all_steps(step.otherwise)
        elif isinstance(step, Loop):
            yield from all_steps(step.condition)
            yield from all_steps(step.body)
        elif isinstance(step, Check):
            yield from step.told


def all_kernels(block: Block) -> Iterator[Kernel]:
    """The kernels of all steps, epilogues included, in order."""
    for step in all_steps(block):
        if isinstance(step, Launch | SegmentedLaunch):
            yield step.kernel
        elif isinstance(step, Note):
            yield from (launch.kernel for launch in step.launches)
        elif isinstance(step, Update | OpLoops) and step.launch is not None:
            yield step.launch.kernel
        elif isinstance(step, LibraryCall) and step.epilogue is not None:
            yield step.epilogue.kernel


def step_outputs(step: Step) -> list[Operand]:
    """What a step computes, as far as it says so."""
    match step:
        case Launch():
            return [step.operands[n] for n in step.outputs]
        case SegmentedLaunch():
            return [o for segment in step.segments for o in step_outputs(segment)]
        case LibraryCall() | OpLoops() | Callback() | ListStep():
            return list(step.outputs)
        case Append():
            return [step.output]
        case Loop():
            return list(step.body.results)
    return []


def step_line(step: Step) -> str:
    """A step without blocks as the schedule's text has it."""
    return _line(step)


def operand_text(operand: Operand) -> str:
    name = f"%{operand.value.name}"
    return name if operand.place is None else f"{name}@{operand.place}"


def _listed(operands: list[Operand]) -> str:
    return ", ".join(map(operand_text, operands))


def _given(block: Block) -> str:
    """The results of a block of a branch."""
    return ", ".join(
        f"{'copy of ' if number in block.copied else ''}{operand_text(operand)}"
        for number, operand in enumerate(block.results)
    )


class _Printer:
    def __init__(self, host: Collection[Value]) -> None:
        self.host = host

    def made(self, value: Value) -> str:
        """The name of a value where it is made, and where it resides."""
        return f"host %{value.name}" if value in self.host else f"%{value.name}"

    def block(self, block: Block, depth: int) -> list[str]:
        return [line for step in block.steps for line in self.step(step, depth)]

    def step(self, step: Step, depth: int) -> list[str]:
        pad = "  " * depth
        if isinstance(step, Branch):
            return [
                f"{pad}{_where(step)}if {operand_text(step.predicate)} -> {_listed(step.results)}",
                *self.block(step.then, depth + 1),
                f"{pad}  gives {_given(step.then)}",
                f"{pad}else",
                *self.block(step.otherwise, depth + 1),
                f"{pad}  gives {_given(step.otherwise)}",
            ]
        if isinstance(step, Loop):
            carried = ", ".join(
                f"{self.made(c.param)}{'' if c.place is None else f'@{c.place}'} = "
                f"{operand_text(c.start)}"
                for c in step.carried
            )
            return [
                f"{pad}{_where(step)}loop {_by_rows(step)}{carried}",
                *self.block(step.condition, depth + 1),
                f"{pad}while {_listed(step.condition.results)}",
                *self.block(step.body, depth + 1),
                f"{pad}  next {_listed(step.body.results)}",
            ]
        if isinstance(step, Fetch):
            made = ", ".join(map(self.made, step.values))
            return [f"{pad}{made} = fetch {', '.join(map(str, step.sources))}"]
        if isinstance(step, Evaluate | LoadScalar | Position):
            return [f"{pad}{self.made(step.value)} = {_number(step)}"]
        return [pad + line for line in _line(step).split("\n")]


def _where(step: Branch | Loop) -> str:
    return "on the device: " if step.alone else ""


def _by_rows(loop: Loop) -> str:
    return "" if loop.rows is None else f"by {loop.rows.extent} rows "


def _kernel(step: Launch) -> str:
    size = "" if step.extent is None else f" n={step.extent}"
    return f"kernel {kernel_hash(step.kernel)[:8]}({_listed(step.operands)}){size}"


def _number(step: Evaluate | LoadScalar | Position) -> str:
    """The text of the number that a register of the host gets."""
    match step:
        case Evaluate():
            return str(step.expr)
        case LoadScalar():
            return f"load {step.source}"
    wraps = " or from the end" if step.wraps else ""
    return f"{operand_text(step.source)} inside {step.size}{wraps} for {step.callback.node.op.name}"


def _line(step: Step) -> str:
    match step:
        case Launch():
            return _kernel(step)
        case SegmentedLaunch():
            parts = "".join(f"\n  {_listed(s.operands)} n={s.extent}" for s in step.segments)
            return f"segmented kernel {kernel_hash(step.kernel)[:8]}{parts}"
        case LibraryCall() | OpLoops():
            given = [operand_text(o) for o in step.inputs]
            if isinstance(step, LibraryCall):
                for i, view in enumerate(step.views):
                    given[i] += "" if view.is_plain(step.node.inputs[i]) else " strided"
            call = f"{_listed(step.outputs)} = {step.node.op.name}({', '.join(given)})"
            last = step.epilogue if isinstance(step, LibraryCall) else None
            if isinstance(step, LibraryCall) and step.apart:
                call = f"{step.node.op.name}({_listed(step.inputs)}) in blocks of {step.scratch}"
            if last is None:
                return call
            return f"{call}\n  with {'blocked ' if last.kernel.blocked else ''}{_line(last)}"
        case Callback():
            why = f"  ; {step.reason}" if step.reason else ""
            call = f"python {step.node.op.name}({_listed(step.inputs)})"
            return f"{_listed(step.outputs)} = {call}{why}" if step.outputs else call + why
        case ListStep():
            kept = "" if step.owned or not changes_list(step.node) else "copy of "
            slot = "" if step.slot is None else "slot of "
            call = f"{slot}{step.node.op.name}({kept}{_listed(step.inputs)})"
            return f"{_listed(step.outputs)} = {call}"
        case Update():
            kernel = "" if step.launch is None else f"  ; {_kernel(step.launch)}"
            return f"{step.node.op.name} in {step.target} by {_listed(step.inputs[1:])}{kernel}"
        case Append():
            return f"{operand_text(step.output)} = append({_listed(step.inputs)})"
        case Sizes():
            return ", ".join(f"{name} = {dim}" for name, dim in step.pairs)
        case Measure():
            return f"{step.name} = {operand_text(step.source)}"
        case Guard():
            return f"check {step.sizes[0]} == {step.sizes[1]} for {step.node.op.name}"
        case Deliver():
            return f"deliver {operand_text(step.source)} as result {step.number}"
        case Note():
            lines = [_kernel(launch) for launch in step.launches]
            return "\n  ".join([*map(_finding, step.findings), *lines])
        case Verdict():
            return f"raise the error of the status {step.word}"
        case Check():
            check = f"check {operand_text(step.holds)} for {step.callback.node.op.name}"
            return "\n  on failure: ".join([check, *map(_kernel, step.told)])
        case Copy():
            return f"copy {operand_text(step.source)} -> {step.target}"
    return type(step).__name__.lower()


def _finding(check: Finding) -> str:
    of = f" of {_listed(check.elements)}" if check.elements else ""
    where = f", noted as {check.number}" if check.number else ""
    return f"check {operand_text(check.holds)} for {check.node.op.name}{of}{where}"


def _memory(plan: MemoryPlan) -> list[str]:
    lines = [f"workspace: {plan.static_bytes} bytes" + _sizes(plan.slot_sizes)]
    for place, interval in plan.live.items():
        where = f"+{plan.offsets[place]}" if place in plan.offsets else f"slot {plan.slots[place]}"
        spec = f"{place.dtype.short}[{', '.join(map(str, place.dims))}]"
        lines.append(f"  {place}: {spec} at {where}, steps {interval.first}-{interval.last}")
    return lines


def _sizes(sizes: list[Dim]) -> str:
    return "".join(f" + {s}" for s in sizes)


__all__ = [
    "all_kernels",
    "all_steps",
    "kernels_text",
    "operand_text",
    "schedule_text",
    "spec_text",
    "Place",
]
