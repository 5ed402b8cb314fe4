"""Loops of kernels with scans, which carry the scans' states from position to position.

Every scan goes through its axis in order, so the time is that of one operation after the other
unless several lines are under way at once:

- Where other elements lie beside each other, states are vectors down the axis of the scan.
- Where the axis of the scan itself is contiguous, as many lines as a vector has lanes go together:
  squares are read along memory, transposed in registers, scanned as vectors, and transposed back.
- With fewer lines each goes alone, element by element; where there is much to compute for each
  element, or lanes may be combined in any order, as vectors of which the scan takes the lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.core.shapes import Dim
from treadle.kernel.ir import Axis, Expr, Load, Scan, Store, postorder
from treadle.kernel.reference import scan_start
from treadle.runtime.cpu.elements import Elements, stored_type
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.braid import braid
from treadle.runtime.cpu.nest.level import Level, Register
from treadle.runtime.cpu.nest.loops import States
from treadle.runtime.cpu.nest.memory import Address, split_index
from treadle.runtime.cpu.nest.shape import is_costly, strides, transposing_loads, transposing_stores

if TYPE_CHECKING:
    from treadle.runtime.cpu.nest.kernel import KernelEmitter

MOST_WRITTEN_OUT = 16  # expressions of a tile's row that are written out for each: length of code


class ScanLoops:
    """Emits all loops of a kernel whose stores depend on scans along one axis.

    Attributes:
        running: the state of every scan at the point that is being emitted: a register, or one for
            each copy of the vector loop's body.
    """

    def __init__(self, emitter: KernelEmitter, axis: Axis) -> None:
        self.emitter, self.axis = emitter, axis
        self.stores = list(emitter.kernel.stores)
        self.roots: list[Expr] = [s.value for s in self.stores]
        self.scans = [e for e in postorder(self.roots) if isinstance(e, Scan)]
        self.reverse = self.scans[0].reverse
        self.running: dict[Scan, list[str]] = {}

    def emit(self, level: Level) -> None:
        """The loops over all axes."""
        shape, axes = self.emitter.shape, self.emitter.kernel.axes
        self._around([a for a in axes if a not in (self.axis, shape.vector)], level)

    def _around(self, axes: list[Axis], level: Level) -> None:
        """The loops outside of the scan and the vectors."""
        e, shape = self.emitter, self.emitter.shape
        e._settle(level, self.roots, [])
        if not axes:
            if shape.vector is None:
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
            places = [e.fn.add(i, k) for k in range(together)]
            braid(e.fn, [lambda p=p: one(p, []) and None for p in places])  # type: ignore[misc]
            return state

        start, stop = e._range(axis, reducing=False)
        together = 1 if rest or shape.vector not in (None, self.axis) else e.tuning.unroll
        if together > 1:
            whole = e._end(start, stop, together)
            e._carried(start, whole, together, [], [], several)
            start = whole
        e._carried(start, stop, 1, [], [], one)

    # ---- states
    def _kinds(self, level: Level) -> list[str]:
        """The types of all states in the loop along the axis."""
        return [
            self._elements(s, level).type(s.dtype)
            for s in self.scans
            for _ in self._parts(s, level)
        ]

    def _elements(self, scan: Scan, level: Level) -> Elements:
        """What computes a scan's state: along its own axis states are scalars."""
        e = self.emitter
        return e.vector if e._is_wide(scan, level) and e.shape.vector is not self.axis else e.scalar

    def _parts(self, scan: Scan, level: Level) -> range:
        return range(level.copies if self._elements(scan, level).count else 1)

    def _first(self, level: Level) -> list[str]:
        return [
            self._elements(s, level).constant(scan_start(s), s.dtype)
            for s in self.scans
            for _ in self._parts(s, level)
        ]

    def _begin(self, flat: list[str], level: Level) -> None:
        """Make registers the states."""
        parts = iter(flat)
        self.running = {s: [next(parts) for _ in self._parts(s, level)] for s in self.scans}

    def _after(self) -> list[str]:
        return [part for s in self.scans for part in self.running[s]]

    def step(self, scan: Scan, level: Level) -> Register:
        """The value of a scan at a level, and its next state."""
        e = self.emitter
        value = level.find(scan.value)
        assert value is not None
        if e._is_wide(scan, level) and e.shape.vector is self.axis:
            lanes = _Lanes(e, scan, level.mask)
            (given,) = e._wide_parts(scan.value, value, level)
            result, self.running[scan] = lanes.through(given, self.running[scan][0])
            return Register([result], True)
        elements, before = self._elements(scan, level), self.running[scan]
        parts = e._wide_parts(scan.value, value, level) if elements.count else value.parts[:1]
        both = [scan.dtype] * 2
        after = [
            elements.apply(scan.op, [state, part], both, scan.dtype)
            for state, part in zip(before, parts, strict=True)
        ]
        self.running[scan] = after
        return Register(before if scan.exclusive else after, bool(elements.count))

    # ---- the loop along the axis
    def _extent(self) -> Word:
        return self.emitter.dim(self.axis.extent)

    def _position(self, i: Word, step: int = 1) -> Word:
        """Where the i-th position of the scan is, or the block of `step` positions from there."""
        fn = self.emitter.fn
        return fn.sub(fn.sub(self._extent(), step), i) if self.reverse else i

    def _one_by_one(self, level: Level) -> None:
        """Position after position, at a level that holds one element or vectors of them."""
        e = self.emitter

        def step(i: Word, flat: list[str]) -> list[str]:
            self._begin(flat, level)
            e._storing(self.stores)(level.inside(self.axis, self._position(i)), [])
            return self._after()

        e._carried(0, self._extent(), 1, self._kinds(level), self._first(level), step)

    def _down_vectors(self, level: Level, vector: Axis) -> None:
        """The loop along the vectors, inside of which each goes down the axis."""
        e = self.emitter

        def down(inner: Level, states: States) -> States:
            e._settle(inner, self.roots, [])
            self._one_by_one(inner)
            return states

        start, stop = e._range(vector, reducing=False)
        e._splat_ahead(level, self.roots)
        costly = any(map(is_costly, postorder(self.roots)))
        most = max(1, e.accumulators // len(self.scans))
        broad = 1 if costly else 1 << most.bit_length() - 1  # loops take powers of 2 at a time
        e._vector_loop(level, vector, start, stop, [], down, broad=broad)

    def _along_lanes(self, level: Level) -> None:
        """Blocks of a vector along the axis."""
        e, fn, lanes = self.emitter, self.emitter.fn, self.emitter.shape.lanes
        e._splat_ahead(level, self.roots)

        def block(i: Word, flat: list[str]) -> list[str]:
            self._begin(flat, inside)
            here = level.inside(self.axis, self._position(i, lanes), 1, None)
            e._storing(self.stores)(here, [])
            return self._after()

        inside = level.inside(self.axis, 0, 1, None)
        extent = self._extent()
        whole = e._end(0, extent, lanes)
        flat = e._carried(0, whole, lanes, self._kinds(inside), self._first(inside), block)
        with fn.when(fn.compare("ne", whole, extent)) as needed:
            if needed:
                self._begin(flat, inside)
                mask = e.memory.lane_mask(fn.sub(extent, whole))
                rest = level.inside(self.axis, 0 if self.reverse else whole, 1, mask)
                e._storing(self.stores)(rest, [])

    # ---- tiles
    def _tiles(self, level: Level, vector: Axis) -> None:
        """As many lines as there are lanes at a time, then what is left."""
        e, fn, lanes = self.emitter, self.emitter.fn, self.emitter.shape.lanes
        start, stop = e._range(vector, reducing=False)
        whole = e._end(start, stop, lanes)
        e._splat_ahead(level, self.roots)

        def lines(j: Word, state: list[str]) -> list[str]:
            _Tile(self, level, vector, j, None).lines()
            return state

        e._carried(start, whole, lanes, [], [], lines)
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
        e = loops.emitter
        self.loops, self.e, self.outer, self.vector = loops, e, outer, vector
        self.first, self.count, self.lanes = first, count, e.shape.lanes
        exprs = postorder(loops.roots)
        loads = [x for x in exprs if isinstance(x, Load)]
        self.loads = transposing_loads(loads, loops.axis, vector)
        self.stores = transposing_stores(loops.stores, loops.axis, vector)
        costly = any(map(is_costly, exprs))
        self.written_out = count is None and not costly and len(exprs) <= MOST_WRITTEN_OUT
        mask = None if count is None else e.memory.lane_mask(count)
        self.level = outer.inside(vector, first, 1, mask)
        self.places: dict[Load | Store, str] = {}

    def lines(self) -> None:
        """All squares of the lines, and the last part of one."""
        e, fn, loops, lanes = self.e, self.e.fn, self.loops, self.lanes
        e._settle(self.level, loops.roots, [])
        extent = loops._extent()
        whole = e._end(0, extent, lanes)
        kinds, flat = loops._kinds(self.level), loops._first(self.level)

        def square(i: Word, flat: list[str]) -> list[str]:
            origin = loops._position(i, lanes)
            return (self._square if self.written_out else self._in_memory)(origin, flat, None)

        flat = e._carried(0, whole, lanes, kinds, flat, square)
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
            made, flat = self._row(self.e.fn.add(origin, k), rows, flat)
            for s, row in made.items():
                results[s][k] = row
        for s, made_rows in results.items():
            self._store(s, made_rows, origin, None)
        return flat

    def _in_memory(self, origin: Word, flat: list[str], count: Word | None) -> list[str]:
        """A square whose rows wait in memory for a loop; `count` of them if it is only a part."""
        e, fn, lanes = self.e, self.e.fn, self.lanes
        mask = None if count is None else e.memory.lane_mask(count)
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

        flat = e._carried(0, rows, 1, self.loops._kinds(self.level), flat, row)
        for s in self.stores:
            self._store(s, [self._kept(s, k) for k in range(lanes)], origin, mask)
        return flat

    def _row(
        self, position: Word, given: dict[Load, str], flat: list[str]
    ) -> tuple[dict[Store, str], list[str]]:
        """One position of the scan for all lines: the rows of transposed stores, and the states."""
        e, loops = self.e, self.loops
        inner = self.level.inside(loops.axis, position)
        for x, raw in given.items():
            inner.values[x] = Register([e.vector.from_memory(raw, x.dtype)], True)
        loops._begin(flat, self.level)
        e._settle(inner, loops.roots, [])
        made: dict[Store, str] = {}
        for s in loops.stores:
            register = e.evaluate(s.value, inner)
            if s in self.stores:
                (part,) = e._wide_parts(s.value, register, inner)
                made[s] = e.vector.to_memory(part, s.buffer.dtype)
            else:
                e._store(s, register, inner)
        return made, loops._after()

    # ---- rows that wait in memory
    def _slot(self, x: Load | Store, k: Word) -> tuple[str, str, int]:
        """The type, address and alignment of a row."""
        stored, lanes = stored_type(x.buffer.dtype), self.lanes
        if x not in self.places:
            self.places[x] = self.e.fn.alloca(f"[{lanes} x <{lanes} x {stored}>], align 64")
        at = self.e.fn.offset(self.places[x], self.e.fn.mul(k, lanes), stored)
        return f"<{lanes} x {stored}>", at, lanes * x.buffer.dtype.size

    def _keep(self, x: Load | Store, k: Word, row: str) -> None:
        kind, at, size = self._slot(x, k)
        self.e.fn.emit(f"store {kind} {row}, ptr {at}, align {size}")

    def _kept(self, x: Load | Store, k: Word) -> str:
        kind, at, size = self._slot(x, k)
        return self.e.fn.value(f"load {kind}, ptr {at}, align {size}")

    # ---- memory
    def _lines(self, x: Load | Store, origin: Word) -> tuple[Word, Word]:
        """The element where a square begins, and the distance between its lines."""
        here = self.outer.inside(self.vector, self.first, 0).inside(self.loops.axis, origin)
        base, _ = self.e._place(x.buffer, x.index, here)
        coefficients, _, _ = split_index(x.buffer, x.index, strides(x.buffer))
        distance: Dim = coefficients[self.vector]
        return base, self.e.dim(distance)

    def _load(self, x: Load, origin: Word, mask: str | None) -> list[str]:
        """A square, transposed; lines that do not exist repeat the last one that does."""
        e, fn = self.e, self.e.fn
        base, distance = self._lines(x, origin)
        rows = []
        for k in range(self.lanes):
            line = k if self.count is None else fn.min(fn.sub(self.count, 1), k)
            at = fn.add(base, fn.mul(distance, line))
            address = Address(e.pointers[x.buffer], at, 1)
            rows.append(e.memory.load_stored(address, x.dtype, mask))
        return e._transposed(rows, e.vector.wrap(stored_type(x.dtype)))

    def _store(self, s: Store, rows: list[str], origin: Word, mask: str | None) -> None:
        e, fn = self.e, self.e.fn
        base, distance = self._lines(s, origin)
        kind = e.vector.wrap(stored_type(s.buffer.dtype))
        for k, line in enumerate(e._transposed(rows, kind)):
            exists = True if self.count is None else fn.compare("slt", k, self.count)
            with fn.when(exists) as needed:
                if needed:
                    at = fn.add(base, fn.mul(distance, k))
                    address = Address(e.pointers[s.buffer], at, 1)
                    e.memory.store_stored(line, address, s.buffer.dtype, mask)


class _Lanes:
    """A scan through the lanes of a vector."""

    def __init__(self, emitter: KernelEmitter, scan: Scan, mask: str | None) -> None:
        self.e, self.scan, self.mask = emitter, scan, mask
        self.count = emitter.shape.lanes
        self.kind = emitter.vector.type(scan.dtype)

    def through(self, value: str, state: str) -> tuple[str, list[str]]:
        """The scan at every lane, and the state after the last one."""
        if self.scan.dtype.is_integer:
            return self._in_steps(value, state)
        return self._in_order(value, state)

    def _apply(self, elements: Elements, a: str, b: str) -> str:
        dtype = self.scan.dtype
        return elements.apply(self.scan.op, [a, b], [dtype] * 2, dtype)

    def _in_order(self, value: str, state: str) -> tuple[str, list[str]]:
        fn, scan, kind = self.e.fn, self.scan, self.kind
        one, result = self.e.scalar.type(scan.dtype), "poison"
        for k in range(self.count)[:: -1 if scan.reverse else 1]:
            element = fn.value(f"extractelement {kind} {value}, i64 {k}")
            after = self._apply(self.e.scalar, state, element)
            given = state if scan.exclusive else after
            result = fn.value(f"insertelement {kind} {result}, {one} {given}, i64 {k}")
            if self.mask is not None:
                exists = fn.value(f"extractelement <{self.count} x i1> {self.mask}, i64 {k}")
                after = self.e.scalar.select(exists, after, state, scan.dtype)
            state = after
        return result, [state]

    def _in_steps(self, value: str, state: str) -> tuple[str, list[str]]:
        """Integers may be combined in any order: with lanes 1, 2, 4, ... away."""
        fn, v, scan, count = self.e.fn, self.e.vector, self.scan, self.count
        neutral = v.constant(scan_start(scan), scan.dtype)
        if self.mask is not None:
            value = v.select(self.mask, value, neutral, scan.dtype)
        distance = 1
        while distance < count:
            value = self._apply(v, self._moved(value, neutral, distance), value)
            distance *= 2
        before = v.splat(state, scan.dtype)
        result = self._apply(v, before, value)
        last = 0 if scan.reverse else count - 1
        after = fn.value(f"extractelement {self.kind} {result}, i64 {last}")
        return self._moved(result, before, 1) if scan.exclusive else result, [after]

    def _moved(self, value: str, outside: str, distance: int) -> str:
        """Lanes moved in the direction of the scan; what comes in is `outside`."""
        count = self.count
        places = [k + distance if self.scan.reverse else k - distance for k in range(count)]
        order = ", ".join(f"i32 {p if 0 <= p < count else count}" for p in places)
        return self.e.fn.value(
            f"shufflevector {self.kind} {value}, {self.kind} {outside}, <{count} x i32> <{order}>"
        )
