"""The straight-line steps of a program: kernels, copies, registers, callbacks."""

from __future__ import annotations

from typing import Any

from treadle.core.shapes import product
from treadle.core.spec import ListSpec, ResourceSpec
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program import RAISED, Emitter
from treadle.runtime.cpu.program_kernels import emit_evaluate, emit_launch
from treadle.runtime.schedule.steps import (
    Block, Branch, Callback, Check, Copy, Evaluate, Launch, LibraryCall, LoadScalar, Loop, Operand,
    Place,
)  # fmt: skip


def emit_block(emitter: Emitter, block: Block) -> None:
    """All steps of a block."""
    for step in block.steps:
        _EMITTERS[type(step)](emitter, step)


def emit_copy(emitter: Emitter, step: Copy) -> None:
    copy_array(emitter, step.source, emitter.pointer(step.target), step.target)


def copy_array(emitter: Emitter, source: Operand, target: str, place: Place) -> None:
    """Copy an operand to an address; a register is stored."""
    if source.place is None:
        register = emitter.registers[source.value]
        emitter.store_scalar(register, source.value.spec.dtype, target)
        return
    origin = emitter.pointer(source.place)
    size = emitter.dim(product(place.dims))
    move(emitter, target, origin, emitter.fn.mul(size, place.dtype.size))


def move(emitter: Emitter, target: str, source: str, size: Word) -> None:
    """memcpy of `size` bytes."""
    emitter.module.declare("void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    emitter.fn.emit(
        f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)"
    )


def emit_load_scalar(emitter: Emitter, step: LoadScalar) -> None:
    pointer = emitter.pointer(step.source)
    emitter.registers[step.value] = emitter.load_scalar(pointer, step.value.spec.dtype)


def emit_callback(emitter: Emitter, step: Callback) -> None:
    """Call Python with the addresses of operands and results; lists pass as their handles."""
    fn = emitter.fn
    number = len(emitter.callbacks)
    emitter.callbacks.append(step)
    words = fn.alloca(f"[{max(1, len(step.inputs) + len(step.outputs))} x i64], align 8")
    for i, operand in enumerate(step.inputs):
        _put(emitter, words, i, operand)
    for i, operand in enumerate(step.outputs):
        slot = fn.offset(words, len(step.inputs) + i, "i64")
        if not isinstance(operand.value.spec, ListSpec):
            target = operand.place and emitter.pointer(operand.place)
            fn.emit(f"store ptr {target or emitter.slot(operand.value)}, ptr {slot}")
    callback = emitter.fixed_word("callback")
    result = fn.value(f"call i64 {callback}(i64 {number}, ptr {words}, ptr %frame)")
    emitter.fail_if(fn.value(f"icmp ne i64 {result}, 0"), RAISED)
    fn.emit(f"; {step.node.op.name}")
    for i, operand in enumerate(step.outputs):
        if isinstance(operand.value.spec, ListSpec):
            handle = fn.load_word(words, len(step.inputs) + i)
            emitter.registers[operand.value] = handle
        elif operand.place is None:
            slot = emitter.slot(operand.value)
            emitter.registers[operand.value] = emitter.load_scalar(slot, operand.value.spec.dtype)


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


def emit_check(emitter: Emitter, step: Check) -> None:
    """An assertion: Python is called only to raise."""
    fn = emitter.fn
    holds = emitter.registers[step.holds.value]
    k = fn.unique()
    fn.emit(f"br i1 {holds}, label %held{k}, label %broken{k}")
    fn.label(f"broken{k}")
    emit_callback(emitter, step.callback)
    fn.branch(f"held{k}")
    fn.label(f"held{k}")


def emit_library(emitter: Emitter, step: LibraryCall) -> None:
    from treadle.runtime.cpu.program_library import emit_library_call

    emit_library_call(emitter, step)


def _emit_branch(emitter: Emitter, step: Branch) -> None:
    from treadle.runtime.cpu.program_control import emit_branch

    emit_branch(emitter, step)


def _emit_loop(emitter: Emitter, step: Loop) -> None:
    from treadle.runtime.cpu.program_control import emit_loop

    emit_loop(emitter, step)


_EMITTERS: dict[type, Any] = {
    Branch: _emit_branch,
    Callback: emit_callback,
    Check: emit_check,
    Copy: emit_copy,
    Evaluate: emit_evaluate,
    Launch: emit_launch,
    LibraryCall: emit_library,
    LoadScalar: emit_load_scalar,
    Loop: _emit_loop,
}
