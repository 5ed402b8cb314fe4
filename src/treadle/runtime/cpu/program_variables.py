"""Variables in a program that lets other threads run: it holds the buffers that it uses.

While a program runs with the GIL no other thread looks at its variables. Before it releases the
GIL it takes a reference to the buffer of each variable and notes its address: the buffer stays,
whatever other threads assign. Variables that it writes name its thread as their writer, and other
threads wait before they use them; another thread that writes a variable which it reads replaces
the buffer first. So other threads see a variable as before the program or as after it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from treadle.runtime.cpu.llvm_text import Function
from treadle.runtime.cpu.program_state import fixed

# Words of a variable's cell (`ops.state.VariableCell`).
DATA, SHARED, ARRAY, READERS, WRITER = range(5)
HELD_WORDS = 2  # for each variable: its array, and the address of the elements


def unusable(fn: Function, cells: Sequence[str], written: Sequence[str]) -> str | None:
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
    """

    def __init__(self, fn: Function, numbers: Sequence[int], written: Collection[int]) -> None:
        self.fn, self.written = fn, written
        self.position = {number: HELD_WORDS * i for i, number in enumerate(numbers)}
        self.table = fn.alloca(f"[{HELD_WORDS * len(numbers)} x i64], align 8")
        fn.module.define("hold", _HOLD)

    def word(self, number: int) -> int:
        """Which word of the table is the address of a variable's elements."""
        return self.position[number] + 1

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


_HOLD = f"""
define internal void @hold(ptr %state, ptr %cell, ptr %held, i64 %thread) noinline #0 {{
entry:
  %array.p = getelementptr i64, ptr %cell, i64 {ARRAY}
  %array = load ptr, ptr %array.p
  %data = load i64, ptr %cell
  store ptr %array, ptr %held
  %held.data = getelementptr i64, ptr %held, i64 1
  store i64 %data, ptr %held.data
  %incref.p = getelementptr ptr, ptr %state, i64 {fixed("Py_IncRef")}
  %incref = load ptr, ptr %incref.p
  call void %incref(ptr %array)
  %writes = icmp ne i64 %thread, 0
  br i1 %writes, label %writer, label %reader
writer:
  %writer.p = getelementptr i64, ptr %cell, i64 {WRITER}
  store i64 %thread, ptr %writer.p
  ret void
reader:
  %readers.p = getelementptr i64, ptr %cell, i64 {READERS}
  %readers = load i64, ptr %readers.p
  %more = add i64 %readers, 1
  store i64 %more, ptr %readers.p
  ret void
}}

define internal void @let_go(ptr %state, ptr %cell, ptr %held, i64 %thread) noinline #0 {{
entry:
  %array = load ptr, ptr %held
  %writes = icmp ne i64 %thread, 0
  br i1 %writes, label %writer, label %reader
writer:
  %writer.p = getelementptr i64, ptr %cell, i64 {WRITER}
  store i64 0, ptr %writer.p
  br label %done
reader:
  %array.p = getelementptr i64, ptr %cell, i64 {ARRAY}
  %now = load ptr, ptr %array.p
  %readers.p = getelementptr i64, ptr %cell, i64 {READERS}
  %readers = load i64, ptr %readers.p
  %same = icmp eq ptr %now, %array
  %some = icmp sgt i64 %readers, 0
  %counted = and i1 %same, %some
  br i1 %counted, label %count, label %done
count:
  %fewer = sub i64 %readers, 1
  store i64 %fewer, ptr %readers.p
  br label %done
done:
  %decref.p = getelementptr ptr, ptr %state, i64 {fixed("Py_DecRef")}
  %decref = load ptr, ptr %decref.p
  call void %decref(ptr %array)
  ret void
}}
"""
