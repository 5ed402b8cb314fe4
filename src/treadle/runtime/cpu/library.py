"""The runtime's library: which routine computes a node, with which numbers and workspace.

`routine_for` answers for a node of an op whose lowering is `Library` or `Rows`. A program calls

    void routine(ptr table, ptr operands, ptr numbers, ptr workspace)

with `routine_address(symbol)` and `table_address(workers)` of `library_code.py`, the addresses of
inputs and outputs and of the epilogue's record (`epilogue.py`) or null, the values of
`Routine.numbers`, and `Routine.workspace(workers)` bytes, aligned to a cache line.
Routines share their work among the threads of the pool themselves, in a way that depends on the
dims alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from treadle.core import dtypes
from treadle.core.records import record
from treadle.core.shapes import Dim, product
from treadle.graph.ir import Node
from treadle.graph.passes.products import rows_joined
from treadle.ops.control.collectives import number_of_way
from treadle.ops.linalg.matrices import BYTE_MATMUL, MATMUL
from treadle.ops.linalg.panels import MATMUL_PANELS
from treadle.ops.lowering import Library, Rows
from treadle.runtime.cpu.alike import Form, slot_of
from treadle.runtime.cpu.chosen import chosen, made_with
from treadle.runtime.cpu.convolution import FORWARD, TO_FILTER, TO_INPUT
from treadle.runtime.cpu.matmul.byte_forms import (
    byte_element,
    byte_form,
    multiplies_in_matrices,
    swapped,
)
from treadle.runtime.cpu.matmul.classes import class_of as products_alike
from treadle.runtime.cpu.matmul.pairs import MOST_PAIRS, multiplies_pairs
from treadle.runtime.cpu.matmul.strided import inner_dim, strided_product
from treadle.runtime.cpu.matmul.tiles import lanes
from treadle.runtime.cpu.matmul.tiling import Choice, Product, Tiling, packers_of, rule, tiling_of
from treadle.runtime.cpu.target import host
from treadle.runtime.fusion.strided import View
from treadle.runtime.reach import Reach

if TYPE_CHECKING:
    from treadle.runtime.cpu.convolution.tiling import Geometry

_ELEMENTS = {
    dtypes.float32: "float", dtypes.float64: "double",
    dtypes.int32: "i32", dtypes.uint32: "i32", dtypes.int64: "i64", dtypes.uint64: "i64",
}  # fmt: skip


@record(frozen=True)
class Routine:
    """A call of the library.

    Attributes:
        symbol: the native function's name.
        numbers: its integer arguments; the program evaluates symbolic ones.
        worker_bytes: workspace that each thread needs for itself.
        shared_bytes: workspace that they share.
        epilogue: whether it runs a blocked kernel on its result.
        apart: whether blocks of its result are in its workspace, for the epilogue only.
        made_with: what was chosen for it among candidates (`winners.py`): (class, choice).
        reaches: which elements of its operands and results its numbers lead it to; None for those
            that it touches as a whole.
    """

    symbol: str
    numbers: tuple[Dim, ...]
    worker_bytes: Dim = 0
    shared_bytes: Dim = 0
    epilogue: bool = True
    apart: bool = False
    reaches: tuple[Reach | None, ...] = ()
    made_with: tuple[tuple[str, str], ...] = ()

    def workspace(self, workers: int) -> Dim:
        """Bytes of workspace for a pool of `workers` threads."""
        return self.shared_bytes + self.worker_bytes * workers


def routine_for(node: Node, apart: bool = False, views: Sequence[View] = ()) -> Routine | None:
    """The routine that computes `node`, or None where the library has none.

    Args:
        apart: its result is for the epilogue only, and kept in blocks in the workspace.
        views: of which memory the operands are views; none where each has memory of its own.
    """
    found = _routine_for(node, apart, views)
    return None if apart and found is not None and not found.apart else found


def _routine_for(node: Node, apart: bool, views: Sequence[View]) -> Routine | None:
    lower = node.op.lower
    if isinstance(lower, Rows):
        return None if apart or views else _rows(node, lower)
    plan = _PLANS.get(lower.name) if isinstance(lower, Library) else None
    dtype = node.outputs[0].spec.dtype
    element = _element(node)
    if dtype is dtypes.bfloat16 and multiplies_pairs(host()):
        takes = isinstance(lower, Library) and lower.name in _OF_PAIRS and not apart and not views
        return plan(node, "i32", pairs=1) if takes and plan is not None else None
    if plan is None or element is None:
        return None
    if views:
        found = strided_product(node, element, views) if plan is _matmul else None
        return None if found is None else _product("matmul", found, None, apart)
    if not apart:
        return plan(node, element)
    return _matmul(node, element, apart) if plan is _matmul else None


def _rows(node: Node, lower: Rows) -> Routine | None:
    from treadle.runtime.cpu.routines.entry import row_call, row_numbers, row_space, row_symbol

    call = row_call(node)
    if call is None:
        return None
    # What writes the routine, maybe on another thread: that thread is not to import it.
    importlib.import_module("treadle.runtime.cpu.routines.compiler")
    symbol = row_symbol(lower.routine, call)
    numbers = row_numbers(lower.routine, call, host().tuning)
    return Routine(symbol, numbers, row_space(call), epilogue=False)


def _element(node: Node) -> str | None:
    """The type of elements that the node's routine computes with."""
    if node.op is not BYTE_MATMUL:
        return _ELEMENTS.get(node.outputs[0].spec.dtype)
    a, b = (v.spec.dtype for v in node.inputs)
    element = byte_element(a, b)
    return element if element is not None and byte_form(element, host()) else None


