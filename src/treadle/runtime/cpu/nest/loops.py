"""Loops along the vector axis: several vectors at a time, then single ones, then a masked rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from treadle.kernel.ir import Axis
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.accumulator import Accumulator
from treadle.runtime.cpu.nest.function import KernelFunction
from treadle.runtime.cpu.nest.level import Level

Sets: TypeAlias = list[list[Accumulator]]  # accumulators of every copy
States: TypeAlias = list[list[list[str]]]  # the registers of each of them
Body: TypeAlias = Callable[[Level, States], States]


class VectorLoops:
    """Writes loops along the vector axis.

    Args:
        aligned: whether whole vectors are to begin at multiples of their size, as stores past the
            caches need.
    """

    def __init__(self, code: KernelFunction, aligned: bool = False) -> None:
        self.code, self.fn, self.aligned = code, code.fn, aligned

    def emit(
        self, level: Level, axis: Axis, start: Word, stop: Word, sets: Sets, body: Body,
        states: States | None = None, broad: int = 1, singles: bool = True, aligned: bool = True,
    ) -> States:  # fmt: skip
        """A loop over [start, stop) whose body changes the registers of accumulators.

        Args:
            sets: for every copy of the body its accumulators.
            states: their registers before the loop.
            broad: vectors to take at a time first, where there are so many.
            singles: write code for single whole vectors; otherwise the masked code is for these
                too.
            aligned: whether the loop stores anything that may have to be aligned.
        """
        fn, lanes = self.fn, self.code.shape.lanes
        copies = len(sets) or self.copies(level, start, stop)
        kinds = state_types(sets)

        def run(count: int, end: Word | None) -> Callable[[Word, list[str]], list[str]]:
            def one(i: Word, flat: list[str]) -> list[str]:
                current = unflatten(flat, sets)
                lane_mask = None if end is None else self.code.memory.lane_mask(fn.sub(end, i))
                inner = level.inside(axis, i, count, lane_mask)
                updated = body(inner, current[:count]) if sets else body(inner, [])
                return flatten([*updated, *current[count:]]) if sets else []

            return one

        flat = flatten(states or [])
        if aligned and self.aligned and not (isinstance(start, int) and start % lanes == 0):
            first = fn.min(self.code.multiple(fn.add(start, lanes - 1), lanes), stop)
            flat = fn.carried(start, first, lanes, kinds, flat, run(1, first))
            start = first
        for count in (broad, copies) if broad > copies else (copies,):
            if count > 1:
                after = self.code.end_of_whole(start, stop, count * lanes)
                flat = fn.carried(start, after, count * lanes, kinds, flat, run(count, None))
                start = after
        if singles:
            after = self.code.end_of_whole(start, stop, lanes)
            flat = fn.carried(start, after, lanes, kinds, flat, run(1, None))
            start = after
        if not (isinstance(stop, int) and start == stop):
            flat = fn.carried(start, stop, lanes, kinds, flat, run(1, stop))
        return unflatten(flat, sets)

    def copies(self, level: Level, start: Word, stop: Word) -> int:
        """How many vectors a loop takes at once, a power of 2."""
        most = self.code.tuning.unroll
        if isinstance(start, int) and isinstance(stop, int):
            vectors = (stop - start) // self.code.shape.lanes
            return 1 << max(1, min(most // level.rows, vectors)).bit_length() - 1
        return most


def state_types(sets: Sets) -> list[str]:
    """The types of all registers, in the order of `flatten`."""
    return [t for accumulators in sets for a in accumulators for t in a.types]


def flatten(states: States) -> list[str]:
    """All registers in one list, as loops carry them."""
    return [part for accumulators in states for state in accumulators for part in state]


def unflatten(flat: Sequence[str], sets: Sets) -> States:
    """The reverse of `flatten`."""
    parts = iter(flat)
    return [[[next(parts) for _ in a.types] for a in accumulators] for accumulators in sets]
