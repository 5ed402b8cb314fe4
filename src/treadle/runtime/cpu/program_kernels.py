"""Kernels and rank-0 expressions inside a program."""

from __future__ import annotations

from treadle.kernel.ir import Apply, Const, Expr, Extent, Load, postorder
from treadle.runtime.cpu.program import RAISED, Emitter
from treadle.runtime.schedule.steps import Evaluate, Launch, Operand

_F = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_I = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_C = {"eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne"), "lt": ("olt", "slt", "ult"),
      "le": ("ole", "sle", "ule"), "gt": ("ogt", "sgt", "ugt"), "ge": ("oge", "sge", "uge")}


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
    values: dict[Expr, str] = {}
    for e in postorder([step.expr]):
        values[e] = _one(emitter, step, e, values)
    emitter.registers[step.value] = values[step.expr]


def _one(emitter: Emitter, step: Evaluate, e: Expr, values: dict[Expr, str]) -> str:
    from treadle.runtime.cpu.llvm_text import float_text
    from treadle.runtime.cpu.program import register_type

    fn = emitter.fn
    t = register_type(e.dtype)
    if isinstance(e, Const):
        if e.dtype.is_floating:
            return float_text(float(e.value), e.dtype.size * 8)
        return str(int(e.value))
    if isinstance(e, Load):
        operand = step.inputs[e.buffer.name]
        return emitter.registers[operand.value]
    if isinstance(e, Apply):
        a = [values[x] for x in e.args]
        k = e.args[0].dtype
        kt = register_type(k)
        if e.fn in _F and k.is_floating:
            return fn.value(f"{_F[e.fn]} {kt} {a[0]}, {a[1]}")
        if e.fn in _I:
            return fn.value(f"{_I[e.fn]} {kt} {a[0]}, {a[1]}")
        if e.fn in _C:
            i = 0 if k.is_floating else 1 if k.kind == "i" else 2
            return fn.value(f"{'fcmp' if i == 0 else 'icmp'} {_C[e.fn][i]} {kt} {a[0]}, {a[1]}")
        if e.fn == "not":
            return fn.value(f"xor {kt} {a[0]}, -1")
        if e.fn == "neg":
            return fn.value(f"fneg {kt} {a[0]}" if k.is_floating else f"sub {kt} 0, {a[0]}")
        if e.fn == "select":
            return fn.value(f"select i1 {a[0]}, {t} {a[1]}, {t} {a[2]}")
    raise NotImplementedError(str(e))