# -- plans -------------------------------------------------------------------------------------


def _matmul(node: Node, element: str, apart: bool = False, pairs: int = 0) -> Routine | None:
    a, b = (v.spec.dims for v in node.inputs)
    out = node.outputs[0].spec.dims
    ta, tb = (int(node.attrs[f]) for f in ("transpose_a", "transpose_b"))
    k = inner_dim(node)
    batch, m, n = product(out[:-2]), out[-2], out[-1]
    steps: list[Dim | None] = [_batch_stride(dims, out) for dims in (a, b)]
    joined = rows_joined(node)
    if joined is not None:
        batch, m = joined
        steps = [m * k, k * n]
    if batch == 1:
        steps = [0, 0]
    sa, sb = steps
    if sa is None or sb is None:
        return None
    if apart:
        return _product("matmul", Product(element, batch, m, n, k, ta, tb, sa, sb), apart=True)
    if pairs:
        if not _in_pairs(k):
            return None
        k, sa, sb = k // 2, sa // 2, sb // 2
    # The product with one column is that of one row with the other matrix transposed. Matrix
    # registers read rows as fast as panels.
    if n == 1 and not multiplies_in_matrices(element, host()):
        element = swapped(element)
        turned = Product(element, batch, 1, m, k, 0, 1 - ta, sb, sa, pairs)
        return replace(_product("matmul_swapped", turned), epilogue=False)
    return _product("matmul", Product(element, batch, m, n, k, ta, tb, sa, sb, pairs))


def _in_pairs(k: Dim) -> bool:
    """Whether so many steps of k are pairs, and one block of them."""
    return isinstance(k, int) and k % 2 == 0 and k <= 2 * MOST_PAIRS


def _matmul_panels(node: Node, element: str) -> Routine | None:
    return _product("matmul", _product_of_panels(node, element))


def _product_of_panels(node: Node, element: str) -> Product:
    a, panels = (v.spec.dims for v in node.inputs)
    _, k, width = panels
    assert isinstance(width, int)
    n = node.outputs[0].spec.dims[-1]
    return Product(element, 1, product(a[:-1]), n, k, panel_width=width)


