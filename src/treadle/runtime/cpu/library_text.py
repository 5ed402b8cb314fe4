"""The parts that all routines of the library have in common, as LLVM text.

A routine is ``void @routine(ptr table, ptr operands, ptr numbers, ptr workspace)``. It divides its
work into tasks, whose number depends on the dims alone, and gives every thread a run of
consecutive tasks: results do not depend on the number of threads. Between two tasks, and within
long ones, it looks whether it is to stop (`leave_if_stopped`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.target import Target

# Words of the table that every routine gets. `limit` is the most threads that have workspace;
# `counts` leads to `SLOTS` numbers of calls, one for all products of a class that have the slot.
TABLE = (
    "parallel", "limit", "float_tiles", "double_tiles", "i32_tiles", "i64_tiles", "collectives",
    "counts", "ss8_tiles", "su8_tiles", "us8_tiles", "uu8_tiles",
)  # fmt: skip

SLOTS = 4096
PREFIX = "rows "  # of the symbols of routines that work on rows (`cpu/routines`)

Words = dict[str, Word]

# Products of numbers of 8 bits, with signs or without in A and in B: tiles compute with groups of
# them (`matmul/byte_forms.py`).
WHOLE_BYTES = ("ss8", "su8", "us8", "uu8")
# The types of elements that tiles compute with.
ELEMENT_BYTES = {"float": 4, "double": 8, "i32": 4, "i64": 8, **dict.fromkeys(WHOLE_BYTES, 4)}


class Record:
    """Names for the words of the record through which a routine's entry speaks to its tasks."""

    def __init__(self, fn: Function, pointer: str, names: Sequence[str]) -> None:
        self.fn, self.pointer = fn, pointer
        self.places = {name: i for i, name in enumerate(names)}
        self.loaded: dict[str, str] = {}

    def load_all(self, kinds: dict[str, str]) -> Words:
        """Every word, loaded at once so that it is defined on all paths."""
        return self.load_some(list(self.places), kinds)

    def load_some(self, names: Sequence[str], kinds: dict[str, str]) -> Words:
        """The words of some names."""
        return {
            name: self.fn.load_word(self.pointer, self.places[name], kinds.get(name, "i64"))
            for name in names
        }

    def store(self, name: str, word: Word, kind: str = "i64") -> None:
        target = self.fn.offset(self.pointer, self.places[name], "i64")
        self.fn.emit(f"store {kind} {word}, ptr {target}, align 8")


def table_word(fn: Function, table: Word, name: str, kind: str = "ptr") -> str:
    return fn.load_word(str(table), TABLE.index(name), kind)


def count_calls(fn: Function, w: Words, count: Word) -> None:
    """Count calls of the class whose slot is one of the numbers. Where threads count at the same
    time some may be lost."""
    place = fn.offset(table_word(fn, w["table"], "counts"), w["slot"], "i64")
    fn.emit(f"store i64 {fn.add(fn.load_word(place), count)}, ptr {place}, align 8")


def define_routine(
    module: Module,
    name: str,
    operands: Sequence[str],
    numbers: Sequence[str],
    plan: Callable[[Function, Words], Words],
    phases: Sequence[Callable[[Function, Words, str], None]],
) -> None:
    """Add a routine to the module.

    Args:
        operands: names of the arrays, inputs first; the record of an epilogue and that of the
            program's call (`program_poll`) follow them.
        numbers: names of the dims that the caller gives.
        plan: computes further words on entry; ``tasks0``, ``tasks1``... are the numbers of tasks
            of the phases, ``every0``... how many a thread does without a look (1).
        phases: ``phase(fn, words, task)`` emits one task; a phase starts when the one before is
            complete. Words hold `worker`, the number of the thread, and `workspace`.
    """
    fn, words, kinds, record = _begin_routine(module, operands, numbers, plan)
    for number, phase in enumerate(phases):
        body = f"{name}.phase{number}"
        _define_phase(module, body, list(words), kinds, number, phase)
        tasks = words[f"tasks{number}"]
        _share(fn, words, body, record, tasks)
    fn.emit("ret void")
    fn.define(name, _ROUTINE)


def define_shared_routine(
    module: Module,
    name: str,
    operands: Sequence[str],
    numbers: Sequence[str],
    plan: Callable[[Function, Words], Words],
    share: Callable[[Function, Words, Word, Word], None],
    part: str = "",
) -> None:
    """Add a routine whose threads divide `tasks` units of work, at most `parts` threads.

    Args:
        operands, numbers, plan: as for `define_routine`; `tasks` and `parts` are among the words.
        share: ``share(fn, words, first, last)`` emits one thread's consecutive units.
        part: the name of a routine that does the units [first, last), its further arguments, on
            its caller alone.
    """
    fn, words, kinds, record = _begin_routine(module, operands, numbers, plan)
    body = Function(module)
    inner = Record(body, "%record", list(words)).load_some(("table", "tasks", "parts"), kinds)
    workers = body.min("%workers", table_word(body, inner["table"], "limit", "i64"))
    workers = body.min(workers, inner["parts"])
    tasks = inner["tasks"]
    first = body.min(body.divide(body.mul(tasks, "%worker"), workers), tasks)
    last = body.min(body.divide(body.mul(tasks, body.add("%worker", 1)), workers), tasks)
    body.emit(f"call void @{name}.units(ptr %record, i64 %worker, i64 {first}, i64 {last})")
    body.emit("ret void")
    body.define(f"{name}.share", _PHASE, "internal")
    _define_units(module, f"{name}.units", list(words), kinds, share)
    if part:
        alone, _, _, given = _begin_routine(module, operands, numbers, plan)
        alone.emit(f"call void @{name}.units(ptr {given.pointer}, i64 0, i64 %first, i64 %last)")
        alone.emit("ret void")
        alone.define(part, _PART)
    several = fn.min(words["tasks"], words["parts"])
    _share(fn, words, f"{name}.share", record, several)
    fn.emit("ret void")
    fn.define(name, _ROUTINE)


