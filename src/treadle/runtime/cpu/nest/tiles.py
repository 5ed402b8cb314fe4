"""Transposing loads: square tiles are read along memory, transposed in registers, used row by row.

A load that walks memory along another axis than the vector axis would gather from as many cache
lines as there are lanes, and for large arrays each line would be fetched again for every element
of it. A tile of lanes x lanes elements reads each line once.
"""

from __future__ import annotations

from treadle.kernel.ir import Axis, Kernel, Load, Store, postorder
from treadle.runtime.cpu.elements import stored_type
from treadle.runtime.cpu.lanes import transposed
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.bounds import Bounds
from treadle.runtime.cpu.nest.function import KernelFunction
from treadle.runtime.cpu.nest.level import Level, Register
from treadle.runtime.cpu.nest.loops import VectorLoops
from treadle.runtime.cpu.nest.memory import Address
from treadle.runtime.cpu.nest.places import Places
from treadle.runtime.cpu.nest.shape import transposing_loads
from treadle.runtime.cpu.nest.stores import Stores
from treadle.runtime.cpu.nest.values import Values


class TileLoops:
    """Writes the two innermost loops of a kernel with transposing loads, tile by tile."""

    def __init__(
        self, code: KernelFunction, bounds: Bounds, places: Places, values: Values,
        vectors: VectorLoops, stores: Stores,
    ) -> None:  # fmt: skip
        self.code, self.fn, self.bounds, self.places = code, code.fn, bounds, places
        self.values, self.vectors, self.stores = values, vectors, stores

    def emit(self, level: Level, across: Axis, stores: list[Store]) -> None:
        """The loops over `across` and the vector axis: whole tiles, then the other elements."""
        along, lanes = self.code.shape.vector, self.code.shape.lanes
        assert along is not None
        start, stop = self.bounds.of(across)
        first, last = self.bounds.of(along)
        whole = self.code.end_of_whole(start, stop, lanes)
        full = self.code.end_of_whole(first, last, lanes)
        loads = transposing_loads(_loads(self.code.kernel), across, along)
        tiles = {e: self._buffer(e) for e in loads}
        roots = [s.value for s in stores]

        def tile(i: Word, j: Word) -> None:
            for e, place in tiles.items():
                self._fill(e, place, level.inside(across, i), j)
            self.fn.carried(0, lanes, 1, [], [], lambda k, _: row(i, j, k))

        def row(i: Word, j: Word, k: Word) -> list[str]:
            outer = level.inside(across, self.fn.add(i, k))
            self.values.hoist(outer, roots)
            inner = outer.inside(along, j, 1, None)
            for e, place in tiles.items():
                inner.values[e] = Register([self._row(e, place, k)], True)
            self.stores.emit(stores, inner)
            return []

        def tile_row(i: Word, _: list[str]) -> list[str]:
            def one(j: Word, _: list[str]) -> list[str]:
                tile(i, j)
                return []

            return self.fn.carried(first, full, lanes, [], [], one)

        def rest(i: Word, _: list[str]) -> list[str]:
            outer = level.inside(across, i)
            self.values.hoist(outer, roots)
            begin = self.fn.select(self.fn.compare("slt", i, whole), full, first)
            self.values.splat_ahead(outer, roots)
            self.vectors.emit(outer, along, begin, last, [], self.stores.storing(stores))
            return []

        self.fn.carried(start, whole, lanes, [], [], tile_row)
        self.fn.carried(start, stop, 1, [], [], rest)

    def _buffer(self, load: Load) -> str:
        lanes = self.code.shape.lanes
        return self.fn.alloca(f"[{lanes} x <{lanes} x {stored_type(load.dtype)}>], align 64")

    def _fill(self, load: Load, place: str, level: Level, first: Word) -> None:
        """Read the rows of a tile along memory and store it transposed."""
        along, lanes = self.code.shape.vector, self.code.shape.lanes
        assert along is not None
        stored = stored_type(load.dtype)
        kind = self.code.vector.wrap(stored)
        rows = []
        for k in range(lanes):
            here = level.inside(along, self.fn.add(first, k), 0)
            base, _ = self.places.place(load.buffer, load.index, here)
            address = Address(self.code.pointers[load.buffer], base, 1)
            rows.append(self.code.memory.load_stored(address, load.dtype, None))
        for k, column in enumerate(transposed(self.fn, rows, kind)):
            at = self.fn.offset(place, k * lanes, stored)
            self.fn.emit(f"store {kind} {column}, ptr {at}, align {lanes * load.dtype.size}")

    def _row(self, load: Load, place: str, row: Word) -> str:
        lanes, stored = self.code.shape.lanes, stored_type(load.dtype)
        at = self.fn.offset(place, self.fn.mul(row, lanes), stored)
        kind = self.code.vector.wrap(stored)
        raw = self.fn.value(f"load {kind}, ptr {at}, align {lanes * load.dtype.size}")
        return self.code.vector.from_memory(raw, load.dtype)


def _loads(kernel: Kernel) -> list[Load]:
    """The loads that may be read ahead of the stores."""
    exprs, written = postorder([s.value for s in kernel.stores]), set(kernel.outputs)
    return [e for e in exprs if isinstance(e, Load) and e.buffer not in written]
