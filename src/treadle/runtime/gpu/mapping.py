"""How the points of a kernel are shared out among threads.

A *team* of threads computes what belongs to one *point* of the grid: to one position along each of
the axes that no reduction and no scan runs along. The threads of a team take turns along the other
axes. A kernel without reductions has a team of one thread for each point.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.core.records import record
from treadle.core.shapes import Dim, compound, product
from treadle.kernel.ir import Affine, Axis, Kernel, Load, Reduce, Scan, Store, postorder
from treadle.runtime.gpu.machine import Gpu


@record(frozen=True)
class Mapping:
    """The shape of a kernel's grid.

    Attributes:
        grid: the axes whose positions are points, in the order of the kernel's axes.
        inner: the other axes.
        ordered: those of the inner axes that a thread goes along one position after the other.
        team: threads that work for one point.
        points: for which a block works.
        across: whether neighbouring threads work for neighbouring points, not for the same one.
        vector: neighbouring points that one thread computes together.
        parts: how many blocks share the elements of a point.
    """

    grid: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    ordered: frozenset[Axis]
    team: int
    points: int
    across: bool
    vector: int = 1
    parts: Dim = 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.team * self.points

    @property
    def count(self) -> Dim:
        """How many points there are."""
        return product(a.extent for a in self.grid)


def map_kernel(kernel: Kernel, gpu: Gpu) -> Mapping:
    """The mapping of a kernel.

    Points are computed by one thread each where a scan or stores to computed places need an order.
    Blocks share the elements of a point where there are fewer points than the device has room for.
    """
    mapping = _whole_points(kernel, gpu)
    return replace(mapping, parts=_parts(kernel, mapping, gpu))


def _parts(kernel: Kernel, mapping: Mapping, gpu: Gpu) -> Dim:
    """How many blocks share the elements of a point: so many that the device is full, but each
    with elements enough. The number is fixed for given extents, and so is the order of sums."""
    count = mapping.count
    if mapping.team == 1 or kernel.segmented or not isinstance(count, int):
        return 1
    inner = frozenset(mapping.inner)
    if any(isinstance(e, Reduce) and e.axes & inner for e in kernel.exprs):
        return 1  # a reduction inside of a loop
    blocks = max(1, -(-count // mapping.points))
    if blocks >= gpu.multiprocessors:
        return 1
    most = gpu.multiprocessors * max(1, gpu.resident // mapping.threads) // blocks
    parts = product(a.extent for a in mapping.inner) // (mapping.team * gpu.elements)
    return compound("max", 1, compound("min", most, parts))


def _whole_points(kernel: Kernel, gpu: Gpu) -> Mapping:
    """The mapping of a kernel with a team in one block for each point."""
    exprs = postorder(kernel.roots)
    reduced = {a for e in exprs if isinstance(e, Reduce) for a in e.over}
    scanned = {e.axis for e in exprs if isinstance(e, Scan)}
    ordered = scanned | {a for s in kernel.stores for a in _order_of(s)}
    grid = tuple(a for a in kernel.axes if a not in reduced | ordered)
    inner = tuple(a for a in kernel.axes if a in reduced | ordered)
    if ordered or not reduced:
        vector = 1 if inner else vector_of(kernel, gpu)
        return Mapping(grid, inner, frozenset(ordered), 1, gpu.block, True, vector)
    team = _team(inner, gpu)
    moving = [a for a in accesses(kernel) if a.axes & frozenset(inner)]
    if grid and _neighbours_along(grid[-1], moving) > _neighbours_along(inner[-1], moving):
        # Neighbouring points lie side by side in memory: a warp works for as many.
        return Mapping(grid, inner, frozenset(), min(team, gpu.warp), gpu.warp, True)
    points = 1 if team >= gpu.warp else max(1, gpu.block // team)
    if team == gpu.warp:
        points = gpu.block // gpu.warp
    return Mapping(grid, inner, frozenset(), team, points, False)


def _team(inner: tuple[Axis, ...], gpu: Gpu) -> int:
    """Threads for the elements that are reduced: a few elements for each, at most a block."""
    size = product(a.extent for a in inner)
    if not isinstance(size, int):
        return gpu.block
    wanted, team = -(-size // 4), 1
    while team < wanted and team < gpu.block:
        team *= 2
    if size >= gpu.block * 16 and team < gpu.most_block // 2:
        team *= 2
    return team


def _order_of(store: Store) -> frozenset[Axis]:
    """The axes of a store along which several points may name one element."""
    if store.unique or (store.combine == "set" and not store.computed):
        return frozenset()
    apart = {
        index.terms[0][0]
        for index in store.index
        if isinstance(index, Affine) and len(index.terms) == 1
    }
    return store.axes - apart


def accesses(kernel: Kernel) -> list[Load | Store]:
    """All loads and stores of a kernel."""
    loads = [e for e in postorder(kernel.roots) if isinstance(e, Load)]
    return [*loads, *kernel.stores]


def _neighbours_along(axis: Axis, accesses: list[Load | Store]) -> int:
    """How many accesses name neighbouring elements for neighbouring positions along an axis."""
    found = 0
    for access in accesses:
        last = access.index[-1] if access.index else None
        others = access.index[:-1]
        if isinstance(last, Affine) and last.coefficient(axis) == 1:
            found += all(isinstance(i, Affine) and i.coefficient(axis) == 0 for i in others)
    return found


def vector_of(kernel: Kernel, gpu: Gpu) -> int:
    """How many neighbouring points a thread computes, so that it moves their elements at once.

    Every access must be to the same element for all of them, or to neighbouring elements that begin
    at a multiple of their bytes.
    """
    if not kernel.axes:
        return 1
    last = kernel.axes[-1]
    widest = max((b.dtype.size for b in kernel.buffers), default=gpu.load)
    vector = gpu.load // widest
    if vector < 2 or any(s.axes != frozenset(kernel.axes) for s in kernel.stores):
        return 1
    alone = len(kernel.axes) == 1
    if not alone and not (isinstance(last.extent, int) and last.extent % vector == 0):
        return 1
    along = 0
    for access in accesses(kernel):
        moves = neighbours(access, last, vector)
        if moves is None:
            return 1
        along += moves
    return vector if along else 1


def neighbours(access: Load | Store, axis: Axis, vector: int) -> bool | None:
    """Whether an access moves along an axis by one element a position, from a multiple of `vector`
    on; None where it is neither that nor the same element everywhere."""
    if isinstance(access, Load) and access.valid is not None:
        return False if axis not in access.axes else None
    if axis not in access.axes:
        return False
    if not all(isinstance(i, Affine) for i in access.index):
        return None
    stride: Dim = 1
    for number in range(len(access.index) - 1, -1, -1):
        index = access.index[number]
        assert isinstance(index, Affine)
        for along, coefficient in (*index.terms, (None, index.offset)):
            step = coefficient * stride
            if along is axis:
                if number != len(access.index) - 1 or coefficient != 1:
                    return None
            elif not (isinstance(step, int) and step % vector == 0):
                return None
        stride = stride * access.buffer.shape[number]
    return True
