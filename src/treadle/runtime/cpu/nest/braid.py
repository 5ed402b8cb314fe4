"""Rows side by side: the code of several rows as one, whose loops advance all of them.

A row that is reduced and then spread again waits for the result of each of its passes. The waits
of independent rows overlap when their instructions stand next to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from treadle.runtime.cpu.llvm_text import Block, Function

T = TypeVar("T")


def braid(function: Function, emit: Callable[[T], object], copies: Iterable[T]) -> None:
    """Emit the same code for each of the copies, line by line in turn, with the loops of the first.

    The copies must go through the same loops equally often. Where a copy branches on data they
    follow one another.
    """
    parts: list[list[Block]] = []
    for copy in copies:
        with function.apart() as part:
            emit(copy)
        parts.append(part)
    if _go_together(parts):
        function.append(_merged(parts))
        function.block = function.blocks[-1].name
    else:
        for part in parts:
            function.append(part)


def _go_together(parts: Sequence[list[Block]]) -> bool:
    """Whether the copies have the same blocks, and branch on counters of loops only."""
    sizes = [[len(block.lines) for block in part] for part in parts]
    return all(s == sizes[0] for s in sizes) and all(
        block.end and not block.on_data for block in parts[0][:-1]
    )


def _merged(parts: Sequence[list[Block]]) -> list[Block]:
    """The blocks of the first copy, each with the parameters and the lines of all copies."""
    merged = []
    for copies in zip(*parts, strict=True):
        first = copies[0]
        block = Block(first.name, [p for copy in copies for p in copy.parameters])
        for number, (source, _) in enumerate(first.ways):
            block.ways.append((source, [v for copy in copies for v in copy.ways[number][1]]))
        lines = zip(*(copy.lines for copy in copies), strict=True)
        block.lines = [line for row in lines for line in row]
        block.end, block.on_data = first.end, first.on_data
        merged.append(block)
    return merged