def panel_width(node: Node, times: int | None) -> int | None:
    """Columns of the panels of a right factor of known size that is computed with so many times
    (None: nobody knows how many); None where its copy does not pay."""
    element = _ELEMENTS.get(node.outputs[0].spec.dtype)
    if node.op is not MATMUL or element is None or any(node.attrs.values()):
        return None
    (*rows, k), b = (v.spec.dims for v in node.inputs)
    if len(b) != 2 or k != b[0] or not all(isinstance(d, int) and d > 0 for d in b):
        return None
    m = product(rows)
    if times is not None and isinstance(m, int) and m * times < host().tuning.pack_rows:
        return None
    return rule(Product(element, 1, m, b[1], k), host()).vectors * lanes(host(), element)


def part_routine(node: Node, blocks: int) -> Routine | None:
    """The routine with which a thread computes some of `blocks` even blocks of rows of a product
    of two matrices; None where it would need workspace."""
    element = _ELEMENTS.get(node.outputs[0].spec.dtype)
    if element is None or node.outputs[0].spec.rank != 2:
        return None
    if node.op is MATMUL_PANELS:
        found = _product_of_panels(node, element)
    elif node.op is not MATMUL or node.attrs["transpose_a"]:
        return None
    else:
        (m, k), n = node.inputs[0].spec.dims, node.outputs[0].spec.dims[1]
        found = Product(element, 1, m, n, k, 0, int(node.attrs["transpose_b"]))
    routine = _product("matmul_part", found, blocks)
    return routine if routine.worker_bytes == 0 else None


def _product(name: str, product: Product, tiles: int | None = None, apart: bool = False) -> Routine:
    """The routine for a batch of matrix products; its symbol names the tiles it calls.

    Args:
        tiles, apart: see `tiling_of`.
    """
    alone = tiles is not None  # its caller shares the rows
    text, choice = chosen(None if alone else products_alike(product), host())
    tiling = tiling_of(product, host(), tiles, apart, choice)
    return replace(_routine_of(name, product, tiling, text), made_with=made_with(text, choice))


def product_share(product: Product, choice: Choice) -> tuple[Routine, int]:
    """The routine with which a thread computes some units of a product of known sizes, divided as
    somebody chose; and how many units there are."""
    tiling = tiling_of(product, host(), choice=choice)
    units = tiling.tiles if choice.by_rows else tiling.panels
    assert isinstance(units, int) and isinstance(product.batch, int)
    return _routine_of("matmul_part", product, tiling, ""), product.batch * units


def _routine_of(name: str, p: Product, t: Tiling, text: str) -> Routine:
    """The routine with the numbers of a tiling; `text` names the class of the product."""
    numbers = (
        p.batch, p.m, p.n, p.k, p.transpose_a, p.transpose_b, p.pairs, p.stride_a, p.stride_b,
        *p.rows, p.batch if p.inner is None else p.inner, p.outer_a, p.outer_b,
        t.vectors, t.tall, t.tiles, t.panels, t.depth, t.pack, t.pack_a, t.by_rows, t.ahead,
        t.parts, t.chunk, t.block, t.run, t.space, t.tile_space, t.apart, t.past,
        slot_of(text),
    )  # fmt: skip
    packers = [f"{packer}_{p.element}" for packer in packers_of(p, t)]
    called = ",".join([*(tile.symbol for tile in t.needs), *packers])
    a, b, c = p.reaches
    operands = (b, a) if name == "matmul_swapped" else (a, b)
    return Routine(
        f"{name}_{p.element}@{called}", numbers, t.space, apart=t.apart > 0,
        reaches=(*operands, None if t.apart else c),
    )  # fmt: skip


def _batch_stride(dims: tuple[Dim, ...], out: tuple[Dim, ...]) -> Dim | None:
    """Elements between the matrices of a batch, 0 for a single one; None for mixed broadcasts."""
    if dims[:-2] == out[:-2]:
        return dims[-2] * dims[-1]
    return 0 if all(d == 1 for d in dims[:-2]) else None


