"""Sums of the outputs of each channel: the input gradient where channels have several outputs."""

from __future__ import annotations

from treadle.runtime.cpu.lanes import shuffled
from treadle.runtime.cpu.library_text import ELEMENT_BYTES
from treadle.runtime.cpu.llvm_text import Function, Module, Word
from treadle.runtime.cpu.matmul.tiles import lanes


def add_gather(module: Module, element: str, multiplier: int) -> None:
    """``@gather_sums`` (source, target, channels): ``target[c] = sum over q < multiplier of
    source[c * multiplier + q]``, neighbours before others."""
    _Gather(Function(module), element, multiplier).define()


class _Gather:
    def __init__(self, fn: Function, element: str, multiplier: int) -> None:
        self.fn, self.element, self.multiplier = fn, element, multiplier
        self.size, self.width = ELEMENT_BYTES[element], lanes(fn.module.target, element)

    def define(self) -> None:
        fn, width, m = self.fn, self.width, self.multiplier
        whole: Word = 0
        if m <= width:
            whole = fn.mul(fn.divide("%channels", width), width)
            with fn.loop(0, whole, width) as channel:
                first = fn.mul(channel, m)
                vectors = [self._load(fn.add(first, v * width), width) for v in range(m)]
                self._store(self._folded(vectors), channel, width)
        with fn.loop(whole, "%channels") as channel:
            self._store(self._sum_of_one(fn.mul(channel, m)), channel, 1)
        fn.emit("ret void")
        fn.define("gather_sums", "void @{}(ptr %source, ptr %target, i64 %channels)", "internal")

    # -- vectors of channels -----------------------------------------------------------------

    def _folded(self, vectors: list[str]) -> str:
        """The lanes of all vectors, one after another, summed up in runs of ``len(vectors)``."""
        if len(vectors) == 1:
            return vectors[0]
        if len(vectors) % 2 == 0:
            pairs = [
                self._add(self._picked([a, b], 0, 2), self._picked([a, b], 1, 2), self.width)
                for a, b in zip(vectors[::2], vectors[1::2], strict=True)
            ]
            return self._folded(pairs)
        total = self._picked(vectors, 0, len(vectors))
        for first in range(1, len(vectors)):
            total = self._add(total, self._picked(vectors, first, len(vectors)), self.width)
        return total

    def _picked(self, vectors: list[str], first: int, step: int) -> str:
        """Every `step`-th of the lanes of all vectors."""
        width, places = self.width, [first + step * i for i in range(self.width)]
        found = ""
        for v, vector in enumerate(vectors):
            inside = [p // width == v for p in places]
            if not any(inside):
                continue
            new = [p % width for p in places]
            if not found:
                found = shuffled(self.fn, self._kind(self.width), vector, vector, new)
                continue
            order = [
                n + width if i else lane
                for lane, (i, n) in enumerate(zip(inside, new, strict=True))
            ]
            found = shuffled(self.fn, self._kind(self.width), found, vector, order)
        return found

    # -- one channel -------------------------------------------------------------------------

    def _sum_of_one(self, first: Word) -> str:
        """Vectors of neighbours added up, halves of the sum, then the others one by one."""
        fn, width, m = self.fn, self.width, self.multiplier
        many = m // width
        total = "-0.0"
        if many:
            vector = fn.carried(
                width, many * width, width, [self._kind(width)], [self._load(first, width)],
                lambda i, s: [self._add(s[0], self._load(fn.add(first, i), width), width)],
                most=4,
            )[0]  # fmt: skip
            total = self._across(vector)
        return fn.carried(
            many * width, m, 1, [self.element], [total],
            lambda i, s: [self._add(s[0], self._load(fn.add(first, i), 1), 1)], most=8,
        )[0]  # fmt: skip

    def _across(self, vector: str) -> str:
        fn, width = self.fn, self.width
        while width > 2:
            kind, half = self._kind(width), width // 2
            low, high = (
                shuffled(fn, kind, vector, "poison", range(start, start + half))
                for start in (0, half)
            )
            vector, width = self._add(low, high, half), half
        ends = [fn.value(f"extractelement {self._kind(2)} {vector}, i64 {i}") for i in (0, 1)]
        return self._add(ends[0], ends[1], 1)

    # -- elements ----------------------------------------------------------------------------

    def _kind(self, width: int) -> str:
        return f"<{width} x {self.element}>" if width > 1 else self.element

    def _load(self, place: Word, width: int) -> str:
        pointer = self.fn.offset("%source", place, self.element)
        return self.fn.value(f"load {self._kind(width)}, ptr {pointer}, align {self.size}")

    def _store(self, value: str, channel: Word, width: int) -> None:
        pointer = self.fn.offset("%target", channel, self.element)
        self.fn.emit(f"store {self._kind(width)} {value}, ptr {pointer}, align {self.size}")

    def _add(self, a: str, b: str, width: int) -> str:
        return self.fn.value(f"fadd {self._kind(width)} {a}, {b}")
