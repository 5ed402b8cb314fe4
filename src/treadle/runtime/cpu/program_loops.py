"""Ops that are plain loops written out in the program: scatters and sizes found at run time."""

from __future__ import annotations

from collections.abc import Callable

from treadle.core.shapes import product
from treadle.ops.lowering import LoopRoutine, ProgramLoops
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_copies import move
from treadle.runtime.cpu.program_updates import (
    add_segments,
    integer,
    refuse_if,
    scatter,
)
from treadle.runtime.schedule.steps import Append, Operand, OpLoops

MEMSET = "void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


def emit_loops(emitter: Emitter, step: OpLoops) -> None:
    """One op."""
    lower = step.node.op.lower
    assert isinstance(lower, ProgramLoops)
    _ROUTINES[lower.routine](emitter, step)


def emit_append(emitter: Emitter, step: Append) -> None:
    """Rows after the rows that are there; whatever follows is copied in order."""
    fn, out = emitter.fn, step.output
    assert out.place is not None
    first = step.inputs[0]
    used, size = _bytes(emitter, first), _bytes(emitter, out)
    sources = [_array(emitter, o) for o in step.inputs]
    if out.place.kind == "buffer":
        target = emitter.places.pointers[out.place] = emitter.places.extended(out.place, used, size)
        parts = list(zip(step.inputs, sources, strict=True))[1:]
        offset = used
    else:
        target, offset = emitter.pointer(out.place), 0
        parts = list(zip(step.inputs, sources, strict=True))
    for operand, source in parts:
        length = _bytes(emitter, operand)
        move(emitter, fn.offset(target, offset, "i8"), source, length)
        offset = fn.add(offset, length)


def _bytes(emitter: Emitter, operand: Operand) -> Word:
    spec = operand.value.spec
    return emitter.dim(product(spec.dims) * spec.dtype.size)


def _array(emitter: Emitter, operand: Operand) -> str:
    assert operand.place is not None
    return emitter.pointer(operand.place)


def _zeros(emitter: Emitter, operand: Operand) -> str:
    """The address of an array, filled with zeros."""
    pointer, spec = _array(emitter, operand), operand.value.spec
    size = emitter.dim(product(spec.dims) * spec.dtype.size)
    emitter.module.declare(MEMSET)
    emitter.fn.emit(f"call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {size}, i1 false)")
    return pointer


# -- scatter -------------------------------------------------------------------------------------


def _scatter_nd(emitter: Emitter, step: OpLoops) -> None:
    out = step.outputs[0]
    target, dims = _zeros(emitter, out), out.value.spec.dims
    scatter(emitter, step.inputs, target, dims, "add", step.refuse, step.launch)


def _segment_sum(emitter: Emitter, step: OpLoops) -> None:
    _, ids = step.inputs
    out = step.outputs[0]
    _zeros(emitter, out)
    add_segments(emitter, ids, out.value.spec.dims, step.refuse, step.launch)


# -- sizes that only a run can tell --------------------------------------------------------------


def _open_dim(emitter: Emitter, step: OpLoops) -> None:
    """A number becomes the size that a symbol stands for; there are no elements."""
    fn, attrs = emitter.fn, step.node.attrs
    number = integer(emitter, step.inputs[0])
    bad = fn.compare("slt", number, attrs["least"])
    if attrs["most"] is not None:
        above = fn.compare("sgt", number, emitter.dim(attrs["most"]))
        bad = fn.value(f"or i1 {bad}, {above}")
    refuse_if(emitter, bad, step.refuse)
    emitter.define_symbols(step.outputs[0].value.spec.dims[:1], [number])


_ROUTINES: dict[LoopRoutine, Callable[[Emitter, OpLoops], None]] = {
    LoopRoutine.SCATTER: _scatter_nd,
    LoopRoutine.SUM_SEGMENTS: _segment_sum,
    LoopRoutine.CHECK_DIM: _open_dim,
}
