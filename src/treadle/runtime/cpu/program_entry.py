"""What a program returns, and its entry for CPython."""

from __future__ import annotations

from treadle.runtime.cpu.abi import Layout
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.program_state import fixed
from treadle.runtime.signature import Signature

# What `run` returns. RAISED: a callback failed and its exception is kept; INTERRUPTED: a Python
# exception is set in the thread. NO_ARRAY: an argument is something else than an ndarray.
# NO_MEMORY: there is none for the workspace, nothing has run; EXHAUSTED: there is none for an array
# whose size was found out.
DONE, RAISED, NOT_WRITABLE, WRONG_SHAPE = 0, -1, -2, -3
NO_MEMORY, INTERRUPTED, NO_ARRAY, EXHAUSTED = -4, -5, -6, -7
MOST_WRITTEN_OUT = 64  # objects that `entry` takes one by one, without a loop


def add_entry(module: Module, signature: Signature, layout: Layout) -> None:
    """``PyObject *entry(self, objects, count)``: a built-in function of CPython.

    `self` is the state table as an ndarray, `objects` the arguments and outputs as ndarrays.
    Returns None, an int for a status, or NULL with an exception set.
    """
    if signature.cells:
        return
    fn = Function(module)
    count = len(signature.arguments) + len(signature.outputs)
    frame = fn.alloca(f"[{max(signature.words, 1)} x i64], align 16")
    state = _field(fn, "%self", layout.data)
    several: list[tuple[Word, Word]] = [(i, i + 1) for i in range(count)]
    if count > MOST_WRITTEN_OUT:
        several = [(0, len(signature.arguments)), (len(signature.arguments), count)]
    kind = fn.load_word(state, fixed("ndarray"), "ptr")
    for start, stop in several:
        with fn.loop(start, stop) as i:
            array = fn.load_word("%objects", i, "ptr")
            if isinstance(start, int) and start < len(signature.arguments):
                _check_kind(fn, array, kind, state, layout)
            fn.emit(f"store ptr {_field(fn, array, layout.data)}, ptr {fn.offset(frame, i, 'i64')}")
    order = {number: i for i, number in enumerate(signature.arguments)}
    for i, source in enumerate(signature.symbols):
        array = fn.load_word("%objects", order[source.argument], "ptr")
        dims = _field(fn, array, layout.dims)
        size = fn.load_word(dims, source.axis)
        fn.emit(f"store i64 {size}, ptr {fn.offset(frame, count + i, 'i64')}")
    status = fn.value(f"call i64 @run(ptr {state}, ptr {frame})")
    _answer(fn, state, status)
    fn.define("entry", "ptr @{}(ptr %self, ptr %objects, i64 %count)")


def _check_kind(fn: Function, array: str, kind: str, state: str, layout: Layout) -> None:
    """Leave where an object is no ndarray."""
    other = fn.value(f"icmp ne ptr {_field(fn, array, layout.type)}, {kind}")
    k = fn.unique()
    fn.fork(other, f"other{k}", f"array{k}", likely=False)
    fn.label(f"other{k}")
    fn.emit(f"ret ptr {_status(fn, state, str(NO_ARRAY))}")
    fn.label(f"array{k}")


def _field(fn: Function, pointer: str, offset: int) -> str:
    """A pointer-sized field of an object."""
    return fn.value(f"load ptr, ptr {fn.value(f'getelementptr i8, ptr {pointer}, i64 {offset}')}")


def _answer(fn: Function, state: str, status: str) -> None:
    """Return None for success, else the status as an int; NULL where an exception is set."""

    def word(name: str) -> str:
        return fn.load_word(state, fixed(name), "ptr")

    good = fn.value(f"icmp eq i64 {status}, {DONE}")
    fn.fork(good, "good", "bad")
    fn.label("good")
    none = word("None")
    fn.emit(f"call void {word('Py_IncRef')}(ptr {none})")
    fn.emit(f"ret ptr {none}")
    fn.label("bad")
    raised = fn.value(f"icmp eq i64 {status}, {INTERRUPTED}")
    fn.fork(raised, "raised", "told")
    fn.label("raised")
    fn.emit("ret ptr null")
    fn.label("told")
    fn.emit(f"ret ptr {_status(fn, state, status)}")


def _status(fn: Function, state: str, status: str) -> str:
    """A status as a Python int."""
    convert = fn.load_word(state, fixed("PyLong_FromLong"), "ptr")
    return fn.value(f"call ptr {convert}(i64 {status})")
