"""Calls of the runtime's library inside a program."""

from __future__ import annotations

from treadle.runtime.cpu.compiled_kernels import kernel_code
from treadle.runtime.cpu.epilogue import RECORD
from treadle.runtime.cpu.library import Routine, routine_for
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_kernels import operand_addresses, symbol_values
from treadle.runtime.schedule.steps import Launch, LibraryCall


def emit_library_call(emitter: Emitter, step: LibraryCall) -> None:
    """``routine(table, operands, numbers, workspace)``."""
    fn = emitter.fn
    routine = routine_for(step.node)
    assert routine is not None, "the schedule has library calls only where there is a routine"
    operands = routine_operands(emitter, step)
    numbers = routine_numbers(emitter, routine)
    workspace = "null" if step.scratch is None else emitter.pointer(step.scratch)
    address = emitter.state_word("routine", routine.symbol)
    table = emitter.fixed_word("library")
    fn.emit(f"call void {address}(ptr {table}, ptr {operands}, ptr {numbers}, ptr {workspace})")


def routine_operands(emitter: Emitter, step: LibraryCall) -> str:
    """The addresses of a routine's arrays, and of the record of its epilogue."""
    fn = emitter.fn
    pointers = [emitter.operand_pointer(o) for o in (*step.inputs, *step.outputs)]
    pointers.append("null" if step.epilogue is None else _epilogue(emitter, step.epilogue))
    operands = fn.alloca(f"[{len(pointers)} x ptr], align 8")
    for i, pointer in enumerate(pointers):
        fn.emit(f"store ptr {pointer}, ptr {fn.offset(operands, i, 'ptr')}")
    return operands


def _epilogue(emitter: Emitter, launch: Launch) -> str:
    """The record of an epilogue (`epilogue.RECORD`)."""
    fn = emitter.fn
    code = kernel_code(launch.kernel)
    assert code is not None
    pointers = operand_addresses(emitter, launch)
    buffers = fn.alloca(f"[{len(pointers)} x ptr], align 8")
    for i, pointer in enumerate(pointers):
        fn.emit(f"store ptr {pointer}, ptr {fn.offset(buffers, i, 'ptr')}")
    words = {
        "code": emitter.state_word("kernel", (code, code.emitted.symbol)),
        "buffers": buffers,
        "dims": symbol_values(emitter, launch),
    }
    record = fn.alloca(f"[{len(RECORD)} x ptr], align 8")
    for i, name in enumerate(RECORD):
        fn.emit(f"store ptr {words[name]}, ptr {fn.offset(record, i, 'ptr')}")
    return record


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
