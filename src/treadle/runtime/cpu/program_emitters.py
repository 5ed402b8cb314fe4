"""What emits each kind of step of a program."""

from __future__ import annotations

from typing import Any

from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_kernels import emit_evaluate, emit_launch, emit_segments
from treadle.runtime.cpu.program_steps import (
    emit_check,
    emit_copy,
    emit_deliver,
    emit_guard,
    emit_load_scalar,
    emit_measure,
    emit_position,
    emit_sizes,
)  # fmt: skip
from treadle.runtime.cpu.program_updates import emit_update
from treadle.runtime.schedule.steps import (
    Append,
    Branch,
    Callback,
    Check,
    Copy,
    Deliver,
    Evaluate,
    Guard,
    Launch,
    LibraryCall,
    ListStep,
    LoadScalar,
    Loop,
    Measure,
    OpLoops,
    Position,
    SegmentedLaunch,
    Sizes,
    Update,
)  # fmt: skip

# Libraries, control flow, lists, loops of single operations and calls of Python are loaded for the
# programs that have them.


def _emit_append(emitter: Emitter, step: Append) -> None:
    from treadle.runtime.cpu.program_loops import emit_append

    emit_append(emitter, step)


def _emit_loops(emitter: Emitter, step: OpLoops) -> None:
    from treadle.runtime.cpu.program_loops import emit_loops

    emit_loops(emitter, step)


def _emit_callback(emitter: Emitter, step: Callback) -> None:
    from treadle.runtime.cpu.program_python import emit_callback

    emit_callback(emitter, step)


def _emit_library_call(emitter: Emitter, step: LibraryCall) -> None:
    from treadle.runtime.cpu.program_library import emit_library_call

    emit_library_call(emitter, step)


def _emit_branch(emitter: Emitter, step: Branch) -> None:
    from treadle.runtime.cpu.program_control import emit_branch

    emit_branch(emitter, step)


def _emit_loop(emitter: Emitter, step: Loop) -> None:
    from treadle.runtime.cpu.program_control import emit_loop

    emit_loop(emitter, step)


def _emit_list_step(emitter: Emitter, step: ListStep) -> None:
    from treadle.runtime.cpu.program_ragged import emit_list_step

    emit_list_step(emitter, step)


EMITTERS: dict[type, Any] = {
    Append: _emit_append,
    Branch: _emit_branch,
    Callback: _emit_callback,
    Check: emit_check,
    Position: emit_position,
    Copy: emit_copy,
    Deliver: emit_deliver,
    Guard: emit_guard,
    Evaluate: emit_evaluate,
    Launch: emit_launch,
    LibraryCall: _emit_library_call,
    ListStep: _emit_list_step,
    LoadScalar: emit_load_scalar,
    Loop: _emit_loop,
    OpLoops: _emit_loops,
    SegmentedLaunch: emit_segments,
    Measure: emit_measure,
    Sizes: emit_sizes,
    Update: emit_update,
}
