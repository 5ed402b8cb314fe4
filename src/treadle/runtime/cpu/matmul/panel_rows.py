"""The walk of a copy of B's panels: row after row of B, each of which is in all panels."""

from __future__ import annotations

from collections.abc import Callable

from treadle.runtime.cpu.llvm_text import Function, Word
from treadle.runtime.cpu.matmul.tiles import PREFETCH

CopyRow = Callable[[str, str, Word], None]


def copy_rows(
    fn: Function, element: str, size: int, columns: Word, rows: int, copy: CopyRow,
    stride: Word = "%ldb", count: Word = "%k",
) -> None:  # fmt: skip
    """Call `copy` for the part of each row of B that is in a panel: with where it is, where the
    panel's row is, and how many of its columns there are.

    Rows of B are far apart, so no hardware prefetcher follows them: the lines of a later row are
    asked for while one is copied, as far ahead as they take to arrive.

    Args:
        element, size: the type of B's elements and its bytes.
        columns: of a panel.
        rows: rows of B that are copied together, `stride` bytes in all.
        count: how many times so many are.
    """
    tuning = fn.module.target.tuning
    far = tuning.far * tuning.copy // 2  # bytes that are read until a line has arrived
    ahead = fn.max(fn.divide(far, fn.max(fn.mul("%n", rows * size), 1)), 1)
    distance = fn.mul(stride, ahead)
    apart = fn.divide(stride, rows)
    fn.module.declare(PREFETCH)
    with fn.loop(0, count) as i:
        source = fn.offset("%b", fn.mul(i, stride), "i8")
        later = fn.offset(source, distance, "i8")
        with fn.loop(0, "%n", tuning.line // size) as column:
            first = fn.offset(later, column, element)
            for row in range(rows):
                place = fn.offset(first, fn.mul(apart, row), "i8")
                fn.emit(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 3, i32 1)")

        copy_row(fn, element, columns, source, i, copy)


def copy_row(
    fn: Function, element: str, columns: Word, source: str, number: Word, copy: CopyRow
) -> None:
    """Call `copy` for the parts of one row of B, the row of that `number` in all panels."""

    def panel(column: Word, state: list[str]) -> list[str]:
        count = fn.min(columns, fn.sub("%n", column))
        copy(fn.offset(source, column, element), state[0], count)
        return [fn.offset(state[0], "%bytes", "i8")]

    target = fn.offset("%panel", fn.mul(number, "%row"), "i8")
    fn.carried(0, "%n", columns, ["ptr"], [target], panel)
