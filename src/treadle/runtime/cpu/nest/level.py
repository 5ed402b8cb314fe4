"""Where emission stands: which axes have values, and what has been computed there."""

from __future__ import annotations

from dataclasses import field

from treadle.core.records import record
from treadle.kernel.ir import Axis, Expr, Load
from treadle.runtime.cpu.llvm_text import Word


@record
class Register:
    """A computed value: one part, or one a copy of the vector loop's body."""

    parts: list[str]
    vector: bool


@record
class Level:
    """A place inside some loops. Inner levels see what outer ones computed.

    Attributes:
        axes: the position along every axis whose loop encloses the level; that of the vector
            axis is the element of lane 0 of copy 0.
        copies: how many vectors the level handles at once (0: the vector axis has no position).
        mask: the lanes that exist, for the end of a row.
        passes: what each loop along the vector axis that follows at this level has loaded.
    """

    outer: Level | None
    axes: dict[Axis, Word]
    copies: int = 0
    mask: str | None = None
    values: dict[Expr, Register] = field(default_factory=dict)
    splats: dict[Expr, str] = field(default_factory=dict)
    words: dict[object, Word] = field(default_factory=dict)
    kept: dict[Expr, tuple[str, bool]] = field(default_factory=dict)  # row buffers: filled or not
    passes: list[set[Load]] = field(default_factory=list)

    def inside(
        self, axis: Axis, position: Word, copies: int | None = None, mask: str | None = None
    ) -> Level:
        """The level in the loop over `axis`."""
        return Level(
            self,
            {**self.axes, axis: position},
            self.copies if copies is None else copies,
            self.mask if copies is None else mask,
        )

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

    def find_kept(self, expr: Expr) -> tuple[Level, str, bool] | None:
        """The row buffer of a value: the level that owns it, its address, whether it is filled."""
        level: Level | None = self
        while level is not None:
            if expr in level.kept:
                return level, *level.kept[expr]
            level = level.outer
        return None

    def has(self, expr: Expr) -> bool:
        """Whether every axis of `expr` has a position here."""
        return expr.axes <= self.axes.keys()
