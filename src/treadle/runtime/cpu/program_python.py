"""Calls from a program back into Python (`treadle.runtime.callbacks`)."""

from __future__ import annotations

from treadle.core.spec import ListSpec, ResourceSpec
from treadle.runtime.callbacks import (
    callback_words,
    input_positions,
    input_words,
    output_words,
)  # fmt: skip
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.schedule.steps import Callback, Operand


def emit_callback(emitter: Emitter, step: Callback) -> None:
    """Call Python with the addresses of operands and results; lists are passed as handles."""
    fn = emitter.fn
    number = emitter.program.add_callback(step)
    words = fn.alloca(f"[{max(1, callback_words(step))} x i64], align 8")
    for i, operand, sized in zip(input_positions(step), step.inputs, step.sized, strict=True):
        _put(emitter, words, i, operand)
        for k, dim in enumerate(operand.value.spec.dims if sized else ()):
            fn.emit(f"store i64 {emitter.dim(dim)}, ptr {fn.offset(words, i + 1 + k, 'i64')}")
    positions = _output_positions(step)
    for i, operand in zip(positions, step.outputs, strict=True):
        if not isinstance(operand.value.spec, ListSpec) and output_words(operand) == 1:
            target = operand.place and emitter.pointer(operand.place)
            slot = fn.offset(words, i, "i64")
            fn.emit(f"store ptr {target or emitter.slot(operand.value)}, ptr {slot}")
    last = callback_words(step) - len(step.mentioned)
    for i, name in enumerate(step.mentioned, last):
        fn.emit(f"store i64 {emitter.sizes.symbols[name]}, ptr {fn.offset(words, i, 'i64')}")
    call_python(emitter, number, words)
    for i, operand in zip(positions, step.outputs, strict=True):
        _take(emitter, words, i, operand)


def call_python(emitter: Emitter, number: int, words: str) -> None:
    """Call Python for callback `number`; leave the program where that fails."""
    emitter.exits.all_but_first()
    record = "null" if emitter.program.releases is False else emitter.memory.record
    operands = f"ptr %state, ptr {record}, i64 {number}, ptr {words}, ptr %frame"
    status = emitter.fn.value(f"call i64 {emitter.state.fixed('python')}({operands})")
    emitter.exits.fail_if(emitter.fn.value(f"icmp ne i64 {status}, 0"), status)


def _output_positions(step: Callback) -> list[int]:
    positions, position = [], input_words(step)
    for operand in step.outputs:
        positions.append(position)
        position += output_words(operand)
    return positions


def _take(emitter: Emitter, words: str, position: int, operand: Operand) -> None:
    """Take a result of a callback: a handle, a number, or an array of sizes that Python found."""
    fn, spec = emitter.fn, operand.value.spec
    if isinstance(spec, ListSpec):
        emitter.registers[operand.value] = fn.load_word(words, position)
    elif operand.place is None:
        slot = emitter.slot(operand.value)
        emitter.registers[operand.value] = emitter.load_scalar(slot, spec.dtype)
    elif output_words(operand) > 1:
        emitter.places.pointers[operand.place] = fn.load_word(words, position, "ptr")
        sizes = [fn.load_word(words, position + 1 + k) for k in range(spec.rank)]
        emitter.define_symbols(spec.dims, sizes)


def _put(emitter: Emitter, words: str, position: int, operand: Operand) -> None:
    fn = emitter.fn
    target = fn.offset(words, position, "i64")
    spec = operand.value.spec
    if isinstance(spec, ListSpec):
        fn.emit(f"store i64 {emitter.registers[operand.value]}, ptr {target}")
    elif isinstance(spec, ResourceSpec):
        fn.emit(f"store i64 0, ptr {target}")  # Python knows the variable
    else:
        fn.emit(f"store ptr {emitter.operand_pointer(operand)}, ptr {target}")
