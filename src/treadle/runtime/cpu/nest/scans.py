"""Loops of kernels with scans, which carry the scans' states from position to position.

Every scan goes through its axis in order, so its operations wait for one another
unless several lines are under way at once:

- Where other elements lie beside each other, states are vectors down the axis of the scan.
- Where the axis of the scan itself is contiguous, as many lines as a vector has lanes go together:
  squares are read along memory, transposed in registers, scanned as vectors, and transposed back.
- What a mask selects is collected in blocks (`selections.py`).
- Where scans tell the places of whole rows, vectors go along these, inside of the scans' loop.
- With fewer lines each goes alone, element by element; where there is much to compute for each
  element, or lanes may be combined in any order, as vectors of which the scan takes the lanes.
"""

from __future__ import annotations

from treadle.core.shapes import Dim
from treadle.kernel.ir import Axis, Load, Store, postorder
from treadle.runtime.cpu.elements import stored_type
from treadle.runtime.cpu.lanes import transposed
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.bounds import Bounds
from treadle.runtime.cpu.nest.braid import braid
from treadle.runtime.cpu.nest.function import KernelFunction
from treadle.runtime.cpu.nest.level import Level, Register
from treadle.runtime.cpu.nest.loops import States, VectorLoops
from treadle.runtime.cpu.nest.memory import Address, split_index
from treadle.runtime.cpu.nest.places import Places
from treadle.runtime.cpu.nest.running import RunningScans
from treadle.runtime.cpu.nest.selections import SelectionLoops
from treadle.runtime.cpu.nest.shape import (
    is_costly,
    selection_of,
    transposing_loads,
    transposing_stores,
)
from treadle.runtime.cpu.nest.store_loops import StoreLoops
from treadle.runtime.cpu.nest.stores import Stores, roots_of
from treadle.runtime.cpu.nest.values import Values

MOST_WRITTEN_OUT = 16  # expressions of a tile's row that are written out for each: length of code


