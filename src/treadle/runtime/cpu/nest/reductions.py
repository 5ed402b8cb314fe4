"""Reductions: at each place in the loops they run in passes, before the values that need them.

Reductions that belong to one place and run over the same axes run together; costly values that
several passes along the vector axis need are kept in a row buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.records import record
from treadle.core.shapes import product
from treadle.kernel.ir import Axis, Expr, Iota, Load, Reduce, Store, postorder
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.accumulator import Accumulator
from treadle.runtime.cpu.nest.function import KernelFunction
from treadle.runtime.cpu.nest.level import Level, Register, RowBuffer
from treadle.runtime.cpu.nest.loops import Sets, States, flatten, state_types, unflatten
from treadle.runtime.cpu.nest.places import Places
from treadle.runtime.cpu.nest.row_buffers import RowBuffers
from treadle.runtime.cpu.nest.shape import CHUNK, extent_estimate
from treadle.runtime.cpu.nest.staging import StagedLoops
from treadle.runtime.cpu.nest.values import Values
from treadle.runtime.cpu.nest.walks import evaluated

_MOST_UNROLLED = 32  # trips of small reduction loops that are written out: the length of code


@record(frozen=True)
class Span:
    """A part of an axis: positions from `first` to `end`."""

    axis: Axis
    first: Word
    end: Word


class Reductions:
    """Computes reductions at a level and notes their values there."""

    def __init__(
        self, code: KernelFunction, places: Places, rows: RowBuffers, values: Values,
        staged: StagedLoops,
    ) -> None:  # fmt: skip
        self.code, self.fn, self.shape = code, code.fn, code.shape
        self.places, self.rows, self.values, self.staged = places, rows, values, staged

    def settle(
        self, level: Level, roots: list[Expr], loops: Sequence[list[Expr]] = (),
        coming: Sequence[Store] = (),
    ) -> None:  # fmt: skip
        """Compute the values below the roots that can be computed at the level: scalars, and
        reductions in passes.

        Args:
            loops: the roots of loops along the vector axis that follow at this level.
            coming: their stores of whole rows to memory that nothing has read.
        """
        passes = self._passes(level, roots)
        vector = self.shape.vector
        if vector is not None and vector not in level.axes:
            along = [[r.value for r in group] for group in passes if group[0].over == (vector,)]
            self.rows.plan(level, [*along, *loops])
        last = next((g for g in reversed(passes) if g[0].over == (vector,)), None)
        for group in passes:
            self.values.hoist(level, [r.value for r in group])
            self._reduce(group, level, coming if group is last else ())
        self.values.hoist(level, roots)

    def _passes(self, level: Level, roots: list[Expr]) -> list[list[Reduce]]:
        """The reductions to run here, grouped: each group needs only earlier ones."""
        found = self.values.below(roots, level)
        pending = [e for e in found if isinstance(e, Reduce) and level.has(e)]
        below = {e: {x for x in postorder([e.value]) if isinstance(x, Reduce)} for e in pending}
        groups: list[list[Reduce]] = []
        while pending:
            waiting = set(pending)
            ready = [e for e in pending if not (below[e] & waiting)]
            group = [
                e
                for e in ready
                if e.over == ready[0].over
                and self.code.is_wide(e, level) == self.code.is_wide(ready[0], level)
            ]
            groups.append(group)
            pending = [e for e in pending if e not in group]
        return groups

    def _reduce(self, group: list[Reduce], level: Level, coming: Sequence[Store]) -> None:
        """Run reductions over the same axes together and note their results at the level."""
        if self._may_be_short(group, level) and not coming:
            for reduce, state in zip(group, self._short_or_long(group, level), strict=True):
                result = Accumulator(reduce, self.code.scalar).result(state)
                level.values[reduce] = Register([result], False)
            return
        states, sets = self.accumulate(group, level, coming=coming)
        for i, reduce in enumerate(group):
            level.values[reduce] = self._reduced(i, reduce, sets, states)
        if group[0].over == (self.shape.vector,):
            for e, row in list(level.kept.items()):
                if any(e in evaluated([r.value]) for r in group):
                    level.kept[e] = RowBuffer(row.place, filled=True)

    # ---- rows that one vector may hold
    def _may_be_short(self, group: list[Reduce], level: Level) -> bool:
        """Whether a run may find that a vector holds all elements, of a kernel of few points: then
        the loops for more of them would take longer than their work."""
        vector = self.shape.vector
        unknown = vector is not None and not isinstance(vector.extent, int)
        plain = not level.kept and not any(r.op in ("argmax", "argmin") for r in group)
        return self.code.kernel.few and unknown and plain and group[0].over == (vector,)

    def _short_or_long(self, group: list[Reduce], level: Level) -> list[list[str]]:
        """The states of reductions along the vector axis, of all lanes, as scalars. One vector has
        the bits of the loops: what these add to it are neutral elements."""
        fn, vector = self.fn, self.shape.vector
        assert vector is not None
        extent = self.code.dim(vector.extent)
        scalars = [Accumulator(r, self.code.scalar) for r in group]
        after = fn.block_of("reduced", [t for a in scalars for t in a.types])
        short, more = fn.block_of("short", []), fn.block_of("long", [])
        fn.fork(str(fn.compare("sle", extent, self.shape.lanes)), short, more)
        fn.label(short)
        sets = [[Accumulator(r, self.code.vector) for r in group]]
        mask = self.code.memory.lane_mask(extent)
        inner = level.nested().inside(vector, 0, 1, mask)
        self.settle(inner, [r.value for r in group])
        states = self._step(group, inner, sets, [[a.start() for a in sets[0]]])
        fn.branch(after(*self._across(group, sets, states)))
        fn.label(more)
        states, sets = self.accumulate(group, level.nested())
        fn.branch(after(*self._across(group, sets, states)))
        fn.label(after)
        values = iter(after.values)
        return [[next(values) for _ in a.types] for a in scalars]

    def _across(self, group: list[Reduce], sets: Sets, states: States) -> list[str]:
        return [part for i in range(len(group)) for part in self.merged(i, sets, states)]

    # ---- the loops of a group
    def accumulate(
        self, group: list[Reduce], level: Level, part: Span | None = None,
        coming: Sequence[Store] = (),
    ) -> tuple[States, Sets]:  # fmt: skip
        """The registers of the group's accumulators after its loops.

        Args:
            part: limits the range of one axis.
            coming: the stores whose cache lines the loop along the vector axis asks for.
        """
        vector, copies = self.shape.vector, 1
        wide = vector in group[0].over
        if wide:
            assert vector is not None
            known = vector.extent if part is None or part.axis is not vector else CHUNK
            end = known if isinstance(known, int) else "%unknown"
            copies = self.staged.vectors.copies(level, 0, end)
        elif self.code.is_wide(group[0], level):
            wide, copies = True, level.copies
        elements = self.code.vector if wide else self.code.scalar
        sets = [[Accumulator(r, elements) for r in group] for _ in range(copies)]
        states = [[a.start() for a in accumulators] for accumulators in sets]
        axes = self.shape.order(group[0].over, self.code.kernel)
        return self._loops(axes, group, level, sets, states, part, coming), sets

    def _loops(
        self, axes: list[Axis], group: list[Reduce], level: Level, sets: Sets, states: States,
        part: Span | None, coming: Sequence[Store],
    ) -> States:  # fmt: skip
        roots: list[Expr] = [r.value for r in group]
        if not axes:
            return self._step(group, level, sets, states)
        axis, rest = axes[0], axes[1:]
        start: Word = 0
        stop = self.code.dim(axis.extent)
        if part is not None and axis is part.axis:
            start, stop = part.first, part.end
        if axis is self.shape.vector:
            self.values.splat_ahead(level, roots)

            def vectors(inner: Level, now: States) -> States:
                self.settle(inner, roots)
                self.places.fetch_results(coming, inner)
                return self._step(group, inner, sets[: len(now)], now)

            ahead = with_next_row_ahead(level, roots)
            return self.staged.emit(ahead, axis, start, stop, sets, vectors, roots, states)

        def trip(i: Word, flat: list[str]) -> list[str]:
            inner = level.inside(axis, i)
            self.settle(inner, roots, [roots] if rest == [self.shape.vector] else [])
            now = unflatten(flat, sets)
            return flatten(self._loops(rest, group, inner, sets, now, part, coming))

        trips = product(a.extent for a in axes)
        small = isinstance(trips, int) and trips <= _MOST_UNROLLED
        most = extent_estimate(axis.extent) if small else 1
        kinds = state_types(sets)
        return unflatten(self.fn.carried(start, stop, 1, kinds, flatten(states), trip, most), sets)

    def _step(self, group: list[Reduce], level: Level, sets: Sets, states: States) -> States:
        """The registers after the elements of a level."""
        result: States = [[] for _ in states]
        for i, reduce in enumerate(group):
            register = self.values.evaluate(reduce.value, level)
            position = None
            if sets[0][i].positions:
                position = self.values.evaluate(Iota(reduce.over[0]), level)
            wide = bool(sets[0][i].e.count)
            for copy in range(len(states)):
                mask = level.mask if wide else None
                value = self._part(reduce.value, register, level, copy, wide)
                place = None
                if position is not None:
                    place = self._part(Iota(reduce.over[0]), position, level, copy, wide)
                result[copy].append(sets[copy][i].step(states[copy][i], value, place, mask))
        return result

    def _part(self, e: Expr, register: Register, level: Level, copy: int, wide: bool) -> str:
        if register.vector:
            return register.parts[copy]
        return self.code.splat(e, register, level) if wide else register.parts[0]

    # ---- results
    def _reduced(self, i: int, reduce: Reduce, sets: Sets, states: States) -> Register:
        """The result of the group's reduction number i."""
        if self.shape.vector not in reduce.over:
            parts = [sets[c][i].result(states[c][i]) for c in range(len(sets))]
            return Register(parts, bool(sets[0][i].e.count))
        merged = self.merged(i, sets, states)
        return Register([Accumulator(reduce, self.code.scalar).result(merged)], False)

    def merged(self, i: int, sets: Sets, states: States) -> list[str]:
        """The state of reduction number i, of all copies and lanes, as scalars."""
        merged = sets[0][i].merge_all([s[i] for s in states])
        return sets[0][i].across(merged, self.code.scalar) if sets[0][i].e.count else merged


def with_next_row_ahead(level: Level, roots: Sequence[Expr]) -> Level:
    """The level for a loop along the vector axis. The second loop over a row asks for the next
    row, while the processor computes: the first one would wait for memory, which no later one
    touches."""
    loads = {e for e in evaluated(roots) if isinstance(e, Load) and not e.valid}
    here = level.nested()
    here.ahead = level.passes[0] & loads if len(level.passes) == 1 else frozenset()
    level.passes.append(loads)
    return here
