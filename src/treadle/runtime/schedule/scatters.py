"""The kernels of ops that store rows at computed places: scatters and reductions of segments.

Rows and positions are taken in the order in which they lie in memory, so a matrix of positions and
one of rows stand for arrays of every rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core.dtypes import DType
from treadle.core.shapes import Dim, product
from treadle.core.spec import TensorSpec
from treadle.graph.ir import Node
from treadle.kernel.ir import Axis, Buffer, Index, Kernel, as_index, load, store
from treadle.ops.properties import PartKind

LEAST_ROWS = 2  # a single row is copied or added where the program stands


def scatter_kernel(node: Node) -> tuple[Kernel, list[int]] | None:
    """The kernel of a node and the numbers of its inputs that are the positions and the rows; None
    for other nodes and for a single row. The buffers of the kernel are positions, rows and the
    array that the rows are stored into."""
    part = node.op.part
    if part is None or part.kind not in _KERNELS or part.data is None:
        return None
    places = next(n for n in range(part.changes, len(node.inputs)) if n != part.data)
    positions, rows = (node.inputs[n].spec for n in (places, part.data))
    dims = node.outputs[0].spec.dims
    kernel = _KERNELS[part.kind](positions, rows.dtype, dims, part.use.combine)
    return None if kernel is None else (kernel, [places, part.data])


def _scatter(
    positions: TensorSpec, dtype: DType, dims: Sequence[Dim], combine: str
) -> Kernel | None:
    """Rows at the positions that the rows of an array name."""
    depth, count = positions.dims[-1], product(positions.dims[:-1])
    assert isinstance(depth, int)
    if not depth or (isinstance(count, int) and count < LEAST_ROWS):
        return None
    i = Axis("i", count)
    places = Buffer("positions", positions.dtype, (count, depth))
    index = [load(places, i, k) for k in range(depth)]
    return _stored(i, places, index, dtype, dims[:depth], dims[depth:], combine)


def _segments(ids: TensorSpec, dtype: DType, dims: Sequence[Dim], combine: str) -> Kernel:
    """Each row to the row of the result whose number is its id."""
    i = Axis("i", product(ids.dims))
    places = Buffer("ids", ids.dtype, (i.extent,))
    return _stored(i, places, [load(places, i)], dtype, dims[:1], dims[1:], combine)


def _stored(
    i: Axis, places: Buffer, index: Sequence[Index], dtype: DType, sizes: Sequence[Dim],
    row: Sequence[Dim], combine: str,
) -> Kernel:  # fmt: skip
    """The kernel that stores row i at ``index``."""
    count = product(row)
    along = () if count == 1 else (Axis("j", count),)
    dims = tuple(a.extent for a in along)
    source = Buffer("rows", dtype, (i.extent, *dims))
    target = Buffer("target", dtype, (*sizes, *dims))
    place = (*index, *map(as_index, along))
    stores = store(target, *place, value=load(source, i, *along), combine=combine)
    return Kernel((i, *along), (places, source, target), (stores,))


_KERNELS: dict[PartKind, Callable[..., Kernel | None]] = {
    PartKind.ROWS: _scatter,
    PartKind.SEGMENTS: _segments,
}
