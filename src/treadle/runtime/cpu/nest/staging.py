"""Loops along the vector axis in stages, where their chains of operations are long (`stages`)."""

from __future__ import annotations

from treadle.kernel.ir import Axis, Expr, Reduce, postorder
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.function import KernelFunction
from treadle.runtime.cpu.nest.level import Level, RowBuffer
from treadle.runtime.cpu.nest.loops import (
    Body,
    Sets,
    States,
    VectorLoops,
    flatten,
    state_types,
    unflatten,
)  # fmt: skip
from treadle.runtime.cpu.nest.row_buffers import element_bytes
from treadle.runtime.cpu.nest.stages import block_vectors, longest_chain, stages
from treadle.runtime.cpu.nest.values import Values
from treadle.runtime.cpu.nest.walks import unknown


class StagedLoops:
    """Writes a loop along the vector axis as a loop over blocks, which begin at multiples of a
    vector, and in each block a loop over its vectors for every stage."""

    def __init__(self, code: KernelFunction, values: Values, vectors: VectorLoops) -> None:
        self.code, self.values, self.vectors = code, values, vectors
        self.block = block_vectors(code.tuning)  # the vectors of a block

    def emit(
        self, level: Level, axis: Axis, start: Word, stop: Word, sets: Sets, body: Body,
        roots: list[Expr], states: States | None = None, broad: int = 1,
    ) -> States:  # fmt: skip
        """`VectorLoops.emit` with a body that evaluates `roots`, in stages where that pays."""
        parts = self.parts(level, roots, axis)
        if not parts:
            return self.vectors.emit(level, axis, start, stop, sets, body, states, broad)
        fn, size = self.code.fn, self.block * self.code.shape.lanes
        buffers = self._buffers(level, [e for part in parts for e in part])

        def block(origin: Word, flat: list[str]) -> list[str]:
            begin, end = fn.max(origin, start), fn.min(fn.add(origin, size), stop)
            here = level.nested()
            for e, (place, of_row) in buffers.items():
                back = 0 if of_row else fn.mul(origin, -element_bytes(e))
                here.kept[e] = RowBuffer(fn.offset(place, back, "i8"))
            self._fill(here, axis, begin, end, parts)
            now = unflatten(flat, sets)
            return flatten(
                self.vectors.emit(here, axis, begin, end, sets, body, now, singles=False)
            )

        first = self.code.multiple(start, self.code.shape.lanes)
        kinds = state_types(sets)
        return unflatten(fn.carried(first, stop, size, kinds, flatten(states or []), block), sets)

    def parts(self, level: Level, roots: list[Expr], axis: Axis) -> list[list[Expr]]:
        """The values that wait between stages; none where a row is not worth a block."""
        if self._is_short(axis) or self.code.shape.columns or level.rows > 1:
            return []
        found = unknown(roots, level, lambda e: isinstance(e, Reduce) or _is_kept(e, level))
        if any(isinstance(e, Reduce) for e in found):
            return []
        return self._cut([e for e in found if not _is_kept(e, level)], axis)

    def has_stages(self, roots: list[Expr], axis: Axis) -> bool:
        """Whether a loop along the axis somewhere below `roots` goes in stages."""
        exprs = [e for e in postorder(roots) if axis in e.axes and not isinstance(e, Reduce)]
        return not self._is_short(axis) and bool(self._cut(exprs, axis))

    def _is_short(self, axis: Axis) -> bool:
        least = self.block // 2 * self.code.shape.lanes
        return isinstance(axis.extent, int) and axis.extent < least

    def _cut(self, exprs: list[Expr], axis: Axis) -> list[list[Expr]]:
        return stages(exprs, axis, longest_chain(self.code.tuning))

    def _buffers(self, level: Level, values: list[Expr]) -> dict[Expr, tuple[str, bool]]:
        """Where values wait for later stages: in the buffer of their row if they have one (True),
        or else in one for a block."""
        size = (self.block + 1) * self.code.shape.lanes * 8
        buffers = {}
        for e in values:
            row = level.find_kept(e)
            if row is None:
                buffers[e] = self.code.fn.alloca(f"[{size} x i8], align 64"), False
            else:
                buffers[e] = row.place, True
        return buffers

    def _fill(
        self, level: Level, axis: Axis, begin: Word, end: Word, parts: list[list[Expr]]
    ) -> None:
        """The loops of all stages but the last, which store into the buffers of waiting values."""
        for part in parts:

            def fill(inner: Level, state: States, part: list[Expr] = part) -> States:
                self.values.hoist(inner, part)
                return state

            self.vectors.emit(level, axis, begin, end, [], fill, singles=False, aligned=False)
            level.kept |= {e: RowBuffer(level.kept[e].place, filled=True) for e in part}
            level.ahead = frozenset()  # the first stage has asked for the next row


def _is_kept(e: Expr, level: Level) -> bool:
    row = level.find_kept(e)
    return row is not None and row.filled
