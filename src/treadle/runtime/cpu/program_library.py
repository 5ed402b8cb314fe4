"""Calls of the runtime's library inside a program."""

from __future__ import annotations

from treadle.runtime.cpu.library import Routine, routine_for
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.schedule.steps import LibraryCall


def emit_library_call(emitter: Emitter, step: LibraryCall) -> None:
    """``routine(table, operands, numbers, workspace)``."""
    fn = emitter.fn
    routine = routine_for(step.node)
    assert routine is not None, "the schedule has library calls only where there is a routine"
    operands = fn.alloca(f"[{len(step.inputs) + len(step.outputs)} x ptr], align 8")
    for i, operand in enumerate((*step.inputs, *step.outputs)):
        pointer = emitter.operand_pointer(operand)
        fn.emit(f"store ptr {pointer}, ptr {fn.offset(operands, i, 'ptr')}")
    numbers = routine_numbers(emitter, routine)
    workspace = "null" if step.scratch is None else emitter.pointer(step.scratch)
    address = emitter.state_word("routine", routine.symbol)
    table = emitter.fixed_word("library")
    fn.emit(f"call void {address}(ptr {table}, ptr {operands}, ptr {numbers}, ptr {workspace})")


def routine_numbers(emitter: Emitter, routine: Routine) -> str:
    """The routine's integers: a constant of the module where all are known."""
    fn = emitter.fn
    known = [n for n in routine.numbers if isinstance(n, int)]
    if len(known) == len(routine.numbers):
        body = ", ".join(f"i64 {n}" for n in known)
        name = "numbers_" + "_".join(str(n).replace("-", "m") for n in known)
        return emitter.module.constant(name, f"[{len(known)} x i64] [{body}], align 8")
    numbers = fn.alloca(f"[{len(routine.numbers)} x i64], align 8")
    for i, number in enumerate(routine.numbers):
        fn.emit(f"store i64 {emitter.dim(number)}, ptr {fn.offset(numbers, i, 'i64')}")
    return numbers
