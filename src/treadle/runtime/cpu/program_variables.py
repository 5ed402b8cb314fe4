"""Variables in a program that lets other threads run: it holds the buffers that it uses.

While a program runs with the GIL no other thread looks at its variables. Before it releases the
GIL it takes a reference to the buffer of each variable and notes its address: the buffer stays,
whatever other threads assign. Variables that it writes name its thread as their writer, and other
threads wait before they use them; another thread that writes a variable which it reads replaces
the buffer first. So other threads see a variable as before the program or as after it.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

from treadle.runtime.cpu.builder.function import Function
from treadle.runtime.cpu.builder.types import I64, PTR, words
from treadle.runtime.cpu.builder.unit import Unit
from treadle.runtime.cpu.builder.values import Value
from treadle.runtime.cpu.llvm_text import Function as TextFunction
from treadle.runtime.cpu.llvm_text import Module
from treadle.runtime.cpu.program_layout import CELL, STATE
from treadle.runtime.cpu.program_state import fixed

# Words of a variable's cell (`core.host_storage.VariableCell`).
DATA, SHARED, ARRAY, READERS, WRITER = (offset // 8 for offset, _ in CELL.fields.values())
_HELD = words("Held", {"array": PTR, "data": PTR})  # for each variable; data: of the elements
HELD_WORDS = _HELD.bytes // 8


def unusable(fn: TextFunction, cells: Sequence[str], written: Sequence[str]) -> str | None:
    """A word that is not 0 where a program must not start: one of its variables is being written
    by another thread, or somebody else holds what it would write itself."""
    words = [(cell, WRITER) for cell in cells]
    words += [(cell, word) for cell in written for word in (SHARED, READERS)]
    total = None
    for cell, word in words:
        value = fn.load_word(cell, word)
        total = value if total is None else fn.value(f"or i64 {total}, {value}")
    return total


class Holding:
    """Emits what takes and gives back the buffers of variables.

    Args:
        numbers: the variables.
        written: those that the program writes.

    Attributes:
        words: which words of the table are the addresses of the variables' elements, by number.
    """

    def __init__(self, fn: TextFunction, numbers: Sequence[int], written: Collection[int]) -> None:
        self.fn, self.written = fn, written
        self.position = {number: HELD_WORDS * i for i, number in enumerate(numbers)}
        self.words = {number: position + 1 for number, position in self.position.items()}
        self.table = fn.alloca(f"[{HELD_WORDS * len(numbers)} x i64], align 8")
        add_hold(fn.module)

    def take(self, cells: Sequence[str]) -> None:
        """Hold the buffers; `cells` are in the order of the numbers."""
        ident = self.fn.load_word("%state", fixed("PyThread_get_thread_ident"), "ptr")
        self._each("hold", cells, self.fn.value(f"call i64 {ident}()"))

    def give(self, cells: Sequence[str]) -> None:
        """Let go of them."""
        self._each("let_go", cells, "1")

    def _each(self, function: str, cells: Sequence[str], thread: str) -> None:
        for (number, position), cell in zip(self.position.items(), cells, strict=True):
            held = self.fn.offset(self.table, position, "i64")
            writer = thread if number in self.written else "0"
            words = f"ptr %state, ptr {cell}, ptr {held}, i64 {writer}"
            self.fn.emit(f"call void @{function}({words})")


def add_hold(module: Module) -> None:
    """Define ``void @hold(state, cell, held, thread)`` and ``void @let_go(state, cell, held,
    thread)``: `held` are the words of the variable in the table, `thread` is 0 for variables that
    are only read."""
    _hold_unit().add_to(module)


@functools.cache
def _hold_unit() -> Unit:
    unit = Unit()
    parameters = {
        "state": STATE.pointer, "cell": CELL.pointer, "held": _HELD.pointer, "thread": I64,
    }  # fmt: skip

    def hold(f: Function, state: Value, cell: Value, held: Value, thread: Value) -> None:
        array, data = cell["array"], cell["data"]
        held["array"] = array
        held["data"] = data
        f.call(state["Py_IncRef"], array)
        with f.when(thread.ne(0), "writer"):
            cell["writer"] = thread
            f.ret()
        cell["readers"] = cell["readers"] + 1
        f.ret()

    def let_go(f: Function, state: Value, cell: Value, held: Value, thread: Value) -> None:
        array = held["array"]
        writer, reader, done = f.block("writer"), f.block("reader"), f.block("done")
        f.branch(thread.ne(0), writer, reader)
        f.begin(writer)
        cell["writer"] = 0
        f.jump(done)
        f.begin(reader)  # those that read a buffer which was replaced are not counted any more
        now, readers = cell["array"], cell["readers"]
        f.require(now.eq(array) & readers.sgt(0), done, "count")
        cell["readers"] = readers - 1
        f.jump(done)
        f.begin(done)
        f.call(state["Py_DecRef"], array)
        f.ret()

    unit.add("hold", hold, parameters, attributes="noinline")
    unit.add("let_go", let_go, parameters, attributes="noinline")
    return unit
