"""The runtime's library: which routine computes a node, with which numbers and workspace.

`routine_for` answers for a node of an op whose lowering is `Library(name)`. A program calls

    void routine(ptr table, ptr operands, ptr numbers, ptr workspace)

with `routine_address(symbol)`, `table_address()`, the addresses of inputs and outputs, the values
of `Routine.numbers`, and `Routine.workspace(workers)` bytes, aligned to a cache line. Routines
share their work among the threads of the pool themselves, in a way that depends on the dims alone.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treadle.core import dtypes
from treadle.core.shapes import Dim, compound, product
from treadle.graph.ir import Node
from treadle.ops.lowering import Library
from treadle.ops.windows import Span, spans
from treadle.runtime.cpu.blas import Blas, find_blas
from treadle.runtime.cpu.matmul.plan import Product
from treadle.runtime.cpu.matmul.plan import plan as plan_product
from treadle.runtime.cpu.matmul.tiles import TABLE_WORDS, Tile, tile_text

CACHE_BYTES = 512 << 10  # patches of a block that one thread works on
PART_BYTES = 32 << 20  # all partial filter gradients together
MOST_PARTS = 8
LINE = 64

_ELEMENTS = {dtypes.float32: "float", dtypes.float64: "double"}


@dataclass(frozen=True)
class Routine:
    """A call of the library.

    Attributes:
        symbol: the native function's name.
        numbers: its integer arguments; the program evaluates symbolic ones.
        worker_bytes: workspace that each thread needs for itself.
        shared_bytes: workspace that they share.
    """

    symbol: str
    numbers: tuple[Dim, ...]
    worker_bytes: Dim = 0
    shared_bytes: Dim = 0

    def workspace(self, workers: int) -> Dim:
        """Bytes of workspace for a pool of `workers` threads."""
        return self.shared_bytes + self.worker_bytes * workers


def routine_for(node: Node, epilogue: Sequence[Node] = ()) -> Routine | None:
    """The routine that computes `node`, or None where the library has none.

    Args:
        epilogue: elementwise nodes to apply to the result on the way out. No routine takes any
            yet; the caller then computes them by a kernel of their own.
    """
    lower = node.op.lower
    plan = _PLANS.get(lower.name) if isinstance(lower, Library) else None
    element = _ELEMENTS.get(node.outputs[0].spec.dtype)
    if plan is None or element is None or epilogue:
        return None
    return plan(node, element)


# -- plans -------------------------------------------------------------------------------------


def _matmul(node: Node, element: str) -> Routine | None:
    a, b = (v.spec.dims for v in node.inputs)
    out = node.outputs[0].spec.dims
    ta, tb = (int(node.attrs[f]) for f in ("transpose_a", "transpose_b"))
    k = a[-2] if ta else a[-1]
    if k != (b[-1] if tb else b[-2]):
        return None
    batch, m, n = product(out[:-2]), out[-2], out[-1]
    if not ta and len(a) > 2 and product(b[:-2]) == 1:  # one weight matrix: the batch is rows
        batch, m = 1, batch * m
    strides = [_batch_stride(dims, out) for dims in (a, b)]
    if batch != 1 and None in strides:
        return None
    steps = [s if batch != 1 and s is not None else 0 for s in strides]
    return _product("matmul", Product(element, batch, m, n, k, ta, tb, *steps))


def _product(name: str, product: Product) -> Routine:
    """The routine for a batch of matrix products; its symbol names the tiles it calls."""
    from treadle.runtime.cpu.target import host

    plan = plan_product(product, host())
    p = product
    numbers = (
        p.batch, p.m, p.n, p.k, p.transpose_a, p.transpose_b, p.stride_a, p.stride_b, plan.vectors,
        plan.tiles, plan.panels, plan.depth, plan.pack, plan.pack_a, plan.by_rows, plan.parts,
        plan.chunk, plan.space, plan.tile_space,
    )  # fmt: skip
    tiles = ",".join(t.symbol for t in plan.needs)
    return Routine(f"{name}_{p.element}@{tiles}", numbers, plan.space)


def _batch_stride(dims: tuple[Dim, ...], out: tuple[Dim, ...]) -> Dim | None:
    """Elements between the matrices of a batch, 0 for a single one; None for mixed broadcasts."""
    if dims[:-2] == out[:-2]:
        return dims[-2] * dims[-1]
    return 0 if all(d == 1 for d in dims[:-2]) else None


def _conv2d(node: Node, element: str) -> Routine | None:
    x, filters = (v.spec.dims for v in node.inputs)
    return _convolution("conv2d", element, x, filters, node.outputs[0].spec.dims, node.attrs)


def _conv2d_input(node: Node, element: str) -> Routine | None:
    filters, dy = (v.spec.dims for v in node.inputs)
    x = node.outputs[0].spec.dims
    return _convolution("conv2d_backprop_input", element, x, filters, dy, node.attrs)


def _conv2d_filter(node: Node, element: str) -> Routine | None:
    x, dy = (v.spec.dims for v in node.inputs)
    filters = node.outputs[0].spec.dims
    return _convolution("conv2d_backprop_filter", element, x, filters, dy, node.attrs)


def _convolution(
    name: str, element: str, x: Sequence[Dim], filters: Sequence[Dim], y: Sequence[Dim],
    attrs: Mapping[str, Any],
) -> Routine | None:  # fmt: skip
    """The routine for images x, filters and outputs y, whichever of them is computed."""
    if x[3] != filters[2] or not all(isinstance(d, int) for d in filters):
        return None  # grouped convolutions have no routine
    window: Any = filters[:2]
    rows, columns = spans(x[1:3], window, attrs["strides"], attrs["padding"], attrs["dilations"])
    if (rows.count, columns.count) != tuple(y[1:3]):
        return None
    if _is_pointwise(rows, columns):
        return _pointwise(name, element, x, filters)
    return _windowed(name, element, x, filters, (rows, columns))


def _is_pointwise(*axes: Span) -> bool:
    return all(s.window == s.stride == 1 and s.before == s.after == 0 for s in axes)


def _pointwise(name: str, element: str, x: Sequence[Dim], filters: Sequence[Dim]) -> Routine:
    """A 1x1 convolution is a matrix product of pixels and channels.

    The operands are in the order of the routine: (x, f), (f, dy) or (x, dy). For the input
    gradient dy f^T is computed as the product with the operands exchanged.
    """
    pixels, c, o = product(x[:3]), x[3], filters[3]
    if name == "conv2d":
        return _product("matmul", Product(element, 1, pixels, o, c))
    if name == "conv2d_backprop_filter":
        return _product("matmul", Product(element, 1, c, o, pixels, 1))
    return _product("matmul_swapped", Product(element, 1, pixels, c, o, 0, 1))


def _windowed(
    name: str, element: str, x: Sequence[Dim], filters: Sequence[Dim], axes: tuple[Span, Span]
) -> Routine | None:
    if find_blas() is None:
        return None
    rows, columns = axes
    size = 4 if element == "float" else 8
    patch = product(filters[:3])
    row_bytes = columns.count * patch * size
    most = compound("max", CACHE_BYTES // row_bytes, 1)
    worker_bytes = _rounded(row_bytes * most)
    part_bytes = _rounded(product(filters) * size)
    parts = _parts(part_bytes) if name == "conv2d_backprop_filter" else 0
    numbers = (
        x[0], x[1], x[2], x[3], rows.window, columns.window, filters[3], rows.count, columns.count,
        rows.stride, columns.stride, rows.dilation, columns.dilation, rows.before, columns.before,
        most, worker_bytes, parts,
    )  # fmt: skip
    return Routine(f"{name}_{element}", numbers, worker_bytes, part_bytes * parts)


def _parts(part_bytes: Dim) -> int:
    """How many partial filter gradients there are: a number that no thread count changes."""
    assert isinstance(part_bytes, int)
    return max(1, min(MOST_PARTS, PART_BYTES // max(part_bytes, 1)))


def _rounded(size: Dim) -> Dim:
    return (size + (LINE - 1)) // LINE * LINE


_PLANS: dict[str, Callable[[Node, str], Routine | None]] = {
    "matmul": _matmul,
    "conv2d": _conv2d,
    "conv2d_backprop_input": _conv2d_input,
    "conv2d_backprop_filter": _conv2d_filter,
}


# -- native code -------------------------------------------------------------------------------


def routine_address(symbol: str) -> int:
    """The address of a routine; the library, and the tiles it names, are compiled on first need."""
    name, _, tiles = symbol.partition("@")
    element = name.rpartition("_")[2]
    for tile in filter(None, tiles.split(",")):
        _load_tile(Tile.named(tile))
    return int(_code(name.startswith("conv"), element).address(name))


@functools.cache
def _load_tile(tile: Tile) -> None:
    """Compile a tile and enter it into the table through which the routine calls it."""
    from treadle.runtime.cpu.jit import jit
    from treadle.runtime.cpu.target import host

    code = jit().load(tile_text(tile, host()))
    _tiles(tile.element)[tile.place] = code.address(tile.symbol)


@functools.cache
def _tiles(element: str) -> Any:
    return (ctypes.c_int64 * TABLE_WORDS)()


@functools.cache
def _code(convolutions: bool, element: str) -> Any:
    """The loaded module of a family of routines for one element type."""
    from treadle.runtime.cpu.jit import jit

    return jit().load(library_text(convolutions, element))


def library_text(convolutions: bool, element: str) -> str:
    """The LLVM text of a family of routines."""
    from treadle.runtime.cpu.library_conv import add_convolutions
    from treadle.runtime.cpu.llvm_text import Module
    from treadle.runtime.cpu.matmul.routine import add_matmul
    from treadle.runtime.cpu.target import host

    module = Module(host())
    if convolutions:
        add_convolutions(module, element, _blas().wide)
    else:
        add_matmul(module, element)
    return module.text()


def _blas() -> Blas:
    found = find_blas()
    assert found is not None, "routine_for gives no routine without a BLAS"
    return found


@functools.cache
def _table() -> Any:
    from treadle.runtime.cpu.library_text import TABLE
    from treadle.runtime.cpu.threads import pool

    blas = find_blas()
    table = (ctypes.c_int64 * len(TABLE))()
    known = {
        "parallel": pool().addresses.parallel,
        "limit": os.cpu_count() or 1,  # programs plan workspace for at least as many
        "float_tiles": ctypes.addressof(_tiles("float")),
        "double_tiles": ctypes.addressof(_tiles("double")),
    }
    if blas is not None:
        known |= {
            "float_gemm": blas.sgemm,
            "double_gemm": blas.dgemm,
            "get_threads": blas.get_threads,
            "set_threads": blas.set_threads,
        }
    for name, address in known.items():
        table[TABLE.index(name)] = address
    return table


def table_address() -> int:
    """The table that every routine gets as its first argument."""
    return ctypes.addressof(_table())
