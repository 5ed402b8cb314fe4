"""Calls of the runtime's library inside a program."""

from __future__ import annotations

from treadle.graph.ir import Value
from treadle.runtime.cpu.compiled_kernels import kernel_code
from treadle.runtime.cpu.elements import stored_type
from treadle.runtime.cpu.epilogue import RECORD
from treadle.runtime.cpu.library import Routine, routine_for
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_kernels import operand_addresses, symbol_values
from treadle.runtime.schedule.steps import Launch, LibraryCall


def emit_library_call(emitter: Emitter, step: LibraryCall) -> None:
    """``routine(table, operands, numbers, workspace)``."""
    fn = emitter.fn
    routine = routine_for(step.node, step.apart, step.views)
    assert routine is not None, "the schedule has library calls only where there is a routine"
    call = emitter.exits.call_of(step)
    operands = routine_operands(emitter, step, call)
    numbers = routine_numbers(emitter, routine)
    workspace = "null" if step.scratch is None else emitter.pointer(step.scratch)
    address = emitter.state.word("routine", routine.symbol)
    table = emitter.state.fixed("library")
    fn.emit(f"call void {address}(ptr {table}, ptr {operands}, ptr {numbers}, ptr {workspace})")
    emitter.exits.leave_if_stopped(call)
    for output in step.outputs:
        if output.place is None:
            value = output.value
            loaded = emitter.load_scalar(emitter.slot(value), value.spec.dtype)
            emitter.registers[value] = loaded


def routine_operands(emitter: Emitter, step: LibraryCall, call: str = "null") -> str:
    """The addresses of a routine's arrays, of the record of its epilogue, and of the record of the
    call, which tells the routine to stop."""
    fn = emitter.fn
    pointers = [emitter.operand_pointer(o) for o in step.inputs]
    for output in step.outputs:
        place = output.place
        pointers.append(emitter.slot(output.value) if place is None else emitter.pointer(place))
    for i, view in enumerate(step.views):
        kind = stored_type(view.base.spec.dtype)
        pointers[i] = fn.offset(pointers[i], emitter.dim(view.offset), kind)
    made = step.node.outputs[0]
    pointers.append("null" if step.epilogue is None else _epilogue(emitter, step.epilogue, made))
    pointers.append(call)
    operands = fn.alloca(f"[{len(pointers)} x ptr], align 8")
    for i, pointer in enumerate(pointers):
        fn.emit(f"store ptr {pointer}, ptr {fn.offset(operands, i, 'ptr')}")
    return operands


def _epilogue(emitter: Emitter, launch: Launch, made: Value) -> str:
    """The record of the epilogue (`epilogue.RECORD`) of the routine that computes `made`."""
    fn = emitter.fn
    code = kernel_code(launch.kernel)
    assert code is not None
    pointers = operand_addresses(emitter, launch)
    buffers = fn.alloca(f"[{len(pointers)} x ptr], align 8")
    for i, pointer in enumerate(pointers):
        fn.emit(f"store ptr {pointer}, ptr {fn.offset(buffers, i, 'ptr')}")
    own = [i for i, operand in enumerate(launch.operands) if operand.value is made]
    numbers = {"count": len(pointers), "own": own[0] if own else 0}
    words = {
        "code": emitter.state.word("kernel", (code, code.emitted.symbol)),
        "buffers": buffers,
        "dims": symbol_values(emitter, launch),
    }
    record = fn.alloca(f"[{len(RECORD)} x ptr], align 8")
    for i, name in enumerate(RECORD):
        word = f"i64 {numbers[name]}" if name in numbers else f"ptr {words[name]}"
        fn.emit(f"store {word}, ptr {fn.offset(record, i, 'ptr')}")
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
