"""Loops along the vector axis in stages, where their chains of operations are long (`stages`)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from treadle.kernel.ir import Axis, Expr, Reduce, postorder
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.level import Level
from treadle.runtime.cpu.nest.loops import Body, Sets, States, flatten, unflatten
from treadle.runtime.cpu.nest.stages import block_vectors, longest_chain, stages
from treadle.runtime.cpu.nest.values import Values


class Staging(Values, ABC):
    """Adds the staged form of the loop along the vector axis."""

    @abstractmethod
    def _settle(self, level: Level, roots: list[Expr], rows: list[list[Expr]]) -> None:
        """Compute what can be computed at a level."""

    def _staged_loop(
        self, level: Level, axis: Axis, start: Word, stop: Word, sets: Sets, body: Body,
        roots: list[Expr], states: States | None = None, broad: int = 1,
    ) -> States:  # fmt: skip
        """`_vector_loop` with a body that evaluates `roots`: a loop over blocks, which begin at
        multiples of a vector, and in each a loop over its vectors for every stage."""
        parts = self._stages(level, roots, axis)
        if not parts:
            return self._vector_loop(level, axis, start, stop, sets, body, states, broad)
        fn, size = self.fn, self._block * self.shape.lanes
        places = self._waiting(level, [e for part in parts for e in part])
        kinds = [t for accumulators in sets for a in accumulators for t in a.types]

        def block(origin: Word, flat: list[str]) -> list[str]:
            begin, end = fn.max(origin, start), fn.min(fn.add(origin, size), stop)
            here = Level(level, level.axes, level.copies, level.mask)
            for e, (place, whole_row) in places.items():
                back = 0 if whole_row else fn.mul(origin, -(8 if e.dtype.size == 8 else 4))
                here.kept[e] = (fn.offset(place, back, "i8"), False)
            self._fill(here, axis, begin, end, parts)
            now = unflatten(flat, sets)
            now = self._vector_loop(here, axis, begin, end, sets, body, now, singles=False)
            return flatten(now)

        first = self._multiple(start, self.shape.lanes)
        flat = self._carried(first, stop, size, kinds, flatten(states or []), block)
        return unflatten(flat, sets)

    def _stages(self, level: Level, roots: list[Expr], axis: Axis) -> list[list[Expr]]:
        """The values that wait between stages; none where a row is not worth a block."""
        if self._is_short(axis) or self.shape.columns or self.side_by_side > 1:
            return []
        exprs = self._inside(level, roots)
        return [] if exprs is None else self._cut(exprs, axis)

    def _is_short(self, axis: Axis) -> bool:
        return isinstance(axis.extent, int) and axis.extent < self._block // 2 * self.shape.lanes

    def _cut(self, exprs: list[Expr], axis: Axis) -> list[list[Expr]]:
        return stages(exprs, axis, longest_chain(self.tuning))

    @property
    def _block(self) -> int:
        """Vectors of a block."""
        return block_vectors(self.tuning)

    def _has_stages(self, roots: list[Expr], axis: Axis) -> bool:
        """Whether a loop along the axis somewhere below `roots` goes in stages."""
        exprs = [e for e in postorder(roots) if axis in e.axes and not isinstance(e, Reduce)]
        return not self._is_short(axis) and bool(self._cut(exprs, axis))

    def _inside(self, level: Level, roots: list[Expr]) -> list[Expr] | None:
        """What a loop at the level computes, operands first; None where a reduction is inside."""
        done: dict[Expr, None] = {}
        stack = [(r, False) for r in reversed(roots)]
        while stack:
            e, expanded = stack.pop()
            kept = level.find_kept(e)
            if e in done or level.find(e) is not None or (kept is not None and kept[2]):
                continue
            if isinstance(e, Reduce):
                return None
            if expanded:
                done[e] = None
                continue
            stack.append((e, True))
            stack += [(c, False) for c in reversed(e.children)]
        return list(done)

    def _waiting(self, level: Level, values: list[Expr]) -> dict[Expr, tuple[str, bool]]:
        """Where values wait for later stages: in the buffer of their row if they have one (True),
        or else in one for a block."""
        size = (self._block + 1) * self.shape.lanes * 8
        places = {}
        for e in values:
            kept = level.find_kept(e)
            if kept is None:
                places[e] = self.fn.alloca(f"[{size} x i8], align 64"), False
            else:
                places[e] = kept[1], True
        return places

    def _fill(
        self, level: Level, axis: Axis, begin: Word, end: Word, parts: list[list[Expr]]
    ) -> None:
        """The loops of all stages but the last."""
        streamed, self.past_caches = self.past_caches, frozenset()
        for part in parts:
            self._vector_loop(level, axis, begin, end, [], self._filling(part), singles=False)
            level.kept |= {e: (level.kept[e][0], True) for e in part}
            self.ahead = frozenset()  # the first stage has asked for the next row
        self.past_caches = streamed

    def _filling(self, kept: list[Expr]) -> Body:
        """The body of a loop that computes values for a later one."""

        def fill(level: Level, state: States) -> States:
            self._settle(level, kept, [])
            for e in kept:
                self.evaluate(e, level)
            return state

        return fill
