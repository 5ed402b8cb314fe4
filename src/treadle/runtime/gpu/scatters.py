"""Stores at computed places that may meet: sums of rows by their numbers, and the like.

The elements of the target are shared out among blocks, and those of a block among its threads, so
that an element has one thread. Every block goes over all positions in their order, and keeps those
that store into its own elements: each element gets its values in the order of the positions.

Where the target has so few elements that there are few blocks, blocks take parts of the positions.
They combine what belongs to an element in scratch memory, and a second launch combines these parts,
in their order.
"""

from __future__ import annotations

from treadle.core.shapes import Dim, product
from treadle.kernel.ir import Affine, Axis, Expr, Store
from treadle.kernel.reference import neutral
from treadle.runtime.gpu.mapping import Owners
from treadle.runtime.gpu.scalars import constant, dim_text, element_type, value_type
from treadle.runtime.gpu.writer import COMBINING, Names, Writer

_TURNS = 4  # positions that a thread looks at before the block stores


class ScatterWriter(Writer):
    """Writes a stage of a kernel with one such store. The threads of a *group* have a column each
    (`Owners`)."""

    @property
    def target(self) -> Store:
        (store,) = self.kernel.stores
        return store

    @property
    def owners(self) -> Owners:
        assert self.mapping.owners is not None
        return self.mapping.owners

    @property
    def _last(self) -> bool:
        """Whether the parts of positions are done."""
        return self.mapping.parts != 1 and not self.results

    def blocks(self) -> Dim:
        owners, threads = self.owners, self.mapping.threads
        if self._last:
            return (self.mapping.count * owners.keys + threads - 1) // threads
        return owners.columns * owners.ranges * self.mapping.parts

    def _block(self) -> list[str]:
        self.parts = 1 if self._last else self.mapping.parts
        return super()._block()

    def _points(self) -> None:
        if self._last:
            self._combine_parts()
        else:
            self._go_over_positions()

    def _combine_parts(self) -> None:
        """A thread for each element of the target."""
        store, count, keys = self.target, dim_text(self.mapping.count), dim_text(self.owners.keys)
        self.line(f"const td_index own = block * {self.mapping.threads} + threadIdx.x;")
        self.line(f"if (own >= {count} * {keys}) return;")
        self.line(f"const td_index key = own / {count}, point = own % {count};")
        self._positions(self.mapping.grid, "point")
        places = {n: self._affine(i) for n, i in enumerate(store.index) if isinstance(i, Affine)}
        below: Dim = 1
        for number in reversed(self.owners.dims):
            size = store.buffer.shape[number]
            places[number] = f"key / {dim_text(below)} % {dim_text(size)}"
            below = below * size
        text = ""
        for number, size in enumerate(store.buffer.shape):
            place = places[number]
            text = f"({text}) * {dim_text(size)} + {place}" if text else place
        pointer, (reduce,) = self.pointers[store.buffer], self.found
        kind = element_type(store.buffer.dtype)
        self.line(f"const td_index place = {text or '0'};")
        self.line(f"{value_type(store.buffer.dtype)} value = TD_LOAD({pointer}, place);")
        self.open(f"for (td_index p = 0; p < {dim_text(self.mapping.parts)}; p++)")
        other = f"td_element({self._scratch_pointer(reduce)}, p * {count} * {keys} + own)"
        self.line(f"value = {COMBINING[reduce.op]}::of(value, {other});")
        self.close()
        self.line(f"TD_STORE({kind}, {pointer}, place, value);")

    def _go_over_positions(self) -> None:
        threads, warp, lanes = self.mapping.threads, self.gpu.warp, self.owners.lanes
        axes, columns = self.mapping.inner, dim_text(self.owners.columns)
        groups = threads // lanes
        size, keys = dim_text(product(a.extent for a in axes)), dim_text(self.owners.keys)
        tile, warps = threads * _TURNS, threads // warp
        rows = [("hits", tile), ("places", tile), ("counts", warps)]
        for name, count in rows:
            self.shared[name] = f"TD_SHARED(int, {name}, {count}, {self.bytes});"
            self.bytes += -(-4 * count // self.gpu.load) * self.gpu.load
        self.line(f"const td_index count = {dim_text(self.mapping.count)};")
        self.line(f"const td_index ranges = {dim_text(self.owners.ranges)};")
        self.line(f"const td_index chunk = ({keys} + ranges - 1) / ranges;")
        self.line(f"const td_index begin = block / {columns} * chunk;")
        self.line(f"const td_index end = td_min<td_index>(begin + chunk, {keys});")
        self.line(f"const int lane = threadIdx.x % {warp}, warp = threadIdx.x / {warp};")
        self.line(f"const int group = threadIdx.x / {lanes};")
        self.line(f"const td_index point = block % {columns} * {lanes} + threadIdx.x % {lanes};")
        self._positions(self.mapping.grid, "point")
        first, last = "0", size
        if self.results:
            first, last = "part_begin", "part_end"
            self._begin_part(size, tile, groups)
        self.open(f"for (td_index base = {first}; base < {last}; base += {tile})")
        self.line(f"int keys[{_TURNS}], total = 0;")
        self.line(f"unsigned found[{_TURNS}];")
        self.line("#pragma unroll")
        self.open(f"for (int t = 0; t < {_TURNS}; t++)")
        self.line(f"const td_index at = base + (warp * {_TURNS} + t) * {warp} + lane;")
        self.line("td_index key = -1;")
        self.open(f"if (at < {last})")
        self._find_key(axes)
        self.close()
        self.line("const bool hit = key >= begin && key < end;")
        self.line("found[t] = __ballot_sync(0xffffffffu, hit);")
        self.line("keys[t] = (int)(key - begin);")
        self.line("total += __popc(found[t]);")
        self.close()
        self.line("if (lane == 0) td_poke(counts, warp, total);")
        self.line("__syncthreads();")
        self.line("int first = 0, all = 0;")
        self.open(f"for (int other = 0; other < {warps}; other++)")
        self.line("if (other == warp) first = all;")
        self.line("all += td_peek(counts, other);")
        self.close()
        self.line("#pragma unroll")
        self.open(f"for (int t = 0; t < {_TURNS}; t++)")
        self.open("if (found[t] >> lane & 1)")
        self.line("const int place = first + __popc(found[t] & ((1u << lane) - 1));")
        self.line(f"td_poke(hits, place, (warp * {_TURNS} + t) * {warp} + lane);")
        self.line("td_poke(places, place, keys[t]);")
        self.close()
        self.line("first += __popc(found[t]);")
        self.close()
        self.line("__syncthreads();")
        self.open("for (int hit = 0; hit < all; hit++)")
        mine = f" && td_peek(places, hit) % {groups} == group" if groups > 1 else ""
        self.open(f"if (point < count{mine})")
        self.line("const td_index at = base + td_peek(hits, hit);")
        self._positions(axes, "at")
        known: Names = {}
        self.evaluate(self.kernel.roots, frozenset(self.variables), known, shared_out=True)
        if self.results:
            self._combine(known[self.target.value], "begin + td_peek(places, hit)")
        else:
            self.store(self.target, known)
        self.close()
        self.close()
        self.line("__syncthreads();")
        self.close()

    def _begin_part(self, size: str, tile: int, groups: int) -> None:
        """The positions of a part, and elements of scratch memory to begin with."""
        (reduce,) = self.results
        start = constant(neutral(reduce.op, reduce.dtype), reduce.dtype)
        self.line(f"const td_index tiles = (({size} + parts - 1) / parts + {tile - 1}) / {tile};")
        self.line(f"const td_index part_begin = part * tiles * {tile};")
        self.line(
            f"const td_index part_end = td_min<td_index>(part_begin + tiles * {tile}, {size});"
        )
        self.open(f"for (td_index key = begin + group; key < end; key += {groups})")
        pointer, place = self._scratch_pointer(reduce), self._own_place("key")
        self.line(f"if (point < count) td_put({pointer}, {place}, {start});")
        self.close()

    def _own_place(self, key: str) -> str:
        return f"(part * {dim_text(self.owners.keys)} + {key}) * count + point"

    def _combine(self, value: str, key: str) -> None:
        """Combine a value with what the part has found for an element."""
        (reduce,) = self.results
        pointer, place = self._scratch_pointer(reduce), self._own_place(key)
        self.line(f"const td_index own = {place};")
        result = f"{COMBINING[reduce.op]}::of(td_element({pointer}, own), {value})"
        self.line(f"td_put({pointer}, own, {result});")

    def _find_key(self, axes: tuple[Axis, ...]) -> None:
        """The key of a position; none where it lies outside of the target."""
        store, known = self.target, {}  # type: Store, Names
        self._positions(axes, "at")
        self.evaluate(store.computed, frozenset(self.variables), known, shared_out=True)
        text, inside = "", []
        for number in self.owners.dims:
            index, size = store.index[number], dim_text(store.buffer.shape[number])
            if isinstance(index, Expr):
                place = f"(td_index){known[index]}"
                inside.append(f"{known[index]} >= 0 && {known[index]} < {size}")
            else:
                place = self._affine(index)
            text = f"({text}) * {size} + {place}" if text else place
        condition = f"if ({' && '.join(inside)}) " if inside else ""
        self.line(f"{condition}key = {text or '0'};")
        for axis in axes:
            del self.variables[axis]
