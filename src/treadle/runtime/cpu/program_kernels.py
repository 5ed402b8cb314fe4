"""The steps of a program that launch kernels, and those that compute rank-0 values."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core import dtypes
from treadle.core.shapes import Dim, SymbolicDim, product, substitute
from treadle.core.switches import is_on
from treadle.kernel.ir import Affine, Apply, Const, Expr, Extent, Load, postorder
from treadle.kernel.rewrite import canonical
from treadle.runtime.cpu.casts import guessed_integer
from treadle.runtime.cpu.compiled_kernels import KernelCode, in_terms_of, kernel_code
from treadle.runtime.cpu.elements import is_selection, stored_type
from treadle.runtime.cpu.llvm_text import Function, Word
from treadle.runtime.cpu.nest import add_kernel
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_python import call_python
from treadle.runtime.cpu.program_tables import is_plain, operand_words
from treadle.runtime.schedule.steps import (
    Evaluate,
    Launch,
    Operand,
    SegmentedLaunch,
    is_checked,
)  # fmt: skip

FIRST_SLICE = 32  # times the work that is worth a thread (`Tuning.task_elements`)
FIRST_LONG_UNITS = 8  # where a unit is worth one


def emit_launch(emitter: Emitter, step: Launch) -> None:
    """Launch a kernel with the addresses of its operands; rank-0 operands are stored first."""
    code = kernel_code(step.kernel) if step.native else None
    if code is None:
        emit_reference(emitter, step)
        return
    fn, emitted = emitter.fn, code.emitted
    if emitter.program.is_large and is_plain(step):
        words = operand_words(emitter, [*step.operands, 0])
    else:
        words = fn.alloca(f"[{len(step.operands) + 1} x ptr], align 8")
        for i, pointer in enumerate(operand_addresses(emitter, step)):
            fn.emit(f"store ptr {pointer}, ptr {fn.offset(words, i, 'ptr')}")
    if step.shared is not None:
        place = fn.offset(words, len(step.operands), "ptr")
        fn.emit(f"store ptr {emitter.pointer(step.shared)}, ptr {place}")
    dims = symbol_values(emitter, step)
    units = emitter.dim(_outer(step, in_terms_of(step.kernel, emitted.units)))
    scratch = "null" if step.scratch is None else emitter.pointer(step.scratch)
    least = emitter.dim(_outer(step, in_terms_of(step.kernel, emitted.grain)))
    few = isinstance(units, int) and isinstance(least, int) and units < 2 * least
    if few and emitter.loops and code.is_part and is_on("parts_of_programs"):
        function = _part(emitter, step, code)
    else:
        function = emitter.state.word("kernel", (code, emitted.symbol))
    if few or step in emitter.program.alone:
        fn.emit(f"call void {function}(ptr {words}, ptr {dims}, i64 0, i64 {units}, ptr {scratch})")
    else:
        grain, stride = _division(emitter, step, least, units)
        slice_ = _slice(emitter, least, emitted.together)
        long = not (isinstance(units, int) and isinstance(slice_, int) and units <= slice_)
        call = emitter.exits.call_of(step) if long else "null"
        fn.emit(
            f"call void {emitter.state.fixed('launch')}(ptr {function}, ptr {words}, ptr {dims}, "
            f"i64 {units}, i64 {grain}, ptr {scratch}, i64 {stride}, i64 {slice_}, ptr {call})"
        )
        emitter.exits.leave_if_stopped(call)
    if emitted.finish is not None:
        finish = emitter.state.word("kernel", (code, emitted.finish))
        fn.emit(f"call void {finish}(ptr {words}, ptr {dims})")
    _load_outputs(emitter, step)


def _part(emitter: Emitter, step: Launch, code: KernelCode) -> str:
    """The function of a kernel in the program's own module. LLVM writes it into the loop: what is
    known of the operands and dims there need not go through memory."""
    symbol = f"k_{code.name}"
    add_kernel(canonical(step.kernel), emitter.module, symbol)
    emitter.program.has_parts = True
    return f"@{symbol}"


def emit_segments(emitter: Emitter, step: SegmentedLaunch) -> None:
    """One launch for many arrays. Its table holds the number of segments, then the length and the
    addresses of each."""
    code = kernel_code(step.kernel)
    assert code is not None
    fn, emitted = emitter.fn, code.emitted
    words: list[Word | Operand] = [len(step.segments)]
    total: Word = 0
    for segment in step.segments:
        assert segment.extent is not None
        length = emitter.dim(segment.extent)
        total = fn.add(total, length)
        words += [length, *segment.operands]
    table = operand_words(emitter, words) if emitter.program.is_large else _stored(emitter, words)
    function = emitter.state.word("kernel", (code, emitted.symbol))
    fn.emit(
        f"call void {emitter.state.fixed('launch')}(ptr {function}, ptr {table}, ptr null, "
        f"i64 {total}, i64 {emitted.grain}, ptr null, i64 0, i64 0, ptr null)"
    )


def _stored(emitter: Emitter, words: Sequence[Word | Operand]) -> str:
    """A table of numbers and addresses of operands, on the stack."""
    fn = emitter.fn
    table = fn.alloca(f"[{len(words)} x i64], align 8")
    for i, word in enumerate(words):
        place = fn.offset(table, i, "i64")
        if isinstance(word, Operand):
            fn.emit(f"store ptr {emitter.operand_pointer(word)}, ptr {place}")
        else:
            fn.emit(f"store i64 {word}, ptr {place}")
    return table


def _division(emitter: Emitter, step: Launch, grain: Word, units: Word) -> tuple[Word, Word]:
    """The fewest units for a thread, so that no more threads take part than the scratch has room
    for, and the distance between the scratch of one thread and the next."""
    if step.scratch is None:
        return grain, 0
    fn, planned = emitter.fn, emitter.program.workers
    share = fewest_units(fn, units, planned)
    return fn.max(share, grain), fn.divide(emitter.dim(product(step.scratch.dims)), planned)


def _slice(emitter: Emitter, grain: Word, together: int) -> Word:
    """The units of the first slice of a launch: work that takes much longer than to call the kernel
    and to look for signals, and a multiple of the units that the kernel computes together."""
    fn = emitter.fn
    units = fn.select(fn.compare("eq", grain, 1), FIRST_LONG_UNITS, fn.mul(grain, FIRST_SLICE))
    return fn.max(fn.mul(fn.divide(units, together), together), together)


def fewest_units(fn: Function, units: Word, threads: int) -> Word:
    """So many units for a thread that no more than `threads` of them get some."""
    return fn.add(fn.divide(units, threads + 1), 1)


def operand_addresses(emitter: Emitter, step: Launch) -> list[str]:
    """The addresses of a kernel's operands; rank-0 operands have slots."""
    pointers = []
    for i, operand in enumerate(step.operands):
        if i in step.outputs and operand.place is None:
            pointers.append(emitter.slot(operand.value))
        else:
            pointers.append(emitter.operand_pointer(operand))
    return pointers


