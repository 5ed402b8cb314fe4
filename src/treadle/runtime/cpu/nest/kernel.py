"""A whole kernel: one function over its units of work, or two for a total of many elements."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING

from treadle.core.records import record
from treadle.core.shapes import Dim, compound, product
from treadle.kernel.ir import Buffer, Kernel, Load, postorder
from treadle.runtime.cpu.llvm_text import Module, Word
from treadle.runtime.cpu.nest.accumulator import Accumulator
from treadle.runtime.cpu.nest.bounds import BlockBounds, CallBounds
from treadle.runtime.cpu.nest.function import KernelFunction
from treadle.runtime.cpu.nest.level import Level, Register
from treadle.runtime.cpu.nest.loops import VectorLoops, flatten, unflatten
from treadle.runtime.cpu.nest.picks import without_picks
from treadle.runtime.cpu.nest.places import Places
from treadle.runtime.cpu.nest.reductions import Reductions, Span
from treadle.runtime.cpu.nest.row_buffers import RowBuffers
from treadle.runtime.cpu.nest.running import RunningScans
from treadle.runtime.cpu.nest.shape import (
    CHUNK,
    Shape,
    UnsupportedKernel,
    choose_shape,
    flat_stride,
)
from treadle.runtime.cpu.nest.staging import StagedLoops
from treadle.runtime.cpu.nest.store_loops import StoreLoops
from treadle.runtime.cpu.nest.stores import Stores
from treadle.runtime.cpu.nest.streams import streamed_buffers
from treadle.runtime.cpu.nest.tiles import TileLoops
from treadle.runtime.cpu.nest.values import Values
from treadle.runtime.cpu.target import Target

if TYPE_CHECKING:
    from treadle.runtime.cpu.nest.scans import ScanLoops

# Of the functions of all kernels: many kernels of a large network differ in nothing but how many
# units of work there are, which their callers know. Their texts are the same, and so is their code.
SYMBOL = "kernel"

TILE_UNITS = 64  # at least as many as a tile has, whatever the width of vectors

_UNITS = "void @{}(ptr %buffers, ptr %dims, i64 %lo, i64 %hi, ptr %scratch)"
_BLOCK = "void @{}(ptr %buffers, ptr %dims, i64 %lo, i64 %hi, i64 %left, i64 %right, ptr %scratch)"
_FINISH = "void @{}(ptr %buffers, ptr %dims)"


@record(frozen=True)
class EmittedKernel:
    """A kernel's code and how to call it: ``symbol(buffers, dims, lo, hi, scratch)``.

    Attributes:
        symbol: the function; it handles the units [lo, hi) of `units`. That of a blocked kernel
            is ``symbol(buffers, dims, lo, hi, left, right, scratch)``: a library routine calls it
            for rows [lo, hi) and columns [left, right) of its result, while these are in the
            cache.
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


def emit_kernel(kernel: Kernel, target: Target) -> EmittedKernel:
    """The code of a kernel.

    Raises:
        UnsupportedKernel: there is no code for it.
    """
    return _Writer(without_picks(kernel), Module(target)).emit()


def add_kernel(kernel: Kernel, module: Module, symbol: str) -> None:
    """Define the function of a kernel, which is a single one, for the callers in a module."""
    if symbol not in module.functions:
        _Writer(without_picks(kernel), module, symbol, "internal").emit()


class _Parts:
    """The objects that write a function together, each over those before it."""

    def __init__(
        self, code: KernelFunction, rows: RowBuffers, streamed: AbstractSet[Buffer] = frozenset()
    ) -> None:
        kernel, shape = code.kernel, code.shape
        places, running = Places(code), RunningScans(code)
        self.values = Values(code, places, rows, running)
        self.vectors = VectorLoops(code, aligned=bool(streamed))
        staged = StagedLoops(code, self.values, self.vectors)
        self.reductions = Reductions(code, places, rows, self.values, staged)
        self.stores = Stores(code, places, self.values, self.reductions, streamed)
        bounds = BlockBounds(code) if kernel.blocked else CallBounds(code)
        tiles = TileLoops(code, bounds, places, self.values, self.vectors, self.stores)
        self.loops = StoreLoops(
            code, bounds, self.values, self.reductions, staged, self.stores, tiles
        )
        self.scans: ScanLoops | None = None
        if shape.scan is not None:
            from treadle.runtime.cpu.nest.scans import ScanLoops

            self.scans = ScanLoops(
                code, bounds, places, self.values, self.vectors, self.stores, self.loops, running
            )

    def emit(self) -> None:
        """All loops of the kernel, and everything that happens in them."""
        if self.scans is not None:
            self.scans.emit(Level.outermost())
        else:
            self.loops.emit(list(self.stores.code.kernel.stores), Level.outermost())


