"""A whole kernel: its stores, its segments, and totals that are computed in chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from treadle.core import dtypes
from treadle.core.records import record
from treadle.core.shapes import Dim, compound, product
from treadle.kernel.ir import Axis, Expr, Kernel, Reduce, Scan, Store, postorder
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.accumulator import Accumulator
from treadle.runtime.cpu.nest.braid import braid
from treadle.runtime.cpu.nest.level import Level, Register
from treadle.runtime.cpu.nest.loops import Body, States, flatten, unflatten
from treadle.runtime.cpu.nest.memory import Address
from treadle.runtime.cpu.nest.pieces import Piece, pieces
from treadle.runtime.cpu.nest.scans import ScanLoops
from treadle.runtime.cpu.nest.shape import CHUNK, extent_estimate, flat_stride, is_costly
from treadle.runtime.cpu.nest.streams import streamed_stores
from treadle.runtime.cpu.nest.tiles import Tiles
from treadle.runtime.cpu.target import Target

# No machine changes these: the length of code, and a bound that holds for every width.
FEW_ELEMENTS = 4096  # which are not worth the code for several rows
TILE_UNITS = 64  # at least as many as a tile has


@record(frozen=True)
class EmittedKernel:
    """A kernel's code and how to call it: ``symbol(buffers, dims, lo, hi, scratch)``.

    Attributes:
        symbol: the function; it handles the units [lo, hi) of `units`.
        text: its module.
        symbols: the names whose values `dims` holds, in order.
        units: how many units of work there are.
        grain: the fewest units worth a thread.
        together: units that the code computes at once, at most.
        scratch: bytes that every thread needs.
        shared: bytes of memory whose address follows the buffers' (partial results), 0 for none.
        finish: a function ``(buffers, dims)`` to call when all units are done, or None.
        segmented: `buffers` is a table: the number of segments, then for each its length and
            the addresses of its buffers; units are elements over all segments.
    """

    symbol: str
    text: str
    symbols: tuple[str, ...]
    units: Dim
    grain: Dim
    together: int
    scratch: Dim
    shared: Dim
    finish: str | None
    segmented: bool


class KernelEmitter(Tiles):
    """Writes the functions of one kernel."""

    def __init__(self, kernel: Kernel, target: Target, symbol: str) -> None:
        super().__init__(kernel, target)
        self.symbol = symbol
        self.scans = ScanLoops(self, self.shape.scan) if self.shape.scan is not None else None

    def emit(self) -> EmittedKernel:
        kernel, shape = self.kernel, self.shape
        finish: str | None = None
        shared: Dim = 0
        units = self._units()
        if kernel.segmented:
            self._emit_segments()
        elif shape.total:
            finish, shared = self.symbol + "_finish", self._emit_partials()
        else:
            self._read_arguments()
            if kernel.streaming:
                self._stores_past_caches()
            self._all_loops()
        if not shape.total:
            self.fn.emit("ret void")
            self._define(
                self.symbol, "void @{}(ptr %buffers, ptr %dims, i64 %lo, i64 %hi, ptr %scratch)"
            )
        return EmittedKernel(
            self.symbol, self.module.text(), kernel.symbols, units, shape.grain, self._together(),
            self.scratch, shared, finish, kernel.segmented,
        )  # fmt: skip

    def _all_loops(self) -> None:
        """The loops of a kernel, and all that happens in them."""
        if self.scans is not None:
            self.scans.emit(Level(None, {}))
        else:
            self._stores(list(self.kernel.stores), Level(None, {}))

    def _scan_step(self, scan: Scan, level: Level) -> Register:
        assert self.scans is not None
        return self.scans.step(scan, level)

    def _define(self, name: str, signature: str) -> None:
        self.fn.define(name, signature)

    def _units(self) -> Dim:
        axis = self.shape.parallel
        if axis is None:
            return 1
        if not self.shape.total:
            return axis.extent
        rows = self._chunk_rows()
        return (axis.extent + (rows - 1)) // rows

    def _together(self) -> int:
        """Units that are computed at once: whole cache lines of columns, tiles, rows."""
        shape = self.shape
        if shape.total:
            return 1
        if shape.parallel is shape.vector:
            return self.accumulators * shape.lanes
        return TILE_UNITS if shape.tile is not None else self.tuning.unroll

    @property
    def accumulators(self) -> int:
        """Vectors that may be summed up in registers at once; others hold operands."""
        return self.tuning.registers // 2

    def _stores_past_caches(self) -> None:
        """The same code with stores that do not fetch what they overwrite, for memory that
        begins at multiples of a vector; otherwise nothing is done."""
        fn, chosen = self.fn, streamed_stores(self.kernel, self.shape)
        if not chosen or not self.module.target.is_x86:
            return
        places = [fn.value(f"ptrtoint ptr {self.pointers[s.buffer]} to i64") for s in chosen]
        together = places[0]
        for place in places[1:]:
            together = fn.value(f"or i64 {together}, {place}")
        most = max(s.buffer.dtype.size for s in chosen) * self.shape.lanes
        aligned = fn.compare("eq", fn.value(f"and i64 {together}, {most - 1}"), 0)
        fn.emit(f"br i1 {aligned}, label %past, label %through")
        fn.label("past")
        self.past_caches = frozenset(chosen)
        self._all_loops()
        self.past_caches = frozenset()
        fn.module.declare("void @llvm.x86.sse.sfence()")
        fn.emit("call void @llvm.x86.sse.sfence()")  # other threads see the stores after this
        fn.emit("ret void")
        fn.label("through")

    def _emit_segments(self) -> None:
        """Loop over the segments that the range of elements touches."""
        fn, (axis,) = self.fn, self.kernel.axes
        words = 1 + len(self.kernel.buffers)
        count = fn.load_word("%buffers", 0)

        def segment(i: Word, start: list[str]) -> list[str]:
            place = fn.add(fn.mul(i, words), 1)
            length = fn.load_word("%buffers", place)
            for k, buffer in enumerate(self.kernel.buffers):
                self.pointers[buffer] = fn.load_word("%buffers", fn.add(place, k + 1), "ptr")
            low = fn.max(fn.sub("%lo", start[0]), 0)
            high = fn.min(fn.sub("%hi", start[0]), length)
            for name in self.kernel.symbols:
                self.dims[name] = length
            level = Level(None, {})
            self._hoist(level, [s.value for s in self.kernel.stores])
            self._vector_loop(level, axis, low, high, [], self._storing(list(self.kernel.stores)))
            return [str(fn.add(start[0], length))]

        self._carried(0, count, 1, ["i64"], ["0"], segment)

    def _stores(self, stores: list[Store], level: Level) -> None:
        """Everything that `stores` need here and inside: passes, then stores, then inner loops."""
        groups: dict[Axis, list[Store]] = {}
        here = [s for s in stores if s.axes <= level.axes.keys()]
        for s in stores:
            if s not in here:
                free = self.shape.order(s.axes - level.axes.keys(), self.kernel)
                groups.setdefault(free[0], []).append(s)
        rows = [_roots(group) for axis, group in groups.items() if axis is self.shape.vector]
        self.coming = self._new_rows(groups.get(self.shape.vector, []))  # type: ignore[arg-type]
        self._settle(level, _roots(stores), rows)
        if here:
            self._storing(here)(level, [])
        for axis, group in groups.items():
            self._store_loop(level, axis, group)

    def _new_rows(self, stores: list[Store]) -> list[Store]:
        """Those of the stores along the vector axis that fill memory which nothing has read."""
        vector = self.shape.vector
        known = {*self.kernel.inputs, *(s.buffer for s in self.past_caches)}
        return [
            s
            for s in stores
            if vector
            and s.buffer not in known
            and not s.computed
            and flat_stride(s.buffer, s.index, vector) == 1
        ]

    def _store_loop(self, level: Level, axis: Axis, stores: list[Store]) -> None:
        start, stop = self._range(axis, reducing=False)
        if axis is self.shape.vector:
            for first, last, part in self._pieces(axis, stores):
                begin = start if first == 0 else self.fn.max(start, first)
                end = stop if last == axis.extent else self.fn.min(stop, self.dim(last))
                self._store_vectors(level, axis, begin, end, part)
        elif axis is self.shape.tile:
            self._tile_loops(level, axis, stores)
        else:
            self._row_loop(level, axis, start, stop, stores)

    def _row_loop(
        self, level: Level, axis: Axis, start: Word, stop: Word, stores: list[Store]
    ) -> None:
        """A plain loop, several rows at a time where these are side by side."""

        def row(i: Word, state: list[str]) -> list[str]:
            self._stores(stores, level.inside(axis, i))
            return state

        def rows(i: Word, state: list[str]) -> list[str]:
            places = [self.fn.add(i, k) for k in range(together)]
            braid(self.fn, [lambda p=p: row(p, []) and None for p in places])  # type: ignore[misc]
            return state

        together = self.side_by_side = self._rows_together(level, axis, stores)
        # Few elements are not worth the code; sums have the same order either way.
        many = math.prod(extent_estimate(a.extent) for a in self.kernel.axes) >= FEW_ELEMENTS
        if together > 1 and many:
            whole = self._end(start, stop, together)
            self._carried(start, whole, together, [], [], rows)
            start = whole
        self._carried(start, stop, 1, [], [], row)
        self.side_by_side = 1

    def _pieces(self, axis: Axis, stores: list[Store]) -> list[Piece]:
        found = pieces(stores, axis)
        streamed = {s.buffer for s in self.past_caches}
        parts = (s for _, _, part in found for s in part if s.buffer in streamed)
        self.past_caches |= frozenset(parts)
        return found

    def _store_vectors(
        self, level: Level, axis: Axis, start: Word, stop: Word, stores: list[Store]
    ) -> None:
        roots = _roots(stores)
        self._splat_ahead(level, roots)
        with self._next_row_ahead(level, roots):
            body = self._columns(stores) if self.shape.columns else self._storing(stores)
            self._staged_loop(level, axis, start, stop, [], body, roots, broad=self._breadth(roots))

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
        fitting = [n for n in (16, 8) if n * len(reduces) <= self.accumulators]
        return fitting[0] if fitting else 1

    def _columns(self, stores: list[Store]) -> Body:
        """The body of the loop over blocks of columns: passes down them and what follows."""

        def block(level: Level, state: States) -> States:
            self._stores(stores, level)
            return state

        return block

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
        if self._has_stages([s.value for s in stores], vector):
            return 1
        vectors = vector.extent // self.shape.lanes
        costly = any(is_costly(e) and vector in e.axes for e in exprs)
        return self.tuning.unroll if vectors <= (64 if costly else 16) else 1

    def _storing(self, stores: list[Store]) -> Body:
        def store_all(level: Level, state: States) -> States:
            self._settle(level, _roots(stores), [])
            registers = [self.evaluate(s.value, level) for s in stores]
            for s, register in zip(stores, registers, strict=True):
                self._store(s, register, level)
            return state

        return store_all

    def _store(self, store: Store, register: Register, level: Level) -> None:
        # What the level keeps for later is emitted before the branch around the elements.
        base, stride = self._place(store.buffer, store.index, level, clamp=False)
        wide = level.copies > 0 and self.shape.vector in store.axes
        parts = self._wide_parts(store.value, register, level) if wide else register.parts[:1]
        with self.fn.when(self._is_inside(store, level)) as needed:
            if needed and wide:
                self._store_lanes(store, parts, base, stride, level)
            elif needed:
                self._store_one(store, parts[0], base)

    def _store_one(self, store: Store, value: str, at: Word) -> None:
        pointer, dtype = self.pointers[store.buffer], store.value.dtype
        if store.combine != "set":
            old = self.memory.load_scalar(pointer, at, dtype, None)
            value = self.scalar.apply(store.combine, [old, value], [dtype] * 2, dtype)
        self.memory.store_scalar(value, pointer, at, dtype)

    def _store_lanes(
        self, store: Store, parts: list[str], base: Word, stride: Word, level: Level
    ) -> None:
        dtype = store.value.dtype
        for copy, part in enumerate(parts):
            at = self.fn.add(base, self.fn.mul(stride, copy * self.shape.lanes))
            address = Address(self.pointers[store.buffer], at, stride)
            if store.combine != "set":
                old = self.memory.load(address, dtype, level.mask)
                part = self.vector.apply(store.combine, [old, part], [dtype] * 2, dtype)
            self.memory.store(part, address, dtype, level.mask, store in self.past_caches)

    def _is_inside(self, store: Store, level: Level) -> str | bool:
        """Whether the computed indices, which all lanes share, are positions of the buffer."""
        inside: str | bool = True
        for index, size in zip(store.index, store.buffer.shape, strict=True):
            if isinstance(index, Expr):
                place = self.evaluate(index, level).parts[0]
                place = self.scalar.apply("cast", [place], [index.dtype], dtypes.int64)
                here = self.fn.compare("ult", place, self.dim(size))
                both = inside is not True and not isinstance(here, bool)
                inside = self.fn.value(f"and i1 {inside}, {here}") if both else here
        return inside

    def _chunk_rows(self) -> Dim:
        """Positions of the parallel axis in a chunk."""
        axis = self.shape.parallel
        per_row = product(a.extent for a in self.shape.total[0].over if a is not axis)
        return compound("max", compound("floordiv", CHUNK, compound("max", per_row, 1)), 1)

    def _emit_partials(self) -> Dim:
        """The chunks' function, and the one that merges their results; bytes for the partials."""
        group, axis = list(self.shape.total), self.shape.parallel
        assert axis is not None
        self._read_arguments()
        rows = self.dim(self._chunk_rows())
        fn = self.fn
        partials = fn.load_word("%buffers", len(self.kernel.buffers), "ptr")
        words = sum(len(Accumulator(r, self.scalar).types) for r in group)
        level = Level(None, {})
        self._hoist(level, [r.value for r in group])
        extent = self.dim(axis.extent)

        def chunk(c: Word, state: list[str]) -> list[str]:
            first = fn.mul(c, rows)
            last = fn.min(fn.add(first, rows), extent)
            inner = Level(level, {})
            states, sets = self._reduce_states(group, inner, (axis, first, last))
            slot = fn.mul(c, words)
            for i in range(len(group)):
                kinds = Accumulator(group[i], self.scalar).types
                for kind, part in zip(kinds, self._one(i, sets, states), strict=True):
                    fn.emit(f"store {kind} {part}, ptr {fn.offset(partials, slot, 'i64')}")
                    slot = fn.add(slot, 1)
            return state

        self._carried("%lo", "%hi", 1, [], [], chunk)
        fn.emit("ret void")
        self._define(
            self.symbol, "void @{}(ptr %buffers, ptr %dims, i64 %lo, i64 %hi, ptr %scratch)"
        )
        self._emit_finish(group, words)
        return self._units() * (8 * words)

    def _emit_finish(self, group: list[Reduce], words: int) -> None:
        """Merge the chunks' results in order and store what they lead to."""
        self._open()
        self._read_arguments()
        fn = self.fn
        partials = fn.load_word("%buffers", len(self.kernel.buffers), "ptr")
        accumulators = [Accumulator(r, self.scalar) for r in group]
        kinds = [t for a in accumulators for t in a.types]

        def one(c: Word, flat: list[str]) -> list[str]:
            parts = [
                fn.value(
                    f"load {kind}, ptr {fn.offset(partials, fn.add(fn.mul(c, words), n), 'i64')}"
                )
                for n, kind in enumerate(kinds)
            ]
            now, more = unflatten(flat, [accumulators])[0], unflatten(parts, [accumulators])[0]
            merged = [a.merge(s, m) for a, s, m in zip(accumulators, now, more, strict=True)]
            return flatten([merged])

        start = flatten([[a.start() for a in accumulators]])
        states = unflatten(
            self._carried(0, self.dim(self._units()), 1, kinds, start, one), [accumulators]
        )
        level = Level(None, {})
        for a, state in zip(accumulators, states[0], strict=True):
            level.values[a.reduce] = Register([a.result(state)], False)
        self._storing(list(self.kernel.stores))(level, [])
        fn.emit("ret void")
        self._define(self.symbol + "_finish", "void @{}(ptr %buffers, ptr %dims)")


def _roots(stores: Sequence[Store]) -> list[Expr]:
    """The expressions that stores need."""
    return [e for s in stores for e in s.roots]
