"""Tiles that copy B's panel while they compute with it.

The first tile of a panel reads B where it is. What it has loaded anyway it also stores, one step of
k after another, where the tiles below it find their panel: the copy costs no loads and no loop of
its own, and rows of B arrive while there are products to compute.
"""

from __future__ import annotations

from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.matmul.tiles import Body


class Filling(Body):
    """A tile of one segment, whose `offsets` say where the copy goes instead: its address, and the
    bytes from one of its rows to the next. It writes whole vectors."""

    def _segment_starts(self, b: str, number: str) -> list[str]:
        fn = self.fn
        self.panel = fn.load_word("%offsets", 0, "ptr")
        self.panel_row = fn.load_word("%offsets", 1)
        return [b, "%a", *(fn.offset("%a", group, "i8") for group in self.groups)]

    def _row_of_b(self, row: str, masks: list[str], step: Word) -> list[str]:
        vectors = super()._row_of_b(row, masks, step)
        target = self.fn.offset(self.panel, self.fn.mul(self.panel_row, step), "i8")
        for j, vector in enumerate(vectors):
            self._store(vector, self.fn.offset(target, j * self.width, self.element), "")
        return vectors
