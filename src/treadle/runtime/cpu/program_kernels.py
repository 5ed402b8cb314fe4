"""Kernels and rank-0 expressions inside a program."""

from __future__ import annotations

from treadle.core import dtypes
from treadle.kernel.ir import Affine, Apply, Const, Expr, Extent, Load, postorder
from treadle.runtime.cpu.elements import stored_type
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program import RAISED, Emitter
from treadle.runtime.schedule.steps import Evaluate, Launch, Operand


def emit_launch(emitter: Emitter, step: Launch) -> None:
    emit_reference(emitter, step, step.operands, step.outputs)


def emit_reference(emitter: Emitter, step: object, operands: list[Operand], outputs: list[int]) -> None:
    fn = emitter.fn
    number = len(emitter.callbacks)
    emitter.callbacks.append(step)  # type: ignore[arg-type]
    words = fn.alloca(f"[{max(1, len(operands))} x i64], align 8")
    for i, operand in enumerate(operands):
        if i in outputs and operand.place is None:
            pointer = emitter.slot(operand.value)
        else:
            pointer = emitter.operand_pointer(operand)
        fn.emit(f"store ptr {pointer}, ptr {fn.offset(words, i, 'i64')}")
    callback = emitter.fixed_word("callback")
    result = fn.value(f"call i64 {callback}(i64 {number}, ptr {words}, ptr %frame)")
    emitter.fail_if(fn.value(f"icmp ne i64 {result}, 0"), RAISED)
    for i in outputs:
        operand = operands[i]
        if operand.place is None:
            slot = emitter.slot(operand.value)
            emitter.registers[operand.value] = emitter.load_scalar(slot, operand.value.spec.dtype)


def emit_evaluate(emitter: Emitter, step: Evaluate) -> None:
    """A rank-0 value in a register; 16-bit floats are rounded as if they had been stored."""
    values: dict[Expr, str] = {}
    for expr in postorder([step.expr]):
        values[expr] = _evaluate(emitter, step, expr, values)
    register, dtype = values[step.expr], step.value.spec.dtype
    if dtype.is_floating and dtype.size == 2:
        elements = emitter.elements
        register = elements.from_memory(elements.to_memory(register, dtype), dtype)
    emitter.registers[step.value] = register


def _evaluate(emitter: Emitter, step: Evaluate, expr: Expr, values: dict[Expr, str]) -> str:
    match expr:
        case Const():
            return emitter.elements.constant(expr.value, expr.dtype)
        case Extent():
            size = emitter.dim(expr.dim)
            if isinstance(size, int):
                return emitter.elements.constant(size, expr.dtype)
            return emitter.elements.apply("cast", [size], [dtypes.int64], expr.dtype)
        case Load():
            operand = step.inputs[expr.buffer.name]
            if operand.place is None:
                return emitter.registers[operand.value]
            return _element(emitter, expr, operand, values)
        case Apply():
            operands = [a.dtype for a in expr.args]
            args = [values[a] for a in expr.args]
            return emitter.elements.apply(expr.fn, args, operands, expr.dtype)
    raise AssertionError(f"no scalar form of {expr}")


def _element(emitter: Emitter, load: Load, operand: Operand, values: dict[Expr, str]) -> str:
    """One element of an array; a position that is computed is kept inside it."""
    fn = emitter.fn
    offset: Word = 0
    for index, extent in zip(load.index, load.buffer.shape, strict=True):
        size = emitter.dim(extent)
        if isinstance(index, Affine):
            place: Word = emitter.dim(index.offset)
        else:
            wide = emitter.elements.apply("cast", [values[index]], [index.dtype], dtypes.int64)
            place = fn.max(fn.min(wide, fn.sub(size, 1)), 0)
        offset = fn.add(fn.mul(offset, size), place)
    pointer = fn.offset(emitter.pointer(operand.place), offset, stored_type(load.dtype))
    return emitter.load_scalar(pointer, load.dtype)

