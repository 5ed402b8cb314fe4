"""Rows: elements that lie in arrays. A pass over them is a sequence of positions.

Shuffling, skipping or repeating only changes the positions, and a batch is one gather from each
array (or a view, where its positions follow each other).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from treadle.data.elements import Leaves
from treadle.iteration import NDArray

Block: TypeAlias = "range | NDArray"  # positions; a range has step 1
BLOCK = 4096


class Store:
    """The arrays of `size` rows.

    Args:
        arrays: share their first axis; never written again.
    """

    def __init__(self, arrays: Sequence[NDArray]) -> None:
        self.arrays = list(arrays)
        self.size = len(self.arrays[0])

    def gather(self, positions: Block) -> list[NDArray]:
        """The rows at the positions, stacked."""
        if isinstance(positions, range):
            return [a[positions.start : positions.stop] for a in self.arrays]
        return [a.take(positions, 0) for a in self.arrays]

    def row(self, position: int) -> Leaves:
        return tuple([np.asarray(a[position], a.dtype) for a in self.arrays])


class Rows:
    """One pass over rows of a store.

    Args:
        blocks: the positions, in blocks.
        in_order: all rows in their order: the pass can be joined with others like it.
    """

    def __init__(self, store: Store, blocks: Iterator[Block], in_order: bool = False) -> None:
        self.store, self.blocks, self.in_order = store, blocks, in_order

    def elements(self) -> Iterator[Leaves]:
        row = self.store.row
        for block in self.blocks:
            for position in block if isinstance(block, range) else block.tolist():
                yield row(position)

    def positions(self) -> Iterator[int]:
        for block in self.blocks:
            yield from block if isinstance(block, range) else block.tolist()

    def with_blocks(self, blocks: Iterator[Block]) -> Rows:
        return Rows(self.store, blocks)


def all_rows(store: Store) -> Rows:
    def blocks() -> Iterator[Block]:
        yield range(store.size)

    return Rows(store, blocks(), in_order=True)


def regrouped(blocks: Iterator[Block], size: int) -> Iterator[Block]:
    """The positions in blocks of `size`; the last may be smaller."""
    pending: list[Block] = []
    count = 0
    for block in blocks:
        start = 0
        while len(block) - start >= size - count:
            stop = start + size - count
            pending.append(block[start:stop])
            yield joined(pending)
            pending, count, start = [], 0, stop
        if start < len(block):
            pending.append(block[start:])
            count += len(block) - start
    if pending:
        yield joined(pending)


def joined(blocks: Sequence[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    return np.concatenate([as_array(b) for b in blocks])


def as_array(block: Block) -> NDArray:
    return np.arange(block.start, block.stop) if isinstance(block, range) else block


def limited(blocks: Iterator[Block], count: int) -> Iterator[Block]:
    """The first `count` positions."""
    for block in blocks:
        if count <= 0:
            return
        yield block[:count] if len(block) > count else block
        count -= len(block)
        if count <= 0:
            return


def skipped(blocks: Iterator[Block], count: int) -> Iterator[Block]:
    """The positions after the first `count`."""
    for block in blocks:
        if count < len(block):
            yield block[count:] if count > 0 else block
        count = max(0, count - len(block))


def strided(blocks: Iterator[Block], step: int, first: int) -> Iterator[Block]:
    """Every `step`-th position from number `first` on."""
    seen = 0
    for block in blocks:
        start = (first - seen) % step
        seen += len(block)
        if start < len(block):
            yield as_array(block)[start::step]


def buffered(positions: Iterator[int], size: int = BLOCK) -> Iterator[Block]:
    """Single positions collected into blocks."""
    while True:
        block = np.fromiter(itertools.islice(positions, size), np.int64)
        if not len(block):
            return
        yield block
