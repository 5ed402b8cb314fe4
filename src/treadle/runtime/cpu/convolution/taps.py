"""Tables of taps: where the segments of a tile's sum read the pixels and the filters."""

from __future__ import annotations

from treadle.runtime.cpu.llvm_text import Function, Word


class Table:
    """Pairs of byte offsets that generated code fills, one pair per tap."""

    def __init__(self, fn: Function, pointer: Word) -> None:
        self.fn, self.pointer = fn, str(pointer)
        self.count = fn.alloca("i64, align 8")

    def clear(self) -> None:
        self.fn.emit(f"store i64 0, ptr {self.count}, align 8")

    def append(self, pixels: Word, filters: Word) -> None:
        """Add a tap with its offsets."""
        fn = self.fn
        count = self.length()
        for i, offset in enumerate((pixels, filters)):
            place = fn.offset(self.pointer, fn.add(fn.mul(count, 2), i), "i64")
            fn.emit(f"store i64 {offset}, ptr {place}, align 8")
        fn.emit(f"store i64 {fn.add(count, 1)}, ptr {self.count}, align 8")

    def length(self) -> str:
        return self.fn.load_word(self.count)
