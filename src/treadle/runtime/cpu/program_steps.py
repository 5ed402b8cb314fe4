"""The steps of a program that compute no array: copies, loads of scalars, sizes, checks."""

from __future__ import annotations

from treadle.core import dtypes
from treadle.core.shapes import product
from treadle.runtime.cpu.llvm_text import Block
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_copies import move
from treadle.runtime.cpu.program_entry import RAISED, WRONG_SHAPE
from treadle.runtime.cpu.program_kernels import emit_launch
from treadle.runtime.cpu.program_python import call_python, emit_callback
from treadle.runtime.cpu.program_updates import integer
from treadle.runtime.schedule.steps import (
    Check,
    Copy,
    Deliver,
    Guard,
    LoadScalar,
    Measure,
    Operand,
    Place,
    Position,
    Sizes,
)  # fmt: skip


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


def emit_load_scalar(emitter: Emitter, step: LoadScalar) -> None:
    pointer = emitter.pointer(step.source)
    emitter.registers[step.value] = emitter.load_scalar(pointer, step.value.spec.dtype, step.source)


def emit_guard(emitter: Emitter, step: Guard) -> None:
    """Compare two sizes."""
    fn = emitter.fn
    a, b = (emitter.dim(d) for d in step.sizes)
    if step.restarts:
        differ = fn.compare("ne", a, b)
        if differ is not False:
            emitter.exits.fail_if("true" if differ is True else differ, WRONG_SHAPE)
        return
    number = emitter.program.add_callback(step)
    words = fn.alloca("[2 x i64], align 8")
    with fn.when(fn.compare("ne", a, b)) as needed:
        if needed:
            fn.emit(f"store i64 {a}, ptr {words}")
            fn.emit(f"store i64 {b}, ptr {fn.offset(words, 1, 'i64')}")
            call_python(emitter, number, words)


def emit_measure(emitter: Emitter, step: Measure) -> None:
    """A symbol is the value of an integer."""
    emitter.sizes.symbols[step.name] = integer(emitter, step.source)


def emit_deliver(emitter: Emitter, step: Deliver) -> None:
    """Give a result to Python: its address and its dims."""
    fn, spec = emitter.fn, step.source.value.spec
    number = emitter.program.add_callback(step)
    words = fn.alloca(f"[{1 + spec.rank} x i64], align 8")
    fn.emit(f"store ptr {emitter.operand_pointer(step.source)}, ptr {words}")
    for k, dim in enumerate(spec.dims):
        fn.emit(f"store i64 {emitter.dim(dim)}, ptr {fn.offset(words, k + 1, 'i64')}")
    call_python(emitter, number, words)


def emit_check(emitter: Emitter, step: Check) -> None:
    """An assertion: where it does not hold Python is called to raise, and the program ends."""
    fn = emitter.fn
    holds = emitter.registers[step.holds.value]
    k = fn.unique()
    fn.fork(holds, f"held{k}", f"broken{k}", likely=True)
    fn.label(f"broken{k}")
    for launch in step.told:
        emit_launch(emitter, launch)
    emit_callback(emitter, step.callback)
    emitter.exits.leave(RAISED)
    fn.label(f"held{k}")


def emit_position(emitter: Emitter, step: Position) -> None:
    """A position, checked and counted from the beginning. The processor guesses that it is not
    counted from the end, so nothing waits for it. A position that was checked before is not checked
    again."""
    fn, spec = emitter.fn, step.source.value.spec
    given = emitter.registers[step.source.value]
    size = emitter.dim(step.size)
    known = emitter.positions.get((given, str(size)))
    if known is not None:
        emitter.registers[step.value] = known
        return
    place = emitter.elements.apply("cast", [given], [spec.dtype], dtypes.int64)
    if step in emitter.inside:
        emitter.registers[step.value] = place
        return
    k = fn.unique()
    inside = fn.value(f"icmp ult i64 {place}, {size}")
    wraps = step.wraps and not spec.dtype.is_unsigned
    if wraps:
        found = Block(f"inside{k}", [("i64", f"%place{k}")])
        fn.fork(inside, found(place), f"wrap{k}", likely=True)
        fn.label(f"wrap{k}")
        back = fn.value(f"add i64 {place}, {size}")
        again = fn.value(f"icmp ult i64 {back}, {size}")
        fn.fork(again, found(back), f"broken{k}", likely=True)
        place = f"%place{k}"
    else:
        found = Block(f"inside{k}")
        fn.fork(inside, found, f"broken{k}", likely=True)
    fn.label(f"broken{k}")
    emit_callback(emitter, step.callback)
    emitter.exits.leave(RAISED)
    fn.label(found)
    emitter.registers[step.value] = emitter.positions[given, str(size)] = place


def emit_sizes(emitter: Emitter, step: Sizes) -> None:
    """Symbols get their values."""
    for name, dim in step.pairs:
        emitter.sizes.symbols[name] = str(emitter.dim(dim))
