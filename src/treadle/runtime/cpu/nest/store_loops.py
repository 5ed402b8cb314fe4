"""The loops around a kernel's stores, from the outermost axis to the vectors."""

from __future__ import annotations

import math

from treadle.kernel.ir import Axis, Expr, Reduce, Store, postorder
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.bounds import Bounds
from treadle.runtime.cpu.nest.braid import braid
from treadle.runtime.cpu.nest.function import KernelFunction
from treadle.runtime.cpu.nest.level import Level
from treadle.runtime.cpu.nest.loops import Body, States
from treadle.runtime.cpu.nest.pieces import pieces
from treadle.runtime.cpu.nest.reductions import Reductions, with_next_row_ahead
from treadle.runtime.cpu.nest.shape import extent_estimate, flat_stride, is_costly
from treadle.runtime.cpu.nest.staging import StagedLoops
from treadle.runtime.cpu.nest.stores import Stores, roots_of
from treadle.runtime.cpu.nest.tiles import TileLoops
from treadle.runtime.cpu.nest.values import Values

# No machine changes this: the length of code.
FEW_ELEMENTS = 4096  # which are not worth the code for several rows


class StoreLoops:
    """Writes the loops of a kernel without scans."""

    def __init__(
        self, code: KernelFunction, bounds: Bounds, values: Values, reductions: Reductions,
        staged: StagedLoops, stores: Stores, tiles: TileLoops,
    ) -> None:  # fmt: skip
        self.code, self.fn, self.shape, self.bounds = code, code.fn, code.shape, bounds
        self.values, self.reductions, self.staged = values, reductions, staged
        self.stores, self.tiles = stores, tiles

    def emit(self, stores: list[Store], level: Level) -> None:
        """Everything that stores need here and inside: passes, then stores, then inner loops."""
        groups: dict[Axis, list[Store]] = {}
        here = [s for s in stores if s.axes <= level.axes.keys()]
        for s in stores:
            if s not in here:
                free = self.shape.order(s.axes - level.axes.keys(), self.code.kernel)
                groups.setdefault(free[0], []).append(s)
        rows = [roots_of(group) for axis, group in groups.items() if axis is self.shape.vector]
        coming = [
            s for a, group in groups.items() if a is self.shape.vector for s in self._new(group)
        ]
        self.reductions.settle(level, roots_of(stores), rows, coming)
        if here:
            self.stores.emit(here, level)
        for axis, group in groups.items():
            if axis is self.shape.vector:
                self._pieces(level, axis, group)
            elif axis is self.shape.tile:
                self.tiles.emit(level, axis, group)
            else:
                self._rows(level, axis, group)

    def _new(self, stores: list[Store]) -> list[Store]:
        """Those of the stores along the vector axis that fill memory which nothing has read."""
        vector = self.shape.vector
        known = {*self.code.kernel.inputs, *self.stores.streamed}
        return [
            s
            for s in stores
            if vector
            and s.buffer not in known
            and not s.computed
            and flat_stride(s.buffer, s.index, vector) == 1
        ]

    # ---- rows
    def _rows(self, level: Level, axis: Axis, stores: list[Store]) -> None:
        """A plain loop, several rows at a time where these are side by side."""
        start, stop = self.bounds.of(axis)
        together = self._rows_together(level, axis, stores)
        level = level.beside(together)

        def row(i: Word, state: list[str]) -> list[str]:
            self.bounds.enter(axis, i)
            self.emit(stores, level.inside(axis, i))
            return state

        def rows(i: Word, state: list[str]) -> list[str]:
            places = [self.fn.add(i, k) for k in range(together)]
            braid(self.fn, lambda place: row(place, []), places)
            return state

        # Few elements are not worth the code; sums have the same order either way.
        many = math.prod(extent_estimate(a.extent) for a in self.code.kernel.axes) >= FEW_ELEMENTS
        if together > 1 and many:
            whole = self.code.end_of_whole(start, stop, together)
            self.fn.carried(start, whole, together, [], [], rows)
            start = whole
        self.fn.carried(start, stop, 1, [], [], row)

    def _rows_together(self, level: Level, axis: Axis, stores: list[Store]) -> int:
        """How many rows to compute side by side: some where rows along the vector axis are
        reduced, are of a known size, and are all that the loop over `axis` contains."""
        vector = self.shape.vector
        exprs = postorder([s.value for s in stores])
        reduces = [e for e in exprs if isinstance(e, Reduce)]
        rows = [e for e in reduces if e.over == (vector,) and axis in e.axes]
        inside = frozenset().union(*(s.axes for s in stores)) - level.axes.keys() - {axis}
        if not rows or len(rows) < len(reduces) or not inside <= {vector}:
            return 1
        if vector is None or not isinstance(vector.extent, int):
            return 1
        if self.staged.has_stages([s.value for s in stores], vector):
            return 1
        vectors = vector.extent // self.shape.lanes
        costly = any(is_costly(e) and vector in e.axes for e in exprs)
        return self.code.tuning.unroll if vectors <= (64 if costly else 16) else 1

    # ---- the loop along the vector axis
    def _pieces(self, level: Level, axis: Axis, stores: list[Store]) -> None:
        """The loop along the vector axis, in pieces where the stored values change along it."""
        start, stop = self.bounds.of(axis)
        for first, last, part in pieces(stores, axis):
            begin = start if first == 0 else self.fn.max(start, first)
            end = stop if last == axis.extent else self.fn.min(stop, self.code.dim(last))
            self._vectors(level, axis, begin, end, part)

    def _vectors(
        self, level: Level, axis: Axis, start: Word, stop: Word, stores: list[Store]
    ) -> None:
        roots = roots_of(stores)
        self.values.splat_ahead(level, roots)
        ahead = with_next_row_ahead(level, roots)
        body = self._columns(stores) if self.shape.columns else self.stores.storing(stores)
        self.staged.emit(ahead, axis, start, stop, [], body, roots, broad=self._breadth(roots))

    def _columns(self, stores: list[Store]) -> Body:
        """The body of the loop over blocks of columns: passes down a block, then its stores."""

        def block(level: Level, state: States) -> States:
            self.emit(stores, level)
            return state

        return block

    def _breadth(self, roots: list[Expr]) -> int:
        """How many vectors to take at once down columns that are only summed up: as many as there
        are registers for, so that as much of each row is read as possible."""
        reduces = [e for e in postorder(roots) if isinstance(e, Reduce)]
        if not reduces or self.shape.columns:
            return 1
        down = all(self.shape.vector not in e.over for e in reduces)
        cheap = not any(map(is_costly, postorder([e.value for e in reduces])))
        long = all(math.prod(extent_estimate(a.extent) for a in e.over) > 32 for e in reduces)
        if not (down and cheap and long):
            return 1
        fitting = [n for n in (16, 8) if n * len(reduces) <= self.code.accumulators]
        return fitting[0] if fitting else 1