def _load_outputs(emitter: Emitter, step: Launch) -> None:
    """Rank-0 results become registers."""
    for i in step.outputs:
        operand = step.operands[i]
        if operand.place is None:
            slot = emitter.slot(operand.value)
            emitter.registers[operand.value] = emitter.load_scalar(slot, operand.value.spec.dtype)


def _outer(step: Launch, dim: Dim) -> Dim:
    """A dim of the kernel as one of the program."""
    return dim if step.extent is None else substitute(dim, {"n": step.extent})


def symbol_values(emitter: Emitter, step: Launch) -> str:
    """The address of the values of the kernel's symbols, in order."""
    fn, symbols = emitter.fn, step.kernel.symbols
    if not symbols:
        return "null"
    dims = fn.alloca(f"[{len(symbols)} x i64], align 8")
    for i, name in enumerate(symbols):
        value = emitter.dim(_outer(step, SymbolicDim.symbol(name)))
        fn.emit(f"store i64 {value}, ptr {fn.offset(dims, i, 'i64')}")
    return dims


def emit_reference(emitter: Emitter, step: Launch) -> None:
    """Let Python evaluate a kernel that has no code."""
    fn = emitter.fn
    number = emitter.program.add_callback(step)
    count = len(step.operands)
    words = fn.alloca(f"[{max(1, count + len(step.kernel.symbols))} x i64], align 8")
    for i, pointer in enumerate(operand_addresses(emitter, step)):
        fn.emit(f"store ptr {pointer}, ptr {fn.offset(words, i, 'i64')}")
    for i, name in enumerate(step.kernel.symbols):
        value = emitter.dim(_outer(step, SymbolicDim.symbol(name)))
        fn.emit(f"store i64 {value}, ptr {fn.offset(words, count + i, 'i64')}")
    call_python(emitter, number, words)
    _load_outputs(emitter, step)


