"""Transposing loads: square tiles are read along memory, transposed in registers, used row by row.

A load that walks memory along another axis than the vector axis would gather from as many cache
lines as there are lanes, and for large arrays each line would be fetched again for every element
of it. A tile of lanes x lanes elements reads each line once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from treadle.kernel.ir import Axis, Kernel, Load, Store, postorder
from treadle.runtime.cpu.elements import stored_type
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.nest.level import Level, Register
from treadle.runtime.cpu.nest.loops import Body
from treadle.runtime.cpu.nest.memory import Address
from treadle.runtime.cpu.nest.passes import Passes
from treadle.runtime.cpu.nest.shape import transposing_loads


class Tiles(Passes, ABC):
    """Adds the tiled form of the two innermost loops."""

    @abstractmethod
    def _storing(self, stores: list[Store]) -> Body:
        """What stores at a level."""

    def _tile_loops(self, level: Level, across: Axis, stores: list[Store]) -> None:
        """The loops over `across` and the vector axis: whole tiles, then what is left."""
        along, lanes = self.shape.vector, self.shape.lanes
        assert along is not None
        start, stop = self._range(across, reducing=False)
        first, last = self._range(along, reducing=False)
        whole, full = self._end(start, stop, lanes), self._end(first, last, lanes)
        loads = transposing_loads(_loads(self.kernel), across, along)
        tiles = {e: self._tile_buffer(e) for e in loads}

        def tile(i: Word, j: Word) -> None:
            for e, place in tiles.items():
                self._fill_tile(e, place, level.inside(across, i), j)
            self._carried(0, lanes, 1, [], [], lambda k, _: row(i, j, k))

        def row(i: Word, j: Word, k: Word) -> list[str]:
            outer = level.inside(across, self.fn.add(i, k))
            self._settle(outer, [s.value for s in stores], [])
            inner = outer.inside(along, j, 1, None)
            for e, place in tiles.items():
                inner.values[e] = Register([self._tile_row(e, place, k)], True)
            self._storing(stores)(inner, [])
            return []

        def tile_row(i: Word, _: list[str]) -> list[str]:
            def one(j: Word, _: list[str]) -> list[str]:
                tile(i, j)
                return []

            return self._carried(first, full, lanes, [], [], one)

        def rest(i: Word, _: list[str]) -> list[str]:
            outer = level.inside(across, i)
            self._settle(outer, [s.value for s in stores], [])
            begin = self.fn.select(self.fn.compare("slt", i, whole), full, first)
            self._splat_ahead(outer, [s.value for s in stores])
            self._vector_loop(outer, along, begin, last, [], self._storing(stores))
            return []

        self._carried(start, whole, lanes, [], [], tile_row)
        self._carried(start, stop, 1, [], [], rest)

    def _tile_buffer(self, load: Load) -> str:
        lanes = self.shape.lanes
        return self.fn.alloca(f"[{lanes} x <{lanes} x {stored_type(load.dtype)}>], align 64")

    def _fill_tile(self, load: Load, place: str, level: Level, first: Word) -> None:
        """Read the rows of a tile along memory and store it transposed."""
        along, lanes = self.shape.vector, self.shape.lanes
        assert along is not None
        stored = stored_type(load.dtype)
        kind = self.vector.wrap(stored)
        rows = []
        for k in range(lanes):
            here = level.inside(along, self.fn.add(first, k), 0)
            base, _ = self._place(load.buffer, load.index, here)
            address = Address(self.pointers[load.buffer], base, 1)
            rows.append(self.memory.load_stored(address, load.dtype, None))
        for k, column in enumerate(self._transposed(rows, kind)):
            at = self.fn.offset(place, k * lanes, stored)
            self.fn.emit(f"store {kind} {column}, ptr {at}, align {lanes * load.dtype.size}")

    def _transposed(self, rows: list[str], kind: str) -> list[str]:
        """A square of registers transposed: blocks are exchanged at distances 1, 2, 4, ..."""
        lanes, rows = len(rows), list(rows)
        step = 1
        while step < lanes:
            low = [x if not x & step else lanes + x - step for x in range(lanes)]
            high = [x + step if not x & step else lanes + x for x in range(lanes)]
            for k in range(lanes):
                if not k & step:
                    a, b = rows[k], rows[k + step]
                    rows[k], rows[k + step] = (
                        self.fn.value(f"shufflevector {kind} {a}, {kind} {b}, {_order(order)}")
                        for order in (low, high)
                    )
            step *= 2
        return rows

    def _tile_row(self, load: Load, place: str, row: Word) -> str:
        lanes, stored = self.shape.lanes, stored_type(load.dtype)
        at = self.fn.offset(place, self.fn.mul(row, lanes), stored)
        kind = self.vector.wrap(stored)
        raw = self.fn.value(f"load {kind}, ptr {at}, align {lanes * load.dtype.size}")
        return self.vector.from_memory(raw, load.dtype)


def _order(places: Iterable[int]) -> str:
    listed = list(places)
    return f"<{len(listed)} x i32> <{', '.join(f'i32 {p}' for p in listed)}>"


def _loads(kernel: Kernel) -> list[Load]:
    """Those that may be read ahead of the stores."""
    exprs, written = postorder([s.value for s in kernel.stores]), set(kernel.outputs)
    return [e for e in exprs if isinstance(e, Load) and e.buffer not in written]
