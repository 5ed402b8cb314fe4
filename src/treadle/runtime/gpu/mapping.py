"""How the points of a kernel are shared out among threads.

A *team* of threads computes what belongs to one *point* of the grid: to one position along each of
the axes that no reduction and no scan runs along. The threads of a team take turns along the other
axes. A kernel without reductions has a team of one thread for each point.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.core.records import record
from treadle.core.shapes import Dim, compound, product
from treadle.kernel.ir import (
    Affine,
    Axis,
    Expr,
    Index,
    Kernel,
    Load,
    Reduce,
    Scan,
    Store,
    index_axes,
    postorder,
)
from treadle.runtime.gpu.machine import Gpu

TOTALS = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}  # reductions, by scans


@record(frozen=True)
class Owners:
    """How the elements of a target are shared out. A *column* is a point of the grid; a *key*
    numbers the places in the dims whose places are computed from the other axes.

    Attributes:
        dims: of the target, whose places make a key.
        keys: how many there are.
        lanes: neighbouring threads that have a column each.
        columns: blocks for the columns of a key.
        ranges: blocks that have other keys each.
    """

    dims: tuple[int, ...]
    keys: Dim
    lanes: int
    columns: Dim
    ranges: Dim


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
        run: neighbouring elements of a point that one thread takes at once.
        turned: the axis along which loads move by neighbouring elements where stores do so along
            the last axis of the grid. A block works for a square of positions along both.
        scanned: the axis that a team scans, neighbours at once.
        owners: how threads have the elements of the target of a store for themselves.
    """

    grid: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    ordered: frozenset[Axis]
    team: int
    points: int
    across: bool
    vector: int = 1
    parts: Dim = 1
    run: int = 1
    turned: Axis | None = None
    scanned: Axis | None = None
    owners: Owners | None = None

    def rooms(self, gpu: Gpu) -> int:
        """How many values lie in shared memory when a team combines what its threads have found."""
        if self.across:
            return self.threads
        return self.team // gpu.warp if self.team > gpu.warp else 0

    def of_threads(self, threads: int, gpu: Gpu) -> Mapping:
        """The mapping with blocks of so many threads, a multiple of a warp."""
        if self.across:
            team = min(self.team, threads)
            return replace(self, team=team, points=threads // team)
        if self.team > gpu.warp:
            return replace(self, team=threads, points=1)
        return replace(self, points=threads // self.team)

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
    if mapping.owners:
        return mapping
    parts = _parts(kernel, mapping, gpu)
    narrow = _narrow(kernel, mapping, gpu) if parts != 1 else None
    return narrow or replace(mapping, parts=parts)


def _parts(kernel: Kernel, mapping: Mapping, gpu: Gpu) -> Dim:
    """How many blocks share the elements of a point: so many that the device is full, but each
    with elements enough. The number is fixed for given extents, and so is the order of sums."""
    count = mapping.count
    if mapping.team == 1 or kernel.segmented or not isinstance(count, int):
        return 1
    if nested(kernel, mapping.inner) or _updates_points(kernel, mapping):
        return 1
    if mapping.scanned and not all(map(has_total, scans_of(kernel))):
        return 1
    blocks = max(1, -(-count // mapping.points))
    if blocks >= gpu.multiprocessors:
        return 1
    most = gpu.multiprocessors * max(1, gpu.resident // mapping.threads) // blocks
    each = mapping.team * max(gpu.elements, mapping.run)
    parts = product(a.extent for a in mapping.inner) // each
    return compound("max", 1, compound("min", most, parts))


def _narrow(kernel: Kernel, mapping: Mapping, gpu: Gpu) -> Mapping | None:
    """The mapping with blocks for as few neighbouring points as memory moves at once, where a block
    has room for their elements, which several passes need: blocks that shared the elements of a
    point would read them again in each pass. None where such blocks leave most of the device
    without work."""
    count, size = mapping.count, product(a.extent for a in mapping.inner)
    if not mapping.across or not isinstance(count, int) or not isinstance(size, int):
        return None
    inner = frozenset(mapping.inner)
    reduces = [e for e in kernel.exprs if isinstance(e, Reduce)]
    stored = any(inner <= s.axes for s in kernel.stores)
    if not stored and not any(isinstance(e, Reduce) for r in reduces for e in postorder([r.value])):
        return None  # all is known after one pass
    loads = [a for a in accesses(kernel) if isinstance(a, Load) and inner <= a.axes]
    sizes = [int(a.buffer.dtype.size) for a in loads]
    points = gpu.sector // min(sizes, default=gpu.sector)
    if points >= mapping.points or 2 * count < gpu.multiprocessors * points:
        return None
    if sum(sizes) * size * points > gpu.kept * mapping.threads:
        return None
    return replace(mapping, team=mapping.threads // points, points=points)


def nested(kernel: Kernel, inner: tuple[Axis, ...]) -> bool:
    """Whether a reduction stands inside of a loop along another axis."""
    return any(isinstance(e, Reduce) and e.axes & frozenset(inner) for e in kernel.exprs)


def scans_of(kernel: Kernel) -> list[Scan]:
    return [e for e in kernel.exprs if isinstance(e, Scan)]


def has_total(scan: Scan) -> bool:
    """Whether what a scan combines is known without other scans, and there is a reduction of it."""
    alone = not any(isinstance(e, Scan) for e in postorder([scan.value]))
    return alone and scan.op in TOTALS


def _updates_points(kernel: Kernel, mapping: Mapping) -> bool:
    """Whether one block changes what others, which store elements of the same point, may load."""
    inner = frozenset(mapping.inner)
    alone = [s for s in kernel.stores if not s.axes & inner]
    return len(alone) < len(kernel.stores) and any(s.buffer in kernel.inputs for s in alone)


def _whole_points(kernel: Kernel, gpu: Gpu) -> Mapping:
    """The mapping of a kernel with a team in one block for each point."""
    exprs = postorder(kernel.roots)
    reduced = {a for e in exprs if isinstance(e, Reduce) for a in e.over}
    scanned = {e.axis for e in exprs if isinstance(e, Scan)}
    ordered = scanned | {a for s in kernel.stores for a in order_of(s)}
    grid = tuple(a for a in kernel.axes if a not in reduced | ordered)
    inner = tuple(a for a in kernel.axes if a in reduced | ordered)
    if ordered or not reduced:
        if not inner:
            turned = _turned(kernel, gpu)
            vector = 1 if turned else vector_of(kernel, gpu)
            return Mapping(grid, (), frozenset(), 1, gpu.block, True, vector, turned=turned)
        alone = Mapping(grid, inner, frozenset(ordered), 1, gpu.block, True)
        owned = _owned(kernel, alone, gpu)
        if owned:
            return owned
        team = _scanning_team(kernel, grid, inner, reduced, gpu)
        if team:
            points = gpu.block // team if team <= gpu.warp else 1
            return Mapping(grid, inner, frozenset(), team, points, False, scanned=inner[0])
        return alone
    moving = [a for a in accesses(kernel) if a.axes & frozenset(inner)]
    if grid and _neighbours_along(grid[-1], moving) > _neighbours_along(inner[-1], moving):
        # Neighbouring points lie side by side in memory: a warp works for as many.
        team = min(_team(inner, 1, gpu), gpu.warp)
        points = gpu.warp * max(1, gpu.block // (gpu.warp * team))
        return Mapping(grid, inner, frozenset(), team, points, True)
    run = _run_of(inner[-1], moving, gpu)
    team = _team(inner, run, gpu)
    points = 1 if team >= gpu.warp else max(1, gpu.block // team)
    if team == gpu.warp:
        points = gpu.block // gpu.warp
    return Mapping(grid, inner, frozenset(), team, points, False, run=run)


def _scanning_team(
    kernel: Kernel, grid: tuple[Axis, ...], inner: tuple[Axis, ...], reduced: set[Axis], gpu: Gpu
) -> int:
    """Threads that scan an axis together; 0 where one thread for each point does so. That one goes
    along an axis whose elements lie apart, if there are threads enough."""
    scans = scans_of(kernel)
    alone = len(inner) == 1 and not reduced and len({s.reverse for s in scans}) == 1
    if not alone or any(order_of(s) for s in kernel.stores):
        return 0
    moving = [a for a in accesses(kernel) if inner[0] in a.axes]
    count = product(a.extent for a in grid)
    full = not isinstance(count, int) or count >= gpu.multiprocessors * gpu.warp
    along = _neighbours_along(inner[0], moving)
    if grid and full and _neighbours_along(grid[-1], moving) >= along:
        return 0
    size, team = inner[0].extent, 1
    while team < gpu.block and (not isinstance(size, int) or team < size):
        team *= 2
    return team if team > 1 else 0


def _turned(kernel: Kernel, gpu: Gpu) -> Axis | None:
    """The axis beside the last one that most turned loads move along; None where there are none, or
    where squares would be mostly empty."""
    *others, last = kernel.axes or (None,)
    if last is None or not all(_neighbours_along(last, [s]) for s in kernel.stores):
        return None
    counts = {a: sum(is_turned(e, a, kernel) for e in kernel.exprs) for a in others}
    axis = max(counts, key=lambda a: counts[a], default=None)
    if axis is None or not counts[axis]:
        return None
    small = gpu.warp // 4
    long = all(not isinstance(a.extent, int) or a.extent > small for a in (axis, last))
    return axis if long else None


def is_turned(expr: Expr, axis: Axis, kernel: Kernel) -> bool:
    """Whether an expression is a load of neighbours along `axis`, and of elements far apart along
    the kernel's last axis."""
    if not isinstance(expr, Load) or expr.buffer in kernel.outputs:
        return False
    return kernel.axes[-1] in expr.axes and bool(_neighbours_along(axis, [expr]))


def _run_of(
    last: Axis, accesses: list[Load | Store], gpu: Gpu, alone: bool = False
) -> int:
    """How many neighbouring elements along the last axis are moved at once: all accesses must move
    along it by neighbours that begin at a multiple of their bytes. So must rows, unless there is
    one `alone`, whose rest is moved apart."""
    moving = [a for a in accesses if last in a.axes]
    run = gpu.load // max((a.buffer.dtype.size for a in moving), default=gpu.load)
    while run > 1:
        whole = alone or (isinstance(last.extent, int) and last.extent % run == 0)
        if whole and all(neighbours(a, last, run) for a in moving):
            return run
        run //= 2
    return 1


def _team(inner: tuple[Axis, ...], run: int, gpu: Gpu) -> int:
    """Threads for the elements that are reduced: a few elements for each, at most a block."""
    size = product(a.extent for a in inner)
    if not isinstance(size, int):
        return gpu.block
    wanted, team = -(-size // max(4, run)), 1
    while team < wanted and team < gpu.block:
        team *= 2
    if size >= gpu.block * 16 and team < gpu.most_block // 2:
        team *= 2
    return team


def order_of(store: Store) -> frozenset[Axis]:
    """The axes of a store along which several points may name one element."""
    if store.unique or (store.combine == "set" and not store.computed):
        return frozenset()
    return store.axes - {apart(index) for index in store.index}


def apart(index: Index) -> Axis | None:
    """The axis whose positions name different places, if an index has one axis."""
    one = isinstance(index, Affine) and len(index.terms) == 1
    return index.terms[0][0] if isinstance(index, Affine) and one else None


def _owned(kernel: Kernel, mapping: Mapping, gpu: Gpu) -> Mapping | None:
    """The mapping of a kernel that is one store, whose places that may meet do not depend on those
    apart: its elements have threads for themselves."""
    if len(kernel.stores) > 1 or any(isinstance(e, Reduce | Scan) for e in kernel.exprs):
        return None
    (store,) = kernel.stores
    order, shape = order_of(store), store.buffer.shape
    dims = tuple(n for n, i in enumerate(store.index) if apart(i) not in mapping.grid)
    if not order or not all(index_axes(store.index[n]) <= order for n in dims):
        return None
    lanes, count, keys = 1, mapping.count, product(shape[n] for n in dims)
    if isinstance(count, int):
        while lanes < min(count, mapping.threads):
            lanes *= 2
    else:
        lanes = gpu.warp
    columns, groups = (count + lanes - 1) // lanes, mapping.threads // lanes
    full = gpu.multiprocessors * max(1, gpu.resident // mapping.threads)
    most = compound("max", 1, full // columns if columns != 0 else 1)
    ranges = compound("min", most, (keys + groups - 1) // groups)
    parts: Dim = 1
    blocks = columns * ranges
    if store.combine in TOTALS and isinstance(blocks, int) and 0 < blocks < gpu.multiprocessors:
        each = mapping.threads * gpu.elements
        size = product(a.extent for a in mapping.inner)
        parts = compound("max", 1, compound("min", full // blocks, size // each))
    return replace(mapping, parts=parts, owners=Owners(dims, keys, lanes, columns, ranges))


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
    """How many neighbouring points a thread computes, so that it moves their elements at once."""
    if not kernel.axes or any(s.axes != frozenset(kernel.axes) for s in kernel.stores):
        return 1
    return _run_of(kernel.axes[-1], accesses(kernel), gpu, alone=len(kernel.axes) == 1)


def neighbours(access: Load | Store, axis: Axis, vector: int) -> bool | None:
    """Whether an access moves along an axis by one element a position, from a multiple of `vector`
    on; None where it is neither that nor the same element everywhere."""
    if isinstance(access, Load) and access.valid is not None:
        return False if axis not in access.axes else None
    if axis not in access.axes:
        return False
    stride: Dim = 1
    for number in range(len(access.index) - 1, -1, -1):
        index = access.index[number]
        if isinstance(index, Expr):  # rows that are gathered
            if isinstance(access, Store) or axis in index.axes or not _divides(vector, stride):
                return None
            stride = stride * access.buffer.shape[number]
            continue
        for along, coefficient in (*index.terms, (None, index.offset)):
            if along is axis:
                if number != len(access.index) - 1 or coefficient != 1:
                    return None
            elif not _divides(vector, coefficient * stride):
                return None
        stride = stride * access.buffer.shape[number]
    return True


def _divides(vector: int, dim: Dim) -> bool:
    return isinstance(dim, int) and dim % vector == 0