def emit_evaluate(emitter: Emitter, step: Evaluate) -> None:
    """Compute a rank-0 value in a register; 16-bit floats are rounded as if they were stored."""
    if step.value in emitter.decided:
        emitter.registers[step.value] = emitter.decided[step.value]
        return
    values: dict[Expr, str] = {}
    for expr in postorder([step.expr]):
        values[expr] = _evaluate(emitter, step, expr, values)
    emitter.contraction.note(step, values)
    register, dtype = values[step.expr], step.value.spec.dtype
    if dtype.is_floating and dtype.size == 2:
        elements = emitter.elements
        register = elements.from_memory(elements.to_memory(register, dtype), dtype)
    emitter.registers[step.value] = register
    if is_selection(step.expr):
        emitter.selections.add(register)


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
            kept = emitter.kept.get((step, expr))
            return kept or _element(emitter, step, expr, operand, values)
        case Apply():
            fused = emitter.contraction.fused(emitter.elements, step, expr, values)
            if fused is not None:
                return fused
            operands = [a.dtype for a in expr.args]
            args = [values[a] for a in expr.args]
            if expr.fn == "cast" and operands[0].is_floating and expr.dtype.is_integer:
                found = _guessed(emitter, step, expr, args[0])
                if found is not None:
                    return found
            return emitter.elements.apply(expr.fn, args, operands, expr.dtype)
    raise AssertionError(f"no scalar form of {expr}")


def _guessed(emitter: Emitter, step: Evaluate, expr: Apply, number: str) -> str | None:
    """A float as an integer by a guess; not in loops that are to become vectors (`group`)."""
    if emitter.group is not None:
        return None
    size = emitter.sought.get(step.value) if expr is step.expr else None
    if isinstance(size, SymbolicDim) and not size.symbols() <= emitter.sizes.symbols.keys():
        size = None  # it is found out between here and the check
    source, target = expr.args[0].dtype, expr.dtype
    word = None if size is None else emitter.dim(size)
    return guessed_integer(emitter.elements, number, source, target, word)


def _element(
    emitter: Emitter, step: Evaluate, load: Load, operand: Operand, values: dict[Expr, str]
) -> str:
    """Load an element of an array. A computed position is clamped to the array, unless an earlier
    step has checked it."""
    fn = emitter.fn
    assert operand.place is not None
    offset: Word = 0
    for index, extent in zip(load.index, load.buffer.shape, strict=True):
        size = emitter.dim(extent)
        if isinstance(index, Affine):
            place: Word = emitter.dim(index.offset)
        else:
            wide = emitter.elements.apply("cast", [values[index]], [index.dtype], dtypes.int64)
            place = wide
            if not is_checked(step, operand):
                place = fn.max(fn.min(wide, fn.sub(size, 1)), 0)
        offset = fn.add(fn.mul(offset, size), place)
    pointer = fn.offset(emitter.pointer(operand.place), offset, stored_type(load.dtype))
    return emitter.load_scalar(pointer, load.dtype, operand.place)