def _convolution(name: str, x: int, filters: int, y: int) -> Any:
    """The planner of a convolution op, given where its images, filters and outputs are found.

    -1 stands for the op's result, other numbers for inputs.
    """

    def routine(node: Node, element: str, pairs: int = 0) -> Routine | None:
        from treadle.runtime.cpu.convolution.classes import class_of
        from treadle.runtime.cpu.convolution.tiling import Geometry, has_large_filters

        values = [*node.inputs, node.outputs[0]]
        reaches: list[Reach | None] = [None] * len(values)
        images, windows, outputs = (values[i].spec.dims for i in (x, filters, y))
        geometry = Geometry.of(element, images, windows, outputs, node.attrs)
        if geometry is None:
            return None
        if pairs:
            return _pointwise(name, geometry, pairs) if geometry.is_pointwise else None
        for place, reach in zip((x, filters, y), geometry.reaches, strict=True):
            reaches[place] = reach
        if geometry.is_depthwise:
            return replace(_depthwise(name, geometry), reaches=tuple(reaches))
        if geometry.is_pointwise and (
            name != TO_FILTER or has_large_filters(geometry, host())
        ):
            return _pointwise(name, geometry)
        text, form = chosen(class_of(name, geometry), host())
        found = convolution_routine(name, geometry, form, text)
        return replace(found, reaches=tuple(reaches), made_with=made_with(text, form))

    return routine


def convolution_routine(name: str, g: Geometry, form: Form | None, text: str = "") -> Routine:
    """The routine for an op, divided as somebody chose; `text` names the class of the call."""
    from treadle.runtime.cpu.convolution.forms import tiling_of as convolution_tiling

    found = convolution_tiling(name, g, host(), form)
    called = ",".join([*(t.symbol for t in found.needs), *found.packers])
    numbers = (*found.numbers, slot_of(text))
    symbol = f"{found.routine or name}_{g.element}@{called}"
    return Routine(symbol, numbers, found.frame_bytes, found.shared_bytes)


def _depthwise(name: str, g: Geometry) -> Routine:
    from treadle.runtime.cpu.depthwise.tiling import depthwise_numbers

    numbers, worker, shared = depthwise_numbers(g, name, host().tuning)
    symbol = f"depthwise{g.outputs}_{name}_{g.element}"
    return Routine(symbol, numbers, worker, shared, epilogue=False)


def _pointwise(name: str, g: Geometry, pairs: int = 0) -> Routine | None:
    """A 1x1 convolution is a matrix product of pixels and channels.

    The operands are in the order of the routine: (x, f), (f, dy) or (x, dy). For the input
    gradient dy f^T is computed as the product with the operands exchanged.
    """
    pixels, c, o = product(g.x[:3]), g.x[3], g.filters[3]
    k: Dim
    m, n, k = {FORWARD: (pixels, o, c), TO_FILTER: (c, o, pixels)}.get(name, (pixels, c, o))
    if pairs:
        if not _in_pairs(k):
            return None
        k = k // 2
    if name == TO_INPUT:
        return _product("matmul_swapped", Product(g.element, 1, m, n, k, 0, 1, pairs=pairs))
    turned = int(name == TO_FILTER)
    return _product("matmul", Product(g.element, 1, m, n, k, turned, pairs=pairs))


def _all_reduce(node: Node, element: str) -> Routine | None:
    spec = node.outputs[0].spec
    way = number_of_way(node.attrs["how"], spec.dtype)
    if way is None or node.attrs["workers"] == 1:
        return None
    return Routine("all_reduce_any", (product(spec.dims), way), epilogue=False)


_PLANS: dict[str, Callable[..., Routine | None]] = {
    "all_reduce": _all_reduce,
    "matmul": _matmul,
    "byte_matmul": _matmul,
    "matmul_panels": _matmul_panels,
    FORWARD: _convolution(FORWARD, 0, 1, -1),
    TO_INPUT: _convolution(TO_INPUT, -1, 0, 1),
    TO_FILTER: _convolution(TO_FILTER, 0, -1, 1),
}
# Those that compute with bfloat16 on machines that multiply pairs of them.
_OF_PAIRS = frozenset({"matmul", FORWARD, TO_INPUT, TO_FILTER})
