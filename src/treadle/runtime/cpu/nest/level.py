"""A place in the loops of a kernel: the axes that have positions there, and the known values."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import field

from treadle.core.records import record
from treadle.kernel.ir import Axis, Expr, Load
from treadle.runtime.cpu.llvm_text import Word


@record
class Register:
    """A computed value: one part, or one for each copy of the vector loop's body."""

    parts: list[str]
    vector: bool


@record(frozen=True)
class RowBuffer:
    """Memory where the elements of a row wait for a later loop along the vector axis.

    Attributes:
        place: its address.
        filled: whether the elements are there yet.
    """

    place: str
    filled: bool = False


@record
class Level:
    """A place inside some loops. Inner levels know the values that outer ones computed.

    Attributes:
        axes: the position along every axis whose loop encloses the level; that of the vector
            axis is the element of lane 0 of copy 0.
        copies: how many vectors the level handles at once (0: the vector axis has no position).
        mask: the lanes that exist, for the end of a row.
        rows: how many rows have their code written side by side with the level's.
        ahead: the loads that also ask for the cache lines of the next row.
        values: the registers of expressions.
        splats: scalars in every lane of a vector.
        words: parts of flat indices.
        kept: the row buffers of values.
        passes: the loads of each loop along the vector axis that follows at this level.
    """

    outer: Level | None
    axes: dict[Axis, Word]
    copies: int = 0
    mask: str | None = None
    rows: int = 1
    ahead: AbstractSet[Load] = frozenset()
    values: dict[Expr, Register] = field(default_factory=dict)
    splats: dict[Expr, str] = field(default_factory=dict)
    words: dict[object, Word] = field(default_factory=dict)
    kept: dict[Expr, RowBuffer] = field(default_factory=dict)
    passes: list[set[Load]] = field(default_factory=list)

    @staticmethod
    def outermost() -> Level:
        """The level outside of all loops."""
        return Level(None, {})

    def inside(
        self, axis: Axis, position: Word, copies: int | None = None, mask: str | None = None
    ) -> Level:
        """The level in the loop over `axis`; with `copies` in the loop along the vector axis."""
        axes = {**self.axes, axis: position}
        if copies is None:
            return Level(self, axes, self.copies, self.mask, self.rows, self.ahead)
        return Level(self, axes, copies, mask, self.rows, self.ahead)

    def nested(self) -> Level:
        """A level at the same place, for values that only a part of the code there knows."""
        return Level(self, self.axes, self.copies, self.mask, self.rows, self.ahead)

    def beside(self, rows: int) -> Level:
        """A level at the same place, for so many rows side by side."""
        level = self.nested()
        level.rows = rows
        return level

    def find(self, expr: Expr) -> Register | None:
        level: Level | None = self
        while level is not None:
            if expr in level.values:
                return level.values[expr]
            level = level.outer
        return None

    def find_splat(self, expr: Expr) -> str | None:
        level: Level | None = self
        while level is not None:
            if expr in level.splats:
                return level.splats[expr]
            level = level.outer
        return None

    def find_word(self, key: object) -> Word | None:
        level: Level | None = self
        while level is not None:
            if key in level.words:
                return level.words[key]
            level = level.outer
        return None

    def find_kept(self, expr: Expr) -> RowBuffer | None:
        level: Level | None = self
        while level is not None:
            if expr in level.kept:
                return level.kept[expr]
            level = level.outer
        return None

    def has(self, expr: Expr) -> bool:
        """Whether every axis of `expr` has a position here."""
        return expr.axes <= self.axes.keys()
