"""The straight-line steps of a program: kernels, copies, registers, callbacks."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes
from treadle.core.shapes import product
from treadle.core.spec import ListSpec, ResourceSpec
from treadle.runtime.callbacks import (
    callback_words,
    input_positions,
    input_words,
    output_words,
)  # fmt: skip
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_copies import move
from treadle.runtime.cpu.program_entry import RAISED
from treadle.runtime.cpu.program_kernels import emit_evaluate, emit_launch, emit_segments
from treadle.runtime.cpu.program_loops import emit_append, emit_loops
from treadle.runtime.cpu.program_poll import add_python
from treadle.runtime.cpu.program_updates import emit_update, integer
from treadle.runtime.schedule.steps import (
    Append,
    Block,
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
    Loops,
    Measure,
    Operand,
    Place,
    Position,
    SegmentedLaunch,
    Sizes,
    Update,
)  # fmt: skip


def emit_block(emitter: Emitter, block: Block) -> None:
    """All steps of a block."""
    before = emitter.step
    for step in block.steps:
        emitter.step = step
        _EMITTERS[type(step)](emitter, step)
    emitter.step = before


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


def emit_callback(emitter: Emitter, step: Callback) -> None:
    """Call Python with the addresses of operands and results; lists pass as their handles."""
    fn = emitter.fn
    number = len(emitter.callbacks)
    emitter.callbacks.append(step)
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
        fn.emit(f"store i64 {emitter.symbols[name]}, ptr {fn.offset(words, i, 'i64')}")
    call_python(emitter, number, words)
    for i, operand in zip(positions, step.outputs, strict=True):
        _take(emitter, words, i, operand)


def call_python(emitter: Emitter, number: int, words: str) -> None:
    """Run callback step `number`; leave the program where it fails."""
    if emitter.is_first:  # of the threads that are here, all for the same reason
        k = emitter.fn.unique()
        emitter.fn.emit(f"br i1 {emitter.is_first}, label %speak{k}, label %exit")
        emitter.fn.label(f"speak{k}")
    add_python(emitter.module)
    record = "null" if emitter.releases is False else emitter.record
    operands = f"ptr %state, ptr {record}, i64 {number}, ptr {words}, ptr %frame"
    status = emitter.fn.value(f"call i64 @python({operands})")
    emitter.fail_if(emitter.fn.value(f"icmp ne i64 {status}, 0"), status)


def _output_positions(step: Callback) -> list[int]:
    positions, position = [], input_words(step)
    for operand in step.outputs:
        positions.append(position)
        position += output_words(operand)
    return positions


def _take(emitter: Emitter, words: str, position: int, operand: Operand) -> None:
    """What a callback gave: a handle, a number, or an array with sizes that are news."""
    fn, spec = emitter.fn, operand.value.spec
    if isinstance(spec, ListSpec):
        emitter.registers[operand.value] = fn.load_word(words, position)
    elif operand.place is None:
        slot = emitter.slot(operand.value)
        emitter.registers[operand.value] = emitter.load_scalar(slot, spec.dtype)
    elif output_words(operand) > 1:
        emitter.pointers[operand.place] = fn.load_word(words, position, "ptr")
        sizes = [fn.load_word(words, position + 1 + k) for k in range(spec.rank)]
        emitter.define_symbols(spec.dims, sizes)


def emit_guard(emitter: Emitter, step: Guard) -> None:
    """Compare two sizes."""
    fn = emitter.fn
    number = len(emitter.callbacks)
    emitter.callbacks.append(step)
    a, b = (emitter.dim(d) for d in step.sizes)
    words = fn.alloca("[2 x i64], align 8")
    with fn.when(fn.compare("ne", a, b)) as needed:
        if needed:
            fn.emit(f"store i64 {a}, ptr {words}")
            fn.emit(f"store i64 {b}, ptr {fn.offset(words, 1, 'i64')}")
            call_python(emitter, number, words)


def emit_measure(emitter: Emitter, step: Measure) -> None:
    """A symbol is the value of an integer."""
    emitter.symbols[step.name] = integer(emitter, step.source)


def emit_deliver(emitter: Emitter, step: Deliver) -> None:
    """Give a result to Python: its address and its dims."""
    fn, spec = emitter.fn, step.source.value.spec
    number = len(emitter.callbacks)
    emitter.callbacks.append(step)
    words = fn.alloca(f"[{1 + spec.rank} x i64], align 8")
    fn.emit(f"store ptr {emitter.operand_pointer(step.source)}, ptr {words}")
    for k, dim in enumerate(spec.dims):
        fn.emit(f"store i64 {emitter.dim(dim)}, ptr {fn.offset(words, k + 1, 'i64')}")
    call_python(emitter, number, words)


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
    """An assertion: Python is called only to raise, and the program ends then."""
    fn = emitter.fn
    holds = emitter.registers[step.holds.value]
    k = fn.unique()
    fn.emit(f"br i1 {holds}, label %held{k}, label %broken{k}, !prof !2")
    fn.label(f"broken{k}")
    emit_callback(emitter, step.callback)
    fn.emit(f"store i64 {RAISED}, ptr {emitter.status}")
    fn.branch("exit")
    fn.label(f"held{k}")


def emit_position(emitter: Emitter, step: Position) -> None:
    """A position that nobody wants to wait for: that it is none of the last ones, counted from
    the end, is guessed by the processor. What was checked before is not checked again."""
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
    before = fn.block
    wraps = step.wraps and not spec.dtype.is_unsigned
    other, back = ("wrap" if wraps else "broken"), ""
    fn.emit(f"br i1 {inside}, label %inside{k}, label %{other}{k}, !prof !2")
    if wraps:
        fn.label(f"wrap{k}")
        back = fn.value(f"add i64 {place}, {size}")
        again = fn.value(f"icmp ult i64 {back}, {size}")
        fn.emit(f"br i1 {again}, label %inside{k}, label %broken{k}, !prof !2")
    fn.label(f"broken{k}")
    emit_callback(emitter, step.callback)
    fn.emit(f"store i64 {RAISED}, ptr {emitter.status}")
    fn.branch("exit")
    fn.label(f"inside{k}")
    if wraps:
        place = fn.value(f"phi i64 [{place}, %{before}], [{back}, %wrap{k}]")
    emitter.registers[step.value] = emitter.positions[given, str(size)] = place


def emit_library(emitter: Emitter, step: LibraryCall) -> None:
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


def _emit_sizes(emitter: Emitter, step: Sizes) -> None:
    from treadle.runtime.cpu.program_control import emit_sizes

    emit_sizes(emitter, step)


_EMITTERS: dict[type, Any] = {
    Append: emit_append,
    Branch: _emit_branch,
    Callback: emit_callback,
    Check: emit_check,
    Position: emit_position,
    Copy: emit_copy,
    Deliver: emit_deliver,
    Guard: emit_guard,
    Evaluate: emit_evaluate,
    Launch: emit_launch,
    LibraryCall: emit_library,
    ListStep: _emit_list_step,
    LoadScalar: emit_load_scalar,
    Loop: _emit_loop,
    Loops: emit_loops,
    SegmentedLaunch: emit_segments,
    Measure: emit_measure,
    Sizes: _emit_sizes,
    Update: emit_update,
}
