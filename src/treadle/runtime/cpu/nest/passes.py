"""What is computed at each place in the loops: scalars, and reductions in passes.

Reductions that belong to one place and run over the same axes run together; costly values that
several passes along the vector axis need are kept in a row buffer.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from treadle.core.shapes import product
from treadle.kernel.ir import Apply, Axis, Const, Expr, Iota, Load, Reduce, Store, postorder
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.accumulator import Accumulator
from treadle.runtime.cpu.nest.level import Level, Register
from treadle.runtime.cpu.nest.loops import Sets, States, flatten, unflatten
from treadle.runtime.cpu.nest.shape import CHUNK, extent_estimate, is_costly
from treadle.runtime.cpu.nest.staging import Staging

_MOST_UNROLLED = 32  # trips of small reduction loops that are written out: the length of code


class Passes(Staging, ABC):
    """Settles a level: everything that can be computed there is, once."""

    coming: Sequence[Store] = ()  # stores of whole rows that follow the level's passes
    fetched: Sequence[Store] = ()  # those whose cache lines the current pass asks for

    def _settle(self, level: Level, roots: list[Expr], rows: list[list[Expr]]) -> None:
        """Compute what can be computed here: scalars, and reductions in passes.

        rows: the roots of loops along the vector axis that follow at this level.
        """
        passes = self._passes(level, roots)
        if self.shape.vector is not None and self.shape.vector not in level.axes:
            along = [
                [r.value for r in group]
                for group in passes
                if group[0].over == (self.shape.vector,)
            ]
            self._plan_kept(level, [*along, *rows])
        last = next((g for g in reversed(passes) if g[0].over == (self.shape.vector,)), None)
        coming, self.coming = self.coming, ()
        for group in passes:
            self._hoist(level, [r.value for r in group])
            self.fetched = coming if group is last else ()
            self._reduce(group, level)
        self.fetched = ()
        self._hoist(level, roots)

    def _passes(self, level: Level, roots: list[Expr]) -> list[list[Reduce]]:
        """The reductions to run here, grouped: each group needs only earlier ones."""
        pending = [e for e in self._below(roots, level) if isinstance(e, Reduce) and level.has(e)]
        below = {e: {x for x in postorder([e.value]) if isinstance(x, Reduce)} for e in pending}
        groups: list[list[Reduce]] = []
        while pending:
            waiting = set(pending)
            ready = [e for e in pending if not (below[e] & waiting)]
            group = [
                e
                for e in ready
                if e.over == ready[0].over
                and self._is_vector(e, level) == self._is_vector(ready[0], level)
            ]
            groups.append(group)
            pending = [e for e in pending if e not in group]
        return groups

    def _is_vector(self, reduce: Reduce, level: Level) -> bool:
        return bool(level.copies) and self.shape.vector in reduce.axes

    def _below(self, roots: list[Expr], level: Level) -> list[Expr]:
        """Expressions below the roots, children first, not looking below known values."""
        done: dict[Expr, None] = {}
        stack = [(r, False) for r in reversed(roots)]
        while stack:
            expr, expanded = stack.pop()
            if expr in done or level.find(expr) is not None:
                continue
            if expanded or self._in_row(expr, level):
                done[expr] = None
                continue
            stack.append((expr, True))
            stack += [(c, False) for c in reversed(expr.children)]
        return list(done)

    def _plan_kept(self, level: Level, loops: list[list[Expr]]) -> None:
        """Give row buffers to costly values that several of the loops compute."""
        axis = self.shape.vector
        assert axis is not None
        inside = {*level.axes, axis}
        seen: dict[Expr, int] = {}
        for roots in loops:
            for e in self._evaluated(roots):
                if axis in e.axes and e.axes <= inside:
                    seen[e] = seen.get(e, 0) + 1
        for e, times in seen.items():
            if times > 1 and is_costly(e) and level.find_kept(e) is None:
                level.kept[e] = (self._row_buffer(e, axis), False)

    def _evaluated(self, roots: list[Expr]) -> list[Expr]:
        """What a loop computes: expressions below the roots but not below reductions."""
        done: dict[Expr, None] = {}
        stack = list(roots)
        while stack:
            e = stack.pop()
            if e in done or isinstance(e, Reduce):
                continue
            done[e] = None
            stack += e.children
        return list(done)

    def _row_buffer(self, expr: Expr, axis: Axis) -> str:
        size = 8 if expr.dtype.size == 8 else 4
        if expr.dtype.is_bool or (expr.dtype.is_integer and expr.dtype.size < 4):
            size = 4
        lanes = self.shape.lanes
        whole = (axis.extent + (lanes - 1)) // lanes * (lanes * size)
        offset = self.dim(self.scratch)  # 0 is written out too: rows side by side have equal code
        place = self.fn.value(f"getelementptr i8, ptr %scratch, i64 {offset}")
        self.scratch = self.scratch + ((whole + 63) // 64 * 64 + 320)
        return place

    def _hoist(self, level: Level, roots: list[Expr]) -> None:
        """Compute every value whose axes all have positions here."""
        for e in self._below(roots, level):
            if level.has(e) and not isinstance(e, Const):
                self.evaluate(e, level)
        for e in self._below(roots, level):
            if isinstance(e, Load) and not level.has(e):
                self._row_base(e.buffer, e.index, level)

    def _splat_ahead(self, level: Level, roots: list[Expr]) -> None:
        """Put scalars that vectors meet into all lanes before the loop."""
        vector = self.shape.vector
        for e in self._evaluated(roots):
            if vector in e.axes and isinstance(e, Apply):
                for arg in e.args:
                    register = level.find(arg)
                    if register is not None and not register.vector:
                        self._splat(arg, register, level)

    @contextmanager
    def _next_row_ahead(self, level: Level, roots: list[Expr]) -> Iterator[None]:
        """The second loop over a row fetches the next row, while the processor computes: the
        first one would wait for memory, which no later one touches."""
        loads = {e for e in self._evaluated(roots) if isinstance(e, Load) and not e.valid}
        self.ahead = level.passes[0] & loads if len(level.passes) == 1 else set()
        level.passes.append(loads)
        yield
        self.ahead = set()

    def _fetch_results(self, stores: Sequence[Store], level: Level) -> None:
        """Ask for the cache lines that the loop over the stores of a row will overwrite."""
        if level.mask is not None:
            return
        for s in stores:
            base, stride = self._place(s.buffer, s.index, level)
            size = s.buffer.dtype.size * self.shape.lanes
            for copy in range(level.copies):
                if copy * size % self.tuning.line == 0:
                    at = self.fn.add(base, self.fn.mul(stride, copy * self.shape.lanes))
                    self.memory.prefetch(self.pointers[s.buffer], at, s.buffer.dtype, write=True)

    def _reduce(self, group: list[Reduce], level: Level) -> None:
        """Run reductions over the same axes together and note their results at the level."""
        states, sets = self._reduce_states(group, level)
        for i, reduce in enumerate(group):
            level.values[reduce] = self._reduced(i, reduce, sets, states, level)
        vector = self.shape.vector
        if group[0].over == (vector,):
            for e, (place, _) in list(level.kept.items()):
                if any(e in self._evaluated([r.value]) for r in group):
                    level.kept[e] = (place, True)

    def _reduce_states(
        self, group: list[Reduce], level: Level, part: tuple[Axis, Word, Word] | None = None
    ) -> tuple[States, Sets]:
        """The accumulators after the loops; `part` limits the range of one axis."""
        along = self.shape.vector in group[0].over
        if along:
            vector = self.shape.vector
            assert vector is not None
            known = vector.extent if part is None or part[0] is not vector else CHUNK
            copies = self._copies(0, known if isinstance(known, int) else "%unknown")
            wide = True
        else:
            wide = self._is_vector(group[0], level)
            copies = level.copies if wide else 1
        elements = self.vector if wide else self.scalar
        sets = [[Accumulator(r, elements) for r in group] for _ in range(copies)]
        states = [[a.start() for a in accumulators] for accumulators in sets]
        axes = self.shape.order(group[0].over, self.kernel)
        return self._reduce_loops(axes, group, level, sets, states, part), sets

    def _reduce_loops(
        self, axes: list[Axis], group: list[Reduce], level: Level, sets: Sets,
        states: States, part: tuple[Axis, Word, Word] | None,
    ) -> States:  # fmt: skip
        roots: list[Expr] = [r.value for r in group]
        if not axes:
            return self._accumulate(group, level, sets, states)
        axis, rest = axes[0], axes[1:]
        start, stop = self._range(axis, reducing=True)
        if part is not None and axis is part[0]:
            start, stop = part[1:]
        if axis is self.shape.vector:
            self._splat_ahead(level, roots)
            fetched = self.fetched

            def vectors(inner: Level, now: States) -> States:
                self._settle(inner, roots, [])
                self._fetch_results(fetched, inner)
                return self._accumulate(group, inner, sets[: len(now)], now)

            with self._next_row_ahead(level, roots):
                return self._staged_loop(level, axis, start, stop, sets, vectors, roots, states)
        kinds = [t for accumulators in sets for a in accumulators for t in a.types]

        def trip(i: Word, flat: list[str]) -> list[str]:
            inner = level.inside(axis, i)
            self._settle(inner, roots, [roots] if rest == [self.shape.vector] else [])
            now = unflatten(flat, sets)
            return flatten(self._reduce_loops(rest, group, inner, sets, now, part))

        trips = product(a.extent for a in axes)
        small = isinstance(trips, int) and trips <= _MOST_UNROLLED
        most = extent_estimate(axis.extent) if small else 1
        return unflatten(self._carried(start, stop, 1, kinds, flatten(states), trip, most), sets)

    def _accumulate(
        self, group: list[Reduce], level: Level, sets: Sets,
        states: States,
    ) -> States:  # fmt: skip
        result: States = [[] for _ in states]
        for i, reduce in enumerate(group):
            register = self.evaluate(reduce.value, level)
            position = None
            if sets[0][i].positions:
                position = self.evaluate(Iota(reduce.over[0]), level)
            wide = bool(sets[0][i].e.count)
            for copy in range(len(states)):
                mask = level.mask if wide else None
                value = self._lane_part(reduce.value, register, level, copy, wide)
                place = None
                if position is not None:
                    place = self._lane_part(Iota(reduce.over[0]), position, level, copy, wide)
                result[copy].append(sets[copy][i].step(states[copy][i], value, place, mask))
        return result

    def _lane_part(self, e: Expr, register: Register, level: Level, copy: int, wide: bool) -> str:
        if register.vector:
            return register.parts[copy]
        return self._splat(e, register, level) if wide else register.parts[0]

    def _reduced(
        self, i: int, reduce: Reduce, sets: Sets,
        states: States, level: Level,
    ) -> Register:  # fmt: skip
        """The result of the group's reduction number i."""
        if self.shape.vector not in reduce.over:
            parts = [sets[c][i].result(states[c][i]) for c in range(len(sets))]
            return Register(parts, bool(sets[0][i].e.count))
        return Register(
            [Accumulator(reduce, self.scalar).result(self._one(i, sets, states))], False
        )

    def _one(self, i: int, sets: Sets, states: States) -> list[str]:
        """Copies and lanes merged into a scalar state."""
        merged = sets[0][i].merge_all([s[i] for s in states])
        return sets[0][i].across(merged, self.scalar) if sets[0][i].e.count else merged

    def _settle_one(self, reduce: Reduce, level: Level) -> None:
        self._hoist(level, [reduce.value])
        self._reduce([reduce], level)