class _Writer:
    """Writes the functions of one kernel."""

    def __init__(
        self, kernel: Kernel, module: Module, symbol: str = SYMBOL, linkage: str = ""
    ) -> None:
        self.kernel, self.symbol, self.module, self.linkage = kernel, symbol, module, linkage
        self.shape = choose_shape(kernel, module.target)
        if kernel.blocked:
            self.shape = _block_shape(kernel, self.shape)
        self.code = KernelFunction(kernel, self.shape, self.module)
        if linkage:
            self.code.fn.repeat = self.module.keeps_loops()
        self.rows = RowBuffers(self.code)

    def emit(self) -> EmittedKernel:
        finish: str | None = None
        shared: Dim = 0
        words = 0
        if self.kernel.segmented:
            self._segments()
        elif self.shape.total:
            words = self._chunks()
        else:
            self.code.read_arguments()
            if self.kernel.streaming:
                self._past_caches()
            _Parts(self.code, self.rows).emit()
        self.code.fn.emit("ret void")
        form = _BLOCK if self.kernel.blocked else _UNITS
        self.code.fn.define(self.symbol, form, self.linkage)
        if words:
            finish, shared = self._finish(words), self._units() * (8 * words)
        return EmittedKernel(
            SYMBOL, self.module.text(), self.kernel.symbols, self._units(), self.shape.grain,
            self._together(), self.rows.size, shared, finish, self.kernel.segmented,
        )  # fmt: skip

    # ---- units of work
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
            return self.code.accumulators * shape.lanes
        return TILE_UNITS if shape.tile is not None else self.code.tuning.unroll

    # ---- forms of a kernel
    def _past_caches(self) -> None:
        """Write the loops a first time with stores that do not fetch the lines that they overwrite,
        for buffers that begin at multiples of a vector; other buffers take the usual loops."""
        fn, chosen = self.code.fn, streamed_buffers(self.kernel, self.shape)
        if not chosen or not self.module.target.is_x86:
            return
        places = [fn.value(f"ptrtoint ptr {self.code.pointers[b]} to i64") for b in chosen]
        together = places[0]
        for place in places[1:]:
            together = fn.value(f"or i64 {together}, {place}")
        most = max(b.dtype.size for b in chosen) * self.shape.lanes
        aligned = fn.compare("eq", fn.value(f"and i64 {together}, {most - 1}"), 0)
        fn.fork(str(aligned), "past", "through")
        fn.label("past")
        _Parts(self.code, self.rows, frozenset(chosen)).emit()
        fn.module.declare("void @llvm.x86.sse.sfence()")
        fn.emit("call void @llvm.x86.sse.sfence()")  # other threads see the stores after this
        fn.emit("ret void")
        fn.label("through")

    def _segments(self) -> None:
        """Loop over the segments that the range of elements touches."""
        code, fn, (axis,) = self.code, self.code.fn, self.kernel.axes
        parts, stores = _Parts(code, self.rows), list(self.kernel.stores)
        words = 1 + len(self.kernel.buffers)
        count = fn.load_word("%buffers", 0)

        def segment(i: Word, start: list[str]) -> list[str]:
            place = fn.add(fn.mul(i, words), 1)
            length = fn.load_word("%buffers", place)
            for k, buffer in enumerate(self.kernel.buffers):
                code.pointers[buffer] = fn.load_word("%buffers", fn.add(place, k + 1), "ptr")
            low = fn.max(fn.sub("%lo", start[0]), 0)
            high = fn.min(fn.sub("%hi", start[0]), length)
            for name in self.kernel.symbols:
                code.dims[name] = length
            level = Level.outermost()
            parts.values.hoist(level, [s.value for s in stores])
            parts.vectors.emit(level, axis, low, high, [], parts.stores.storing(stores))
            return [str(fn.add(start[0], length))]

        fn.carried(0, count, 1, ["i64"], ["0"], segment)

    # ---- totals, which are computed in chunks of the parallel axis
    def _chunk_rows(self) -> Dim:
        """Positions of the parallel axis in a chunk."""
        axis = self.shape.parallel
        per_row = product(a.extent for a in self.shape.total[0].over if a is not axis)
        return compound("max", compound("floordiv", CHUNK, compound("max", per_row, 1)), 1)

    def _chunks(self) -> int:
        """Write the loop over chunks. Each chunk stores its partial results into the memory whose
        address follows the buffers'; gives the words that they take."""
        code, fn, group, axis = self.code, self.code.fn, self.shape.total, self.shape.parallel
        assert axis is not None
        parts = _Parts(code, self.rows)
        code.read_arguments()
        rows = code.dim(self._chunk_rows())
        partials = fn.load_word("%buffers", len(self.kernel.buffers), "ptr")
        words = sum(len(Accumulator(r, code.scalar).types) for r in group)
        level = Level.outermost()
        parts.values.hoist(level, [r.value for r in group])
        extent = code.dim(axis.extent)

        def chunk(c: Word, state: list[str]) -> list[str]:
            first = fn.mul(c, rows)
            span = Span(axis, first, fn.min(fn.add(first, rows), extent))
            states, sets = parts.reductions.accumulate(list(group), level.nested(), span)
            slot = fn.mul(c, words)
            for i, reduce in enumerate(group):
                kinds = Accumulator(reduce, code.scalar).types
                merged = parts.reductions.merged(i, sets, states)
                for kind, part in zip(kinds, merged, strict=True):
                    fn.emit(f"store {kind} {part}, ptr {fn.offset(partials, slot, 'i64')}")
                    slot = fn.add(slot, 1)
            return state

        fn.carried("%lo", "%hi", 1, [], [], chunk)
        return words

    def _finish(self, words: int) -> str:
        """Write the function that merges the results of the chunks in order, and computes the
        kernel's stores from the totals; gives its name."""
        code = KernelFunction(self.kernel, self.shape, self.module)
        code.read_arguments()
        fn, name = code.fn, f"{SYMBOL}_finish"
        partials = fn.load_word("%buffers", len(self.kernel.buffers), "ptr")
        accumulators = [Accumulator(r, code.scalar) for r in self.shape.total]
        kinds = [t for a in accumulators for t in a.types]

        def one(c: Word, flat: list[str]) -> list[str]:
            more = []
            for n, kind in enumerate(kinds):
                place = fn.offset(partials, fn.add(fn.mul(c, words), n), "i64")
                more.append(fn.value(f"load {kind}, ptr {place}"))
            (states,), (others,) = unflatten(flat, [accumulators]), unflatten(more, [accumulators])
            merged = zip(accumulators, states, others, strict=True)
            return flatten([[a.merge(state, other) for a, state, other in merged]])

        start = flatten([[a.start() for a in accumulators]])
        flat = fn.carried(0, code.dim(self._units()), 1, kinds, start, one)
        (states,) = unflatten(flat, [accumulators])
        level = Level.outermost()
        for a, state in zip(accumulators, states, strict=True):
            level.values[a.reduce] = Register([a.result(state)], False)
        _Parts(code, RowBuffers(code)).stores.emit(list(self.kernel.stores), level)
        fn.emit("ret void")
        fn.define(name, _FINISH)
        return name


def _block_shape(kernel: Kernel, shape: Shape) -> Shape:
    """The loops of a blocked kernel: vectors go along its columns, rows are all other axes."""
    column = kernel.axes[-1]
    loads = [e for e in postorder([s.value for s in kernel.stores]) if isinstance(e, Load)]
    if any(flat_stride(e.buffer, e.index, column) not in (0, 1) for e in loads):
        raise UnsupportedKernel("a load that is not contiguous along a row of the block")
    return replace(shape, vector=column, parallel=column, total=(), rows=frozenset(), tile=None)