def _share(fn: Function, words: Words, phase: str, record: Record, tasks: Word) -> None:
    fn.emit(
        f"call void @share(ptr %table, ptr @{phase}, ptr {record.pointer}, i64 {tasks}, "
        f"ptr {words['call']})"
    )


def leave_if_stopped(fn: Function, call: Word, condition: str | bool = True) -> None:
    """Return from a function without a result where a look at the program's call says so.

    Args:
        call: the record of the call.
        condition: when to look.
    """
    # Stored programs write no code.
    from treadle.runtime.cpu.program_layout import CALL, STATE

    with fn.when(condition) as needed:
        if not needed:
            return
        with fn.when(fn.value(f"icmp ne ptr {call}, null")):
            stop, go = fn.block_of("stop", []), fn.block_of("go", [])
            state = fn.load_word(str(call), CALL.fields["state"][0] // 8, "ptr")
            look = fn.load_word(state, STATE.fields["look"][0] // 8, "ptr")
            stops = fn.compare("slt", fn.value(f"call i64 {look}(ptr {call})"), 0)
            fn.fork(str(stops), stop, go, likely=False)
            fn.label(stop)
            fn.emit("ret void")
            fn.label(go)


@contextmanager
def looking_loop(
    fn: Function, call: Word, first: Word, last: Word, every: Word
) -> Iterator[Word]:
    """``for i in range(first, last)``, with a look whether to stop after so many iterations."""
    with fn.loop(first, last, every) as start:
        leave_if_stopped(fn, call, fn.compare("ne", start, first))
        with fn.loop(start, fn.min(fn.add(start, every), last)) as i:
            yield i


def _define_units(
    module: Module, name: str, names: Sequence[str], kinds: dict[str, str],
    share: Callable[[Function, Words, Word, Word], None],
) -> None:  # fmt: skip
    """``void units(ptr record, i64 worker, i64 first, i64 last)``: consecutive units of work."""
    fn = Function(module)
    words = Record(fn, "%record", names).load_all(kinds) | {"worker": "%worker"}
    with fn.when(fn.compare("slt", "%first", "%last")):
        share(fn, words, "%first", "%last")
    fn.emit("ret void")
    fn.define(name, "void @{}(ptr %record, i64 %worker, i64 %first, i64 %last)", "internal")


_PART = "void @{}(ptr %table, ptr %operands, ptr %numbers, ptr %workspace, i64 %first, i64 %last)"
_ROUTINE = "void @{}(ptr %table, ptr %operands, ptr %numbers, ptr %workspace)"
_PHASE = "void @{}(ptr %record, i64 %worker, i64 %workers)"


def _begin_routine(
    module: Module,
    operands: Sequence[str],
    numbers: Sequence[str],
    plan: Callable[[Function, Words], Words],
) -> tuple[Function, Words, dict[str, str], Record]:
    """The entry of a routine: its words, the kinds of pointers, and the record of all of them."""
    from treadle.runtime.cpu.library_share import add_thread_control  # as above

    fn = Function(module)
    words: Words = {"table": "%table", "workspace": "%workspace"}
    operands = (*operands, "epilogue", "call")
    words |= {n: fn.load_word("%operands", i, "ptr") for i, n in enumerate(operands)}
    words |= {n: fn.load_word("%numbers", i) for i, n in enumerate(numbers)}
    words |= plan(fn, words)
    kinds = dict.fromkeys((*operands, "table", "workspace"), "ptr")
    record = Record(fn, fn.alloca(f"[{len(words)} x i64], align 8"), list(words))
    for key, word in words.items():
        record.store(key, word, kinds.get(key, "i64"))
    add_thread_control(module)
    return fn, words, kinds, record


def _define_phase(
    module: Module, name: str, names: Sequence[str], kinds: dict[str, str], number: int,
    phase: Callable[[Function, Words, str], None],
) -> None:  # fmt: skip
    """``void phase(ptr record, i64 worker, i64 workers)``: one thread's share of the tasks."""
    fn = Function(module)
    words = Record(fn, "%record", names).load_all(kinds)
    words["worker"] = "%worker"
    tasks = words[f"tasks{number}"]
    workers = fn.min("%workers", table_word(fn, words["table"], "limit", "i64"))
    first = fn.divide(fn.mul(tasks, "%worker"), workers)
    last = fn.min(fn.divide(fn.mul(tasks, fn.add("%worker", 1)), workers), tasks)
    with looking_loop(fn, words["call"], first, last, words.get(f"every{number}", 1)) as task:
        phase(fn, words, str(task))
    fn.emit("ret void")
    fn.define(name, _PHASE, "internal")


def ceil_divide(fn: Function, a: Word, b: Word) -> Word:
    return fn.divide(fn.add(a, fn.sub(b, 1)), b)


def add_vector_loops(module: Module, element: str) -> None:
    """``@copy_float(target, source, count)``, ``@add_float`` (adds to target), ``@zero_float``."""
    lanes = module.target.vector_bits // (8 * ELEMENT_BYTES[element])
    for kind in ("copy", "add", "zero"):
        _define_vector_loop(module, kind, element, lanes)


def _define_vector_loop(module: Module, kind: str, element: str, lanes: int) -> None:
    fn = Function(module)
    whole = fn.mul(fn.divide("%count", lanes), lanes)
    with fn.loop(0, whole, lanes) as i:
        _vector_step(fn, kind, element, i, lanes)
    # Masked moves are instructions there, but a load soon after a masked store is slow.
    if module.target.vector_bits >= 256 and kind != "add":
        rest = fn.sub("%count", whole)
        some = fn.compare("sgt", rest, 0)
        with fn.when(some):
            _vector_step(fn, kind, element, whole, lanes, first_lanes(fn, rest, lanes))
    else:
        with fn.loop(whole, "%count") as i:
            _vector_step(fn, kind, element, i, 1)
    fn.emit("ret void")
    source = "" if kind == "zero" else "ptr %source, "
    fn.define(f"{kind}_{element}", f"void @{{}}(ptr %target, {source}i64 %count)", "internal")


def first_lanes(fn: Function, count: Word, lanes: int) -> str:
    """The mask of the first `count` of the lanes."""
    kind = f"<{lanes} x i32>"
    narrow = fn.value(f"trunc i64 {fn.min(count, lanes)} to i32")
    one = fn.value(f"insertelement {kind} poison, i32 {narrow}, i64 0")
    every = fn.value(f"shufflevector {kind} {one}, {kind} poison, {kind} zeroinitializer")
    numbers = ", ".join(f"i32 {i}" for i in range(lanes))
    return fn.value(f"icmp slt {kind} <{numbers}>, {every}")


def _vector_step(
    fn: Function, kind: str, element: str, index: Word, lanes: int, mask: str = ""
) -> None:
    """Copy, add or clear `lanes` elements at `index`, or those that the mask selects."""
    type_ = f"<{lanes} x {element}>" if lanes > 1 else element
    target = fn.offset("%target", index, element)
    value = "zeroinitializer" if lanes > 1 else "0.0"
    if kind != "zero":
        value = _load(fn, type_, fn.offset("%source", index, element), element, lanes, mask)
    if kind == "add":
        before = _load(fn, type_, target, element, lanes, mask)
        value = fn.value(f"fadd {type_} {before}, {value}")
    size = ELEMENT_BYTES[element]
    if not mask:
        fn.emit(f"store {type_} {value}, ptr {target}, align {size}")
    else:
        masked_store(fn, value, target, element, lanes, mask)


def _load(fn: Function, type_: str, pointer: str, element: str, lanes: int, mask: str) -> str:
    if mask:
        return masked_load(fn, pointer, element, lanes, mask)
    return fn.value(f"load {type_}, ptr {pointer}, align {ELEMENT_BYTES[element]}")


def masked_load(fn: Function, pointer: str, element: str, lanes: int, mask: str) -> str:
    """The vector's selected lanes; zeros in the others, which are not read."""
    type_, size = f"<{lanes} x {element}>", _bytes(element)
    name = f"{type_} @llvm.masked.load.v{lanes}{suffix(element)}.p0"
    return fn.call(
        f"{name}(ptr, i32 immarg, <{lanes} x i1>, {type_})",
        f"ptr {pointer}, i32 {size}, <{lanes} x i1> {mask}, {type_} zeroinitializer",
    )


def masked_store(
    fn: Function, value: str, pointer: str, element: str, lanes: int, mask: str
) -> None:
    """Store the vector's selected lanes only."""
    type_, size = f"<{lanes} x {element}>", _bytes(element)
    name = f"void @llvm.masked.store.v{lanes}{suffix(element)}.p0"
    fn.module.declare(f"{name}({type_}, ptr, i32 immarg, <{lanes} x i1>)")
    fn.emit(f"call {name}({type_} {value}, ptr {pointer}, i32 {size}, <{lanes} x i1> {mask})")


def _bytes(element: str) -> int:
    return {"i8": 1, "i16": 2}.get(element) or ELEMENT_BYTES[element]


def suffix(element: str) -> str:
    """How the names of intrinsics spell an element type."""
    return {"float": "f32", "double": "f64"}.get(element, element)


def fills_lines(target: Target) -> bool:
    """Whether a vector fills a cache line, and stores past the caches exist."""
    return target.is_x86 and target.vector_bits == 512