class ScanLoops:
    """Writes all loops of a kernel whose stores depend on scans along one axis."""

    def __init__(
        self, code: KernelFunction, bounds: Bounds, places: Places, values: Values,
        vectors: VectorLoops, stores: Stores, loops: StoreLoops, running: RunningScans,
    ) -> None:  # fmt: skip
        self.code, self.fn, self.bounds, self.places = code, code.fn, bounds, places
        self.values, self.vectors, self.stores, self.running = values, vectors, stores, running
        self.loops = loops  # along axes inside of the scan's
        first = running.scans[0]
        self.axis, self.reverse = first.axis, first.reverse
        self.all_stores = list(code.kernel.stores)
        self.roots = roots_of(self.all_stores)
        selection = selection_of(code.kernel)
        self.selection = None if selection is None else SelectionLoops(code, values, selection)

    def emit(self, level: Level) -> None:
        """The loops over all axes."""
        inner = (self.axis, self.code.shape.vector)
        self._around([a for a in self.code.kernel.axes if a not in inner], level)

    def _around(self, axes: list[Axis], level: Level) -> None:
        """The loops outside of the scan and the vectors."""
        shape = self.code.shape
        self.values.hoist(level, self.roots)
        if not axes:
            if self.selection is not None:
                self.selection.emit(level)
            elif shape.vector is None or self._is_inside():
                self._one_by_one(level)
            elif shape.vector is self.axis:
                self._along_lanes(level)
            elif shape.tile is not None:
                self._tiles(level, shape.vector)
            else:
                self._down_vectors(level, shape.vector)
            return
        axis, rest = axes[0], axes[1:]

        def one(i: Word, state: list[str]) -> list[str]:
            self._around(rest, level.inside(axis, i))
            return state

        def several(i: Word, state: list[str]) -> list[str]:
            places = [self.fn.add(i, k) for k in range(together)]
            braid(self.fn, lambda place: one(place, []), places)
            return state

        start, stop = self.bounds.of(axis)
        alone = rest or self.selection or shape.vector not in (None, self.axis)
        together = 1 if alone else self.code.tuning.unroll
        if together > 1:
            whole = self.code.end_of_whole(start, stop, together)
            self.fn.carried(start, whole, together, [], [], several)
            start = whole
        self.fn.carried(start, stop, 1, [], [], one)

    # ---- the loop along the axis
    def extent(self) -> Word:
        """How many positions the axis of the scan has."""
        return self.code.dim(self.axis.extent)

    def position(self, i: Word, step: int = 1) -> Word:
        """Where the i-th position of the scan is, or the block of `step` positions from there."""
        fn = self.fn
        return fn.sub(fn.sub(self.extent(), step), i) if self.reverse else i

    def _one_by_one(self, level: Level) -> None:
        """Position after position, at a level that holds one element or vectors of them."""
        running = self.running

        def step(i: Word, flat: list[str]) -> list[str]:
            running.resume(flat, level)
            here = level.inside(self.axis, self.position(i))
            (self.loops if self._is_inside() else self.stores).emit(self.all_stores, here)
            return running.registers()

        kinds, start = running.kinds(level), running.start(level)
        self.fn.carried(0, self.extent(), 1, kinds, start, step)

    def _is_inside(self) -> bool:
        """Whether vectors are inside of the scans' loop, as no scan varies along them."""
        vector = self.code.shape.vector
        return vector is not None and all(vector not in s.axes for s in self.running.scans)

    def _down_vectors(self, level: Level, vector: Axis) -> None:
        """The loop along the vectors, with a loop down the axis of the scan inside."""

        def down(inner: Level, states: States) -> States:
            self.values.hoist(inner, self.roots)
            self._one_by_one(inner)
            return states

        start, stop = self.bounds.of(vector)
        self.values.splat_ahead(level, self.roots)
        costly = any(map(is_costly, postorder(self.roots)))
        most = max(1, self.code.accumulators // len(self.running.scans))
        broad = 1 if costly else 1 << most.bit_length() - 1  # loops take powers of 2 at a time
        self.vectors.emit(level, vector, start, stop, [], down, broad=broad)

    def _along_lanes(self, level: Level) -> None:
        """Blocks of a vector along the axis."""
        fn, running, lanes = self.fn, self.running, self.code.shape.lanes
        self.values.splat_ahead(level, self.roots)

        def block(i: Word, flat: list[str]) -> list[str]:
            running.resume(flat, inside)
            here = level.inside(self.axis, self.position(i, lanes), 1, None)
            self.stores.emit(self.all_stores, here)
            return running.registers()

        inside = level.inside(self.axis, 0, 1, None)
        extent = self.extent()
        whole = self.code.end_of_whole(0, extent, lanes)
        kinds, start = running.kinds(inside), running.start(inside)
        flat = fn.carried(0, whole, lanes, kinds, start, block)
        with fn.when(fn.compare("ne", whole, extent)) as needed:
            if needed:
                running.resume(flat, inside)
                mask = self.code.memory.lane_mask(fn.sub(extent, whole))
                rest = level.inside(self.axis, 0 if self.reverse else whole, 1, mask)
                self.stores.emit(self.all_stores, rest)

    # ---- tiles
    def _tiles(self, level: Level, vector: Axis) -> None:
        """As many lines as there are lanes at a time, then the last few lines."""
        fn, lanes = self.fn, self.code.shape.lanes
        start, stop = self.bounds.of(vector)
        whole = self.code.end_of_whole(start, stop, lanes)
        self.values.splat_ahead(level, self.roots)

        def lines(j: Word, state: list[str]) -> list[str]:
            _Tile(self, level, vector, j, None).lines()
            return state

        fn.carried(start, whole, lanes, [], [], lines)
        with fn.when(fn.compare("ne", whole, stop)) as needed:
            if needed:
                _Tile(self, level, vector, whole, fn.sub(stop, whole)).lines()


class _Tile:
    """Squares of lines `first` to `first + lanes`, one after the other along the scan.

    Args:
        count: how many of the lines exist; None for all.
    """

    def __init__(
        self, loops: ScanLoops, outer: Level, vector: Axis, first: Word, count: Word | None
    ) -> None:
        code = loops.code
        self.loops, self.code, self.fn, self.outer, self.vector = (
            loops,
            code,
            code.fn,
            outer,
            vector,
        )
        self.first, self.count, self.lanes = first, count, code.shape.lanes
        exprs = postorder(loops.roots)
        loads = [x for x in exprs if isinstance(x, Load)]
        self.loads = transposing_loads(loads, loops.axis, vector)
        self.stores = transposing_stores(loops.all_stores, loops.axis, vector)
        costly = any(map(is_costly, exprs))
        self.written_out = count is None and not costly and len(exprs) <= MOST_WRITTEN_OUT
        mask = None if count is None else code.memory.lane_mask(count)
        self.level = outer.inside(vector, first, 1, mask)
        self.places: dict[Load | Store, str] = {}

    def lines(self) -> None:
        """All squares of the lines, and the last part of one."""
        fn, loops, lanes = self.fn, self.loops, self.lanes
        loops.values.hoist(self.level, loops.roots)
        extent = loops.extent()
        whole = self.code.end_of_whole(0, extent, lanes)
        kinds, flat = loops.running.kinds(self.level), loops.running.start(self.level)

        def square(i: Word, flat: list[str]) -> list[str]:
            origin = loops.position(i, lanes)
            return (self._square if self.written_out else self._in_memory)(origin, flat, None)

        flat = fn.carried(0, whole, lanes, kinds, flat, square)
        rest = fn.sub(extent, whole)
        with fn.when(fn.compare("ne", rest, 0)) as needed:
            if needed:
                self._in_memory(0 if loops.reverse else whole, flat, rest)

    def _square(self, origin: Word, flat: list[str], _: Word | None) -> list[str]:
        """A square in registers, its rows written out."""
        order = range(self.lanes)[:: -1 if self.loops.reverse else 1]
        loaded = {x: self._load(x, origin, None) for x in self.loads}
        results: dict[Store, list[str]] = {s: [""] * self.lanes for s in self.stores}
        for k in order:
            rows = {x: columns[k] for x, columns in loaded.items()}
            made, flat = self._row(self.fn.add(origin, k), rows, flat)
            for s, row in made.items():
                results[s][k] = row
        for s, made_rows in results.items():
            self._store(s, made_rows, origin, None)
        return flat

    def _in_memory(self, origin: Word, flat: list[str], count: Word | None) -> list[str]:
        """A square whose rows wait in memory for a loop; `count` of them if it is only a part."""
        fn, lanes = self.fn, self.lanes
        mask = None if count is None else self.code.memory.lane_mask(count)
        rows = lanes if count is None else count
        for x in self.loads:
            for k, column in enumerate(self._load(x, origin, mask)):
                self._keep(x, k, column)

        def row(t: Word, flat: list[str]) -> list[str]:
            k = fn.sub(fn.sub(rows, 1), t) if self.loops.reverse else t
            given = {x: self._kept(x, k) for x in self.loads}
            made, flat = self._row(fn.add(origin, k), given, flat)
            for s, result in made.items():
                self._keep(s, k, result)
            return flat

        flat = fn.carried(0, rows, 1, self.loops.running.kinds(self.level), flat, row)
        for s in self.stores:
            self._store(s, [self._kept(s, k) for k in range(lanes)], origin, mask)
        return flat

    def _row(
        self, position: Word, given: dict[Load, str], flat: list[str]
    ) -> tuple[dict[Store, str], list[str]]:
        """One position of the scan for all lines: the rows of transposed stores, and the states."""
        code, loops = self.code, self.loops
        inner = self.level.inside(loops.axis, position)
        for x, raw in given.items():
            inner.values[x] = Register([code.vector.from_memory(raw, x.dtype)], True)
        loops.running.resume(flat, self.level)
        loops.values.hoist(inner, loops.roots)
        made: dict[Store, str] = {}
        for s in loops.all_stores:
            register = loops.values.evaluate(s.value, inner)
            if s in self.stores:
                (part,) = code.wide_parts(s.value, register, inner)
                made[s] = code.vector.to_memory(part, s.buffer.dtype)
            else:
                loops.stores.put(s, register, inner)
        return made, loops.running.registers()

    # ---- rows that wait in memory
    def _slot(self, x: Load | Store, k: Word) -> tuple[str, str, int]:
        """The type, address and alignment of a row."""
        stored, lanes = stored_type(x.buffer.dtype), self.lanes
        if x not in self.places:
            self.places[x] = self.fn.alloca(f"[{lanes} x <{lanes} x {stored}>], align 64")
        at = self.fn.offset(self.places[x], self.fn.mul(k, lanes), stored)
        return f"<{lanes} x {stored}>", at, lanes * x.buffer.dtype.size

    def _keep(self, x: Load | Store, k: Word, row: str) -> None:
        kind, at, size = self._slot(x, k)
        self.fn.emit(f"store {kind} {row}, ptr {at}, align {size}")

    def _kept(self, x: Load | Store, k: Word) -> str:
        kind, at, size = self._slot(x, k)
        return self.fn.value(f"load {kind}, ptr {at}, align {size}")

    # ---- memory
    def _lines(self, x: Load | Store, origin: Word) -> tuple[Word, Word]:
        """The element where a square begins, and the distance between its lines."""
        here = self.outer.inside(self.vector, self.first, 0).inside(self.loops.axis, origin)
        base, _ = self.loops.places.place(x.buffer, x.index, here)
        coefficients, _, _ = split_index(x.buffer, x.index)
        distance: Dim = coefficients[self.vector]
        return base, self.code.dim(distance)

    def _load(self, x: Load, origin: Word, mask: str | None) -> list[str]:
        """A square, transposed; lines that do not exist repeat the last one that does."""
        code, fn = self.code, self.fn
        base, distance = self._lines(x, origin)
        rows = []
        for k in range(self.lanes):
            line = k if self.count is None else fn.min(fn.sub(self.count, 1), k)
            at = fn.add(base, fn.mul(distance, line))
            address = Address(code.pointers[x.buffer], at, 1)
            rows.append(code.memory.load_stored(address, x.dtype, mask))
        return transposed(fn, rows, code.vector.wrap(stored_type(x.dtype)))

    def _store(self, s: Store, rows: list[str], origin: Word, mask: str | None) -> None:
        code, fn = self.code, self.fn
        base, distance = self._lines(s, origin)
        kind = code.vector.wrap(stored_type(s.buffer.dtype))
        for k, line in enumerate(transposed(fn, rows, kind)):
            exists = True if self.count is None else fn.compare("slt", k, self.count)
            with fn.when(exists) as needed:
                if needed:
                    at = fn.add(base, fn.mul(distance, k))
                    address = Address(code.pointers[s.buffer], at, 1)
                    code.memory.store_stored(line, address, s.buffer.dtype, mask)
