"""Programs that write down when their steps ran (`treadle.runtime.step_times`)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from treadle.core.origin import Origin
from treadle.core.spec import spec_text
from treadle.kernel.printer import kernel_text
from treadle.ops.registry import Op
from treadle.ops.state import ASSIGN
from treadle.runtime.cpu.builder.function import Function
from treadle.runtime.cpu.builder.types import I64, PTR, VOID, pointer
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.program_layout import STATE
from treadle.runtime.cpu.program_poll import clock
from treadle.runtime.schedule.printer import step_line, step_outputs
from treadle.runtime.schedule.steps import (
    Callback,
    Launch,
    LibraryCall,
    Loop,
    OpLoops,
    SegmentedLaunch,
    Step,
    Update,
    node_of,
)
from treadle.runtime.step_times import ENTRY, HEAD, Described

if TYPE_CHECKING:
    from treadle.runtime.cpu.program import Emitter

# Steps that are timed: the others are a few instructions.
TIMED = Callback | Launch | LibraryCall | Loop | OpLoops | SegmentedLaunch | Update


class Timer:
    """Writes steps with the code that looks at the clock.

    Attributes:
        steps: those that are timed, by number.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def emit(self, emitter: Emitter, step: Step) -> None:
        """A step, and a call of ``void @note_time(state, table, program, step, since)`` behind
        it, which writes down when it began and ended."""
        if not isinstance(step, TIMED):
            emitter.emit_step(step)
            return
        number = len(self.steps)
        self.steps.append(step)
        since = clock(emitter.state)
        emitter.emit_step(step)
        table, program = emitter.state.word("times", ""), emitter.state.word("number", "")
        _unit().add_to(emitter.module)
        numbers = f"i64 {number}, i64 {since}"
        emitter.fn.emit(
            f"call void @note_time(ptr %state, ptr {table}, ptr {program}, {numbers})"
        )

    def described(self) -> list[Described]:
        """What a profile shows of the steps."""
        return [*map(_described, self.steps)]


@functools.cache
def _unit() -> Unit:
    unit = Unit()

    @unit.function(
        VOID, attributes="noinline", state=STATE.pointer, table=pointer(I64), program=PTR, step=I64,
        since=I64,
    )  # fmt: skip
    def note_time(
        f: Function, state: Value, table: Value, program: Value, step: Value, since: Value
    ) -> None:
        now = f.call(state["clock_ns"], state)
        number = table.at(0).fetch_add(1, "monotonic")
        with f.when(number.sge(table[1]), "full"):
            f.ret()
        entry = table.at(number * ENTRY + HEAD)
        entry[0] = program.to_word()
        entry[1] = step
        entry[2] = f.call(state["PyThread_get_thread_ident"])
        entry[3] = since
        entry.at(4).store(now, "release")
        f.ret()

    return unit


def _described(step: Step) -> Described:
    """What a profile shows of a step: the operations whose results it gives, their shapes, its
    kernel, and the user's line."""
    outputs = step_outputs(step)
    nodes = [o.value.node for o in outputs]
    names = dict.fromkeys(_made_by(node.op) for node in nodes if node is not None)
    node = node_of(step)
    if not names and node is not None:
        names = {node.op.name: None}
    texts = {"shapes": ", ".join(spec_text(o.value.spec) for o in outputs)} if outputs else {}
    origin = next((n.origin for n in (node, *nodes) if n is not None and n.origin), None)
    if isinstance(origin, Origin):
        texts["line"] = str(origin)
    if isinstance(step, Loop):
        return Described("loop", texts)
    texts["step"] = step_line(step)
    launch = step.launch if isinstance(step, Update | OpLoops) else step
    if isinstance(launch, LibraryCall):
        launch = launch.epilogue
    if isinstance(launch, Launch | SegmentedLaunch):
        texts["kernel"] = kernel_text(launch.kernel)
    return Described(" + ".join(names) or type(step).__name__.lower(), texts)


def _made_by(op: Op) -> str:
    """The operation that gives a value; a kernel that writes where a variable is assigns it."""
    return ASSIGN.name if op.effect == "read" else op.name
