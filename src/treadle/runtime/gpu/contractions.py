"""Kernels that add up products, as matrix products and convolutions do, in blocks of results.

The axes of such a kernel are the *rows*, which only the left factor varies along, the *columns* of
the right one, the *batch* of both, and the *inner* axes, which are added over. A block of threads
computes a tile of rows and columns. Step by step along the inner axes it evaluates the factors of
the tile once and puts them into shared memory, where its threads read them again and again; each
thread keeps several sums in registers. Where there are few tiles, several blocks have a part of the
inner axes each; what they found is added up by a second launch, always in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from treadle.core.records import record
from treadle.core.shapes import Dim, product
from treadle.kernel.ir import (
    Affine,
    Apply,
    Axis,
    Expr,
    Kernel,
    Load,
    Reduce,
    Scan,
    Store,
    postorder,
)
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.scalars import dim_text, value_type

Names = dict[Expr, str]
LEAST = 8  # rows, columns and products from which tiles pay: each factor is read so often


@record(frozen=True)
class Contraction:
    """What a kernel adds up."""

    store: Store
    sum: Reduce
    left: Expr
    right: Expr
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    inner: tuple[Axis, ...]

    @property
    def grid(self) -> tuple[Axis, ...]:
        """The axes of the results."""
        return (*self.batch, *self.rows, *self.columns)


@record(frozen=True)
class Tile:
    """How blocks share the work.

    Attributes:
        rows, columns: of a tile.
        depth: products that a step adds to each sum.
        by_rows, by_columns: sums of a thread.
        parts: blocks that share the products of a tile.
        chunk: products of a part.
    """

    rows: int
    columns: int
    depth: int
    by_rows: int
    by_columns: int
    parts: int
    chunk: Dim

    @property
    def threads(self) -> int:
        return self.rows * self.columns // (self.by_rows * self.by_columns)


class Writer(Protocol):
    """What writes the expressions of a kernel (`treadle.runtime.gpu.writer`)."""

    gpu: Gpu
    variables: dict[Axis, str]

    @property
    def own_block(self) -> str: ...

    def line(self, text: str) -> None: ...

    def open(self, head: str) -> None: ...

    def close(self) -> None: ...

    def evaluate(
        self, roots: Sequence[Expr], around: frozenset[Axis], known: Names, shared_out: bool
    ) -> None: ...

    def store(self, store: Store, known: Names) -> None: ...


def contraction_of(kernel: Kernel) -> Contraction | None:
    """A kernel as sums of products; None where it is none, or too small for tiles."""
    if kernel.segmented or kernel.few or kernel.blocked or len(kernel.stores) != 1:
        return None
    (store,) = kernel.stores
    sums = [e for e in kernel.exprs if isinstance(e, Reduce | Scan)]
    if store.combine != "set" or store.computed or len(sums) != 1:
        return None
    (found,) = sums
    if not isinstance(found, Reduce) or found.op != "sum":
        return None
    value = found.value
    if not isinstance(value, Apply) or value.fn != "mul" or value.dtype.is_complex:
        return None
    left, right = value.args
    grid = [a for a in kernel.axes if a not in found.over]
    if grid and grid[-1] not in right.axes:  # neighbouring columns are neighbours in memory
        left, right = right, left
    if store.axes != frozenset(grid) or any(a not in value.axes for a in grid):
        return None
    made = Contraction(
        store, found, left, right,
        tuple(a for a in grid if a in left.axes and a in right.axes),
        tuple(a for a in grid if a not in right.axes),
        tuple(a for a in grid if a not in left.axes),
        tuple(a for a in kernel.axes if a in found.over),
    )  # fmt: skip
    sides = [_count(axes) for axes in (made.rows, made.columns, made.inner)]
    return None if any(isinstance(d, int) and d < LEAST for d in sides) else made


def _count(axes: Sequence[Axis]) -> Dim:
    return product(a.extent for a in axes)


def tile_of(contraction: Contraction, gpu: Gpu) -> Tile:
    """The largest tile whose sums the registers of a block hold; smaller ones where there would be
    fewer tiles than multiprocessors."""
    c = contraction
    sums = max(1, gpu.sums * 4 // max(4, c.sum.dtype.size))
    most = gpu.block * sums
    side = 1 << (most.bit_length() - 1) // 2
    m, n, k = (_count(axes) for axes in (c.rows, c.columns, c.inner))
    depth, few = gpu.warp // 2, gpu.multiprocessors
    most_parts = max(1, k // (depth * gpu.elements)) if isinstance(k, int) else few
    rows, columns = _power_of_two(m, most // side), _power_of_two(n, side)
    while rows * columns > 4 * gpu.block and _is_less(_blocks(c, rows, columns) * most_parts, few):
        rows, columns = (rows // 2, columns) if rows >= columns else (rows, columns // 2)
    threads = min(gpu.block, max(gpu.warp, rows * columns // 4))
    each = rows * columns // threads
    by_columns = 1 << (each.bit_length() - 1) // 2
    blocks = _blocks(c, rows, columns)
    parts = max(1, min(few // max(blocks, 1), most_parts)) if isinstance(blocks, int) else 1
    chunk = ((k + (parts - 1)) // parts + (depth - 1)) // depth * depth
    return Tile(rows, columns, depth, each // by_columns, by_columns, parts, chunk)


def _blocks(c: Contraction, rows: int, columns: int) -> Dim:
    """How many tiles there are."""
    down, across = (_count(c.rows) + rows - 1) // rows, (_count(c.columns) + columns - 1) // columns
    return _count(c.batch) * down * across


def blocks_of(contraction: Contraction, tile: Tile) -> Dim:
    """How many blocks compute the tiles."""
    return _blocks(contraction, tile.rows, tile.columns) * tile.parts


def shared_bytes(contraction: Contraction, tile: Tile) -> int:
    """Bytes of memory that the threads of a block share."""
    return tile.depth * (tile.rows + tile.columns + 2) * _value_size(contraction)


def _value_size(contraction: Contraction) -> int:
    """Bytes of a factor: 16-bit floats are kept as float."""
    dtype = contraction.sum.dtype
    size: int = dtype.size
    return max(4, size) if dtype.is_floating else size


def _is_less(dim: Dim, limit: int) -> bool:
    return isinstance(dim, int) and dim < limit


def _power_of_two(dim: Dim, most: int) -> int:
    """The least power of two that is not below a dim; the most where that is not known."""
    if not isinstance(dim, int):
        return most
    return min(most, max(LEAST, 1 << (dim - 1).bit_length() if dim > 1 else 1))


# -- text ------------------------------------------------------------------------------------------


def write_tiles(w: Writer, contraction: Contraction, tile: Tile, scratch: str) -> None:
    """The statements of a block that computes a tile.

    Args:
        scratch: where its sums are put; "" where it stores the kernel's results.
    """
    c, kind = contraction, value_type(contraction.sum.dtype)
    of_left = tile.depth * (tile.rows + 1)
    w.line(f"TD_SHARED({kind}, left, {of_left}, 0);")
    second = of_left * _value_size(c)
    w.line(f"TD_SHARED({kind}, right, {tile.depth * (tile.columns + 1)}, {second});")
    w.line("const int thread = threadIdx.x;")
    for name, axes in (("rows", c.rows), ("columns", c.columns), ("inner", c.inner)):
        w.line(f"const td_index {name} = {dim_text(_count(axes))};")
    w.line(f"const td_index down = (rows + {tile.rows - 1}) / {tile.rows};")
    w.line(f"const td_index across = (columns + {tile.columns - 1}) / {tile.columns};")
    w.line(f"td_index block = {w.own_block};")
    w.line(f"const td_index first_column = block % across * {tile.columns};")
    w.line("block /= across;")
    w.line(f"const td_index first_row = block % down * {tile.rows};")
    w.line("block /= down;")
    first, end = "0", "inner"
    if tile.parts > 1:
        w.line(f"const td_index part = block % {tile.parts};")
        w.line(f"block /= {tile.parts};")
        w.line(f"const td_index chunk = {dim_text(tile.chunk)};")
        first, end = "part * chunk", "td_min<td_index>(inner, part * chunk + chunk)"
    w.line(f"const td_index begin = {first}, end = {end};")
    outer = _positions(w, c.batch, "block", "batch")
    sides = (
        _Side("left", c.left, c.rows, c.inner, tile.rows, tile),
        _Side("right", c.right, c.columns, c.inner, tile.columns, tile),
    )
    for side in sides:
        side.begin(w)
    count_a, count_b = tile.by_rows, tile.by_columns
    wide, high = tile.columns // count_b, tile.rows // count_a
    w.line(f"const int column = thread % {wide}, row = thread / {wide};")
    w.line(f"{kind} sums[{count_a}][{count_b}];")
    each = f"for (int u = 0; u < {count_a}; u++)", f"for (int v = 0; v < {count_b}; v++)"
    _unrolled(w, each[0])
    _unrolled(w, each[1])
    w.line(f"sums[u][v] = ({kind})0;")
    w.close()
    w.close()
    w.open(f"for (td_index start = begin; start < end; start += {tile.depth})")
    for side in sides:
        side.fill(w, outer)
    w.line("__syncthreads();")
    _unrolled(w, f"for (int step = 0; step < {tile.depth}; step++)")
    w.line(f"{kind} own_left[{count_a}], own_right[{count_b}];")
    _unrolled(w, each[0])
    w.line(f"own_left[u] = td_peek(left, step * {tile.rows + 1} + row + u * {high});")
    w.close()
    _unrolled(w, each[1])
    place = f"step * {tile.columns + 1} + column + v * {wide}"
    w.line(f"own_right[v] = td_peek(right, {place});")
    w.close()
    _unrolled(w, each[0])
    _unrolled(w, each[1])
    w.line("sums[u][v] = td_fma(own_left[u], own_right[v], sums[u][v]);")
    for _ in range(3):
        w.close()
    w.line("__syncthreads();")
    w.close()
    _unrolled(w, each[0])
    _unrolled(w, each[1])
    w.line(f"const td_index of_row = first_row + row + u * {high};")
    w.line(f"const td_index of_column = first_column + column + v * {wide};")
    w.open("if (of_row < rows && of_column < columns)")
    if scratch:
        place = "((part + parts * block) * rows + of_row) * columns + of_column"
        w.line(f"td_put({scratch}, {place.replace('parts', str(tile.parts))}, sums[u][v]);")
    else:
        positions = {
            **outer,
            **_positions(w, c.rows, "of_row", "row"),
            **_positions(w, c.columns, "of_column", "column"),
        }
        _store(w, c, positions, "sums[u][v]")
    for _ in range(3):
        w.close()


def write_sums(w: Writer, contraction: Contraction, tile: Tile, scratch: str) -> None:
    """The statements of a thread that adds up what blocks found in their parts, and stores it."""
    c, kind = contraction, value_type(contraction.sum.dtype)
    w.line(f"const td_index rows = {dim_text(_count(c.rows))};")
    w.line(f"const td_index columns = {dim_text(_count(c.columns))};")
    w.line(f"const td_index count = rows * columns * {dim_text(_count(c.batch))};")
    w.line(f"const td_index point = (td_index){w.own_block} * {w.gpu.block} + threadIdx.x;")
    w.line("if (point >= count) return;")
    w.line("const td_index of_column = point % columns, of_row = point / columns % rows;")
    w.line("const td_index block = point / columns / rows;")
    w.line(f"{kind} sum = ({kind})0;")
    w.open(f"for (td_index part = 0; part < {tile.parts}; part++)")
    place = f"((part + {tile.parts} * block) * rows + of_row) * columns + of_column"
    w.line(f"sum = td_add(sum, td_element({scratch}, {place}));")
    w.close()
    positions = {
        **_positions(w, c.batch, "block", "batch"),
        **_positions(w, c.rows, "of_row", "row"),
        **_positions(w, c.columns, "of_column", "column"),
    }
    _store(w, c, positions, "sum")


def _store(w: Writer, c: Contraction, positions: dict[Axis, str], found: str) -> None:
    w.variables = positions
    known: Names = {c.sum: found}
    w.evaluate(c.store.roots, frozenset(positions), known, True)
    w.store(c.store, known)


def _unrolled(w: Writer, head: str) -> None:
    w.line("#pragma unroll")
    w.open(head)


def _positions(w: Writer, axes: Sequence[Axis], flat: str, stem: str) -> dict[Axis, str]:
    """Variables with the positions along axes of a number in row-major order."""
    return {
        axis: _named(w, f"{stem}_{number}", text)
        for number, (axis, text) in enumerate(_parts_of(axes, flat))
    }


def _named(w: Writer, name: str, text: str) -> str:
    w.line(f"const td_index {name} = {text};")
    return name


def _parts_of(axes: Sequence[Axis], flat: str) -> list[tuple[Axis, str]]:
    """The position along each axis, given that in row-major order. Numbers of 32 bits are divided
    faster."""
    count = _count(axes)
    short = isinstance(count, int) and count < 1 << 31
    found = []
    for number, axis in enumerate(axes):
        below = _count(axes[number + 1 :])
        text = f"(unsigned){flat}" if short else flat
        if below != 1:
            text = f"{text} / {_divisor(below, short)}"
        if number:
            text = f"{text} % {_divisor(axis.extent, short)}"
        found.append((axis, f"(td_index)({text})" if short else text))
    return found


def _index_type(axis: Axis) -> str:
    """The type of positions that are kept in registers."""
    return "int" if isinstance(axis.extent, int) and axis.extent < 1 << 31 else "td_index"


def _divisor(dim: Dim, short: bool) -> str:
    return f"{dim}u" if short else dim_text(dim)


class _Side:
    """One factor of a tile: which threads evaluate it where.

    Attributes:
        along_inner: whether neighbouring threads evaluate it at neighbouring positions of the inner
            axes, not of its own: those whose elements are neighbours in memory.
        places: how many positions of its own axes a thread evaluates it at.
        apart: how far these are apart.
    """

    def __init__(
        self, name: str, value: Expr, own: tuple[Axis, ...], inner: tuple[Axis, ...], size: int,
        tile: Tile,
    ) -> None:  # fmt: skip
        self.name, self.value, self.own, self.inner = name, value, own, inner
        self.size, self.depth, self.threads = size, tile.depth, tile.threads
        self.along_inner = _moves(value, inner[-1]) and not _moves(value, own[-1])
        if self.along_inner:
            self.apart = self.threads // self.depth
            self.places = max(1, size // self.apart)
        else:
            self.apart, self.places = 0, 1

    def begin(self, w: Writer) -> None:
        """Where the thread evaluates the factor: its positions along the factor's own axes."""
        name, threads = self.name, self.threads
        if self.along_inner:
            w.line(f"const int {name}_step = thread % {self.depth};")
            w.line(f"const int {name}_place = thread / {self.depth};")
        else:
            w.line(f"const int {name}_place = thread % {self.size};")
            w.line(f"const int {name}_step = thread / {self.size};")
            assert threads >= self.size
        for number, axis in enumerate(self.own):
            w.line(f"{_index_type(axis)} {name}_{number}[{self.places}];")
        w.line(f"bool {name}_inside[{self.places}];")
        _unrolled(w, f"for (int u = 0; u < {self.places}; u++)")
        w.line(f"const int place = {name}_place + u * {self.apart};")
        first, most = ("first_row", "rows") if name == "left" else ("first_column", "columns")
        w.line(f"{name}_inside[u] = place < {self.size} && {first} + place < {most};")
        w.line(f"const td_index own = {name}_inside[u] ? {first} + place : 0;")
        for number, (_, text) in enumerate(_parts_of(self.own, "own")):
            w.line(f"{name}_{number}[u] = ({_index_type(self.own[number])})({text});")
        w.close()

    def fill(self, w: Writer, outer: dict[Axis, str]) -> None:
        """Put the factor at the positions of a step into shared memory."""
        name = self.name
        if self.along_inner:
            w.open("")
            inner = self._step(w, f"{name}_step")
            _unrolled(w, f"for (int u = 0; u < {self.places}; u++)")
            w.line(f"const int step = {name}_step, place = {name}_place + u * {self.apart};")
            self._put(w, {**outer, **inner}, f"place < {self.size}")
            w.close()
            w.close()
            return
        every = self.threads // self.size
        count = max(1, self.depth // every)
        _unrolled(w, f"for (int v = 0; v < {count}; v++)")
        w.line("const int u = 0;")
        w.line(f"const int step = {name}_step + v * {every}, place = {name}_place;")
        inner = self._step(w, "step")
        self._put(w, {**outer, **inner}, f"step < {self.depth}")
        w.close()

    def _step(self, w: Writer, step: str) -> dict[Axis, str]:
        """The positions along the inner axes."""
        w.line(f"const bool inside = start + {step} < end;")
        w.line(f"const td_index of_inner = inside ? start + {step} : 0;")
        return _positions(w, self.inner, "of_inner", "inner")

    def _put(self, w: Writer, positions: dict[Axis, str], fits: str) -> None:
        name, kind = self.name, value_type(self.value.dtype)
        own = {axis: f"(td_index){name}_{number}[u]" for number, axis in enumerate(self.own)}
        w.variables = {**positions, **own}
        known: Names = {}
        w.evaluate([self.value], frozenset(w.variables), known, True)
        value = f"({kind})(inside && {name}_inside[u] ? {known[self.value]} : 0)"
        place = f"step * {self.size + 1} + place"
        w.line(f"if ({fits}) td_poke({name}, {place}, {value});")


def _moves(value: Expr, axis: Axis) -> bool:
    """Whether neighbouring positions along an axis are neighbouring elements."""
    return any(
        isinstance(e, Load)
        and e.index
        and isinstance(e.index[-1], Affine)
        and e.index[-1].coefficient(axis) == 1
        for e in postorder([value])
    )
