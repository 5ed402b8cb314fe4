"""Lists of arrays of several shapes in a program's memory: one buffer of scalars, and a record
for each element.

The header of such a list is the header of its scalars; its last word is the address of the header
of a list of records. A record says where its element begins, how many scalars the element has, and
its dims. An element that was not written yet begins at -1 and has no scalars: it reads as zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.runtime.cpu import program_lists as plain
from treadle.runtime.cpu.list_memory import LENGTH, RECORDS
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_copies import move
from treadle.runtime.schedule.lists import Ragged
from treadle.runtime.schedule.steps import Operand

BEGIN, COUNT, DIMS = 0, 1, 2  # words of a record


def copy_of(emitter: Emitter, operand: Operand) -> str:
    """A copy of a list of either kind."""
    items = emitter.registers[operand.value]
    dims = emitter.program.element_dims[operand.value]
    if not isinstance(dims, Ragged):
        return plain.copied(emitter, items, plain.element_bytes(emitter, operand))
    old = RaggedList(emitter, operand, items)
    new = plain.copied(emitter, items, old.size)
    link(emitter, new, plain.copied(emitter, old.records, old.record_bytes))
    return new


class RaggedList:
    """A list of arrays of several shapes, in a function of a program.

    Attributes:
        items: the register of the list; records: of its list of records.
        words: the words of a record; size: the bytes of a scalar.
    """

    def __init__(self, emitter: Emitter, operand: Operand, items: str) -> None:
        ragged = emitter.program.element_dims[operand.value]
        assert isinstance(ragged, Ragged)
        self.emitter, self.fn, self.items = emitter, emitter.fn, items
        self.rank, self.holes = ragged.rank, ragged.holes
        self.words, self.size = DIMS + ragged.rank, operand.value.spec.dtype.size
        self.record_bytes = 8 * self.words
        self.records = self.fn.load_word(items, RECORDS, "ptr")

    def length(self) -> str:
        return self.fn.load_word(self.records, LENGTH)

    def record(self, index: Word) -> str:
        return plain.address(self.emitter, self.records, index, self.record_bytes)

    def dims(self, record: str) -> list[str]:
        return [self.fn.load_word(record, DIMS + axis) for axis in range(self.rank)]

    def place(self, begin: Word) -> str:
        return plain.address(self.emitter, self.items, begin, self.size)

    def put(self, record: str, dims: Sequence[Word]) -> str:
        """Room for an element at the end of the scalars, noted in its record."""
        count = product_of(self.emitter, dims)
        begin = self.grow(count)
        for word, value in enumerate((begin, count, *dims)):
            store_word(self.emitter, record, word, value)
        return self.place(begin)

    def grow(self, count: Word) -> str:
        """Make room for scalars; gives the position of the first one."""
        begin = self.fn.load_word(self.items, LENGTH)
        end = self.fn.add(begin, count)
        plain.reserve(self.emitter, self.items, end, self.size)
        store_word(self.emitter, self.items, LENGTH, end)
        return begin

    def extend(self, count: Word) -> None:
        """Add elements that are not written, up to a length."""
        old = self.length()
        plain.reserve(self.emitter, self.records, count, self.record_bytes)
        with self.fn.loop(old, count) as i:
            record = self.record(i)
            for word in range(self.words):
                store_word(self.emitter, record, word, -1 if word == BEGIN else 0)
        store_word(self.emitter, self.records, LENGTH, self.fn.max(old, count))

    def sum(self, word: int) -> str:
        """The sum of a word of all records."""

        def one(i: Word, state: list[str]) -> list[str]:
            value = self.fn.load_word(self.record(i), word)
            return [str(self.fn.add(state[0], value))]

        return self.fn.carried(0, self.length(), 1, ["i64"], ["0"], one)[0]

    def largest(self) -> list[str]:
        """The largest dim along every axis: that of all elements, where they have one shape."""

        def one(i: Word, state: list[str]) -> list[str]:
            dims = self.dims(self.record(i))
            return [str(self.fn.max(a, b)) for a, b in zip(state, dims, strict=True)]

        start = ["0"] * self.rank
        return self.fn.carried(0, self.length(), 1, ["i64"] * self.rank, start, one)

    def gather(self, target: str) -> None:
        """Copy all elements to `target`, one after the other."""

        def one(i: Word, state: list[str]) -> list[str]:
            record = self.record(i)
            source = self.place(self.fn.load_word(record, BEGIN))
            size = self.fn.mul(self.fn.load_word(record, COUNT), self.size)
            move(self.emitter, self.fn.offset(target, state[0], "i8"), source, size)
            return [str(self.fn.add(state[0], size))]

        self.fn.carried(0, self.length(), 1, ["i64"], ["0"], one)


def store_word(emitter: Emitter, pointer: str, word: int, value: Word) -> None:
    """Set a word of a header, a record or the like."""
    place = emitter.fn.offset(pointer, word, "i64")
    emitter.fn.emit(f"store i64 {value}, ptr {place}, align 8")


def link(emitter: Emitter, items: str, records: str) -> None:
    """Give a list its list of records."""
    place = emitter.fn.offset(items, RECORDS, "i64")
    emitter.fn.emit(f"store ptr {records}, ptr {place}, align 8")


def product_of(emitter: Emitter, dims: Sequence[Word]) -> Word:
    """The number of scalars of an element."""
    total: Word = 1
    for dim in dims:
        total = emitter.fn.mul(total, dim)
    return total
